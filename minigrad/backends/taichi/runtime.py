"""The one place that talks to Taichi: it starts it, compiles texts into kernels, and launches them.

Taichi's public call of a kernel takes 40 µs, most of it in Python; `Kernel.__call__` does the same by way of what the
call comes down to, a launch context that is filled and handed over, in a quarter of that. A test holds the two to the
same results.

Taichi has one architecture a process. It begins with ``cpu`` and goes over to a GPU when a tensor is first put there:
the memory of ``cpu`` is ours, so nothing is lost but kernels, which are compiled again. A reader's own ``ti.init`` is
taken as it is: we compute on what it chose.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import linecache
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.backends.taichi.launchers import buffer_launcher, launcher
from minigrad.backends.taichi.locking import lock, muted
from minigrad.backends.taichi.offsets import Moved, moved, truncated
from minigrad.backends.taichi.storing import clear, find_home, stored
from minigrad.core.errors import DeviceError, MissingPackageError
from minigrad.core.packages import package
from minigrad.core.symbolic import plain

__all__ = [
    "GPUS",
    "Kernel",
    "Remembered",
    "arch",
    "bytes_of",
    "calls",
    "check_rounds",
    "compiled",
    "cuda_driver",
    "is_current",
    "is_there",
    "launches",
    "lock",
    "on_change",
    "on_restart",
    "program",
    "readers_own",
    "renewed",
    "running",
    "start",
    "started_by_us",
    "synchronize",
    "threads",
]

GPUS = ("cuda", "vulkan", "metal")
NARROW = ("vulkan", "metal")  # have no float64, or not all of its functions
ROUNDS = 1 << 14
_OURS = {"real_matrix_scalarize": False, "fast_math": False}  # what our texts ask of the compiler, and no others
_ARCHES = {"x64": "cpu", "arm64": "cpu"}

_listeners: list[Callable[[Kernel, tuple[Any, ...]], None]] = []  # who is told of launches
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


_state = _State()


class Remembered(dict[Any, Any]):
    """What was planned for an architecture, by what it is for: it is forgotten when that changes."""


_compiled: list[Kernel] = []  # the kernels that can be launched
_kernels: dict[Any, Kernel] = {}  # by name, source and kinds of arguments


def _in_child() -> None:
    global _forked
    _forked = _state.ti is not None
    _forget()


os.register_at_fork(after_in_child=_in_child)


def _forget() -> None:
    """Let every kernel start anew, and be compiled."""
    for made in _compiled:
        made.launch = made._first
    _compiled.clear()


def arch() -> str:
    """The architecture that kernels are for: "cpu", or a GPU's name."""
    return _state.arch or "cpu"


def is_current() -> bool:
    """Whether Taichi runs as we know it: nobody has started it otherwise since."""
    return _state.current


def on_change(listener: Callable[[], None]) -> None:
    """Call `listener` whenever the architecture has changed."""
    _changes.append(listener)


def on_restart(listener: Callable[[], None]) -> None:
    """Call `listener` whenever Taichi was started anew, so that what was in a GPU's buffers is gone."""
    _restarts.append(listener)


def renewed() -> str:
    """The architecture, now that Taichi runs. Raises DeviceError in a forked child."""
    if not is_current():
        start()
    return _state.arch


def start(wanted: str | None = None) -> Any:
    """Taichi, started for `wanted`, or running on whatever it runs on. Raises DeviceError in a forked child, and where
    it runs on a GPU and another is wanted."""
    if _forked:
        raise DeviceError(
            "Taichi does not survive a fork: this process was forked from one that had computed on a device.\n"
            '  Start workers with multiprocessing\'s "spawn", or compute on device="numpy" in them.'
        )
    with lock:
        ti = _state.ti = _taichi()
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
        anew = core.prog is not _state.program
        if anew:
            _forget()
            _state.core, _state.program = core, core.prog
        changed, _state.arch = running != arch(), running
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
        _state.ours = core.prog


@atexit.register
def _end() -> None:
    """Let Taichi store what it has compiled for the next process, which it does when its program ends in order."""
    if _state.ours is not None and not _forked and is_current() and _state.program is _state.ours:
        with lock:
            _state.ours = _state.program = None
            _state.ti.reset()
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
    return _state


def program() -> Any:
    """Taichi's program, as long as it is the same."""
    return running().program


def started_by_us() -> bool:
    """Whether we started Taichi, and not the reader."""
    return _state.ours is not None and _state.ours is _state.program


def threads() -> int:
    """How many threads Taichi computes with on the processor."""
    return int(start().lang.impl.current_cfg().cpu_max_num_threads)


def synchronize() -> None:
    """Wait until everything that was launched is done."""
    if _state.ti is not None and is_current():
        with lock:
            _state.program.synchronize()


def check_rounds(name: str, count: int) -> None:
    """Raise DeviceError where a thread would go through more numbers, one after the other, than it may be let to."""
    if _state.arch == "vulkan" and count > ROUNDS:
        raise DeviceError(
            f"{name}: {count:,} numbers one after the other are more than a thread may take on vulkan, {ROUNDS:,}.\n"
            '  Some drivers stop it without a word. Compute this elsewhere: x.to("cpu").'
        )


class Kernel:
    """A text of Taichi's Python as something to call, with arrays (in memory, row by row) and numbers.

    `kinds` has a letter for each argument: "a" an array, given as its address, count and bytes, on a GPU with its block
    of memory too; "h" one that is the host's anyhow; "p" one whose text takes the address alone; "i" an int, "f" a
    fraction. `launch` is the quick way to call it: it changes when the text is compiled, and while somebody listens, so
    look it up for each call. A `long` text is left
    to LLVM to optimise: what Taichi does before takes a minute where that takes a second, and gains nothing. `made` is
    said of a text that is for a GPU already.
    """

    __slots__ = ("_long", "_made", "_ready", "kinds", "launch", "name", "text", "work")

    def __init__(self, name: str, text: str, kinds: str, long: bool = False, made: Moved | None = None) -> None:
        self.name, self.text, self.kinds, self._long, self._made = name, text, kinds, long, made
        self.work: Any = None  # of a snippet in vectors what it is; see `source.Work`
        self._ready: Any = None
        self.launch: Any = self._first

    def __call__(self, *args: Any) -> None:
        self.launch(*args)

    def _first(self, *args: Any) -> None:
        start()
        if _state.arch in GPUS and any(kind == "a" and len(x) == 3 for kind, x in zip(self.kinds, args, strict=True)):
            raise DeviceError(
                f"{self.name}: Taichi runs on {_state.arch} now, so that NumPy computes what is on the cpu.\n"
                "  Repeat the operation."
            )
        self.prepare()
        self.launch(*args)

    def prepare(self) -> None:
        """Compile the text now. Raises DeviceError where Taichi cannot."""
        ti = start()
        with lock:
            if self.launch == self._first:
                self._compile(ti)

    def unheard(self, *args: Any) -> None:
        """Launch, and tell nobody."""
        self.prepare()
        self._ready(*args)

    def _heard(self, *args: Any) -> None:
        for listener in tuple(_listeners):
            listener(self, args)
        self._ready(*map(plain, args))

    def _again(self, *args: Any) -> None:
        """Launch after Taichi was started otherwise, by the reader."""
        start()
        self.launch(*args)

    @property
    def ran(self) -> str:
        """The text as it was compiled, for a GPU another; on `cpu` but for how it divides, see `truncated`."""
        return (self._made or for_gpu(self.text)).text if _state.arch in GPUS else self.text

    def _compile(self, ti: Any) -> None:
        made = self._made or for_gpu(self.text) if _state.arch in GPUS else None
        text = made.text if made is not None else self.text if self._long else truncated(self.text)
        file = f"<minigrad kernel {self.name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)  # where Taichi looks for it
        space: dict[str, Any] = {"ti": ti, **({"muladd": _muladd()} if "muladd." in text else {})}
        exec(compile(text, file, "exec", dont_inherit=True), space)  # with annotations as they are
        primal = space[f"{self.name}_kernel"]._primal
        samples = [_sample(argument.annotation) for argument in primal.arguments]
        program = _state.program
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
        self._ready = make(lock, prepared.make_launch_context, program.launch_kernel, ready, _state.core, self._again)
        self.launch = self._heard if _listeners else self._ready
        _compiled.append(self)


@functools.cache
def _muladd() -> Any:
    """What texts for the processor call to multiply and add in one instruction, of LLVM's: see muladd.ll."""
    from taichi.lang.source_builder import SourceBuilder

    return SourceBuilder.from_file(str(Path(__file__).with_name("muladd.bc")))


def for_gpu(text: str) -> Moved:
    """A text as the GPU that Taichi runs on gets it."""
    return moved(text, _state.arch in NARROW, _state.arch == "cuda")


def _not_compiled(name: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    return (
        f"{name}: Taichi cannot compile this kernel for {_state.arch}: {reason}\n"
        '  Compute it elsewhere: x.to("cpu"), or x.to("numpy").'
    )


def _place(context: Any, node: Any) -> str:
    """Where a node is in a text. Taichi's own wraps the line and marks the place in it, for each node of a text, be
    there an error or not: it took two fifths of the time in which a text is compiled."""
    return f'File "{context.file}", line {node.lineno + context.lineno_offset}:\n{context.src[node.lineno - 1]}\n'


@contextlib.contextmanager
def _compiling_as_ours(ti: Any, more: dict[str, bool]) -> Iterator[None]:
    """A block in which Taichi compiles with our settings, also where the reader started it with others."""
    config, core = ti.lang.impl.current_cfg(), _state.core
    ours = {**_OURS, "real_matrix_scalarize": _state.arch in NARROW, **more}
    before, real = {name: getattr(config, name) for name in ours}, core.default_fp
    core.default_fp = ti.f32 if _state.arch in NARROW else ti.f64
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
    """A block in which `listener` is told of each kernel that this thread launches, before it is."""
    return calls(lambda made, args: listener(made))


@contextlib.contextmanager
def calls(listener: Callable[[Kernel, tuple[Any, ...]], None]) -> Iterator[None]:
    """The same, and with which arguments; numbers among them may be traced."""
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


@contextlib.contextmanager
def readers_own(name: str) -> Iterator[None]:
    """A block for kernels of Taichi's that others wrote: started, and alone."""
    start(name)
    with lock:
        yield


def _sample(note: Any) -> Any:
    """An argument such as a kernel asks for, to compile with."""
    if not hasattr(note, "dtype"):
        return 1
    if hasattr(note.dtype, "n"):
        return np.zeros((4, note.dtype.n), _numpy(note.dtype.dtype))
    return np.zeros(16, _numpy(note.dtype))


def _numpy(dtype: Any) -> Any:
    return np.dtype(_NAMES[dtype.to_string()])


_NAMES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8"}


def bytes_of(element: str) -> int:
    """Of an element of an array: "f32" has 4, "f32*16" 64."""
    kind, _, count = element.partition("*")
    return np.dtype(_NAMES[kind]).itemsize * int(count or 1)


@functools.cache
def compiled(name: str, text: str, kinds: str) -> Kernel:
    """The kernel of a text, compiled when it is first launched."""
    return _kernels.setdefault((name, text, kinds), Kernel(name, text, kinds))  # one for all threads
