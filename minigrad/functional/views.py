"""Views: a tensor's numbers arranged otherwise without being copied, with PyTorch's signatures.

A write into a view is one into what it was made from, and its gradient goes there. `dim` counts from either end.
ShapeError for a dimension or an index that is not there, and for sizes that do not fit.
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

__all__ = ["between"]  # for other topics; what is registered is public

_ALL = (slice(None),)


# --- the same numbers in another shape ---


@register(method=True)
def reshape(input: Tensor, *given: Any, shape: Sequence[int] | None = None) -> Tensor:
    """The numbers, in order, in `shape`, where one -1 is worked out: a view where the strides allow it, else a copy.

    >>> import minigrad as mg
    >>> mg.reshape(mg.tensor([[1, 2], [3, 4], [5, 6]]), (2, -1)).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = tensor_of(input, "reshape")
    return _arranged(x, shape_of(listed_ints("reshape", given, shape), numel(x.shape), "reshape"))


@register_method("view")
def _view(input: Tensor, *shape: Any) -> Tensor:
    """The numbers, in order, in `shape`, where one -1 is worked out; they share the memory.

    Raises ShapeError where the strides do not allow that: `reshape` copies there.
    """
    wanted = shape_of(listed_ints("view", shape), numel(input.shape), "view")
    out = _arranged(input, wanted)
    if out._base is None:
        raise ShapeError(
            f"view: shape {input.shape} with strides {stride_of(input)} cannot be seen as {wanted}: numbers that would "
            "be neighbours are not evenly spaced in memory.\n  Write reshape(…), which copies where it must."
        )
    return out


@register_method("view_as")
def _view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of `other`."""
    return _view(input, other.shape)


@register_method("reshape_as")
def _reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of `other`."""
    return reshape(input, other.shape)


@register(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`reshape` with the dimensions from `start_dim` to `end_dim` in one."""
    x = tensor_of(input, "flatten")
    first, last = dim_of(start_dim, x.ndim, "flatten"), dim_of(end_dim, x.ndim, "flatten")
    if first > last:
        raise ShapeError(f"flatten: start_dim={start_dim} comes after end_dim={end_dim}.")
    if x.ndim and first == last:
        return x
    return _arranged(x, (*x.shape[:first], numel(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@register(method=True)
def ravel(input: Tensor) -> Tensor:
    """`reshape` to one dimension."""
    return flatten(input)


@register(method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view in which dimension `dim` is several, of `sizes`, where one -1 is worked out."""
    k = dim_of_some(input, dim, "unflatten")
    inner = shape_of(listed_ints("unflatten", (sizes,)), input.shape[k], "unflatten")
    return _arranged(input, (*input.shape[:k], *inner, *input.shape[k + 1 :]))


@register(method=True)
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """A view without the dimensions of size 1, all or those in `dim`."""
    x = tensor_of(input, "squeeze")
    gone = [k for k in dims_of(dim, x.ndim, "squeeze") if x.ndim and x.shape[k] == 1]
    return _arranged(x, tuple(n for k, n in enumerate(x.shape) if k not in gone))


@register(method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1, number `dim` of the result."""
    x = tensor_of(input, "unsqueeze")
    k = dim_of(dim, x.ndim + 1, "unsqueeze")
    return _arranged(x, (*x.shape[:k], 1, *x.shape[k:]))


# --- dimensions in another order ---


@register(method=True)
def permute(input: Tensor, *given: Any, dims: Sequence[int] | None = None) -> Tensor:
    """A view with the dimensions in the order of `dims`."""
    x, asked = tensor_of(input, "permute"), listed_ints("permute", given, dims)
    order = tuple(dim_of(dim, x.ndim, "permute") for dim in asked)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute: {asked} does not name each of the {x.ndim} dimensions once.")
    return cast(Tensor, ops.permute(x, dims=order))


@register(method=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with dimensions `dim0` and `dim1` exchanged."""
    x = tensor_of(input, "transpose")
    first, second = dim_of(dim0, x.ndim, "transpose"), dim_of(dim1, x.ndim, "transpose")
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = second, first
    return permute(x, order)


@register(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose`."""
    return transpose(input, axis0, axis1)


@register(method=True)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose`."""
    return transpose(input, dim0, dim1)


@register(method=True)
def t(input: Tensor) -> Tensor:
    """A view of a matrix with rows as columns; of fewer dimensions, as it is. Raises ShapeError for more."""
    if tensor_of(input, "t").ndim > 2:
        raise ShapeError(f"t: it takes a matrix, not shape {input.shape}.\n  Write x.mT, or x.transpose(dim0, dim1).")
    return _reversed(input)


@register_property("T")
def _reversed(input: Tensor) -> Tensor:
    """A view with the dimensions in reverse."""
    return permute(input, range(input.ndim)[::-1])


@register_property("mT")
def _matrix_transposed(input: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged: each matrix transposed. Raises ShapeError for a vector."""
    if input.ndim == 1:
        raise ShapeError(f"mT: shape {input.shape} has no matrices: it takes two dimensions or more.")
    return transpose(input, -2, -1) if input.ndim else input


@register(method=True)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view in which the dimensions `source` are those numbered `destination`; the others keep their order."""
    x = tensor_of(input, "movedim")
    asked = [listed_ints("movedim", (dims,)) for dims in (source, destination)]
    from_, to = ([dim_of(dim, x.ndim, "movedim") for dim in dims] for dims in asked)
    if len(from_) != len(to) or len(set(from_)) < len(from_) or len(set(to)) < len(to):
        raise ShapeError(
            f"movedim: source={source!r} and destination={destination!r} must name as many dimensions, each once."
        )
    placed = dict(zip(to, from_, strict=True))
    others = iter([k for k in range(x.ndim) if k not in from_])
    return permute(x, [placed[k] if k in placed else next(others) for k in range(x.ndim)])


@register(method=True)
def moveaxis(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """`movedim`."""
    return movedim(input, source, destination)


# --- numbers repeated without memory ---


@register_method("expand")
def _expand(input: Tensor, *size: Any) -> Tensor:
    """A view in which dimensions of size 1 are repeated to `size`; -1 keeps one, and new ones come at the left."""
    asked = listed_ints("expand", size)
    new = len(asked) - input.ndim
    kept = asked[: max(new, 0)] + input.shape
    shape = tuple(
        [n if size == -1 and k >= new else size for k, (size, n) in enumerate(zip(asked, kept, strict=False))]
    )
    if new < 0 or min(shape, default=0) < 0 or broadcast_shapes(input.shape, shape, op="expand") != shape:
        raise ShapeError(
            f"expand: {input.shape} does not expand to {asked}: only sizes of 1 can grow, and -1 keeps one."
        )
    return cast(Tensor, ops.expand(input, shape=shape))


@register_method("expand_as")
def _expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return _expand(input, other.shape)


@register(method=True)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """A view in which dimensions of size 1 are repeated to `size`; -1 keeps one, and new ones come at the left."""
    return _expand(tensor_of(input, "broadcast_to"), size)


@register
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of all in the shape that they broadcast to together."""
    name = "broadcast_tensors"
    shape = broadcast_shapes(*[tensor_of(x, name, "one of tensors").shape for x in tensors], op=name)
    return tuple([_expand(x, shape) for x in tensors])


@register
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Of n lines of numbers, n views of all their lengths: each varies along the dimension of its place.

    With ``indexing="xy"`` the first varies along dimension 1 and the second along 0. Raises ShapeError for other than
    lines, or single numbers, and DTypeError where types differ.
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], Sequence) else tensors
    if not given or any(tensor_of(x, "meshgrid", "one of tensors").ndim > 1 for x in given):
        raise ShapeError("meshgrid: it takes one line of numbers or more, each of one dimension.")
    check_same_type("meshgrid", **{f"tensor {k}": x for k, x in enumerate(given)})
    check_option(indexing, ("ij", "xy"), "meshgrid", "indexing")
    along = list(range(len(given)))
    if indexing == "xy":
        along[:2] = along[1::-1]
    shape = tuple([numel(given[k].shape) for k in along])
    lines = [reshape(x, [-1 if i == k else 1 for i in range(len(along))]) for x, k in zip(given, along, strict=True)]
    return tuple([_expand(x, shape) for x in lines])


# --- some of the numbers ---


@register(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of what stands at `index`, from either end, along `dim`, which is gone."""
    k = dim_of_some(input, dim, "select")
    if not -input.shape[k] <= index < input.shape[k]:
        raise ShapeError(f"select: there is no index {index} along dimension {k} of shape {input.shape}.")
    return cast(Tensor, ops.index(input, key=(*_ALL * k, int(index))))


@register(method=True)
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """A view of `length` places along `dim`, from `start` on, which may count from the end."""
    k = dim_of_some(input, dim, "narrow")
    size = input.shape[k]
    if isinstance(start, Tensor):
        if start.ndim or start.dtype.kind != 1:
            raise ShapeError(f"narrow: start is a 0-d tensor of integers; this is {start.dtype.name} {start.shape}.")
        start = int(start)
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise ShapeError(
            f"narrow: {length} places from {start} on are not there along dimension {k} of shape {input.shape}."
        )
    return between(input, k, first, first + length)


@register(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonals of dimensions `dim1` and `dim2`, as a last dimension: `offset` above the main one."""
    x = tensor_of(input, "diagonal")
    first, second = two_dims_of(dim1, dim2, x.ndim, "diagonal")
    return cast(Tensor, ops.diagonal(x, offset=offset, dim1=first, dim2=second))


@register_method("unfold")
def _unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of `size` along `dimension`, one every `step`: they are in a new last dimension.

    Windows that overlap cannot be written to.
    """
    k, shape = dim_of(dimension, input.ndim, "unfold"), input.shape or (1,)
    if not 0 <= size <= shape[k] or step < 1:
        raise ShapeError(
            f"unfold: windows of size {size} every {step} do not fit along dimension {k} of shape {input.shape}: they "
            "need a size of at most that and a step of 1 or more."
        )
    if not input.ndim:  # its one window is the line of one number
        return between(_arranged(input, shape), 0, 0, size)
    return cast(Tensor, ops.unfold(input, dim=k, size=size, step=step))


@register(method=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of shape `size` into the memory of `input`, in which neighbours along a dimension stand `stride` apart.

    It begins at number `storage_offset` of the storage, by default where `input` does, and takes its gradient from the
    tensor that `input` is a view of; unlike in PyTorch, also for numbers that are not in `input`. Raises ShapeError for
    strides below 0, and for what lies outside that tensor.

    >>> import minigrad as mg
    >>> mg.as_strided(mg.tensor([1, 2, 3, 4]), (3, 2), (1, 1)).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    x = tensor_of(input, "as_strided")
    shape, strides = listed_ints("as_strided", (size,)), listed_ints("as_strided", (stride,))
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        raise ShapeError(f"as_strided: size={shape} and stride={strides} must be as many, and none below 0.")
    root = x if x._base is None or (x.requires_grad and x.is_leaf) else x._base
    own = stride_of(root)
    if overlapping(root.shape, own):
        raise ShapeError("as_strided: in this tensor one number stands in several places.\n  clone() it first.")
    offset = (_storage_offset(x) if storage_offset is None else storage_offset) - _storage_offset(root)
    steps = [by * (n - 1) for by, n in zip(own, root.shape, strict=True)]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    last = offset + sum(by * (n - 1) for by, n in zip(strides, shape, strict=True))
    if 0 not in shape and (0 in root.shape or not low <= offset <= last <= high):
        raise ShapeError(
            f"as_strided: size={shape}, stride={strides} from number {offset} on reach number {last}, but the memory "
            f"of shape {root.shape} goes from {low} to {high}."
        )
    return cast(Tensor, ops.as_strided(root, own=own, size=shape, stride=strides, offset=offset))


# --- memory ---


@register_method("contiguous")
def _contiguous(input: Tensor) -> Tensor:
    """The tensor itself if its numbers stand in memory in order, else a copy of which that is true."""
    return input if _is_contiguous(input) else cast(Tensor, ops.contiguous(input))


@register_method("is_contiguous")
def _is_contiguous(input: Tensor) -> bool:
    """Whether the numbers stand in memory in order, the last dimension's side by side."""
    found: bool = input._array.flags.c_contiguous
    return found


@overload
def _stride(input: Tensor, dim: None = None) -> Shape: ...
@overload
def _stride(input: Tensor, dim: int) -> int: ...
@register_method("stride")
def _stride(input: Tensor, dim: int | None = None) -> Any:
    """How many numbers apart neighbours stand in memory, along each dimension or `dim`. Of size 1 it means nothing."""
    return stride_of(input) if dim is None else stride_of(input)[dim_of_some(input, dim, "stride")]


@register_method("storage_offset")
def _storage_offset(input: Tensor) -> int:
    """Which number of its storage is the first of this tensor."""
    first = input.storage.array.__array_interface__["data"][0]
    offset: int = (input._array.__array_interface__["data"][0] - first) // input._array.itemsize
    return offset


# --- what they share ---


def _arranged(x: Tensor, shape: Shape) -> Tensor:
    """`x` in `shape`, as a tensor of its own also where it has that shape."""
    return cast(Tensor, ops.reshape(x, shape=shape))


def between(x: Tensor, k: int, start: int, stop: int) -> Tensor:
    return cast(Tensor, ops.index(x, key=(*_ALL * k, slice(start, stop))))
