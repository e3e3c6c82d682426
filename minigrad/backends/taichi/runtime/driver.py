"""Lifecycle of Taichi: when it starts, for which architecture, and which callbacks are notified.

Taichi supports one architecture per process. It starts on ``cpu`` and switches to a GPU when a tensor is first put
there: ``cpu`` arrays are host memory, so only compiled kernels are lost, and recompiled. If the user calls ``ti.init``,
minigrad computes on the architecture chosen there.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from minigrad.backends.devices import GPUS, NARROW
from minigrad.backends.taichi.runtime.locking import lock, muted
from minigrad.backends.taichi.runtime.storing import clear, find_home, stored
from minigrad.core.errors import DeviceError, MissingPackageError
from minigrad.core.packages import package

__all__ = [
    "GPUS",
    "NARROW",
    "arch",
    "check_rounds",
    "cuda_driver",
    "is_current",
    "is_there",
    "on_change",
    "on_restart",
    "program",
    "readers_own",
    "running",
    "start",
    "started_by_us",
    "state",
    "synchronize",
    "threads",
]

ROUNDS = 1 << 14
_ARCHES = {"x64": "cpu", "arm64": "cpu"}

_forked = False
_changes: list[Callable[[], None]] = []  # callbacks for another architecture
_restarts: list[Callable[[], None]] = []  # callbacks for another program


class _State:
    """Taichi's module, our name of its architecture, its runtime and its program.

    Each start of Taichi, by minigrad or the user, creates a new program and clears the previous runtime.
    """

    ti: Any = None
    arch = ""
    core: Any = None
    program: Any = None
    ours: Any = None  # the program that minigrad started, unless the user has started another since

    @property
    def current(self) -> bool:
        """Whether the recorded program is still running."""
        return self.core is not None and self.core.prog is self.program


state = _State()


def _in_child() -> None:
    global _forked
    _forked = state.ti is not None


os.register_at_fork(after_in_child=_in_child)


def arch() -> str:
    """Return the architecture of kernels: "cpu", or a GPU's name."""
    return state.arch or "cpu"


def is_current() -> bool:
    """Return whether the recorded program is still running, rather than one that the user started."""
    return state.current


def on_change(listener: Callable[[], None]) -> None:
    """Register a callback for a change of architecture."""
    _changes.append(listener)


def on_restart(listener: Callable[[], None]) -> None:
    """Register a callback for a restart of Taichi, which loses the contents of GPU buffers."""
    _restarts.append(listener)


def start(wanted: str | None = None) -> Any:
    """Start Taichi for `wanted` if needed, and return its module. Raises DeviceError in a forked child, and if Taichi
    runs on another GPU than `wanted`."""
    if _forked:
        raise DeviceError(
            "Taichi does not survive a fork: this process was forked from one that had computed on a device.\n"
            '  Start workers with multiprocessing\'s "spawn", or compute on device="numpy" in them.'
        )
    with lock:
        ti = state.ti = _taichi()
        running = _running(ti)
        if not running or (running == "cpu" and wanted in GPUS):
            _start(ti, wanted or "cpu")
            running = _running(ti)  # an environment variable of Taichi may override the choice
        if wanted and running != wanted:
            raise DeviceError(
                f"{wanted}: this process computes on {running}, and Taichi supports one GPU per process.\n"
                f"  Use device={running!r}, or restart Python."
            )
        core = ti.lang.impl.get_runtime()
        anew = core.prog is not state.program
        if anew:
            state.core, state.program = core, core.prog
        changed, state.arch = running != arch(), running
        if anew:
            for listener in _restarts:
                listener()
        if changed:
            for listener in _changes:
                listener()
        return ti


def _taichi() -> Any:
    """Import Taichi without its banner, and without warnings about its sources on newer versions of Python."""
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
    os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")  # otherwise it contacts a server once a day
    find_home()
    os.environ.setdefault("TI_ENABLE_PYBUF", "0")  # otherwise it prints a notice in notebooks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # the category in Python 3.11
        return package("taichi", "kernels of Taichi")


def _running(ti: Any) -> str:
    """Return the architecture that Taichi runs on, whoever started it; "" if it does not run."""
    if ti.lang.impl.get_runtime().prog is None:
        return ""
    name = ti.lang.impl.current_cfg().arch.name
    return str(_ARCHES.get(name, name))


def _start(ti: Any, wanted: str) -> None:
    if not is_there(wanted):
        raise DeviceError(
            f"{wanted}: Taichi finds no such device on this machine.\n"
            '  Use device="cpu". `minigrad ops` lists the available devices.'
        )
    with muted(), _float_settings_kept(), stored(ti):
        ti.init(
            arch=getattr(ti, wanted),
            offline_cache=True,
            default_fp=ti.f32 if wanted in NARROW else ti.f64,
            log_level="error" if wanted == "cpu" else "critical",
        )
        core = ti.lang.impl.get_runtime()
        core.materialize()  # only the thread that started it may do so
        state.ours = core.prog


@atexit.register
def _end() -> None:
    """Store compiled kernels for the next process, which Taichi does when its program ends normally."""
    if state.ours is not None and not _forked and is_current() and state.program is state.ours:
        with lock:
            state.ours = state.program = None
            state.ti.reset()
            clear()


@functools.cache
def is_there(name: str) -> bool:
    """Return whether this machine has the device and a Taichi that supports it."""
    try:
        ti = _taichi()
    except MissingPackageError:
        return False
    if name == "cuda" and not _finds_a_gpu():
        return False
    return name == "cpu" or bool(ti.lang.misc.is_arch_supported(getattr(ti, name)))


@functools.cache
def cuda_driver() -> Any:
    """Load the library of CUDA's driver. Raises OSError if there is none."""
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _finds_a_gpu() -> bool:
    """Return whether CUDA's driver finds a usable GPU; Taichi only checks for a driver."""
    try:
        driver = cuda_driver()
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 == driver.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


@contextlib.contextmanager
def _float_settings_kept() -> Iterator[None]:
    """Return a context that preserves this thread's floating-point state: starting Taichi makes its thread flush
    denormals to 0, also in NumPy. Taichi's own threads keep doing so, hence only serial loops keep denormals."""
    c = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    kept = ctypes.create_string_buffer(64)  # sizeof(fenv_t) is at most 32
    c.fegetenv(kept)
    try:
        yield
    finally:
        c.fesetenv(kept)


def running() -> _State:
    """Return the state of Taichi, and start it if it does not run."""
    if not is_current():
        start()
    return state


def program() -> Any:
    """Return the running Taichi program."""
    return running().program


def started_by_us() -> bool:
    """Return whether minigrad, rather than the user, started Taichi."""
    return state.ours is not None and state.ours is state.program


def threads() -> int:
    """Return the number of CPU threads that Taichi uses."""
    return int(start().lang.impl.current_cfg().cpu_max_num_threads)


def synchronize() -> None:
    """Wait until all launched kernels have finished."""
    if state.ti is not None and is_current():
        with lock:
            state.program.synchronize()


def check_rounds(name: str, count: int) -> None:
    """Raise DeviceError if one thread would process more elements serially than the device allows."""
    if state.arch == "vulkan" and count > ROUNDS:
        raise DeviceError(
            f"{name}: {count:,} serial iterations exceed the limit of a thread on vulkan, {ROUNDS:,}.\n"
            '  Some drivers stop it silently. Compute this elsewhere: x.to("cpu").'
        )


@contextlib.contextmanager
def readers_own(name: str) -> Iterator[None]:
    """Return a context for user-defined Taichi kernels: Taichi is started and locked."""
    start(name)
    with lock:
        yield
