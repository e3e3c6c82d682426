"""Worker processes for a loader: they get examples and make batches of them, and send those back as NumPy's arrays.

They are spawned, never forked: a copy of a process in which Taichi or a GPU runs is broken. No worker starts Taichi or
a GPU: there "cpu" means NumPy, and what a dataset computes with tensors NumPy computes. Tensors cross as arrays, and
are tensors of the default device again where they arrive. Random numbers (minigrad's, NumPy's, Python's) begin anew
with each batch, from a key of the epoch and the batch's number: so a batch is the same whichever worker makes it,
however many there are, and in a run that was resumed.

A worker ends when its pipe is closed, whatever happened on the other side; Ctrl-C is for the main process alone.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import random as python_random
import signal
import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np

from minigrad import random
from minigrad.core import storage
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.data.dataset import example, examples
from minigrad.functional.creation import tensor

__all__ = [
    "LoaderJob",
    "WorkerInfo",
    "WorkerPool",
    "batches_of",
    "example",
    "examples",
    "get_worker_info",
    "made",
    "seed_all",
    "seed_of",
]


class LoaderJob(NamedTuple):
    """What workers do: make batches of the examples of a dataset."""

    dataset: Any
    collate: Callable[[Any], Any]
    batch_size: int | None
    """How many examples of an iterable dataset make a batch; None for one at a time, not in a batch."""
    drop_last: bool
    init: Callable[[int], Any] | None
    batched: bool
    """Whether several examples are taken together: a list is then numbers of examples, and not one of them."""


class WorkerInfo(NamedTuple):
    """Which worker this process is, of how many, the seed of this epoch, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: list[WorkerInfo] = []  # of the worker that this process is


def get_worker_info() -> WorkerInfo | None:
    """In a worker process which one it is; None in the main process."""
    return _info[0] if _info else None


def seed_of(key: int, number: int) -> int:
    """The seed of batch `number` in the epoch of `key`."""
    generator = random.Generator(key)
    generator.draw(number)
    return generator.next_key()


def seed_all(seed: int) -> None:
    """Begin anew what a dataset may draw from: minigrad's default generator, Python's and NumPy's."""
    random.manual_seed(seed), python_random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 -- a reader's dataset may draw from it


# --- what crosses ----------------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Tensors as arrays; what another process could not find by its name is told here, before one is started."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor:
            array = np.ascontiguousarray(storage.host(obj._array)).reshape(obj.shape)
            return partial(tensor, requires_grad=obj.requires_grad and obj.is_leaf), (array,)
        named = getattr(obj, "__module__", None) == "__main__" and isinstance(obj, type | type(seed_of))
        if named and not getattr(sys.modules["__main__"], "__file__", None):
            raise ArgumentError(
                f"DataLoader: workers cannot find {obj.__qualname__}, which is written in this notebook or session: "
                "they are new processes, which import files.\n"
                "  Write it into a file, in a notebook by %%writefile my_data.py, and import it; or num_workers=0."
            )
        return NotImplemented


def _packed(thing: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    return buffer.getvalue()


# --- in a worker -----------------------------------------------------------------------------------------------------


def _work(number: int, count: int, payload: bytes, tasks: Connection, results: Connection) -> None:
    """All that a worker does: a task is (epoch, number of the batch, numbers of its examples or None).

    An epoch is its key, and which one it is of the pool: two that begin with the same seed have the same key.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    storage._default[:] = ["numpy"]  # as where Taichi is not installed, so that "cpu" starts none here either
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks, waiting), daemon=True).start()
    epoch, batches = None, iter(())
    job = None
    while True:
        asked, batch, indices = waiting.get()
        key = asked[0]
        try:
            if job is None:
                job = LoaderJob(*pickle.loads(payload))
                _info[:] = [WorkerInfo(number, count, seed_of(key, number), job.dataset)]
                if job.init is not None:
                    job.init(number)
            seed_all(seed_of(key, batch))
            if indices is None and asked != epoch:
                _info[:] = [_info[0]._replace(seed=seed_of(key, number))]
                epoch, batches = asked, iter(batches_of(job))
            found = next(batches, _END) if indices is None else made(job, indices)
            answer = _packed((asked, batch, "end", None) if found is _END else (asked, batch, "batch", found))
        except Exception as error:  # noqa: BLE001 -- it is raised again in the main process
            answer = _packed((asked, batch, "error", (_known(type(error)), traceback.format_exc())))
        results.send_bytes(answer)


def _known(kind: type[Exception]) -> type[Exception]:
    """The type of an exception if it can cross, else RuntimeError."""
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError):
        return RuntimeError
    return kind


def _listen(tasks: Connection, waiting: queue.SimpleQueue[Any]) -> None:
    """Take tasks out of the pipe at once, so that nobody waits for a full one; end with the main process."""
    while True:
        try:
            waiting.put(tasks.recv())
        except (EOFError, OSError):
            os._exit(0)


_END = object()


def made(job: LoaderJob, indices: Any) -> Any:
    """The batch of some examples of a dataset, or, without batches, one example."""
    if not job.batched:
        return job.collate(example(job.dataset, indices))
    return job.collate(examples(job.dataset, indices))


def batches_of(job: LoaderJob) -> Iterator[Any]:
    """The batches of an iterable dataset."""
    stream = iter(job.dataset)
    if job.batch_size is None:
        yield from map(job.collate, stream)
        return
    while batch := list(islice(stream, job.batch_size)):
        if len(batch) < job.batch_size and job.drop_last:
            return
        yield job.collate(batch)


# --- in the main process ---------------------------------------------------------------------------------------------


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """A block whose child processes begin deaf to Ctrl-C, where the system has such a thing."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """One process, the pipe of its tasks and that of its results."""

    def __init__(self, number: int, count: int, payload: bytes) -> None:
        context = get_context("spawn")
        reads, self.tasks = context.Pipe(duplex=False)
        self.results, writes = context.Pipe(duplex=False)
        self.number = number
        self.process = context.Process(
            target=_work, args=(number, count, payload, reads, writes), daemon=True, name=f"DataLoader worker {number}"
        )
        with _no_interrupts():  # a worker that is only starting would print what Ctrl-C interrupted
            self.process.start()
        reads.close()
        writes.close()

    def ask(self, task: tuple[Any, ...]) -> None:
        try:
            self.tasks.send(task)
        except OSError:
            self._ended()

    def answer(self, timeout: float) -> tuple[Any, ...]:
        if not wait([self.results, self.process.sentinel], timeout or None):
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds, waiting for worker {self.number}.")
        try:
            found: tuple[Any, ...] = pickle.loads(self.results.recv_bytes())
        except (EOFError, OSError):
            self._ended()
        return found

    def _ended(self) -> Any:
        self.process.join()
        raise RuntimeError(
            f"DataLoader worker {self.number} (pid {self.process.pid}) exited unexpectedly, with code "
            f"{self.process.exitcode}.\n"
            "  If it is told above that a new process was started too early: begin what your script does by\n"
            '  if __name__ == "__main__":\n'
            "  since each worker imports the script. A negative code is a signal: -9 mostly means too little memory.\n"
            "  num_workers=0 shows more."
        ) from None

    def close(self) -> None:
        self.tasks.close()
        self.results.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class WorkerPool:
    """Some workers, of which each makes every n-th batch. `run` gives the batches in order; `close` ends them."""

    def __init__(self, job: LoaderJob, count: int, prefetch: int, timeout: float) -> None:
        try:
            payload = _packed(tuple(job))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"DataLoader: what workers need cannot be sent to them: {error}\n"
                "  Functions and classes must stand at the top of a file, not inside another function or as a lambda; "
                "or write num_workers=0."
            ) from error
        self._prefetch, self._timeout = prefetch, timeout
        self._workers: list[_Worker] = []
        self.busy, self._epochs = False, 0
        self.close = weakref.finalize(self, _end, self._workers)
        """End the processes, whatever they are doing; so does whoever forgets the pool, and the end of the program."""
        try:
            for number in range(count):
                self._workers.append(_Worker(number, count, payload))
        except BaseException:
            self.close()
            raise

    def run(self, key: int, batches: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        """The batches of one epoch, in order, of their numbers and the numbers of their examples."""
        turn, asked = deque(self._workers), deque[tuple[_Worker, int]]()
        self._epochs += 1
        epoch = key, self._epochs

        def ask() -> None:
            if turn and (task := next(batches, None)) is not None:
                turn[0].ask((epoch, *task))
                asked.append((turn[0], task[0]))
                turn.rotate(-1)

        for _ in range(self._prefetch * len(self._workers)):
            ask()
        while asked:
            worker, number = asked.popleft()
            answer: tuple[Any, ...] = (None, None)
            while answer[:2] != (epoch, number):  # an epoch that was left early has answers under way
                answer = worker.answer(self._timeout)
            _, _, kind, found = answer
            if kind == "error":
                raise _raised(worker.number, *found)
            if kind == "end":
                if worker in turn:
                    turn.remove(worker)
                continue
            ask()
            yield found


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.close()


def _raised(number: int, kind: type[Exception], trace: str) -> Exception:
    """The exception of a worker, of its type where that can be made of a text, with the traceback from there."""
    message = f"Caught {kind.__name__} in DataLoader worker process {number}.\nOriginal {trace}"
    try:
        return kind(message)
    except Exception:  # noqa: BLE001 -- an exception of somebody's own may need anything
        return RuntimeError(message)
