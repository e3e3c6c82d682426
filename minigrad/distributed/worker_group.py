"""Driver side of distributed training: the pool of Ray actors, its tasks, and recovery from worker failures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from minigrad.core.errors import WorkerError
from minigrad.distributed.flat_gradients import Array
from minigrad.distributed.replica import Replica, ReplicaJob, Shard, ShardResult, Update

__all__ = ["ReplicaActor", "WorkerGroup", "WorkerHandle"]


MAX_INLINE_BYTES = (
    90_000  # maximum number of bytes that Ray sends inline; larger arrays are put once into its object store
)


class ReplicaActor:
    """Ray actor that runs a replica. After a restart by Ray, it has no state, and its step is -1."""

    def __init__(self, threads: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C and stops the workers
        os.environ["TI_CPU_MAX_NUM_THREADS"] = str(threads)  # Taichi ignores Ray's OMP_NUM_THREADS
        self.step = -1
        self.replica: Replica | None = None

    def current_step(self) -> int:
        """Return the number of updates applied, or -1 if no state has been loaded."""
        return self.step

    def load(self, job: ReplicaJob, state: bytes, step: int) -> int:
        """Load the state of step `step`. Creating the replica here propagates exceptions of `make` to the driver."""
        if self.replica is None:
            self.replica = Replica(job)
        self.replica.load(state)
        self.step = step
        return step

    def gradient(self, step: int, shard: Shard) -> ShardResult | None:
        """Return the gradient of a shard, or None if the replica is not at step `step`."""
        return self.replica.gradient(shard) if self.replica is not None and self.step == step else None

    def apply(self, step: int, gradient: Array, update: Update) -> int:
        """Apply an update if the replica is at step `step`. Return the resulting step of the replica."""
        if self.replica is not None and self.step == step:
            self.replica.apply(gradient, update)
            self.step += 1
        return self.step


class WorkerHandle:
    """Handle of a worker on the driver, with its rank, its actor, and the future of its pending start or load."""

    def __init__(self, rank: int, actor: Any) -> None:
        self.rank, self.actor = rank, actor
        self.pending: Any = None  # future while the worker is (re)starting or loading its state, otherwise None
        self.is_loading = False  # whether `pending` is the future of load(), rather than of a start


class WorkerGroup:
    """Context manager that starts and stops `count` workers. `serialize_state` serialises the driver's replica.

    Raises WorkerError if no worker is available for `patience` seconds, or if a worker exceeds its number of restarts.
    """

    def __init__(
        self,
        ray: Any,
        job: ReplicaJob,
        count: int,
        options: dict[str, Any],
        restarts: int,
        patience: float,
        serialize_state: Callable[[], bytes],
    ) -> None:
        self.ray, self.patience, self.serialize_state, self.restarts = ray, patience, serialize_state, restarts
        self.step = 0
        self._state_ref: tuple[int, Any] = (-1, None)
        actor = ray.remote(**options, max_restarts=restarts)(ReplicaActor)
        self.job, threads = ray.put(job), max(1, int(options["num_cpus"]))
        self.handles = [WorkerHandle(rank, actor.remote(threads)) for rank in range(count)]

    def __enter__(self) -> WorkerGroup:
        for handle in self.handles:
            self._expect_start(handle)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for handle in self.handles:
            self.ray.kill(handle.actor, no_restart=True)

    def gradients(self, shards: Sequence[Shard]) -> list[ShardResult]:
        """Return the gradients of the shards of a batch, in order. Propagates exceptions of the workers."""
        results: dict[int, ShardResult] = {}
        while missing := [rank for rank in range(len(shards)) if rank not in results]:
            available = self._available_workers()
            by_rank = {handle.rank: handle for handle in available}
            tasks = []
            for k, rank in enumerate(missing):
                handle = by_rank.get(rank, available[k % len(available)])
                tasks.append((rank, handle, handle.actor.gradient.remote(self.step, shards[rank])))
            for rank, handle, future in tasks:
                result = self._get_result(
                    handle, future, f"computing the gradient of samples {_format_indices(shards[rank].indices)}"
                )
                if result is not None:
                    results[rank] = result
                elif handle.pending is None:  # the worker has restarted without the current state
                    self._expect_start(handle)
        return [results[rank] for rank in range(len(shards))]

    def apply(self, gradient: Array, update: Update) -> None:
        """Apply an update on every replica asynchronously; each actor executes its tasks in order."""
        gradient_ref = self.ray.put(gradient) if gradient.nbytes > MAX_INLINE_BYTES else gradient
        for handle in self.handles:
            if handle.pending is None or handle.is_loading:  # the actor runs this after a pending load()
                handle.actor.apply.remote(self.step, gradient_ref, update)
        self.step += 1

    # --- starts and restarts ---

    def _available_workers(self) -> list[WorkerHandle]:
        """Return the workers that have the current state, waiting until at least one is available."""
        while True:
            self._restore_workers(0)
            available = [handle for handle in self.handles if handle.pending is None]
            if available:
                return available
            self._restore_workers(self.patience)

    def _restore_workers(self, seconds: float) -> None:
        """Send the current state to workers that become available within `seconds`."""
        pending = {handle.pending: handle for handle in self.handles if handle.pending is not None}
        if not pending:
            return
        ready, _ = self.ray.wait(list(pending), num_returns=1 if seconds else len(pending), timeout=seconds)
        if seconds and not ready:
            raise self._timeout_error(seconds)
        for future in ready:
            handle = pending[future]
            if not handle.is_loading and self._started_step(handle) != self.step:
                handle.pending, handle.is_loading = (
                    handle.actor.load.remote(self.job, self._put_state(), self.step),
                    True,
                )
            elif not handle.is_loading or self._get_result(handle, future, "creating its replica") is not None:
                handle.pending, handle.is_loading = None, False

    def _put_state(self) -> Any:
        """Put the driver's state into the object store, once per step, and return a reference to it."""
        if self._state_ref[0] != self.step:
            self._state_ref = self.step, self.ray.put(self.serialize_state())
        return self._state_ref[1]

    def _expect_start(self, handle: WorkerHandle) -> None:
        """Mark a worker as starting. Its pending future completes when Ray has (re)started the actor."""
        handle.is_loading, handle.pending = False, handle.actor.current_step.options(max_task_retries=-1).remote()

    def _started_step(self, handle: WorkerHandle) -> int:
        try:
            return int(self.ray.get(handle.pending))
        except self.ray.exceptions.RayError as error:
            raise WorkerError(
                f"distributed.fit: worker {handle.rank} died after {self.step} steps and exceeded its {self.restarts} "
                f"restarts.\n  Ray reports: {_shorten(error)}\n"
                "  The most frequent cause is running out of memory: use smaller shards, or accumulate=2."
            ) from None

    def _get_result(self, handle: WorkerHandle, future: Any, task: str) -> Any:
        """Return the result of a task, or None if the worker died and restarts. Propagates exceptions of the task."""
        try:
            return self.ray.get(future)
        except self.ray.exceptions.RayTaskError as error:
            raise _annotate_exception(error, handle.rank, task) from None
        except self.ray.exceptions.RayError:
            self._expect_start(handle)
            return None

    def _timeout_error(self, seconds: float) -> WorkerError:
        cluster_resources = {
            name: x for name, x in self.ray.cluster_resources().items() if not name.startswith(("node:", "object"))
        }
        return WorkerError(
            f"distributed.fit: none of {len(self.handles)} workers became available within {seconds:g} s, after "
            f"{self.step} steps; the cluster has {cluster_resources}.\n"
            "  Request fewer workers or resources=, or raise patience=."
        )


def _annotate_exception(error: Any, rank: int, task: str) -> BaseException:
    """Return the original exception of a worker, with a note about where it was raised."""
    cause: BaseException = getattr(error, "cause", error)
    cause.add_note(f"Raised by worker {rank} while {task}:\n{error}")
    return cause


def _format_indices(indices: Sequence[int]) -> str:
    shown = ", ".join(map(str, indices[:4]))
    return shown if len(indices) <= 4 else f"{shown} … ({len(indices)})"


def _shorten(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:300]
