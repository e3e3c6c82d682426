"""Corrupt files: bytes changed in every way, and the parts of each format combined wrongly."""

from __future__ import annotations

import random
import re

__all__ = ["EDGES", "corrupt", "edge_integer", "odd_string"]

EDGES = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1]
EDGES += [2**32, 2**53, 2**61 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64]
STRINGS = ["", "a", "w", "..", "../outside/kept.txt", "/etc/passwd", "\0", "é", "\ud7ff", "$tensor", "$dict"]
STRINGS += ["nan", "-inf", "1e999", "constructor", "__proto__", "data", "C:\\a", "x" * 300, "🙂", "%s", "{0}", "\u202e"]
INVALID_UTF8 = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x90", b"\xfe\xff", b"\0", b"\x1f\x8b", b"PK\x03\x04"]


def edge_integer(draw: random.Random) -> int:
    """Return an integer at or near a limit."""
    n = draw.choice(EDGES) + draw.choice([0, 0, 0, -1, 1])
    return -n if draw.random() < 0.15 else n


def odd_string(draw: random.Random) -> str:
    return draw.choice(STRINGS) + (draw.choice(STRINGS) if draw.random() < 0.3 else "")


def corrupt(draw: random.Random, data: bytes, others: list[bytes], max_corruptions: int = 4) -> bytes:
    """Apply one to `max_corruptions` random corruptions to a file."""
    for _ in range(draw.randint(1, max_corruptions)):
        data = draw.choice(CORRUPTIONS)(draw, data, others)
    return data


def _flip_bits(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    for _k in range(draw.choice([1, 1, 1, 2, 8])):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _set_byte(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    changed[draw.randrange(len(changed))] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C, 0x5B, 0x7B, 0x2E, 0x52])
    return bytes(changed)


def _truncate(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _delete_bytes(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.choice([1, 2, 4, 8, 64]) :]


def _insert_bytes(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    position = draw.choice([len(data), draw.randrange(len(data) + 1)])
    inserted = draw.choice([draw.randbytes(draw.choice([1, 4, 8, 512])), bytes(draw.choice([1, 8, 512, 4096]))])
    return data[:position] + inserted + data[position:]


def _repeat_bytes(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = draw.randrange(len(data) + 1)
    piece = data[start : start + draw.choice([1, 2, 8, 64])]
    return data[:start] + piece * draw.choice([2, 3, 100, 1000]) + data[start:]


def _splice(draw: random.Random, data: bytes, others: list[bytes]) -> bytes:
    other = draw.choice([*others, data])
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _overwrite_field(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Overwrite two, four or eight bytes with an integer, as in a length, an offset or a count."""
    width = draw.choice([2, 4, 8])
    position = draw.randrange(max(1, len(data) - width + 1))
    n = draw.choice([edge_integer(draw), len(data) + draw.randint(-9, 9)])
    return (
        data[:position]
        + (n % 2 ** (8 * width)).to_bytes(width, draw.choice(["little", "big"]))
        + data[position + width :]
    )


def _replace_decimal(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Replace a decimal integer."""
    matches = list(re.finditer(rb"\d+", data))
    if not matches:
        return _overwrite_field(draw, data, [])
    one = draw.choice(matches)
    digits = draw.choice(
        [str(edge_integer(draw)), "9" * draw.choice([20, 400, 5000]), "1e999", "0x10", "00", "-0", "1.5"]
    )
    return data[: one.start()] + digits.encode() + data[one.end() :]


def _insert_invalid_utf8(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    position = draw.randrange(len(data) + 1)
    return data[:position] + draw.choice([*INVALID_UTF8, odd_string(draw).encode()]) + data[position:]


CORRUPTIONS = [
    _flip_bits,
    _set_byte,
    _truncate,
    _delete_bytes,
    _insert_bytes,
    _repeat_bytes,
    _splice,
    _overwrite_field,
    _replace_decimal,
    _insert_invalid_utf8,
]
