"""What functions with several results return: tuples whose parts have names, as PyTorch's `return_types`."""

from __future__ import annotations

from typing import NamedTuple

from minigrad.core.tensor import Tensor

__all__ = ["Ends", "Extremes", "SignedLogarithm", "Sorted"]


class Ends(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


class SignedLogarithm(NamedTuple):
    """What `slogdet` returns: the determinant is ``sign * exp(logabsdet)``."""

    sign: Tensor
    logabsdet: Tensor


class Extremes(NamedTuple):
    """What `max` and `min` over a dimension return: the numbers, and where along the dimension they stand (int64)."""

    values: Tensor
    indices: Tensor


class Sorted(NamedTuple):
    """Numbers that were chosen or sorted, and where along the dimension they stood (int64)."""

    values: Tensor
    indices: Tensor
