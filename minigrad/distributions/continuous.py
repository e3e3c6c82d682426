"""Continuous distributions, with reparameterised samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.distributions.distribution import Distribution, broadcast_all, check_constraint
from minigrad.functional.checks import check_floating
from minigrad.functional.creation import eye
from minigrad.functional.inverses import check_square
from minigrad.linalg import solve_triangular
from minigrad.random import rand, randn

__all__ = ["MultivariateNormal", "Normal", "Uniform"]


class Normal(Distribution):
    """Normal (Gaussian) distribution with mean `loc` and standard deviation `scale`, tensors or Python scalars.

    Raises ArgumentError unless `scale` is positive.

    >>> import minigrad as mg
    >>> Normal(0.0, mg.tensor([1.0, 2.0])).log_prob(mg.tensor(0.0)).tolist()
    [-0.9189385175704956, -1.6120857000350952]
    """

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        check_constraint(
            self.scale > 0,
            validate_args,
            "Normal: expected parameter scale to satisfy the constraint scale > 0, but found invalid values.",
        )
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean, `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The variance, ``scale²``."""
        return self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, `scale`."""
        return self.scale

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Return ``loc + scale * e``, with e drawn from N(0, 1). Kingma, Welling 2014, 2.4."""
        sample: Tensor = self.loc + self.scale * self._draw(randn, sample_shape, self.loc)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ``-(value - loc)² / (2 scale²) - log(scale) - log(2π) / 2``."""
        z = (value - self.loc) / self.scale
        log_density: Tensor = -0.5 * z * z - self.scale.log() - 0.5 * math.log(2 * math.pi)
        return log_density

    def entropy(self) -> Tensor:
        """Return ``(1 + log(2π)) / 2 + log(scale)``."""
        return self.scale.log() + 0.5 * (1 + math.log(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function at `value`."""
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2.0))).erf())


class Uniform(Distribution):
    """Uniform distribution on [low, high). Raises ArgumentError unless ``low < high``."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        check_constraint(self.low < self.high, validate_args, "Uniform is not defined when low >= high.")
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """The mean, ``(low + high) / 2``."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance, ``(high - low)² / 12``."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Return ``low + (high - low) * u``, with u drawn uniformly from [0, 1)."""
        sample: Tensor = self.low + (self.high - self.low) * self._draw(rand, sample_shape, self.low)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ``-log(high - low)`` in [low, high), and -inf outside."""
        inside = (self.low <= value) & (value < self.high)
        log_density: Tensor = F.where(inside, -(self.high - self.low).log(), -math.inf)
        return log_density

    def entropy(self) -> Tensor:
        """Return ``log(high - low)``."""
        return (self.high - self.low).log()


class MultivariateNormal(Distribution):
    """Multivariate normal distribution with mean `loc`, (…, d), and a covariance, precision or Cholesky factor matrix,
    (…, d, d).

    Only the lower triangle of a covariance matrix is read. Raises LinAlgError if it is not positive definite, and
    ArgumentError unless exactly one matrix is given, or if the diagonal of the Cholesky factor is not positive.

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
        matrices = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
        if len(matrices) != 1:
            raise ArgumentError(
                f"{name}: exactly one of covariance_matrix, precision_matrix and scale_tril may be specified."
            )
        matrix, size = check_square(matrices[0], name, "the matrix"), check_floating(loc, name, "loc").shape[-1:]
        if matrix.shape[-1:] != size:
            raise ArgumentError(f"{name}: loc of shape {loc.shape} does not match a matrix of shape {matrix.shape}.")
        if covariance_matrix is not None:
            matrix = F.cholesky(matrix)
        elif precision_matrix is not None:
            # `flipped_factor` is the inverse of the Cholesky factor of the covariance matrix.
            flipped_factor = F.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            identity = eye(size[0], dtype=matrix.dtype, device=matrix.device)
            matrix = solve_triangular(flipped_factor, identity, upper=False)
        else:
            message = f"{name}: expected parameter scale_tril to satisfy the constraint of a positive diagonal."
            check_constraint(F.diagonal(matrix, 0, -2, -1) > 0, validate_args, message)
        super().__init__(F.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2]), size)
        self.loc = loc.expand(*self.batch_shape, *size)
        self.scale_tril = matrix.expand(*self.batch_shape, *size, *size)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix, (…, d, d)."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix, (…, d, d)."""
        return F.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        """The mean, `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix, (…, d)."""
        return (self.scale_tril**2).sum(-1)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Return ``loc + L @ e``, with the Cholesky factor L and e drawn from N(0, 1)."""
        noise = self._draw(randn, sample_shape, self.loc)
        sample: Tensor = self.loc + (self.scale_tril @ noise[..., None])[..., 0]
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ``-|L⁻¹ (value - loc)|² / 2 - log(det L) - d log(2π) / 2``, with the Cholesky factor L."""
        z = solve_triangular(self.scale_tril, (value - self.loc)[..., None], upper=False)[..., 0]
        log_density: Tensor = -0.5 * (z * z).sum(-1) - self._log_det() - 0.5 * self._log_two_pi_term()
        return log_density

    def entropy(self) -> Tensor:
        """Return ``d (1 + log(2π)) / 2 + log(det L)``, with the Cholesky factor L."""
        entropy: Tensor = self._log_det() + 0.5 * (self.event_shape[0] + self._log_two_pi_term())
        return entropy

    def _log_two_pi_term(self) -> float:
        return self.event_shape[0] * math.log(2 * math.pi)

    def _log_det(self) -> Tensor:
        return F.diagonal(self.scale_tril, 0, -2, -1).log().sum(-1)
