"""Fast path for `TensorDataset`: gather batches directly from tensors that stay on their device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.data.dataset import Subset, TensorDataset
from minigrad.functional import cat, index_select
from minigrad.functional.creation import tensor

__all__ = ["rechunk", "resident_tensors", "row_sources"]


def rechunk(chunks: Iterator[Tensor], starts: range) -> Iterator[Tensor]:
    """Yield ``row[start : start + starts.step]`` for each of `starts`, where ``row`` concatenates the `chunks`."""
    buffer, size = next(chunks, None), starts.step
    if buffer is None:
        return
    begin, end = 0, len(buffer)
    for start in starts:
        while start + size > end and (next_chunk := next(chunks, None)) is not None:
            buffer, begin = (cat([buffer[start - begin :], next_chunk]), start) if start < end else (next_chunk, end)
            end = begin + len(buffer)
        yield buffer[start - begin : start - begin + size]


def resident_tensors(dataset: Any, device: str | None) -> tuple[tuple[Tensor, ...], Tensor | None] | None:
    """Return the tensors of a `TensorDataset` on `device` and the row indices to use; None for other datasets.

    For a subset, only the selected rows are copied to another device.
    """
    rows = None
    while type(dataset) is Subset:
        subset_rows = np.asarray(dataset.indices, dtype=np.int64)
        rows = subset_rows if rows is None else subset_rows[rows]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or any(x.requires_grad for x in dataset.tensors):
        return None
    source_device = dataset.tensors[0].device
    if any(x.device != source_device for x in dataset.tensors):
        return None
    row_indices = None if rows is None else tensor(rows, device=source_device)
    if device is None or device == source_device:
        return dataset.tensors, row_indices
    if row_indices is None:
        return dataset.to(device).tensors, None
    return tuple([index_select(x, 0, row_indices).to(device) for x in dataset.tensors]), None


def row_sources(dataset: Any) -> list[Any]:
    """Return the objects that determine the rows of a dataset. If one of them is replaced, the rows have changed."""
    sources = []
    while type(dataset) is Subset:
        sources += [dataset.indices]
        dataset = dataset.dataset
    return [*sources, getattr(dataset, "tensors", None)]
