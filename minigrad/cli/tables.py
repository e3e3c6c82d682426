"""``minigrad ops``, ``data`` and ``torch``: tables of operations, data sets and PyTorch's names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from minigrad.cli.errors import CommandError
from minigrad.core.errors import printable

__all__ = ["data", "ops", "torch"]


def ops(options: argparse.Namespace) -> int:
    """Print a line per operation: its name, formula, differentiable operands, and devices."""
    from importlib.util import find_spec

    from minigrad.backends.formula import expression
    from minigrad.core.dispatch import get_kernels
    from minigrad.core.op import OPS

    devices = ["python"]
    if find_spec("numpy"):
        from minigrad import functional  # noqa: F401 -- registers the kernels of arrays
        from minigrad.core.storage import DEVICES

        devices += DEVICES
    selected = [op for name, op in OPS.items() if not options.names or any(part in name for part in options.names)]
    if not selected:
        raise CommandError(f"minigrad ops: no operation has {' or '.join(map(repr, options.names))} in its name")
    rows = [["operation", "computes", "gradient of", *devices]]
    for op in sorted(selected, key=lambda op: op.name):
        free = [x for x, rule in zip(op.inputs, op.vjp, strict=True) if rule is not None]
        marks = ["yes" if device in get_kernels(op.name) else "-" for device in devices]
        formula = expression(op, op.inputs).formula() if not op.variadic else op.formula
        rows.append([op.name, _shorten(formula), ", ".join(free) or "-", *marks])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(x.ljust(width) for x, width in zip(row, widths, strict=True)).rstrip())
    counts = ", ".join(f"{sum(device in get_kernels(op.name) for op in selected)} on {device}" for device in devices)
    print(f"{len(selected)} operations: {counts}.")
    return 0


def _shorten(text: str, max_length: int = 32) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def data(options: argparse.Namespace) -> int:
    """Print the shipped data sets, then those read from the user's files and whether each of these files exists."""
    from importlib.resources import files

    from minigrad.data import catalogue

    print("Shipped with minigrad, in mg.data:")
    for one in catalogue.SHIPPED:
        size = sum(len(files("minigrad.data").joinpath(name).read_bytes()) for name in one.files)
        size_label = f"{-(-size // 1000)} kB" if size else ""
        print(f"  {one.call:<19} {one.description:<31} {size_label:>6}  {one.source}".rstrip())
    print(f"\nRead from your files, below {_short_path(catalogue.data_folder())}")
    print("Nothing is downloaded. The environment variable MINIGRAD_DATA sets another folder.")
    for data in catalogue.OFFICIAL:
        existing = catalogue.find_files(data)
        folder = existing[0].parent if existing else catalogue.candidate_folders(data)[0]
        print(f"\n  {data.call:<19} {data.name}: {data.description}")
        print(f"    by      {data.authors}; {data.licence}")
        print(f"    from    {data.homepage}")
        print(f"    {'in  ' if existing else 'into'}    {_short_path(folder)}")
        for name, md5 in data.files.items():
            print(f"            {name:<27} MD5 {md5}  {_file_state(existing, name, md5)}".rstrip())
        if existing and not {path.name for path in existing} & set(data.files):
            print(f"            {len(existing)} of its {len(data.extracted_files)} files are here, unpacked")
    return 0


def _short_path(path: Path) -> str:
    """Return a path in which ``~`` replaces the home folder."""
    home = os.path.expanduser("~")
    return printable(f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path))


def _file_state(existing: Sequence[Path], name: str, md5: str) -> str:
    """Return "here" if the file exists, "MD5 differs" if its digest is wrong, or "" if it is missing."""
    from minigrad.data.catalogue import file_md5

    path = next((path for path in existing if path.name == name), None)
    if path is not None:
        return "here" if file_md5(path) == md5 else "MD5 differs"
    return ""


def torch(options: argparse.Namespace) -> int:
    """Print how many names of each family of PyTorch are implemented, or a line for each given name."""
    from importlib.util import find_spec

    if not find_spec("numpy"):
        raise CommandError("minigrad torch: the names of tensors require NumPy; install it with: pip install numpy")
    from minigrad.pytorch import look_up, markdown, rows, summary, version

    if options.markdown:
        print(markdown(), end="")
        return 0
    names = {name.removeprefix("torch.").removeprefix("mg.") for name in options.names}
    if not names:
        print(f"{'PyTorch ' + version():<26}{'yes':>6}{'differs':>9}{'no':>10}")
        for family, yes, differs, no in summary(rows()):
            print(f"{family:<26}{yes:>6}{differs:>9}{no:>10}")
        print("Details: minigrad torch NAME …, for names or families; all of them: minigrad torch --markdown")
        return 0
    rows_of_names = look_up(names)
    if not rows_of_names:
        raise CommandError(f"minigrad torch: PyTorch {version()} has no {' or '.join(sorted(options.names))}")
    width = max(len(f"{row.family}.{row.name}") for row in rows_of_names)
    for row in rows_of_names:
        print(f"{f'{row.family}.{row.name}':<{width}}  {row.state:<7}  {row.note}".rstrip())
    return 0
