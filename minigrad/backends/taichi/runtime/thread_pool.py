"""The threads that run parallel loops on the CPU, in place of Taichi's.

Taichi's threads sleep between loops, and waking them takes 50 µs: as long as multiplying two matrices of 128 rows and
columns. The threads of thread_pool.c spin for a moment before they sleep, so that a loop that follows soon starts in 1
µs. Taichi takes its pool by a pointer, which a kernel with access to the runtime replaces.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.kernel import Kernel
from minigrad.backends.taichi.runtime.muladd import FUSED

__all__ = ["install", "state", "thread_count"]

SPIN_TICKS = 1 << 19  # of the time stamp counter, 0.2 ms; longer than most operations of an eager step
MAX_CORES = 1024  # as in thread_pool.c
_POOL = np.dtype(  # the fields of `Pool` in thread_pool.c that Python uses
    {
        "names": ["awake", "is_stopped", "thread_count", "spin_ticks", "free_core", "threads"],
        "formats": [np.int32] * 5 + [np.dtype((np.int32, (MAX_CORES, 2)))],
        "offsets": [256, 264, 268, 272, 288, 292],
    }
)
_INSTALL = """@ti.kernel
def thread_pool_kernel(pool: ti.i64):
    for i in range(2):
        address, version = pool, {version}
        thread_pool.thread_pool_install(address, version)
"""


class _PoolState:
    """The pool of this process."""

    pool: Any = None  # the memory of the pool
    owner: Any = None  # the program that compiled the code of the threads, which must not be unloaded
    program: Any = None  # the program that uses the pool


state = _PoolState()


def install() -> bool:
    """Make Taichi's program use the pool, and return whether it does. The pool is for Linux on x86-64."""
    if not FUSED or driver.arch() != "cpu":
        return False
    program = driver.current_program()
    if state.program is program:
        return True
    state.program = program
    if state.pool is None:
        state.pool, state.owner = _create_pool(), program
    bitcode = Path(__file__).with_name("thread_pool.bc").read_bytes()
    kernel = Kernel("thread_pool", _INSTALL.format(version=crc32(bitcode) >> 1), "i")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the threads inherit it
    try:
        kernel.launch_unobserved(state.pool.__array_interface__["data"][0])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return True


def thread_count() -> int:
    """Return the number of threads that run a loop, including the calling one."""
    return int(state.pool["thread_count"]) + 1 if install() else driver.thread_count()


def _create_pool() -> Any:
    """Allocate a pool of a thread per core, except for one core that is free for the calling thread."""
    room = np.zeros(_POOL.itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    pool = room[start : start + _POOL.itemsize].view(_POOL)[0]
    free_core, *cores = [core for core in sorted(os.sched_getaffinity(0)) if core < MAX_CORES]
    pool["free_core"], pool["thread_count"], pool["spin_ticks"] = free_core, len(cores), SPIN_TICKS
    pool["threads"][: len(cores), 1] = cores
    return pool


driver.on_thread_use(install)


@atexit.register
def _stop() -> None:
    """Make the threads sleep forever, since Taichi unloads their code at exit."""
    if state.pool is not None:
        state.pool["is_stopped"] = 1
        while state.pool["awake"] > 0:
            time.sleep(1e-4)
        time.sleep(1e-4)
