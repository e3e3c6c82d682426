"""Files of tensors: `save` writes safetensors, `load` reads those and PyTorch's ``.pt``. Neither runs what it reads.

A file of ours is one that every program for safetensors reads: the tensors by name, ``model.layer.weight`` for what was
saved as ``{"model": {"layer.weight": …}}``. What safetensors has no place for stands in the metadata, as texts:

=============  ========================================================================================================
``minigrad``   "1", the layout that is described here
``tree``       JSON of all that was saved, where ``{"$tensor": name}`` is a tensor, ``{"$tuple": […]}`` a tuple,
               ``{"$dict": [[key, value], …]}`` a dict whose keys are not all texts, ``{"$float": "nan"}`` nan or ±inf,
               ``{"$state": [dict, versions]}`` a state dict of modules that have versions
``sha256``     of the tree and of each tensor, in the order of their names: its name, type, shape and bytes
=============  ========================================================================================================
"""

from __future__ import annotations

import os
from typing import IO, Any

from minigrad.core.errors import ArgumentError, FileFormatError
from minigrad.core.storage import check_device
from minigrad.io import archive, tensors, tree
from minigrad.io.whole import read_all, write_all

__all__ = ["load", "save"]


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write `obj` into the file `f`: all of it, or, where anything goes wrong, nothing.

    `obj` is a tensor, a state dict, or dicts, lists and tuples of tensors, numbers, texts, bools and None, as deep as
    you like. The numbers of a tensor are stored, not its graph, nor whether it needs a gradient.

    `f` is a path or a file opened for writing bytes. A path is replaced in one moment, once the new file is whole and
    on the disk; until then the old one stays. Raises DTypeError for what cannot be saved, ArgumentError for a dict that
    contains itself, MissingPackageError where the package safetensors is not installed, and what writing raises.

    >>> import io, minigrad as mg
    >>> file = io.BytesIO()
    >>> mg.save({"model": {"weight": mg.ones(2)}, "epoch": 3, "betas": (0.9, 0.999)}, file)
    >>> mg.load(io.BytesIO(file.getvalue()))
    {'model': {'weight': tensor([1., 1.])}, 'epoch': 3, 'betas': (0.9, 0.999)}
    """
    described, found = tree.taken_apart(obj)
    write_all(f, tensors.encoded(described, found))


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: str | None = None,
    *,
    weights_only: bool = True,
    widen: bool = False,
) -> Any:
    """What the file `f` holds, its tensors on the device `map_location`, the default one for None.

    `f` is a path, or a file opened for reading bytes, with what `save` wrote, with safetensors of another program's
    (a dict of tensors), or with what ``torch.save`` of PyTorch 1.6 or later wrote of state dicts: dicts, lists, tuples
    of tensors, parameters, numbers, texts. Which it is, is seen from its first bytes. Of a ``.pt``, which is a program,
    only those few things are understood and none is run.

    `weights_only` is PyTorch's permission to run nothing but what tensors need: here nothing is run, also without it.

    Numbers of types that are not here are refused; `widen` reads them as the type that holds them all: float16 and
    bfloat16 as float32, int8, int16 and uint16 as int32, uint32 as int64.

    Raises FileFormatError if the file is damaged or is something else: then nothing was loaded at all. Also DTypeError
    (types), DeviceError, MissingPackageError, and what opening a file raises, as FileNotFoundError.
    """
    if map_location is not None and not isinstance(map_location, str):
        raise ArgumentError(
            f"load: map_location is one device for all tensors, not {type(map_location).__name__}.\n"
            "  Write map_location='cpu', for example."
        )
    place = check_device(map_location, "load")
    data = read_all(f)
    if data.startswith(b"PK\x03\x04"):
        return archive.read(data, place, widen)
    if data.startswith(b"\x80\x02\x8a\n"):  # protocol 2, a number of 10 bytes: no safetensors has so long a header
        raise FileFormatError(
            "load: this is the format of PyTorch before version 1.6, bare pickles: programs, which are not run here.\n"
            "  Write it again in PyTorch: torch.save(torch.load(old, weights_only=True), new)."
        )
    described, found = tensors.decoded(data, place, widen)
    return tree.put_together(described, found)
