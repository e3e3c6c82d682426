"""Views: functions that return a tensor sharing its input's memory, with PyTorch's signatures.

Writes to a view modify its base, and gradients of the view flow to the base. A negative `dim` counts from the end. A
`dim` or index out of range and mismatched sizes raise ShapeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, overload

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register, register_method, register_property
from minigrad.core.shapes import Shape, broadcast_shapes, has_overlap, infer_shape, normalize_dim, normalize_dims, numel
from minigrad.core.tensor import Tensor
from minigrad.core.views import element_strides
from minigrad.functional.checks import (
    Dims,
    check_distinct_dims,
    check_nonscalar_dim,
    check_option,
    check_same_dtype,
    check_tensor,
    parse_int_args,
)

__all__ = ["slice_dim"]  # used by other modules; registered functions are not listed

_ALL = (slice(None),)


# --- reshaping ---


@register(method=True)
def reshape(input: Tensor, *shape_args: Any, shape: Sequence[int] | None = None) -> Tensor:
    """Return `input` with `shape`, in which one -1 is inferred: a view if the strides allow it, otherwise a copy.

    >>> import minigrad as mg
    >>> mg.reshape(mg.tensor([[1, 2], [3, 4], [5, 6]]), (2, -1)).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = check_tensor(input, "reshape")
    return _reshape_view(x, infer_shape(parse_int_args("reshape", shape_args, shape), numel(x.shape), "reshape"))


@register_method("view")
def _view(input: Tensor, *shape: Any) -> Tensor:
    """Return a view with `shape`, in which one -1 is inferred.

    Raises ShapeError if the strides do not allow a view; `reshape` copies in that case.
    """
    target_shape = infer_shape(parse_int_args("view", shape), numel(input.shape), "view")
    out = _reshape_view(input, target_shape)
    if out._base is None:
        raise ShapeError(
            f"view: view size {target_shape} is not compatible with input tensor's size {input.shape} and stride "
            f"{element_strides(input)}.\n  Write reshape(…), which copies if necessary."
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
    """Flatten the dimensions `start_dim` to `end_dim` into one."""
    x = check_tensor(input, "flatten")
    first, last = normalize_dim(start_dim, x.ndim, "flatten"), normalize_dim(end_dim, x.ndim, "flatten")
    if first > last:
        raise ShapeError(f"flatten: start_dim cannot come after end_dim, but got {start_dim} and {end_dim}.")
    if x.ndim and first == last:
        return x
    return _reshape_view(x, (*x.shape[:first], numel(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@register(method=True)
def ravel(input: Tensor) -> Tensor:
    """Flatten to one dimension."""
    return flatten(input)


@register(method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return a view with dimension `dim` split into dimensions of `sizes`, in which one -1 is inferred."""
    k = check_nonscalar_dim(input, dim, "unflatten")
    inner = infer_shape(parse_int_args("unflatten", (sizes,)), input.shape[k], "unflatten")
    return _reshape_view(input, (*input.shape[:k], *inner, *input.shape[k + 1 :]))


@register(method=True)
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """Return a view without the dimensions of size 1; with `dim`, only those in `dim` are removed."""
    x = check_tensor(input, "squeeze")
    removed_dims = [k for k in normalize_dims(dim, x.ndim, "squeeze") if x.ndim and x.shape[k] == 1]
    return _reshape_view(x, tuple(n for k, n in enumerate(x.shape) if k not in removed_dims))


@register(method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of size 1 at position `dim`."""
    x = check_tensor(input, "unsqueeze")
    k = normalize_dim(dim, x.ndim + 1, "unsqueeze")
    return _reshape_view(x, (*x.shape[:k], 1, *x.shape[k:]))


# --- reordering dimensions ---


@register(method=True)
def permute(input: Tensor, *dim_args: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return a view with the dimensions permuted to the order `dims`."""
    x, dims = check_tensor(input, "permute"), parse_int_args("permute", dim_args, dims)
    order = tuple(normalize_dim(dim, x.ndim, "permute") for dim in dims)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute: expected each of {x.ndim} dims; duplicate dims are not allowed; got {dims}.")
    return cast(Tensor, ops.permute(x, dims=order))


@register(method=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with dimensions `dim0` and `dim1` swapped."""
    x = check_tensor(input, "transpose")
    first, second = normalize_dim(dim0, x.ndim, "transpose"), normalize_dim(dim1, x.ndim, "transpose")
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
    if check_tensor(input, "t").ndim > 2:
        raise ShapeError(
            f"t: expects a tensor with <= 2 dimensions, but got shape {input.shape}.\n"
            "  Write x.mT, or x.transpose(dim0, dim1)."
        )
    return _transpose_all(input)


@register_property("T")
def _transpose_all(input: Tensor) -> Tensor:
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
    x = check_tensor(input, "movedim")
    dim_lists = [parse_int_args("movedim", (dims,)) for dims in (source, destination)]
    source_dims, destination_dims = ([normalize_dim(dim, x.ndim, "movedim") for dim in dims] for dims in dim_lists)
    if not len(source_dims) == len(set(source_dims)) == len(destination_dims) == len(set(destination_dims)):
        raise ShapeError(
            f"movedim: expected source and destination to have equal length and no repeated dim, but got {source!r} "
            f"and {destination!r}."
        )
    source_of = dict(zip(destination_dims, source_dims, strict=True))
    remaining_dims = iter([k for k in range(x.ndim) if k not in source_dims])
    return permute(x, [source_of[k] if k in source_of else next(remaining_dims) for k in range(x.ndim)])


@register(method=True)
def moveaxis(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Alias of `movedim`."""
    return movedim(input, source, destination)


# --- expanding ---


@register_method("expand")
def _expand(input: Tensor, *size: Any) -> Tensor:
    """Return a view with dimensions of size 1 expanded to `size`; -1 keeps a size, and new dimensions are prepended."""
    target = parse_int_args("expand", size)
    new_dims = len(target) - input.ndim
    padded_shape = target[: max(new_dims, 0)] + input.shape
    pairs = enumerate(zip(target, padded_shape, strict=False))
    shape = tuple([n if size == -1 and k >= new_dims else size for k, (size, n) in pairs])
    if new_dims < 0 or min(shape, default=0) < 0 or broadcast_shapes(input.shape, shape, op="expand") != shape:
        raise ShapeError(
            f"expand: the expanded size {target} must match the existing size {input.shape} at non-singleton "
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
    return _expand(check_tensor(input, "broadcast_to"), size)


@register
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast the tensors against each other; return views."""
    name = "broadcast_tensors"
    shape = broadcast_shapes(*[check_tensor(x, name, "one of tensors").shape for x in tensors], op=name)
    return tuple([_expand(x, shape) for x in tensors])


@register
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return coordinate grids of n 1-d `tensors`, as n-d views: the k-th one varies along dimension k.

    With ``indexing="xy"`` the first two dimensions are swapped. Raises ShapeError for tensors that are not 1-d or 0-d,
    and DTypeError if the dtypes differ.
    """
    tensor_list = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], Sequence) else tensors
    if not tensor_list or any(check_tensor(x, "meshgrid", "one of tensors").ndim > 1 for x in tensor_list):
        raise ShapeError("meshgrid: expected one or more 0-d or 1-d tensors.")
    check_same_dtype("meshgrid", **{f"tensor {k}": x for k, x in enumerate(tensor_list)})
    check_option(indexing, ("ij", "xy"), "meshgrid", "indexing")
    dim_order = list(range(len(tensor_list)))
    if indexing == "xy":
        dim_order[:2] = dim_order[1::-1]
    shape = tuple([numel(tensor_list[k].shape) for k in dim_order])
    reshaped = [
        reshape(x, [-1 if i == k else 1 for i in range(len(dim_order))])
        for x, k in zip(tensor_list, dim_order, strict=True)
    ]
    return tuple([_expand(x, shape) for x in reshaped])


# --- selecting ---


@register(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of slice `index` along `dim`, without that dimension; a negative index counts from the end."""
    k = check_nonscalar_dim(input, dim, "select")
    if not -input.shape[k] <= index < input.shape[k]:
        raise ShapeError(f"select: index {index} out of range for tensor of size {input.shape} at dimension {k}.")
    return cast(Tensor, ops.index(input, key=(*_ALL * k, int(index))))


@register(method=True)
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a view of `length` elements along `dim`, starting at `start`. A negative start counts from the end."""
    k = check_nonscalar_dim(input, dim, "narrow")
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
    return slice_dim(input, k, first, first + length)


@register(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view whose last dimension is the diagonal of `dim1` and `dim2` that is `offset` above the main one."""
    x = check_tensor(input, "diagonal")
    first, second = check_distinct_dims(dim1, dim2, x.ndim, "diagonal")
    return cast(Tensor, ops.diagonal(x, offset=offset, dim1=first, dim2=second))


@register_method("unfold")
def _unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` along `dimension`, with stride `step`, in a new last dimension.

    Overlapping windows are read-only.
    """
    k, shape = normalize_dim(dimension, input.ndim, "unfold"), input.shape or (1,)
    if not 0 <= size <= shape[k] or step < 1:
        raise ShapeError(
            f"unfold: maximum size for tensor at dimension {k} is {shape[k]} and step must be > 0, but got "
            f"size={size} and step={step}."
        )
    if not input.ndim:  # a 0-d tensor has one window, of one element
        return slice_dim(_reshape_view(input, shape), 0, 0, size)
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
    x = check_tensor(input, "as_strided")
    shape, strides = parse_int_args("as_strided", (size,)), parse_int_args("as_strided", (stride,))
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        raise ShapeError(
            f"as_strided: size and stride must have equal length and be non-negative, but got {shape} and {strides}."
        )
    root = x if x._base is None or (x.requires_grad and x.is_leaf) else x._base
    root_stride = element_strides(root)
    if has_overlap(root.shape, root_stride):
        raise ShapeError(
            "as_strided: unsupported operation: more than one element of the tensor refers to a single memory "
            "location.\n  clone() it first."
        )
    offset = (_storage_offset(x) if storage_offset is None else storage_offset) - _storage_offset(root)
    extents = [by * (n - 1) for by, n in zip(root_stride, root.shape, strict=True)]
    min_offset, max_offset = sum(min(step, 0) for step in extents), sum(max(step, 0) for step in extents)
    last_offset = offset + sum(by * (n - 1) for by, n in zip(strides, shape, strict=True))
    if 0 not in shape and (0 in root.shape or not min_offset <= offset <= last_offset <= max_offset):
        raise ShapeError(
            f"as_strided: size={shape}, stride={strides} and storage offset {offset} are out of bounds: they reach "
            f"element {last_offset}, but shape {root.shape} spans elements {min_offset} to {max_offset}."
        )
    return cast(Tensor, ops.as_strided(root, own=root_stride, size=shape, stride=strides, offset=offset))


# --- memory ---


@register_method("contiguous")
def _contiguous(input: Tensor) -> Tensor:
    """Return the tensor itself if it is contiguous in memory, otherwise a contiguous copy."""
    return input if _is_contiguous(input) else cast(Tensor, ops.contiguous(input))


@register_method("is_contiguous")
def _is_contiguous(input: Tensor) -> bool:
    """Return whether the tensor is contiguous in memory, in row-major order."""
    is_contiguous: bool = input._array.flags.c_contiguous
    return is_contiguous


@overload
def _stride(input: Tensor, dim: None = None) -> Shape: ...
@overload
def _stride(input: Tensor, dim: int) -> int: ...
@register_method("stride")
def _stride(input: Tensor, dim: int | None = None) -> Any:
    """Return the strides in elements, or the stride of `dim`. The stride of a dimension of size 1 is arbitrary."""
    return element_strides(input) if dim is None else element_strides(input)[check_nonscalar_dim(input, dim, "stride")]


@register_method("storage_offset")
def _storage_offset(input: Tensor) -> int:
    """Return the offset of the tensor in its storage, in elements."""
    first = input.storage.array.__array_interface__["data"][0]
    offset: int = (input._array.__array_interface__["data"][0] - first) // input._array.itemsize
    return offset


# --- helpers ---


def _reshape_view(x: Tensor, shape: Shape) -> Tensor:
    """Reshape `x`; return a new tensor even if it already has that shape."""
    return cast(Tensor, ops.reshape(x, shape=shape))


def slice_dim(x: Tensor, k: int, start: int, stop: int) -> Tensor:
    return cast(Tensor, ops.index(x, key=(*_ALL * k, slice(start, stop))))
