"""What the functions ask of their arguments before they compute: each question in one place, a message a mistake.

`op` is the function that asks, `argument` the name in its signature. ``…_of`` returns what it was given in one form.
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

# --- tensors, and their types ---


def tensor_of(x: Any, op: str, argument: str = "input") -> Tensor:
    """`x`, which is to be a tensor."""
    if isinstance(x, Tensor):
        return x
    raise DTypeError(f"{op}: {argument} is {a_kind(x)}, not a tensor.\n  Make it one first: mg.tensor(x).")


def tensor_as(x: Any, dtype: DType | None, op: str) -> Tensor:
    """The tensor `x`, converted where a `dtype` is given."""
    return tensor_of(x, op) if dtype is None else tensor_of(x, op).to(as_dtype(dtype))


def floats_of(x: Any, op: str, argument: str = "input") -> Tensor:
    """`x`, which is to be a tensor of floats."""
    if tensor_of(x, op, argument).dtype.is_floating_point:
        return cast(Tensor, x)
    raise DTypeError(f"{op}: {argument} holds {x.dtype.name}, not fractions.\n  Write {argument}.to(mg.float32).")


def check_same_type(op: str, **operands: Any) -> None:
    """Raise DTypeError unless all operands but those that are None are tensors of one type."""
    given = {name: tensor_of(x, op, name).dtype for name, x in operands.items() if x is not None}
    if len(set(given.values())) > 1:  # what holds no fractions is what is to be converted
        given = dict(sorted(given.items(), key=lambda one: not one[1].is_floating_point))
    (first, wanted), *others = given.items()
    for name, dtype in others:
        if dtype is not wanted:
            raise DTypeError(
                f"{op}: {name} holds {dtype.name}, but {first} {wanted.name}: all must be of one type.\n"
                f"  Write {name}.to(mg.{wanted.name})."
            )


def common_dtype(*operands: Any) -> DType:
    """The dtype in which an operation computes with `operands`, tensors and Python numbers."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    numbers = [of_number(x) for x in operands if not isinstance(x, Tensor)]
    return result_type([x.dtype for x in tensors if x.ndim], [x.dtype for x in tensors if not x.ndim], numbers)


def operands_of(op: str, **given: Any) -> list[Tensor]:
    """Two operands of an elementwise function, of which one may be a number: then a 0-d tensor of their common dtype.

    Raises DTypeError where neither is a tensor.
    """
    tensors = [x for x in given.values() if isinstance(x, Tensor)]
    like = tensors[0] if tensors else tensor_of(next(iter(given.values())), op)
    dtype = common_dtype(*given.values()) if len(tensors) < len(given) else like.dtype
    return [
        x if isinstance(x, Tensor) else like.new_full((), number(op, x, dtype), dtype=dtype) for x in given.values()
    ]


def scaled(factor: Any, other: Any, input: Any, op: str, argument: str = "alpha") -> Any:
    """``factor * other``, multiplied in the dtype of ``input + factor * other``, where it can overflow no earlier.

    Raises DTypeError for a float where both are integers, and for an int that their dtype cannot hold.
    """
    check_number(factor, op, argument)
    if factor == 1:
        return other
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is other.dtype and other.dtype.kind == 2:
        return other * factor
    if isinstance(input, Tensor) or isinstance(other, Tensor):
        dtype = common_dtype(input, other)
        if not dtype.is_floating_point and isinstance(factor, float):
            raise DTypeError(f"{op}: {argument}={factor} is a float, and the operands are integers; convert one.")
        if not dtype.is_floating_point and isinstance(factor, int):
            factor = number(f"{op}: {argument}", factor, dtype)
        other = other.to(dtype) if isinstance(other, Tensor) else other
    return other * factor


# --- shapes ---


def check_stretches(x: Tensor, shape: Shape, op: str, argument: str) -> None:
    """Raise ShapeError unless `x` broadcasts to `shape`."""
    if broadcast_shapes(x.shape, shape, op=op) != shape:
        raise ShapeError(f"{op}: {argument} has shape {x.shape}, which does not stretch to {shape}.")


def check_some(x: Tensor, k: int, op: str) -> None:
    """Raise ShapeError where there are no numbers along dimension `k`."""
    if x.ndim and not x.shape[k]:
        raise ShapeError(f"{op}: dimension {k} of shape {x.shape} is empty: there is nothing to choose from.")


def shaped(x: Tensor, shape: Shape) -> Tensor:
    """`x` in `shape`, itself if it is so."""
    return x if x.shape == shape else cast(Tensor, ops.reshape(x, shape=shape))


def line(x: Tensor) -> Tensor:
    """`x`, as a line of one number where it has no dimensions."""
    return x if x.ndim else shaped(x, (1,))


def flat(x: Tensor) -> Tensor:
    """All numbers of `x` in one line."""
    return shaped(x, (numel(x.shape),))


def tied(x: Tensor, found: Tensor) -> Tensor:
    """`found`, an element of the line `x`, whose gradient all elements equal to it share."""
    if not x.requires_grad:
        return found
    equal = ops.where(ops.isnan(found), ops.isnan(x), ops.eq(x, found))
    sign = ops.where(found == -inf, -1.0, 1.0)  # so that what is not equal is always smaller
    return cast(Tensor, ops.amax(ops.where(equal, x * sign, -inf), dim=(0,), keepdim=False) * sign)


# --- dimensions ---


def one_dim_of(dim: Any, x: Tensor, op: str) -> int:
    """The one dimension that `dim` names, from 0."""
    if isinstance(dim, int) and not isinstance(dim, bool):
        return dim_of(dim, x.ndim, op)
    raise DTypeError(f"{op}: dim={dim!r} is not an int: it works along one dimension.")


def some_dims_of(dim: Dims, x: Tensor, op: str) -> tuple[int, ...]:
    """The dimensions that `dim` names, ascending from 0; None are all."""
    given: Any = () if dim is None else (dim,) if isinstance(dim, int) else dim
    if not _are_ints(given):
        raise DTypeError(f"{op}: dim={dim!r} is neither an int nor a tuple of ints.")
    return dims_of(dim, x.ndim, op)


def dim_of_some(x: Tensor, dim: int, op: str) -> int:
    """The one dimension that `dim` names, where a single number has none."""
    if not tensor_of(x, op).ndim:
        raise ShapeError(f"{op}: a single number has no dimensions.\n  reshape(1) makes it a line of one.")
    return dim_of(dim, x.ndim, op)


def two_dims_of(dim1: int, dim2: int, ndim: int, op: str) -> tuple[int, int]:
    """Two dimensions, of `ndim`, which are not the same."""
    if ndim < 2:
        raise ShapeError(f"{op}: it takes two dimensions or more, and here are {ndim}.")
    first, second = dim_of(dim1, ndim, op), dim_of(dim2, ndim, op)
    if first == second:
        raise ShapeError(f"{op}: dim1={dim1} and dim2={dim2} are the same dimension.")
    return first, second


# --- numbers and options ---


def _are_ints(given: Any) -> bool:
    return isinstance(given, Sequence) and all(isinstance(n, int) and not isinstance(n, bool) for n in given)


def ints_of(given: Any, count: int, op: str, argument: str, least: int = 0) -> Shape:
    """`given`, one int or one for each of `count` dimensions, as a tuple of `count`."""
    if given.__class__ is int and given >= least:
        return (given,) * count
    sizes = given if isinstance(given, Sequence) else (given,)
    if not _are_ints(sizes):
        raise DTypeError(f"{op}: {argument}={given!r} is neither an int nor a tuple of ints.")
    if len(sizes) not in (1, count) or min(sizes) < least:
        raise ShapeError(
            f"{op}: {argument}={given!r}: it is {least} or more, one int{f' or {count}' if count > 1 else ''}."
        )
    return tuple(sizes) * (count // len(sizes))


def listed_ints(op: str, given: Any, keyword: Any = None) -> Shape:
    """Ints that were given one by one, as one sequence, or by keyword."""
    alone = len(given) == 1 and not hasattr(given[0], "__index__")
    items = keyword if keyword is not None else given[0] if alone else given
    try:
        return tuple([operator.index(item) for item in items])
    except TypeError:
        raise DTypeError(f"{op}: it takes ints, or one sequence of them, not {items!r}.") from None


def check_option(value: Any, known: Sequence[Any], op: str, argument: str) -> None:
    """Raise ArgumentError unless `value` is one of those known."""
    if value not in known:
        raise ArgumentError(f"{op}: {argument}={value!r} is none of {', '.join(map(repr, known))}.")


def check_number(value: Any, op: str, argument: str, whole: bool = False) -> None:
    """Raise DTypeError unless `value` is a number, or one that a tensor or a Value holds; with `whole`, an int."""
    if not hasattr(value, "__index__" if whole else "__float__"):
        raise DTypeError(f"{op}: {argument}={value!r} is {a_kind(value)}, not {'an int' if whole else 'a number'}.")


def check_share(value: float, op: str, argument: str) -> None:
    """Raise DTypeError for no number, ArgumentError for what is no probability and no share of a whole."""
    check_number(value, op, argument)
    if not 0 <= value <= 1:
        raise ArgumentError(f"{op}: {argument}={value} is not from 0 to 1.")


# --- images ---


def check_images(x: Any, dims: Sequence[str], op: str, empty: str = "N") -> None:
    """Raise ShapeError unless `x` has `dims`, the first of which may be left out; only those in `empty` may be 0."""
    sizes = zip(tensor_of(x, op).shape[::-1], dims[::-1], strict=False)
    if x.ndim not in (len(dims), len(dims) - 1) or any(not size and dim not in empty for size, dim in sizes):
        batch, one = (f"({', '.join(names)})" for names in (dims, dims[1:]))
        raise ShapeError(
            f"{op}: input is {batch}, or {one} for one, and only {' and '.join(empty)} may be 0; given is {x.shape}."
        )


FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC")}  # by the dimensions of space


def channels_first(x: Any, space: int, data_format: str, op: str, empty: str = "N") -> Tensor:
    """Images `x`, with or without N, whose channels stand where `data_format` says, with channels before space."""
    check_option(data_format, FORMATS[space], op, "data_format")
    check_images(x, data_format, op, empty)
    return cast(Tensor, x.movedim(-1, -1 - space) if data_format.endswith("C") else x)


def channels_given(y: Tensor, data_format: str) -> Tensor:
    """Images `y`, channels first, as `data_format` has them."""
    return y.movedim(1 - len(data_format), -1) if data_format.endswith("C") else y
