"""Split a tensor into several views, with PyTorch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from minigrad.core.errors import ShapeError
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import dim_of_some, listed_ints, tensor_of
from minigrad.functional.views import between, select


@register
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along `dim`: each of that size, the last perhaps smaller, or of the sizes in a list.

    Unlike in PyTorch they can be written to. Raises ShapeError unless the sizes in a list make up the whole.
    """
    k = dim_of_some(tensor, dim, "split")
    total = tensor.shape[k]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and total):
            raise ShapeError(f"split: parts of size {size} do not make up the {total} places of dimension {k}.")
        sizes = [min(size, total - start) for start in range(0, total, size)] if total else [0]
    else:
        sizes = list(listed_ints("split", (split_size_or_sections,)))
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise ShapeError(f"split: parts of sizes {sizes} do not make up the {total} places of dimension {k}.")
    return _parts(tensor, k, list(accumulate(sizes, initial=0)))


@register_method("split")
def _split_by(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`functional.split`; PyTorch's method calls the sizes `split_size`."""
    return split(input, split_size, dim)


@register(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of parts along `dim`, of one size, the last perhaps smaller; see `split`."""
    k = dim_of_some(input, dim, "chunk")
    if chunks < 1:
        raise ShapeError(f"chunk: {chunks} chunks cannot be made; ask for 1 or more.")
    size = -(-input.shape[k] // chunks)
    return split(input, size, k) if size else split(input, [0] * chunks, k)


@register(method=True)
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of parts along `dim`: that many, the first perhaps larger by one; or cut before each of the indices.

    A 0-d tensor is a number of parts, a 1-d one a sequence of indices.

    >>> import minigrad as mg
    >>> [part.tolist() for part in mg.tensor_split(mg.tensor([1, 2, 3, 4]), mg.tensor([1, 3]))]
    [[1], [2, 3], [4]]
    """
    k = dim_of_some(input, dim, "tensor_split")
    total = input.shape[k]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ShapeError(f"tensor_split: {count} parts cannot be made; ask for 1 or more.")
        return _parts(input, k, [part * (total // count) + min(part, total % count) for part in range(count + 1)])
    cuts = [slice(cut).indices(total)[1] for cut in listed_ints("tensor_split", (indices_or_sections,))]
    return _parts(input, k, [0, *cuts, total])


@register(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A view of each place along `dim`, which is gone. Unlike in PyTorch they can be written to."""
    k = dim_of_some(input, dim, "unbind")
    return tuple([select(input, k, index) for index in range(input.shape[k])])


@register(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` by a list of sizes."""
    return split(input, list(split_sizes), dim)


@register(method=True)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the columns; of one dimension along that."""
    return _equal_parts("hsplit", input, indices_or_sections, 1 if tensor_of(input, "hsplit").ndim > 1 else 0, 1)


@register(method=True)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the rows. Raises ShapeError for fewer than two dimensions."""
    return _equal_parts("vsplit", input, indices_or_sections, 0, 2)


@register(method=True)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension. Raises ShapeError for fewer."""
    return _equal_parts("dsplit", input, indices_or_sections, 2, 3)


# --- what they share ---


def _parts(x: Tensor, k: int, cuts: Sequence[int]) -> tuple[Tensor, ...]:
    return tuple([between(x, k, start, stop) for start, stop in pairwise(cuts)])


def _equal_parts(name: str, x: Tensor, parts: int | Sequence[int], k: int, ndim: int) -> tuple[Tensor, ...]:
    if tensor_of(x, name).ndim < ndim or (isinstance(parts, int) and (parts < 1 or x.shape[k] % parts)):
        raise ShapeError(
            f"{name}: shape {x.shape} has no {parts!r} equal parts along dimension {k}.\n"
            "  tensor_split allows parts that are not equal."
        )
    return tensor_split(x, parts, k)
