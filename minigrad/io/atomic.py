"""Atomic file writes: a path keeps its old content until the new file has been written completely."""

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
    """Read all bytes from a path, or the remaining bytes of an open file. Raises DTypeError for text files."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return file.read()
    data: Any = getattr(f, "read", bytes)()
    if not hasattr(f, "read") or not isinstance(data, bytes):
        raise DTypeError(
            f"load: expected a path or a file opened in binary mode, but got {_describe(f)}.\n  Write open(path, 'rb')."
        )
    return data


def write_all(f: str | os.PathLike[str] | IO[bytes], data: bytes) -> None:
    """Write `data` to an open file, or to a path, which is replaced atomically."""
    if isinstance(f, str | os.PathLike):
        _replace_atomically(os.path.realpath(os.fspath(f)), data)
    elif hasattr(f, "write"):
        try:
            f.write(data)
        except TypeError:
            raise DTypeError(
                f"save: expected a file opened in binary mode, but got {_describe(f)}.\n  Write open(path, 'wb')."
            ) from None
    else:
        raise DTypeError(
            f"save: expected a path or a file, but got {_describe(f)}.\n  Write open(path, 'wb') for a file."
        )


def _replace_atomically(path: str, data: bytes) -> None:
    """Write `data` to a temporary file in the same folder, sync it to disk, and rename it to `path`.

    A rename within a folder is atomic (POSIX; MoveFileEx on Windows), so readers see either the old or the new file. A
    process killed before the rename leaves a file ``.name.….tmp``, which may be deleted.
    """
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):  # the error names `path`, not the temporary file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # sync the directory entry as well; Windows cannot open folders
        folder_fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_fd)
        finally:
            os.close(folder_fd)


def _describe(f: Any) -> str:
    return f"{type(f).__name__} {f!r:.80}"
