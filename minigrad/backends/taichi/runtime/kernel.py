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

from minigrad.backends.taichi.runtime.array import current_recorder
from minigrad.backends.taichi.runtime.driver import GPUS, NO_FLOAT64, on_restart, prepare_threads, start, state
from minigrad.backends.taichi.runtime.launchers import buffer_launcher, launcher
from minigrad.backends.taichi.runtime.locking import lock
from minigrad.backends.taichi.runtime.transforms import TransformedSource, add_offsets, transform_for_cpu
from minigrad.backends.taichi.runtime.types import DTYPE_NAMES
from minigrad.core.errors import DeviceError
from minigrad.core.specialise import compile_function
from minigrad.core.symbolic import concrete

__all__ = [
    "Kernel",
    "element_bytes",
    "get_kernel",
    "is_observed",
    "observe_calls",
    "observe_launches",
    "transform_for_gpu",
]

_COMPILER_OPTIONS = {"real_matrix_scalarize": False, "fast_math": False}  # compiler options of minigrad's kernels only

_listeners: list[Callable[[Kernel, tuple[Any, ...]], None]] = []  # callbacks for launches
_compiled_kernels: list[Kernel] = []  # kernels that are compiled
_kernel_cache: dict[Any, Kernel] = {}  # kernels by name, source and kinds of arguments


def _reset_kernels() -> None:
    """Reset every kernel, so that it is compiled again."""
    for kernel in _compiled_kernels:
        kernel.launch = kernel._compile_and_launch
    _compiled_kernels.clear()


on_restart(_reset_kernels)
os.register_at_fork(after_in_child=_reset_kernels)


class Kernel:
    """A kernel source in Taichi's Python, callable with contiguous arrays and Python scalars.

    `kinds` has a letter per argument: "a" for an array, passed as its address, number of elements and bytes, and on a
    GPU its block; "h" for an array in host memory on every device; "p" for an array passed as only its address; "i" for
    an int; "f" for a float. `launch` is the fast way to call the kernel. It is replaced when the kernel is compiled and
    while there are listeners, so look it up for each call. With `is_long`, the source is optimised only by LLVM:
    Taichi's passes would take a minute where LLVM takes a second, without any gain. `transformed` is the source already
    transformed for a GPU, if there is one.
    """

    __slots__ = ("_is_long", "_launcher", "_transformed", "kinds", "launch", "name", "source", "work")

    def __init__(
        self, name: str, source: str, kinds: str, is_long: bool = False, transformed: TransformedSource | None = None
    ) -> None:
        self.name, self.source, self.kinds, self._is_long, self._transformed = name, source, kinds, is_long, transformed
        self.work: Any = None  # the description of a vectorised snippet; see `source.Work`
        self._launcher: Any = None
        self.launch: Any = self._compile_and_launch

    def __call__(self, *args: Any) -> None:
        self.launch(*args)

    def _compile_and_launch(self, *args: Any) -> None:
        start()
        if state.arch in GPUS and any(kind == "a" and len(x) == 3 for kind, x in zip(self.kinds, args, strict=True)):
            raise DeviceError(
                f"{self.name}: Taichi now runs on {state.arch}, so NumPy runs the cpu kernels.\n  Repeat the operation."
            )
        self.prepare()
        self.launch(*args)

    def prepare(self) -> None:
        """Compile the source now. Raises DeviceError if Taichi cannot compile it."""
        ti = start()
        with lock:
            if self.launch == self._compile_and_launch:
                self._compile(ti)

    def launch_unobserved(self, *args: Any) -> None:
        """Launch without notifying listeners."""
        self.prepare()
        self._launcher(*args)

    def _launch_observed(self, *args: Any) -> None:
        for listener in tuple(_listeners):
            listener(self, args)
        self._launcher(*map(concrete, args))

    def _launch_after_restart(self, *args: Any) -> None:
        """Launch after the user has restarted Taichi."""
        start()
        self.launch(*args)

    @property
    def compiled_source(self) -> str:
        """The compiled source, which is transformed for a GPU. On `cpu` only its divisions differ, see
        `transform_for_cpu`."""
        return (self._transformed or transform_for_gpu(self.source)).source if state.arch in GPUS else self.source

    def _compile(self, ti: Any) -> None:
        transformed = self._transformed or transform_for_gpu(self.source) if state.arch in GPUS else None
        source = (
            transformed.source
            if transformed is not None
            else self.source
            if self._is_long
            else transform_for_cpu(self.source)
        )
        if _has_parallel_loop(source):
            prepare_threads()
        file = f"<minigrad kernel {self.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # Taichi reads the source from here
        namespace = {"ti": ti, **{name: _load_bitcode(name) for name in _BITCODE if f"{name}." in source}}
        kernel: Any = compile_function(f"{self.name}_kernel", source, namespace, file)
        primal = kernel._primal
        samples = [_example_argument(argument.annotation) for argument in primal.arguments]
        program = state.program
        with _compiler_options(ti, {"advanced_optimization": False} if self._is_long else {}):
            try:
                prepared = primal.compiled_kernels[primal.ensure_compiled(*samples)]
                ready = program.compile_kernel(program.config(), program.get_device_caps(), prepared)
            except Exception as error:
                raise DeviceError(_compile_error_message(self.name, error)) from error
        if transformed is None:
            make = launcher(self.kinds)
        else:
            make = buffer_launcher(
                self.kinds, tuple(map(element_bytes, transformed.element_types)), transformed.is_written
            )
        self._launcher = make(
            lock, prepared.make_launch_context, program.launch_kernel, ready, state.core, self._launch_after_restart
        )
        self.launch = self._launch_observed if _listeners else self._launcher
        _compiled_kernels.append(self)


def _has_parallel_loop(source: str) -> bool:
    """Return whether the source has an outermost loop that Taichi runs in parallel.

    >>> loop = "    for i in range(n):\\n        pass\\n"
    >>> serial_loop = "    ti.loop_config(serialize=True)\\n" + loop
    >>> [_has_parallel_loop("def k(n: ti.i32):\\n" + lines) for lines in (loop, serial_loop, serial_loop + loop)]
    [True, False, True]
    """
    return source.count("\n    for ") > source.count("ti.loop_config(serialize=True)")


_BITCODE = ("muladd", "thread_pool")  # files of LLVM functions that CPU kernels call: see muladd.ll and thread_pool.c


@functools.cache
def _load_bitcode(name: str) -> Any:
    """Load the LLVM functions of one of the files `_BITCODE`."""
    from taichi.lang.source_builder import SourceBuilder

    return SourceBuilder.from_file(str(Path(__file__).with_name(f"{name}.bc")))


def transform_for_gpu(source: str) -> TransformedSource:
    """Return the source transformed for the GPU that Taichi runs on."""
    return add_offsets(source, state.arch in NO_FLOAT64, state.arch == "cuda")


def _compile_error_message(name: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    return (
        f"{name}: Taichi cannot compile this kernel for {state.arch}: {reason}\n"
        '  Compute it elsewhere: x.to("cpu"), or x.to("numpy").'
    )


def _node_position(context: Any, node: Any) -> str:
    """Return a message with the position of a node in the source. Taichi's own function also wraps and marks the line,
    for every node and even without an error, which took 40% of the compile time."""
    return f'File "{context.file}", line {node.lineno + context.lineno_offset}:\n{context.src[node.lineno - 1]}\n'


@contextlib.contextmanager
def _compiler_options(ti: Any, extra_options: dict[str, bool]) -> Iterator[None]:
    """Return a context in which Taichi compiles with minigrad's options, even if the user started it with others."""
    config, core = ti.lang.impl.current_cfg(), state.core
    options = {**_COMPILER_OPTIONS, "real_matrix_scalarize": state.arch in NO_FLOAT64, **extra_options}
    before, default_float = {name: getattr(config, name) for name in options}, core.default_fp
    core.default_fp = ti.f32 if state.arch in NO_FLOAT64 else ti.f64
    for name, value in options.items():
        setattr(config, name, value)
    context = ti.lang.ast.ast_transformer_utils.ASTTransformerContext
    original_position, context.get_pos_info = context.get_pos_info, _node_position
    try:
        yield
    finally:
        context.get_pos_info = original_position
        core.default_fp = default_float
        for name, value in before.items():
            setattr(config, name, value)


def is_observed() -> bool:
    """Return whether launches are observed or recorded, in any thread."""
    return bool(_listeners) or current_recorder() is not None


def observe_launches(listener: Callable[[Kernel], None]) -> contextlib.AbstractContextManager[None]:
    """Return a context in which `listener` is called before each kernel launch of this thread."""
    return observe_calls(lambda made, args: listener(made))


@contextlib.contextmanager
def observe_calls(listener: Callable[[Kernel, tuple[Any, ...]], None]) -> Iterator[None]:
    """Return a context like that of `observe_launches`, but also pass the arguments to `listener`. Scalars may be
    symbolic."""
    thread = threading.get_ident()

    def notify(kernel: Kernel, args: tuple[Any, ...]) -> None:
        if threading.get_ident() == thread:
            listener(kernel, args)

    with lock:
        _listeners.append(notify)
        for kernel in _compiled_kernels:
            kernel.launch = kernel._launch_observed
    try:
        yield
    finally:
        with lock:
            _listeners.remove(notify)
            for kernel in _compiled_kernels:
                kernel.launch = kernel._launch_observed if _listeners else kernel._launcher


def _example_argument(annotation: Any) -> Any:
    """Return an example value for an annotated argument, with which the kernel is compiled."""
    if not hasattr(annotation, "dtype"):
        return 1
    if hasattr(annotation.dtype, "n"):
        return np.zeros((4, annotation.dtype.n), _numpy_dtype(annotation.dtype.dtype))
    return np.zeros(16, _numpy_dtype(annotation.dtype))


def _numpy_dtype(dtype: Any) -> Any:
    return np.dtype(DTYPE_NAMES[dtype.to_string()])


def element_bytes(element: str) -> int:
    """Return the size in bytes of an array element, such as 4 for "f32" and 64 for "f32*16"."""
    kind, _, count = element.partition("*")
    return np.dtype(DTYPE_NAMES[kind]).itemsize * int(count or 1)


@functools.cache
def get_kernel(name: str, source: str, kinds: str) -> Kernel:
    """Return the kernel of a source, compiled at its first launch."""
    return _kernel_cache.setdefault((name, source, kinds), Kernel(name, source, kinds))  # all threads share one kernel
