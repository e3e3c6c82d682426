"""Lifecycle of Taichi: when it starts, for which architecture, and which callbacks are notified.

Taichi supports one architecture per process. It starts on ``cpu`` and switches to a GPU when a tensor is first put
there. Since ``cpu`` arrays are in host memory, only compiled kernels are lost, and these are recompiled. If the user
calls ``ti.init``, minigrad computes on the architecture chosen there.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from minigrad.backends.devices import GPUS, NO_FLOAT64
from minigrad.backends.taichi.runtime.disk_cache import remove_temporary_folders, use_cache_folder
from minigrad.backends.taichi.runtime.locking import lock, mute_stdout
from minigrad.backends.taichi.runtime.taichi_import import import_taichi
from minigrad.core.errors import DeviceError, MissingPackageError

__all__ = [
    "GPUS",
    "NO_FLOAT64",
    "arch",
    "check_serial_iterations",
    "cuda_driver",
    "current_program",
    "ensure_started",
    "is_current",
    "is_device_available",
    "is_own_program",
    "on_change",
    "on_restart",
    "on_thread_use",
    "prepare_threads",
    "start",
    "state",
    "synchronize",
    "thread_count",
    "user_kernels",
]

MAX_SERIAL_ITERATIONS = 1 << 14
_ARCH_NAMES = {"x64": "cpu", "arm64": "cpu"}

_is_forked = False
_change_callbacks: list[Callable[[], None]] = []  # called when the architecture changes
_restart_callbacks: list[Callable[[], None]] = []  # called when Taichi has restarted
_thread_callbacks: list[Callable[[], object]] = []  # called before Taichi's threads are used


class _TaichiState:
    """State of Taichi: its module, minigrad's name of its architecture, its runtime and its program.

    Each start of Taichi, by minigrad or the user, creates a new program and clears the previous runtime.
    """

    ti: Any = None
    arch = ""
    core: Any = None
    program: Any = None
    own_program: Any = None  # the program that minigrad started, unless the user has started another since

    @property
    def is_current(self) -> bool:
        """Whether the recorded program is still running."""
        return self.core is not None and self.core.prog is self.program


state = _TaichiState()


def _after_fork() -> None:
    global _is_forked
    _is_forked = state.ti is not None


os.register_at_fork(after_in_child=_after_fork)


def arch() -> str:
    """Return the architecture of kernels: "cpu", or a GPU's name."""
    return state.arch or "cpu"


def is_current() -> bool:
    """Return whether the recorded program is still running, rather than one that the user started."""
    return state.is_current


def on_change(listener: Callable[[], None]) -> None:
    """Register a callback for a change of architecture."""
    _change_callbacks.append(listener)


def on_restart(listener: Callable[[], None]) -> None:
    """Register a callback for a restart of Taichi, which loses the contents of GPU buffers."""
    _restart_callbacks.append(listener)


def on_thread_use(listener: Callable[[], object]) -> None:
    """Register a callback that prepares Taichi's threads for parallel loops."""
    _thread_callbacks.append(listener)


def prepare_threads() -> None:
    """Call the callbacks that prepare Taichi's threads, before a kernel with parallel loops is compiled."""
    for listener in _thread_callbacks:
        listener()


def start(requested_arch: str | None = None) -> Any:
    """Start Taichi for `requested_arch` if needed, and return its module. Raises DeviceError in a forked child, and if
    Taichi runs on another GPU than `requested_arch`."""
    if _is_forked:
        raise DeviceError(
            "Taichi does not survive a fork: this process was forked from one that had computed on a device.\n"
            '  Start workers with multiprocessing\'s "spawn", or compute on device="numpy" in them.'
        )
    with lock:
        ti = state.ti = import_taichi()
        running = _running_arch(ti)
        if not running or (running == "cpu" and requested_arch in GPUS):
            _init_taichi(ti, requested_arch or "cpu")
            running = _running_arch(ti)  # one of Taichi's environment variables may override the choice
        if requested_arch and running != requested_arch:
            raise DeviceError(
                f"{requested_arch}: this process computes on {running}, and Taichi supports one GPU per process.\n"
                f"  Use device={running!r}, or restart Python."
            )
        core = ti.lang.impl.get_runtime()
        is_restarted = core.prog is not state.program
        if is_restarted:
            state.core, state.program = core, core.prog
        is_changed, state.arch = running != arch(), running
        if is_restarted:
            for listener in _restart_callbacks:
                listener()
        if is_changed:
            for listener in _change_callbacks:
                listener()
        return ti


def _running_arch(ti: Any) -> str:
    """Return the architecture on which Taichi runs, or "" if it does not run. The user may have started it."""
    if ti.lang.impl.get_runtime().prog is None:
        return ""
    name = ti.lang.impl.current_cfg().arch.name
    return str(_ARCH_NAMES.get(name, name))


def _init_taichi(ti: Any, requested_arch: str) -> None:
    if not is_device_available(requested_arch):
        raise DeviceError(
            f"{requested_arch}: Taichi finds no such device on this machine.\n"
            '  Use device="cpu". `minigrad ops` lists the available devices.'
        )
    with mute_stdout(), _preserve_float_state(), use_cache_folder(ti):
        ti.init(
            arch=getattr(ti, requested_arch),
            offline_cache=True,
            default_fp=ti.f32 if requested_arch in NO_FLOAT64 else ti.f64,
            log_level="error" if requested_arch == "cpu" else "critical",
        )
        core = ti.lang.impl.get_runtime()
        core.materialize()  # only the thread that started Taichi may do this
        state.own_program = core.prog


@atexit.register
def _reset_at_exit() -> None:
    """Store compiled kernels for the next process, as Taichi does when its program ends normally."""
    if state.own_program is not None and not _is_forked and is_current() and state.program is state.own_program:
        with lock:
            state.own_program = state.program = None
            state.ti.reset()
            remove_temporary_folders()


@functools.cache
def is_device_available(name: str) -> bool:
    """Return whether this machine has the device, and the installed Taichi supports it."""
    try:
        ti = import_taichi()
    except MissingPackageError:
        return False
    if name == "cuda" and not _has_cuda_gpu():
        return False
    return name == "cpu" or bool(ti.lang.misc.is_arch_supported(getattr(ti, name)))


@functools.cache
def cuda_driver() -> Any:
    """Load the library of CUDA's driver. Raises OSError if there is none."""
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _has_cuda_gpu() -> bool:
    """Return whether CUDA's driver finds a usable GPU; Taichi only checks for a driver."""
    try:
        driver = cuda_driver()
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 == driver.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


@contextlib.contextmanager
def _preserve_float_state() -> Iterator[None]:
    """Return a context that preserves this thread's floating-point state. Starting Taichi makes the thread flush
    denormals to 0, also in NumPy. The threads of thread_pool.py inherit its state; Taichi's own flush denormals."""
    c = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    saved = ctypes.create_string_buffer(64)  # sizeof(fenv_t) is at most 32
    c.fegetenv(saved)
    try:
        yield
    finally:
        c.fesetenv(saved)


def ensure_started() -> _TaichiState:
    """Return the state of Taichi, starting it if it does not run."""
    if not is_current():
        start()
    return state


def current_program() -> Any:
    """Return the running Taichi program."""
    return ensure_started().program


def is_own_program() -> bool:
    """Return whether minigrad, rather than the user, started Taichi."""
    return state.own_program is not None and state.own_program is state.program


def thread_count() -> int:
    """Return the number of CPU threads that Taichi uses."""
    return int(start().lang.impl.current_cfg().cpu_max_num_threads)


def synchronize() -> None:
    """Wait until all launched kernels have finished."""
    if state.ti is not None and is_current():
        with lock:
            state.program.synchronize()


def check_serial_iterations(name: str, count: int) -> None:
    """Raise DeviceError if one thread would process more elements serially than the device allows."""
    if state.arch == "vulkan" and count > MAX_SERIAL_ITERATIONS:
        raise DeviceError(
            f"{name}: {count:,} serial iterations exceed the limit of a thread on vulkan, {MAX_SERIAL_ITERATIONS:,}.\n"
            '  Some drivers stop it silently. Compute this elsewhere: x.to("cpu").'
        )


@contextlib.contextmanager
def user_kernels(name: str) -> Iterator[None]:
    """Return a context in which Taichi runs on device `name` and is locked, for user-defined kernels."""
    start(name)
    prepare_threads()
    with lock:
        yield
