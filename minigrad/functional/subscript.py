"""Tensor indexing: ``x[key]`` and ``x[key] = value``, with basic and advanced keys."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import DTYPES, DType
from minigrad.core.errors import DTypeError, ShapeError, a_kind
from minigrad.core.grad_mode import no_grad
from minigrad.core.modes import modes
from minigrad.core.registry import register_method
from minigrad.core.shapes import Shape, broadcast_shapes, check_equal_shapes, numel
from minigrad.core.tensor import Tensor
from minigrad.functional import creation
from minigrad.functional.checks import check_same_type, shaped

__all__ = ["get", "in_range", "number", "put", "shorten"]

_BOOL, _INT32, _INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]
_ALL = slice(None)


@register_method("__getitem__")
def get(self: Tensor, key: Any) -> Tensor:
    """Return the elements at `key`: a view for ints, slices, None and `...`; a copy for lists, tensors and bools.

    Negative ints count from the end. Integer tensors are broadcast together; their broadcast dimensions replace the
    indexed ones, or come first if the indexed ones are not adjacent. A k-d bool mask is equivalent to the k index
    tensors of its `nonzero`, a 0-d integer tensor to an int. Raises ShapeError (an IndexError) for an index out of
    range or a mask of the wrong shape, and DTypeError for other keys.

    Beyond PyTorch, slices may have a negative step and indices may be int32; a nested list is one index, as in NumPy.

    >>> import minigrad as mg
    >>> x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x[1, ::2].tolist(), x[:, [2, 0]].tolist(), x[x > 3.0].tolist()
    ([4.0, 6.0], [[3.0, 1.0], [6.0, 4.0]], [4.0, 5.0, 6.0])
    """
    view, at = _split(self, key)
    if not at:
        return view
    view, dim, index = _located(view, at)
    return cast(Tensor, ops.index_select(_merged(view, dim, len(at)), index, dim=dim))


@register_method("__setitem__")
def put(self: Tensor, key: Any, value: Tensor | float) -> None:
    """Set the elements at `key` to `value`, a scalar or a tensor that broadcasts to ``self[key]``.

    With an advanced key, a `value` with dimensions must have the tensor's dtype, or DTypeError is raised; otherwise it
    is converted. Raises ShapeError if `value` cannot be broadcast, and GraphError for a leaf that requires grad.
    """
    single = not isinstance(value, Tensor) or not value.ndim
    if single and isinstance(key, Tensor) and key.dtype is _BOOL and key.shape == self.shape:
        self.copy_(ops.where(key, _filling(value, (), self.dtype), self))
        return
    view, at = _split(self, key)
    if not at:
        view.copy_(_filling(value, view.shape, self.dtype))
        return
    if not single:
        check_same_type("index", tensor=self, value=value)
    view, dim, index = _located(view, at)
    merged = _merged(view, dim, len(at))
    value = _filling(value, (*merged.shape[:dim], *index.shape, *merged.shape[dim + 1 :]), self.dtype)
    if merged is view:
        view._write(ops.index_copy, (view, index, value), {"dim": dim})
    else:
        view.copy_(shaped(ops.index_copy(merged, index, value, dim=dim), view.shape))


def _split(x: Tensor, key: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """Return the view given by the basic parts of `key`, and the index tensors, keyed by dimension of that view."""
    place = key if key.__class__ is tuple else (key,)
    if all(part.__class__ is int or part is None or part is ... or _is_range(part) for part in place):
        return _basic(x, place), {}
    parts = [_part(part, x) for part in place]
    used = sum([_consumed(part) for part in parts])
    if used > x.ndim:
        raise ShapeError(f"index: too many indices for tensor of dimension {x.ndim}: {used} for shape {x.shape}.")
    basic: list[Any] = []
    at: dict[int, Tensor] = {}
    seen = 0  # dimensions of x indexed so far
    for part in parts:
        dim = sum([not isinstance(item, int) for item in basic])
        items = [_ALL] * (x.ndim - used) if part is ... else [part]
        if isinstance(part, Tensor):
            found = _columns(part, x.shape[seen:], seen) if part.dtype is _BOOL else None
            at |= dict(enumerate(found or [in_range("index", part, x.shape[seen], seen, from_end=True)], dim))
            items = [_ALL] * _consumed(part) or [None]
        basic += items
        seen += sum([item is not None for item in items])
    return (x if all(item == _ALL for item in basic) else _basic(x, tuple(basic))), at


def _is_range(part: Any) -> bool:
    return part.__class__ is slice and not any(isinstance(end, Tensor) for end in (part.start, part.stop, part.step))


def _basic(x: Tensor, place: tuple[Any, ...]) -> Tensor:
    try:
        return cast(Tensor, ops.index(x, key=place))
    except (IndexError, ValueError) as error:
        shown = place[0] if len(place) == 1 else place
        said = str(error).removeprefix("an index is out of range: ")  # the prefix is not always true
        raise ShapeError(f"index: [{shown!r}] is invalid for shape {x.shape}: {said}.") from None
    except TypeError as error:
        raise DTypeError(f"index: {error}.") from None


def _part(part: Any, x: Tensor) -> Any:
    """Convert a part of a key of `x` to an int, a slice, None, `...`, or a tensor of int64 or bool."""
    if part is None or part is ... or part.__class__ is int:
        return part
    if isinstance(part, slice):
        return slice(*[int(end) if isinstance(end, Tensor) else end for end in (part.start, part.stop, part.step)])
    if not isinstance(part, Tensor):
        if not (isinstance(part, bool | int | list | tuple | range) or hasattr(part, "__array__")):
            raise DTypeError(
                f"index: {part!r} is {a_kind(part)}; only integers, slices, None, ..., lists and tensors are valid "
                "indices."
            )
        kind = _INT64 if isinstance(part, list | tuple) and not part else None
        part = creation.tensor(part, dtype=kind, device=x.device)
    if part.dtype is _BOOL:
        return part
    if part.dtype not in (_INT32, _INT64):
        advice = "For a mask, write x[mask.to(mg.bool)]" if part.dtype.kind == 1 else "Write x[i.to(mg.int64)]"
        raise DTypeError(
            f"index: tensors used as indices must be int64, int32 or bool, but got {part.dtype.name}.\n  {advice}."
        )
    return part.to(_INT64) if part.ndim else int(part)


def _consumed(part: Any) -> int:
    """Return the number of dimensions that a part of a key indexes."""
    if isinstance(part, Tensor) and part.dtype is _BOOL:
        return part.ndim
    return int(part is not None and part is not ...)


def _columns(mask: Tensor, shape: Shape, dim: int) -> list[Tensor]:
    """Convert a mask over the dimensions starting at `dim`, of `shape`, to one index tensor per dimension."""
    if mask.shape != shape[: mask.ndim]:
        raise ShapeError(
            f"index: the shape of the mask {mask.shape} at index {dim} does not match the shape of the indexed "
            f"dimensions {shape}.\n  A mask has one bool for each element, or for each row."
        )
    if not mask.ndim:
        return [mask.new_tensor([0] * int(mask), dtype=_INT64)]
    found = ops.nonzero(mask)
    return [found[:, k] for k in range(mask.ndim)]


def _located(view: Tensor, at: dict[int, Tensor]) -> tuple[Tensor, int, Tensor]:
    """Make the indexed dimensions of `view` adjacent; return it, the first of them, and one index into them merged."""
    broadcast_shapes(*[index.shape for index in at.values()], op="index")
    dims = tuple(at)
    first = dims[0]
    if dims[-1] - first >= len(dims):
        view, first = view.permute(*dims, *[k for k in range(view.ndim) if k not in at]), 0
    merged, *rest = at.values()
    for k, index in enumerate(rest):
        merged = merged * view.shape[first + 1 + k] + index
    return view, first, merged


def _merged(x: Tensor, dim: int, count: int) -> Tensor:
    return shaped(x, (*x.shape[:dim], prod(x.shape[dim : dim + count]), *x.shape[dim + count :]))


def _filling(value: Any, shape: Shape, dtype: DType) -> Any:
    """Convert `value` for a write to elements of `shape`: to a scalar, or a tensor of that shape."""
    if not isinstance(value, Tensor):
        return number("index", value, dtype)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    if not _broadcasts(value.shape, shape):
        raise ShapeError(f"index: value of shape {value.shape} cannot be broadcast to the indexed shape {shape}.")
    if modes.strict and value.ndim:
        check_equal_shapes({"value": value.shape, "x[key]": shape}, "index")
    return value.to(dtype) if value.shape == shape else value.to(dtype).expand(*shape)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))


# --- index checks ---


def in_range(name: str, index: Tensor, size: int, dim: int, from_end: bool = False) -> Tensor:
    """Check that `index` is in range, and return it with negative indices, if `from_end`, converted."""
    if not numel(index.shape):
        return index
    if modes.values_read:  # while tracing no element may be read, so the kernels check
        return cast(Tensor, ops.where(index < 0, index + size, index)) if from_end else index
    low, high = int(index.amin()), int(index.amax())
    if high >= size or low < (-size if from_end else 0):
        wrong, last = high if high >= size else low, f", or -1 to {-size}" if from_end else ""
        advice = f"Valid indices are 0 to {size - 1}{last}." if size else "The dimension is empty."
        raise ShapeError(f"{name}: index {wrong} is out of bounds for dimension {dim} with size {size}.\n  {advice}")
    return cast(Tensor, ops.where(index < 0, index + size, index)) if low < 0 else index


def shorten(weight: Tensor, at: Tensor, max_norm: float, norm_type: float) -> None:
    """Renormalise the rows of `weight` at indices `at` whose norm exceeds `max_norm`, in place."""
    from minigrad.functional.reduce import norm  # avoids a circular import

    with no_grad():
        at = at.reshape(-1)
        rows = ops.index_select(weight.detach(), at, dim=0)
        norms = norm(rows, norm_type, dim=1, keepdim=True)
        put(weight, at, ops.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows))
