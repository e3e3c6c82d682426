"""The list in `book/pytorch_users.md` of the PyTorch operations that the player can recompute ("What if").

    PYTHONPATH=.:viz:tests/helpers python tests/helpers/torch_what_if.py

rewrites it. Each operation with a counterpart in minigrad is called once on small tensors. The player recomputes it if
the trace of this call has programs for its value and its gradients.
"""

from pathlib import Path

from lazy import LazyModule

torch = LazyModule("torch")
PAGE = Path(__file__).parents[2] / "book" / "pytorch_users.md"
BEGIN, END = "<!-- made by tests/helpers/torch_what_if.py -->\n", "<!-- until here -->"

# How a user calls an operation that has another name in ATen.
_USER_NAMES = {
    "__matmul__": "@",
    "_log_softmax": "log_softmax",
    "_softmax": "softmax",
    "_to_copy": "to(dtype)",
    "_unsafe_view": "view",
    "constant_pad_nd": "pad",
    "convolution": "conv2d",
    "linalg_vector_norm": "norm",
    "max": "max (of all elements)",
    "min": "min (of all elements)",
    "native_layer_norm": "layer_norm",
    "reshape": "reshape (without a copy)",
    "select": "x[0]",
    "slice": "x[1:3]",
}


def _a():
    return torch.tensor([[0.25, 0.5, 0.75], [0.125, 0.375, 0.625]], requires_grad=True)


def _b():
    return torch.tensor([[0.5, 0.25, 0.125], [0.75, 0.5, 0.25]], requires_grad=True)


def _square():
    return torch.tensor([[0.25, 0.5], [0.75, 1.0]], requires_grad=True)


def _index():
    return torch.tensor([[0, 1, 0]])


def _integers():
    return torch.tensor([3, 5])


# Calls of the operations that are not called with one or two floating-point tensors of the same shape.
_SAMPLES = {
    "__matmul__": lambda: _a() @ _a().detach().T,
    "_log_softmax": lambda: torch.log_softmax(_a(), -1),
    "_softmax": lambda: torch.softmax(_a(), -1),
    "_to_copy": lambda: _a().double(),
    "_unsafe_view": lambda: torch.ops.aten._unsafe_view(_a(), [3, 2]),
    "acosh": lambda: torch.acosh(_a() + 1),
    "all": lambda: torch.all(_a() > 0, 1),
    "amax": lambda: torch.amax(_a(), 1),
    "amin": lambda: torch.amin(_a(), 1),
    "any": lambda: torch.any(_a() > 0, 1),
    "bitwise_and": lambda: _integers() & _integers(),
    "bitwise_not": lambda: ~_integers(),
    "bitwise_or": lambda: _integers() | _integers(),
    "bitwise_xor": lambda: _integers() ^ _integers(),
    "bmm": lambda: torch.bmm(_a()[None], _a().detach().T[None]),
    "cat": lambda: torch.cat([_a(), _b()]),
    "clamp": lambda: torch.clamp(_a(), 0.2, 0.6),
    "clamp_max": lambda: torch.clamp_max(_a(), 0.6),
    "clamp_min": lambda: torch.clamp_min(_a(), 0.2),
    "clone": lambda: _a().clone(),
    "constant_pad_nd": lambda: torch.nn.functional.pad(_a(), (1, 0)),
    "convolution": lambda: torch.nn.functional.conv2d(_a()[None, None], torch.ones(1, 1, 2, 2), torch.ones(1)),
    "cross_entropy": lambda: torch.nn.functional.cross_entropy(_a(), torch.tensor([0, 2])),
    "cumprod": lambda: torch.cumprod(_a(), 1),
    "cumsum": lambda: torch.cumsum(_a(), 1),
    "diagonal": lambda: torch.diagonal(_square()),
    "elu": lambda: torch.nn.functional.elu(_a()),
    "embedding": lambda: torch.nn.functional.embedding(torch.tensor([0, 1, 0]), _a()),
    "expand": lambda: _a().expand(2, 2, 3),
    "flip": lambda: torch.flip(_a(), [0]),
    "floor_divide": lambda: torch.floor_divide(torch.tensor([3.0, 5.0]), torch.tensor([2.0, 1.5])),
    "gather": lambda: torch.gather(_a(), 0, _index()),
    "gelu": lambda: torch.nn.functional.gelu(_a()),
    "hardtanh": lambda: torch.nn.functional.hardtanh(_a()),
    "index_select": lambda: torch.index_select(_a(), 0, torch.tensor([1, 0])),
    "leaky_relu": lambda: torch.nn.functional.leaky_relu(_a()),
    "lerp": lambda: torch.lerp(_a(), _b(), 0.5),
    "linear": lambda: torch.nn.functional.linear(_a(), _b(), torch.ones(2)),
    "linalg_vector_norm": lambda: torch.linalg.vector_norm(_a(), dim=1),
    "logsumexp": lambda: torch.logsumexp(_a(), 1),
    "masked_fill": lambda: _a().masked_fill(torch.tensor([True, False, True]), 0.0),
    "matmul": lambda: torch.matmul(_a(), _a().detach().T),
    "max": lambda: torch.max(_a()),
    "mean": lambda: torch.mean(_a(), 1),
    "min": lambda: torch.min(_a()),
    "mish": lambda: torch.nn.functional.mish(_a()),
    "mm": lambda: torch.mm(_a(), torch.ones(3, 2)),
    "native_layer_norm": lambda: torch.nn.functional.layer_norm(_a(), (3,), torch.ones(3), torch.zeros(3)),
    "permute": lambda: _a().permute(1, 0),
    "pow": lambda: _a() ** 2,
    "prod": lambda: torch.prod(_a(), 1),
    "reshape": lambda: _a().reshape(6),
    "roll": lambda: torch.roll(_a(), 1, 0),
    "rsub": lambda: torch.rsub(_a(), 1.0),
    "select": lambda: _a()[0],
    "silu": lambda: torch.nn.functional.silu(_a()),
    "slice": lambda: _a()[:, 1:],
    "softplus": lambda: torch.nn.functional.softplus(_a()),
    "squeeze": lambda: _a()[:1].squeeze(0),
    "std": lambda: torch.std(_a(), 1),
    "sum": lambda: torch.sum(_a(), 1),
    "t": lambda: _a().t(),
    "transpose": lambda: _a().transpose(0, 1),
    "tril": lambda: torch.tril(_square()),
    "triu": lambda: torch.triu(_square()),
    "unsqueeze": lambda: _a().unsqueeze(0),
    "var": lambda: torch.var(_a(), 1),
    "view": lambda: _a().view(6),
    "where": lambda: torch.where(torch.tensor([True, False, True]), _a(), _b()),
}


def call(name):
    """Call an operation within `record`."""
    from minigrad_viz import record

    with record():
        return _SAMPLES[name]() if name in _SAMPLES else _call_elementwise(name)


def _call_elementwise(name):
    packet = getattr(torch.ops.aten, name)
    arguments = [argument.name for argument in getattr(packet, packet.overloads()[0])._schema.arguments]
    operands = {"self": _a, "other": _b}
    required = [name for name in arguments if name in operands]
    assert required, f"{name} needs a sample"
    return getattr(torch, name)(*(operands[name]() for name in required))


def is_recomputed(name):
    """Whether the player recomputes an operation, by its name in COUNTERPARTS or FUNCTIONS."""
    from minigrad_viz import to_trace
    from minigrad_viz.trace.programs import Programs

    trace = to_trace(call(name))
    return isinstance(Programs(trace).of_node.get(trace.outputs[0]), list)


def has_formula(name):
    """Whether a call is drawn as an operation of minigrad. PyTorch composes some functions of several operations."""
    from minigrad import OPS
    from minigrad_viz import to_trace

    trace = to_trace(call(name))
    op = trace.ops[trace.op[trace.outputs[0]]]
    return OPS.get(op.name) is op


def operations():
    """Return the names of all operations with a counterpart in minigrad, in COUNTERPARTS or FUNCTIONS."""
    from minigrad_viz.trace.torch.operations import COUNTERPARTS, FUNCTIONS

    return list(dict.fromkeys((*COUNTERPARTS, *FUNCTIONS)))


def names():
    """Return the names of the operations that the player recomputes, and of the others that have a formula."""
    recomputed: set[str] = set()
    others: set[str] = set()
    for name in operations():
        if is_recomputed(name):
            recomputed.add(_USER_NAMES.get(name, name))
        elif has_formula(name):
            others.add(_USER_NAMES.get(name, name))
    return sorted(recomputed, key=str.lower), sorted(others - recomputed, key=str.lower)


def markdown():
    """Return the lists for the page."""
    recomputed, others = (", ".join([f"`{name}`" for name in part]) for part in names())
    return f"**Recomputed:** {recomputed}.\n\n**Shown with a formula, not recomputed:** {others}.\n"


def main():
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{markdown()}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
