"""Read the zip format of ``torch.save`` since PyTorch 1.6: an archive with a pickle and the bytes of each storage.

``name/data.pkl`` is the pickle, ``name/data/0`` the bytes of storage 0, ``name/byteorder`` "little" or "big"; entries
are uncompressed (pytorch/docs/source/notes/serialization.rst). A tensor is a storage, an offset, sizes and strides;
tensors that share a storage in the file share it after loading.
"""

from __future__ import annotations

import io
import struct
import zipfile
from math import prod
from typing import Any, Literal, NamedTuple

from minigrad.core.errors import FileFormatError, MinigradError
from minigrad.core.grad_mode import no_grad
from minigrad.core.storage import memory
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.creation import zeros
from minigrad.functional.views import as_strided
from minigrad.io.pickles import Named, Refused
from minigrad.io.pickles import read as unpickled
from minigrad.io.tensors import numbers, size_of_one

__all__ = ["read"]

STORAGES = {
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
"""Map PyTorch's storage types to the dtype codes of safetensors."""


class _Storage(NamedTuple):
    """A storage of the file, as a 1-D tensor."""

    code: str
    row: Tensor


def read(data: bytes, place: str, widen: bool) -> Any:
    """Load the output of ``torch.save``, with tensors on the device `place`. Raises FileFormatError, DTypeError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _Archive(file, len(data), place, widen).content()
    except MinigradError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OverflowError, ValueError, struct.error) as error:
        raise FileFormatError(f"load: failed reading zip archive, it is truncated or corrupt: {error}.") from None


class _Archive:
    """An open zip archive, and a cache of its storages."""

    def __init__(self, file: zipfile.ZipFile, size: int, place: str, widen: bool) -> None:
        self.file, self.place, self.widen = file, place, widen
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
        self.order: Literal["<", ">"] = ">" if self._bytes("byteorder", b"little") == b"big" else "<"

    def _bytes(self, name: str, default: bytes | None = None) -> bytes:
        """Read an entry, verifying its checksum."""
        entry = self.entries.get(self.root + name)
        if entry is None and default is not None:
            return default
        if entry is None:
            raise FileFormatError(f"load: failed finding file {name!r} in the zip archive.")
        return self.file.read(entry)

    def content(self) -> Any:
        """Return the saved object."""
        names = {f"torch.{name}Storage": Named(code) for name, code in STORAGES.items()}
        names["collections.OrderedDict"] = Named("OrderedDict", _dict)
        names["torch._utils._rebuild_tensor_v2"] = Named("tensor", _tensor)
        names["torch._utils._rebuild_parameter"] = Named("parameter", _parameter)
        with no_grad():
            return unpickled(self._bytes("data.pkl"), names, self.storage, (Tensor,))

    def storage(self, described: Any) -> _Storage:
        """Resolve a persistent id of the pickle, ("storage", type, key, device, length), to a storage."""
        match described:
            case ("storage", Named(name=code, call=None), str(key), str(), int(count)) if len(described) == 5:
                pass
            case _:
                raise Refused("load: unsupported persistent id in the pickle: it is not a storage.")
        found = self.storages.get(key)
        if found is None:
            name, size = f"data/{key}", size_of_one(code)
            data = self._bytes(name)
            if len(data) != count * (size or 0):
                raise FileFormatError(f"load: {name!r} has {len(data)} bytes, but expected {count} elements of {code}.")
            row = numbers(data, code, name, self.widen, self.order)
            found = self.storages[key] = _Storage(code, wrap(memory(self.place).copied(row)))
        if (found.code, len(found.row)) != (code, count):
            raise FileFormatError(f"load: storage {key!r:.20} is declared with two different types or lengths.")
        return found


# --- globals of the pickle ---


def _dict(*pairs: Any) -> dict[Any, Any]:
    if pairs:
        raise Refused("load: an OrderedDict in this file has constructor arguments, unlike PyTorch's.")
    return {}


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
    """Rebuild a tensor from its storage. `rest` is `requires_grad`, the backward hooks, and metadata flags.

    The flag "neg" means that the tensor is the negation of its storage, as for the imaginary part of a conjugate.
    Hooks must be empty, as they would be functions.
    """
    requires_grad, hooks, flags = (*rest, *(False, None, None)[len(rest) :])[:3]
    made = type(storage) is _Storage and type(size) is tuple and type(stride) is tuple and len(rest) <= 3
    made = made and type(requires_grad) is bool and not hooks and (not flags or type(flags) is dict)
    if not made or any(type(n) is not int for n in (offset, *size, *stride)):
        raise Refused("load: invalid tensor in this file: expected a storage, an offset, sizes and strides.")
    if min((offset, *size, *stride)) < 0 or len(size) != len(stride) or len(size) > 64:
        raise Refused(f"load: invalid tensor in this file: sizes {size!r:.80} and strides {stride!r:.80}.")
    there, wanted = len(storage.row), prod(size)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if wanted and (last >= there or wanted > there):
        raise Refused(
            f"load: a tensor with sizes {size!r:.80}, strides {stride!r:.80} and storage offset {offset} is out of "
            f"bounds for storage of size {there}.\n  If it was expanded, call x.contiguous() before saving."
        )
    if not wanted:
        found = zeros(size, dtype=storage.row.dtype, device=storage.row.device)
    else:
        found = as_strided(storage.row, size, stride, offset).detach()
    if flags and (flags.keys() != {"neg"} or type(flags["neg"]) is not bool):
        raise Refused(
            f"load: a tensor in this file has the flags {flags!r:.80}, but only 'neg' is supported.\n"
            "  Call x.resolve_conj().resolve_neg() before saving."
        )
    return _needing(-found if flags and flags["neg"] else found, requires_grad)


def _parameter(x: Any, *rest: Any) -> Tensor:
    """Rebuild a parameter as a tensor. `rest` is `requires_grad` and hooks, as in `_tensor`."""
    requires_grad, hooks = (*rest, *(True, None)[len(rest) :])[:2]
    if len(rest) > 2 or type(x) is not Tensor or type(requires_grad) is not bool or hooks:
        raise Refused("load: invalid parameter in this file: expected a tensor.")
    return _needing(x.detach(), requires_grad)


def _needing(x: Tensor, requires_grad: bool) -> Tensor:
    return x.requires_grad_() if requires_grad and x.dtype.is_floating_point else x
