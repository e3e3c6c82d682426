"""Base class of distributions, and `Independent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.grad_mode import no_grad
from minigrad.core.modes import modes
from minigrad.core.shapes import Shape
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import tensor

__all__ = ["Distribution", "Independent", "broadcast_all", "check_constraint"]


class Distribution:
    """Base class of probability distributions.

    ``validate_args=False`` disables the validation of parameters, and so does tracing with `mg.jit`.
    """

    has_rsample = False

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = ()) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def _extended_shape(self, sample_shape: int | Sequence[int]) -> Shape:
        sample_dims = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return sample_dims + self.batch_shape + self.event_shape

    def _draw(self, sampler: Callable[..., Tensor], sample_shape: int | Sequence[int], parameter: Tensor) -> Tensor:
        return sampler(*self._extended_shape(sample_shape), dtype=parameter.dtype, device=parameter.device)

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw samples of shape (*sample_shape, *batch_shape, *event_shape), without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw reparameterised samples, differentiable in the parameters. Raises NotImplementedError if unavailable."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: its samples cannot be reparameterised.\n"
            "  Use sample() and log_prob() for a score-function (REINFORCE) gradient."
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log of the probability density or mass function at `value`."""
        raise NotImplementedError(f"{type(self).__name__}.log_prob is not implemented.")

    def entropy(self) -> Tensor:
        """Return the entropy, the expectation of ``-log_prob``, in nats."""
        raise NotImplementedError(f"{type(self).__name__}.entropy is not implemented.")

    @property
    def mean(self) -> Tensor:
        """The mean of the distribution."""
        raise NotImplementedError(f"{type(self).__name__}.mean is not implemented.")

    @property
    def variance(self) -> Tensor:
        """The variance of the distribution."""
        raise NotImplementedError(f"{type(self).__name__}.variance is not implemented.")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of the distribution."""
        return self.variance**0.5

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"


def broadcast_all(*parameters: Any) -> tuple[Tensor, ...]:
    """Broadcast parameters, tensors or Python scalars, to a common shape."""
    tensors = [x for x in parameters if isinstance(x, Tensor)]
    converted = [
        x if isinstance(x, Tensor) else tensors[0].new_tensor(float(x)) if tensors else tensor(float(x))
        for x in parameters
    ]
    return F.broadcast_tensors(*converted)


def check_constraint(constraint: Tensor, validate_args: bool | None, message: str) -> None:
    """Raise ArgumentError with message `message` unless all elements of `constraint` are true."""
    if validate_args is False or modes.values_read:  # elements cannot be read while tracing
        return
    if not bool(constraint.all()):
        raise ArgumentError(f"{message}\n  Pass validate_args=False to skip this check.")


class Independent(Distribution):
    """Distribution that reinterprets the last `reinterpreted_batch_ndims` batch dimensions as event dimensions.

    >>> import minigrad as mg
    >>> Independent(mg.distributions.Normal(mg.zeros(4, 3), 1.0), 1).log_prob(mg.zeros(4, 3)).shape
    (4,)
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        base_shape, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= count <= len(base_shape):
            raise ArgumentError(
                "Independent: expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), but got "
                f"{count} for batch_shape {base_shape}."
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        self.has_rsample = base_distribution.has_rsample
        batch_ndims = len(base_shape) - count
        super().__init__(base_shape[:batch_ndims], base_shape[batch_ndims:] + base_distribution.event_shape)

    @property
    def mean(self) -> Tensor:
        """The mean of the base distribution."""
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        """The variance of the base distribution."""
        return self.base_dist.variance

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw samples from the base distribution."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw reparameterised samples from the base distribution."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the base distribution's `log_prob`, summed over event dimensions."""
        return self._sum_rightmost(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """Return the base distribution's entropy, summed over event dimensions."""
        return self._sum_rightmost(self.base_dist.entropy())

    def _sum_rightmost(self, x: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-count, 0))) if count else x
