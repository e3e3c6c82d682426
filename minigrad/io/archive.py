"""Reader for the zip format that ``torch.save`` writes since PyTorch 1.6.

The archive contains a pickle, ``name/data.pkl``; the bytes of each storage, such as ``name/data/0``; and the byte
order, "little" or "big", in ``name/byteorder``. Entries are uncompressed
(pytorch/docs/source/notes/serialization.rst). A tensor consists of a storage, an offset, sizes and strides. Tensors
that share a storage in the file also share it after loading.
"""

from __future__ import annotations

import io
import struct
import zipfile
from math import prod
from typing import Any, Literal, NamedTuple

from minigrad.core.errors import FileFormatError, MinigradError
from minigrad.core.grad_mode import no_grad
from minigrad.core.storage import get_allocator
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.creation import zeros
from minigrad.functional.views import as_strided
from minigrad.io.tensors import code_itemsize, decode_elements
from minigrad.io.unpickler import AllowedGlobal, UnsupportedPickleError
from minigrad.io.unpickler import unpickle as unpickled

__all__ = ["read"]

STORAGE_CODES = {
    "Bool": "BOOL",
    "Byte": "U8",
    "Char": "I8",
    "Short": "I16",
    "Int": "I32",
    "Long": "I64",
    "Half": "F16",
    "BFloat16": "BF16",
    "Float": "F32",
    "Double": "F64",
}
"""Maps PyTorch's storage types to the dtype codes of safetensors."""


class _Storage(NamedTuple):
    """A storage in the file: its safetensors dtype code, and its elements as a 1-D tensor."""

    code: str
    elements: Tensor


def read(data: bytes, device: str, widen: bool) -> Any:
    """Load the output of ``torch.save``, with tensors on the device `device`. Raises FileFormatError, DTypeError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _ZipArchive(file, len(data), device, widen).content()
    except MinigradError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OverflowError, ValueError, struct.error) as error:
        raise FileFormatError(f"load: failed reading zip archive, it is truncated or corrupt: {error}.") from None


class _ZipArchive:
    """An open zip archive, and a cache of the storages read from it."""

    def __init__(self, file: zipfile.ZipFile, size: int, device: str, widen: bool) -> None:
        self.file, self.device, self.widen = file, device, widen
        self.storages: dict[str, _Storage] = {}
        entries = file.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
            raise FileFormatError("load: the zip archive is compressed or encrypted, unlike those of torch.save.")
        if len(self.entries) < len(entries) or sum(entry.file_size for entry in entries) > size:
            raise FileFormatError(f"load: the zip archive declares more than its size of {size} bytes.")
        roots = [name.removesuffix("data.pkl") for name in self.entries if name.endswith("/data.pkl")]
        if len(roots) != 1 or f"{roots[0]}constants.pkl" in self.entries:
            raise FileFormatError(
                "load: the zip archive was not written by torch.save (TorchScript archives are not supported).\n"
                "  Write torch.save(model.state_dict(), path) in PyTorch."
            )
        (self.root,) = roots
        self.byte_order: Literal["<", ">"] = ">" if self._read_entry("byteorder", b"little") == b"big" else "<"

    def _read_entry(self, name: str, default: bytes | None = None) -> bytes:
        """Read an entry and verify its checksum. If the entry is missing, return `default` unless it is None."""
        entry = self.entries.get(self.root + name)
        if entry is None and default is not None:
            return default
        if entry is None:
            raise FileFormatError(f"load: failed finding file {name!r} in the zip archive.")
        return self.file.read(entry)

    def content(self) -> Any:
        """Return the saved object."""
        names = {f"torch.{name}Storage": AllowedGlobal(code) for name, code in STORAGE_CODES.items()}
        names["collections.OrderedDict"] = AllowedGlobal("OrderedDict", _rebuild_dict)
        names["torch._utils._rebuild_tensor_v2"] = AllowedGlobal("tensor", _rebuild_tensor)
        names["torch._utils._rebuild_parameter"] = AllowedGlobal("parameter", _rebuild_parameter)
        with no_grad():
            return unpickled(self._read_entry("data.pkl"), names, self.storage, (Tensor,))

    def storage(self, persistent_id: Any) -> _Storage:
        """Resolve a persistent id of the pickle, ("storage", type, key, device, length), to a storage."""
        match persistent_id:
            case ("storage", AllowedGlobal(name=code, call=None), str(key), str(), int(count)) if (
                len(persistent_id) == 5
            ):
                pass
            case _:
                raise UnsupportedPickleError("load: unsupported persistent id in the pickle: it is not a storage.")
        storage = self.storages.get(key)
        if storage is None:
            name, size = f"data/{key}", code_itemsize(code)
            data = self._read_entry(name)
            if len(data) != count * (size or 0):
                raise FileFormatError(f"load: {name!r} has {len(data)} bytes, but expected {count} elements of {code}.")
            row = decode_elements(data, code, name, self.widen, self.byte_order)
            storage = self.storages[key] = _Storage(code, wrap(get_allocator(self.device).copy(row)))
        if (storage.code, len(storage.elements)) != (code, count):
            raise FileFormatError(f"load: storage {key!r:.20} is declared with two different types or lengths.")
        return storage


# --- globals of the pickle ---


def _rebuild_dict(*pairs: Any) -> dict[Any, Any]:
    if pairs:
        raise UnsupportedPickleError("load: an OrderedDict in this file has constructor arguments, unlike PyTorch's.")
    return {}


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
    """Rebuild a tensor from its storage. `rest` is `requires_grad`, the backward hooks, and metadata flags.

    The flag "neg" means that the tensor is the negation of its storage, as for the imaginary part of a conjugate.
    Backward hooks are functions, which are not supported.
    """
    requires_grad, hooks, flags = (*rest, *(False, None, None)[len(rest) :])[:3]
    is_valid = type(storage) is _Storage and type(size) is tuple and type(stride) is tuple and len(rest) <= 3
    is_valid = is_valid and type(requires_grad) is bool and not hooks and (not flags or type(flags) is dict)
    if not is_valid or any(type(n) is not int for n in (offset, *size, *stride)):
        raise UnsupportedPickleError(
            "load: invalid tensor in this file: expected a storage, an offset, sizes and strides."
        )
    if min((offset, *size, *stride)) < 0 or len(size) != len(stride) or len(size) > 64:
        raise UnsupportedPickleError(
            f"load: invalid tensor in this file: sizes {size!r:.80} and strides {stride!r:.80}."
        )
    storage_size, element_count = len(storage.elements), prod(size)
    last_index = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if element_count and (last_index >= storage_size or element_count > storage_size):
        raise UnsupportedPickleError(
            f"load: a tensor with sizes {size!r:.80}, strides {stride!r:.80} and storage offset {offset} is out of "
            f"bounds for storage of size {storage_size}.\n  If it was expanded, call x.contiguous() before saving."
        )
    if not element_count:
        tensor = zeros(size, dtype=storage.elements.dtype, device=storage.elements.device)
    else:
        tensor = as_strided(storage.elements, size, stride, offset).detach()
    if flags and (flags.keys() != {"neg"} or type(flags["neg"]) is not bool):
        raise UnsupportedPickleError(
            f"load: a tensor in this file has the flags {flags!r:.80}, but only 'neg' is supported.\n"
            "  Call x.resolve_conj().resolve_neg() before saving."
        )
    return _with_requires_grad(-tensor if flags and flags["neg"] else tensor, requires_grad)


def _rebuild_parameter(x: Any, *rest: Any) -> Tensor:
    """Rebuild a parameter as a tensor. `rest` is `requires_grad` and hooks, as in `_rebuild_tensor`."""
    requires_grad, hooks = (*rest, *(True, None)[len(rest) :])[:2]
    if len(rest) > 2 or type(x) is not Tensor or type(requires_grad) is not bool or hooks:
        raise UnsupportedPickleError("load: invalid parameter in this file: expected a tensor.")
    return _with_requires_grad(x.detach(), requires_grad)


def _with_requires_grad(x: Tensor, requires_grad: bool) -> Tensor:
    return x.requires_grad_() if requires_grad and x.dtype.is_floating_point else x
