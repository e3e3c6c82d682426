"""Replica of the model, optimizer and loss in one worker; independent of Ray."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad import random
from minigrad.compiler.jit import jit as recorded
from minigrad.core.dtypes import as_dtype, set_default_dtype
from minigrad.core.errors import ArgumentError, DTypeError, a_kind
from minigrad.core.grad_mode import no_grad
from minigrad.core.storage import host, set_default_device
from minigrad.data import DataLoader
from minigrad.data.workers import seed_all, seed_of
from minigrad.distributed.flat import Array, flattened, write_gradients
from minigrad.functional.creation import tensor
from minigrad.io import load as read
from minigrad.io import save as write
from minigrad.nn.module import Module
from minigrad.nn.state import slots
from minigrad.optim import Optimizer
from minigrad.training.evaluation import Mean, in_mode, parts, place_of

__all__ = [
    "Answer",
    "Asked",
    "Replica",
    "ReplicaJob",
    "Update",
    "batch_of",
    "buffers_of",
    "made",
    "options_of",
    "packed",
    "parameters_of",
    "stepping",
    "write_buffers",
]


class ReplicaJob(NamedTuple):
    """Everything that is sent to a worker once."""

    make: Callable[[], Any]
    dataset: Any
    collate: Callable[[Any], Any] | None
    metrics: Mapping[str, Callable[[Any, Any], Any]]
    weigh: Callable[[Any], float] | None
    pieces: int
    """The number of micro-batches, each with its own backward pass, per shard."""
    device: str
    dtype: str
    jit: bool


class Asked(NamedTuple):
    """A shard: the indices of its samples, its offset in the batch, and the state of the driver's generator."""

    numbers: list[int]
    first: int
    drawn: tuple[int, int]


class Answer(NamedTuple):
    """The result of a shard: the gradient of its mean loss, and everything else to be averaged by the driver."""

    gradient: Array
    there: list[bool]
    """Whether each parameter has a gradient."""
    weight: float
    """The number of samples, or of elements counted by `count`, in the mean."""
    loss: float
    buffers: list[Array]
    rows: int
    totals: dict[str, float]
    drawn: int
    """The count of random values drawn."""


class Update(NamedTuple):
    """The arguments of an optimizer step, apart from the gradient, which is sent through Ray's object store."""

    there: list[bool]
    options: list[dict[str, Any]]
    buffers: list[Array]


def made(make: Callable[[], Any]) -> tuple[Module, Optimizer, Callable[[Any, Any], Any], Any]:
    """Call `make` and return (model, optimizer, loss, scheduler or None). Raises DTypeError or ArgumentError for
    invalid results."""
    found = make()
    if not isinstance(found, tuple) or len(found) not in (3, 4):
        raise DTypeError(
            f"distributed.fit: make() returned {a_kind(found)}.\n"
            "  Return (model, optimizer, loss) or (model, optimizer, loss, scheduler)."
        )
    model, optimizer, loss, *rest = found
    for name, x, kind in (("model", model, Module), ("optimizer", optimizer, Optimizer)):
        if not isinstance(x, kind):
            raise DTypeError(f"distributed.fit: the {name} returned by make() is {a_kind(x)}, not a {kind.__name__}.")
    known = {id(x) for x in model.parameters()}
    if any(id(x) not in known for x in parameters_of(optimizer)):
        raise ArgumentError(
            "distributed.fit: the optimizer updates a tensor that is not a parameter of the model, so checkpoints and "
            "replicas would not include it.\n  Register it as an nn.Parameter of the model."
        )
    return model, optimizer, loss, rest[0] if rest else None


def parameters_of(optimizer: Optimizer) -> list[Any]:
    """Return the parameters of an optimizer, in the order of its groups."""
    return [x for group in optimizer.param_groups for x in group["params"]]


def options_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the options of each parameter group, which schedulers and callbacks may change."""
    return [{name: x for name, x in group.items() if name != "params"} for group in optimizer.param_groups]


def buffers_of(model: Module) -> list[Any]:
    """Return the persistent buffers of a model, such as running statistics."""
    params = {id(x) for x in model.parameters()}
    return [x for part in model.modules() for x in slots(part).values() if id(x) not in params]


def packed(model: Module, optimizer: Optimizer) -> bytes:
    """Serialise the state dicts of a replica to bytes with `minigrad.io.save`."""
    file = io.BytesIO()
    write({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def _numbers(model: Module) -> list[Array]:
    return [host(x._array).copy() for x in buffers_of(model)]


def write_buffers(model: Module, arrays: Sequence[Array]) -> None:
    """Copy `arrays` into the buffers of a model."""
    with no_grad():
        for x, array in zip(buffers_of(model), arrays, strict=True):
            x.copy_(tensor(array, dtype=x.dtype, device=x.device))


def batch_of(dataset: Any, collate: Callable[[Any], Any] | None, place: str | None) -> Callable[[list[int]], Any]:
    """Return a function that loads the batch of given sample indices onto the device `place`."""
    chosen: list[list[int]] = []
    loader = DataLoader(dataset, batch_sampler=chosen, collate_fn=collate, device=place)

    def batch(numbers: list[int]) -> Any:
        chosen[:] = [numbers]
        return next(iter(loader))

    return batch


@contextmanager
def _drawing(drawn: tuple[int, int], first: int, rows: int) -> Iterator[list[int]]:
    """Context manager that sets the default generator to `drawn`, restricted to `rows` rows of a batch from `first` on.

    It yields a list, which contains the count of values drawn on exit.
    """
    used = [0]
    seed, count = drawn
    generator = random.default_generator.manual_seed(seed)
    generator.draw(count)
    generator.rows(first, rows)
    try:
        yield used
    finally:
        generator.rows()
        used[0] = generator.draw(0)[1] - count


def stepping(optimizer: Optimizer, place: str | None, jit: bool) -> Callable[[Array, Sequence[bool]], None]:
    """Return a function that applies an optimizer step from a flat gradient; `jit` traces one per gradient mask."""
    params = parameters_of(optimizer)

    def update(gradient: Any, there: tuple[bool, ...]) -> None:
        write_gradients(params, gradient, there)
        optimizer.step()

    made = recorded(update) if jit else update
    return lambda gradient, there: made(tensor(gradient, device=place), tuple(there))


class Replica:
    """Model replica that computes gradients of shards and applies the driver's updates."""

    def __init__(self, job: ReplicaJob) -> None:
        set_default_dtype(as_dtype(job.dtype))
        set_default_device(job.device)
        self.job = job
        self.model, self.optimizer, self.loss, _ = made(job.make)
        self.params = parameters_of(self.optimizer)
        self.place = place_of(self.model)
        self.batch = batch_of(job.dataset, job.collate, self.place)
        self.both = recorded(self._both, state=self.model) if job.jit else self._both
        self.step = stepping(self.optimizer, self.place, job.jit)

    def load(self, state: bytes) -> None:
        """Load the state serialised by `packed`."""
        found = read(io.BytesIO(state), "numpy")
        self.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])

    def _both(self, first: int, inputs: tuple[Any, ...], target: Any) -> tuple[Any, Any, Any]:
        """Run the forward and backward pass on rows from `first` on, which select the random draws; return the flat
        gradient, the output and the loss."""
        self.optimizer.zero_grad()
        output = self.model(*inputs)
        number = self.loss(output, target)
        number.backward()
        return flattened(self.params), output.detach(), number.detach()

    def gradient(self, asked: Asked) -> Answer:
        """Compute the gradient of the mean loss of a shard. Propagates exceptions of the dataset, model and loss."""
        mean_of, before = Mean(self.job.metrics), _numbers(self.model)
        pieces, weights = self._pieces(asked)
        total = sum(weights)
        flat: Any = None
        there = [False] * len(self.params)
        loss, used, first = 0.0, 0, asked.first
        with in_mode(self.model, True):
            for (inputs, target, rows), weight in zip(pieces, weights, strict=True):
                if weight:
                    with _drawing(asked.drawn, first, rows) as drawn:
                        part, output, number = self.both(first, inputs, target)
                    if weight != total:
                        part = part * (weight / total)
                    flat = part if flat is None else flat + part
                    there = [has or x.grad is not None for has, x in zip(there, self.params, strict=True)]
                    used = max(used, drawn[0])
                    loss += float(number) * (weight / total)
                    mean_of.add(output, target, without="loss")
                first += rows
        if flat is None:  # all weights are 0
            self.optimizer.zero_grad()
            flat = flattened(self.params)
        buffers = _numbers(self.model)
        write_buffers(self.model, before)  # this replica may compute a second shard of the batch
        return Answer(host(flat._array), there, total, loss, buffers, len(asked.numbers), mean_of.totals, used)

    def _pieces(self, asked: Asked) -> tuple[list[tuple[Any, Any, int]], list[float]]:
        """Load the micro-batches of a shard as (inputs, target, number of rows), and their weights in the mean."""
        count = min(self.job.pieces, len(asked.numbers))
        ends = [len(asked.numbers) * k // count for k in range(count + 1)]
        seed_all(seed_of(seed_of(*asked.drawn), asked.first))  # for a dataset with random augmentation
        found, weights = [], []
        for start, end in pairwise(ends):
            inputs, target = parts(self.batch(asked.numbers[start:end]), self.place)
            found.append((inputs, target, end - start))
            weights.append(float(end - start if self.job.weigh is None else self.job.weigh(target)))
        return found, weights

    def apply(self, gradient: Array, update: Update) -> None:
        """Apply one optimizer step."""
        for group, options in zip(self.optimizer.param_groups, update.options, strict=True):
            group.update({name: x for name, x in options.items() if group[name] != x})
        self.step(gradient, update.there)
        write_buffers(self.model, update.buffers)
