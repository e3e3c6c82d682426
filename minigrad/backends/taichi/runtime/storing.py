"""The folder in which Taichi stores what it compiled, for the next process."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

from minigrad.core.errors import DeviceError

__all__ = ["clear", "find_home", "stored"]

FOLDER = "TI_OFFLINE_CACHE_FILE_PATH"
LOCKED = 60  # seconds: Taichi holds its lock while it reads or writes, far less
_passing: list[tempfile.TemporaryDirectory[str]] = []  # folders that stand in for one that cannot be written to


def find_home() -> None:
    """Set XDG_CACHE_HOME where HOME is not set either: Taichi aborts the process without both.

    It is in the home of the system's list of users; for a user without one, a folder that is gone at the end.
    """
    if os.environ.get("HOME") or os.environ.get("XDG_CACHE_HOME") or os.name != "posix":
        return
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = _stand_in("the home folder, which nobody knows: HOME is not set")
    os.environ["XDG_CACHE_HOME"] = os.path.join(home, ".cache")


@contextlib.contextmanager
def stored(ti: Any) -> Iterator[None]:
    """A block in which Taichi starts with a folder for what it compiles. Where that cannot be written to, one that is
    gone at the end stands in for it: Taichi makes the folder at its end in any case, and crashes where it cannot.

    A process that was killed while it wrote leaves Taichi's lock behind, with which no other reads or writes there.
    """
    given = os.environ.get(FOLDER)
    folder = str(given or ti.lang.impl.default_cfg().offline_cache_file_path)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))  # on a full disk there are empty files
        _unlock(os.path.join(folder, "ticache.lock"))
    except OSError as error:
        os.environ[FOLDER] = _stand_in(f"{folder} ({error.strerror})")
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(FOLDER, None)
        else:
            os.environ[FOLDER] = given


def _unlock(lock: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if time.time() - os.path.getmtime(lock) > LOCKED:
            os.remove(lock)


def _stand_in(where: str) -> str:
    """A folder that is gone at the end, with a warning. Raises DeviceError where there cannot be one."""
    try:
        passing = tempfile.TemporaryDirectory()
    except OSError as error:
        raise DeviceError(
            f"cpu: what is compiled cannot be stored in {where}, nor in a temporary folder: {error.strerror}.\n"
            f'  Set {FOLDER} to a folder that can be written to, or compute by NumPy: mg.set_default_device("numpy").'
        ) from None
    _passing.append(passing)
    warnings.warn(
        f"What is compiled cannot be stored in {where}, so each process compiles it anew.\n"
        f"  Set {FOLDER} to a folder that can be written to.",
        stacklevel=2,
    )
    return passing.name


def clear() -> None:
    """Remove what stood in for the folder, when Taichi has ended."""
    while _passing:
        _passing.pop().cleanup()
