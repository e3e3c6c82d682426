"""Named tuples returned by functions with several results, like `torch.return_types`."""

from __future__ import annotations

from typing import NamedTuple

from minigrad.core.tensor import Tensor

__all__ = ["Ends", "Extremes", "SignedLogarithm", "Sorted"]


class Ends(NamedTuple):
    """Result of `aminmax`."""

    min: Tensor
    max: Tensor


class SignedLogarithm(NamedTuple):
    """Result of `slogdet`: the determinant is ``sign * exp(logabsdet)``."""

    sign: Tensor
    logabsdet: Tensor


class Extremes(NamedTuple):
    """Result of `max` and `min` along a dimension: the values and their int64 indices."""

    values: Tensor
    indices: Tensor


class Sorted(NamedTuple):
    """Result of sorting and selecting functions: the values and their int64 indices along the dimension."""

    values: Tensor
    indices: Tensor
