"""Shapes as pure functions on tuples: broadcasting, dimensions counted from either end, and what is refused."""

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
    "dim_of",
    "dims_of",
    "numel",
    "overlapping",
    "reduced_shape",
    "shape_of",
    "size_of",
]

Shape = tuple[int, ...]


def numel(shape: Shape) -> int:
    """The number of elements."""
    return prod(shape)


@lru_cache(maxsize=4096)
def broadcast_shapes(*shapes: Shape, op: str = "broadcast") -> Shape:
    """The shape that operands of `shapes` have together: aligned at the right, where a size of 1 stretches.

    Raises ShapeError, which names `op`, the shapes and the first dimension at odds.

    >>> broadcast_shapes((5, 1, 3), (4, 3))
    (5, 4, 3)
    """
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for k, sizes in enumerate(zip(*padded, strict=True)):
        stretched = {size for size in sizes if size != 1}
        if len(stretched) > 1:
            asked = " and ".join(map(str, shapes))
            raise ShapeError(
                f"{op}: shapes {asked} do not broadcast: counted from the right, dimension {k - ndim} has "
                f"sizes {' and '.join(map(str, sizes))}.\n"
                "  Sizes must be equal, or one of them 1: unsqueeze(dim) adds a dimension of size 1."
            )
        result.append(stretched.pop() if stretched else 1)
    return tuple(result)


def check_equal_shapes(shapes: Mapping[str, Shape], op: str) -> None:
    """Raise ShapeError, which says how to expand them, unless operands of these shapes, by name, have the same one."""
    if len(set(shapes.values())) > 1:
        together = broadcast_shapes(*shapes.values(), op=op)
        short = [name for name, shape in shapes.items() if shape != together]
        raise ShapeError(
            f"{op}: in strict_shapes() nothing is broadcast, and shapes {' and '.join(map(str, shapes.values()))} "
            f"differ.\n  If you mean a result of shape {together}, write "
            f"{' and '.join(f'{name}.expand{together}' for name in short)} for "
            f"operand{'s' * (len(short) > 1)} {' and '.join(short)}."
        )


def dim_of(dim: int, ndim: int, op: str) -> int:
    """`dim`, counted from either end, as a number from 0. Raises ShapeError when there is no such one."""
    extent = max(ndim, 1)  # PyTorch lets 0-d tensors have a dimension 0
    if not -extent <= dim < extent:
        raise ShapeError(
            f"{op}: there is no dimension {dim}: the operand has {ndim}, numbered {-extent} to {extent - 1}.\n"
            "  Count from 0 at the left, or from -1 at the right."
        )
    return dim % extent


def dims_of(dim: int | Sequence[int] | None, ndim: int, op: str) -> tuple[int, ...]:
    """`dim`, None for all, as ascending numbers from 0. Raises ShapeError for one that is not there or there twice."""
    if dim is None:
        return tuple(range(ndim))
    dims = [dim_of(d, ndim, op) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{op}: dim={dim!r} names a dimension twice.")
    return tuple(sorted(dims)) if ndim else ()


def overlapping(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether two numbers of an array of `shape` may stand in one place: whether `strides` fold back on themselves.

    >>> overlapping((3, 2), (2, 1)), overlapping((3, 2), (1, 1)), overlapping((3, 2), (0, 1))
    (False, True, True)
    """
    reach = 0  # from the first number to the last one, over the dimensions so far
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True) if size > 1):
        if stride <= reach or not stride:
            return 0 not in shape
        reach += stride * (size - 1)
    return False


def reduced_shape(shape: Shape, dims: Sequence[int], keepdim: bool) -> Shape:
    """`shape` after a reduction over `dims`: they are gone, or of size 1 with `keepdim`."""
    if keepdim:
        return tuple(1 if k in dims else size for k, size in enumerate(shape))
    return tuple(size for k, size in enumerate(shape) if k not in dims)


def shape_of(sizes: Sequence[int], count: int, op: str) -> Shape:
    """`sizes`, in which one -1 stands for whatever makes `count` elements. Raises ShapeError when nothing does."""
    shape = tuple(int(size) for size in sizes)
    if shape.count(-1) > 1 or any(size < -1 for size in shape):
        raise ShapeError(f"{op}: {shape} is not a shape: sizes are 0 or more, and at most one may be -1.")
    if -1 in shape:
        rest = prod(size for size in shape if size != -1)
        if rest == 0 or count % rest:
            raise ShapeError(f"{op}: {count} elements do not fill {shape}: {count} is not a multiple of {rest}.")
        shape = tuple(count // rest if size == -1 else size for size in shape)
    if prod(shape) != count:
        raise ShapeError(f"{op}: {count} elements do not fill the shape {shape}, which has {prod(shape)}.")
    return shape


def size_of(sizes: tuple[Any, ...], op: str, size: Any = None) -> Shape:
    """The shape that is meant by `sizes`, ints or one sequence of ints, or by `size`, which is such a sequence.

    Raises DTypeError for what is no int, or where both are given, and ShapeError below 0.

    >>> size_of((2, 3), "zeros") == size_of(([2, 3],), "zeros") == size_of((), "zeros", size=(2, 3)) == (2, 3)
    True
    """
    given = size if size is not None else sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    try:
        shape = tuple([index(n) for n in given])
    except TypeError:
        raise DTypeError(f"{op}: {given!r} is not a shape: sizes are ints.\n  Write {op}((2, 3), …).") from None
    if size is not None and sizes:
        raise DTypeError(f"{op}: the size is given twice, as {sizes} and as size={size!r}.")
    if min(shape, default=0) < 0:
        raise ShapeError(f"{op}: {shape} is not a shape: sizes are 0 or more.")
    return shape
