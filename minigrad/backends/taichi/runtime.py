"""The one place that talks to Taichi: it starts it, compiles texts into kernels, and launches them.

Taichi's public call of a kernel takes 40 µs, most of it in Python; `Kernel.__call__` does the same by way of what the
call comes down to, a launch context that is filled and handed over, in a quarter of that. A test holds the two to the
same results. One architecture a process: the first that is asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import linecache
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.errors import DeviceError

__all__ = ["Kernel", "compiled", "start"]

_lock = threading.RLock()
_started: dict[str, Any] = {}  # "ti": the module, "arch": its name, "prog": what launches
_compiled: list[Any] = []  # the kernels that can be launched
_forked = False


def _in_child() -> None:
    global _forked
    _forked = bool(_started)
    for made in _compiled:  # so that each starts, which is refused
        made.launch = made._first


os.register_at_fork(after_in_child=_in_child)


def start(arch: str = "cpu") -> Any:
    """Taichi, started for `arch`. Raises DeviceError in a forked child, and where another architecture was started."""
    if _forked:
        raise DeviceError(
            "Taichi does not survive a fork: this process was forked from one that had computed on a device.\n"
            '  Start workers with multiprocessing\'s "spawn", or compute on device="numpy" in them.'
        )
    with _lock:
        if not _started:
            _start(arch)
        if _started["arch"] != arch:
            raise DeviceError(
                f"{arch}: this process computes on {_started['arch']}, and Taichi has one architecture a process.\n"
                f"  Use device={_started['arch']!r}, or restart Python."
            )
        return _started["ti"]


def _start(arch: str) -> None:
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
    import taichi as ti

    with contextlib.redirect_stdout(io.StringIO()), _float_settings_kept():  # it greets
        ti.init(
            arch=getattr(ti, arch),
            offline_cache=True,
            real_matrix_scalarize=False,
            fast_math=False,
            default_fp=ti.f64,
            log_level="error",
        )
    _started.update(ti=ti, arch=arch, runtime=ti.lang.impl.get_runtime())


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


class Kernel:
    """A text of Taichi's Python as something to call, with arrays (in memory, row by row) and numbers.

    `kinds` has a letter for each argument: "a" an array, given as its address, count and bytes, "i" an int, "f" a
    fraction. `launch` is the quick way to call it: it changes when the text is compiled, so look it up for each call.
    """

    __slots__ = ("_kinds", "launch", "name", "text")

    def __init__(self, name: str, text: str, kinds: str) -> None:
        self.name, self.text, self._kinds = name, text, kinds
        self.launch: Any = self._first

    def __call__(self, *args: Any) -> None:
        self.launch(*args)

    def _first(self, *args: Any) -> None:
        ti = start()
        with _lock:
            if self.launch == self._first:
                self._compile(ti)
        self.launch(*args)

    def _compile(self, ti: Any) -> None:
        file = f"<minigrad kernel {self.name}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)  # where Taichi looks for it
        space: dict[str, Any] = {"ti": ti}
        exec(compile(self.text, file, "exec", dont_inherit=True), space)  # with annotations as they are
        primal = space[f"{self.name}_kernel"]._primal
        annotations = [argument.annotation for argument in primal.arguments]
        samples = [_sample(note) if kind == "a" else 1 for kind, note in zip(self._kinds, annotations, strict=True)]
        prepared = primal.compiled_kernels[primal.ensure_compiled(*samples)]
        program = _started["runtime"].prog
        ready = program.compile_kernel(program.config(), program.get_device_caps(), prepared)
        self.launch = _launcher(self._kinds)(_lock, prepared.make_launch_context, program.launch_kernel, ready)
        _compiled.append(self)


@functools.cache
def _launcher(kinds: str) -> Any:
    """What makes a function that launches with arguments of these kinds, written out: a loop would take longer."""
    lines = {
        "a": "            array(({k},), x{k}[0], x{k}[2], (x{k}[1],), 0)\n",
        "i": "            whole(({k},), x{k})\n",
        "f": "            fraction(({k},), x{k})\n",
    }
    named = {"a": "array = context.set_arg_external_array_with_shape", "i": "whole = context.set_arg_int"}
    named["f"] = "fraction = context.set_arg_float"
    names = ", ".join(f"x{k}" for k in range(len(kinds)))
    text = (
        f"def launcher(lock, make, launch, ready):\n    def launched({names}):\n"
        "        with lock:\n            context = make()\n"
        + "".join(f"            {named[kind]}\n" for kind in sorted(set(kinds)))
        + "".join(lines[kind].format(k=k) for k, kind in enumerate(kinds))
        + "            launch(ready, context)\n    return launched\n"
    )
    space: dict[str, Any] = {}
    exec(text, space)
    return space["launcher"]


def _sample(note: Any) -> Any:
    """An array such as an argument asks for, to compile with."""
    if hasattr(note.dtype, "n"):
        return np.zeros((4, note.dtype.n), _numpy(note.dtype.dtype))
    return np.zeros(16, _numpy(note.dtype))


def _numpy(dtype: Any) -> Any:
    names = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8"}
    return np.dtype(names[dtype.to_string()])


@functools.cache
def compiled(name: str, text: str, kinds: str) -> Kernel:
    """The kernel of a text, compiled when it is first launched."""
    return Kernel(name, text, kinds)
