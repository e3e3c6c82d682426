"""Fast path for `TensorDataset`: gather batches directly from tensors that stay on their device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.data.dataset import Subset, TensorDataset
from minigrad.functional import cat, index_select
from minigrad.functional.creation import tensor

__all__ = ["cut", "held", "resident"]


def cut(pieces: Iterator[Tensor], starts: range) -> Iterator[Tensor]:
    """Yield ``row[start : start + starts.step]`` for each of `starts`, where `row` arrives in pieces."""
    row, size = next(pieces, None), starts.step
    if row is None:
        return
    begin, end = 0, len(row)
    for start in starts:
        while start + size > end and (more := next(pieces, None)) is not None:
            row, begin = (cat([row[start - begin :], more]), start) if start < end else (more, end)
            end = begin + len(row)
        yield row[start - begin : start - begin + size]


def resident(dataset: Any, device: str | None) -> tuple[tuple[Tensor, ...], Tensor | None] | None:
    """Return a dataset's tensors on `device` and the row indices to use, or None for other kinds of dataset.

    Of a subset, only the selected rows are copied to another device.
    """
    rows = None
    while type(dataset) is Subset:
        own = np.asarray(dataset.indices, dtype=np.int64)
        rows = own if rows is None else own[rows]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or any(x.requires_grad for x in dataset.tensors):
        return None
    place = dataset.tensors[0].device
    if any(x.device != place for x in dataset.tensors):
        return None
    numbers = None if rows is None else tensor(rows, device=place)
    if device is None or device == place:
        return dataset.tensors, numbers
    if numbers is None:
        return dataset.to(device).tensors, None
    return tuple([index_select(x, 0, numbers).to(device) for x in dataset.tensors]), None


def held(dataset: Any) -> list[Any]:
    """Return the objects that determine a dataset's rows; if any is replaced, the rows have changed."""
    found = []
    while type(dataset) is Subset:
        found += [dataset.indices]
        dataset = dataset.dataset
    return [*found, getattr(dataset, "tensors", None)]
