"""What distributions share, and several as one."""

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

__all__ = ["Distribution", "Independent", "check", "together"]


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


def together(*given: Any) -> tuple[Tensor, ...]:
    """Parameters, tensors or numbers, in the shape that they broadcast to."""
    known = [x for x in given if isinstance(x, Tensor)]
    made = [x if isinstance(x, Tensor) else known[0].new_tensor(float(x)) if known else tensor(float(x)) for x in given]
    return F.broadcast_tensors(*made)


def check(holds: Tensor, validate_args: bool | None, said: str) -> None:
    """Raise ArgumentError where parameters do not hold what they should."""
    if validate_args is False or modes.values_read:  # by someone who traces, where no element may be read
        return
    if not bool(holds.all()):
        raise ArgumentError(f"{said}\n  validate_args=False leaves out this look.")


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of a batch of distributions as one event: logarithms add up.

    >>> import minigrad as mg
    >>> Independent(mg.distributions.Normal(mg.zeros(4, 3), 1.0), 1).log_prob(mg.zeros(4, 3)).shape
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
