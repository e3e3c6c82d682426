"""Corrupt data files: IDX, CIFAR-10 batches and archives, CSV and plain text, and the folders of `minigrad lab`."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import tarfile
from pathlib import Path
from typing import Any

from torture._file_corruption import EDGES, corrupt, edge_integer, odd_string

__all__ = ["LESSONS", "archive", "batch", "csv", "idx", "lessons", "read_options"]

RECORD = 3073


# --- IDX ---


def _compress(draw: random.Random, data: bytes) -> bytes:
    """Compress with gzip, in one member or several, with a file name in the header or a corruption."""
    pieces = [data] if draw.random() < 0.8 else [data[:9], b"", data[9:]]
    compressed = b"".join(gzip.compress(piece, draw.choice([1, 9]), mtime=0) for piece in pieces)
    if draw.random() < 0.05:
        compressed = (
            compressed[:3]
            + b"\x1c"
            + compressed[4:10]
            + b"\x03\0abc"
            + b"n" * draw.choice([1, 3000])
            + b"\0c\0"
            + compressed[10:]
        )
    return corrupt(draw, compressed, [compressed], 2) if draw.random() < 0.3 else compressed


def idx(draw: random.Random) -> bytes:
    """Return a valid or invalid header with matching or mismatching data, compressed or not."""
    rank = draw.choice([0, 1, 1, 2, 3, 3, 4, 33, 65, 255])
    sizes = [draw.choice([0, 1, 1, 2, 3]) if rank > 4 else draw.choice([0, 1, 2, 3, 28]) for _ in range(rank)]
    code = draw.choice([8, 8, 9, 11, 12, 13, 14])
    width = {8: 1, 9: 1, 11: 2, 12: 4, 13: 4, 14: 8}[code]
    length = width
    for n in sizes:
        length *= n if length * n < 50_000 else 1
    if draw.random() < 0.25 and sizes:
        sizes[draw.randrange(rank)] = draw.choice(EDGES) % 2**32
    data = struct.pack(f">HBB{rank}I", 0, code, rank, *sizes) + draw.randbytes(length)
    if draw.random() < 0.05:
        data = struct.pack(">HBBII", 0, 8, 2, 2**16, draw.choice([2**4, 2**16])) + bytes(2**20)  # a zip bomb
        return gzip.compress(data, 6, mtime=0)
    if draw.random() < 0.5:
        data = corrupt(draw, data, [b"<html>", b"PK\x03\x04", data], 2)
    return _compress(draw, data) if draw.random() < 0.5 else data


# --- CIFAR-10 ---


def batch(draw: random.Random, records: int) -> bytes:
    rows = [
        bytes([draw.choice([0, 9, 9, 9, 10 if draw.random() < 0.1 else 3])]) + bytes(RECORD - 1) for _ in range(records)
    ]
    data = b"".join(rows)
    return corrupt(draw, data, [b"\x80\x04a", b"\x1f\x8b"], 2) if draw.random() < 0.5 else data


NAMES = ["cifar-10-batches-bin/test_batch.bin", "test_batch.bin", "../outside/test_batch.bin", "/etc/test_batch.bin"]
NAMES += ["a/../../test_batch.bin", "readme.html", "x" * 180 + "/test_batch.bin", "é", "./././test_batch.bin", ""]
KINDS = [tarfile.REGTYPE] * 6 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
KINDS += [tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE, b"Z", b"\0", b"L", b"K"]


def _member(draw: random.Random, records: int) -> bytes:
    """Return a member of an archive: a header with a valid checksum, and its data."""
    info = tarfile.TarInfo(draw.choice(NAMES))
    info.type, data = draw.choice(KINDS), batch(draw, records)
    if info.issym() or info.islnk():
        info.linkname, data = draw.choice(["/etc/passwd", "../outside/kept.txt", "test_batch.bin"]), b""
    if draw.random() < 0.15:
        info.pax_headers = {
            draw.choice(["path", "size", "mtime", "GNU.sparse.map", "hdrcharset", "comment"]): odd_string(draw)
        }
    if info.type in (tarfile.XHDTYPE, tarfile.XGLTYPE):
        data = _extended_header(draw)
    info.size = len(data)
    kind = draw.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    try:
        header = bytearray(info.tobuf(kind))
    except ValueError:  # a name that is too long for USTAR
        header = bytearray(info.tobuf(tarfile.PAX_FORMAT))
    if draw.random() < 0.25:  # overwrite a field of the last header block: a size, a type, a sparse map
        start, width = draw.choice([(124, 12), (100, 8), (136, 12), (345, 155), (386, 96), (482, 13), (156, 1)])
        content = draw.choice(
            [b"77777777777", b"\x80" + draw.randbytes(11), b"\xff" * 12, b"-1", draw.randbytes(9), b"0" * 12]
        )
        if draw.random() < 0.5:
            content = b"%011o" % (draw.choice(EDGES) % 8**11)
        start_of_field = len(header) - 512 + start
        header[start_of_field : start_of_field + width] = content[:width].ljust(width, b"\0")
        last = header[-512:]
        header[-512 + 148 : -512 + 156] = b"%06o\0 " % (sum(last[:148]) + 8 * 32 + sum(last[156:]))
    return bytes(header) + data + bytes(-len(data) % 512)


def _extended_header(draw: random.Random) -> bytes:
    """Return records of an extended header: a length, a keyword, and a value."""
    words = ["path", "size", "GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.map", "GNU.sparse.size", "mtime", "x"]
    words += ["GNU.sparse.realsize", "GNU.sparse.name", "GNU.sparse.numblocks", "hdrcharset", "linkpath", "uid"]
    records = b""
    for _ in range(draw.choice([1, 2, 5])):
        value = draw.choice(
            [str(edge_integer(draw)), "0", "1", odd_string(draw), "0,1,2", "9" * 5000, "test_batch.bin", "1e9"]
        )
        body = f" {draw.choice(words)}={value}\n".encode()
        length = len(body) + len(str(len(body) + 2))
        declared = str(length) if draw.random() < 0.8 else draw.choice(["0", "-1", "9" * 9, "9" * 5000, "x"])
        records += declared.encode() + body
    return records


def archive(draw: random.Random, records: int) -> bytes:
    """Return a gzip-compressed archive of a few members."""
    choice = draw.random()
    if choice < 0.06:
        data = _bomb(draw)
    else:
        data = b"".join(_member(draw, records) for _ in range(draw.choice([0, 1, 2, 3]))) + bytes(1024)
    if draw.random() < 0.3:
        data = corrupt(draw, data, [data], 2)
    return _compress(draw, data)


def _bomb(draw: random.Random) -> bytes:
    """Return a header that declares a large size, followed by much data that gzip compresses a thousandfold."""
    info = tarfile.TarInfo("a")
    info.type = draw.choice([tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.REGTYPE, b"K"])
    info.size = draw.choice([2**22, 2**24, 2**33])
    if draw.random() < 0.2:
        # One that is about the next one, and so on.
        return info.tobuf(tarfile.GNU_FORMAT)[:512] * draw.choice([9, 2000])
    return info.tobuf(tarfile.GNU_FORMAT) + (b"1" if draw.random() < 0.3 else b"\0") * draw.choice(
        [2**14, 2**20, 2**23]
    )


# --- CSV ---

CELLS = [
    "1",
    "-2",
    "3.5",
    "1e9",
    "nan",
    "NA",
    "",
    "a",
    '"a,b"',
    '"',
    '""',
    '"a\nb"',
    "\0",
    "\r",
    "é",
    "١٢",
    "inf",
    "1_0",
    "1e",
]
CELLS += [
    "9" * 30,
    "9" * 5000,
    "1" * 20_000 + "x",
    "1" * 60_000,
    "." + "1" * 9000 + "e",
    " 7 ",
    "+",
    "- 1",
    "0x10",
    "x" * 140_000,
]
CELLS += ["1e" + "9" * 9000, "\u2028", "\ufeff", "$", "=1+1", "True", "0" * 5000 + "1", " " * 30_000 + "x", "1.5e-400"]


def csv(draw: random.Random) -> bytes:
    """Return rows of cells, of equal width or not, in some encoding."""
    width = draw.choice([1, 2, 3, 3, 3, 40])
    usual = CELLS[:12] if draw.random() < 0.5 else CELLS
    rows = []
    for _ in range(draw.choice([0, 1, 2, 5, 20])):
        n = width if draw.random() < 0.97 else draw.randrange(5)
        rows.append(draw.choice([",", ",", ",", ",", ";"]).join(draw.choice(usual) for _ in range(n)))
    names = ",".join(f"c{k}" if draw.random() < 0.98 else odd_string(draw) for k in range(width))
    content = draw.choice(["\n", "\n", "\r\n", "\r"]).join([names, *rows])
    data = content.encode(draw.choice(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"]), "replace")
    if draw.random() < 0.1:
        data = draw.choice([b",", b"\n", b'"', b"\0", b"a,", b"1\n", b"1,"]) * draw.choice([10, 1000, 9000])
    data = data[: 2**19]
    return corrupt(draw, data, [data, b"\xff\xfe"]) if draw.random() < 0.4 else data


def read_options(draw: random.Random) -> dict[str, Any]:
    """Return the options to read a file with: mostly the defaults."""
    options: dict[str, Any] = {}
    if draw.random() < 0.3:
        options["header"] = draw.choice([False, ["a", "b", "c"], ["a"], []])
    if draw.random() < 0.2:
        options["delimiter"] = draw.choice([";", "\t", "|", "1"])
    if draw.random() < 0.3:
        options["encoding"] = draw.choice(["utf-8", "latin-1", "utf-16", "utf-32", "ascii", "utf-16-le", "cp1252"])
    return options


# --- the folder of `minigrad lab` ---

LESSONS = {
    f"{k:02d}_lesson.ipynb": json.dumps({"cells": [{"source": ["a"] * k}], "nbformat": 4}).encode() for k in range(4)
}
LESSONS["lessons.mplstyle"] = b"axes.grid: True\n"
OLD = b'{"cells": []}'
NOTE = ".minigrad.json"


def lessons(draw: random.Random, folder: Path) -> dict[str, bytes]:
    """Write to `folder` what a user, a crash or another program may have left; return the files that must survive."""
    from hashlib import sha256

    note: Any = {name: sha256(draw.choice([data, OLD])).hexdigest() for name, data in LESSONS.items()}
    user_files: dict[str, bytes] = {}
    for name in LESSONS:
        path = folder / name
        match draw.choice(["", "", "same", "old", "mine", "mine", "link", "lost link", "folder", "pipe", "round"]):
            case "same":
                path.write_bytes(LESSONS[name])
            case "old":
                path.write_bytes(OLD)
            case "mine":
                user_files[name] = corrupt(draw, LESSONS[name], [OLD])
                path.write_bytes(user_files[name])
                if user_files[name] in (LESSONS[name], OLD):
                    del user_files[name]
            case "link":
                path.symlink_to("../outside/" + draw.choice(["kept.txt", "kept.json"]))
                if draw.random() < 0.5:
                    note[name] = sha256(b"kept").hexdigest()
            case "lost link":
                path.symlink_to("../outside/new.ipynb")
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "round":
                path.symlink_to(name)
    data = _manifest(draw, note)
    match draw.choice(["file"] * 8 + ["link", "lost link", "folder", "pipe", ""]):
        case "file":
            (folder / NOTE).write_bytes(data)
        case "link":
            (folder / NOTE).symlink_to("../outside/" + draw.choice(["kept.txt", "kept.json"]))
        case "lost link":
            (folder / NOTE).symlink_to("../outside/new.json")
        case "folder":
            (folder / NOTE).mkdir()
        case "pipe":
            os.mkfifo(folder / NOTE)
    return user_files


def _manifest(draw: random.Random, note: dict[str, Any]) -> bytes:
    """Return the manifest: the hashes of the copied lessons, or anything else."""
    choice = draw.random()
    if choice < 0.3:
        return json.dumps(note).encode()
    if choice < 0.4:
        return draw.choice(
            [b"[]", b"1", b'"a"', b"null", b"", b"{", b"[" * 9000, b"[" * 9000 + b"]" * 9000, b'{"a":' * 9000]
        )
    if choice < 0.6:
        name = draw.choice(list(note))
        note[name] = draw.choice([None, 1, [], {}, [note[name]], "", 1.5, True, 10**30, "é"])
        note[draw.choice(["../outside/kept.txt", "/etc/passwd", "", "a"])] = draw.choice(["a", [], None])
        return json.dumps(note).encode()
    if choice < 0.65:
        return b'{"a": ' + b"9" * 5000 + b"}"
    return corrupt(draw, json.dumps(note).encode(), [b"[]", b'{"a": 1}'])
