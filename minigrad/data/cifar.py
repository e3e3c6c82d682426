"""CIFAR-10's binary format: records of one byte for the label and 3,072 for a picture, red, green, blue, row by row.

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
_LARGEST = 2**26  # no member of the archive is half as large
_WHOLE = 2**28  # nor are all of them together so large
_HEADER = 2**11  # bytes of a header, and how often one may be read, two or three times for each member
_READS = 200
_WRONG = (ArithmeticError, EOFError, LookupError, OSError, RecursionError, ValueError)  # what tarfile raises besides


def read_batch(path: str | PathLike[str], records: int = 10_000) -> tuple[Any, Any]:
    """The pictures, (N, 3, 32, 32), and labels, (N,), of a file of so many records, as NumPy arrays of uint8.

    Raises FileFormatError for a file of another size, or with a label above 9.
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
    """What `read_batch` gives, for files inside a packed archive. Nothing is unpacked to the disk.

    Raises FileFormatError for what is no such archive, or lacks a file.
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
                        f"{path}: {member.name} is of {member.size:,} bytes, and CIFAR-10 has none such."
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
        raise FileFormatError(f"{path}: it cannot be unpacked: {error}.\n  Fetch or copy it again.") from None
    if missing := [name for name in names if name not in found]:
        raise FileFormatError(f"{path}: {', '.join(missing)} is not in it: it is not CIFAR-10's binary version.")
    return [found[name] for name in names]


class _Sparing:
    """The headers of an archive, for tarfile: it reads at once as much as one says, which may be anything.

    And it searches an extended header in a time that grows with its square (CVE-2024-6232, in Python before 3.11.10).
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = _READS
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        self._left -= 1
        if size > _HEADER or self._left < 0:
            raise tarfile.ReadError("its headers are longer, or more, than CIFAR-10's")
        return bytes(self._file.read(size))

    def seek(self, place: int) -> int:
        if place > _WHOLE:
            raise tarfile.ReadError(f"it is of more than {_WHOLE:,} bytes, and CIFAR-10 is not")
        return int(self._file.seek(place))


def _parsed(data: bytearray, path: Any) -> tuple[Any, Any]:
    table = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    if (table[:, 0] > 9).any():
        row = int((table[:, 0] > 9).argmax())
        raise FileFormatError(f"{path}: the label of picture {row} is {table[row, 0]}, where they are from 0 to 9.")
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def _wrong_size(path: Any, size: int, records: int, start: bytes) -> str:
    why = "it is cut short, or of another kind"
    if start[:1] == b"\x80":
        why = "it seems to be the Python version, a pickle, which is not read: get the binary version"
    elif start == b"\x1f\x8b":
        why = "it is packed by gzip: unpack it"
    elif size == records * (_RECORD + 1):
        why = "it seems to be of CIFAR-100"
    return f"{path}: it has {size:,} bytes, where {records:,} pictures take {records * _RECORD:,}: {why}."
