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

__all__ = ["ensure_cache_home", "remove_temporary_folders", "use_cache_folder"]

FOLDER_VARIABLE = "TI_OFFLINE_CACHE_FILE_PATH"
STALE_LOCK_SECONDS = 60  # age at which a lock is stale; Taichi holds it for a much shorter time
_temporary_folders: list[
    tempfile.TemporaryDirectory[str]
] = []  # temporary folders used because the configured folder is not writable


def ensure_cache_home() -> None:
    """Set XDG_CACHE_HOME if HOME is not set either, since Taichi aborts the process without both.

    Use the home folder in the password database, or a temporary folder for a user without one.
    """
    if os.environ.get("HOME") or os.environ.get("XDG_CACHE_HOME") or os.name != "posix":
        return
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = _create_temporary_folder("the home folder, which is unknown: HOME is not set")
    os.environ["XDG_CACHE_HOME"] = os.path.join(home, ".cache")


@contextlib.contextmanager
def use_cache_folder(ti: Any) -> Iterator[None]:
    """Return a context in which Taichi starts with a writable cache folder. If the configured one is not writable, use
    a temporary folder: Taichi creates the folder at exit in any case, and crashes if it cannot.

    A process that is killed while writing leaves Taichi's lock behind, which blocks all other processes. Remove the
    lock if it is stale.
    """
    configured = os.environ.get(FOLDER_VARIABLE)
    folder = str(configured or ti.lang.impl.default_cfg().offline_cache_file_path)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))  # empty files can be created on a full disk
        _remove_stale_lock(os.path.join(folder, "ticache.lock"))
    except OSError as error:
        os.environ[FOLDER_VARIABLE] = _create_temporary_folder(f"{folder} ({error.strerror})")
    try:
        yield
    finally:
        if configured is None:
            os.environ.pop(FOLDER_VARIABLE, None)
        else:
            os.environ[FOLDER_VARIABLE] = configured


def _remove_stale_lock(lock: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if time.time() - os.path.getmtime(lock) > STALE_LOCK_SECONDS:
            os.remove(lock)


def _create_temporary_folder(location: str) -> str:
    """Create a temporary folder, warn the user, and return its path. Raises DeviceError if it cannot be created."""
    try:
        temporary_folder = tempfile.TemporaryDirectory()
    except OSError as error:
        raise DeviceError(
            f"cpu: compiled kernels cannot be cached in {location}, nor in a temporary folder: {error.strerror}.\n"
            f'  Set {FOLDER_VARIABLE} to a writable folder, or compute with NumPy: mg.set_default_device("numpy").'
        ) from None
    _temporary_folders.append(temporary_folder)
    warnings.warn(
        f"Compiled kernels cannot be cached in {location}, so each process compiles them again.\n"
        f"  Set {FOLDER_VARIABLE} to a writable folder.",
        stacklevel=2,
    )
    return temporary_folder.name


def remove_temporary_folders() -> None:
    """Remove the temporary folders after Taichi has ended."""
    while _temporary_folders:
        _temporary_folders.pop().cleanup()
