"""Worker processes of a DataLoader: fetch samples, collate them, and send the batches back as NumPy arrays.

Workers are spawned, never forked, as Taichi and GPU runtimes do not survive a fork. No worker initialises Taichi or a
GPU: in a worker, "cpu" means NumPy, which executes all tensor operations of a dataset. Tensors are sent as arrays and
become tensors on the default device in the receiving process. minigrad's, NumPy's and Python's generators are reseeded
for every batch from the epoch key and the batch index, so a batch does not depend on which worker loads it, on the
number of workers, or on resuming.

A worker exits when its task pipe is closed for any reason. Only the main process handles Ctrl-C.
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minigrad import random
from minigrad.core import storage
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.data.dataset import fetch_sample, fetch_samples
from minigrad.functional.creation import tensor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = [
    "LoaderJob",
    "WorkerInfo",
    "WorkerPool",
    "derive_seed",
    "fetch_sample",
    "fetch_samples",
    "get_worker_info",
    "iterate_batches",
    "load_batch",
    "seed_all",
]


class LoaderJob(NamedTuple):
    """The dataset and the options that a worker needs to fetch and collate samples."""

    dataset: Any
    collate: Callable[[Any], Any]
    batch_size: int | None
    """The batch size for an iterable-style dataset; None disables automatic batching."""
    drop_last: bool
    worker_init_fn: Callable[[int], Any] | None
    batched: bool
    """Whether automatic batching is enabled. If so, a task contains a list of indices, otherwise a single index."""


class WorkerInfo(NamedTuple):
    """Information about a worker process: its id, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: list[WorkerInfo] = []  # empty in the main process


def get_worker_info() -> WorkerInfo | None:
    """Return the `WorkerInfo` of this worker process, or None in the main process."""
    return _worker_info[0] if _worker_info else None


def derive_seed(key: int, index: int) -> int:
    """Return the seed of batch `index` in the epoch with key `key`."""
    generator = random.Generator(key)
    generator.draw(index)
    return generator.next_key()


def seed_all(seed: int) -> None:
    """Seed minigrad's default generator and the global generators of Python and NumPy."""
    random.manual_seed(seed), python_random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 -- user-defined datasets may use the global generator


# --- serialisation ---------------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Pickler that serialises tensors as arrays, and raises ArgumentError for objects that a worker cannot import."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor:
            array = np.ascontiguousarray(storage.to_numpy(obj._array)).reshape(obj.shape)
            return partial(tensor, requires_grad=obj.requires_grad and obj.is_leaf), (array,)
        is_main_definition = getattr(obj, "__module__", None) == "__main__" and isinstance(
            obj, type | type(derive_seed)
        )
        if is_main_definition and not getattr(sys.modules["__main__"], "__file__", None):
            raise ArgumentError(
                f"DataLoader: workers cannot import {obj.__qualname__}, which is defined in this notebook or session: "
                "they are spawned processes, which import modules from files.\n"
                "  Move it to a file (%%writefile my_data.py in a notebook) and import it, or set num_workers=0."
            )
        return NotImplemented


def _serialize(obj: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(obj)
    return buffer.getvalue()


# --- in a worker -----------------------------------------------------------------------------------------------------


def _worker_loop(worker_id: int, num_workers: int, payload: bytes, tasks: Connection, results: Connection) -> None:
    """Run the main loop of a worker. A task is a tuple (epoch, batch index, sample indices or None).

    An epoch is identified by its key and its index in the pool, because epochs with the same seed have the same key.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    storage._default[:] = ["numpy"]  # "cpu" becomes an alias of "numpy", so that Taichi is not initialised
    task_queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_drain_tasks, args=(tasks, task_queue), daemon=True).start()
    epoch, batches = None, iter(())
    job = None
    while True:
        task_epoch, batch_index, indices = task_queue.get()
        key = task_epoch[0]
        try:
            if job is None:
                job = LoaderJob(*pickle.loads(payload))
                _worker_info[:] = [WorkerInfo(worker_id, num_workers, derive_seed(key, worker_id), job.dataset)]
                if job.worker_init_fn is not None:
                    job.worker_init_fn(worker_id)
            seed_all(derive_seed(key, batch_index))
            if indices is None and task_epoch != epoch:
                _worker_info[:] = [_worker_info[0]._replace(seed=derive_seed(key, worker_id))]
                epoch, batches = task_epoch, iter(iterate_batches(job))
            result = next(batches, _END) if indices is None else load_batch(job, indices)
            message = _serialize(
                (task_epoch, batch_index, "end", None) if result is _END else (task_epoch, batch_index, "batch", result)
            )
        except Exception as error:  # noqa: BLE001 -- re-raised in the main process
            message = _serialize(
                (task_epoch, batch_index, "error", (_picklable_type(type(error)), traceback.format_exc()))
            )
        results.send_bytes(message)


def _picklable_type(exception_type: type[Exception]) -> type[Exception]:
    """Return `exception_type` if it can be pickled, else RuntimeError."""
    try:
        pickle.dumps(exception_type)
    except (pickle.PicklingError, AttributeError):
        return RuntimeError
    return exception_type


def _drain_tasks(tasks: Connection, task_queue: queue.SimpleQueue[Any]) -> None:
    """Drain the task pipe, so that the sender never blocks on a full pipe. Exit when the main process exits."""
    while True:
        try:
            task_queue.put(tasks.recv())
        except (EOFError, OSError):
            os._exit(0)


_END = object()


def load_batch(job: LoaderJob, indices: Any) -> Any:
    """Fetch and collate the samples at `indices`, or the single sample if automatic batching is disabled."""
    if not job.batched:
        return job.collate(fetch_sample(job.dataset, indices))
    return job.collate(fetch_samples(job.dataset, indices))


def iterate_batches(job: LoaderJob) -> Iterator[Any]:
    """Iterate over the batches of an iterable-style dataset."""
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
def _block_sigint() -> Iterator[None]:
    """Context manager in which child processes start with SIGINT blocked. It has no effect on Windows."""
    if sys.platform == "win32":
        yield
        return
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


class _Worker:
    """A worker process with its task pipe and result pipe."""

    def __init__(self, worker_id: int, count: int, payload: bytes) -> None:
        from multiprocessing import get_context  # imported lazily: Pyodide need not have all of it

        context = get_context("spawn")
        task_reader, self.tasks = context.Pipe(duplex=False)
        self.results, result_writer = context.Pipe(duplex=False)
        self.worker_id = worker_id
        self.process = context.Process(
            target=_worker_loop,
            args=(worker_id, count, payload, task_reader, result_writer),
            daemon=True,
            name=f"DataLoader worker {worker_id}",
        )
        with _block_sigint():  # otherwise Ctrl-C during start-up prints a traceback
            self.process.start()
        task_reader.close()
        result_writer.close()

    def submit(self, task: tuple[Any, ...]) -> None:
        try:
            self.tasks.send(task)
        except OSError:
            self._raise_exited()

    def receive(self, timeout: float) -> tuple[Any, ...]:
        from multiprocessing.connection import wait

        if not wait([self.results, self.process.sentinel], timeout or None):
            raise RuntimeError(
                f"DataLoader timed out after {timeout} seconds while waiting for worker {self.worker_id}."
            )
        try:
            message: tuple[Any, ...] = pickle.loads(self.results.recv_bytes())
        except (EOFError, OSError):
            self._raise_exited()
        return message

    def _raise_exited(self) -> Any:
        self.process.join()
        raise RuntimeError(
            f"DataLoader worker {self.worker_id} (pid {self.process.pid}) exited unexpectedly with exit code "
            f"{self.process.exitcode}.\n"
            "  If the output above mentions the bootstrapping phase, guard the main code of your script with\n"
            '  if __name__ == "__main__":\n'
            "  as each worker imports the script. A negative code is a signal; -9 usually means out of memory.\n"
            "  Set num_workers=0 for a full traceback."
        ) from None

    def close(self) -> None:
        self.tasks.close()
        self.results.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class WorkerPool:
    """A pool of n workers, each of which loads every n-th batch.

    `run` yields the batches in order; `close` stops the workers.
    """

    def __init__(self, job: LoaderJob, count: int, prefetch: int, timeout: float) -> None:
        if sys.platform in ("emscripten", "wasi"):
            raise ArgumentError(f"DataLoader: num_workers={count}, but a page starts no processes: set num_workers=0.")
        try:
            payload = _serialize(tuple(job))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"DataLoader: cannot pickle the dataset or functions for the workers: {error}\n"
                "  Define functions and classes at module level, not inside a function or as a lambda, "
                "or set num_workers=0."
            ) from error
        self._prefetch, self._timeout = prefetch, timeout
        self._workers: list[_Worker] = []
        self.is_busy, self._epoch_count = False, 0
        self.close = weakref.finalize(self, _terminate_workers, self._workers)
        """Terminate the processes; also called when the pool is garbage-collected and at interpreter exit."""
        try:
            for worker_index in range(count):
                self._workers.append(_Worker(worker_index, count, payload))
        except BaseException:
            self.close()
            raise

    def run(self, key: int, batches: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        """Yield the batches of one epoch in order. `batches` yields pairs of a batch index and its sample indices."""
        active_workers, in_flight = deque(self._workers), deque[tuple[_Worker, int]]()
        self._epoch_count += 1
        epoch = key, self._epoch_count

        def submit_next() -> None:
            if active_workers and (task := next(batches, None)) is not None:
                active_workers[0].submit((epoch, *task))
                in_flight.append((active_workers[0], task[0]))
                active_workers.rotate(-1)

        for _ in range(self._prefetch * len(self._workers)):
            submit_next()
        while in_flight:
            worker, batch_index = in_flight.popleft()
            message: tuple[Any, ...] = (None, None)
            while message[:2] != (epoch, batch_index):  # discard results of an epoch that was left early
                message = worker.receive(self._timeout)
            _, _, kind, result = message
            if kind == "error":
                raise _rebuild_exception(worker.worker_id, *result)
            if kind == "end":
                if worker in active_workers:
                    active_workers.remove(worker)
                continue
            submit_next()
            yield result


def _terminate_workers(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.close()


def _rebuild_exception(worker_id: int, exception_type: type[Exception], traceback_text: str) -> Exception:
    """Return an exception with the worker's traceback as its message. It has type `exception_type`, or RuntimeError if
    that type does not accept a message."""
    message = f"Caught {exception_type.__name__} in DataLoader worker process {worker_id}.\nOriginal {traceback_text}"
    try:
        return exception_type(message)
    except Exception:  # noqa: BLE001 -- the constructor of a custom exception may need other arguments
        return RuntimeError(message)
