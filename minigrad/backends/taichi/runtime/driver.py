"""Taichi as it runs: what starts it, for which architecture, and who is told of that.

Taichi has one architecture a process. It begins with ``cpu`` and goes over to a GPU when a tensor is first put there:
the memory of ``cpu`` is ours, so nothing is lost but kernels, which are compiled again. A reader's own ``ti.init`` is
taken as it is: we compute on what it chose.
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
_changes: list[Callable[[], None]] = []  # who wants to know of another architecture
_restarts: list[Callable[[], None]] = []  # who wants to know of another program


class _State:
    """What Taichi runs on: its module, our name of the architecture, and what it keeps and launches its kernels with.

    A start of Taichi's, be it ours or the reader's, makes a new program, and clears the core of the one before.
    """

    ti: Any = None
    arch = ""
    core: Any = None
    program: Any = None
    ours: Any = None  # the program that we started, where the reader has not started another since

    @property
    def current(self) -> bool:
        """Whether Taichi runs as we know it."""
        return self.core is not None and self.core.prog is self.program


state = _State()


def _in_child() -> None:
    global _forked
    _forked = state.ti is not None


os.register_at_fork(after_in_child=_in_child)


def arch() -> str:
    """The architecture that kernels are for: "cpu", or a GPU's name."""
    return state.arch or "cpu"


def is_current() -> bool:
    """Whether Taichi runs as we know it: nobody has started it otherwise since."""
    return state.current


def on_change(listener: Callable[[], None]) -> None:
    """Call `listener` whenever the architecture has changed."""
    _changes.append(listener)


def on_restart(listener: Callable[[], None]) -> None:
    """Call `listener` whenever Taichi was started anew, so that what was in a GPU's buffers is gone."""
    _restarts.append(listener)


def start(wanted: str | None = None) -> Any:
    """Taichi, started for `wanted`, or running on whatever it runs on. Raises DeviceError in a forked child, and where
    it runs on a GPU and another is wanted."""
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
            running = _running(ti)  # which an environment variable of Taichi's may choose
        if wanted and running != wanted:
            raise DeviceError(
                f"{wanted}: this process computes on {running}, and Taichi has one GPU a process.\n"
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
    """The module, which greets at its import, and whose sources newer Pythons warn of when they compile them."""
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
    os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")  # else it tells a server about this machine, once a day
    find_home()
    os.environ.setdefault("TI_ENABLE_PYBUF", "0")  # else it says that it is in a notebook, which shows prints anyhow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # as Python 3.11 calls it
        return package("taichi", "kernels of Taichi")


def _running(ti: Any) -> str:
    """The architecture that Taichi runs on, whoever started it; "" if it does not run."""
    if ti.lang.impl.get_runtime().prog is None:
        return ""
    name = ti.lang.impl.current_cfg().arch.name
    return str(_ARCHES.get(name, name))


def _start(ti: Any, wanted: str) -> None:
    if not is_there(wanted):
        raise DeviceError(
            f"{wanted}: Taichi finds no such device on this machine.\n"
            '  Compute on the processor: device="cpu". `minigrad ops` lists what there is.'
        )
    with muted(), _float_settings_kept(), stored(ti):
        ti.init(
            arch=getattr(ti, wanted),
            offline_cache=True,
            default_fp=ti.f32 if wanted in NARROW else ti.f64,
            log_level="error" if wanted == "cpu" else "critical",
        )
        core = ti.lang.impl.get_runtime()
        core.materialize()  # which is refused to any thread but the one that started it
        state.ours = core.prog


@atexit.register
def _end() -> None:
    """Let Taichi store what it has compiled for the next process, which it does when its program ends in order."""
    if state.ours is not None and not _forked and is_current() and state.program is state.ours:
        with lock:
            state.ours = state.program = None
            state.ti.reset()
            clear()


@functools.cache
def is_there(name: str) -> bool:
    """Whether this machine has the device, and a Taichi that can compute on it."""
    try:
        ti = _taichi()
    except MissingPackageError:
        return False
    if name == "cuda" and not _finds_a_gpu():
        return False
    return name == "cpu" or bool(ti.lang.misc.is_arch_supported(getattr(ti, name)))


@functools.cache
def cuda_driver() -> Any:
    """The library of CUDA's driver. Raises OSError where there is none."""
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _finds_a_gpu() -> bool:
    """Whether CUDA's driver finds a GPU that it may use; to Taichi a driver may be enough."""
    try:
        driver = cuda_driver()
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 == driver.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


@contextlib.contextmanager
def _float_settings_kept() -> Iterator[None]:
    """A block after which this thread computes as before: Taichi makes the thread that starts it flush denormals to 0,
    also in NumPy's functions. Its own threads go on to do that, so only work in one serial loop keeps them."""
    c = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    kept = ctypes.create_string_buffer(64)  # a fenv_t has 32 bytes at most
    c.fegetenv(kept)
    try:
        yield
    finally:
        c.fesetenv(kept)


def running() -> _State:
    """What Taichi runs on, started if it does not run."""
    if not is_current():
        start()
    return state


def program() -> Any:
    """Taichi's program, as long as it is the same."""
    return running().program


def started_by_us() -> bool:
    """Whether we started Taichi, and not the reader."""
    return state.ours is not None and state.ours is state.program


def threads() -> int:
    """How many threads Taichi computes with on the processor."""
    return int(start().lang.impl.current_cfg().cpu_max_num_threads)


def synchronize() -> None:
    """Wait until everything that was launched is done."""
    if state.ti is not None and is_current():
        with lock:
            state.program.synchronize()


def check_rounds(name: str, count: int) -> None:
    """Raise DeviceError where a thread would go through more numbers, one after the other, than it may be let to."""
    if state.arch == "vulkan" and count > ROUNDS:
        raise DeviceError(
            f"{name}: {count:,} numbers one after the other are more than a thread may take on vulkan, {ROUNDS:,}.\n"
            '  Some drivers stop it without a word. Compute this elsewhere: x.to("cpu").'
        )


@contextlib.contextmanager
def readers_own(name: str) -> Iterator[None]:
    """A block for kernels of Taichi's that others wrote: started, and alone."""
    start(name)
    with lock:
        yield
