"""Files that are damaged, inconsistent or malicious, for each reader. `_files_judged` defines correct behaviour."""

from __future__ import annotations

import io
import os
import random
import sys
import zlib
from argparse import Namespace
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from torture import Campaign
from torture._files_judged import LONGEST, MARGIN, judged, place

__all__ = ["CAMPAIGNS"]

SECONDS = 10.0  # wall-clock time; CPU time is limited separately


def _size(found: Any) -> int:
    """Return the size of a result in bytes: of the elements of tensors and arrays, and of all other objects."""
    import numpy as np

    from minigrad import Tensor

    total, seen, open_ = 0, set(), [found]
    while open_:
        x = open_.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            x = x.numpy()
        if isinstance(x, np.ndarray):
            total += x.nbytes
            continue
        total += sys.getsizeof(x)
        if isinstance(x, dict):
            open_ += [*x.keys(), *x.values()]
        elif isinstance(x, list | tuple | set):
            open_ += x
    return total


@cache
def _warm() -> None:
    """Read valid files once, so that no module is imported while a corrupt one is read."""
    import minigrad as mg
    from torture import _files_tensors

    place()
    for good in (*_files_tensors.good_safetensors(), _files_tensors.GOOD_PT):
        _size(mg.load(io.BytesIO(good), map_location="numpy", widen=True))


def _load(data: bytes, widen: bool) -> str | None:
    import minigrad as mg

    _warm()
    path = place().emptied() / "file"
    path.write_bytes(data)
    os.chdir(place().folder)
    return judged(lambda: mg.load(path, map_location="numpy", widen=widen), len(data), result=_size)


def safetensors(number: int) -> str | None:
    from torture import _files_tensors

    draw = random.Random(f"safetensors{number}")
    return _load(_files_tensors.safetensors(draw), draw.random() < 0.7)


def pickles(number: int) -> str | None:
    from torture import _files_tensors

    draw = random.Random(f"pt{number}")
    return _load(_files_tensors.pt(draw), draw.random() < 0.7)


def _unpacked(data: bytes) -> int:
    """Return the number of bytes that a header may declare, since the reader checks that they exist."""
    try:
        return max(len(data), len(zlib.decompressobj(31).decompress(data, 2**22)))
    except zlib.error:
        return len(data)


def idx(number: int) -> str | None:
    from minigrad.data import read_idx, read_images
    from torture import _files_data

    draw = random.Random(f"idx{number}")
    data, folder = _files_data.idx(draw), place().emptied()
    if draw.random() < 0.8:
        (folder / "a").write_bytes(data)
        return judged(lambda: read_idx(folder / "a"), _unpacked(data), result=_size)
    labels = _files_data.idx(draw)
    for name, one in zip(("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), (data, labels), strict=True):
        (folder / draw.choice([name, f"{name}.gz"])).write_bytes(one)
    return judged(lambda: read_images(folder, False, device="numpy").tensors, _unpacked(data + labels), result=_size)


def cifar(number: int) -> str | None:
    from minigrad.data.cifar import read_archive, read_batch
    from torture import _files_data

    draw = random.Random(f"cifar{number}")
    folder, records = place().emptied(), draw.choice([1, 2])
    if draw.random() < 0.2:
        data = _files_data.batch(draw, records)
        (folder / "a.bin").write_bytes(data)
        return judged(lambda: read_batch(folder / "a.bin", records), len(data), result=_size)
    data = _files_data.archive(draw, records)
    (folder / "a.tar.gz").write_bytes(data)
    return judged(lambda: read_archive(folder / "a.tar.gz", ["test_batch.bin"], records), len(data), result=_size)


def _table(path: Path, options: dict[str, Any]) -> Any:
    """Read a table and use it as a user would."""
    from minigrad.core.errors import DTypeError
    from minigrad.data import read_csv

    table = read_csv(path, **options)
    repr(table)
    table.missing()
    for name in table.columns[:40]:
        with suppress(DTypeError):  # a column of strings
            table.tensor(name, device="numpy")
        with suppress(DTypeError):  # a column with missing values
            table.classes(name, device="numpy")
    return [table[name] for name in table.columns]


def csv(number: int) -> str | None:
    from minigrad.data import read_text
    from torture import _files_data

    draw = random.Random(f"csv{number}")
    data, options = _files_data.csv(draw), _files_data.table(draw)
    path = place().emptied() / "a.csv"
    path.write_bytes(data)
    if draw.random() < 0.1:
        return judged(lambda: read_text(path), len(data), result=_size)
    return judged(lambda: _table(path, options), len(data), result=_size)


def lessons(number: int) -> str | None:
    """Copy lessons into a folder with `minigrad lab --copy`, which may add and update lessons but keep user files."""
    from minigrad.cli import lessons
    from minigrad.cli.stop import Stop
    from torture import _files_data

    draw = random.Random(f"lessons{number}")
    import_module("minigrad.io.whole")  # imported on first write
    folder = place().emptied()
    mine = _files_data.lessons(draw, folder)
    given, lessons._lessons = lessons._lessons, lambda command: _files_data.LESSONS.items()  # small lessons
    try:
        with redirect_stdout(io.StringIO()):
            wrong = judged(lambda: lessons.lab(Namespace(folder=folder, copy=True)), 10_000, (Stop,))
    finally:
        lessons._lessons = given
    lost = [name for name, data in mine.items() if (folder / name).read_bytes() != data]
    if wrong is None and lost:
        return f"it overwrote {lost[0]}"
    return wrong


def traces(number: int) -> str | None:
    """The player's reader of traces rejects a trace with a message, or plays it to the end."""
    from torture import _files_traces

    text = _files_traces.trace(random.Random(f"trace{number}"))
    found = _files_traces.said(text)
    if found["wrong"] is None and found["seconds"] > LONGEST:
        return f"it took {found['seconds']:.1f} s of CPU time for {len(text):,} characters"
    if found["wrong"] is None and found["bytes"] > 4 * len(text) + 4 * MARGIN:
        return f"it allocated {found['bytes']:,} bytes for {len(text):,} characters"
    return found["wrong"]


CAMPAIGNS = [
    Campaign(
        "safetensors", "safetensors files, damaged and inconsistent", safetensors, many=10_000, few=40, seconds=SECONDS
    ),
    Campaign("pt", "zip files of pickles, damaged and hostile", pickles, many=10_000, few=40, seconds=SECONDS),
    Campaign("idx", "damaged and inconsistent IDX files, compressed or not", idx, many=10_000, few=40, seconds=SECONDS),
    Campaign(
        "cifar", "batches and archives of CIFAR-10, damaged and hostile", cifar, many=10_000, few=40, seconds=SECONDS
    ),
    Campaign("csv", "damaged and unusual CSV tables and text files", csv, many=10_000, few=40, seconds=SECONDS),
    Campaign(
        "trace",
        "traces for the player, damaged and hostile",
        traces,
        many=10_000,
        few=40,
        seconds=SECONDS,
        needs=("node",),
    ),
    Campaign("lessons", "folders of lessons, damaged and hostile", lessons, many=10_000, few=40, seconds=SECONDS),
]
