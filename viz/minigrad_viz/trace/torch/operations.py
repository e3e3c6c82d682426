"""The minigrad operation that computes the same as an operation of PyTorch, where there is one.

It provides the formula of a node, its derivatives, and what the player needs to recompute it. An operation without a
counterpart is drawn and stepped like any other, since its values and gradients are PyTorch's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import minigrad as mg
from minigrad.ops.conv import Window
from minigrad.ops.normalization import Norm
from minigrad_viz.trace.torch.internals import schema_of
from minigrad_viz.trace.torch.rows import OperationCall, TensorArgument, TensorValue

__all__ = ["COUNTERPARTS", "FUNCTIONS", "Counterpart", "bind_arguments", "counterpart", "opaque_op"]

Argument = Any  # a TensorArgument, a number, or None for an omitted operand
Arguments = Mapping[str, Any]
Values = Sequence[TensorValue]


class Counterpart(NamedTuple):
    """An operation of minigrad, its operands and its attributes."""

    op: mg.Op
    operands: list[Argument]
    attrs: dict[str, Any]


@cache
def opaque_op(name: str) -> mg.Op:
    """Return an operation that stands for a function of PyTorch which minigrad cannot compute."""
    identifier = "".join([c if f"_{c}".isidentifier() else "_" for c in name]).strip("_") or "function"
    return mg.Op(
        identifier,
        rf"\operatorname{{{identifier}}}\left({{a}}\right)",
        vjp=lambda g, ctx: None,
        aux=("ctx",),
        variadic=True,
        listed=False,
    )


def bind_arguments(call: OperationCall) -> dict[str, Any]:
    """Return the arguments of a call by the names of its schema, with defaults."""
    arguments: dict[str, Any] = {}
    for position, argument in enumerate(schema_of(call.operation).arguments):
        if position < len(call.args):
            arguments[argument.name] = call.args[position]
        elif argument.name in call.kwargs:
            arguments[argument.name] = call.kwargs[argument.name]
        elif argument.has_default_value():
            arguments[argument.name] = argument.default_value
    return arguments


def counterpart(call: OperationCall, values: Values) -> Counterpart | None:
    """Return the operation of minigrad that computes the same as `call`, or None. `values` are those of the recording.

    >>> sorted(COUNTERPARTS)[:4], len(COUNTERPARTS) + len(FUNCTIONS) >= 60
    (['_log_softmax', '_softmax', '_to_copy', '_unsafe_view'], True)
    """
    convert = COUNTERPARTS.get(call.name.removesuffix("_") if call.name.strip("_") else call.name)
    if convert is None or not call.outputs:
        return None
    result = convert(bind_arguments(call), _Shapes(call, values))
    if result is None:
        return None
    name, operands, attrs = result
    return Counterpart(mg.OPS[name], operands, attrs)


class _Shapes:
    """The shapes of a call's arguments and of its output."""

    def __init__(self, call: OperationCall, values: Values) -> None:
        self._values = values
        self.output = values[call.outputs[0]].shape
        self.output_dtype = values[call.outputs[0]].dtype

    def __getitem__(self, x: TensorArgument) -> tuple[int, ...]:
        return self._values[x.value].shape

    def dims(self, x: TensorArgument, dim: Any) -> tuple[int, ...]:
        """Return dimensions as non-negative numbers in ascending order; all of them if `dim` is None or empty."""
        rank = len(self[x])
        chosen = range(rank) if dim is None or dim == () else [dim] if isinstance(dim, int) else dim
        return tuple(sorted(k % max(rank, 1) for k in chosen))


Conversion = Callable[[Any, _Shapes], "tuple[str, list[Argument], dict[str, Any]] | None"]


def _unary(name: str) -> Conversion:
    return lambda a, shapes: (name, [a["self"]], {})


def _binary(name: str) -> Conversion:
    """Return the conversion of an operation of two operands, without the options that minigrad lacks."""

    def convert(a: Arguments, shapes: _Shapes) -> Any:
        if a.get("alpha", 1) != 1 or a.get("rounding_mode") is not None:
            return None
        return name, [a.get("self"), a.get("other")], {}

    return convert


def _power(a: Arguments, shapes: _Shapes) -> Any:
    return "pow", [a["self"], a["exponent"]], {}


def _reversed_sub(a: Arguments, shapes: _Shapes) -> Any:
    return ("sub", [a["other"], a["self"]], {}) if a.get("alpha", 1) == 1 else None


def _reduction(name: str, **more: Callable[[Arguments], Any]) -> Conversion:
    def convert(a: Arguments, shapes: _Shapes) -> Any:
        if a.get("dtype") is not None or not shapes[a["self"]]:
            return None
        attrs = {"dim": shapes.dims(a["self"], a.get("dim")), "keepdim": bool(a.get("keepdim", False))}
        return name, [a["self"]], attrs | {key: value(a) for key, value in more.items()}

    return convert


def _along_one_dim(name: str, **more: Any) -> Conversion:
    def convert(a: Arguments, shapes: _Shapes) -> Any:
        if a.get("dtype") is not None or a.get("half_to_float") or not shapes[a["self"]]:
            return None
        return name, [a["self"]], {"dim": shapes.dims(a["self"], a["dim"])[0], **more}

    return convert


def _correction(a: Arguments) -> Any:
    return 1 if a.get("correction") is None else a["correction"]


def _product(name: str) -> Conversion:
    return lambda a, shapes: (name, [a["self"], a.get("mat2", a.get("other"))], {})


def _reshape(a: Arguments, shapes: _Shapes) -> Any:
    return "reshape", [a["self"]], {"shape": shapes.output}


def _permute(a: Arguments, shapes: _Shapes) -> Any:
    rank = len(shapes[a["self"]])
    if "dims" in a:
        dims = [k % rank for k in a["dims"]]
    else:
        dims = list(range(rank))
        first, second = a.get("dim0", 0), a.get("dim1", 1)
        if rank > 1:
            dims[first], dims[second] = dims[second], dims[first]
    return ("permute", [a["self"]], {"dims": tuple(dims)}) if rank else None


def _expand(a: Arguments, shapes: _Shapes) -> Any:
    return "expand", [a["self"]], {"shape": shapes.output}


def _key(a: Arguments, shapes: _Shapes, item: Any) -> Any:
    dim = a.get("dim", 0) % len(shapes[a["self"]])
    return "index", [a["self"]], {"key": (*[slice(None)] * dim, item)}


def _select(a: Arguments, shapes: _Shapes) -> Any:
    return _key(a, shapes, a["index"])


def _slice(a: Arguments, shapes: _Shapes) -> Any:
    end = a.get("end")
    end = None if end is None or end >= shapes[a["self"]][a.get("dim", 0)] else end
    start, step = a.get("start") or None, a.get("step", 1)
    return _key(a, shapes, slice(start, end, None if step == 1 else step))


def _concatenate(a: Arguments, shapes: _Shapes) -> Any:
    tensors = [x for x in a["tensors"] if shapes[x] != (0,)]
    dim = a.get("dim", 0) % max(len(shapes.output), 1)
    return "cat", tensors, {"dim": dim, "sizes": tuple([shapes[x][dim] for x in tensors])}


def _to_dtype(a: Arguments, shapes: _Shapes) -> Any:
    dtype = getattr(mg, shapes.output_dtype, None)
    return None if dtype is None or a.get("dtype") is None else ("to", [a["self"]], {"dtype": dtype})


def _clamp(a: Arguments, shapes: _Shapes) -> Any:
    bounds = a.get("min"), a.get("max")
    if any(isinstance(x, TensorArgument) for x in bounds):
        return None
    return "clamp", [a["self"]], dict(zip(("min", "max"), bounds, strict=True))


def _pad(a: Arguments, shapes: _Shapes) -> Any:
    rank, flat = len(shapes[a["self"]]), a["pad"]
    pads = [(0, 0)] * (rank - len(flat) // 2) + list(zip(flat[::2], flat[1::2], strict=True))[::-1]
    return ("pad", [a["self"]], {"pads": tuple(pads), "value": float(a.get("value", 0))}) if min(flat) >= 0 else None


def _gather(name: str) -> Conversion:
    def convert(a: Arguments, shapes: _Shapes) -> Any:
        rank = len(shapes[a["self"]])
        return (name, [a["self"], a["index"]], {"dim": a["dim"] % rank}) if rank else None

    return convert


def _embedding(a: Arguments, shapes: _Shapes) -> Any:
    padding = a.get("padding_idx", -1)
    attrs = {"padding_idx": None if padding < 0 else padding, "by_freq": bool(a.get("scale_grad_by_freq", False))}
    return "embedding", [a["weight"], a["indices"]], attrs


def _where(a: Arguments, shapes: _Shapes) -> Any:
    return "where", [a["condition"], a["self"], a["other"]], {}


def _masked_fill(a: Arguments, shapes: _Shapes) -> Any:
    return "where", [a["mask"], a["value"], a["self"]], {}


def _lerp(a: Arguments, shapes: _Shapes) -> Any:
    return "lerp", [a["self"], a["end"], a["weight"]], {}


def _elu(a: Arguments, shapes: _Shapes) -> Any:
    alpha, scale, input_scale = a.get("alpha", 1), a.get("scale", 1), a.get("input_scale", 1)
    if math.isclose(scale, 1.0507009873554805) and math.isclose(alpha, 1.6732632423543772):
        return "selu", [a["self"]], {}
    return ("elu", [a["self"]], {"alpha": float(alpha)}) if scale == input_scale == 1 else None


def _leaky_relu(a: Arguments, shapes: _Shapes) -> Any:
    return "leaky_relu", [a["self"]], {"negative_slope": float(a.get("negative_slope", 0.01))}


def _hardtanh(a: Arguments, shapes: _Shapes) -> Any:
    low, high = float(a.get("min_val", -1)), float(a.get("max_val", 1))
    return ("relu6", [a["self"]], {}) if (low, high) == (0, 6) else (
        "hardtanh", [a["self"]], {"min_val": low, "max_val": high}
    )  # fmt: skip


def _softplus(a: Arguments, shapes: _Shapes) -> Any:
    return ("softplus", [a["self"]], {}) if a.get("beta", 1) == 1 else None


def _gelu(a: Arguments, shapes: _Shapes) -> Any:
    return "gelu_tanh" if a.get("approximate") == "tanh" else "gelu", [a["self"]], {}


def _flip(a: Arguments, shapes: _Shapes) -> Any:
    return "flip", [a["self"]], {"dims": shapes.dims(a["self"], a["dims"])}


def _roll(a: Arguments, shapes: _Shapes) -> Any:
    if not a.get("dims"):
        return None
    rank = len(shapes[a["self"]])
    return "roll", [a["self"]], {"shifts": tuple(a["shifts"]), "dims": tuple([k % rank for k in a["dims"]])}


def _triangle(name: str) -> Conversion:
    return lambda a, shapes: (name, [a["self"]], {"diagonal": a.get("diagonal", 0)})


def _diagonal(a: Arguments, shapes: _Shapes) -> Any:
    rank = len(shapes[a["self"]])
    attrs = {"offset": a.get("offset", 0), "dim1": a.get("dim1", 0) % rank, "dim2": a.get("dim2", 1) % rank}
    return "diagonal", [a["self"]], attrs


def _extreme(name: str) -> Conversion:
    """Return the conversion of the maximum or minimum of all elements; along a dimension there are two results."""
    return lambda a, shapes: None if "dim" in a else _reduction(name)(a, shapes)


def _product_of_elements(a: Arguments, shapes: _Shapes) -> Any:
    return None if "dim" not in a else _along_one_dim("prod", keepdim=bool(a.get("keepdim", False)))(a, shapes)


def _vector_norm(a: Arguments, shapes: _Shapes) -> Any:
    return _reduction("norm", p=lambda a: float(a.get("ord", 2)))(a, shapes)


def _layer_norm(a: Arguments, shapes: _Shapes) -> Any:
    count = math.prod(a["normalized_shape"])
    rows = math.prod(shapes[a["input"]]) // max(count, 1)
    norm = Norm((rows, count), (1,), (1,), a["eps"])
    return "layer_norm", [a["input"], a.get("weight"), a.get("bias")], {"norm": norm}


def _convolution(a: Arguments, shapes: _Shapes) -> Any:
    if a["transposed"] or len(shapes[a["input"]]) != 4:
        return None
    size, pads = shapes[a["weight"]][2:], tuple([(pad, pad) for pad in a["padding"]])
    window = Window(size, tuple(a["stride"]), pads, tuple(a["dilation"]))
    return "conv2d", [a["input"], a["weight"], a.get("bias")], {"window": window, "groups": a["groups"]}


_UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp expm1 floor isfinite isinf isnan log log1p "
    "log2 logical_not mish neg reciprocal relu rsqrt sigmoid sign signbit silu sin sinh sqrt tan tanh trunc"
)
_BINARY = (
    "add atan2 bitwise_and bitwise_or bitwise_xor div eq floor_divide ge gt le logical_and logical_or logical_xor lt "
    "maximum minimum mul ne remainder sub"
)

COUNTERPARTS: dict[str, Conversion] = {
    **{name: _unary(name) for name in _UNARY.split()},
    **{name: _binary(name) for name in _BINARY.split()},
    **{name: _reduction(name) for name in ("all", "amax", "amin", "any", "logsumexp", "mean", "sum")},
    **{name: _reduction(name, correction=_correction) for name in ("std", "var")},
    **{name: _along_one_dim(name, reverse=False) for name in ("cumprod", "cumsum")},
    **{name: _product("matmul") for name in ("bmm", "matmul", "mm")},
    **dict.fromkeys(("_unsafe_view", "reshape", "squeeze", "unsqueeze", "view"), _reshape),
    **dict.fromkeys(("permute", "t", "transpose"), _permute),
    **{name: _gather(name) for name in ("gather", "index_select")},
    **{name: _triangle(name) for name in ("tril", "triu")},
    "_log_softmax": _along_one_dim("log_softmax"),
    "_softmax": _along_one_dim("softmax"),
    "_to_copy": _to_dtype,
    "cat": _concatenate,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "clone": _unary("contiguous"),
    "constant_pad_nd": _pad,
    "convolution": _convolution,
    "diagonal": _diagonal,
    "elu": _elu,
    "embedding": _embedding,
    "expand": _expand,
    "flip": _flip,
    "gelu": _gelu,
    "hardtanh": _hardtanh,
    "leaky_relu": _leaky_relu,
    "lerp": _lerp,
    "linalg_vector_norm": _vector_norm,
    "masked_fill": _masked_fill,
    "max": _extreme("amax"),
    "min": _extreme("amin"),
    "native_layer_norm": _layer_norm,
    "pow": _power,
    "prod": _product_of_elements,
    "roll": _roll,
    "rsub": _reversed_sub,
    "select": _select,
    "slice": _slice,
    "softplus": _softplus,
    "where": _where,
}
"""The conversion of a call by the name of its ATen operation; an in-place operation has that of the pure one."""


def _same_operands(name: str) -> FunctionConversion:
    return lambda step: Counterpart(mg.OPS[name], [TensorArgument(x.value.index) for x in step.operands], {})


def _cross_entropy(step: Any) -> Counterpart | None:
    final = step.final
    if final.name != "nll_loss_forward" or len(step.steps) > 2:
        return None
    arguments, shapes = bind_arguments(final.call), _Shapes(final.call, final.recording.values)
    logits, target = (TensorArgument(operand.value.index) for operand in step.operands[:2])
    if len(shapes[logits]) != 2:
        return None
    reduction = ("none", "mean", "sum")[arguments["reduction"]]
    attrs = {"ignore_index": arguments["ignore_index"], "reduction": reduction}
    return Counterpart(mg.OPS["cross_entropy"], [logits, target, arguments.get("weight")], attrs)


FunctionConversion = Callable[[Any], "Counterpart | None"]

FUNCTIONS: dict[str, FunctionConversion] = {
    "cross_entropy": _cross_entropy,
    **{name: _same_operands("linear") for name in ("linear",)},
    **{name: _same_operands("matmul") for name in ("__matmul__", "matmul")},
}
"""Functions of several ATen operations that are one operation of minigrad."""
