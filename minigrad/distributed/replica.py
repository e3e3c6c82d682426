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
from minigrad.core.errors import ArgumentError, DTypeError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.storage import set_default_device, to_numpy
from minigrad.data import DataLoader
from minigrad.data.workers import derive_seed, seed_all
from minigrad.distributed.flat_gradients import Array, flatten_gradients, write_gradients
from minigrad.functional.creation import tensor
from minigrad.io import load as read
from minigrad.io import save as write
from minigrad.nn.module import Module
from minigrad.nn.state import state_tensors
from minigrad.optim import Optimizer
from minigrad.training.evaluation import MetricMeans, device_of, split_batch, training_mode

__all__ = [
    "Replica",
    "ReplicaJob",
    "Shard",
    "ShardResult",
    "Update",
    "call_make",
    "group_options",
    "make_batch_loader",
    "make_update",
    "optimizer_parameters",
    "persistent_buffers",
    "serialize_state",
    "write_buffers",
]


class ReplicaJob(NamedTuple):
    """The functions, data and options that a worker receives once, when its replica is created."""

    make: Callable[[], Any]
    dataset: Any
    collate: Callable[[Any], Any] | None
    metrics: Mapping[str, Callable[[Any, Any], Any]]
    count_weight: Callable[[Any], float] | None
    micro_batches: int
    """The number of micro-batches, each with its own backward pass, per shard."""
    device: str
    dtype: str
    jit: bool


class Shard(NamedTuple):
    """Part of a batch: the indices of its samples, its offset in the batch, and the state of the driver's generator."""

    indices: list[int]
    offset: int
    generator_state: tuple[int, int]


class ShardResult(NamedTuple):
    """The result of a shard: the gradient of its mean loss, and the other values that the driver averages."""

    gradient: Array
    has_gradient: list[bool]
    """Whether each parameter has a gradient."""
    weight: float
    """The weight of the shard in averages: its number of samples, or of elements counted by `count`."""
    loss: float
    buffers: list[Array]
    num_samples: int
    metric_totals: dict[str, float]
    draw_count: int
    """The number of values drawn from the random generator."""


class Update(NamedTuple):
    """The arguments of an optimizer step, apart from the gradient, which is sent through Ray's object store."""

    has_gradient: list[bool]
    options: list[dict[str, Any]]
    buffers: list[Array]


def call_make(make: Callable[[], Any]) -> tuple[Module, Optimizer, Callable[[Any, Any], Any], Any]:
    """Call `make` and return (model, optimizer, loss, scheduler or None). Raises DTypeError or ArgumentError for
    invalid results."""
    result = make()
    if not isinstance(result, tuple) or len(result) not in (3, 4):
        raise DTypeError(
            f"distributed.fit: make() returned {describe_type(result)}.\n"
            "  Return (model, optimizer, loss) or (model, optimizer, loss, scheduler)."
        )
    model, optimizer, loss, *rest = result
    for name, x, expected_type in (("model", model, Module), ("optimizer", optimizer, Optimizer)):
        if not isinstance(x, expected_type):
            raise DTypeError(
                f"distributed.fit: the {name} returned by make() is {describe_type(x)}, not a {expected_type.__name__}."
            )
    parameter_ids = {id(x) for x in model.parameters()}
    if any(id(x) not in parameter_ids for x in optimizer_parameters(optimizer)):
        raise ArgumentError(
            "distributed.fit: the optimizer updates a tensor that is not a parameter of the model, so checkpoints and "
            "replicas would not include it.\n  Register it as an nn.Parameter of the model."
        )
    return model, optimizer, loss, rest[0] if rest else None


def optimizer_parameters(optimizer: Optimizer) -> list[Any]:
    """Return the parameters of an optimizer, in the order of its groups."""
    return [x for group in optimizer.param_groups for x in group["params"]]


def group_options(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the options of each parameter group, which schedulers and callbacks may change."""
    return [{name: x for name, x in group.items() if name != "params"} for group in optimizer.param_groups]


def persistent_buffers(model: Module) -> list[Any]:
    """Return the persistent buffers of a model, such as running statistics."""
    params = {id(x) for x in model.parameters()}
    return [x for part in model.modules() for x in state_tensors(part).values() if id(x) not in params]


def serialize_state(model: Module, optimizer: Optimizer) -> bytes:
    """Serialise the state dicts of a replica to bytes with `minigrad.io.save`."""
    file = io.BytesIO()
    write({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def _copy_buffers(model: Module) -> list[Array]:
    return [to_numpy(x._array).copy() for x in persistent_buffers(model)]


def write_buffers(model: Module, arrays: Sequence[Array]) -> None:
    """Copy `arrays` into the buffers of a model."""
    with no_grad():
        for x, array in zip(persistent_buffers(model), arrays, strict=True):
            x.copy_(tensor(array, dtype=x.dtype, device=x.device))


def make_batch_loader(
    dataset: Any, collate: Callable[[Any], Any] | None, device: str | None
) -> Callable[[list[int]], Any]:
    """Return a function that loads the samples at given indices onto `device`, as a batch."""
    batches: list[list[int]] = []
    loader = DataLoader(dataset, batch_sampler=batches, collate_fn=collate, device=device)

    def load_batch(indices: list[int]) -> Any:
        batches[:] = [indices]
        return next(iter(loader))

    return load_batch


@contextmanager
def _shard_random_state(generator_state: tuple[int, int], offset: int, rows: int) -> Iterator[list[int]]:
    """Context manager that sets the default generator to `generator_state`, restricted to `rows` rows of a batch,
    starting at row `offset`.

    It yields a list whose single item is the number of values drawn, set on exit.
    """
    draw_count = [0]
    seed, count = generator_state
    generator = random.default_generator.manual_seed(seed)
    generator.draw(count)
    generator.rows(offset, rows)
    try:
        yield draw_count
    finally:
        generator.rows()
        draw_count[0] = generator.draw(0)[1] - count


def make_update(optimizer: Optimizer, device: str | None, jit: bool) -> Callable[[Array, Sequence[bool]], None]:
    """Return a function that applies an optimizer step from a flat gradient. With `jit`, it is traced once per gradient
    mask."""
    params = optimizer_parameters(optimizer)

    def update(gradient: Any, has_gradient: tuple[bool, ...]) -> None:
        write_gradients(params, gradient, has_gradient)
        optimizer.step()

    compiled_update = recorded(update) if jit else update
    return lambda gradient, has_gradient: compiled_update(tensor(gradient, device=device), tuple(has_gradient))


class Replica:
    """Model replica that computes gradients of shards and applies the driver's updates."""

    def __init__(self, job: ReplicaJob) -> None:
        set_default_dtype(as_dtype(job.dtype))
        set_default_device(job.device)
        self.job = job
        self.model, self.optimizer, self.loss, _ = call_make(job.make)
        self.params = optimizer_parameters(self.optimizer)
        self.device = device_of(self.model)
        self.load_batch = make_batch_loader(job.dataset, job.collate, self.device)
        self.forward_backward = (
            recorded(self._forward_backward, state=self.model) if job.jit else self._forward_backward
        )
        self.update_step = make_update(self.optimizer, self.device, job.jit)

    def load(self, state: bytes) -> None:
        """Load the state serialised by `serialize_state`."""
        state_dicts = read(io.BytesIO(state), "numpy")
        self.model.load_state_dict(state_dicts["model"])
        self.optimizer.load_state_dict(state_dicts["optimizer"])

    def _forward_backward(self, offset: int, inputs: tuple[Any, ...], target: Any) -> tuple[Any, Any, Any]:
        """Run the forward and backward pass on rows of a batch from `offset` on, which determines the random draws.
        Return the flat gradient, the output and the loss."""
        self.optimizer.zero_grad()
        output = self.model(*inputs)
        loss = self.loss(output, target)
        loss.backward()
        return flatten_gradients(self.params), output.detach(), loss.detach()

    def gradient(self, shard: Shard) -> ShardResult:
        """Compute the gradient of the mean loss of a shard. Propagates exceptions of the dataset, model and loss."""
        mean_of, old_buffers = MetricMeans(self.job.metrics), _copy_buffers(self.model)
        micro_batches, weights = self._load_micro_batches(shard)
        total = sum(weights)
        flat_gradient: Any = None
        has_gradient = [False] * len(self.params)
        loss, draw_count, offset = 0.0, 0, shard.offset
        with training_mode(self.model, True):
            for (inputs, target, rows), weight in zip(micro_batches, weights, strict=True):
                if weight:
                    with _shard_random_state(shard.generator_state, offset, rows) as draws:
                        partial_gradient, output, batch_loss = self.forward_backward(offset, inputs, target)
                    if weight != total:
                        partial_gradient = partial_gradient * (weight / total)
                    flat_gradient = partial_gradient if flat_gradient is None else flat_gradient + partial_gradient
                    has_gradient = [
                        present or x.grad is not None for present, x in zip(has_gradient, self.params, strict=True)
                    ]
                    draw_count = max(draw_count, draws[0])
                    loss += float(batch_loss) * (weight / total)
                    mean_of.add(output, target, exclude="loss")
                offset += rows
        if flat_gradient is None:  # all weights are 0
            self.optimizer.zero_grad()
            flat_gradient = flatten_gradients(self.params)
        buffers = _copy_buffers(self.model)
        write_buffers(self.model, old_buffers)  # this replica may compute a second shard of the batch
        return ShardResult(
            to_numpy(flat_gradient._array),
            has_gradient,
            total,
            loss,
            buffers,
            len(shard.indices),
            mean_of.totals,
            draw_count,
        )

    def _load_micro_batches(self, shard: Shard) -> tuple[list[tuple[Any, Any, int]], list[float]]:
        """Load the micro-batches of a shard as (inputs, target, number of rows), and their weights in the mean."""
        count = min(self.job.micro_batches, len(shard.indices))
        bounds = [len(shard.indices) * k // count for k in range(count + 1)]
        # A dataset with random augmentation uses these generators.
        seed_all(derive_seed(derive_seed(*shard.generator_state), shard.offset))
        micro_batches, weights = [], []
        for start, end in pairwise(bounds):
            inputs, target = split_batch(self.load_batch(shard.indices[start:end]), self.device)
            micro_batches.append((inputs, target, end - start))
            weights.append(float(end - start if self.job.count_weight is None else self.job.count_weight(target)))
        return micro_batches, weights

    def apply(self, gradient: Array, update: Update) -> None:
        """Apply one optimizer step."""
        for group, options in zip(self.optimizer.param_groups, update.options, strict=True):
            group.update({name: x for name, x in options.items() if group[name] != x})
        self.update_step(gradient, update.has_gradient)
        write_buffers(self.model, update.buffers)
