"""Tensor indexing: ``x[key]`` and ``x[key] = value``, with basic and advanced keys."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.dtypes import DTYPES, DType
from minigrad.core.errors import DTypeError, ShapeError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.modes import modes
from minigrad.core.registry import register_method
from minigrad.core.shapes import Shape, broadcast_shapes, check_equal_shapes, numel
from minigrad.core.tensor import Tensor
from minigrad.functional import creation
from minigrad.functional.checks import check_same_dtype, reshape_to

__all__ = ["check_index_range", "convert_scalar", "getitem", "renorm_rows", "setitem"]

_BOOL, _INT32, _INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]
_ALL = slice(None)


@register_method("__getitem__")
def getitem(self: Tensor, key: Any) -> Tensor:
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
    view, index_tensors = _split_key(self, key)
    if not index_tensors:
        return view
    view, dim, index = _merge_indices(view, index_tensors)
    return cast(Tensor, ops.index_select(_merge_dims(view, dim, len(index_tensors)), index, dim=dim))


@register_method("__setitem__")
def setitem(self: Tensor, key: Any, value: Tensor | float) -> None:
    """Set the elements at `key` to `value`, a scalar or a tensor that broadcasts to ``self[key]``.

    With an advanced key, a `value` with dimensions must have the tensor's dtype, or DTypeError is raised; otherwise it
    is converted. Raises ShapeError if `value` cannot be broadcast, and GraphError for a leaf that requires grad.
    """
    is_scalar = not isinstance(value, Tensor) or not value.ndim
    if is_scalar and isinstance(key, Tensor) and key.dtype is _BOOL and key.shape == self.shape:
        self.copy_(ops.where(key, _prepare_value(value, (), self.dtype), self))
        return
    view, index_tensors = _split_key(self, key)
    if not index_tensors:
        view.copy_(_prepare_value(value, view.shape, self.dtype))
        return
    if not is_scalar:
        check_same_dtype("index", tensor=self, value=value)
    view, dim, index = _merge_indices(view, index_tensors)
    merged = _merge_dims(view, dim, len(index_tensors))
    value = _prepare_value(value, (*merged.shape[:dim], *index.shape, *merged.shape[dim + 1 :]), self.dtype)
    if merged is view:
        view._write_inplace(ops.index_copy, (view, index, value), {"dim": dim})
    else:
        view.copy_(reshape_to(ops.index_copy(merged, index, value, dim=dim), view.shape))


def _split_key(x: Tensor, key: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """Apply the basic indices in `key`. Return the resulting view, and a dict from its dimensions to index tensors."""
    key_parts = key if key.__class__ is tuple else (key,)
    if all(part.__class__ is int or part is None or part is ... or _is_plain_slice(part) for part in key_parts):
        return _index_basic(x, key_parts), {}
    parts = [_normalise_part(part, x) for part in key_parts]
    index_count = sum([_dims_indexed(part) for part in parts])
    if index_count > x.ndim:
        raise ShapeError(
            f"index: too many indices for tensor of dimension {x.ndim}: {index_count} for shape {x.shape}."
        )
    basic: list[Any] = []
    index_tensors: dict[int, Tensor] = {}
    dims_indexed = 0  # number of dimensions of x indexed so far
    for part in parts:
        dim = sum([not isinstance(item, int) for item in basic])
        items = [_ALL] * (x.ndim - index_count) if part is ... else [part]
        if isinstance(part, Tensor):
            mask_indices = _mask_to_indices(part, x.shape[dims_indexed:], dims_indexed) if part.dtype is _BOOL else None
            index_tensors |= dict(
                enumerate(
                    mask_indices
                    or [check_index_range("index", part, x.shape[dims_indexed], dims_indexed, from_end=True)],
                    dim,
                )
            )
            items = [_ALL] * _dims_indexed(part) or [None]
        basic += items
        dims_indexed += sum([item is not None for item in items])
    return (x if all(item == _ALL for item in basic) else _index_basic(x, tuple(basic))), index_tensors


def _is_plain_slice(part: Any) -> bool:
    return part.__class__ is slice and not any(
        isinstance(bound, Tensor) for bound in (part.start, part.stop, part.step)
    )


def _index_basic(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    try:
        return cast(Tensor, ops.index(x, key=key))
    except (IndexError, ValueError) as error:
        displayed_key = key[0] if len(key) == 1 else key
        reason = str(error).removeprefix("an index is out of range: ")  # the prefix may be wrong
        raise ShapeError(f"index: [{displayed_key!r}] is invalid for shape {x.shape}: {reason}.") from None
    except TypeError as error:
        raise DTypeError(f"index: {error}.") from None


def _normalise_part(part: Any, x: Tensor) -> Any:
    """Convert one item of a key of `x` to an int, a slice, None, `...`, or an int64 or bool tensor."""
    if part is None or part is ... or part.__class__ is int:
        return part
    if isinstance(part, slice):
        return slice(
            *[int(bound) if isinstance(bound, Tensor) else bound for bound in (part.start, part.stop, part.step)]
        )
    if not isinstance(part, Tensor):
        if not (isinstance(part, bool | int | list | tuple | range) or hasattr(part, "__array__")):
            raise DTypeError(
                f"index: {part!r} is {describe_type(part)}; only integers, slices, None, ..., lists and tensors are "
                "valid indices."
            )
        empty_dtype = _INT64 if isinstance(part, list | tuple) and not part else None
        part = creation.tensor(part, dtype=empty_dtype, device=x.device)
    if part.dtype is _BOOL:
        return part
    if part.dtype not in (_INT32, _INT64):
        advice = "For a mask, write x[mask.to(mg.bool)]" if part.dtype.kind == 1 else "Write x[i.to(mg.int64)]"
        raise DTypeError(
            f"index: tensors used as indices must be int64, int32 or bool, but got {part.dtype.name}.\n  {advice}."
        )
    return part.to(_INT64) if part.ndim else int(part)


def _dims_indexed(part: Any) -> int:
    """Return the number of dimensions indexed by one item of a key."""
    if isinstance(part, Tensor) and part.dtype is _BOOL:
        return part.ndim
    return int(part is not None and part is not ...)


def _mask_to_indices(mask: Tensor, shape: Shape, dim: int) -> list[Tensor]:
    """Convert a mask to one index tensor per masked dimension. `shape` contains the sizes from dimension `dim` on."""
    if mask.shape != shape[: mask.ndim]:
        raise ShapeError(
            f"index: the shape of the mask {mask.shape} at index {dim} does not match the shape of the indexed "
            f"dimensions {shape}.\n  A mask has one bool for each element, or for each row."
        )
    if not mask.ndim:
        return [mask.new_tensor([0] * int(mask), dtype=_INT64)]
    coordinates = ops.nonzero(mask)
    return [coordinates[:, k] for k in range(mask.ndim)]


def _merge_indices(view: Tensor, index_tensors: dict[int, Tensor]) -> tuple[Tensor, int, Tensor]:
    """Move the indexed dimensions of `view` next to each other.

    Return the view, the first of these dimensions, and a single index into their flattened elements.
    """
    broadcast_shapes(*[index.shape for index in index_tensors.values()], op="index")
    dims = tuple(index_tensors)
    first = dims[0]
    if dims[-1] - first >= len(dims):
        view, first = view.permute(*dims, *[k for k in range(view.ndim) if k not in index_tensors]), 0
    merged, *other_indices = index_tensors.values()
    for k, index in enumerate(other_indices):
        merged = merged * view.shape[first + 1 + k] + index
    return view, first, merged


def _merge_dims(x: Tensor, dim: int, count: int) -> Tensor:
    return reshape_to(x, (*x.shape[:dim], prod(x.shape[dim : dim + count]), *x.shape[dim + count :]))


def _prepare_value(value: Any, shape: Shape, dtype: DType) -> Any:
    """Convert `value`, which is assigned to indexed elements, to a scalar or to a tensor of their shape `shape`."""
    if not isinstance(value, Tensor):
        return convert_scalar("index", value, dtype)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    if not _can_broadcast(value.shape, shape):
        raise ShapeError(f"index: value of shape {value.shape} cannot be broadcast to the indexed shape {shape}.")
    if modes.strict and value.ndim:
        check_equal_shapes({"value": value.shape, "x[key]": shape}, "index")
    return value.to(dtype) if value.shape == shape else value.to(dtype).expand(*shape)


def _can_broadcast(shape: Shape, target: Shape) -> bool:
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape[::-1], target[::-1], strict=False))


# --- index checks ---


def check_index_range(name: str, index: Tensor, size: int, dim: int, from_end: bool = False) -> Tensor:
    """Return `index`, or raise ShapeError if it is out of range. If `from_end`, negative indices count from the end."""
    if not numel(index.shape):
        return index
    if modes.values_read:  # elements cannot be read while tracing, so the kernels check them
        return cast(Tensor, ops.where(index < 0, index + size, index)) if from_end else index
    low, high = int(index.amin()), int(index.amax())
    if high >= size or low < (-size if from_end else 0):
        bad_index, negative_range = high if high >= size else low, f", or -1 to {-size}" if from_end else ""
        advice = f"Valid indices are 0 to {size - 1}{negative_range}." if size else "The dimension is empty."
        raise ShapeError(
            f"{name}: index {bad_index} is out of bounds for dimension {dim} with size {size}.\n  {advice}"
        )
    return cast(Tensor, ops.where(index < 0, index + size, index)) if low < 0 else index


def renorm_rows(weight: Tensor, rows_index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` at `rows_index` in place, so that their norm does not exceed `max_norm`."""
    from minigrad.functional.reduce import norm  # avoids a circular import

    with no_grad():
        rows_index = rows_index.reshape(-1)
        rows = ops.index_select(weight.detach(), rows_index, dim=0)
        norms = norm(rows, norm_type, dim=1, keepdim=True)
        setitem(weight, rows_index, ops.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows))
