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
from minigrad.data.idx import read_exactly, unpacked

__all__ = ["read_archive", "read_batch"]

_RECORD = 1 + 3 * 32 * 32
_LARGEST = 2**26  # more than twice the size of the largest member
_WHOLE = 2**28  # more than the size of the entire archive
_HEADER = 2**11  # bytes per read of a header; tarfile reads two or three times per member
_READS = 200
_WRONG = (ArithmeticError, EOFError, LookupError, OSError, RecursionError, ValueError)  # tarfile raises these as well


def read_batch(path: str | PathLike[str], records: int = 10_000) -> tuple[Any, Any]:
    """Read images, (N, 3, 32, 32), and labels, (N,), from a file of N = `records` records, as uint8 NumPy arrays.

    Raises FileFormatError if the file size is wrong, or a label is above 9.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        if size != records * _RECORD:
            raise FileFormatError(_wrong_size(path, size, records, start))
        return _parsed(read_exactly(file, size, path), path)


def read_archive(path: str | PathLike[str], names: Sequence[str], records: int = 10_000) -> list[tuple[Any, Any]]:
    """Read several files as `read_batch` does from a compressed tar archive, without extracting it to disk.

    Raises FileFormatError if the archive is invalid or a file is missing.
    """
    found: dict[str, tuple[Any, Any]] = {}
    try:
        with open(path, "rb") as raw:
            whole = unpacked(raw, path)
            headers: Any = _Sparing(whole)
            for member in tarfile.TarFile(fileobj=headers):
                name = member.name.rpartition("/")[2]
                if member.size > _LARGEST:
                    raise FileFormatError(
                        f"{path}: {member.name} has {member.size:,} bytes, more than any file of CIFAR-10."
                    )
                if name not in names or not member.isfile() or member.issparse():
                    continue
                inside = f"{path}: {member.name}"
                if member.size != records * _RECORD:
                    raise FileFormatError(_wrong_size(inside, member.size, records, b""))
                whole.seek(member.offset_data)
                found[name] = _parsed(read_exactly(whole, member.size, inside), inside)
                if len(found) == len(names):
                    break
    except MinigradError:
        raise
    except (tarfile.TarError, zlib.error, *_WRONG) as error:
        raise FileFormatError(f"{path}: cannot extract: {error}.\n  Download or copy it again.") from None
    if missing := [name for name in names if name not in found]:
        raise FileFormatError(f"{path}: {', '.join(missing)} not found: not the binary version of CIFAR-10.")
    return [found[name] for name in names]


class _Sparing:
    """File object that limits what tarfile reads, since it allocates whatever size a header declares.

    tarfile also parses extended headers in quadratic time (CVE-2024-6232, in Python before 3.11.10).
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = _READS
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        self._left -= 1
        if size > _HEADER or self._left < 0:
            raise tarfile.ReadError("its headers are longer, or more numerous, than CIFAR-10's")
        return bytes(self._file.read(size))

    def seek(self, place: int) -> int:
        if place > _WHOLE:
            raise tarfile.ReadError(f"its size exceeds {_WHOLE:,} bytes, unlike CIFAR-10's")
        return int(self._file.seek(place))


def _parsed(data: bytearray, path: Any) -> tuple[Any, Any]:
    table = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    if (table[:, 0] > 9).any():
        row = int((table[:, 0] > 9).argmax())
        raise FileFormatError(f"{path}: the label of image {row} is {table[row, 0]}, but labels range from 0 to 9.")
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def _wrong_size(path: Any, size: int, records: int, start: bytes) -> str:
    why = "it is truncated, or not CIFAR-10"
    if start[:1] == b"\x80":
        why = "it looks like the Python version, a pickle, which is not supported: download the binary version"
    elif start == b"\x1f\x8b":
        why = "it is gzip-compressed: decompress it"
    elif size == records * (_RECORD + 1):
        why = "it looks like CIFAR-100"
    return f"{path}: expected {records * _RECORD:,} bytes for {records:,} images, but got {size:,}: {why}."
