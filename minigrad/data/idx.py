"""Read and write IDX, the file format of MNIST: a header with dtype and shape, then the elements.

Y. LeCun, C. Cortes, C. Burges, "The MNIST database": the header is two zero bytes, a byte for the dtype, one for the
number of dimensions, and a 32-bit integer per dimension, all big-endian. Gzip compression is detected from the first
bytes, not from the file name. The header is not trusted: no memory is allocated for data that the file does not have.
"""

from __future__ import annotations

import gzip
import zlib
from math import prod
from os import SEEK_END, PathLike
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np

from minigrad.core.deprecation import deprecated_names
from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError
from minigrad.io.atomic import write_all

__all__ = ["SupportsOpen", "check_end", "open_gzip", "read_exactly", "read_idx", "write_idx"]

__getattr__ = deprecated_names(__name__, {"Openable": "SupportsOpen"})

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CODES = {np.dtype(name).newbyteorder("="): code for code, name in _DTYPES.items()}
_CHUNK_BYTES = 2**20
MAX_BYTES = 2**32
_MAX_GZIP_RATIO = 1040  # gzip compresses by a factor of at most 1,032; the margin allows for its header


class SupportsOpen(Protocol):
    """An object with the `open` method of a path, such as a package resource."""

    def open(self, mode: Literal["rb"]) -> Any:
        """Open the object for reading in binary mode."""


def read_idx(path: str | PathLike[str] | SupportsOpen, *, most: int = MAX_BYTES) -> Any:
    """Read an IDX file, gzip-compressed or not, into a NumPy array.

    Raises FileFormatError if the file is not IDX, is truncated, has trailing data, or declares more than `most` bytes
    (default: 4 GiB); OSError if it cannot be read.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(os.path.join(folder, "a.gz"), np.array([[1, 2], [3, 4]], np.uint8))
    ...     read_idx(os.path.join(folder, "a.gz")).tolist()
    [[1, 2], [3, 4]]
    """
    source = Path(path) if isinstance(path, str | PathLike) else path
    with source.open("rb") as raw:
        size = raw.seek(0, SEEK_END)
        raw.seek(0)
        is_compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        with open_gzip(raw, path) if is_compressed else raw as file:
            dtype, shape = _read_header(file, path)
            length = prod(shape) * dtype.itemsize
            if length > most:
                raise FileFormatError(
                    f"{path}: the header declares {length:,} bytes (shape {_format_shape(shape)}), but the limit is "
                    f"{most:,}.\n  Pass most= to raise the limit."
                )
            max_length = size * _MAX_GZIP_RATIO if is_compressed else size
            if length > max_length:
                raise FileFormatError(
                    f"{path}: the header declares {length:,} bytes (shape {_format_shape(shape)}), but the file has "
                    f"only {size:,}{' compressed' if is_compressed else ''}: it is truncated, or the header is corrupt."
                )
            data = read_exactly(file, length, path)
            check_end(file, length, path)
    try:
        array = np.frombuffer(data, dtype).reshape(shape)
    except ValueError as error:  # more than 64 dimensions, or an empty array with huge dimensions
        raise FileFormatError(f"{path}: the header declares shape {_format_shape(shape)}: {error}.") from None
    return array.astype(dtype.newbyteorder("="), copy=False)


def write_idx(path: str | PathLike[str], array: Any) -> None:
    """Write a NumPy array as IDX, gzip-compressed if the name ends in ``.gz``. The output is deterministic.

    Raises DTypeError for dtypes other than uint8, int8, int16, int32, float32 and float64.
    """
    array = np.asarray(array)
    code = _CODES.get(array.dtype.newbyteorder("="))
    if code is None:
        raise DTypeError(f"write_idx: IDX does not support dtype {array.dtype}, only {', '.join(map(str, _CODES))}.")
    if array.ndim > 255 or any(n >= 2**32 for n in array.shape):
        raise ArgumentError(f"write_idx: shape {array.shape} does not fit into the IDX header.")
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + array.astype(_DTYPES[code]).tobytes()
    write_all(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)


def open_gzip(raw: IO[bytes], path: Any) -> Any:
    """Return a file object that decompresses the gzip stream `raw`."""
    return gzip.GzipFile(fileobj=raw, filename=str(path), mode="rb")


def read_exactly(file: Any, length: int, path: Any) -> bytearray:
    """Read `length` bytes in chunks, so that no memory is allocated for bytes that a truncated file lacks."""
    data = bytearray()
    try:
        while len(data) < length:
            chunk = file.read(min(_CHUNK_BYTES, length - len(data)))
            if not chunk:
                break
            data += chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{path}: cannot decompress: {error}.\n  Download or copy it again.") from None
    if len(data) < length:
        raise FileFormatError(
            f"{path}: the file is truncated: expected {length:,} more bytes, but got {len(data):,}.\n"
            "  Download or copy it again."
        )
    return data


def check_end(file: Any, length: int, path: Any) -> None:
    """Raise FileFormatError if data follows the `length` bytes already read, or if the gzip checksum is wrong."""
    try:
        rest = file.read(1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{path}: cannot decompress: {error}.\n  Download or copy it again.") from None
    if rest:
        raise FileFormatError(f"{path}: trailing data after the expected {length:,} bytes.")


def _read_header(file: Any, path: Any) -> tuple[Any, tuple[int, ...]]:
    """Read the IDX header, and return the dtype and shape that it declares."""
    start = bytes(read_exactly(file, 4, path))
    if start[:2] != b"\0\0" or start[2] not in _DTYPES:
        guess = "a web page" if start[:1] == b"<" else "a zip archive" if start[:2] == b"PK" else "something else"
        raise FileFormatError(
            f"{path}: not an IDX file: it begins with {start!r}, where an IDX file begins with two zero bytes and a "
            f"dtype code. It looks like {guess}."
        )
    sizes = read_exactly(file, 4 * start[3], path)
    return np.dtype(_DTYPES[start[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())


def _format_shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "()"
