"""Discrete distributions: Categorical and Bernoulli."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.grad_mode import no_grad
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.distributions.distribution import Distribution, check_constraint
from minigrad.functional.checks import check_floating
from minigrad.functional.creation import tensor
from minigrad.random import bernoulli, multinomial

__all__ = ["Bernoulli", "Categorical"]


class _ProbsOrLogits(Distribution):
    """Base class of distributions parameterised by either `probs` or `logits`."""

    def __init__(self, probs: Any, logits: Any, event_ndims: int, validate_args: bool | None) -> None:
        name = type(self).__name__
        if (probs is None) is (logits is None):
            raise ArgumentError(
                f"{name}: either probs or logits must be specified, but not both.\n  A network outputs logits."
            )
        parameter = probs if logits is None else logits
        parameter = check_floating(
            parameter if isinstance(parameter, Tensor) else tensor(parameter), name, "probs or logits"
        )
        if logits is None:
            check_constraint(
                (parameter >= 0) & (parameter <= 1) if not event_ndims else parameter >= 0,
                validate_args,
                f"{name}: expected parameter probs to satisfy the constraint "
                f"{'probs >= 0' if event_ndims else '0 <= probs <= 1'}, but found invalid values.",
            )
        self._probs: Any = parameter if logits is None else None
        self._logits: Any = None if logits is None else parameter
        super().__init__(parameter.shape[: parameter.ndim - event_ndims])


class Categorical(_ProbsOrLogits):
    """Categorical distribution over classes 0 … K-1, given by `probs` (…, K), which are normalised, or by `logits`.

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
        """The probabilities, which sum to 1 along the last dimension."""
        return F.softmax(self._logits, -1) if self._probs is None else self._probs

    @property
    def logits(self) -> Tensor:
        """The normalised log-probabilities, (…, K)."""
        return F.log_softmax(self._logits, -1) if self._probs is None else _clamped_log(self._probs)

    @property
    def mode(self) -> Tensor:
        """The most probable class, int64."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw classes, as an int64 tensor of shape (*sample_shape, *batch_shape)."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            probs = self.probs.reshape(-1, self.probs.shape[-1])
            indices = multinomial(probs, numel(shape) // max(probs.shape[0], 1), replacement=True)
            return indices.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability of each class in `value`."""
        logits = self.logits
        shape = F.broadcast_shapes(value.shape, logits.shape[:-1])
        return logits.expand(*shape, -1).gather(-1, value.expand(*shape)[..., None])[..., 0]

    def entropy(self) -> Tensor:
        """Return ``-sum(probs * logits)``, where classes with probability 0 contribute 0."""
        probs = self.probs
        entropy: Tensor = -F.where(probs == 0, 0.0, probs * self.logits.clamp(min=-1e30)).sum(-1)
        return entropy


class Bernoulli(_ProbsOrLogits):
    """Bernoulli distribution of 0 and 1, where 1 has probability `probs` or sigmoid(`logits`)."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 0, validate_args)

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        probs: Tensor = F.sigmoid(self._logits) if self._probs is None else self._probs
        return probs

    @property
    def logits(self) -> Tensor:
        """The log-odds, ``log(probs / (1 - probs))``."""
        logits: Tensor = (
            _clamped_log(self._probs) - _clamped_log(1 - self._probs) if self._logits is None else self._logits
        )
        return logits

    @property
    def mean(self) -> Tensor:
        """The mean, `probs`."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance, ``probs * (1 - probs)``."""
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        """The more probable value, 0 or 1; nan if both are equally probable."""
        mode: Tensor = F.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))
        return mode

    def sample(self, sample_shape: int | Sequence[int] = ()) -> Tensor:
        """Draw zeros and ones, in the dtype of the parameters."""
        with no_grad():
            return bernoulli(self.probs.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ``value * logits - softplus(logits)``."""
        logits, value = F.broadcast_tensors(self.logits, value)
        log_prob: Tensor = -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return log_prob

    def entropy(self) -> Tensor:
        """Return ``softplus(logits) - probs * logits``."""
        entropy: Tensor = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return entropy


def _clamped_log(probs: Any) -> Tensor:
    """Return the log of `probs`, clamped to [eps, 1 - eps] as in PyTorch so that the result is finite."""
    eps = 2.0**-23 if probs.dtype.name == "float32" else 2.0**-52
    result: Tensor = probs.clamp(eps, 1 - eps).log()
    return result
