"""Views: functions that return a tensor sharing its input's memory, with PyTorch's signatures.

Writes to a view modify its base, and its gradient flows there. A negative `dim` counts from the end. A `dim` or index
out of range and mismatched sizes raise ShapeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, overload

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register, register_method, register_property
from minigrad.core.shapes import Shape, broadcast_shapes, dim_of, dims_of, numel, overlapping, shape_of
from minigrad.core.tensor import Tensor
from minigrad.core.views import stride_of
from minigrad.functional.checks import (
    Dims,
    check_option,
    check_same_type,
    dim_of_some,
    listed_ints,
    tensor_of,
    two_dims_of,
)

__all__ = ["between"]  # for other modules; registered functions are public anyway

_ALL = (slice(None),)


# --- reshaping ---


@register(method=True)
def reshape(input: Tensor, *given: Any, shape: Sequence[int] | None = None) -> Tensor:
    """Return `input` with `shape`, in which one -1 is inferred: a view if the strides allow it, otherwise a copy.

    >>> import minigrad as mg
    >>> mg.reshape(mg.tensor([[1, 2], [3, 4], [5, 6]]), (2, -1)).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = tensor_of(input, "reshape")
    return _arranged(x, shape_of(listed_ints("reshape", given, shape), numel(x.shape), "reshape"))


@register_method("view")
def _view(input: Tensor, *shape: Any) -> Tensor:
    """Return a view with `shape`, in which one -1 is inferred.

    Raises ShapeError if the strides do not allow a view; `reshape` copies in that case.
    """
    wanted = shape_of(listed_ints("view", shape), numel(input.shape), "view")
    out = _arranged(input, wanted)
    if out._base is None:
        raise ShapeError(
            f"view: view size {wanted} is not compatible with input tensor's size {input.shape} and stride "
            f"{stride_of(input)}.\n  Write reshape(…), which copies if necessary."
        )
    return out


@register_method("view_as")
def _view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view with the shape of `other`."""
    return _view(input, other.shape)


@register_method("reshape_as")
def _reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of `other`."""
    return reshape(input, other.shape)


@register(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Reshape the dimensions `start_dim` to `end_dim` into one."""
    x = tensor_of(input, "flatten")
    first, last = dim_of(start_dim, x.ndim, "flatten"), dim_of(end_dim, x.ndim, "flatten")
    if first > last:
        raise ShapeError(f"flatten: start_dim cannot come after end_dim, but got {start_dim} and {end_dim}.")
    if x.ndim and first == last:
        return x
    return _arranged(x, (*x.shape[:first], numel(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@register(method=True)
def ravel(input: Tensor) -> Tensor:
    """Flatten to one dimension."""
    return flatten(input)


@register(method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return a view with dimension `dim` expanded to `sizes`, in which one -1 is inferred."""
    k = dim_of_some(input, dim, "unflatten")
    inner = shape_of(listed_ints("unflatten", (sizes,)), input.shape[k], "unflatten")
    return _arranged(input, (*input.shape[:k], *inner, *input.shape[k + 1 :]))


@register(method=True)
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """Return a view without the dimensions of size 1, or without those of them in `dim`."""
    x = tensor_of(input, "squeeze")
    gone = [k for k in dims_of(dim, x.ndim, "squeeze") if x.ndim and x.shape[k] == 1]
    return _arranged(x, tuple(n for k, n in enumerate(x.shape) if k not in gone))


@register(method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of size 1 at position `dim`."""
    x = tensor_of(input, "unsqueeze")
    k = dim_of(dim, x.ndim + 1, "unsqueeze")
    return _arranged(x, (*x.shape[:k], 1, *x.shape[k:]))


# --- reordering dimensions ---


@register(method=True)
def permute(input: Tensor, *given: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return a view with the dimensions permuted to the order `dims`."""
    x, asked = tensor_of(input, "permute"), listed_ints("permute", given, dims)
    order = tuple(dim_of(dim, x.ndim, "permute") for dim in asked)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute: dims must contain each of the {x.ndim} dimensions exactly once, but got {asked}.")
    return cast(Tensor, ops.permute(x, dims=order))


@register(method=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with dimensions `dim0` and `dim1` swapped."""
    x = tensor_of(input, "transpose")
    first, second = dim_of(dim0, x.ndim, "transpose"), dim_of(dim1, x.ndim, "transpose")
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = second, first
    return permute(x, order)


@register(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Alias of `transpose`."""
    return transpose(input, axis0, axis1)


@register(method=True)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Alias of `transpose`."""
    return transpose(input, dim0, dim1)


@register(method=True)
def t(input: Tensor) -> Tensor:
    """Return a transposed view of a matrix, or a view of a 0-d or 1-d tensor. Raises ShapeError for more dimensions."""
    if tensor_of(input, "t").ndim > 2:
        raise ShapeError(
            f"t: expects a tensor with <= 2 dimensions, but got shape {input.shape}.\n"
            "  Write x.mT, or x.transpose(dim0, dim1)."
        )
    return _reversed(input)


@register_property("T")
def _reversed(input: Tensor) -> Tensor:
    """A view with the dimensions reversed."""
    return permute(input, range(input.ndim)[::-1])


@register_property("mT")
def _matrix_transposed(input: Tensor) -> Tensor:
    """A view with the last two dimensions swapped: each matrix transposed. Raises ShapeError for a 1-d tensor."""
    if input.ndim == 1:
        raise ShapeError(f"mT: only supported on matrices or batches of matrices, but got shape {input.shape}.")
    return transpose(input, -2, -1) if input.ndim else input


@register(method=True)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view with the dimensions `source` moved to positions `destination`; the others keep their order."""
    x = tensor_of(input, "movedim")
    asked = [listed_ints("movedim", (dims,)) for dims in (source, destination)]
    from_, to = ([dim_of(dim, x.ndim, "movedim") for dim in dims] for dims in asked)
    if len(from_) != len(to) or len(set(from_)) < len(from_) or len(set(to)) < len(to):
        raise ShapeError(
            f"movedim: expected source and destination to have equal length and no repeated dim, but got {source!r} "
            f"and {destination!r}."
        )
    placed = dict(zip(to, from_, strict=True))
    others = iter([k for k in range(x.ndim) if k not in from_])
    return permute(x, [placed[k] if k in placed else next(others) for k in range(x.ndim)])


@register(method=True)
def moveaxis(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Alias of `movedim`."""
    return movedim(input, source, destination)


# --- expanding ---


@register_method("expand")
def _expand(input: Tensor, *size: Any) -> Tensor:
    """Return a view with dimensions of size 1 expanded to `size`; -1 keeps a size, and new dimensions are prepended."""
    asked = listed_ints("expand", size)
    new = len(asked) - input.ndim
    kept = asked[: max(new, 0)] + input.shape
    shape = tuple(
        [n if size == -1 and k >= new else size for k, (size, n) in enumerate(zip(asked, kept, strict=False))]
    )
    if new < 0 or min(shape, default=0) < 0 or broadcast_shapes(input.shape, shape, op="expand") != shape:
        raise ShapeError(
            f"expand: the expanded size {asked} must match the existing size {input.shape} at non-singleton "
            "dimensions; -1 keeps a size."
        )
    return cast(Tensor, ops.expand(input, shape=shape))


@register_method("expand_as")
def _expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of `other`."""
    return _expand(input, other.shape)


@register(method=True)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Broadcast to the shape `size`, as a view; see `expand`."""
    return _expand(tensor_of(input, "broadcast_to"), size)


@register
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast the tensors against each other; return views."""
    name = "broadcast_tensors"
    shape = broadcast_shapes(*[tensor_of(x, name, "one of tensors").shape for x in tensors], op=name)
    return tuple([_expand(x, shape) for x in tensors])


@register
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return coordinate grids of n 1-d `tensors`, as n-d views: the k-th one varies along dimension k.

    With ``indexing="xy"`` the first two dimensions are swapped. Raises ShapeError for tensors that are not 1-d or 0-d,
    and DTypeError if the dtypes differ.
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], Sequence) else tensors
    if not given or any(tensor_of(x, "meshgrid", "one of tensors").ndim > 1 for x in given):
        raise ShapeError("meshgrid: expected one or more 0-d or 1-d tensors.")
    check_same_type("meshgrid", **{f"tensor {k}": x for k, x in enumerate(given)})
    check_option(indexing, ("ij", "xy"), "meshgrid", "indexing")
    along = list(range(len(given)))
    if indexing == "xy":
        along[:2] = along[1::-1]
    shape = tuple([numel(given[k].shape) for k in along])
    lines = [reshape(x, [-1 if i == k else 1 for i in range(len(along))]) for x, k in zip(given, along, strict=True)]
    return tuple([_expand(x, shape) for x in lines])


# --- selecting ---


@register(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of the slice at `index` along `dim`, without that dimension; a negative one counts from the end."""
    k = dim_of_some(input, dim, "select")
    if not -input.shape[k] <= index < input.shape[k]:
        raise ShapeError(f"select: index {index} out of range for tensor of size {input.shape} at dimension {k}.")
    return cast(Tensor, ops.index(input, key=(*_ALL * k, int(index))))


@register(method=True)
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a view of `length` elements along `dim`, starting at `start`. A negative start counts from the end."""
    k = dim_of_some(input, dim, "narrow")
    size = input.shape[k]
    if isinstance(start, Tensor):
        if start.ndim or start.dtype.kind != 1:
            raise ShapeError(
                f"narrow: start must be a 0-d integral tensor, but got {start.dtype.name} of shape {start.shape}."
            )
        start = int(start)
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise ShapeError(f"narrow: start ({start}) + length ({length}) exceeds dimension {k} of shape {input.shape}.")
    return between(input, k, first, first + length)


@register(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals over `dim1` and `dim2`, `offset` above the main one, as the last dimension."""
    x = tensor_of(input, "diagonal")
    first, second = two_dims_of(dim1, dim2, x.ndim, "diagonal")
    return cast(Tensor, ops.diagonal(x, offset=offset, dim1=first, dim2=second))


@register_method("unfold")
def _unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` along `dimension`, one every `step`, in a new last dimension.

    Overlapping windows are read-only.
    """
    k, shape = dim_of(dimension, input.ndim, "unfold"), input.shape or (1,)
    if not 0 <= size <= shape[k] or step < 1:
        raise ShapeError(
            f"unfold: maximum size for tensor at dimension {k} is {shape[k]} and step must be > 0, but got "
            f"size={size} and step={step}."
        )
    if not input.ndim:  # a 0-d tensor has one window, of one element
        return between(_arranged(input, shape), 0, 0, size)
    return cast(Tensor, ops.unfold(input, dim=k, size=size, step=step))


@register(method=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view into the storage of `input` with shape `size`, the given `stride` and `storage_offset`.

    The offset, in elements, defaults to that of `input`. Gradients flow to the base of `input`; unlike in PyTorch, also
    for elements outside `input`. Raises ShapeError for negative strides and for elements outside the base.

    >>> import minigrad as mg
    >>> mg.as_strided(mg.tensor([1, 2, 3, 4]), (3, 2), (1, 1)).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    x = tensor_of(input, "as_strided")
    shape, strides = listed_ints("as_strided", (size,)), listed_ints("as_strided", (stride,))
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        raise ShapeError(
            f"as_strided: size and stride must have equal length and be non-negative, but got {shape} and {strides}."
        )
    root = x if x._base is None or (x.requires_grad and x.is_leaf) else x._base
    own = stride_of(root)
    if overlapping(root.shape, own):
        raise ShapeError(
            "as_strided: unsupported operation: more than one element of the tensor refers to a single memory "
            "location.\n  clone() it first."
        )
    offset = (_storage_offset(x) if storage_offset is None else storage_offset) - _storage_offset(root)
    steps = [by * (n - 1) for by, n in zip(own, root.shape, strict=True)]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    last = offset + sum(by * (n - 1) for by, n in zip(strides, shape, strict=True))
    if 0 not in shape and (0 in root.shape or not low <= offset <= last <= high):
        raise ShapeError(
            f"as_strided: size={shape}, stride={strides} and storage offset {offset} are out of bounds: they reach "
            f"element {last}, but shape {root.shape} spans elements {low} to {high}."
        )
    return cast(Tensor, ops.as_strided(root, own=own, size=shape, stride=strides, offset=offset))


# --- memory ---


@register_method("contiguous")
def _contiguous(input: Tensor) -> Tensor:
    """Return the tensor itself if it is contiguous in memory, otherwise a contiguous copy."""
    return input if _is_contiguous(input) else cast(Tensor, ops.contiguous(input))


@register_method("is_contiguous")
def _is_contiguous(input: Tensor) -> bool:
    """Return whether the tensor is contiguous in memory, in row-major order."""
    found: bool = input._array.flags.c_contiguous
    return found


@overload
def _stride(input: Tensor, dim: None = None) -> Shape: ...
@overload
def _stride(input: Tensor, dim: int) -> int: ...
@register_method("stride")
def _stride(input: Tensor, dim: int | None = None) -> Any:
    """Return the strides in elements, or the stride of `dim`. That of a dimension of size 1 is meaningless."""
    return stride_of(input) if dim is None else stride_of(input)[dim_of_some(input, dim, "stride")]


@register_method("storage_offset")
def _storage_offset(input: Tensor) -> int:
    """Return the offset of the tensor in its storage, in elements."""
    first = input.storage.array.__array_interface__["data"][0]
    offset: int = (input._array.__array_interface__["data"][0] - first) // input._array.itemsize
    return offset


# --- helpers ---


def _arranged(x: Tensor, shape: Shape) -> Tensor:
    """Reshape `x`; return a new tensor even if it already has that shape."""
    return cast(Tensor, ops.reshape(x, shape=shape))


def between(x: Tensor, k: int, start: int, stop: int) -> Tensor:
    return cast(Tensor, ops.index(x, key=(*_ALL * k, slice(start, stop))))
