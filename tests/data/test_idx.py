"""IDX: files round-trip, and a corrupt header raises before any memory is allocated."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from cases import merge_cases
from minigrad.core.errors import DTypeError, FileFormatError
from minigrad.data import read_idx, write_idx

TYPES = ["uint8", "int8", "int16", "int32", "float32", "float64"]


@merge_cases
@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_arrays_round_trip(tmp_path, name, dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)) * 1.5 - 2).astype(dtype).reshape(shape)
    write_idx(tmp_path / name, array)
    result = read_idx(tmp_path / name)
    assert (result.dtype, result.shape, result.tolist()) == (array.dtype, shape, array.tolist())


def test_bytes_match_the_published_format(tmp_path):
    write_idx(tmp_path / "a", np.array([[1, 2, 3], [4, 5, -6]], np.int16))
    assert (tmp_path / "a").read_bytes() == bytes.fromhex("00000b02 00000002 00000003 0001 0002 0003 0004 0005 fffa")


def test_compressed_files_are_deterministic(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_idx(tmp_path / name, np.ones(9, np.uint8))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_compression_is_detected_from_the_first_bytes(tmp_path):
    write_idx(tmp_path / "a.gz", np.arange(4, dtype=np.uint8))
    (tmp_path / "plain.gz").write_bytes(gzip.decompress((tmp_path / "a.gz").read_bytes()))
    (tmp_path / "packed").write_bytes((tmp_path / "a.gz").read_bytes())
    assert [read_idx(tmp_path / name).tolist() for name in ("plain.gz", "packed")] == [[0, 1, 2, 3]] * 2


def test_unsupported_dtypes_raise(tmp_path):
    with pytest.raises(
        DTypeError, match="IDX does not support dtype int64, only uint8, int8, int16, int32, float32, float64"
    ):
        write_idx(tmp_path / "a", np.arange(3, dtype=np.int64))


HEADER = struct.pack(">HBBI", 0, 8, 1, 10)
HUGE = struct.pack(">HBBII", 0, 8, 2, 10**6, 10**6)
CORRUPT_FILES = {
    "empty": (b"", "truncated: expected 4 more bytes, but got 0"),
    "a web page": (b"<!DOCTYPE html><html>", "It looks like a web page"),
    "a zip archive": (b"PK\3\4aaaa", "It looks like a zip archive"),
    "of an unknown type": (b"\0\0\7\1\0\0\0\0", "begins with two zero bytes and a dtype code"),
    "truncated in its header": (HEADER[:6], "expected 4 more bytes, but got 2"),
    "truncated in its data": (HEADER + b"123456789", "header declares 10 bytes.*19|truncated"),
    "too long": (HEADER + b"12345678901", "trailing data after the expected 10 bytes"),
    "with a corrupt header": (HUGE + b"1" * 100, r"declares 1,000,000,000,000 bytes \(shape 1000000x1000000\)"),
    "with sizes beyond 64 bits": (b"\0\0\x0e\x09" + b"\xff" * 36, "the limit is 4,294,967,296"),
    "of 65 dimensions": (
        b"\0\0\x08\x41" + b"\0\0\0\1" * 65 + b"a",
        "declares shape 1x1.*: maximum supported dimension",
    ),
    "empty with huge dimensions": (b"\0\0\x08\x04" + b"\0" * 4 + b"\xff" * 12, "declares shape 0x4294967295x"),
    "compressed, with a corrupt header": (gzip.compress(HUGE[:4] + struct.pack(">II", 1000, 1000)), "is truncated"),
    "compressed and truncated": (gzip.compress(HEADER + b"1234567890")[:-12], "cannot decompress|truncated"),
    "compressed, with a wrong checksum": (
        gzip.compress(HEADER + b"1234567890")[:-8] + b"\0\0\0\0\x12\0\0\0",
        "cannot decompress: CRC check failed",
    ),
    "compressed and corrupt": (gzip.compress(HEADER)[:10] + b"\xff" * 20, "cannot decompress"),
}


@pytest.mark.parametrize("name", CORRUPT_FILES)
def test_corrupt_files_raise(tmp_path, name):
    data, message = CORRUPT_FILES[name]
    (tmp_path / "bad").write_bytes(data)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_idx(tmp_path / "bad")
    assert str(caught.value).startswith(f"{tmp_path / 'bad'}: ")


def test_corrupt_headers_and_bombs_allocate_no_memory(tmp_path):
    bomb = gzip.compress(HEADER + b"\0" * 50_000_000)
    (tmp_path / "bomb").write_bytes(bomb)
    claim = struct.pack(">HBBI", 0, 8, 1, 2**31)
    (tmp_path / "claim").write_bytes(gzip.compress(claim + b"\0" * 3_000_000 + np.random.default_rng(0).bytes(2**21)))
    tracemalloc.start()
    for name, message in (("bomb", "trailing data after the expected 10 bytes"), ("claim", "is truncated")):
        with pytest.raises(FileFormatError, match=message):
            read_idx(tmp_path / name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000


def test_max_bytes_can_be_raised(tmp_path):
    write_idx(tmp_path / "a", np.ones(100, np.uint8))
    with pytest.raises(FileFormatError, match=r"declares 100 bytes \(shape 100\), but the limit is 99"):
        read_idx(tmp_path / "a", most=99)
    assert read_idx(tmp_path / "a", most=100).sum() == 100
