"""Titles: describe in a few words what a compiled kernel, or a run of a long sequence, computes.

Operations have conventional names: `layer_norm` is "layernorm", `linear` "matmul + bias". A short table lists
compositions such as x · sigmoid(x) with their names, matched by data flow, so that no title claims more than is
computed. Other operations keep their names, in order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "MIXED",
    "UPDATES",
    "WAYS",
    "TitledCall",
    "generic_name",
    "joint_name",
    "only_updates",
    "title_of_kernel",
    "title_of_run",
]

WAYS = ("forward", "backward", "update")  # phases of a training step
MIXED = "backward and update"

_LONGEST_PERIOD = 16  # operations in a repeating pattern
_LISTED = 4  # words in a title
_NUMBERS = re.compile(r"[0-9₀-₉]+")

WORDS = {
    "amax": "max",
    "amin": "min",
    "attention_backward": "attention",
    "batch_norm": "batchnorm",
    "bce_with_logits": "sigmoid + binary cross-entropy",
    "binary_cross_entropy": "binary cross-entropy",
    "contract": "matmul",
    "conv2d": "convolution",
    "cross_entropy": "softmax + cross-entropy",
    "elu": "ELU",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "group_norm": "groupnorm",
    "instance_norm": "instancenorm",
    "layer_norm": "layernorm",
    "leaky_relu": "leaky ReLU",
    "linear": "matmul + bias",
    "log_softmax": "log-softmax",
    "max_pool": "max pooling",
    "mse_loss": "mean squared error",
    "nll_loss": "negative log-likelihood",
    "prelu": "PReLU",
    "relu": "ReLU",
    "relu6": "ReLU6",
    "rms_norm": "RMSnorm",
    "scaled_dot_product_attention": "attention",
    "selu": "SELU",
    "silu": "SiLU",
    "soft_cross_entropy": "softmax + cross-entropy",
}
UPDATES = {
    "adadelta_step": "Adadelta",
    "adagrad_step": "Adagrad",
    "adam_step": "Adam",
    "adamax_step": "Adamax",
    "amsgrad_step": "AMSGrad",
    "lion_step": "Lion",
    "momentum_step": "SGD with momentum",
    "nadam_step": "NAdam",
    "radam_step": "RAdam",
    "rmsprop_centered_momentum_step": "RMSprop",
    "rmsprop_centered_step": "RMSprop",
    "rmsprop_momentum_step": "RMSprop",
    "rmsprop_step": "RMSprop",
    "sgd_step": "SGD",
}
_PLUMBING = frozenset(
    [
        "as_strided",
        "cat",
        "constant",
        "contiguous",
        "copy",
        "expand",
        "full",
        "index",
        "move",
        "pad",
        "permute",
        "pick",
        "reshape",
        "sum_to",
        "to",
        "unfold",
    ]
)  # data movement, omitted next to computation
_ARITHMETIC = frozenset(
    [
        "abs",
        "add",
        "clamp",
        "div",
        "eq",
        "exp",
        "ge",
        "gt",
        "le",
        "log",
        "lt",
        "max",
        "maximum",
        "mean",
        "min",
        "minimum",
        "mul",
        "ne",
        "neg",
        "pow",
        "reciprocal",
        "rsqrt",
        "sign",
        "sqrt",
        "square",
        "sub",
        "sum",
        "where",
    ]
)
_COMMUTES = frozenset({"add", "mul", "maximum", "minimum"})
_CHAINS = {"add": "sum of {:,} terms", "mul": "product of {:,} factors"}
_SMALL = "₀₁₂₃₄₅₆₇₈₉"
_BIAS = "bias"  # pattern variable for an operand with fewer dimensions than the result

_CENTRED = ("sub", "x", ("mean", "x"))
_SHIFTED = ("sub", "x", ("amax", "x"))
COMPOSITIONS: tuple[tuple[Any, str], ...] = (
    (("nll_loss", ("log_softmax", "x"), "target"), "softmax + cross-entropy"),
    (("div", ("exp", _SHIFTED), ("sum", ("exp", _SHIFTED))), "softmax"),
    (("div", ("exp", "x"), ("sum", ("exp", "x"))), "softmax"),
    (("sub", "x", ("logsumexp", "x")), "log-softmax"),
    (("sub", "x", ("log", ("sum", ("exp", "x")))), "log-softmax"),
    (("mul", _CENTRED, ("rsqrt", ("add", ("mean", ("square", _CENTRED)), "eps"))), "layernorm"),
    (("mul", _CENTRED, ("rsqrt", ("add", ("var", "x"), "eps"))), "layernorm"),
    (("div", _CENTRED, ("sqrt", ("add", ("mean", ("square", _CENTRED)), "eps"))), "layernorm"),
    (("div", _CENTRED, ("sqrt", ("add", ("var", "x"), "eps"))), "layernorm"),
    (("mean", ("square", ("sub", "x", "target"))), "mean squared error"),
    (("mul", "x", ("sigmoid", "x")), "SiLU"),
    (("add", ("matmul", "x", "w"), _BIAS), "matmul + bias"),
    (("add", ("contract", "x", "w"), _BIAS), "matmul + bias"),
)
"""Composed operations: an operation and its operands, which are operations or variables."""


class TitledCall(NamedTuple):
    """A call in a kernel: its operation, its inputs and output (any hashable ids), and its purpose."""

    op: str
    reads: tuple[Any, ...]
    gives: Any
    dims: tuple[int, ...] = ()
    """The number of dimensions of each input, then of the output."""
    of: str = ""
    """The operation whose gradient it helps to compute; "" in the forward pass."""
    decoupled: bool = False
    """Whether the weight decay of an update is decoupled, as in AdamW."""
    name: str = ""
    """The name of its output."""
    scope: Any = ""
    """Its module scope in a model."""


# --- kernels ---------------------------------------------------------------------------------------------------------


def title_of_kernel(calls: Sequence[TitledCall]) -> str:
    """Return a title for the combined computation of these calls.

    >>> title_of_kernel([TitledCall("layer_norm", ("x", "w", "b"), "y"), TitledCall("gelu", ("y",), "z")])
    'layernorm + GELU'
    >>> title_of_kernel([TitledCall("exp", ("x",), "y"), TitledCall("sum", ("y",), "z")])
    'exp · sum'
    >>> title_of_kernel([TitledCall("adam_step", (), 0)] * 4)
    'Adam update of 4 parameters'
    >>> title_of_kernel([TitledCall("relu_backward", (), 0, of="relu")])
    'gradient of ReLU'
    """
    forward = _words([one for one in calls if not one.of and one.op not in UPDATES])
    back = _distinct([_word(one.of) for one in calls if one.of])
    updates: dict[str, list[str]] = {}
    for one in calls:
        if one.op in UPDATES:
            updates.setdefault("AdamW" if one.decoupled else UPDATES[one.op], []).append(one.name)
    if (back or updates) and all(one.op in _PLUMBING for one in calls if not one.of and one.op not in UPDATES):
        forward = []
    parts = [_joined(forward)] if forward else []
    if back and set(back) <= set(forward):
        parts[0] += " and gradient"
    elif back:
        parts.append(f"gradient of {_joined(back)}")
    for name, of in updates.items():
        parts.append(f"{name} update of {of[0] if len(of) == 1 and of[0] else _counted(len(of))}")
    return ", ".join(parts)


def _counted(n: int) -> str:
    return f"{n:,} parameter{'' if n == 1 else 's'}"


def only_updates(calls: Sequence[TitledCall]) -> bool:
    """Whether these calls only update parameters, apart from data movement."""
    return any(one.op in UPDATES for one in calls) and all(one.op in UPDATES or one.op in _PLUMBING for one in calls)


def _words(calls: Sequence[TitledCall]) -> list[str]:
    """Return a word for each composition among the calls and for each other call, in order."""
    made = {one.gives: one._replace(op=_plain(one)) for one in calls}
    dims = {x: n for one in calls for x, n in zip((*one.reads, one.gives), one.dims, strict=False)}
    claimed: set[Any] = set()
    words: dict[Any, str] = {}
    for one in reversed(calls):
        for pattern, word in () if one.gives in claimed else COMPOSITIONS:
            inside = _matched(pattern, one.gives, made, dims)
            if inside is not None and not inside & claimed:
                claimed |= inside
                words[one.gives] = word
                break
    kept = [one for one in calls if one.gives in words or one.gives not in claimed]
    if any(one.op not in _PLUMBING for one in kept):
        kept = [one for one in kept if one.op not in _PLUMBING]
    return [words.get(one.gives) or _word(one.op, one) for one in kept]


def _plain(one: TitledCall) -> str:
    """Return the operation of a call, normalising equivalent forms: x · x and x ** 2 are squares."""
    if one.op == "mul" and one.reads[:1] == one.reads[1:]:
        return "square"
    return {"2.0": "square", "0.5": "sqrt"}.get(str(one.reads[-1]), one.op) if one.op == "pow" else one.op


def _matched(pattern: Any, root: Any, made: Mapping[Any, TitledCall], dims: Mapping[Any, int]) -> set[Any] | None:
    """Return the outputs that a pattern ending in `root` covers; None if it does not match."""

    def match(part: Any, at: Any, bound: dict[str, Any]) -> Iterable[tuple[dict[str, Any], frozenset[Any]]]:
        if isinstance(part, str):
            fits = part != _BIAS or (at in dims and root in dims and dims[at] < dims[root])
            if fits and bound.get(part, at) == at:
                yield {**bound, part: at}, frozenset()
        elif at in made and made[at].op == part[0]:
            orders = [part[1:], part[:0:-1]] if part[0] in _COMMUTES else [part[1:]]
            for order in orders:
                ways: list[tuple[dict[str, Any], frozenset[Any]]] = [(bound, frozenset({at}))]
                for inner, operand in zip(order, made[at].reads, strict=False):
                    ways = [(b, seen | s) for way, seen in ways for b, s in match(inner, operand, way)]
                yield from ways if len(made[at].reads) >= len(order) else ()

    return next((set(inside) for _, inside in match(pattern, root, {})), None)


def _word(op: str, call: TitledCall | None = None) -> str:
    if op == "linear" and call is not None and len([x for x in call.reads if x is not None]) < 3:
        return "matmul"
    stem = op.removesuffix("_backward")
    return WORDS.get(op) or WORDS.get(stem) or stem.replace("_", " ")


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _joined(words: Sequence[str]) -> str:
    """Join words, without repetitions, and without basic arithmetic if the title would be too long."""
    plain = [word for word in words if word not in _ARITHMETIC]
    found = _distinct(plain if plain and len(_distinct(words)) > 2 else words)
    more = ["…"] if len(found) > _LISTED else []
    return (" + " if plain else " · ").join([*found[: _LISTED - len(more)], *more])


# --- names of grouped blocks ------------------------------------------------------------------------------------------


def generic_name(name: str) -> str:
    """Return a name with its digits replaced by #.

    >>> generic_name("layer0.block12"), generic_name("model₁")
    ('layer#.block#', 'model#')
    """
    return _NUMBERS.sub("#", name)


def joint_name(first: str, last: str) -> str:
    """Return a name for a group of blocks, from the first to the last.

    >>> joint_name("layer0", "layer3"), joint_name("model₁", "model₁₂"), joint_name("0 · Linear", "4 · Linear")
    ('layer0 … layer3', 'model', '0 … 4 · Linear')
    """
    if first.rstrip(_SMALL) == last.rstrip(_SMALL):  # they differ only in their number
        return first.rstrip(_SMALL)
    (start, kind), (end, other) = (name.rpartition(" · ")[::2] for name in (first, last))
    return f"{start} … {end} · {kind}" if start and kind == other else f"{first} … {last}"


# --- runs ------------------------------------------------------------------------------------------------------------


def title_of_run(ops: Sequence[str], chained: bool = False) -> str:
    """Describe a sequence of operations: its repeating pattern, or its operations. They are `chained` if each reads the
    result of the one before.

    >>> title_of_run(["mul", "add", "tanh"] * 12), title_of_run(["mul"] * 40), title_of_run(["exp", "mul", "mul"])
    ('12 × (mul, add, tanh)', '40 × mul', '2 × mul, exp')
    >>> title_of_run(["add"] * 39, chained=True)
    'sum of 40 terms'
    """
    if chained and len(ops) > 1 and ops[0] in _CHAINS and len(set(ops)) == 1:
        return _CHAINS[ops[0]].format(len(ops) + 1)
    for period in range(1, min(_LONGEST_PERIOD, len(ops) // 2) + 1):
        if all(one == later for one, later in zip(ops, ops[period:], strict=False)):
            inside = ops[0] if period == 1 else f"({', '.join(ops[:period])})"
            return f"{len(ops) // period:,} × {inside}"
    counts = Counter(ops).most_common()
    names = [f"{n:,} × {name}" if n > 1 else name for name, n in counts]
    return ", ".join(names[:_LISTED] + ["…"] * (len(names) > _LISTED)) or "leaves"
