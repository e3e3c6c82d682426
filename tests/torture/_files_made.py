"""Corrupt files: bytes changed in every way, and the parts of each format combined wrongly."""

from __future__ import annotations

import random
import re

__all__ = ["EDGES", "mangled", "number", "text"]

EDGES = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1]
EDGES += [2**32, 2**53, 2**61 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64]
WORDS = ["", "a", "w", "..", "../outside/kept.txt", "/etc/passwd", "\0", "é", "\ud7ff", "$tensor", "$dict"]
WORDS += ["nan", "-inf", "1e999", "constructor", "__proto__", "data", "C:\\a", "x" * 300, "🙂", "%s", "{0}", "\u202e"]
NOT_TEXT = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x90", b"\xfe\xff", b"\0", b"\x1f\x8b", b"PK\x03\x04"]


def number(draw: random.Random) -> int:
    """Return an integer at or near a limit."""
    n = draw.choice(EDGES) + draw.choice([0, 0, 0, -1, 1])
    return -n if draw.random() < 0.15 else n


def text(draw: random.Random) -> str:
    return draw.choice(WORDS) + (draw.choice(WORDS) if draw.random() < 0.3 else "")


def mangled(draw: random.Random, data: bytes, others: list[bytes], most: int = 4) -> bytes:
    """Apply one to `most` random corruptions to a file."""
    for _ in range(draw.randint(1, most)):
        data = draw.choice(CHANGES)(draw, data, others)
    return data


def _flipped(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    out = bytearray(data or b"\0")
    for _k in range(draw.choice([1, 1, 1, 2, 8])):
        out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)
    return bytes(out)


def _byte(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    out = bytearray(data or b"\0")
    out[draw.randrange(len(out))] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C, 0x5B, 0x7B, 0x2E, 0x52])
    return bytes(out)


def _cut(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _without(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.choice([1, 2, 4, 8, 64]) :]


def _lengthened(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = draw.choice([len(data), draw.randrange(len(data) + 1)])
    more = draw.choice([draw.randbytes(draw.choice([1, 4, 8, 512])), bytes(draw.choice([1, 8, 512, 4096]))])
    return data[:at] + more + data[at:]


def _repeated(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = draw.randrange(len(data) + 1)
    piece = data[start : start + draw.choice([1, 2, 8, 64])]
    return data[:start] + piece * draw.choice([2, 3, 100, 1000]) + data[start:]


def _spliced(draw: random.Random, data: bytes, others: list[bytes]) -> bytes:
    other = draw.choice([*others, data])
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _field(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Overwrite two, four or eight bytes with an integer, as in a length, an offset or a count."""
    width = draw.choice([2, 4, 8])
    at = draw.randrange(max(1, len(data) - width + 1))
    n = draw.choice([number(draw), len(data) + draw.randint(-9, 9)])
    return data[:at] + (n % 2 ** (8 * width)).to_bytes(width, draw.choice(["little", "big"])) + data[at + width :]


def _decimal(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Replace a decimal integer."""
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return _field(draw, data, [])
    one = draw.choice(found)
    digits = draw.choice([str(number(draw)), "9" * draw.choice([20, 400, 5000]), "1e999", "0x10", "00", "-0", "1.5"])
    return data[: one.start()] + digits.encode() + data[one.end() :]


def _not_text(draw: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice([*NOT_TEXT, text(draw).encode()]) + data[at:]


CHANGES = [_flipped, _byte, _cut, _without, _lengthened, _repeated, _spliced, _field, _decimal, _not_text]
