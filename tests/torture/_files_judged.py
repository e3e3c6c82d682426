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

__all__ = ["LONGEST", "MARGIN", "OUTSIDE", "Place", "judged", "place"]

MARGIN = 2**22
MOST = 2**30
LONGEST = 1.0
OUTSIDE = "outside"  # a folder that no reader may touch, next to the case's
KEPT = {"kept.txt": b"kept", "kept.json": b"{}"}
RUNS = ("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen")
SENDS = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")
ELSE = ("pickle.find_class", "exec", "ctypes.dlopen", "code.__new__", "marshal.loads", "function.__new__")
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


class Place:
    """The folder of a case, and what an audit hook observed."""

    def __init__(self) -> None:
        fast = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="minigrad-", dir=fast)))
        atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        self.folder, self.outside = self.root / "case", self.root / OUTSIDE
        self.watching, self.seen = False, ""
        for name in ENCODINGS:  # import their modules, which Python loads on first use
            codecs.lookup(name)
        sys.addaudithook(self._heard)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST, resource.RLIM_INFINITY))

    def emptied(self) -> Path:
        """Empty the case's folder, restore the folder next to it, and return the former."""
        shutil.rmtree(self.root, ignore_errors=True)
        for path in (self.folder, self.outside):
            path.mkdir(parents=True)
        for name, data in KEPT.items():
            (self.outside / name).write_bytes(data)
        return self.folder

    def touched(self) -> bool:
        """Whether anything outside the case's folder changed."""
        there = {path.name: path.read_bytes() if path.is_file() else None for path in self.outside.iterdir()}
        return there != KEPT or sorted(path.name for path in self.root.iterdir()) != ["case", OUTSIDE]

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching or self.seen:
            return
        if event.startswith((*RUNS, *SENDS)) or event in ELSE:
            self.seen = f"{event}{arguments!r:.200}"
        elif event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if not self._inside(path) and (writes or self._beside(path)):
                self.seen = f"open{(path, mode, flags)!r:.200}"
        elif event in CHANGES and not all(self._inside(arguments[k]) for k in CHANGES[event]):
            self.seen = f"{event}{arguments!r:.200}"

    def _inside(self, path: Any) -> bool:
        """Whether a path is in the case's folder after resolving links."""
        return isinstance(path, int) or os.path.realpath(os.fsdecode(path)).startswith(str(self.folder))

    def _beside(self, path: Any) -> bool:
        real = os.path.realpath(os.fsdecode(path))
        return real.startswith(str(self.root)) or real in ("/etc/passwd", "/etc/hostname")


_PLACE: list[Place] = []


def place() -> Place:
    """Return the workspace of this process."""
    if not _PLACE:
        _PLACE.append(Place())
    return _PLACE[0]


def judged(
    read: Callable[[], Any],
    size: int,
    known: tuple[type[Exception], ...] = (),
    result: Callable[[Any], int] = lambda _: 0,
) -> str | None:
    """Return what is wrong with reading a file of `size` bytes, or None. `known` are documented errors.

    `result` returns the size in bytes of the result.
    """
    where = place()
    wrong, peak, seconds, held = _read(read, known, result, traced=True)
    if wrong is None and seconds > LONGEST:
        wrong, _, seconds, _ = _read(read, known, result, traced=False)
    most = 4 * max(size, held) + MARGIN
    if where.seen:
        return f"a forbidden operation: {where.seen}"
    if where.touched():
        return "it changed something outside its folder"
    if wrong is None and seconds > LONGEST:
        return f"it took {seconds:.1f} s of CPU time for {size:,} bytes"
    if wrong is None and peak > most:
        return f"it allocated {peak:,} bytes for a file of {size:,} and a result of {held:,}"
    return wrong


def _read(read: Any, known: Any, result: Any, traced: bool) -> tuple[str | None, int, float, int]:
    where = place()
    wrong, held, found = None, 0, None
    where.seen, where.watching = "", True
    if traced:
        tracemalloc.start()
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read()
    except OutOfMemoryError as error:
        wrong = f"it exceeds the memory limit: {error}"
    except (MinigradError, *known) as error:
        if len(str(error).split()) < 3:
            wrong = f"its error has no message: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 -- any exception is a finding
        wrong = f"it raises {type(error).__name__}: {error!s:.300}"
    finally:
        seconds = time.process_time() - start
        where.watching = False
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    if found is not None:
        held = result(found)
    return wrong, peak, seconds, held
