"""IDX, the format of MNIST: a header that says which numbers in which dimensions, then the numbers.

Y. LeCun, C. Cortes, C. Burges, "The MNIST database": two bytes 0, a byte for the type, one for the number of
dimensions, an int of 32 bits for each, all with the highest byte first. A file may be packed by gzip; its first bytes
say so, not its name. Nothing is believed that the header says: a file is read up to there and no further, and no memory
is taken for what is not in it.
"""

from __future__ import annotations

import gzip
import zlib
from math import prod
from os import SEEK_END, PathLike
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np

from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError
from minigrad.io.whole import write_all

__all__ = ["Openable", "check_end", "read_exactly", "read_idx", "unpacked", "write_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CODES = {np.dtype(name).newbyteorder("="): code for code, name in _TYPES.items()}
_CHUNK = 2**20
MOST = 2**32
_RATIO = 1040  # gzip packs at most 1,032 bytes into one, and a header


class Openable(Protocol):
    """What can be opened as a path can: a file among a package's resources."""

    def open(self, mode: Literal["rb"]) -> Any:
        """Open it for reading, as bytes."""


def read_idx(path: str | PathLike[str] | Openable, *, most: int = MOST) -> Any:
    """The numbers of an IDX file as a NumPy array, packed by gzip or not.

    Raises FileFormatError for a file that is none, that is cut short or goes on after its end, or whose header speaks
    of more than `most` bytes (4 GiB); OSError if it cannot be read.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(os.path.join(folder, "a.gz"), np.array([[1, 2], [3, 4]], np.uint8))
    ...     read_idx(os.path.join(folder, "a.gz")).tolist()
    [[1, 2], [3, 4]]
    """
    place = Path(path) if isinstance(path, str | PathLike) else path
    with place.open("rb") as raw:
        size = raw.seek(0, SEEK_END)
        raw.seek(0)
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        with unpacked(raw, path) if packed else raw as file:
            kind, shape = _header(file, path)
            length = prod(shape) * kind.itemsize
            if length > most:
                raise FileFormatError(
                    f"{path}: its header speaks of {length:,} bytes, in {_text(shape)}; at most {most:,} are read.\n"
                    "  If it is right, say most=."
                )
            room = size * _RATIO if packed else size
            if length > room:
                raise FileFormatError(
                    f"{path}: its header speaks of {length:,} bytes, in {_text(shape)}, and the file has {size:,} "
                    f"{'packed ones ' if packed else ''}in all: it is cut short, or the header is wrong."
                )
            numbers = read_exactly(file, length, path)
            check_end(file, length, path)
    try:
        array = np.frombuffer(numbers, kind).reshape(shape)
    except ValueError as error:  # more than 64 dimensions, or no numbers in huge ones
        raise FileFormatError(f"{path}: its header speaks of {_text(shape)} numbers: {error}.") from None
    return array.astype(kind.newbyteorder("="), copy=False)


def write_idx(path: str | PathLike[str], array: Any) -> None:
    """Write a NumPy array as IDX, packed by gzip if the name ends in ``.gz``; the same numbers give the same file.

    Raises DTypeError for a type that IDX has not: it has uint8, int8, int16, int32, float32 and float64.
    """
    array = np.asarray(array)
    code = _CODES.get(array.dtype.newbyteorder("="))
    if code is None:
        raise DTypeError(f"write_idx: IDX has no {array.dtype}; it has {', '.join(map(str, _CODES))}.")
    if array.ndim > 255 or any(n >= 2**32 for n in array.shape):
        raise ArgumentError(f"write_idx: the shape {array.shape} does not fit into the header.")
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    whole = header + array.astype(_TYPES[code]).tobytes()
    write_all(path, gzip.compress(whole, mtime=0) if str(path).endswith(".gz") else whole)


def unpacked(raw: IO[bytes], path: Any) -> Any:
    """What gzip packed in a file, to be read in pieces."""
    return gzip.GzipFile(fileobj=raw, filename=str(path), mode="rb")


def read_exactly(file: Any, length: int, path: Any) -> bytearray:
    """The next `length` bytes, taken in pieces, so that nothing is taken for bytes that are not there."""
    found = bytearray()
    try:
        while len(found) < length:
            piece = file.read(min(_CHUNK, length - len(found)))
            if not piece:
                break
            found += piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{path}: it cannot be unpacked: {error}.\n  Fetch or copy it again.") from None
    if len(found) < length:
        raise FileFormatError(
            f"{path}: it is cut short: {length:,} bytes were to come, and there are {len(found):,}.\n"
            "  Fetch or copy it again."
        )
    return found


def check_end(file: Any, length: int, path: Any) -> None:
    """Raise FileFormatError if a file goes on after its `length` bytes, or its checksum is wrong."""
    try:
        rest = file.read(1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{path}: it cannot be unpacked: {error}.\n  Fetch or copy it again.") from None
    if rest:
        raise FileFormatError(f"{path}: it goes on after the {length:,} bytes that it should have.")


def _header(file: Any, path: Any) -> tuple[Any, tuple[int, ...]]:
    """The type of the numbers, and the sizes of the dimensions."""
    start = bytes(read_exactly(file, 4, path))
    if start[:2] != b"\0\0" or start[2] not in _TYPES:
        what = "a web page" if start[:1] == b"<" else "a zip archive" if start[:2] == b"PK" else "something else"
        raise FileFormatError(
            f"{path}: it is no IDX file: it begins with {start!r}, where an IDX file begins with two bytes 0 and the "
            f"code of a type. It seems to be {what}."
        )
    sizes = read_exactly(file, 4 * start[3], path)
    return np.dtype(_TYPES[start[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one number"
