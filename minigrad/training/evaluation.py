"""How good a model is: metrics, and their means over all batches of a loader."""

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

__all__ = ["Mean", "Metric", "accuracy", "evaluate", "in_mode", "parts", "perplexity", "place_of"]


class Metric(NamedTuple):
    """A number that is not itself a mean over batches, but ``then(mean)``: perplexity is exp of the mean loss.

    ``of(output, target)`` is what is averaged. Any function of both whose mean is meant can be a metric as it is.
    """

    of: Callable[[Any, Any], Any]
    then: Callable[[float], float]

    def __call__(self, output: Any, target: Any) -> float:
        """The metric of one batch."""
        return self.then(float(self.of(output, target)))


def accuracy(output: Tensor, target: Tensor) -> float:
    """The share of targets at which the output is largest: `output` is (N, classes, …), `target` (N, …) of classes.

    Raises ShapeError for other shapes.

    >>> import minigrad as mg
    >>> accuracy(mg.tensor([[0.1, 2.0], [3.0, 0.5], [0.0, 1.0], [0.0, 1.0]]), mg.tensor([1, 0, 0, 1]))
    0.75
    """
    if output.ndim < 2 or (output.shape[0], *output.shape[2:]) != target.shape:
        raise ShapeError(
            f"accuracy: output {output.shape} and target {target.shape} do not go together: "
            "output is (N, classes, …), target (N, …) has the right classes."
        )
    return float((output.detach().argmax(1) == target).to(output.dtype).mean())


def _exp(x: float) -> float:
    return exp(x) if x < 700 else inf


perplexity = Metric(cross_entropy, _exp)
"""exp of the mean cross entropy: among how many equally likely classes a model hesitates. Takes what the loss takes."""


class Mean:
    """The means of a loss and metrics over examples, however many are in a batch."""

    def __init__(self, metrics: Mapping[str, Callable[[Any, Any], Any]]) -> None:
        self.metrics = metrics
        self.count = 0
        self.totals = dict.fromkeys(metrics, 0.0)

    def add(self, output: Any, target: Any, without: str = "") -> int:
        """Measure a batch, but for one number that somebody else adds; returns how many examples there were."""
        count = len(target) if isinstance(target, Tensor) and target.ndim else 1
        self.count += count
        for name, metric in self.metrics.items():
            if name != without:
                number = float((metric.of if isinstance(metric, Metric) else metric)(output, target))
                self.totals[name] += number * count
        return count

    def numbers(self, prefix: str = "") -> dict[str, float]:
        """The metrics of all batches together."""
        found = {}
        for name, metric in self.metrics.items():
            mean = self.totals[name] / self.count if self.count else float("nan")
            found[prefix + name] = metric.then(mean) if isinstance(metric, Metric) else mean
        return found


def evaluate(
    model: Module, loader: Iterable[Any], metrics: Mapping[str, Callable[[Any, Any], Any]]
) -> dict[str, float]:
    """The mean of each metric, a function of output and target, over the examples of a loader.

    The model is evaluated as it is used: in eval mode, without gradients; each of its modules is in its old mode
    afterwards. Batches are as in `fit`.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(2, 2)
    >>> batch = mg.ones(4, 2), mg.zeros(4, dtype=mg.int64)
    >>> list(evaluate(model, [batch], {"loss": mg.functional.cross_entropy, "accuracy": accuracy}))
    ['loss', 'accuracy']
    """
    mean, place = Mean(metrics), place_of(model)
    with in_mode(model, False), no_grad():
        for batch in loader:
            inputs, target = parts(batch, place)
            mean.add(model(*inputs), target)
    return mean.numbers()


@contextmanager
def in_mode(model: Module, training: bool) -> Iterator[None]:
    """A block in which the model is in train or eval mode, and after which each of its modules is as it was.

    In a model that is in train mode as a whole, a part in eval mode, such as a frozen norm, stays so.
    """
    modes = [(module, module.training) for module in model.modules()]
    if not (training and model.training):
        model.train(training)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def place_of(model: Module) -> str | None:
    """The device of the parameters; None if there are none."""
    return next((str(x.device) for x in model.parameters()), None)


def parts(batch: Any, place: str | None) -> tuple[tuple[Any, ...], Any]:
    """The inputs and the target of a batch, on the device of the model. A tensor alone is both."""
    if isinstance(batch, Tensor):
        batch = (batch, batch)
    if not isinstance(batch, list | tuple) or len(batch) < 2:
        raise DTypeError(
            f"fit: a batch is (input, …, target), or a tensor that is both, not {type(batch).__name__} {batch!r:.80}.\n"
            "  Let collate_fn= of the loader make one."
        )
    moved = [x.to(place) if isinstance(x, Tensor) and place not in (None, x.device) else x for x in batch]
    return tuple(moved[:-1]), moved[-1]
