"""A replica: a model, its optimizer and its loss in one worker, and what the driver asks of it; without Ray."""

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
    """What all workers are given once."""

    make: Callable[[], Any]
    dataset: Any
    collate: Callable[[Any], Any] | None
    metrics: Mapping[str, Callable[[Any, Any], Any]]
    weigh: Callable[[Any], float] | None
    pieces: int
    """How many backward passes, one after another, a shard takes."""
    device: str
    dtype: str
    jit: bool


class Asked(NamedTuple):
    """A shard: the numbers of its examples, its place among the rows of the batch, and how the generator stood."""

    numbers: list[int]
    first: int
    drawn: tuple[int, int]


class Answer(NamedTuple):
    """What a shard gives: the gradient of its mean loss, and what else the driver has to know of it."""

    gradient: Array
    there: list[bool]
    """Which parameters have a gradient."""
    weight: float
    """Over how many examples, or what `count` counts, the mean was taken."""
    loss: float
    buffers: list[Array]
    rows: int
    totals: dict[str, float]
    drawn: int
    """How many random numbers were used."""


class Update(NamedTuple):
    """What makes a step of a replica: the gradient comes beside it, as an object of Ray's store."""

    there: list[bool]
    options: list[dict[str, Any]]
    buffers: list[Array]


def made(make: Callable[[], Any]) -> tuple[Module, Optimizer, Callable[[Any, Any], Any], Any]:
    """What `make` returns, and None where it gives no scheduler. Raises DTypeError, ArgumentError for other things."""
    found = make()
    if not isinstance(found, tuple) or len(found) not in (3, 4):
        raise DTypeError(
            f"distributed.fit: make() returned {a_kind(found)}.\n"
            "  Let it return (model, optimizer, loss), or (model, optimizer, loss, scheduler)."
        )
    model, optimizer, loss, *rest = found
    for name, x, kind in (("model", model, Module), ("optimizer", optimizer, Optimizer)):
        if not isinstance(x, kind):
            raise DTypeError(f"distributed.fit: the {name} that make() returned is {a_kind(x)}.")
    known = {id(x) for x in model.parameters()}
    if any(id(x) not in known for x in parameters_of(optimizer)):
        raise ArgumentError(
            "distributed.fit: the optimizer updates a tensor that is no parameter of the model, and checkpoints and "
            "replicas have those alone.\n  Make it an nn.Parameter of the model."
        )
    return model, optimizer, loss, rest[0] if rest else None


def parameters_of(optimizer: Optimizer) -> list[Any]:
    """What an optimizer updates, in the order of its groups."""
    return [x for group in optimizer.param_groups for x in group["params"]]


def options_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The options of each group, which schedulers and callbacks change."""
    return [{name: x for name, x in group.items() if name != "params"} for group in optimizer.param_groups]


def buffers_of(model: Module) -> list[Any]:
    """What a state dict has beside parameters: running statistics, say."""
    params = {id(x) for x in model.parameters()}
    return [x for part in model.modules() for x in slots(part).values() if id(x) not in params]


def packed(model: Module, optimizer: Optimizer) -> bytes:
    """The state of a replica, as a file of `minigrad.io`."""
    file = io.BytesIO()
    write({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def _numbers(model: Module) -> list[Array]:
    return [host(x._array).copy() for x in buffers_of(model)]


def write_buffers(model: Module, arrays: Sequence[Array]) -> None:
    """Overwrite the buffers of a model."""
    with no_grad():
        for x, array in zip(buffers_of(model), arrays, strict=True):
            x.copy_(tensor(array, dtype=x.dtype, device=x.device))


def batch_of(dataset: Any, collate: Callable[[Any], Any] | None, place: str | None) -> Callable[[list[int]], Any]:
    """What makes, on the device `place`, the batch of examples of some numbers."""
    chosen: list[list[int]] = []
    loader = DataLoader(dataset, batch_sampler=chosen, collate_fn=collate, device=place)

    def batch(numbers: list[int]) -> Any:
        chosen[:] = [numbers]
        return next(iter(loader))

    return batch


@contextmanager
def _drawing(drawn: tuple[int, int], first: int, rows: int) -> Iterator[list[int]]:
    """A block that draws random numbers for these rows of a batch; then the list has how many were used."""
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
    """What makes a step of an optimizer of a flat gradient; recorded, if `jit`, for each choice of what is there."""
    params = parameters_of(optimizer)

    def update(gradient: Any, there: tuple[bool, ...]) -> None:
        write_gradients(params, gradient, there)
        optimizer.step()

    made = recorded(update) if jit else update
    return lambda gradient, there: made(tensor(gradient, device=place), tuple(there))


class Replica:
    """A model that computes gradients of shards, and makes the steps that the driver tells it to make."""

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
        """Be what `packed` packed."""
        found = read(io.BytesIO(state), "numpy")
        self.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])

    def _both(self, first: int, inputs: tuple[Any, ...], target: Any) -> tuple[Any, Any, Any]:
        """The forward and the backward pass of rows from `first` on, to which random numbers may belong: the gradient,
        the output and the loss."""
        self.optimizer.zero_grad()
        output = self.model(*inputs)
        number = self.loss(output, target)
        number.backward()
        return flattened(self.params), output.detach(), number.detach()

    def gradient(self, asked: Asked) -> Answer:
        """The gradient of the mean loss of a shard. Raises what the data set, the model or the loss raise."""
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
        if flat is None:  # no row counts
            self.optimizer.zero_grad()
            flat = flattened(self.params)
        buffers = _numbers(self.model)
        write_buffers(self.model, before)  # as for the next shard, should this replica compute another of this batch
        return Answer(host(flat._array), there, total, loss, buffers, len(asked.numbers), mean_of.totals, used)

    def _pieces(self, asked: Asked) -> tuple[list[tuple[Any, Any, int]], list[float]]:
        """The shard in pieces, (inputs, target, how many rows), and what each weighs in the mean."""
        count = min(self.job.pieces, len(asked.numbers))
        ends = [len(asked.numbers) * k // count for k in range(count + 1)]
        seed_all(seed_of(seed_of(*asked.drawn), asked.first))  # for a data set that draws
        found, weights = [], []
        for start, end in pairwise(ends):
            inputs, target = parts(self.batch(asked.numbers[start:end]), self.place)
            found.append((inputs, target, end - start))
            weights.append(float(end - start if self.job.weigh is None else self.job.weigh(target)))
        return found, weights

    def apply(self, gradient: Array, update: Update) -> None:
        """Make one step of the optimizer."""
        for group, options in zip(self.optimizer.param_groups, update.options, strict=True):
            group.update({name: x for name, x in options.items() if group[name] != x})
        self.step(gradient, update.there)
        write_buffers(self.model, update.buffers)
