"""Read CIFAR-10's binary format: records of one label byte and 3,072 pixel bytes (red, green, blue; row-major).

A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009; www.cs.toronto.edu/~kriz/cifar.html.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.core.errors import FileFormatError, MinigradError
from minigrad.data.idx import open_gzip, read_exactly

__all__ = ["read_archive", "read_batch"]

_RECORD_BYTES = 1 + 3 * 32 * 32
_MAX_MEMBER_BYTES = 2**26  # more than twice the size of the largest member
_MAX_ARCHIVE_BYTES = 2**28  # more than the size of the entire archive
_MAX_HEADER_BYTES = 2**11  # maximum bytes per read of a header; tarfile makes two or three reads per member
_MAX_HEADER_READS = 200
_TARFILE_ERRORS = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    ValueError,
)  # other exceptions that tarfile raises for invalid archives


def read_batch(path: str | PathLike[str], records: int = 10_000) -> tuple[Any, Any]:
    """Read images, (N, 3, 32, 32), and labels, (N,), from a file of N = `records` records, as uint8 NumPy arrays.

    Raises FileFormatError if the file size is wrong, or a label is above 9.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        if size != records * _RECORD_BYTES:
            raise FileFormatError(_size_error_message(path, size, records, start))
        return _parse_records(read_exactly(file, size, path), path)


def read_archive(path: str | PathLike[str], names: Sequence[str], records: int = 10_000) -> list[tuple[Any, Any]]:
    """Read several files, like `read_batch`, from a compressed tar archive, without extracting it to disk.

    Raises FileFormatError if the archive is invalid or a file is missing.
    """
    batches: dict[str, tuple[Any, Any]] = {}
    try:
        with open(path, "rb") as raw:
            stream = open_gzip(raw, path)
            headers: Any = _BoundedReader(stream)
            for member in tarfile.TarFile(fileobj=headers):
                name = member.name.rpartition("/")[2]
                if member.size > _MAX_MEMBER_BYTES:
                    raise FileFormatError(
                        f"{path}: {member.name} has {member.size:,} bytes, more than any file of CIFAR-10."
                    )
                if name not in names or not member.isfile() or member.issparse():
                    continue
                member_path = f"{path}: {member.name}"
                if member.size != records * _RECORD_BYTES:
                    raise FileFormatError(_size_error_message(member_path, member.size, records, b""))
                stream.seek(member.offset_data)
                batches[name] = _parse_records(read_exactly(stream, member.size, member_path), member_path)
                if len(batches) == len(names):
                    break
    except MinigradError:
        raise
    except (tarfile.TarError, zlib.error, *_TARFILE_ERRORS) as error:
        raise FileFormatError(f"{path}: cannot extract: {error}.\n  Download or copy it again.") from None
    if missing := [name for name in names if name not in batches]:
        raise FileFormatError(f"{path}: {', '.join(missing)} not found: not the binary version of CIFAR-10.")
    return [batches[name] for name in names]


class _BoundedReader:
    """File object that limits the number and size of reads by tarfile, which allocates any size that a header declares.

    tarfile also parses extended headers in quadratic time (CVE-2024-6232, in Python before 3.11.10).
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._reads_left = _MAX_HEADER_READS
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        self._reads_left -= 1
        if size > _MAX_HEADER_BYTES or self._reads_left < 0:
            raise tarfile.ReadError("its headers are longer, or more numerous, than CIFAR-10's")
        return bytes(self._file.read(size))

    def seek(self, position: int) -> int:
        if position > _MAX_ARCHIVE_BYTES:
            raise tarfile.ReadError(f"its size exceeds {_MAX_ARCHIVE_BYTES:,} bytes, unlike CIFAR-10's")
        return int(self._file.seek(position))


def _parse_records(data: bytearray, path: Any) -> tuple[Any, Any]:
    table = np.frombuffer(data, np.uint8).reshape(-1, _RECORD_BYTES)
    if (table[:, 0] > 9).any():
        row = int((table[:, 0] > 9).argmax())
        raise FileFormatError(f"{path}: the label of image {row} is {table[row, 0]}, but labels range from 0 to 9.")
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def _size_error_message(path: Any, size: int, records: int, start: bytes) -> str:
    reason = "it is truncated, or not CIFAR-10"
    if start[:1] == b"\x80":
        reason = "it looks like the Python version, a pickle, which is not supported: download the binary version"
    elif start == b"\x1f\x8b":
        reason = "it is gzip-compressed: decompress it"
    elif size == records * (_RECORD_BYTES + 1):
        reason = "it looks like CIFAR-100"
    return f"{path}: expected {records * _RECORD_BYTES:,} bytes for {records:,} images, but got {size:,}: {reason}."
