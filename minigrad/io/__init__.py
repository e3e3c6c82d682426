"""Save tensors as safetensors, and load them from safetensors or PyTorch's ``.pt`` without executing code.

The files are valid safetensors. Tensors are stored by name: ``{"model": {"layer.weight": …}}`` becomes
``model.layer.weight``. Everything that safetensors cannot represent is stored in the metadata, as strings:

=============  ========================================================================================================
``minigrad``   "1", the version of this layout
``tree``       JSON of the saved object, where ``{"$tensor": name}`` is a tensor, ``{"$tuple": […]}`` a tuple,
               ``{"$dict": [[key, value], …]}`` a dict with keys other than strings, ``{"$float": "nan"}`` nan or ±inf,
               ``{"$state": [dict, versions]}`` a state dict of modules that have versions
``sha256``     checksum of the tree and of each tensor in order of name: its name, dtype, shape and bytes
=============  ========================================================================================================
"""

from __future__ import annotations

import os
from typing import IO, Any

from minigrad.core.errors import ArgumentError, FileFormatError
from minigrad.core.storage import check_device
from minigrad.io import archive, tensors, tree
from minigrad.io.atomic import read_all, write_all

__all__ = ["load", "save"]


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Save `obj` to the file `f` atomically.

    `obj` is a tensor, a state dict, or nested dicts, lists and tuples of tensors, Python scalars, strings and None.
    Only the elements of a tensor are saved, not its graph or `requires_grad`.

    `f` is a path or a file opened in binary mode for writing. A path is replaced only after the new file has been
    written to disk. Raises DTypeError for unsupported types, ArgumentError for a dict that contains itself,
    MissingPackageError if the package safetensors is not installed, and OSError if writing fails.

    >>> import io, minigrad as mg
    >>> file = io.BytesIO()
    >>> mg.save({"model": {"weight": mg.ones(2)}, "epoch": 3, "betas": (0.9, 0.999)}, file)
    >>> mg.load(io.BytesIO(file.getvalue()))
    {'model': {'weight': tensor([1., 1.])}, 'epoch': 3, 'betas': (0.9, 0.999)}
    """
    tree_json, named_tensors = tree.flatten_tree(obj)
    write_all(f, tensors.encode(tree_json, named_tensors))


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: str | None = None,
    *,
    weights_only: bool = True,
    widen: bool = False,
) -> Any:
    """Load an object from the file `f`, with its tensors on the device `map_location` (default: the default device).

    `f` is a path, or a file opened in binary mode for reading. It was written by `save`, by another program as
    safetensors (a dict of tensors), or by ``torch.save`` of PyTorch 1.6 or later from dicts, lists and tuples of
    tensors, parameters, Python scalars and strings. The format is detected from the first bytes. The pickle in a
    ``.pt`` is interpreted as data, without executing code.

    `weights_only` is accepted for compatibility with PyTorch; no code is ever executed, even if it is False.

    Unsupported dtypes raise DTypeError, unless `widen` converts them to a wider one: float16 and bfloat16 to float32;
    int8, int16 and uint16 to int32; uint32 to int64.

    Raises FileFormatError if the file is corrupt or has another format, DTypeError, DeviceError, MissingPackageError,
    and OSError such as FileNotFoundError.
    """
    if map_location is not None and not isinstance(map_location, str):
        raise ArgumentError(
            f"load: expected map_location to be a device string, but got {type(map_location).__name__}.\n"
            "  Write, for example, map_location='cpu'."
        )
    device = check_device(map_location, "load")
    data = read_all(f)
    if data.startswith(b"PK\x03\x04"):
        return archive.read(data, device, widen)
    if data.startswith(b"\x80\x02\x8a\n"):  # pickle protocol 2, 10-byte LONG1; not a valid safetensors length
        raise FileFormatError(
            "load: this is the legacy format of PyTorch before 1.6 (a plain pickle), which is not supported.\n"
            "  Convert it in PyTorch: torch.save(torch.load(old, weights_only=True), new)."
        )
    tree_json, named_tensors = tensors.decode(data, device, widen)
    return tree.unflatten_tree(tree_json, named_tensors)
