"""Observation of the Python functions that run while a step is traced, and of calls of impure functions.

The interpreter reports function calls of the current thread to a function set by `sys.setprofile`.
"""

from __future__ import annotations

import gc
import os
import site
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["EntryWatch", "cache_by_id", "is_user_code", "names_in", "origin"]

_PATHS = sysconfig.get_paths()


def _folders(*paths: str | None) -> tuple[str, ...]:
    return tuple({path + os.sep for path in paths if path})


# Debian's packages, and those of one user, have folders of their own.
_INSTALLED = _folders(
    *[_PATHS[name] for name in ("purelib", "platlib")], *site.getsitepackages(), site.getusersitepackages()
)
_SPECS = [find_spec(package) for package in ("numpy", "taichi")]
_ENGINE = _folders(
    str(Path(__file__).parents[2]), *[os.path.dirname(spec.origin) for spec in _SPECS if spec and spec.origin]
)
_TOOLS = (  # packages that also run code in notebooks and tests, and whose state changes frequently
    "IPython", "_pytest", "coverage", "debugpy", "hypothesis", "ipykernel", "ipywidgets", "jupyter_client",
    "matplotlib", "pytest", "tornado", "tqdm", "traitlets", "zmq",
)  # fmt: skip
# Pyodide's standard library is an archive, which sysconfig does not name.
_STANDARD = _folders(*[_PATHS[name] for name in ("stdlib", "platstdlib")], os.path.dirname(os.__file__))
_TOOL_FOLDERS = tuple([folder + package + os.sep for folder in _INSTALLED for package in _TOOLS])

# Maps the name of an impure C function to its module, or to the module of its type.
_IMPURE = {
    **dict.fromkeys(
        ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"), "time"
    ),
    **dict.fromkeys(("now", "utcnow", "today"), "datetime"),
    **dict.fromkeys(("urandom", "getrandom", "times", "stat", "lstat", "listdir", "scandir", "access"), os.name),
    **dict.fromkeys(("random", "getrandbits"), "_random"),
    **dict.fromkeys(("read", "readline", "readlines", "readinto"), "_io"),
    "open": open.__module__,  # io, and _io since Python 3.12
    "input": "builtins",
}
_ENVIRONMENT = {id(getattr(type(os.environ), name).__code__) for name in ("__getitem__", "__iter__")}


@cache
def origin(filename: str) -> str:
    """Return where code in a file comes from: "engine" (minigrad, NumPy, Taichi), "standard" (Python and tools such as
    IPython), "installed" or "user"."""
    if filename.startswith(_ENGINE):
        return "engine"
    if filename.startswith(_TOOL_FOLDERS):
        return "standard"
    if filename.startswith(_INSTALLED):
        return "installed"
    return "standard" if filename.startswith((*_STANDARD, "<frozen")) else "user"


def is_user_code(code: CodeType, variables: Mapping[str, Any]) -> bool:
    """Return whether the globals of a function with this code are guarded. Those of minigrad and Python are not.

    Code compiled from a string belongs to the file of its globals; code that minigrad compiles has no file.
    """
    file = code.co_filename
    if file.startswith("<") and not file.startswith(("<doctest", "<ipython", "<stdin")):
        file = str(variables.get("__file__") or ("" if "__spec__" in variables else "<frozen"))
    return origin(file) in ("user", "installed")


def cache_by_id(function: Callable[[CodeType], frozenset[str]]) -> Callable[[CodeType], frozenset[str]]:
    """Cache a function of code objects by id, since hashing a code object hashes its constants, which may be
    symbolic."""
    cache: dict[int, tuple[Any, frozenset[str]]] = {}

    def cached(code: CodeType) -> frozenset[str]:
        entry = cache.get(id(code))
        if entry is None or entry[0]() is not code:
            if len(cache) > 4096:
                cache.clear()
            entry = cache[id(code)] = weakref.ref(code), function(code)
        return entry[1]

    return cached


@cache_by_id
def names_in(code: CodeType) -> frozenset[str]:
    """Return the names of attributes and globals in a function and nested ones, and strings that may be such names."""
    names = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, CodeType):
            names |= names_in(x)
        else:
            names.update(y for y in (x if isinstance(x, tuple) else (x,)) if isinstance(y, str) and y.isidentifier())
    return frozenset(names)


class EntryWatch:
    """Context manager that records which functions are entered.

    `on_enter` is called with the frame of each user function when it is entered for the first time, before it runs.
    """

    def __init__(self, on_enter: Callable[[FrameType], None]) -> None:
        self.entered: dict[int, CodeType] = {}
        """Entered code objects by id, since hashing a code object takes longer than most calls."""
        self.names: set[str] = set()
        """The names in the code of user functions."""
        self.impure: list[str] = []
        """Messages about calls of impure functions, with their source lines."""
        self.reads_environment = False
        self._on_enter = on_enter
        self._previous_profiler: Any = None
        self._gc_callbacks: dict[int, CodeType] = {}  # callbacks of the garbage collector, which may run anywhere

    def __enter__(self) -> EntryWatch:
        codes = [getattr(callback, "__code__", None) for callback in gc.callbacks]
        self._gc_callbacks = {id(code): code for code in codes if code is not None}
        self.entered |= self._gc_callbacks
        self._previous_profiler = sys.getprofile()
        if hasattr(self._previous_profiler, "disable"):  # cProfile's profiler cannot be restored by sys.setprofile
            self._previous_profiler.disable()
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        if hasattr(self._previous_profiler, "enable"):
            self._previous_profiler.enable()
        elif self._previous_profiler is not None:
            sys.setprofile(self._previous_profiler)

    def _on_event(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "call":
            code = frame.f_code
            if id(code) not in self.entered and not _is_called_by_engine(frame):
                self.entered[id(code)] = code
                if id(code) in _ENVIRONMENT:
                    self.reads_environment = True
                if is_user_code(code, frame.f_globals):
                    self.names |= names_in(code)
                    self._on_enter(frame)
        elif event == "c_call" and getattr(function, "__name__", "") in _IMPURE:
            self._record_impure(frame, function)

    def _record_impure(self, frame: FrameType, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        kind = owner if isinstance(owner, type) else type(owner)
        if _IMPURE[function.__name__] in {function.__module__, *[base.__module__ for base in kind.__mro__]}:
            name = f"{function.__module__}.{function.__name__}" if function.__module__ else function.__name__
            if any(id(caller.f_code) in self._gc_callbacks for caller in _callers(frame)):
                return
            for caller in _callers(frame):
                if origin(caller.f_code.co_filename) != "standard":
                    break
                name = f"{caller.f_globals.get('__name__', '')}.{caller.f_code.co_name}"
            if origin(caller.f_code.co_filename) == "user" and not name.startswith(
                "logging."
            ):  # logging reads the clock
                line = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
                self.impure.append(f"{name}(), at {line}, which returns another value at each call")


def _is_called_by_engine(frame: FrameType) -> bool:
    """Return whether a function of an installed package runs because minigrad called it."""
    if origin(frame.f_code.co_filename) != "installed":
        return False
    origins = (origin(caller.f_code.co_filename) for caller in _callers(frame))
    return next((x for x in origins if x in ("engine", "user")), "user") == "engine"


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
