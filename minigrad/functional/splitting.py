"""Functions that split a tensor into views, with PyTorch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from minigrad.core.errors import ShapeError
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_nonscalar_dim, check_tensor, parse_int_args
from minigrad.functional.views import select, slice_dim


@register
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split into views along `dim`, of a single size (the last may be smaller) or of a list of sizes.

    Unlike in PyTorch, the views can be modified in place. Raises ShapeError unless a list of sizes sums
    to the size of the dimension.
    """
    k = check_nonscalar_dim(tensor, dim, "split")
    total = tensor.shape[k]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and total):
            raise ShapeError(
                f"split: split_size must be positive, and can only be 0 if the dimension size is 0, but got {size} for "
                f"dimension {k} of size {total}."
            )
        sizes = [min(size, total - start) for start in range(0, total, size)] if total else [0]
    else:
        sizes = list(parse_int_args("split", (split_size_or_sections,)))
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise ShapeError(
                f"split: expected split sizes to sum exactly to {total} (the size of dimension {k}), but got {sizes}."
            )
    return _slice_parts(tensor, k, list(accumulate(sizes, initial=0)))


@register_method("split")
def _split_method(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split into views along `dim`; see `functional.split`, where `split_size` is named `split_size_or_sections`."""
    return split(input, split_size, dim)


@register(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` views of equal size along `dim`; the last may be smaller. See `split`."""
    k = check_nonscalar_dim(input, dim, "chunk")
    if chunks < 1:
        raise ShapeError(f"chunk: expected chunks to be greater than 0, but got {chunks}.")
    size = -(-input.shape[k] // chunks)
    return split(input, size, k) if size else split(input, [0] * chunks, k)


@register(method=True)
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into views along `dim`, into a number of parts (an int), or before each index in a sequence.

    Unless the size is divisible by the number of parts, the first parts are larger by one element. A 0-d tensor is
    interpreted as a number of parts, a 1-d tensor as a sequence of indices.

    >>> import minigrad as mg
    >>> [part.tolist() for part in mg.tensor_split(mg.tensor([1, 2, 3, 4]), mg.tensor([1, 3]))]
    [[1], [2, 3], [4]]
    """
    k = check_nonscalar_dim(input, dim, "tensor_split")
    total = input.shape[k]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ShapeError(f"tensor_split: number of sections must be larger than 0, but got {count}.")
        return _slice_parts(input, k, [part * (total // count) + min(part, total % count) for part in range(count + 1)])
    cuts = [slice(cut).indices(total)[1] for cut in parse_int_args("tensor_split", (indices_or_sections,))]
    return _slice_parts(input, k, [0, *cuts, total])


@register(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of the slices along `dim`, without this dimension.

    Unlike in PyTorch, they can be modified in place.
    """
    k = check_nonscalar_dim(input, dim, "unbind")
    return tuple([select(input, k, index) for index in range(input.shape[k])])


@register(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split into views of `split_sizes` along `dim`; see `split`."""
    return split(input, list(split_sizes), dim)


@register(method=True)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 1, or 0 if `input` is 1-d; see `tensor_split`."""
    return _equal_parts("hsplit", input, indices_or_sections, 1 if check_tensor(input, "hsplit").ndim > 1 else 0, 1)


@register(method=True)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 0; see `tensor_split`. Raises ShapeError for fewer than two dimensions."""
    return _equal_parts("vsplit", input, indices_or_sections, 0, 2)


@register(method=True)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 2; see `tensor_split`. Raises ShapeError for fewer than three dimensions."""
    return _equal_parts("dsplit", input, indices_or_sections, 2, 3)


# --- helpers ---


def _slice_parts(x: Tensor, k: int, cuts: Sequence[int]) -> tuple[Tensor, ...]:
    return tuple([slice_dim(x, k, start, stop) for start, stop in pairwise(cuts)])


def _equal_parts(name: str, x: Tensor, parts: int | Sequence[int], k: int, ndim: int) -> tuple[Tensor, ...]:
    if check_tensor(x, name).ndim < ndim or (isinstance(parts, int) and (parts < 1 or x.shape[k] % parts)):
        raise ShapeError(
            f"{name}: shape {x.shape} cannot be split into {parts!r} equal parts along dimension {k}.\n"
            "  tensor_split allows unequal parts."
        )
    return tensor_split(x, parts, k)
