"""State dicts as PyTorch writes them since version 1.6: a zip file of a pickle and the bytes of each storage.

``name/data.pkl`` is the pickle, ``name/data/0`` the bytes of storage 0, ``name/byteorder`` "little" or "big"; nothing
is compressed (pytorch/docs/source/notes/serialization.rst). A tensor is a storage, an offset, sizes and strides; those
that share a storage in the file do so here.
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
"""PyTorch's types of storages by the names of safetensors."""


class _Storage(NamedTuple):
    """A storage of the file: its numbers in one row."""

    code: str
    row: Tensor


def read(data: bytes, place: str, widen: bool) -> Any:
    """What ``torch.save`` wrote, its tensors on the device `place`. Raises FileFormatError, DTypeError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _Archive(file, len(data), place, widen).content()
    except MinigradError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OverflowError, ValueError, struct.error) as error:
        raise FileFormatError(f"load: this zip file was cut off or damaged: {error}.") from None


class _Archive:
    """An opened zip file, and the storages that were read so far."""

    def __init__(self, file: zipfile.ZipFile, size: int, place: str, widen: bool) -> None:
        self.file, self.place, self.widen = file, place, widen
        self.storages: dict[str, _Storage] = {}
        entries = file.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
            raise FileFormatError("load: this zip file is compressed or locked; PyTorch's are neither.")
        if len(self.entries) < len(entries) or sum(entry.file_size for entry in entries) > size:
            raise FileFormatError(f"load: this zip file of {size} bytes says that more than that is in it.")
        roots = [name.removesuffix("data.pkl") for name in self.entries if name.endswith("/data.pkl")]
        if len(roots) != 1 or f"{roots[0]}constants.pkl" in self.entries:
            raise FileFormatError(
                "load: this zip file is not one that torch.save wrote (TorchScript's are programs).\n"
                "  Write torch.save(model.state_dict(), path) in PyTorch."
            )
        (self.root,) = roots
        self.order: Literal["<", ">"] = ">" if self._bytes("byteorder", b"little") == b"big" else "<"

    def _bytes(self, name: str, default: bytes | None = None) -> bytes:
        """The bytes of an entry, whose checksum is right."""
        entry = self.entries.get(self.root + name)
        if entry is None and default is not None:
            return default
        if entry is None:
            raise FileFormatError(f"load: {name!r} is missing in this zip file.")
        return self.file.read(entry)

    def content(self) -> Any:
        """What was saved."""
        names = {f"torch.{name}Storage": Named(code) for name, code in STORAGES.items()}
        names["collections.OrderedDict"] = Named("OrderedDict", _dict)
        names["torch._utils._rebuild_tensor_v2"] = Named("tensor", _tensor)
        names["torch._utils._rebuild_parameter"] = Named("parameter", _parameter)
        with no_grad():
            return unpickled(self._bytes("data.pkl"), names, self.storage, (Tensor,))

    def storage(self, described: Any) -> _Storage:
        """The storage that an id of the pickle stands for: ("storage", its type, its key, a device, its length)."""
        match described:
            case ("storage", Named(name=code, call=None), str(key), str(), int(count)) if len(described) == 5:
                pass
            case _:
                raise Refused("load: this pickle asks for something that is not a storage.")
        found = self.storages.get(key)
        if found is None:
            name, size = f"data/{key}", size_of_one(code)
            data = self._bytes(name)
            if len(data) != count * (size or 0):
                raise FileFormatError(f"load: {name!r} has {len(data)} bytes, not {count} numbers of type {code}.")
            row = numbers(data, code, name, self.widen, self.order)
            found = self.storages[key] = _Storage(code, wrap(memory(self.place).copied(row)))
        if (found.code, len(found.row)) != (code, count):
            raise FileFormatError(f"load: storage {key!r:.20} is said to be two different things.")
        return found


# --- what the names in a pickle stand for ---


def _dict(*pairs: Any) -> dict[Any, Any]:
    if pairs:
        raise Refused("load: an OrderedDict of this file is not made as PyTorch's are.")
    return {}


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
    """A tensor in a storage. `rest` is whether it needs a gradient, its hooks, and flags.

    With the flag "neg" the tensor is what its storage has, negated: so PyTorch keeps the imaginary part of a conjugate.
    Hooks are functions, which no such file has.
    """
    requires_grad, hooks, flags = (*rest, *(False, None, None)[len(rest) :])[:3]
    made = type(storage) is _Storage and type(size) is tuple and type(stride) is tuple and len(rest) <= 3
    made = made and type(requires_grad) is bool and not hooks and (not flags or type(flags) is dict)
    if not made or any(type(n) is not int for n in (offset, *size, *stride)):
        raise Refused("load: a tensor of this file is not made of a storage, sizes and strides.")
    if min((offset, *size, *stride)) < 0 or len(size) != len(stride) or len(size) > 64:
        raise Refused(f"load: a tensor of this file has the sizes {size!r:.80} and strides {stride!r:.80}.")
    there, wanted = len(storage.row), prod(size)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if wanted and (last >= there or wanted > there):
        raise Refused(
            f"load: a tensor of sizes {size!r:.80} and strides {stride!r:.80} from {offset} on is more than its "
            f"storage of {there} numbers has.\n  Write x.contiguous() before saving, if it was expanded."
        )
    if not wanted:
        found = zeros(size, dtype=storage.row.dtype, device=storage.row.device)
    else:
        found = as_strided(storage.row, size, stride, offset).detach()
    if flags and (flags.keys() != {"neg"} or type(flags["neg"]) is not bool):
        raise Refused(
            f"load: a tensor of this file has the flags {flags!r:.80}, of which only 'neg' is known here.\n"
            "  Write x.resolve_conj().resolve_neg() before saving."
        )
    return _needing(-found if flags and flags["neg"] else found, requires_grad)


def _parameter(x: Any, *rest: Any) -> Tensor:
    """The elements of a parameter, as a tensor. `rest` is whether it needs a gradient, and hooks, as of `_tensor`."""
    requires_grad, hooks = (*rest, *(True, None)[len(rest) :])[:2]
    if len(rest) > 2 or type(x) is not Tensor or type(requires_grad) is not bool or hooks:
        raise Refused("load: a parameter of this file is not made of a tensor.")
    return _needing(x.detach(), requires_grad)


def _needing(x: Tensor, requires_grad: bool) -> Tensor:
    return x.requires_grad_() if requires_grad and x.dtype.is_floating_point else x
