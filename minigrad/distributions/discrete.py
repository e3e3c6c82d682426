"""Distributions by the chances of what is drawn: classes, zeros and ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.grad_mode import no_grad
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.distributions.distribution import Distribution, check
from minigrad.functional.checks import floats_of
from minigrad.functional.creation import tensor
from minigrad.random import bernoulli, multinomial

__all__ = ["Bernoulli", "Categorical"]


class _ByChance(Distribution):
    """One that is given by probabilities or by logits, of which the other follows."""

    def __init__(self, probs: Any, logits: Any, events: int, validate_args: bool | None) -> None:
        name = type(self).__name__
        if (probs is None) is (logits is None):
            raise ArgumentError(f"{name}: it takes either probs or logits.\n  Scores of a network are logits.")
        given = probs if logits is None else logits
        given = floats_of(given if isinstance(given, Tensor) else tensor(given), name, "probs or logits")
        if logits is None:
            check(
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
