"""Files that are damaged, inconsistent or malicious, for each reader. `_file_checks` defines correct behaviour."""

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
from torture._file_checks import MARGIN, MAX_SECONDS, check_read, workspace

__all__ = ["CAMPAIGNS"]

SECONDS = 10.0  # wall-clock time; CPU time is limited separately


def result_size(result: Any) -> int:
    """Return the size of a result in bytes: of the elements of tensors and arrays, and of all other objects."""
    import numpy as np

    from minigrad import Tensor

    total, visited, stack = 0, set(), [result]
    while stack:
        x = stack.pop()
        if id(x) in visited:
            continue
        visited.add(id(x))
        if isinstance(x, Tensor):
            x = x.numpy()
        if isinstance(x, np.ndarray):
            total += x.nbytes
            continue
        total += sys.getsizeof(x)
        if isinstance(x, dict):
            stack += [*x.keys(), *x.values()]
        elif isinstance(x, list | tuple | set):
            stack += x
    return total


@cache
def _load_modules() -> None:
    """Read valid files once, so that no module is imported while a corrupt one is read."""
    import minigrad as mg
    from torture import _files_tensors

    path = workspace().reset() / "good.csv"
    path.write_text("a,b\n1,x\n", encoding="utf-8")
    result_size([_table(path, {}), mg.data.read_text(path)])
    for good in (*_files_tensors.good_safetensors(), _files_tensors.GOOD_PT):
        result_size(mg.load(io.BytesIO(good), map_location="numpy", widen=True))


def _load(data: bytes, widen: bool) -> str | None:
    import minigrad as mg

    _load_modules()
    path = workspace().reset() / "file"
    path.write_bytes(data)
    os.chdir(workspace().folder)
    return check_read(lambda: mg.load(path, map_location="numpy", widen=widen), len(data), result=result_size)


def safetensors(case_number: int) -> str | None:
    from torture import _files_tensors

    draw = random.Random(f"safetensors{case_number}")
    return _load(_files_tensors.safetensors(draw), draw.random() < 0.7)


def pickles(case_number: int) -> str | None:
    from torture import _files_tensors

    draw = random.Random(f"pt{case_number}")
    return _load(_files_tensors.pt(draw), draw.random() < 0.7)


def _decompressed_size(data: bytes) -> int:
    """Return the number of bytes that a header may declare, since the reader checks that they exist."""
    try:
        return max(len(data), len(zlib.decompressobj(31).decompress(data, 2**22)))
    except zlib.error:
        return len(data)


def idx(case_number: int) -> str | None:
    from minigrad.data import read_idx, read_images
    from torture import _files_data

    draw = random.Random(f"idx{case_number}")
    data, folder = _files_data.idx(draw), workspace().reset()
    if draw.random() < 0.8:
        (folder / "a").write_bytes(data)
        return check_read(lambda: read_idx(folder / "a"), _decompressed_size(data), result=result_size)
    labels = _files_data.idx(draw)
    for name, one in zip(("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), (data, labels), strict=True):
        (folder / draw.choice([name, f"{name}.gz"])).write_bytes(one)
    return check_read(
        lambda: read_images(folder, False, device="numpy").tensors,
        _decompressed_size(data + labels),
        result=result_size,
    )


def cifar(case_number: int) -> str | None:
    from minigrad.data.cifar import read_archive, read_batch
    from torture import _files_data

    draw = random.Random(f"cifar{case_number}")
    folder, records = workspace().reset(), draw.choice([1, 2])
    if draw.random() < 0.2:
        data = _files_data.batch(draw, records)
        (folder / "a.bin").write_bytes(data)
        return check_read(lambda: read_batch(folder / "a.bin", records), len(data), result=result_size)
    data = _files_data.archive(draw, records)
    (folder / "a.tar.gz").write_bytes(data)
    return check_read(
        lambda: read_archive(folder / "a.tar.gz", ["test_batch.bin"], records), len(data), result=result_size
    )


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


def csv(case_number: int) -> str | None:
    from minigrad.data import read_text
    from torture import _files_data

    _load_modules()
    draw = random.Random(f"csv{case_number}")
    data, options = _files_data.csv(draw), _files_data.read_options(draw)
    path = workspace().reset() / "a.csv"
    path.write_bytes(data)
    if draw.random() < 0.1:
        return check_read(lambda: read_text(path), len(data), result=result_size)
    return check_read(lambda: _table(path, options), len(data), result=result_size)


def lessons(case_number: int) -> str | None:
    """Copy lessons into a folder with `minigrad lab --copy`, which may add and update lessons but keep user files."""
    from minigrad.cli import lessons
    from minigrad.cli.errors import CommandError
    from torture import _files_data

    draw = random.Random(f"lessons{case_number}")
    import_module("minigrad.io.atomic")  # imported on first write
    folder = workspace().reset()
    user_files = _files_data.lessons(draw, folder)
    # Small lessons.
    original, lessons._lesson_files = lessons._lesson_files, lambda command: _files_data.LESSONS.items()
    try:
        with redirect_stdout(io.StringIO()):
            wrong = check_read(lambda: lessons.lab(Namespace(folder=folder, copy=True)), 10_000, (CommandError,))
    finally:
        lessons._lesson_files = original
    overwritten = [name for name, data in user_files.items() if (folder / name).read_bytes() != data]
    if wrong is None and overwritten:
        return f"it overwrote {overwritten[0]}"
    return wrong


def traces(case_number: int) -> str | None:
    """The player's reader of traces rejects a trace with a message, or plays it to the end."""
    from torture import _files_traces

    text = _files_traces.trace(random.Random(f"trace{case_number}"))
    report = _files_traces.read_trace(text)
    if report["wrong"] is None and report["seconds"] > MAX_SECONDS:
        return f"it took {report['seconds']:.1f} s of CPU time for {len(text):,} characters"
    if report["wrong"] is None and report["bytes"] > 4 * len(text) + 4 * MARGIN:
        return f"it allocated {report['bytes']:,} bytes for {len(text):,} characters"
    return report["wrong"]


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
