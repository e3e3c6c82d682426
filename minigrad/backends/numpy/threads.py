"""Multithreading. NumPy multiplies matrices on all cores, but copies and adds arrays on one core."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from minigrad.core.packages import import_package

__all__ = ["parallel_for"]

limit_lock = Lock()  # held while the process-wide number of BLAS threads is lowered
MIN_ELEMENTS = 2**17  # minimum number of elements for which starting threads, about 50 µs, is worthwhile


@cache
def _blas() -> Any:
    return import_package("threadpoolctl", "BLAS threads").ThreadpoolController().select(user_api="blas")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="minigrad")


def parallel_for(work: Callable[[slice], None], count: int, elements: int) -> None:
    """Split range(count) into one slice, or into one per BLAS thread, and call work(part) for each slice.

    Each slice runs in its own thread, with BLAS limited to one thread. `elements` is the total number of elements. The
    partition, and therefore the rounding of partial sums, depends only on the number of threads.
    """
    with limit_lock:
        threads = min(count, max((library["num_threads"] for library in _blas().info()), default=1))
        if threads >= 2 and elements >= MIN_ELEMENTS:
            ends = [count * k // threads for k in range(threads + 1)]
            parts = [slice(*pair) for pair in pairwise(ends)]
            with _blas().limit(limits=1):
                futures = [_pool(threads).submit(contextvars.copy_context().run, work, part) for part in parts[1:]]
                work(parts[0])
                for future in futures:
                    future.result()
            return
    work(slice(0, count))
