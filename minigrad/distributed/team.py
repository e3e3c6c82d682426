"""The driver's side: workers that are actors of Ray's, what they are asked, and what happens when one dies."""

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


WITHIN = 90_000  # bytes that Ray sends within a message; more is put into its store, once for all workers


class Worker:
    """What runs in a worker's process. Ray makes it anew when it died: then it knows no step, and says so."""

    def __init__(self, threads: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which ends the workers
        os.environ["TI_CPU_MAX_NUM_THREADS"] = str(threads)  # Ray has told NumPy's libraries
        self.step = -1
        self.replica: Replica | None = None

    def at(self) -> int:
        """How many steps it has made, -1 if it has no state."""
        return self.step

    def load(self, job: ReplicaJob, state: bytes, step: int) -> int:
        """Be at a step; made here, so that what `make` raises comes to the driver as it is."""
        if self.replica is None:
            self.replica = Replica(job)
        self.replica.load(state)
        self.step = step
        return step

    def gradient(self, step: int, asked: Asked) -> Answer | None:
        """The gradient of a shard at a step; None where it is not at that step."""
        return self.replica.gradient(asked) if self.replica is not None and self.step == step else None

    def apply(self, step: int, gradient: Array, update: Update) -> int:
        """Make a step, from `step` on; returns where it is then."""
        if self.replica is not None and self.step == step:
            self.replica.apply(gradient, update)
            self.step += 1
        return self.step


class Seat:
    """A worker as the driver knows it: its actor, and what is under way there."""

    def __init__(self, rank: int, actor: Any) -> None:
        self.rank, self.actor = rank, actor
        self.back: Any = None  # what is awaited of a worker that is being started, or started again
        self.loading = False  # whether that is to have its state, or still to be there at all


class Team:
    """`count` workers of a job, between `with` and its end. `state` packs the driver's replica.

    Raises WorkerError where no worker comes, or comes back, in `patience` seconds, or one was restarted so often that
    Ray gives it up.
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
        """What the shards of a batch give, in their order. Raises what one of them raised."""
        found: dict[int, Answer] = {}
        while missing := [rank for rank in range(len(shards)) if rank not in found]:
            there = self._there()
            by_rank = {seat.rank: seat for seat in there}
            asked = []
            for k, rank in enumerate(missing):
                seat = by_rank.get(rank, there[k % len(there)])
                asked.append((rank, seat, seat.actor.gradient.remote(self.step, shards[rank])))
            for rank, seat, promise in asked:
                answer = self._got(seat, promise, f"computing the gradient of examples {_listed(shards[rank].numbers)}")
                if answer is not None:
                    found[rank] = answer
                elif seat.back is None:  # alive, and without this step's state
                    self._await(seat)
        return [found[rank] for rank in range(len(shards))]

    def apply(self, gradient: Array, update: Update) -> None:
        """Let every replica make a step. Nobody waits for it: what comes next is done after it."""
        given = self.ray.put(gradient) if gradient.nbytes > WITHIN else gradient
        for seat in self.seats:
            if seat.back is None or seat.loading:  # what loads a state makes the steps after it, in their order
                seat.actor.apply.remote(self.step, given, update)
        self.step += 1

    # --- workers that come and go ---

    def _there(self) -> list[Seat]:
        """The workers that are at this step, with those that have come back; waits for one if there is none."""
        while True:
            self._welcome(0)
            there = [seat for seat in self.seats if seat.back is None]
            if there:
                return there
            self._welcome(self.patience)

    def _welcome(self, seconds: float) -> None:
        """Give those that come within so many seconds the state that they lack."""
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
            elif not seat.loading or self._got(seat, promise, "making its replica") is not None:
                seat.back, seat.loading = None, False

    def _state(self) -> Any:
        """The driver's state at this step, put into the store once for all that need it."""
        if self._packed[0] != self.step:
            self._packed = self.step, self.ray.put(self.state())
        return self._packed[1]

    def _await(self, seat: Seat) -> None:
        """Wait, without stopping for it, until Ray has (re)started a worker."""
        seat.loading, seat.back = False, seat.actor.at.options(max_task_retries=-1).remote()

    def _returned(self, seat: Seat) -> int:
        try:
            return int(self.ray.get(seat.back))
        except self.ray.exceptions.RayError as error:
            raise WorkerError(
                f"distributed.fit: worker {seat.rank} died, and was started again {self.restarts} times before, after "
                f"{self.step} steps.\n  Ray says of it: {_short(error)}\n"
                "  Too little memory is the most frequent reason: give it smaller shards, or accumulate=2."
            ) from None

    def _got(self, seat: Seat, promise: Any, what: str) -> Any:
        """What a worker answers; None where it died, which is then awaited. Raises what was raised there."""
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
            f"distributed.fit: in {seconds:g} s none of {len(self.seats)} workers came, after {self.step} steps; the "
            f"cluster has {has}.\n  Ask for fewer workers, or for less by resources=; or wait longer, by patience=."
        )


def _raised(error: Any, rank: int, what: str) -> BaseException:
    """The exception of a worker, as it was raised there, with where that was."""
    cause: BaseException = getattr(error, "cause", error)
    cause.add_note(f"It was raised by worker {rank}, {what}:\n{error}")
    return cause


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:4]))
    return shown if len(numbers) <= 4 else f"{shown} … ({len(numbers)})"


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:300]
