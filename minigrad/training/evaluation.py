"""Metrics and their means over the samples of a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import exp, inf
from typing import Any, NamedTuple

from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional import cross_entropy
from minigrad.nn.module import Module

__all__ = ["Metric", "MetricMeans", "accuracy", "device_of", "evaluate", "perplexity", "split_batch", "training_mode"]


class Metric(NamedTuple):
    """A metric that is a function of a mean over samples: ``then(mean)``. Perplexity is exp of the mean loss.

    The mean is that of ``of(output, target)``. A metric that is itself a mean over samples does not require a `Metric`.
    """

    of: Callable[[Any, Any], Any]
    then: Callable[[float], float]

    def __call__(self, output: Any, target: Any) -> float:
        """Compute the metric of one batch."""
        return self.then(float(self.of(output, target)))


def accuracy(output: Tensor, target: Tensor) -> float:
    """Return the fraction of correct predictions, given `output`, (N, classes, …), and class indices `target`, (N, …).

    Raises ShapeError for other shapes.

    >>> import minigrad as mg
    >>> accuracy(mg.tensor([[0.1, 2.0], [3.0, 0.5], [0.0, 1.0], [0.0, 1.0]]), mg.tensor([1, 0, 0, 1]))
    0.75
    """
    if output.ndim < 2 or (output.shape[0], *output.shape[2:]) != target.shape:
        raise ShapeError(
            "accuracy: expected output (N, classes, …) and target (N, …) of class indices, but got shapes "
            f"{output.shape} and {target.shape}."
        )
    return float((output.detach().argmax(1) == target).to(output.dtype).mean())


def _exp(x: float) -> float:
    return exp(x) if x < 700 else inf


perplexity = Metric(cross_entropy, _exp)
"""exp of the mean cross entropy: the effective number of equally likely classes. Has the arguments of the loss."""


class MetricMeans:
    """Running means of metrics over samples, in batches of any sizes."""

    def __init__(self, metrics: Mapping[str, Callable[[Any, Any], Any]]) -> None:
        self.metrics = metrics
        self.count = 0
        self.totals = dict.fromkeys(metrics, 0.0)

    def add(self, output: Any, target: Any, exclude: str = "") -> int:
        """Add the metrics of a batch, except `exclude`, which the caller adds, and return the number of samples."""
        count = len(target) if isinstance(target, Tensor) and target.ndim else 1
        self.count += count
        for name, metric in self.metrics.items():
            if name != exclude:
                value = float((metric.of if isinstance(metric, Metric) else metric)(output, target))
                self.totals[name] += value * count
        return count

    def compute(self, prefix: str = "") -> dict[str, float]:
        """Return the metrics over all samples, by name with `prefix`."""
        values = {}
        for name, metric in self.metrics.items():
            mean = self.totals[name] / self.count if self.count else float("nan")
            values[prefix + name] = metric.then(mean) if isinstance(metric, Metric) else mean
        return values


def evaluate(
    model: Module, loader: Iterable[Any], metrics: Mapping[str, Callable[[Any, Any], Any]]
) -> dict[str, float]:
    """Return the mean of each metric, a function of output and target, over the samples of a loader.

    The model runs in evaluation mode and without gradients; the mode of each module is restored. The batches are as in
    `fit`.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(2, 2)
    >>> batch = mg.ones(4, 2), mg.zeros(4, dtype=mg.int64)
    >>> list(evaluate(model, [batch], {"loss": mg.functional.cross_entropy, "accuracy": accuracy}))
    ['loss', 'accuracy']
    """
    mean, device = MetricMeans(metrics), device_of(model)
    with training_mode(model, False), no_grad():
        for batch in loader:
            inputs, target = split_batch(batch, device)
            mean.add(model(*inputs), target)
    return mean.compute()


@contextmanager
def training_mode(model: Module, training: bool) -> Iterator[None]:
    """Context manager that sets training or evaluation mode, and restores the mode of each module.

    In a model in training mode, a submodule in evaluation mode, such as a frozen norm, stays in evaluation mode.
    """
    modes = [(module, module.training) for module in model.modules()]
    if not (training and model.training):
        model.train(training)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def device_of(model: Module) -> str | None:
    """Return the device of the model's parameters, or None if it has no parameters."""
    return next((str(x.device) for x in model.parameters()), None)


def split_batch(batch: Any, device: str | None) -> tuple[tuple[Any, ...], Any]:
    """Return the inputs and the target of a batch, moved to `device`. A single tensor is used as both."""
    if isinstance(batch, Tensor):
        batch = (batch, batch)
    if not isinstance(batch, list | tuple) or len(batch) < 2:
        raise DTypeError(
            f"fit: expected a batch (input, …, target), or one tensor for both, but got {type(batch).__name__} "
            f"{batch!r:.80}.\n  Build it in collate_fn= of the loader."
        )
    tensors = [x.to(device) if isinstance(x, Tensor) and device not in (None, x.device) else x for x in batch]
    return tuple(tensors[:-1]), tensors[-1]
