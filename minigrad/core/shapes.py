"""Pure functions on shapes: broadcasting, normalisation of dimensions, and their error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

from minigrad.core.errors import DTypeError, ShapeError

__all__ = [
    "Shape",
    "broadcast_shapes",
    "check_equal_shapes",
    "has_overlap",
    "infer_shape",
    "normalize_dim",
    "normalize_dims",
    "numel",
    "parse_size",
    "reduced_shape",
]

Shape = tuple[int, ...]


def numel(shape: Shape) -> int:
    """Return the number of elements."""
    return prod(shape)


@lru_cache(maxsize=4096)
def broadcast_shapes(*shapes: Shape, op: str = "broadcast") -> Shape:
    """Return the shape to which `shapes` broadcast. They are aligned at the right, and sizes of 1 expand.

    Raises ShapeError, whose message contains `op`, the shapes and the first incompatible dimension.

    >>> broadcast_shapes((5, 1, 3), (4, 3))
    (5, 4, 3)
    """
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for k, sizes in enumerate(zip(*padded, strict=True)):
        non_singleton = {size for size in sizes if size != 1}
        if len(non_singleton) > 1:
            shapes_text = " and ".join(map(str, shapes))
            raise ShapeError(
                f"{op}: shapes {shapes_text} cannot be broadcast together: the sizes {' and '.join(map(str, sizes))} "
                f"differ at non-singleton dimension {k - ndim}.\n"
                "  Sizes must be equal, or one of them 1: unsqueeze(dim) adds a dimension of size 1."
            )
        result.append(non_singleton.pop() if non_singleton else 1)
    return tuple(result)


def check_equal_shapes(shapes: Mapping[str, Shape], op: str) -> None:
    """Raise ShapeError unless all operands have the same shape. The message suggests ``expand`` calls."""
    if len(set(shapes.values())) > 1:
        result_shape = broadcast_shapes(*shapes.values(), op=op)
        to_expand = [name for name, shape in shapes.items() if shape != result_shape]
        raise ShapeError(
            f"{op}: strict_shapes() disables broadcasting, but shapes "
            f"{' and '.join(map(str, shapes.values()))} differ.\n  For a result of shape {result_shape}, write "
            f"{' and '.join(f'{name}.expand{result_shape}' for name in to_expand)} for "
            f"operand{'s' * (len(to_expand) > 1)} {' and '.join(to_expand)}."
        )


def normalize_dim(dim: int, ndim: int, op: str) -> int:
    """Normalise a possibly negative `dim`. Raises ShapeError if it is out of range."""
    extent = max(ndim, 1)  # PyTorch accepts dimension 0 for 0-d tensors
    if not -extent <= dim < extent:
        raise ShapeError(
            f"{op}: dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got {dim}) for "
            f"a {ndim}-d tensor.\n  Count from 0 at the left, or from -1 at the right."
        )
    return dim % extent


def normalize_dims(dim: int | Sequence[int] | None, ndim: int, op: str) -> tuple[int, ...]:
    """Normalise `dim` to a sorted tuple; None means all dimensions. Raises ShapeError if out of range or repeated."""
    if dim is None:
        return tuple(range(ndim))
    dims = [normalize_dim(d, ndim, op) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{op}: a dim appears multiple times in the list of dims, dim={dim!r}.")
    return tuple(sorted(dims)) if ndim else ()


def has_overlap(shape: Shape, strides: Sequence[int]) -> bool:
    """Return whether two elements of an array with `shape` and `strides` may share a memory location.

    >>> has_overlap((3, 2), (2, 1)), has_overlap((3, 2), (1, 1)), has_overlap((3, 2), (0, 1))
    (False, True, True)
    """
    reach = 0  # largest offset over the dimensions processed so far
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True) if size > 1):
        if stride <= reach or not stride:
            return 0 not in shape
        reach += stride * (size - 1)
    return False


def reduced_shape(shape: Shape, dims: Sequence[int], keepdim: bool) -> Shape:
    """Return the shape after a reduction over `dims`. With `keepdim` they have size 1, else they are removed."""
    if keepdim:
        return tuple(1 if k in dims else size for k, size in enumerate(shape))
    return tuple(size for k, size in enumerate(shape) if k not in dims)


def infer_shape(sizes: Sequence[int], count: int, op: str) -> Shape:
    """Infer a size of -1 from the number of elements. Raises ShapeError if the shape does not match `count`."""
    shape = tuple(map(int, sizes))
    if shape.count(-1) > 1 or min(shape, default=0) < -1:
        raise ShapeError(f"{op}: invalid shape {shape}: only one dimension can be inferred, by -1, and none be less.")
    if -1 in shape:
        known_size = -prod(shape)
        if known_size == 0 or count % known_size:
            raise ShapeError(
                f"{op}: shape {shape} is invalid for input of size {count}, not divisible by {known_size}."
            )
        shape = tuple(count // known_size if size == -1 else size for size in shape)
    if prod(shape) != count:
        raise ShapeError(f"{op}: shape {shape}, of {prod(shape)} elements, is invalid for input of size {count}.")
    return shape


def parse_size(sizes: tuple[Any, ...], op: str, size: Any = None) -> Shape:
    """Return the shape passed as ints, as a single sequence of ints, or as the keyword `size`.

    Raises DTypeError for other types, or if both are given, and ShapeError for negative sizes.

    >>> parse_size((2, 3), "zeros") == parse_size(([2, 3],), "zeros") == parse_size((), "zeros", size=(2, 3)) == (2, 3)
    True
    """
    sizes_given = (
        size if size is not None else sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    )
    try:
        shape = tuple([index(n) for n in sizes_given])
    except TypeError:
        raise DTypeError(f"{op}: invalid size {sizes_given!r}: expected ints.\n  Write {op}((2, 3), …).") from None
    if size is not None and sizes:
        raise DTypeError(f"{op}: got multiple values for the size, {sizes} and size={size!r}.")
    if min(shape, default=0) < 0:
        raise ShapeError(f"{op}: invalid size {shape}: negative dimensions are not allowed.")
    return shape
