"""Work shared among threads. NumPy multiplies matrices on all cores, but copies and adds on one."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from minigrad.core.packages import package

__all__ = ["shared"]

limit_lock = Lock()  # held while the number of BLAS threads, one for the process, is lowered
WORTH = 2**17  # numbers to go through from which on starting threads, some 50 µs, is worth it


@cache
def _blas() -> Any:
    return package("threadpoolctl", "threads of BLAS").ThreadpoolController().select(user_api="blas")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="minigrad")


def shared(work: Callable[[slice], None], count: int, numbers: int) -> None:
    """Call work(part) for parts that together are range(count): one, or as many as BLAS may use threads.

    Each runs in a thread, in which BLAS then uses that one only. `numbers` says how much there is to do in all. The
    parts depend on nothing but the number of threads, and so do sums made by part.
    """
    with limit_lock:
        threads = min(count, max((library["num_threads"] for library in _blas().info()), default=1))
        if threads >= 2 and numbers >= WORTH:
            ends = [count * k // threads for k in range(threads + 1)]
            parts = [slice(*pair) for pair in pairwise(ends)]
            with _blas().limit(limits=1):
                others = [_pool(threads).submit(contextvars.copy_context().run, work, part) for part in parts[1:]]
                work(parts[0])
                for other in others:
                    other.result()
            return
    work(slice(0, count))
