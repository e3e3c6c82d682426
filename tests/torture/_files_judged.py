"""Reads one bad file, and tells what went wrong: for the campaigns of `files`.

A read is right where it returns, or raises an error of minigrad's, or one that the reader documents, that says
something. While it reads, an audit hook (PEP 578) watches: nothing may be run, imported, sent, or opened outside the
folder of the case. What the folder beside it holds must be what it held before.

Memory is the peak of `tracemalloc`, which counts Python's own and NumPy's: at most 4 times the file or the result,
whichever is larger, and MARGIN. The margin is for Python's objects, of which a short text can describe many: an empty
list is one byte of a pickle, and 56 bytes here. What a library takes by itself is held by RLIMIT_AS, MOST
above what the process has: more than that is a MemoryError, which is wrong.

Time is the processor's, at most a second. Where `tracemalloc` makes it more, it is taken again alone.
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
OUTSIDE = "outside"  # a folder that no reader may touch, beside the one of the case
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
    """The folder of a case, and what an audit hook has seen."""

    def __init__(self) -> None:
        fast = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="minigrad-", dir=fast)))
        atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        self.folder, self.outside = self.root / "case", self.root / OUTSIDE
        self.watching, self.seen = False, ""
        for name in ENCODINGS:  # whose modules are loaded when they are first asked for
            codecs.lookup(name)
        sys.addaudithook(self._heard)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST, resource.RLIM_INFINITY))

    def emptied(self) -> Path:
        """The folder with nothing in it, and the one beside it as it should be."""
        shutil.rmtree(self.root, ignore_errors=True)
        for path in (self.folder, self.outside):
            path.mkdir(parents=True)
        for name, data in KEPT.items():
            (self.outside / name).write_bytes(data)
        return self.folder

    def touched(self) -> bool:
        """Whether anything changed outside the folder of the case."""
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
        """Whether a path is in the folder of the case, wherever links lead."""
        return isinstance(path, int) or os.path.realpath(os.fsdecode(path)).startswith(str(self.folder))

    def _beside(self, path: Any) -> bool:
        real = os.path.realpath(os.fsdecode(path))
        return real.startswith(str(self.root)) or real in ("/etc/passwd", "/etc/hostname")


_PLACE: list[Place] = []


def place() -> Place:
    """That of this process."""
    if not _PLACE:
        _PLACE.append(Place())
    return _PLACE[0]


def judged(
    read: Callable[[], Any],
    size: int,
    known: tuple[type[Exception], ...] = (),
    result: Callable[[Any], int] = lambda _: 0,
) -> str | None:
    """What is wrong with reading a file of `size` bytes; None if nothing is. `known` are errors that are documented.

    `result` says how many bytes of what was read are the reader's.
    """
    where = place()
    wrong, peak, seconds, held = _read(read, known, result, traced=True)
    if wrong is None and seconds > LONGEST:
        wrong, _, seconds, _ = _read(read, known, result, traced=False)
    most = 4 * max(size, held) + MARGIN
    if where.seen:
        return f"it did what no reader may: {where.seen}"
    if where.touched():
        return "it changed something outside its folder"
    if wrong is None and seconds > LONGEST:
        return f"it took {seconds:.1f} s of the processor for {size:,} bytes"
    if wrong is None and peak > most:
        return f"it took {peak:,} bytes for a file of {size:,} and a result of {held:,}"
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
        wrong = f"it asks for memory that there is not: {error}"
    except (MinigradError, *known) as error:
        if len(str(error).split()) < 3:
            wrong = f"its error says nothing: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 -- whatever it raises is what is looked for
        wrong = f"it raises {type(error).__name__}: {error!s:.300}"
    finally:
        seconds = time.process_time() - start
        where.watching = False
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    if found is not None:
        held = result(found)
    return wrong, peak, seconds, held
