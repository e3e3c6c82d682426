"""Argument checks shared by the functions, with one helper and one error message per kind of mistake.

`op` is the name of the calling function, `argument` the name of the parameter.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.dtypes import DType, as_dtype, dtype_of_scalar, result_type
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.shapes import Shape, broadcast_shapes, normalize_dim, normalize_dims, numel
from minigrad.core.tensor import Tensor

__all__ = [
    "DATA_FORMATS",
    "Dims",
    "Ints",
    "at_least_1d",
    "cast_tensor",
    "check_broadcastable",
    "check_dims",
    "check_distinct_dims",
    "check_floating",
    "check_images",
    "check_nonempty_dim",
    "check_nonscalar_dim",
    "check_number",
    "check_option",
    "check_probability",
    "check_same_dtype",
    "check_single_dim",
    "check_tensor",
    "common_dtype",
    "flatten_all",
    "parse_int_args",
    "promote_operands",
    "reshape_to",
    "scale_operand",
    "split_tied_gradient",
    "to_channels_first",
    "to_data_format",
    "to_int_tuple",
]

Dims = int | Sequence[int] | None
Ints = int | Sequence[int]

# --- tensors and their dtypes ---


def check_tensor(x: Any, op: str, argument: str = "input") -> Tensor:
    """Return `x`. Raises DTypeError unless it is a tensor."""
    if isinstance(x, Tensor):
        return x
    raise DTypeError(f"{op}: {argument} must be a tensor, not {describe_type(x)}.\n  Convert it first: mg.tensor(x).")


def cast_tensor(x: Any, dtype: DType | None, op: str) -> Tensor:
    """Return the tensor `x`, converted to `dtype` unless `dtype` is None."""
    return check_tensor(x, op) if dtype is None else check_tensor(x, op).to(as_dtype(dtype))


def check_floating(x: Any, op: str, argument: str = "input") -> Tensor:
    """Return `x`. Raises DTypeError unless it is a floating-point tensor."""
    if check_tensor(x, op, argument).dtype.is_floating_point:
        return cast(Tensor, x)
    raise DTypeError(
        f"{op}: expected {argument} to be a floating-point tensor, but got {x.dtype.name}.\n"
        f"  Write {argument}.to(mg.float32)."
    )


def check_same_dtype(op: str, **operands: Any) -> None:
    """Raise DTypeError unless all operands that are not None are tensors of the same dtype."""
    tensors = {name: check_tensor(x, op, name) for name, x in operands.items() if x is not None}
    if len({x._array.dtype for x in tensors.values()}) == 1:
        return
    (first, expected), *other_dtypes = sorted(  # the message suggests converting the integer operand
        [(name, x.dtype) for name, x in tensors.items()], key=lambda one: not one[1].is_floating_point
    )
    for name, dtype in other_dtypes:
        if dtype is not expected:
            raise DTypeError(
                f"{op}: expected {name} to have the same dtype as {first} ({expected.name}), but got {dtype.name}.\n"
                f"  Write {name}.to(mg.{expected.name})."
            )


def common_dtype(*operands: Any) -> DType:
    """Return the dtype to which an operation promotes `operands`, tensors and Python scalars."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    scalars = [dtype_of_scalar(x) for x in operands if not isinstance(x, Tensor)]
    return result_type([x.dtype for x in tensors if x.ndim], [x.dtype for x in tensors if not x.ndim], scalars)


def promote_operands(op: str, **operands: Any) -> list[Tensor]:
    """Return the operands of an elementwise function as tensors. Python scalars are converted to the common dtype.

    Raises DTypeError if neither is a tensor.
    """
    tensors = [x for x in operands.values() if isinstance(x, Tensor)]
    reference = tensors[0] if tensors else check_tensor(next(iter(operands.values())), op)
    dtype = common_dtype(*operands.values()) if len(tensors) < len(operands) else reference.dtype
    return [
        x if isinstance(x, Tensor) else reference.new_full((), convert_scalar(op, x, dtype), dtype=dtype)
        for x in operands.values()
    ]


def scale_operand(scale: Any, other: Any, input: Any, op: str, argument: str = "alpha") -> Any:
    """Return ``scale * other``, multiplied in the result dtype of ``input + scale * other`` to avoid overflow.

    Raises DTypeError for integer operands if `scale` is a float, or an int that their dtype cannot represent.
    """
    check_number(scale, op, argument)
    if scale == 1:
        return other
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is other.dtype and other.dtype.kind == 2:
        return other * scale
    if isinstance(input, Tensor) or isinstance(other, Tensor):
        dtype = common_dtype(input, other)
        if not dtype.is_floating_point and isinstance(scale, float):
            raise DTypeError(
                f"{op}: for integer tensors, {argument} must not be a floating-point number, but got {scale}.\n"
                f"  Convert a tensor to float, or {argument} to int."
            )
        if not dtype.is_floating_point and isinstance(scale, int):
            scale = convert_scalar(f"{op}: {argument}", scale, dtype)
        other = other.to(dtype) if isinstance(other, Tensor) else other
    return other * scale


# --- shapes ---


def check_broadcastable(x: Tensor, shape: Shape, op: str, argument: str) -> None:
    """Raise ShapeError unless `x` broadcasts to `shape`."""
    if broadcast_shapes(x.shape, shape, op=op) != shape:
        raise ShapeError(f"{op}: {argument} of shape {x.shape} cannot be broadcast to {shape}.")


def check_nonempty_dim(x: Tensor, k: int, op: str) -> None:
    """Raise ShapeError if dimension `k` has size 0."""
    if x.ndim and not x.shape[k]:
        raise ShapeError(f"{op}: expected dimension {k} to have non-zero size, but got shape {x.shape}.")


def reshape_to(x: Tensor, shape: Shape) -> Tensor:
    """Reshape `x` to `shape`; return `x` itself if it has that shape."""
    return x if x.shape == shape else cast(Tensor, ops.reshape(x, shape=shape))


def at_least_1d(x: Tensor) -> Tensor:
    """Return `x`, reshaped to (1,) if it is 0-d."""
    return x if x.ndim else reshape_to(x, (1,))


def flatten_all(x: Tensor) -> Tensor:
    """Flatten `x` to one dimension."""
    return reshape_to(x, (numel(x.shape),))


def split_tied_gradient(x: Tensor, element: Tensor) -> Tensor:
    """Return `element` of the vector `x`, with its gradient divided evenly among all equal elements."""
    if not x.requires_grad:
        return element
    equal = ops.where(ops.isnan(element), ops.isnan(x), ops.eq(x, element))
    sign = ops.where(element == -inf, -1.0, 1.0)  # negates -inf, the value of masked elements
    return cast(Tensor, ops.amax(ops.where(equal, x * sign, -inf), dim=(0,), keepdim=False) * sign)


# --- dimensions ---


def check_single_dim(dim: Any, x: Tensor, op: str) -> int:
    """Return `dim` as a non-negative dimension of `x`. Raises DTypeError unless it is a single int."""
    if isinstance(dim, int) and not isinstance(dim, bool):
        return normalize_dim(dim, x.ndim, op)
    raise DTypeError(f"{op}: dim must be a single int, not {dim!r}.")


def check_dims(dim: Dims, x: Tensor, op: str) -> tuple[int, ...]:
    """Return the dimensions `dim`, or all if None, as non-negative ints in ascending order."""
    requested: Any = () if dim is None else (dim,) if isinstance(dim, int) else dim
    if not _is_int_sequence(requested):
        raise DTypeError(f"{op}: dim must be an int or a tuple of ints, not {dim!r}.")
    return normalize_dims(dim, x.ndim, op)


def check_nonscalar_dim(x: Tensor, dim: int, op: str) -> int:
    """Return `dim` as a non-negative dimension of `x`. Raises ShapeError if `x` is 0-d."""
    if not check_tensor(x, op).ndim:
        raise ShapeError(
            f"{op}: dimension specified as {dim}, but the tensor has no dimensions.\n  Write x.reshape(1)."
        )
    return normalize_dim(dim, x.ndim, op)


def check_distinct_dims(dim1: int, dim2: int, ndim: int, op: str) -> tuple[int, int]:
    """Return two dimensions as non-negative ints. Raises ShapeError unless they are different."""
    if ndim < 2:
        raise ShapeError(f"{op}: expected at least 2 dimensions, but got {ndim}.")
    first, second = normalize_dim(dim1, ndim, op), normalize_dim(dim2, ndim, op)
    if first == second:
        raise ShapeError(f"{op}: dimensions cannot be identical, but got dim1={dim1} and dim2={dim2}.")
    return first, second


# --- scalars and options ---


def _is_int_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(n, int) and not isinstance(n, bool) for n in value)


def to_int_tuple(value: Any, count: int, op: str, argument: str, minimum: int = 0) -> Shape:
    """Convert `value`, a single int or one int per dimension, to a tuple of `count` ints."""
    if value.__class__ is int and value >= minimum:
        return (value,) * count
    sizes = value if isinstance(value, Sequence) else (value,)
    if not _is_int_sequence(sizes):
        raise DTypeError(f"{op}: {argument} must be an int or a tuple of ints, not {value!r}.")
    if len(sizes) not in (1, count) or min(sizes) < minimum:
        raise ShapeError(
            f"{op}: expected {argument} to be one int{f' or {count} ints' if count > 1 else ''} of at least {minimum}, "
            f"but got {value!r}."
        )
    return tuple(sizes) * (count // len(sizes))


def parse_int_args(op: str, args: Any, keyword: Any = None) -> Shape:
    """Return a tuple of ints passed as separate arguments, as a single sequence, or by keyword."""
    is_single = len(args) == 1 and not hasattr(args[0], "__index__")
    items = keyword if keyword is not None else args[0] if is_single else args
    try:
        return tuple([operator.index(item) for item in items])
    except TypeError:
        raise DTypeError(f"{op}: expected ints, or one sequence of ints, but got {items!r}.") from None


def check_option(value: Any, options: Sequence[Any], op: str, argument: str) -> None:
    """Raise ArgumentError unless `value` is one of `options`."""
    if value not in options:
        raise ArgumentError(
            f"{op}: expected {argument} to be one of {', '.join(map(repr, options))}, but got {value!r}."
        )


def check_number(value: Any, op: str, argument: str, integer: bool = False) -> None:
    """Raise DTypeError unless `value`, such as a 0-d tensor, can be converted to a float, or to an int if `integer`."""
    if not hasattr(value, "__index__" if integer else "__float__"):
        raise DTypeError(
            f"{op}: {argument}={value!r} is {describe_type(value)}, not {'an int' if integer else 'a number'}."
        )


def check_probability(value: float, op: str, argument: str) -> None:
    """Raise ArgumentError unless `value` is between 0 and 1, and DTypeError unless it is a number."""
    check_number(value, op, argument)
    if not 0 <= value <= 1:
        raise ArgumentError(f"{op}: {argument} has to be between 0 and 1, but got {value}.")


# --- images ---


def check_images(x: Any, dims: Sequence[str], op: str, empty: str = "N") -> None:
    """Raise ShapeError unless `x` has dimensions `dims`, the first optional; only those in `empty` may have size 0."""
    sizes = zip(check_tensor(x, op).shape[::-1], dims[::-1], strict=False)
    if x.ndim not in (len(dims), len(dims) - 1) or any(not size and dim not in empty for size, dim in sizes):
        batched, unbatched = (f"({', '.join(names)})" for names in (dims, dims[1:]))
        raise ShapeError(
            f"{op}: expected input of shape {batched}, or {unbatched} unbatched, but got {x.shape}.\n"
            f"  Only {' and '.join(empty)} may be 0."
        )


DATA_FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC")}  # keys are numbers of spatial dimensions


def to_channels_first(x: Any, spatial_dims: int, data_format: str, op: str, empty: str = "N") -> Tensor:
    """Convert images `x`, with or without a batch dimension, from `data_format` to channels first."""
    check_option(data_format, DATA_FORMATS[spatial_dims], op, "data_format")
    check_images(x, data_format, op, empty)
    return cast(Tensor, x.movedim(-1, -1 - spatial_dims) if data_format.endswith("C") else x)


def to_data_format(y: Tensor, data_format: str) -> Tensor:
    """Convert channels-first images `y` to `data_format`."""
    return y.movedim(1 - len(data_format), -1) if data_format.endswith("C") else y
