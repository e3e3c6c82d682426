"""Encode and decode tensors with the safetensors library, and convert the dtypes of files."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any, Literal

import numpy as np

from minigrad.core.dtypes import DTYPES, DType, float32, int32, int64, uint8
from minigrad.core.dtypes import bool as bool_
from minigrad.core.errors import DTypeError, FileFormatError, MinigradError
from minigrad.core.packages import package
from minigrad.core.storage import host, memory
from minigrad.core.tensor import Tensor, wrap

__all__ = ["decoded", "encoded", "numbers", "size_of_one"]


def _code(dtype: DType) -> str:
    """Return the safetensors dtype code of a minigrad dtype."""
    kind = "F" if dtype.is_floating_point else "U" if dtype is uint8 else "I"
    return "BOOL" if dtype is bool_ else f"{kind}{8 * dtype.itemsize}"


CODES = {dtype: _code(dtype) for dtype in DTYPES.values()}
TYPES: dict[str, tuple[DType, Any]] = {code: (dtype, np.dtype(dtype.name)) for dtype, code in CODES.items()}
"""The supported dtypes by safetensors code."""
WIDER: dict[str, tuple[DType, Any]] = {
    "F16": (float32, np.dtype("f2")),
    "BF16": (float32, np.dtype("u2")),  # the upper 16 bits of a float32
    "I8": (int32, np.dtype("i1")),
    "I16": (int32, np.dtype("i2")),
    "U16": (int32, np.dtype("u2")),
    "U32": (int64, np.dtype("u4")),
}
"""Unsupported dtypes by safetensors code, with the smallest supported dtype that represents all their values."""
NAMES = {"F16": "float16", "BF16": "bfloat16", "I8": "int8", "I16": "int16", "U16": "uint16", "U32": "uint32"}

_NATIVE = "<" if sys.byteorder == "little" else ">"


def size_of_one(code: str) -> int | None:
    """Return the item size of a dtype code in bytes, or None for an unknown code."""
    found = TYPES.get(code) or WIDER.get(code)
    return found and found[1].itemsize


def numbers(data: bytes, code: str, name: str, widen: bool, order: Literal["<", ">"] = "<") -> Any:
    """Return the elements in `data`, of dtype code `code`, as an array of a supported dtype, possibly a view of `data`.

    Its dtype is NumPy's canonical instance, as other code compares dtypes by identity.

    Raises DTypeError for unsupported dtypes, except those that `widen` converts.
    """
    if code not in TYPES and code not in WIDER:
        raise DTypeError(f"load: {name!r} has dtype {code}, which is not supported.")
    dtype, kind = TYPES.get(code) or WIDER[code]
    if code in WIDER and not widen:
        raise DTypeError(
            f"load: {name!r} has dtype {NAMES[code]}, which is not supported.\n"
            f"  Write load(…, widen=True) to convert it to {dtype.name}."
        )
    array = np.frombuffer(data, kind if order == _NATIVE else kind.newbyteorder(order))
    if code == "BOOL":
        return array.view("u1") != 0  # any nonzero byte is True
    if code == "BF16":
        return (array.astype("u4") << 16).view("f4")
    return array.astype(dtype.name, copy=False)


# --- as safetensors ---


def encoded(tree: Any, tensors: dict[str, Tensor]) -> bytes:
    """Serialise tensors to safetensors bytes, with `tree` in the metadata."""
    arrays = {name: _bare(x) for name, x in tensors.items()}
    described = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    seen = [(name, CODES[x.dtype], x.shape, arrays[name]) for name, x in tensors.items()]
    metadata = {"minigrad": "1", "tree": described, "sha256": _digest(described, seen)}
    return bytes(_library().numpy.save(arrays, metadata))


def decoded(data: bytes, place: str, widen: bool) -> tuple[Any, dict[str, Tensor]]:
    """Parse safetensors bytes: return the tree, by default a dict of all tensors, and the tensors on device `place`.

    Raises FileFormatError for other formats, and for a checksum mismatch.
    """
    library = _library()
    try:
        found = library.deserialize(data)
        described = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
        tree = {name: {"$tensor": name} for name, _ in found}
        if not {"minigrad", "sha256", "tree"}.isdisjoint(described):
            tree = _checked(described, [(name, x["dtype"], tuple(x["shape"]), x["data"]) for name, x in found])
        arrays = {name: numbers(x["data"], x["dtype"], name, widen).reshape(x["shape"]) for name, x in found}
    except MinigradError:
        raise
    except (library.SafetensorError, ArithmeticError, LookupError, RecursionError, ValueError) as error:
        raise FileFormatError(
            f"load: this file is neither safetensors nor a PyTorch .pt file, or it is truncated or corrupt: {error}."
        ) from None
    return tree, {name: wrap(memory(place).copied(array)) for name, array in arrays.items()}


def _checked(described: dict[str, str], found: list[tuple[str, str, tuple[int, ...], Any]]) -> Any:
    """Verify the layout and checksum in a file's metadata, and return its tree."""
    layout = described.get("minigrad")
    if layout != "1":
        raise FileFormatError(
            f"load: this file has layout {layout!r:.20}, but this version of minigrad only supports '1'. Update it."
        )
    if described.get("sha256") != _digest(described.get("tree", ""), found):
        raise FileFormatError("load: this file is corrupt: checksum mismatch.")
    return json.loads(described["tree"])


def _digest(tree: str, found: list[tuple[str, str, tuple[int, ...], Any]]) -> str:
    digest = hashlib.sha256(tree.encode())
    for name, code, shape, data in sorted(found, key=lambda one: one[0]):
        digest.update(json.dumps([name, code, shape]).encode())
        digest.update(data if isinstance(data, bytes) else np.ascontiguousarray(data).reshape(-1).view("u1").data)
    return digest.hexdigest()


def _bare(x: Tensor) -> Any:
    """Return the elements of a tensor as a contiguous NumPy array."""
    return np.ascontiguousarray(host(x._array)).reshape(x.shape)


def _library() -> Any:
    package("safetensors.numpy", "save and load")
    return package("safetensors", "save and load")
