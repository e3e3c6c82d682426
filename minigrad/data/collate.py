"""Collate functions: stack scalars, arrays and tensors into batches, inside nested tuples, lists and dicts.

The rules are those of PyTorch's `default_collate` and `default_convert`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.core.dtypes import float64
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional import stack
from minigrad.functional.creation import as_tensor, tensor

__all__ = ["default_collate", "default_convert", "map_nested"]


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate a list of samples into a batch, with the batch as the first dimension of each tensor.

    Tensors, arrays, floats (as float64), ints (int64) and bools are stacked; strings and bytes are left unchanged.
    Dicts are collated per key. Tuples and lists are collated per position into a list, or into a named tuple if the
    samples are named tuples. Raises ShapeError for samples of different shapes or lengths, DTypeError for unsupported
    types.

    >>> x, (y, name) = default_collate([((1, 2), (0.5, "a")), ((3, 4), (1.5, "b"))])
    >>> x, y, name
    ([tensor([1, 3]), tensor([2, 4])], tensor([0.5000, 1.5000], dtype=minigrad.float64), ('a', 'b'))
    """
    if not batch:
        raise ShapeError("default_collate: the batch is empty.")
    first = batch[0]
    sample_type = type(first)
    if isinstance(first, Tensor):
        _check_shapes([x.shape for x in batch])
        return stack(list(batch))
    if isinstance(first, np.ndarray | np.generic):
        arrays = [np.asarray(x) for x in batch]
        if arrays[0].dtype.kind not in "fiub":
            raise _unsupported_type(f"an array of {arrays[0].dtype}")
        _check_shapes([x.shape for x in arrays])
        return as_tensor(np.stack(arrays))
    if isinstance(first, bool | int):
        return tensor(list(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        for k, sample in enumerate(batch):
            if sample.keys() != first.keys():
                raise ShapeError(
                    f"default_collate: sample 0 of this batch has keys {list(first)}, but sample {k} has "
                    f"{list(sample)}.\n  Use the same keys in all samples, or pass a custom collate_fn to the loader."
                )
        return _rebuild_mapping(sample_type, {key: default_collate([x[key] for x in batch]) for key in first})
    if isinstance(first, Sequence):
        lengths = {len(x) for x in batch}
        if len(lengths) > 1:
            raise ShapeError(
                "default_collate: each element in list of batch should be of equal size, but got sizes "
                f"{', '.join(map(str, sorted(lengths)))}.\n  Pad them, or pass a custom collate_fn to the loader."
            )
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return sample_type(*columns) if hasattr(first, "_fields") else columns
    raise _unsupported_type(f"{sample_type.__module__}.{sample_type.__qualname__}")


def default_convert(data: Any) -> Any:
    """Convert NumPy arrays in nested `data` to tensors; tuples become lists, other objects are left unchanged."""

    def convert(x: Any) -> Any:
        if isinstance(x, np.ndarray | np.generic) and np.asarray(x).dtype.kind in "fiub":
            return as_tensor(np.asarray(x))
        return x

    return map_nested(convert, data, tuples=list)


def map_nested(function: Callable[[Any], Any], data: Any, tuples: type = tuple) -> Any:
    """Apply `function` to every leaf of nested dicts, lists and tuples. Tuples are converted to `tuples`."""
    if isinstance(data, Mapping):
        return _rebuild_mapping(type(data), {key: map_nested(function, x, tuples) for key, x in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[map_nested(function, x, tuples) for x in data])
    if isinstance(data, tuple):
        return tuples([map_nested(function, x, tuples) for x in data])
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | Tensor):
        return [map_nested(function, x, tuples) for x in data]
    return function(data)


def _rebuild_mapping(mapping_type: type, entries: dict[Any, Any]) -> Any:
    """Convert the dict `entries` to `mapping_type`, or return it unchanged if the type does not accept a dict."""
    try:
        return mapping_type(entries)
    except TypeError:
        return entries


def _check_shapes(shapes: list[tuple[int, ...]]) -> None:
    for k, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                f"default_collate: stack expects each tensor to be equal size, but got {shapes[0]} at entry 0 and "
                f"{shape} at entry {k}.\n  Crop or pad them, or pass a custom collate_fn to the loader."
            )


def _unsupported_type(found_type: str) -> DTypeError:
    return DTypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found_type}.\n"
        "  Pass a custom collate_fn to the loader."
    )
