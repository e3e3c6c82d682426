"""Argument checks shared by the functions: one helper and one error message for each kind of mistake.

`op` is the name of the calling function, `argument` the name of the parameter. Helpers named ``…_of`` return the
normalised argument.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import DType, as_dtype, of_number, result_type
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.core.shapes import Shape, broadcast_shapes, dim_of, dims_of, numel
from minigrad.core.tensor import Tensor

__all__ = [
    "FORMATS",
    "Dims",
    "Ints",
    "channels_first",
    "channels_given",
    "check_images",
    "check_number",
    "check_option",
    "check_same_type",
    "check_share",
    "check_some",
    "check_stretches",
    "common_dtype",
    "dim_of_some",
    "flat",
    "floats_of",
    "ints_of",
    "line",
    "listed_ints",
    "one_dim_of",
    "operands_of",
    "scaled",
    "shaped",
    "some_dims_of",
    "tensor_as",
    "tensor_of",
    "tied",
    "two_dims_of",
]

Dims = int | Sequence[int] | None
Ints = int | Sequence[int]

# --- tensors and their dtypes ---


def tensor_of(x: Any, op: str, argument: str = "input") -> Tensor:
    """Return `x`. Raises DTypeError unless it is a tensor."""
    if isinstance(x, Tensor):
        return x
    raise DTypeError(f"{op}: {argument} must be a tensor, not {a_kind(x)}.\n  Convert it first: mg.tensor(x).")


def tensor_as(x: Any, dtype: DType | None, op: str) -> Tensor:
    """Return the tensor `x`, converted to `dtype` unless it is None."""
    return tensor_of(x, op) if dtype is None else tensor_of(x, op).to(as_dtype(dtype))


def floats_of(x: Any, op: str, argument: str = "input") -> Tensor:
    """Return `x`. Raises DTypeError unless it is a floating-point tensor."""
    if tensor_of(x, op, argument).dtype.is_floating_point:
        return cast(Tensor, x)
    raise DTypeError(
        f"{op}: expected {argument} to be a floating-point tensor, but got {x.dtype.name}.\n"
        f"  Write {argument}.to(mg.float32)."
    )


def check_same_type(op: str, **operands: Any) -> None:
    """Raise DTypeError unless all operands that are not None are tensors of the same dtype."""
    given = {name: tensor_of(x, op, name).dtype for name, x in operands.items() if x is not None}
    if len(set(given.values())) > 1:  # suggest converting the integer operand
        given = dict(sorted(given.items(), key=lambda one: not one[1].is_floating_point))
    (first, wanted), *others = given.items()
    for name, dtype in others:
        if dtype is not wanted:
            raise DTypeError(
                f"{op}: expected {name} to have the same dtype as {first} ({wanted.name}), but got {dtype.name}.\n"
                f"  Write {name}.to(mg.{wanted.name})."
            )


def common_dtype(*operands: Any) -> DType:
    """Return the dtype to which an operation promotes `operands`, tensors and Python scalars."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    numbers = [of_number(x) for x in operands if not isinstance(x, Tensor)]
    return result_type([x.dtype for x in tensors if x.ndim], [x.dtype for x in tensors if not x.ndim], numbers)


def operands_of(op: str, **given: Any) -> list[Tensor]:
    """Return the two operands of an elementwise function; a Python scalar becomes a 0-d tensor of their common dtype.

    Raises DTypeError if neither is a tensor.
    """
    tensors = [x for x in given.values() if isinstance(x, Tensor)]
    like = tensors[0] if tensors else tensor_of(next(iter(given.values())), op)
    dtype = common_dtype(*given.values()) if len(tensors) < len(given) else like.dtype
    return [
        x if isinstance(x, Tensor) else like.new_full((), number(op, x, dtype), dtype=dtype) for x in given.values()
    ]


def scaled(factor: Any, other: Any, input: Any, op: str, argument: str = "alpha") -> Any:
    """Return ``factor * other``, multiplied in the result dtype of ``input + factor * other`` to avoid overflow.

    Raises DTypeError for a float `factor` of integer operands, and for an int that their dtype cannot represent.
    """
    check_number(factor, op, argument)
    if factor == 1:
        return other
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is other.dtype and other.dtype.kind == 2:
        return other * factor
    if isinstance(input, Tensor) or isinstance(other, Tensor):
        dtype = common_dtype(input, other)
        if not dtype.is_floating_point and isinstance(factor, float):
            raise DTypeError(
                f"{op}: for integer tensors, {argument} must not be a floating-point number, but got {factor}.\n"
                f"  Convert a tensor to float, or {argument} to int."
            )
        if not dtype.is_floating_point and isinstance(factor, int):
            factor = number(f"{op}: {argument}", factor, dtype)
        other = other.to(dtype) if isinstance(other, Tensor) else other
    return other * factor


# --- shapes ---


def check_stretches(x: Tensor, shape: Shape, op: str, argument: str) -> None:
    """Raise ShapeError unless `x` broadcasts to `shape`."""
    if broadcast_shapes(x.shape, shape, op=op) != shape:
        raise ShapeError(f"{op}: {argument} of shape {x.shape} cannot be broadcast to {shape}.")


def check_some(x: Tensor, k: int, op: str) -> None:
    """Raise ShapeError if dimension `k` has size 0."""
    if x.ndim and not x.shape[k]:
        raise ShapeError(f"{op}: expected dimension {k} to have non-zero size, but got shape {x.shape}.")


def shaped(x: Tensor, shape: Shape) -> Tensor:
    """Reshape `x` to `shape`; return `x` itself if it has that shape."""
    return x if x.shape == shape else cast(Tensor, ops.reshape(x, shape=shape))


def line(x: Tensor) -> Tensor:
    """Return `x`, as a vector of one element if it is 0-d."""
    return x if x.ndim else shaped(x, (1,))


def flat(x: Tensor) -> Tensor:
    """Flatten `x` to one dimension."""
    return shaped(x, (numel(x.shape),))


def tied(x: Tensor, found: Tensor) -> Tensor:
    """Return `found`, an element of the vector `x`; its gradient is split among all elements equal to it."""
    if not x.requires_grad:
        return found
    equal = ops.where(ops.isnan(found), ops.isnan(x), ops.eq(x, found))
    sign = ops.where(found == -inf, -1.0, 1.0)  # makes every unequal element smaller
    return cast(Tensor, ops.amax(ops.where(equal, x * sign, -inf), dim=(0,), keepdim=False) * sign)


# --- dimensions ---


def one_dim_of(dim: Any, x: Tensor, op: str) -> int:
    """Return the single dimension `dim`, counted from 0."""
    if isinstance(dim, int) and not isinstance(dim, bool):
        return dim_of(dim, x.ndim, op)
    raise DTypeError(f"{op}: dim must be a single int, not {dim!r}.")


def some_dims_of(dim: Dims, x: Tensor, op: str) -> tuple[int, ...]:
    """Return the dimensions `dim` (None: all), counted from 0, in ascending order."""
    given: Any = () if dim is None else (dim,) if isinstance(dim, int) else dim
    if not _are_ints(given):
        raise DTypeError(f"{op}: dim must be an int or a tuple of ints, not {dim!r}.")
    return dims_of(dim, x.ndim, op)


def dim_of_some(x: Tensor, dim: int, op: str) -> int:
    """Return dimension `dim` of `x`, counted from 0. Raises ShapeError if `x` is 0-d."""
    if not tensor_of(x, op).ndim:
        raise ShapeError(
            f"{op}: dimension specified as {dim}, but the tensor has no dimensions.\n  Write x.reshape(1)."
        )
    return dim_of(dim, x.ndim, op)


def two_dims_of(dim1: int, dim2: int, ndim: int, op: str) -> tuple[int, int]:
    """Return two different dimensions out of `ndim`, counted from 0."""
    if ndim < 2:
        raise ShapeError(f"{op}: expected at least 2 dimensions, but got {ndim}.")
    first, second = dim_of(dim1, ndim, op), dim_of(dim2, ndim, op)
    if first == second:
        raise ShapeError(f"{op}: dimensions cannot be identical, but got dim1={dim1} and dim2={dim2}.")
    return first, second


# --- scalars and options ---


def _are_ints(given: Any) -> bool:
    return isinstance(given, Sequence) and all(isinstance(n, int) and not isinstance(n, bool) for n in given)


def ints_of(given: Any, count: int, op: str, argument: str, least: int = 0) -> Shape:
    """Return `given`, one int or one for each of `count` dimensions, as a tuple of `count`."""
    if given.__class__ is int and given >= least:
        return (given,) * count
    sizes = given if isinstance(given, Sequence) else (given,)
    if not _are_ints(sizes):
        raise DTypeError(f"{op}: {argument} must be an int or a tuple of ints, not {given!r}.")
    if len(sizes) not in (1, count) or min(sizes) < least:
        raise ShapeError(
            f"{op}: expected {argument} to be one int{f' or {count} ints' if count > 1 else ''} of at least {least}, "
            f"but got {given!r}."
        )
    return tuple(sizes) * (count // len(sizes))


def listed_ints(op: str, given: Any, keyword: Any = None) -> Shape:
    """Return ints that were passed one by one, as one sequence, or by keyword."""
    alone = len(given) == 1 and not hasattr(given[0], "__index__")
    items = keyword if keyword is not None else given[0] if alone else given
    try:
        return tuple([operator.index(item) for item in items])
    except TypeError:
        raise DTypeError(f"{op}: expected ints, or one sequence of ints, but got {items!r}.") from None


def check_option(value: Any, known: Sequence[Any], op: str, argument: str) -> None:
    """Raise ArgumentError unless `value` is one of `known`."""
    if value not in known:
        raise ArgumentError(f"{op}: expected {argument} to be one of {', '.join(map(repr, known))}, but got {value!r}.")


def check_number(value: Any, op: str, argument: str, whole: bool = False) -> None:
    """Raise DTypeError unless `value` converts to a float, as a 0-d tensor or a Value does; with `whole`, to an int."""
    if not hasattr(value, "__index__" if whole else "__float__"):
        raise DTypeError(f"{op}: {argument}={value!r} is {a_kind(value)}, not {'an int' if whole else 'a number'}.")


def check_share(value: float, op: str, argument: str) -> None:
    """Raise ArgumentError unless `value` is between 0 and 1, DTypeError unless it is a number."""
    check_number(value, op, argument)
    if not 0 <= value <= 1:
        raise ArgumentError(f"{op}: {argument} has to be between 0 and 1, but got {value}.")


# --- images ---


def check_images(x: Any, dims: Sequence[str], op: str, empty: str = "N") -> None:
    """Raise ShapeError unless `x` has `dims`, the first optional; only the sizes of those in `empty` may be 0."""
    sizes = zip(tensor_of(x, op).shape[::-1], dims[::-1], strict=False)
    if x.ndim not in (len(dims), len(dims) - 1) or any(not size and dim not in empty for size, dim in sizes):
        batch, one = (f"({', '.join(names)})" for names in (dims, dims[1:]))
        raise ShapeError(
            f"{op}: expected input of shape {batch}, or {one} unbatched, but got {x.shape}.\n"
            f"  Only {' and '.join(empty)} may be 0."
        )


FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC")}  # by number of spatial dimensions


def channels_first(x: Any, space: int, data_format: str, op: str, empty: str = "N") -> Tensor:
    """Return the images `x`, batched or not, with `data_format` converted to channels first."""
    check_option(data_format, FORMATS[space], op, "data_format")
    check_images(x, data_format, op, empty)
    return cast(Tensor, x.movedim(-1, -1 - space) if data_format.endswith("C") else x)


def channels_given(y: Tensor, data_format: str) -> Tensor:
    """Convert channels-first images `y` to `data_format`."""
    return y.movedim(1 - len(data_format), -1) if data_format.endswith("C") else y
