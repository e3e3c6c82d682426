"""Kernels: Taichi source that is compiled, launched and reported to listeners.

Taichi's public kernel call takes 40 µs, most of it in Python; `Kernel.__call__` fills and submits a launch context
directly, in a quarter of that. A test asserts that both give the same results.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.backends.taichi.runtime.driver import GPUS, NARROW, on_restart, start, state
from minigrad.backends.taichi.runtime.launchers import buffer_launcher, launcher
from minigrad.backends.taichi.runtime.locking import lock
from minigrad.backends.taichi.runtime.offsets import Moved, moved, truncated
from minigrad.backends.taichi.runtime.types import NAMES
from minigrad.core.errors import DeviceError
from minigrad.core.specialise import compile_function
from minigrad.core.symbolic import plain

__all__ = ["Kernel", "bytes_of", "calls", "compiled", "for_gpu", "launches"]

_OURS = {"real_matrix_scalarize": False, "fast_math": False}  # compiler options of our kernels only

_listeners: list[Callable[[Kernel, tuple[Any, ...]], None]] = []  # callbacks for launches
_compiled: list[Kernel] = []  # kernels that are compiled
_kernels: dict[Any, Kernel] = {}  # by name, source and kinds of arguments


def _forget() -> None:
    """Reset every kernel, so that it is compiled again."""
    for made in _compiled:
        made.launch = made._first
    _compiled.clear()


on_restart(_forget)
os.register_at_fork(after_in_child=_forget)


class Kernel:
    """Source in Taichi's Python as a callable of contiguous arrays and Python scalars.

    `kinds` has a letter per argument: "a" is an array, passed as address, number of elements and bytes, on a GPU also
    with its block; "h" an array in host memory on every device; "p" an array of which the source takes only the
    address; "i" an int, "f" a float. `launch` is the fast way to call the kernel: it is replaced when the kernel is
    compiled and while there are listeners, so look it up for each call. With `long`, LLVM alone optimises the source:
    Taichi's passes take a minute where LLVM takes a second, and gain nothing. `made` is given if the source is already
    transformed for a GPU.
    """

    __slots__ = ("_long", "_made", "_ready", "kinds", "launch", "name", "text", "work")

    def __init__(self, name: str, text: str, kinds: str, long: bool = False, made: Moved | None = None) -> None:
        self.name, self.text, self.kinds, self._long, self._made = name, text, kinds, long, made
        self.work: Any = None  # the description of a vectorised snippet; see `source.Work`
        self._ready: Any = None
        self.launch: Any = self._first

    def __call__(self, *args: Any) -> None:
        self.launch(*args)

    def _first(self, *args: Any) -> None:
        start()
        if state.arch in GPUS and any(kind == "a" and len(x) == 3 for kind, x in zip(self.kinds, args, strict=True)):
            raise DeviceError(
                f"{self.name}: Taichi now runs on {state.arch}, so NumPy runs the cpu kernels.\n  Repeat the operation."
            )
        self.prepare()
        self.launch(*args)

    def prepare(self) -> None:
        """Compile the source now. Raises DeviceError if Taichi cannot."""
        ti = start()
        with lock:
            if self.launch == self._first:
                self._compile(ti)

    def unheard(self, *args: Any) -> None:
        """Launch without notifying listeners."""
        self.prepare()
        self._ready(*args)

    def _heard(self, *args: Any) -> None:
        for listener in tuple(_listeners):
            listener(self, args)
        self._ready(*map(plain, args))

    def _again(self, *args: Any) -> None:
        """Launch after the user has restarted Taichi."""
        start()
        self.launch(*args)

    @property
    def ran(self) -> str:
        """The source as it was compiled: transformed for a GPU, and on `cpu` with other divisions, see `truncated`."""
        return (self._made or for_gpu(self.text)).text if state.arch in GPUS else self.text

    def _compile(self, ti: Any) -> None:
        made = self._made or for_gpu(self.text) if state.arch in GPUS else None
        text = made.text if made is not None else self.text if self._long else truncated(self.text)
        file = f"<minigrad kernel {self.name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)  # Taichi reads the source from here
        space: dict[str, Any] = {"ti": ti, **({"muladd": _muladd()} if "muladd." in text else {})}
        kernel: Any = compile_function(f"{self.name}_kernel", text, space, file)
        primal = kernel._primal
        samples = [_sample(argument.annotation) for argument in primal.arguments]
        program = state.program
        with _compiling_as_ours(ti, {"advanced_optimization": False} if self._long else {}):
            try:
                prepared = primal.compiled_kernels[primal.ensure_compiled(*samples)]
                ready = program.compile_kernel(program.config(), program.get_device_caps(), prepared)
            except Exception as error:
                raise DeviceError(_not_compiled(self.name, error)) from error
        if made is None:
            make = launcher(self.kinds)
        else:
            make = buffer_launcher(self.kinds, tuple(map(bytes_of, made.arrays)), made.written)
        self._ready = make(lock, prepared.make_launch_context, program.launch_kernel, ready, state.core, self._again)
        self.launch = self._heard if _listeners else self._ready
        _compiled.append(self)


@functools.cache
def _muladd() -> Any:
    """Load the LLVM functions for fused multiply-add that CPU kernels call: see muladd.ll."""
    from taichi.lang.source_builder import SourceBuilder

    return SourceBuilder.from_file(str(Path(__file__).with_name("muladd.bc")))


def for_gpu(text: str) -> Moved:
    """Return the source transformed for the GPU that Taichi runs on."""
    return moved(text, state.arch in NARROW, state.arch == "cuda")


def _not_compiled(name: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    return (
        f"{name}: Taichi cannot compile this kernel for {state.arch}: {reason}\n"
        '  Compute it elsewhere: x.to("cpu"), or x.to("numpy").'
    )


def _place(context: Any, node: Any) -> str:
    """Return the position of a node in the source, as a message. Taichi's own function also wraps and marks the line,
    for every node even without an error, which took 40% of the compile time."""
    return f'File "{context.file}", line {node.lineno + context.lineno_offset}:\n{context.src[node.lineno - 1]}\n'


@contextlib.contextmanager
def _compiling_as_ours(ti: Any, more: dict[str, bool]) -> Iterator[None]:
    """Return a context in which Taichi compiles with our options, even if the user started it with others."""
    config, core = ti.lang.impl.current_cfg(), state.core
    ours = {**_OURS, "real_matrix_scalarize": state.arch in NARROW, **more}
    before, real = {name: getattr(config, name) for name in ours}, core.default_fp
    core.default_fp = ti.f32 if state.arch in NARROW else ti.f64
    for name, value in ours.items():
        setattr(config, name, value)
    context = ti.lang.ast.ast_transformer_utils.ASTTransformerContext
    said, context.get_pos_info = context.get_pos_info, _place
    try:
        yield
    finally:
        context.get_pos_info = said
        core.default_fp = real
        for name, value in before.items():
            setattr(config, name, value)


def launches(listener: Callable[[Kernel], None]) -> contextlib.AbstractContextManager[None]:
    """Return a context in which `listener` is called before each kernel launch of this thread."""
    return calls(lambda made, args: listener(made))


@contextlib.contextmanager
def calls(listener: Callable[[Kernel, tuple[Any, ...]], None]) -> Iterator[None]:
    """Like `launches`, but pass the arguments too; scalars among them may be traced."""
    thread = threading.get_ident()

    def told(made: Kernel, args: tuple[Any, ...]) -> None:
        if threading.get_ident() == thread:
            listener(made, args)

    with lock:
        _listeners.append(told)
        for made in _compiled:
            made.launch = made._heard
    try:
        yield
    finally:
        with lock:
            _listeners.remove(told)
            for made in _compiled:
                made.launch = made._heard if _listeners else made._ready


def _sample(note: Any) -> Any:
    """Return an example of an annotated argument, to compile with."""
    if not hasattr(note, "dtype"):
        return 1
    if hasattr(note.dtype, "n"):
        return np.zeros((4, note.dtype.n), _numpy(note.dtype.dtype))
    return np.zeros(16, _numpy(note.dtype))


def _numpy(dtype: Any) -> Any:
    return np.dtype(NAMES[dtype.to_string()])


def bytes_of(element: str) -> int:
    """Return the bytes of an array element: 4 for "f32", 64 for "f32*16"."""
    kind, _, count = element.partition("*")
    return np.dtype(NAMES[kind]).itemsize * int(count or 1)


@functools.cache
def compiled(name: str, text: str, kinds: str) -> Kernel:
    """Return the kernel of a source, compiled at its first launch."""
    return _kernels.setdefault((name, text, kinds), Kernel(name, text, kinds))  # one for all threads
