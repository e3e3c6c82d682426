"""Driver side of distributed training: the pool of Ray actors, its tasks, and recovery from worker failures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from minigrad.core.errors import WorkerError
from minigrad.distributed.flat import Array
from minigrad.distributed.replica import Answer, Asked, Replica, ReplicaJob, Update

__all__ = ["Seat", "Team", "Worker"]


WITHIN = 90_000  # bytes that Ray sends inline; larger arrays are put once into its object store for all workers


class Worker:
    """Ray actor that holds a replica. After a restart by Ray it has no state, and its step is -1."""

    def __init__(self, threads: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the driver handles Ctrl-C, and stops the workers
        os.environ["TI_CPU_MAX_NUM_THREADS"] = str(threads)  # Taichi ignores Ray's OMP_NUM_THREADS
        self.step = -1
        self.replica: Replica | None = None

    def at(self) -> int:
        """Return the number of steps applied, or -1 without a state."""
        return self.step

    def load(self, job: ReplicaJob, state: bytes, step: int) -> int:
        """Load the state of `step`. The replica is created here, so that exceptions of `make` reach the driver."""
        if self.replica is None:
            self.replica = Replica(job)
        self.replica.load(state)
        self.step = step
        return step

    def gradient(self, step: int, asked: Asked) -> Answer | None:
        """Compute the gradient of a shard, or return None if the replica is not at `step`."""
        return self.replica.gradient(asked) if self.replica is not None and self.step == step else None

    def apply(self, step: int, gradient: Array, update: Update) -> int:
        """Apply an update if the replica is at `step`; return its step afterwards."""
        if self.replica is not None and self.step == step:
            self.replica.apply(gradient, update)
            self.step += 1
        return self.step


class Seat:
    """The driver's record of a worker: its rank, its actor, and its pending start or state transfer."""

    def __init__(self, rank: int, actor: Any) -> None:
        self.rank, self.actor = rank, actor
        self.back: Any = None  # future of a worker that is (re)starting or loading its state, else None
        self.loading = False  # whether `back` awaits the state, not the start


class Team:
    """Context manager for `count` workers. `state` serialises the driver's replica.

    Raises WorkerError if no worker is available for `patience` seconds, or if one exceeds its restarts.
    """

    def __init__(
        self,
        ray: Any,
        job: ReplicaJob,
        count: int,
        options: dict[str, Any],
        restarts: int,
        patience: float,
        state: Callable[[], bytes],
    ) -> None:
        self.ray, self.patience, self.state, self.restarts = ray, patience, state, restarts
        self.step = 0
        self._packed: tuple[int, Any] = (-1, None)
        actor = ray.remote(**options, max_restarts=restarts)(Worker)
        self.job, threads = ray.put(job), max(1, int(options["num_cpus"]))
        self.seats = [Seat(rank, actor.remote(threads)) for rank in range(count)]

    def __enter__(self) -> Team:
        for seat in self.seats:
            self._await(seat)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for seat in self.seats:
            self.ray.kill(seat.actor, no_restart=True)

    def gradients(self, shards: Sequence[Asked]) -> list[Answer]:
        """Compute the gradients of all shards of a batch, in order. Propagates the exceptions of shards."""
        found: dict[int, Answer] = {}
        while missing := [rank for rank in range(len(shards)) if rank not in found]:
            there = self._there()
            by_rank = {seat.rank: seat for seat in there}
            asked = []
            for k, rank in enumerate(missing):
                seat = by_rank.get(rank, there[k % len(there)])
                asked.append((rank, seat, seat.actor.gradient.remote(self.step, shards[rank])))
            for rank, seat, promise in asked:
                answer = self._got(seat, promise, f"computing the gradient of samples {_listed(shards[rank].numbers)}")
                if answer is not None:
                    found[rank] = answer
                elif seat.back is None:  # restarted, so it lacks the state of this step
                    self._await(seat)
        return [found[rank] for rank in range(len(shards))]

    def apply(self, gradient: Array, update: Update) -> None:
        """Apply an update on every replica, asynchronously: an actor executes its tasks in order."""
        given = self.ray.put(gradient) if gradient.nbytes > WITHIN else gradient
        for seat in self.seats:
            if seat.back is None or seat.loading:  # tasks queued behind load() run after it
                seat.actor.apply.remote(self.step, given, update)
        self.step += 1

    # --- starts and restarts ---

    def _there(self) -> list[Seat]:
        """Return the workers at the current step, including restarted ones; wait if none is available."""
        while True:
            self._welcome(0)
            there = [seat for seat in self.seats if seat.back is None]
            if there:
                return there
            self._welcome(self.patience)

    def _welcome(self, seconds: float) -> None:
        """Send the current state to workers that become available within `seconds`."""
        waiting = {seat.back: seat for seat in self.seats if seat.back is not None}
        if not waiting:
            return
        ready, _ = self.ray.wait(list(waiting), num_returns=1 if seconds else len(waiting), timeout=seconds)
        if seconds and not ready:
            raise self._missed(seconds)
        for promise in ready:
            seat = waiting[promise]
            if not seat.loading and self._returned(seat) != self.step:
                seat.back, seat.loading = seat.actor.load.remote(self.job, self._state(), self.step), True
            elif not seat.loading or self._got(seat, promise, "creating its replica") is not None:
                seat.back, seat.loading = None, False

    def _state(self) -> Any:
        """Return a reference to the driver's state at this step, put into the object store once."""
        if self._packed[0] != self.step:
            self._packed = self.step, self.ray.put(self.state())
        return self._packed[1]

    def _await(self, seat: Seat) -> None:
        """Mark a worker as starting; the future resolves when Ray has (re)started it."""
        seat.loading, seat.back = False, seat.actor.at.options(max_task_retries=-1).remote()

    def _returned(self, seat: Seat) -> int:
        try:
            return int(self.ray.get(seat.back))
        except self.ray.exceptions.RayError as error:
            raise WorkerError(
                f"distributed.fit: worker {seat.rank} died after {self.step} steps and exceeded its {self.restarts} "
                f"restarts.\n  Ray reports: {_short(error)}\n"
                "  The most frequent cause is running out of memory: use smaller shards, or accumulate=2."
            ) from None

    def _got(self, seat: Seat, promise: Any, what: str) -> Any:
        """Return the result of a task, or None if the worker died and is restarting. Propagates its exceptions."""
        try:
            return self.ray.get(promise)
        except self.ray.exceptions.RayTaskError as error:
            raise _raised(error, seat.rank, what) from None
        except self.ray.exceptions.RayError:
            self._await(seat)
            return None

    def _missed(self, seconds: float) -> WorkerError:
        has = {name: x for name, x in self.ray.cluster_resources().items() if not name.startswith(("node:", "object"))}
        return WorkerError(
            f"distributed.fit: none of {len(self.seats)} workers became available within {seconds:g} s, after "
            f"{self.step} steps; the cluster has {has}.\n"
            "  Request fewer workers or resources=, or raise patience=."
        )


def _raised(error: Any, rank: int, what: str) -> BaseException:
    """Return the original exception of a worker, with a note about where it was raised."""
    cause: BaseException = getattr(error, "cause", error)
    cause.add_note(f"Raised by worker {rank} while {what}:\n{error}")
    return cause


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:4]))
    return shown if len(numbers) <= 4 else f"{shown} … ({len(numbers)})"


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:300]
