"""Titles that describe in a few words what a compiled kernel, or a run of a long sequence, computes.

Operations have conventional names: `layer_norm` is "layernorm", `linear` "matmul + bias". A short table lists
compositions such as x · sigmoid(x) with their names. They are matched by data flow, so that no title claims more than
is computed. Other operations keep their names, in order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "BACKWARD_AND_UPDATE",
    "PHASES",
    "UPDATE_WORDS",
    "TitledCall",
    "generic_name",
    "is_only_updates",
    "joint_name",
    "title_of_kernel",
    "title_of_run",
]

PHASES = ("forward", "backward", "update")  # phases of a training step
BACKWARD_AND_UPDATE = "backward and update"

MAX_PERIOD = 16  # maximum number of operations in a repeating pattern
MAX_WORDS = 4  # maximum number of words in a title
DIGITS_PATTERN = re.compile(r"[0-9₀-₉]+")

OP_WORDS = {
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
    "gru_sequence": "GRU",
    "gru_sequence_backward": "GRU",
    "instance_norm": "instancenorm",
    "layer_norm": "layernorm",
    "leaky_relu": "leaky ReLU",
    "linear": "matmul + bias",
    "log_softmax": "log-softmax",
    "lstm_sequence": "LSTM",
    "lstm_sequence_backward": "LSTM",
    "max_pool": "max pooling",
    "mse_loss": "mean squared error",
    "nll_loss": "negative log-likelihood",
    "prelu": "PReLU",
    "relu": "ReLU",
    "relu6": "ReLU6",
    "rms_norm": "RMSnorm",
    "rnn_sequence": "RNN",
    "rnn_sequence_backward": "RNN",
    "scaled_dot_product_attention": "attention",
    "selu": "SELU",
    "silu": "SiLU",
    "soft_cross_entropy": "softmax + cross-entropy",
}
UPDATE_WORDS = {
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
DATA_MOVEMENT = frozenset(
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
)  # operations that move data, omitted from titles if there are computations
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
COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum"})
CHAIN_TITLES = {"add": "sum of {:,} terms", "mul": "product of {:,} factors"}
SUBSCRIPT_DIGITS = "₀₁₂₃₄₅₆₇₈₉"
_BIAS = "bias"  # pattern variable for an operand with fewer dimensions than the result

_CENTRED = ("sub", "x", ("mean", "x"))
SHIFTED_BY_MAX = ("sub", "x", ("amax", "x"))
COMPOSITIONS: tuple[tuple[Any, str], ...] = (
    (("nll_loss", ("log_softmax", "x"), "target"), "softmax + cross-entropy"),
    (("div", ("exp", SHIFTED_BY_MAX), ("sum", ("exp", SHIFTED_BY_MAX))), "softmax"),
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
"""Patterns of composed operations. A pattern is an operation and its operands, which are patterns or variables."""


class TitledCall(NamedTuple):
    """A call in a kernel, with its operation, its inputs and output (any hashable ids), and its purpose."""

    op: str
    reads: tuple[Any, ...]
    output: Any
    dims: tuple[int, ...] = ()
    """The numbers of dimensions of the inputs, followed by that of the output."""
    gradient_of: str = ""
    """The operation to whose gradient the call contributes; empty in the forward pass."""
    decoupled: bool = False
    """Whether the weight decay of an update is decoupled, as in AdamW."""
    name: str = ""
    """The name of the call's output."""
    scope: Any = ""
    """The scope of the module that made the call."""


# --- kernels ---------------------------------------------------------------------------------------------------------


def title_of_kernel(calls: Sequence[TitledCall]) -> str:
    """Return a title for the combined computation of `calls`.

    >>> title_of_kernel([TitledCall("layer_norm", ("x", "w", "b"), "y"), TitledCall("gelu", ("y",), "z")])
    'layernorm + GELU'
    >>> title_of_kernel([TitledCall("exp", ("x",), "y"), TitledCall("sum", ("y",), "z")])
    'exp · sum'
    >>> title_of_kernel([TitledCall("adam_step", (), 0)] * 4)
    'Adam update of 4 parameters'
    >>> title_of_kernel([TitledCall("relu_backward", (), 0, gradient_of="relu")])
    'gradient of ReLU'
    """
    forward_words = _words_of_calls([call for call in calls if not call.gradient_of and call.op not in UPDATE_WORDS])
    backward_words = _unique([_word_of_op(one.gradient_of) for one in calls if one.gradient_of])
    updates: dict[str, list[str]] = {}
    for one in calls:
        if one.op in UPDATE_WORDS:
            updates.setdefault("AdamW" if one.decoupled else UPDATE_WORDS[one.op], []).append(one.name)
    if (backward_words or updates) and all(
        one.op in DATA_MOVEMENT for one in calls if not one.gradient_of and one.op not in UPDATE_WORDS
    ):
        forward_words = []
    parts = [_join_words(forward_words)] if forward_words else []
    if backward_words and set(backward_words) <= set(forward_words):
        parts[0] += " and gradient"
    elif backward_words:
        parts.append(f"gradient of {_join_words(backward_words)}")
    for name, names in updates.items():
        parts.append(f"{name} update of {names[0] if len(names) == 1 and names[0] else _count_parameters(len(names))}")
    return ", ".join(parts)


def _count_parameters(n: int) -> str:
    return f"{n:,} parameter{'' if n == 1 else 's'}"


def is_only_updates(calls: Sequence[TitledCall]) -> bool:
    """Whether `calls` consist of parameter updates, apart from data movement."""
    return any(call.op in UPDATE_WORDS for call in calls) and all(
        one.op in UPDATE_WORDS or one.op in DATA_MOVEMENT for one in calls
    )


def _words_of_calls(calls: Sequence[TitledCall]) -> list[str]:
    """Return a word for each composition among the calls and for each remaining call, in order."""
    call_by_output = {call.output: call._replace(op=_normalised_op(call)) for call in calls}
    dims = {x: n for one in calls for x, n in zip((*one.reads, one.output), one.dims, strict=False)}
    covered: set[Any] = set()
    words: dict[Any, str] = {}
    for one in reversed(calls):
        for pattern, word in () if one.output in covered else COMPOSITIONS:
            outputs = _match_pattern(pattern, one.output, call_by_output, dims)
            if outputs is not None and not outputs & covered:
                covered |= outputs
                words[one.output] = word
                break
    remaining = [one for one in calls if one.output in words or one.output not in covered]
    if any(one.op not in DATA_MOVEMENT for one in remaining):
        remaining = [one for one in remaining if one.op not in DATA_MOVEMENT]
    return [words.get(one.output) or _word_of_op(one.op, one) for one in remaining]


def _normalised_op(call: TitledCall) -> str:
    """Return the operation of a call, in which equivalent forms are unified: x · x and x ** 2 are squares."""
    if call.op == "mul" and call.reads[:1] == call.reads[1:]:
        return "square"
    return {"2.0": "square", "0.5": "sqrt"}.get(str(call.reads[-1]), call.op) if call.op == "pow" else call.op


def _match_pattern(
    pattern: Any, root: Any, call_by_output: Mapping[Any, TitledCall], dims: Mapping[Any, int]
) -> set[Any] | None:
    """Return the outputs covered by a pattern that ends in `root`; None if the pattern does not match."""

    def match(part: Any, output: Any, bindings: dict[str, Any]) -> Iterable[tuple[dict[str, Any], frozenset[Any]]]:
        if isinstance(part, str):
            is_match = part != _BIAS or (output in dims and root in dims and dims[output] < dims[root])
            if is_match and bindings.get(part, output) == output:
                yield {**bindings, part: output}, frozenset()
        elif output in call_by_output and call_by_output[output].op == part[0]:
            orders = [part[1:], part[:0:-1]] if part[0] in COMMUTATIVE else [part[1:]]
            for order in orders:
                partial_matches: list[tuple[dict[str, Any], frozenset[Any]]] = [(bindings, frozenset({output}))]
                for inner, operand in zip(order, call_by_output[output].reads, strict=False):
                    partial_matches = [
                        (b, covered | s)
                        for partial, covered in partial_matches
                        for b, s in match(inner, operand, partial)
                    ]
                yield from partial_matches if len(call_by_output[output].reads) >= len(order) else ()

    return next((set(inside) for _, inside in match(pattern, root, {})), None)


def _word_of_op(op: str, call: TitledCall | None = None) -> str:
    if op == "linear" and call is not None and len([x for x in call.reads if x is not None]) < 3:
        return "matmul"
    stem = op.removesuffix("_backward")
    return OP_WORDS.get(op) or OP_WORDS.get(stem) or stem.replace("_", " ")


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _join_words(words: Sequence[str]) -> str:
    """Join words without repetitions. Basic arithmetic is omitted if the title would be too long."""
    non_arithmetic = [word for word in words if word not in _ARITHMETIC]
    shown = _unique(non_arithmetic if non_arithmetic and len(_unique(words)) > 2 else words)
    ellipsis = ["…"] if len(shown) > MAX_WORDS else []
    return (" + " if non_arithmetic else " · ").join([*shown[: MAX_WORDS - len(ellipsis)], *ellipsis])


# --- names of grouped blocks ------------------------------------------------------------------------------------------


def generic_name(name: str) -> str:
    """Return a name with its digits replaced by #.

    >>> generic_name("layer0.block12"), generic_name("model₁")
    ('layer#.block#', 'model#')
    """
    return DIGITS_PATTERN.sub("#", name)


def joint_name(first: str, last: str) -> str:
    """Return a name for a group of consecutive blocks from `first` to `last`.

    >>> joint_name("layer0", "layer3"), joint_name("model₁", "model₁₂"), joint_name("0 · Linear", "4 · Linear")
    ('layer0 … layer3', 'model', '0 … 4 · Linear')
    """
    if first.rstrip(SUBSCRIPT_DIGITS) == last.rstrip(SUBSCRIPT_DIGITS):  # the names differ only in their number
        return first.rstrip(SUBSCRIPT_DIGITS)
    (start, kind), (end, last_kind) = (name.rpartition(" · ")[::2] for name in (first, last))
    return f"{start} … {end} · {kind}" if start and kind == last_kind else f"{first} … {last}"


# --- runs ------------------------------------------------------------------------------------------------------------


def title_of_run(ops: Sequence[str], is_chained: bool = False) -> str:
    """Describe a sequence of operations by its repeating pattern, or by its operations. `is_chained` is True if each
    operation reads the result of the previous one.

    >>> title_of_run(["mul", "add", "tanh"] * 12), title_of_run(["mul"] * 40), title_of_run(["exp", "mul", "mul"])
    ('12 × (mul, add, tanh)', '40 × mul', '2 × mul, exp')
    >>> title_of_run(["add"] * 39, is_chained=True)
    'sum of 40 terms'
    """
    if is_chained and len(ops) > 1 and ops[0] in CHAIN_TITLES and len(set(ops)) == 1:
        return CHAIN_TITLES[ops[0]].format(len(ops) + 1)
    for period in range(1, min(MAX_PERIOD, len(ops) // 2) + 1):
        if all(op == later for op, later in zip(ops, ops[period:], strict=False)):
            inside = ops[0] if period == 1 else f"({', '.join(ops[:period])})"
            return f"{len(ops) // period:,} × {inside}"
    counts = Counter(ops).most_common()
    names = [f"{n:,} × {name}" if n > 1 else name for name, n in counts]
    return ", ".join(names[:MAX_WORDS] + ["…"] * (len(names) > MAX_WORDS)) or "leaves"
