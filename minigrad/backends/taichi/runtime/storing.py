"""The disk cache of compiled kernels, which Taichi shares between processes."""

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
LOCKED = 60  # seconds after which a lock is stale: Taichi holds it far shorter
_passing: list[tempfile.TemporaryDirectory[str]] = []  # temporary folders in place of one that is not writable


def find_home() -> None:
    """Set XDG_CACHE_HOME if HOME is not set either, since Taichi aborts the process without both.

    Use the home folder in the password database; for a user without one, a temporary folder.
    """
    if os.environ.get("HOME") or os.environ.get("XDG_CACHE_HOME") or os.name != "posix":
        return
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = _stand_in("the home folder, which is unknown: HOME is not set")
    os.environ["XDG_CACHE_HOME"] = os.path.join(home, ".cache")


@contextlib.contextmanager
def stored(ti: Any) -> Iterator[None]:
    """Return a context in which Taichi starts with a writable cache folder. If the configured one is not writable, use
    a temporary folder: Taichi creates the folder at exit in any case, and crashes if it cannot.

    A process that is killed while writing leaves Taichi's lock, which blocks all others; remove it if it is stale.
    """
    given = os.environ.get(FOLDER)
    folder = str(given or ti.lang.impl.default_cfg().offline_cache_file_path)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))  # empty files can be created on a full disk
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
    """Return a temporary folder, with a warning. Raises DeviceError if it cannot be created."""
    try:
        passing = tempfile.TemporaryDirectory()
    except OSError as error:
        raise DeviceError(
            f"cpu: compiled kernels cannot be cached in {where}, nor in a temporary folder: {error.strerror}.\n"
            f'  Set {FOLDER} to a writable folder, or compute with NumPy: mg.set_default_device("numpy").'
        ) from None
    _passing.append(passing)
    warnings.warn(
        f"Compiled kernels cannot be cached in {where}, so each process compiles them again.\n"
        f"  Set {FOLDER} to a writable folder.",
        stacklevel=2,
    )
    return passing.name


def clear() -> None:
    """Remove the temporary folders after Taichi has ended."""
    while _passing:
        _passing.pop().cleanup()
