"""Corrupt tensor files: safetensors, minigrad's own trees in them, and zip files of pickles as PyTorch writes them."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import importlib
import io
import json
import operator
import os
import pickle
import random
import subprocess
import warnings
import zipfile
from functools import cache
from typing import Any

from torture._file_corruption import EDGES, corrupt, edge_integer, odd_string

__all__ = ["malicious_pickles", "pt", "safetensors"]

CODES = [
    "F32",
    "F64",
    "F16",
    "BF16",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "BOOL",
    "F8_E4M3",
    "C64",
    "",
]
SIZES = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "U8": 1, "I8": 1, "BOOL": 1}


# --- safetensors ---


@cache
def good_safetensors() -> list[bytes]:
    import minigrad as mg

    files = []
    for obj in (
        {"a": mg.tensor([1.0, 2.0], device="numpy")},
        {
            "model": {"w": mg.zeros(3, 4, device="numpy")},
            "epoch": 3,
            "betas": (0.9, float("inf")),
            "k": {1: [None, True]},
        },
        mg.arange(500, device="numpy"),
        {},
    ):
        file = io.BytesIO()
        mg.save(obj, file)
        files.append(file.getvalue())
    return files


def safetensors(draw: random.Random) -> bytes:
    """Return a corrupt or unusual file: changed bytes, an odd header, or a tree of minigrad's with a valid checksum."""
    choice = draw.random()
    if choice < 0.35:
        good = good_safetensors()
        return corrupt(draw, draw.choice(good), good)
    if choice < 0.6:
        return _own_tree(draw)
    header, size = _header(draw)
    if draw.random() < 0.3:
        header = corrupt(draw, header, [b'{"__metadata__":{"a":"b"}}'], 2)
    declared = len(header) if draw.random() < 0.8 else edge_integer(draw) % 2**64
    return declared.to_bytes(8, "little") + header + draw.randbytes(size if draw.random() < 0.8 else draw.randrange(99))


def _header(draw: random.Random) -> tuple[bytes, int]:
    parts, offset = [], 0
    for _ in range(draw.choice([0, 1, 1, 2, 5, 60])):
        code = draw.choice(CODES)
        shape = [draw.choice([0, 1, 2, 3]) for _ in range(draw.choice([0, 1, 2, 4, 33, 65, 300]))]
        if draw.random() < 0.2:
            shape.append(edge_integer(draw))
        size = SIZES.get(code, 4)
        for n in shape:
            size *= n if abs(size * n) < 10_000 else 1
        end = offset + max(size, 0)
        offsets = [offset, end] if draw.random() < 0.9 else [edge_integer(draw), edge_integer(draw)]
        entry: Any = {"dtype": code, "shape": shape, "data_offsets": offsets}
        if draw.random() < 0.1:
            entry[draw.choice(list(entry))] = _json(draw)
        parts.append(json.dumps(odd_string(draw)) + ":" + json.dumps(entry))
        offset = end
    if draw.random() < 0.3:
        metadata = {odd_string(draw): draw.choice([odd_string(draw), _json(draw)]) for _ in range(3)}
        parts.append('"__metadata__":' + json.dumps(metadata))
    if parts and draw.random() < 0.1:
        parts.append(draw.choice(parts))  # the same key twice
    return ("{" + ",".join(parts) + "}").encode() + b" " * draw.choice([0, 0, 7]), min(offset, 100_000)


def _json(draw: random.Random, depth: int = 0) -> Any:
    """Return an arbitrary JSON value."""
    choice = draw.randrange(9 if depth < 4 else 6)
    if choice < 6:
        return [None, True, edge_integer(draw), 1.5, odd_string(draw), float("1e308")][choice]
    if choice == 6:
        return [_json(draw, depth + 1) for _ in range(draw.randrange(4))]
    if choice == 7:
        return {draw.choice(["$tensor", "$float", "$tuple", "$dict", "a"]): _json(draw, depth + 1)}
    return {odd_string(draw): _json(draw, depth + 1) for _ in range(draw.randrange(3))}


def _own_tree(draw: random.Random) -> bytes:
    """Return a file with an implausible tree and a valid checksum, as an attacker can compute one."""
    tree: str = json.dumps(_json(draw))
    match draw.randrange(9):
        case 0:
            depth = draw.choice([90, 500, 3000, 20_000])
            tree = "[" * depth + "]" * depth
        case 1:
            tree = '{"$tuple":' * (depth := draw.choice([90, 900, 9000])) + "[]" + "}" * depth
        case 2:
            tree = f'{{"$float": {"1" * draw.choice([20, 400, 5000])}}}'
        case 3:
            tree = tree[: draw.randrange(len(tree) + 1)]
        case 4:
            colliding_keys = [k * (2**61 - 1) for k in range(1, draw.choice([9, 2000]))]  # keys of one hash
            tree = json.dumps({"$dict": [[k, 0] for k in colliding_keys]})
    metadata = {"minigrad": "1", "tree": tree, "sha256": hashlib.sha256(tree.encode()).hexdigest()}
    if draw.random() < 0.15:
        metadata.pop(draw.choice(list(metadata)))
        metadata["sha256"] = hashlib.sha256(metadata.get("tree", "").encode()).hexdigest()
    header = json.dumps({"__metadata__": metadata}).encode()
    return len(header).to_bytes(8, "little") + header


# --- PyTorch's ---


class _Callable:
    """An object whose pickle calls a function."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __reduce__(self) -> Any:
        return self.args[0], tuple(self.args[1:])

    def __call__(self) -> None:
        """Do nothing. Pickle requires a callable, even if another call creates it."""


@cache
def malicious_pickles() -> list[bytes]:
    """Return pickles that execute something under `pickle.load`; most write a file `ran` in the neighbouring folder."""
    write = "open('../outside/ran', 'w').close()"
    shell = "touch ../outside/ran"
    calls: list[Any] = [
        _Callable(os.system, shell),
        _Callable(eval, write),
        _Callable(exec, write),
        _Callable(open, "../outside/ran", "w"),
        _Callable(subprocess.getoutput, shell),
        _Callable(getattr, _Callable(importlib.import_module, "os"), "system"),
        _Callable(_Callable(getattr, _Callable(importlib.import_module, "os"), "system"), shell),
        _Callable(_Callable(operator.methodcaller, "system", shell), _Callable(importlib.import_module, "os")),
        _Callable(functools.partial(os.system, shell)),
        _Callable(functools.reduce, eval, [write]),
        _Callable(map, eval, [write]),
        _Callable(copyreg._reconstructor, dict, object, None),
        _Callable(pickle.loads, pickle.dumps(_Callable(os.system, shell))),
        _Callable(os.symlink, "/etc/passwd", "../outside/ran"),
    ]
    nested = [{"state": [one, {"w": one}]} for one in calls]
    pickles = [pickle.dumps(one, protocol) for one in (*calls, *nested) for protocol in range(6)]
    names = [b"os\nsystem", b"builtins\neval", b"builtins\ngetattr", b"posix\nsystem", b"nt\nsystem", b"torch\nload"]
    names += [
        b"torch.hub\nload",
        b"numpy\nfromfile",
        b"minigrad.io\nsave",
        b"__main__\nx",
        b"copyreg\n_extension_registry",
    ]
    names += [b"torch._utils\n_rebuild_tensor_v2.__globals__", b"collections\nOrderedDict.__init__.__globals__"]
    for name in names:
        pickles += [b"\x80\x02c" + name + b"\n(S'" + shell.encode() + b"'\ntR.", b"(S'x'\ni" + name + b"\n."]
        pickles += [
            b"\x80\x02c" + name + b"\n)R.",
            b"\x80\x02c" + name + b"\n)\x81}b.",
            b"\x80\x02(c" + name + b"\n}o.",
        ]
    return pickles


STORAGE = b"(X\x07\x00\x00\x00storagectorch\n%sStorage\nX\x01\x00\x00\x00%cX\x03\x00\x00\x00cpuK\x04tQ"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
PIECES = [
    b"N",
    b"\x88",
    b"\x89",
    b"K\x04",
    b"J\xff\xff\xff\xff",
    b"G\x7f\xf0\0\0\0\0\0\0",
    b"\x8a\x09" + b"\xff" * 8 + b"\0",
]
PIECES += [
    b"}",
    b"]",
    b")",
    b"(",
    b"t",
    b"\x85",
    b"\x86",
    b"\x87",
    b"a",
    b"e",
    b"s",
    b"u",
    b"b",
    b"R",
    b"Q",
    b"\x81",
    b".",
]
PIECES += [
    b"q\x00",
    b"q\xff",
    b"h\x00",
    b"h\xff",
    b"\x94",
    b"j\0\0\0\0",
    b"r\xff\xff\xff\xff",
    b"0",
    b"2",
    b"1",
    b"\x93",
]
PIECES += [
    b"\x8c\x01w",
    b"X\xff\xff\xff\x7fa",
    b"\x8d" + b"\xff" * 8,
    b"\x8e" + b"\xff" * 7 + b"\x7f",
    b"\x95" + b"\xff" * 8,
]
PIECES += [
    b"\x8b\xff\xff\xff\x7f",
    b"I99\n",
    b"L9L\n",
    b"F1e9\n",
    b"S'a'\n",
    b"V\\u0041\n",
    b"P1\n",
    b"\x82\x01",
    b"\x97",
    b"\x98",
]
PIECES += [TENSOR, b"ctorch._utils\n_rebuild_parameter\n", b"ccollections\nOrderedDict\n)R", b"cos\nsystem\n"]
KINDS = [b"Float", b"Double", b"Half", b"BFloat16", b"Char", b"Short", b"Int", b"Long", b"Byte", b"Bool", b"Quint8"]


def _int(n: int) -> bytes:
    """Return an integer as a pickle instruction."""
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def _tensor(draw: random.Random) -> bytes:
    storage = STORAGE % (draw.choice(KINDS), draw.choice(b"0123"))
    if draw.random() < 0.2:
        storage = storage.replace(b"K\x04tQ", _int(edge_integer(draw)) + b"tQ")
    if draw.random() < 0.1:
        storage = storage.replace(b"X\x01\x00\x00\x000", b"\x8c\x13../outside/kept.txt")
    rank = draw.choice([0, 1, 1, 2, 3, 40, 66])
    size, stride = [[draw.choice([0, 1, 1, 1, 2]) for _ in range(rank)] for _ in range(2)]
    for row in (size, stride):
        if row and draw.random() < 0.25:
            row[draw.randrange(len(row))] = edge_integer(draw)
    offset = draw.choice([0, 0, 1, edge_integer(draw)])
    rows = [b"(" + b"".join(map(_int, row)) + b"t" for row in (size, stride)]
    return TENSOR + b"(" + storage + _int(offset) + rows[0] + rows[1] + b"\x89}tR"


def _random_pickle(draw: random.Random) -> bytes:
    """Return a pickle: of tensors, of random instructions, or one that executes something."""
    choice = draw.random()
    if choice < 0.25:
        return draw.choice(malicious_pickles())
    if choice < 0.35:
        return corrupt(draw, draw.choice(malicious_pickles()), malicious_pickles())
    if choice < 0.6:
        pieces = [draw.choice(PIECES) for _ in range(draw.choice([2, 8, 40, 300]))]
        return draw.choice([b"\x80\x02", b"\x80\x04", b""]) + b"".join(pieces) + b"."
    if choice < 0.68:
        return b"\x80\x04" + _large_structure(draw) + b"."
    items = b"".join(b"X\x01\x00\x00\x00%c" % draw.choice(b"abcw") + _tensor(draw) for _ in range(draw.randint(0, 4)))
    pickled = b"\x80\x02}q\x00(" + items + b"u."
    return corrupt(draw, pickled, [b"".join(PIECES), *malicious_pickles()], 3) if draw.random() < 0.5 else pickled


def _large_structure(draw: random.Random) -> bytes:
    """Return a small pickle of a large structure: nesting, colliding keys, doubling tuples."""
    n = draw.choice([100, 2000, 10_000])
    match draw.randrange(6):
        case 0:
            return b"\x85".join([b"N"] + [b""] * n)
        case 1:
            return b"](" * n + b"e" * n
        case 2:
            return b"]" + b"]a" * n
        case 3:
            return b"](" + b"]\x94" * n + b"e"
        case 4:
            return b"}(" + b"".join(_int(k * (2**61 - 1)) + b"N" for k in range(4 * n)) + b"u"
    return b"]q\x00" + b"".join(b"h%c\x86q%c" % (k, k + 1) for k in range(200)) + b"\x85"


def pt(draw: random.Random) -> bytes:
    """Return a zip file of a pickle and storages, or of something else."""
    pickled, root = _random_pickle(draw), draw.choice(["archive", "archive", "archive", "..", "/etc", "a/../..", "é"])
    entries = {f"{root}/data.pkl": pickled, f"{root}/version": b"3\n"}
    for k in range(4):
        entries[f"{root}/data/{k}"] = draw.randbytes(draw.choice([4, 8, 16, 32, 32, 16, 100]))
    if draw.random() < 0.3:
        entries[f"{root}/byteorder"] = draw.choice([b"big", b"little", b"\xff"])
    if draw.random() < 0.2:
        name = draw.choice(
            ["../outside/ran", "/etc/passwd", f"{root}/constants.pkl", "b/data.pkl", odd_string(draw) or "x"]
        )
        entries[name] = b"x"
    buffer = io.BytesIO()
    compression = zipfile.ZIP_STORED if draw.random() < 0.97 else zipfile.ZIP_DEFLATED
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as file:
        warnings.simplefilter("ignore")
        for name, data in entries.items():
            info = zipfile.ZipInfo(name.replace("\0", "0"))
            info.compress_type = compression
            if draw.random() < 0.05:
                info.external_attr = 0o120777 << 16  # a link
                data = b"../outside/kept.txt"
            file.writestr(info, bytes(2**20) if compression and name.endswith("0") else data)
            if draw.random() < 0.02:
                file.writestr(info, data)
    data_out = buffer.getvalue()
    if draw.random() < 0.15:
        data_out = _corrupt_directory(draw, data_out)
    return corrupt(draw, data_out, [data_out, *malicious_pickles()[:3]], 2) if draw.random() < 0.25 else data_out


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return buffer.getvalue()


FLOATS = b"\x80\x02" + TENSOR + b"(" + STORAGE % (b"Float", ord("0")) + b"K\x00K\x04\x85K\x01\x85\x89}tR."
GOOD_PT = _zip({"archive/data.pkl": FLOATS, "archive/data/0": bytes(16)})


def _corrupt_directory(draw: random.Random, data: bytes) -> bytes:
    """Overwrite a field of the central directory, or of its end record."""
    mark, fields = draw.choice([(b"PK\x01\x02", range(8, 46, 2)), (b"PK\x05\x06", range(8, 22, 2))])
    start = data.rfind(mark) if draw.random() < 0.5 else data.find(mark)
    position = start + draw.choice(list(fields))
    return data[:position] + (draw.choice(EDGES) % 2**32).to_bytes(4, "little") + data[position + 4 :]
