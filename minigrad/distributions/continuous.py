"""Distributions with a density: whose draws hand gradients on to their parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.distributions.distribution import Distribution, check, together
from minigrad.functional.checks import floats_of
from minigrad.functional.creation import eye
from minigrad.functional.inverses import squares_of
from minigrad.linalg import solve_triangular
from minigrad.random import rand, randn

__all__ = ["MultivariateNormal", "Normal", "Uniform"]


class Normal(Distribution):
    """The normal distribution of mean `loc` and standard deviation `scale`, tensors or numbers.

    Raises ArgumentError for a `scale` that is not above 0.

    >>> import minigrad as mg
    >>> Normal(0.0, mg.tensor([1.0, 2.0])).log_prob(mg.tensor(0.0)).tolist()
    [-0.9189385175704956, -1.6120857000350952]
    """

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = together(loc, scale)
        check(self.scale > 0, validate_args, "Normal: scale is a standard deviation, and not all of it is above 0.")
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """`loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """`scale` squared."""
        return self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        """`scale`."""
        return self.scale

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """``loc + scale * e``, with e from N(0, 1). Kingma, Welling 2014, 2.4."""
        found: Tensor = self.loc + self.scale * self._drawn(randn, sample_shape, self.loc)
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """``-(value - loc)² / (2 scale²) - log(scale) - log(2π) / 2``."""
        apart = (value - self.loc) / self.scale
        found: Tensor = -0.5 * apart * apart - self.scale.log() - 0.5 * math.log(2 * math.pi)
        return found

    def entropy(self) -> Tensor:
        """``(1 + log(2π)) / 2 + log(scale)``."""
        return self.scale.log() + 0.5 * (1 + math.log(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw below `value`."""
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2.0))).erf())


class Uniform(Distribution):
    """All numbers from `low` to `high` alike. Raises ArgumentError unless `low` is below `high`."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = together(low, high)
        check(self.low < self.high, validate_args, "Uniform: not all of low is below high.")
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """Half-way."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """``(high - low)² / 12``."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """``low + (high - low) * u``, with u from 0 to 1."""
        found: Tensor = self.low + (self.high - self.low) * self._drawn(rand, sample_shape, self.low)
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """``-log(high - low)`` inside, -inf outside."""
        inside = (self.low <= value) & (value < self.high)
        found: Tensor = F.where(inside, -(self.high - self.low).log(), -math.inf)
        return found

    def entropy(self) -> Tensor:
        """``log(high - low)``."""
        return (self.high - self.low).log()


class MultivariateNormal(Distribution):
    """Normal vectors (…, d) of mean `loc`, and one of: covariance, its inverse, or its Cholesky factor, (…, d, d).

    Raises LinAlgError for a covariance that is not positive definite, of which the lower half is read, and
    ArgumentError for none or several of the three, or a factor whose diagonal is not above 0.

    >>> import minigrad as mg
    >>> one = MultivariateNormal(mg.zeros(2), covariance_matrix=mg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> one.scale_tril.tolist(), round(one.log_prob(mg.zeros(2)).item(), 4)
    ([[2.0, 0.0], [1.0, 2.0]], -3.2242)
    """

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name = "MultivariateNormal"
        given = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
        if len(given) != 1:
            raise ArgumentError(f"{name}: it takes one of covariance_matrix, precision_matrix and scale_tril.")
        matrix, size = squares_of(given[0], name, "the matrix"), floats_of(loc, name, "loc").shape[-1:]
        if matrix.shape[-1:] != size:
            raise ArgumentError(f"{name}: loc has shape {loc.shape}, which does not go with matrices {matrix.shape}.")
        if covariance_matrix is not None:
            matrix = F.cholesky(matrix)
        elif precision_matrix is not None:
            upside_down = F.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT  # its inverse is the factor wanted
            ones = eye(size[0], dtype=matrix.dtype, device=matrix.device)
            matrix = solve_triangular(upside_down, ones, upper=False)
        else:
            said = f"{name}: scale_tril has a diagonal above 0, as Cholesky's factors."
            check(F.diagonal(matrix, 0, -2, -1) > 0, validate_args, said)
        super().__init__(F.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2]), size)
        self.loc = loc.expand(*self.batch_shape, *size)
        self.scale_tril = matrix.expand(*self.batch_shape, *size, *size)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariances, (…, d, d)."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """Their inverse."""
        return F.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        """`loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance, (…, d)."""
        return (self.scale_tril**2).sum(-1)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """``loc + L @ e``, with e from N(0, 1)."""
        drawn = self._drawn(randn, sample_shape, self.loc)
        found: Tensor = self.loc + (self.scale_tril @ drawn[..., None])[..., 0]
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """``-|L⁻¹ (value - loc)|² / 2 - log(det L) - d log(2π) / 2``."""
        apart = solve_triangular(self.scale_tril, (value - self.loc)[..., None], upper=False)[..., 0]
        found: Tensor = -0.5 * (apart * apart).sum(-1) - self._log_det() - 0.5 * self._constant()
        return found

    def entropy(self) -> Tensor:
        """``d (1 + log(2π)) / 2 + log(det L)``."""
        found: Tensor = self._log_det() + 0.5 * (self.event_shape[0] + self._constant())
        return found

    def _constant(self) -> float:
        return self.event_shape[0] * math.log(2 * math.pi)

    def _log_det(self) -> Tensor:
        return F.diagonal(self.scale_tril, 0, -2, -1).log().sum(-1)
