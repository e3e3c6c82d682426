"""Named tuples returned by functions with several results, like `torch.return_types`."""

from __future__ import annotations

from typing import NamedTuple

from minigrad.core.tensor import Tensor

__all__ = ["AminmaxResult", "SlogdetResult", "SortResult", "ValuesIndices"]


class AminmaxResult(NamedTuple):
    """Result of `aminmax`."""

    min: Tensor
    max: Tensor


class SlogdetResult(NamedTuple):
    """Result of `slogdet`: the determinant is ``sign * exp(logabsdet)``."""

    sign: Tensor
    logabsdet: Tensor


class ValuesIndices(NamedTuple):
    """Result of `max` and `min` along a dimension: the values and their int64 indices."""

    values: Tensor
    indices: Tensor


class SortResult(NamedTuple):
    """Result of sorting and selecting functions: the values and their int64 indices along the dimension."""

    values: Tensor
    indices: Tensor
