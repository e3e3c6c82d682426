"""Multithreading. NumPy multiplies matrices on all cores, but copies and adds arrays on one core."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from threading import Barrier, Lock
from typing import Any

from minigrad.core.packages import import_package

__all__ = ["parallel_for"]

limit_lock = Lock()  # held while the process-wide number of BLAS threads is lowered
MIN_ELEMENTS = 2**17  # minimum number of elements for which starting threads, about 50 µs, is worthwhile


@cache
def _blas() -> Any:
    """Return the controller of BLAS's threads, None without threadpoolctl, which Pyodide need not have."""
    if find_spec("threadpoolctl") is None:
        return None
    return import_package("threadpoolctl", "BLAS threads").ThreadpoolController().select(user_api="blas")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Start a pool of threads. Raises RuntimeError if the system cannot start that many: Pyodide has no threads."""
    pool, all_started = ThreadPoolExecutor(threads, thread_name_prefix="minigrad"), Barrier(threads + 1)
    try:
        for _ in range(threads):
            pool.submit(all_started.wait)
    except RuntimeError:
        all_started.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    all_started.wait()
    return pool


def _available_threads() -> int:
    """Return the number of BLAS's threads, and 1 if no other thread can be started."""
    blas = _blas()
    threads: int = max((library["num_threads"] for library in blas.info()), default=1) if blas else 1
    try:
        if threads > 1:
            _pool(threads - 1)
    except RuntimeError:
        return 1
    return threads


def parallel_for(work: Callable[[slice], None], count: int, elements: int) -> None:
    """Split range(count) into one slice, or into one per BLAS thread, and call work(part) for each slice.

    Each slice runs in its own thread, with BLAS limited to one thread. `elements` is the total number of elements. The
    partition, and therefore the rounding of partial sums, depends only on the number of threads. Where no thread can be
    started, or threadpoolctl is missing, the calling thread works alone.
    """
    with limit_lock:
        available = _available_threads() if elements >= MIN_ELEMENTS else 1
        threads = min(count, available)
        if threads >= 2:
            pool = _pool(available - 1)
            ends = [count * k // threads for k in range(threads + 1)]
            parts = [slice(*pair) for pair in pairwise(ends)]
            with _blas().limit(limits=1):
                futures = [pool.submit(contextvars.copy_context().run, work, part) for part in parts[1:]]
                work(parts[0])
                for future in futures:
                    future.result()
            return
    work(slice(0, count))
