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
from minigrad.core.packages import import_package
from minigrad.core.storage import get_allocator, to_numpy
from minigrad.core.tensor import Tensor, wrap

__all__ = ["code_itemsize", "decode", "decode_elements", "encode"]


def _dtype_code(dtype: DType) -> str:
    """Return the safetensors dtype code of a minigrad dtype."""
    kind = "F" if dtype.is_floating_point else "U" if dtype is uint8 else "I"
    return "BOOL" if dtype is bool_ else f"{kind}{8 * dtype.itemsize}"


CODE_OF_DTYPE = {dtype: _dtype_code(dtype) for dtype in DTYPES.values()}
SUPPORTED_DTYPES: dict[str, tuple[DType, Any]] = {
    code: (dtype, np.dtype(dtype.name)) for dtype, code in CODE_OF_DTYPE.items()
}
"""Maps safetensors codes to the supported dtypes, as minigrad and NumPy dtypes."""
WIDENED_DTYPES: dict[str, tuple[DType, Any]] = {
    "F16": (float32, np.dtype("f2")),
    "BF16": (float32, np.dtype("u2")),  # the upper 16 bits of a float32
    "I8": (int32, np.dtype("i1")),
    "I16": (int32, np.dtype("i2")),
    "U16": (int32, np.dtype("u2")),
    "U32": (int64, np.dtype("u4")),
}
"""Maps safetensors codes of unsupported dtypes to the smallest supported dtype that represents all their values.

The second item is the NumPy dtype in which the elements are read.
"""
UNSUPPORTED_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "U32": "uint32",
}

_NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"


def code_itemsize(code: str) -> int | None:
    """Return the item size of a dtype code in bytes, or None for an unknown code."""
    entry = SUPPORTED_DTYPES.get(code) or WIDENED_DTYPES.get(code)
    return entry and entry[1].itemsize


def decode_elements(data: bytes, code: str, name: str, widen: bool, order: Literal["<", ">"] = "<") -> Any:
    """Decode bytes of dtype code `code` to an array of a supported dtype. The array may be a view of `data`.

    The dtype of the array is NumPy's canonical instance, because other code compares dtypes by identity.

    Raises DTypeError for unsupported dtypes, except those that `widen` converts.
    """
    if code not in SUPPORTED_DTYPES and code not in WIDENED_DTYPES:
        raise DTypeError(f"load: {name!r} has dtype {code}, which is not supported.")
    dtype, kind = SUPPORTED_DTYPES.get(code) or WIDENED_DTYPES[code]
    if code in WIDENED_DTYPES and not widen:
        raise DTypeError(
            f"load: {name!r} has dtype {UNSUPPORTED_NAMES[code]}, which is not supported.\n"
            f"  Write load(…, widen=True) to convert it to {dtype.name}."
        )
    array = np.frombuffer(data, kind if order == _NATIVE_ORDER else kind.newbyteorder(order))
    if code == "BOOL":
        return array.view("u1") != 0  # any nonzero byte is True
    if code == "BF16":
        return (array.astype("u4") << 16).view("f4")
    return array.astype(dtype.name, copy=False)


# --- as safetensors ---


def encode(tree: Any, tensors: dict[str, Tensor]) -> bytes:
    """Serialise tensors to safetensors bytes, with `tree` in the metadata."""
    arrays = {name: _to_numpy(x) for name, x in tensors.items()}
    tree_json = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    digest_entries = [(name, CODE_OF_DTYPE[x.dtype], x.shape, arrays[name]) for name, x in tensors.items()]
    metadata = {"minigrad": "1", "tree": tree_json, "sha256": _digest(tree_json, digest_entries)}
    return bytes(_import_safetensors().numpy.save(arrays, metadata))


def decode(data: bytes, device: str, widen: bool) -> tuple[Any, dict[str, Tensor]]:
    """Parse safetensors bytes. Return the tree, by default a dict of all tensors, and the tensors on device `device`.

    Raises FileFormatError for other formats, and for a checksum mismatch.
    """
    library = _import_safetensors()
    try:
        entries = library.deserialize(data)
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
        tree = {name: {"$tensor": name} for name, _ in entries}
        if not {"minigrad", "sha256", "tree"}.isdisjoint(metadata):
            tree = _verify_checksum(metadata, [(name, x["dtype"], tuple(x["shape"]), x["data"]) for name, x in entries])
        arrays = {name: decode_elements(x["data"], x["dtype"], name, widen).reshape(x["shape"]) for name, x in entries}
    except MinigradError:
        raise
    except (library.SafetensorError, ArithmeticError, LookupError, RecursionError, ValueError) as error:
        raise FileFormatError(
            f"load: this file is neither safetensors nor a PyTorch .pt file, or it is truncated or corrupt: {error}."
        ) from None
    return tree, {name: wrap(get_allocator(device).copy(array)) for name, array in arrays.items()}


def _verify_checksum(metadata: dict[str, str], entries: list[tuple[str, str, tuple[int, ...], Any]]) -> Any:
    """Verify the layout and checksum in a file's metadata, and return its tree."""
    layout = metadata.get("minigrad")
    if layout != "1":
        raise FileFormatError(
            f"load: this file has layout {layout!r:.20}, but this version of minigrad only supports '1'. Update it."
        )
    if metadata.get("sha256") != _digest(metadata.get("tree", ""), entries):
        raise FileFormatError("load: this file is corrupt: checksum mismatch.")
    return json.loads(metadata["tree"])


def _digest(tree: str, entries: list[tuple[str, str, tuple[int, ...], Any]]) -> str:
    digest = hashlib.sha256(tree.encode())
    for name, code, shape, data in sorted(entries, key=lambda one: one[0]):
        digest.update(json.dumps([name, code, shape]).encode())
        digest.update(data if isinstance(data, bytes) else np.ascontiguousarray(data).reshape(-1).view("u1").data)
    return digest.hexdigest()


def _to_numpy(x: Tensor) -> Any:
    """Return the elements of a tensor as a contiguous NumPy array."""
    return np.ascontiguousarray(to_numpy(x._array)).reshape(x.shape)


def _import_safetensors() -> Any:
    import_package("safetensors.numpy", "save and load")
    return import_package("safetensors", "save and load")
