"""Check how a reader handles one corrupt file, for the campaigns of `files`.

A reader is right if it returns, or raises an error of minigrad or a documented one, with a message. An audit hook
(PEP 578) observes the read: it must not execute, import, send or open anything outside the folder of the case, and the
folder next to it must stay unchanged.

Memory is the peak of `tracemalloc`, which counts allocations of Python and NumPy: at most 4 times the size of the file
or the result, whichever is larger, plus MARGIN. The margin is for Python objects, many of which a short file can
describe: an empty list takes one byte in a pickle and 56 bytes in memory. RLIMIT_AS limits allocations of libraries to
MOST above the current use: exceeding it raises MemoryError, which is a failure.

Time is CPU time, at most a second. If `tracemalloc` makes it exceed the limit, it is measured again without.
"""

from __future__ import annotations

import atexit
import codecs
import os
import resource
import shutil
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minigrad.core.errors import MinigradError, OutOfMemoryError

__all__ = ["MARGIN", "MAX_SECONDS", "OUTSIDE", "Workspace", "check_read", "workspace"]

MARGIN = 2**22
MAX_ALLOCATION = 2**30
MAX_SECONDS = 1.0
OUTSIDE = "outside"  # a folder that no reader may touch, next to the case's
UNTOUCHED_FILES = {"kept.txt": b"kept", "kept.json": b"{}"}
EXECUTING_EVENTS = ("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen")
NETWORK_EVENTS = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")
OTHER_EVENTS = ("pickle.find_class", "exec", "ctypes.dlopen", "code.__new__", "marshal.loads", "function.__new__")
ENCODINGS = (
    "ascii",
    "cp437",
    "idna",
    "latin-1",
    "raw-unicode-escape",
    "unicode-escape",
    "utf-8-sig",
    "utf-16",
    "utf-32",
)
ENCODINGS += ("utf-16-le", "cp1252")
CHANGES = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "os.utime"), (0,)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), (0, 1)),
}


class Workspace:
    """The folder of a case, and what an audit hook observed."""

    def __init__(self) -> None:
        fast = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="minigrad-", dir=fast)))
        atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        self.folder, self.outside = self.root / "case", self.root / OUTSIDE
        self.is_watching, self.violation = False, ""
        for name in ENCODINGS:  # import their modules, which Python loads on first use
            codecs.lookup(name)
        sys.addaudithook(self._audit)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MAX_ALLOCATION, resource.RLIM_INFINITY))

    def reset(self) -> Path:
        """Empty the case's folder, restore the folder next to it, and return the former."""
        shutil.rmtree(self.root, ignore_errors=True)
        for path in (self.folder, self.outside):
            path.mkdir(parents=True)
        for name, data in UNTOUCHED_FILES.items():
            (self.outside / name).write_bytes(data)
        return self.folder

    def is_outside_changed(self) -> bool:
        """Whether anything outside the case's folder changed."""
        contents = {path.name: path.read_bytes() if path.is_file() else None for path in self.outside.iterdir()}
        return contents != UNTOUCHED_FILES or sorted(path.name for path in self.root.iterdir()) != ["case", OUTSIDE]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_watching or self.violation:
            return
        if event.startswith((*EXECUTING_EVENTS, *NETWORK_EVENTS)) or event in OTHER_EVENTS:
            self.violation = f"{event}{arguments!r:.200}"
        elif event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if not self._is_inside(path) and (writes or self._is_known_outside(path)):
                self.violation = f"open{(path, mode, flags)!r:.200}"
        elif event in CHANGES and not all(self._is_inside(arguments[k]) for k in CHANGES[event]):
            self.violation = f"{event}{arguments!r:.200}"

    def _is_inside(self, path: Any) -> bool:
        """Whether a path is in the case's folder after resolving links."""
        return isinstance(path, int) or os.path.realpath(os.fsdecode(path)).startswith(str(self.folder))

    def _is_known_outside(self, path: Any) -> bool:
        real = os.path.realpath(os.fsdecode(path))
        return real.startswith(str(self.root)) or real in ("/etc/passwd", "/etc/hostname")


_WORKSPACE: list[Workspace] = []


def workspace() -> Workspace:
    """Return the workspace of this process."""
    if not _WORKSPACE:
        _WORKSPACE.append(Workspace())
    return _WORKSPACE[0]


def check_read(
    read: Callable[[], Any],
    size: int,
    known: tuple[type[Exception], ...] = (),
    result: Callable[[Any], int] = lambda _: 0,
) -> str | None:
    """Return what is wrong with reading a file of `size` bytes, or None. `known` are documented errors.

    `result` returns the size in bytes of the result.
    """
    folder = workspace()
    wrong, peak, seconds, result_size = _read(read, known, result, traced=True)
    if wrong is None and seconds > MAX_SECONDS:
        wrong, _, seconds, _ = _read(read, known, result, traced=False)
    max_memory = 4 * max(size, result_size) + MARGIN
    if folder.violation:
        return f"a forbidden operation: {folder.violation}"
    if folder.is_outside_changed():
        return "it changed something outside its folder"
    if wrong is None and seconds > MAX_SECONDS:
        return f"it took {seconds:.1f} s of CPU time for {size:,} bytes"
    if wrong is None and peak > max_memory:
        return f"it allocated {peak:,} bytes for a file of {size:,} and a result of {result_size:,}"
    return wrong


def _read(read: Any, known: Any, result: Any, traced: bool) -> tuple[str | None, int, float, int]:
    folder = workspace()
    wrong, result_size, value = None, 0, None
    folder.violation, folder.is_watching = "", True
    if traced:
        tracemalloc.start()
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = read()
    except OutOfMemoryError as error:
        wrong = f"it exceeds the memory limit: {error}"
    except (MinigradError, *known) as error:
        if len(str(error).split()) < 3:
            wrong = f"its error has no message: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 -- any exception is a finding
        wrong = f"it raises {type(error).__name__}: {error!s:.300}"
    finally:
        seconds = time.process_time() - start
        folder.is_watching = False
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    if value is not None:
        result_size = result(value)
    return wrong, peak, seconds, result_size
