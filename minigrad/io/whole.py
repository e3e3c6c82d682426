"""Files that are written whole or not at all: what takes a path here leaves the old file until the new one is there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from typing import IO, Any

from minigrad.core.errors import DTypeError

__all__ = ["read_all", "write_all"]


def read_all(f: str | os.PathLike[str] | IO[bytes]) -> bytes:
    """All bytes of a path, or of a file from where it is. Raises DTypeError for a file of text."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return file.read()
    data: Any = getattr(f, "read", bytes)()
    if not hasattr(f, "read") or not isinstance(data, bytes):
        raise DTypeError(f"load: {_said(f)} gives no bytes.\n  Give a path, or a file from open(path, 'rb').")
    return data


def write_all(f: str | os.PathLike[str] | IO[bytes], data: bytes) -> None:
    """Write `data` into a file, or as the file at a path, which is replaced in one moment."""
    if isinstance(f, str | os.PathLike):
        _replace(os.path.realpath(os.fspath(f)), data)
    elif hasattr(f, "write"):
        try:
            f.write(data)
        except TypeError:
            raise DTypeError(f"save: {_said(f)} takes no bytes.\n  Write open(path, 'wb') for a path.") from None
    else:
        raise DTypeError(f"save: {_said(f)} is no file.\n  Give a path, or a file from open(path, 'wb').")


def _replace(path: str, data: bytes) -> None:
    """Make `data` the file at `path`: written beside it, brought to the disk, then moved there.

    A move within a folder is atomic (POSIX; Windows' MoveFileEx), so that whoever opens the path finds the old file or
    the new one. A process that is killed before leaves a file ``.name.….tmp`` behind, which may be deleted.
    """
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):  # said of what was asked for, and not of the file beside it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    beside = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    if os.name == "posix":  # the name, too, is to outlast a power cut; Windows opens no folders
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


def _said(f: Any) -> str:
    return f"{type(f).__name__} {f!r:.80}"
