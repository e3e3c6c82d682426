"""The distributions themselves: see the top of this room."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.grad_mode import no_grad
from minigrad.core.modes import modes
from minigrad.core.shapes import Shape, numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import floats_of
from minigrad.functional.creation import eye, tensor
from minigrad.functional.inverses import squares_of
from minigrad.linalg import solve_triangular
from minigrad.random import bernoulli, multinomial, rand, randn

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Independent",
    "MultivariateNormal",
    "Normal",
    "Uniform",
]


class Distribution:
    """What all have: shapes, and draws without a gradient.

    `validate_args` False leaves out the look at parameters, and so does `mg.jit`.
    """

    has_rsample = False

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = ()) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def _extended(self, sample_shape: int | Sequence[int]) -> Shape:
        many = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return many + self.batch_shape + self.event_shape

    def _drawn(self, draw: Callable[..., Tensor], sample_shape: int | Sequence[int], like: Tensor) -> Tensor:
        return draw(*self._extended(sample_shape), dtype=like.dtype, device=like.device)

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draws without a gradient, of shape (*sample_shape, *batch_shape, *event_shape)."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draws whose gradient goes to the parameters. Raises NotImplementedError where a draw has none."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: a draw of it has no gradient.\n  Write sample(), and weigh log_prob()."
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__}.log_prob is not here.")

    def entropy(self) -> Tensor:
        """The mean of ``-log_prob``, in nats."""
        raise NotImplementedError(f"{type(self).__name__}.entropy is not here.")

    @property
    def mean(self) -> Tensor:
        """The mean of each."""
        raise NotImplementedError(f"{type(self).__name__}.mean is not here.")

    @property
    def variance(self) -> Tensor:
        """The variance of each."""
        raise NotImplementedError(f"{type(self).__name__}.variance is not here.")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance of each."""
        return self.variance**0.5

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"


def _together(*given: Any) -> tuple[Tensor, ...]:
    """Parameters, tensors or numbers, in the shape that they broadcast to."""
    known = [x for x in given if isinstance(x, Tensor)]
    made = [x if isinstance(x, Tensor) else known[0].new_tensor(float(x)) if known else tensor(float(x)) for x in given]
    return F.broadcast_tensors(*made)


def _check(holds: Tensor, validate_args: bool | None, said: str) -> None:
    if validate_args is False or modes.values_read:  # by someone who traces, where no element may be read
        return
    if not bool(holds.all()):
        raise ArgumentError(f"{said}\n  validate_args=False leaves out this look.")


class Normal(Distribution):
    """The normal distribution of mean `loc` and standard deviation `scale`, tensors or numbers.

    Raises ArgumentError for a `scale` that is not above 0.

    >>> import minigrad as mg
    >>> Normal(0.0, mg.tensor([1.0, 2.0])).log_prob(mg.tensor(0.0)).tolist()
    [-0.9189385175704956, -1.6120857000350952]
    """

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = _together(loc, scale)
        _check(self.scale > 0, validate_args, "Normal: scale is a standard deviation, and not all of it is above 0.")
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
        self.low, self.high = _together(low, high)
        _check(self.low < self.high, validate_args, "Uniform: not all of low is below high.")
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


class _ByChance(Distribution):
    """One that is given by probabilities or by logits, of which the other follows."""

    def __init__(self, probs: Any, logits: Any, events: int, validate_args: bool | None) -> None:
        name = type(self).__name__
        if (probs is None) is (logits is None):
            raise ArgumentError(f"{name}: it takes either probs or logits.\n  Scores of a network are logits.")
        given = probs if logits is None else logits
        given = floats_of(given if isinstance(given, Tensor) else tensor(given), name, "probs or logits")
        if logits is None:
            _check(
                (given >= 0) & (given <= 1) if not events else given >= 0,
                validate_args,
                f"{name}: probs are no chances.",
            )
        self._probs: Any = given if logits is None else None
        self._logits: Any = None if logits is None else given
        super().__init__(given.shape[: given.ndim - events])


class Categorical(_ByChance):
    """One of the classes 0 … K-1, with chances as `probs` (…, K), which are divided by their sum, or by `logits`.

    >>> import minigrad as mg
    >>> Categorical(mg.tensor([1.0, 3.0])).probs.tolist()
    [0.25, 0.75]
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 1, validate_args)
        if self._probs is not None:
            self._probs = self._probs / self._probs.sum(-1, keepdim=True)

    @property
    def probs(self) -> Tensor:
        """The chances, whose sum over the last dimension is 1."""
        return F.softmax(self._logits, -1) if self._probs is None else self._probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms, also where they were given by others that differ from these by a number."""
        return F.log_softmax(self._logits, -1) if self._probs is None else _log(self._probs)

    @property
    def mode(self) -> Tensor:
        """The class of the largest chance, int64."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Classes, int64, of shape (*sample_shape, *batch_shape)."""
        shape = self._extended(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self.probs.shape[-1])
            drawn = multinomial(rows, numel(shape) // max(rows.shape[0], 1), replacement=True)
            return drawn.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the chance of each class in `value`."""
        rows = self.logits
        shape = F.broadcast_shapes(value.shape, rows.shape[:-1])
        return rows.expand(*shape, -1).gather(-1, value.expand(*shape)[..., None])[..., 0]

    def entropy(self) -> Tensor:
        """``-sum(probs * logits)``, in which a chance of 0 counts as 0."""
        chances = self.probs
        found: Tensor = -F.where(chances == 0, 0.0, chances * self.logits.clamp(min=-1e30)).sum(-1)
        return found


class Bernoulli(_ByChance):
    """1 with chance `probs`, or sigmoid(`logits`), else 0."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 0, validate_args)

    @property
    def probs(self) -> Tensor:
        """The chances of 1."""
        found: Tensor = F.sigmoid(self._logits) if self._probs is None else self._probs
        return found

    @property
    def logits(self) -> Tensor:
        """``log(probs / (1 - probs))``."""
        found: Tensor = _log(self._probs) - _log(1 - self._probs) if self._logits is None else self._logits
        return found

    @property
    def mean(self) -> Tensor:
        """`probs`."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """``probs * (1 - probs)``."""
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        """What is likelier, 0 or 1; nan where both are as likely."""
        found: Tensor = F.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))
        return found

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Zeros and ones, in the type of the parameters."""
        with no_grad():
            return bernoulli(self.probs.expand(*self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """``value * logits - softplus(logits)``."""
        logits, value = F.broadcast_tensors(self.logits, value)
        found: Tensor = -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return found

    def entropy(self) -> Tensor:
        """``softplus(logits) - probs * logits``."""
        found: Tensor = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return found


def _log(chances: Any) -> Tensor:
    """Logarithms of chances, brought away from 0 and 1 by the last digit, as in PyTorch: none is infinite."""
    eps = 2.0**-23 if chances.dtype.name == "float32" else 2.0**-52
    found: Tensor = chances.clamp(eps, 1 - eps).log()
    return found


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of a batch of distributions as one event: logarithms add up.

    >>> import minigrad as mg
    >>> Independent(Normal(mg.zeros(4, 3), 1.0), 1).log_prob(mg.zeros(4, 3)).shape
    (4,)
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        whole, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= count <= len(whole):
            raise ArgumentError(f"Independent: there are no {count} dimensions in batches of shape {whole}.")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        self.has_rsample = base_distribution.has_rsample
        kept = len(whole) - count
        super().__init__(whole[:kept], whole[kept:] + base_distribution.event_shape)

    @property
    def mean(self) -> Tensor:
        """That of the base."""
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        """That of the base."""
        return self.base_dist.variance

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draws of the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draws of the base, with their gradient."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sums of the base's over the dimensions of an event."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """The sums of the base's over the dimensions of an event."""
        return self._summed(self.base_dist.entropy())

    def _summed(self, x: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-count, 0))) if count else x


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
            _check(F.diagonal(matrix, 0, -2, -1) > 0, validate_args, said)
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
