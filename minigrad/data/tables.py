"""CSV files as columns: read by Python's csv module, typed by what is in them, and made tensors by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any

from minigrad.core.dtypes import DType, float32, int64
from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError, printable
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import tensor

__all__ = ["MISSING", "Table", "read_csv"]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "None", "?")
_INT = re.compile(r"[+-]?\d{1,100}")  # longer ones are beyond 64 bits, and Python reads none of 4,300 digits
_FLOAT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


class Table:
    """Columns of equal length by name: ints, floats or texts, None where a cell was missing.

    ``table["age"]`` is a column as a list, ``len(table)`` the number of rows.
    """

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns, from the left."""
        return list(self._columns)

    @property
    def types(self) -> dict[str, type]:
        """What each column holds: int, float or str."""
        return {name: _type(column) for name, column in self._columns.items()}

    def missing(self) -> dict[str, int]:
        """How many cells are missing, of the columns where some are."""
        counts = {name: column.count(None) for name, column in self._columns.items()}
        return {name: count for name, count in counts.items() if count}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._columns:
            raise ArgumentError(f"Table: there is no column {name!r}; there are {', '.join(map(repr, self.columns))}.")
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {kind.__name__}" for name, kind in self.types.items())
        return printable(f"Table({len(self)} rows; {kinds})")

    def tensor(self, *names: str, dtype: DType | None = None, device: str | None = None) -> Tensor:
        """Columns of numbers as a tensor, (rows, columns); of one name (rows,); without names all columns.

        Of whole numbers alone int64, else float32, where a missing cell is nan. Raises DTypeError for texts, and for a
        missing cell where `dtype` has no nan.
        """
        chosen = [self[name] for name in names or self.columns]
        for name, column in zip(names or self.columns, chosen, strict=True):
            if _type(column) is str:
                row = next(k for k, cell in enumerate(column) if isinstance(cell, str))
                raise DTypeError(
                    f"Table: column {name!r} holds texts, {column[row]!r} in row {row} for one.\n"
                    f"  Name the columns of numbers, or write table.classes({name!r})."
                )
        holes = any(None in column for column in chosen)
        whole = not holes and all(_type(column) is int for column in chosen)
        kind = dtype if dtype is not None else int64 if whole else float32
        if holes and not kind.is_floating_point:
            raise DTypeError(f"Table: cells are missing, and {kind.name} has no nan for them; see missing().")
        cells = [[float("nan") if cell is None else cell for cell in column] for column in chosen]
        rows = cells[0] if len(names) == 1 else [list(row) for row in zip(*cells, strict=True)]
        return tensor(rows, dtype=kind, device=device)

    def classes(self, name: str, device: str | None = None) -> tuple[Tensor, list[Any]]:
        """A column as classes: their numbers, (rows,) of int64, and what each stands for, in sorted order.

        Raises DTypeError where a cell is missing.

        >>> Table({"kind": ["b", "a", "b"]}).classes("kind")
        (tensor([1, 0, 1]), ['a', 'b'])
        """
        column = self[name]
        if None in column:
            raise DTypeError(f"Table: column {name!r} lacks a class in row {column.index(None)}.")
        kinds = sorted(set(column))
        place = {kind: k for k, kind in enumerate(kinds)}
        return tensor([place[cell] for cell in column], dtype=int64, device=device), kinds


def read_csv(
    path: str | PathLike[str],
    *,
    header: bool | Sequence[str] = True,
    delimiter: str = ",",
    missing: Sequence[str] = MISSING,
    encoding: str = "utf-8-sig",
) -> Table:
    """A CSV file as a `Table`: cells may be quoted, with delimiters and line breaks inside them.

    `header` says whether the first row has the names of the columns, or gives the names: then all rows are data;
    without either they are "0", "1", …. Cells of the texts in `missing` are None. A column is of ints or floats if all
    its other cells are, else of texts. Raises FileFormatError where a row has another number of cells, for two columns
    of one name, and for a file that is not text.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text('height,name\\n1.5,"Ada, Countess"\\n2,Bob\\n')
    ...     table = read_csv(path)
    >>> table, table["name"], table.tensor("height")
    (Table(2 rows; height: float, name: str), ['Ada, Countess', 'Bob'], tensor([1.5000, 2.0000]))
    """
    with open(path, encoding=encoding, newline="") as file:
        lines = _lines(file, fspath(path), delimiter)
        names = next(lines, (1, []))[1] if header is True else None if header is False else list(header)
        rows = [row for _, row in _even(lines, names, fspath(path))]
    if names is None:
        names = [str(k) for k in range(len(rows[0]) if rows else 0)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileFormatError(f"{path}: two columns are named {twice!r}.\n  Give names: header=[…].")
    absent = set(missing)
    cells = zip(*rows, strict=True) if rows else [() for _ in names]
    return Table({name: _typed(column, absent) for name, column in zip(names, cells, strict=True)})


def _lines(file: Any, path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows, with the line on which each ends; empty lines are none."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any("\0" in cell for cell in row):
                raise FileFormatError(f"{path}, line {reader.line_num}: it has a byte 0, which no text has.")
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {reader.line_num}: {error}.") from None
    except UnicodeError as error:
        if not isinstance(error, UnicodeDecodeError) or (error.start == 0 and error.encoding in _MARKED):
            raise FileFormatError(
                f"{path}: it does not begin with the mark by which such text says the order of its bytes.\n"
                '  Say encoding=, such as encoding="utf-16-le".'
            ) from None
        raise FileFormatError(
            f"{path}: it is not text in {error.encoding}: byte {error.start} is {error.object[error.start]:#04x}.\n"
            '  Say encoding=, such as encoding="latin-1".'
        ) from None


_MARKED = ("utf-16", "utf-32")  # of which Python 3.13 tells by the same error as other ones


def _even(
    lines: Iterator[tuple[int, list[str]]], names: list[str] | None, path: str
) -> Iterator[tuple[int, list[str]]]:
    width = None if names is None else len(names)
    for line, row in lines:
        if width is not None and len(row) != width:
            raise FileFormatError(f"{path}, line {line}: it has {len(row)} cells, where there are {width} columns.")
        width = len(row)
        yield line, row


def _typed(column: Sequence[str], absent: set[str]) -> list[Any]:
    cells = [None if (text := cell.strip()) in absent else text for cell in column]
    present = [cell for cell in cells if cell is not None]
    kind: type = str
    if present and all(map(_FLOAT.fullmatch, present)):
        whole = all(map(_INT.fullmatch, present)) and all(-(2**63) <= int(cell) < 2**63 for cell in present)
        kind = int if whole else float
    if kind is str:
        return [None if cell is None else whole for cell, whole in zip(cells, column, strict=True)]
    return [None if cell is None else kind(cell) for cell in cells]


def _type(column: Sequence[Any]) -> type:
    """What a column holds; one of missing cells alone holds floats, all nan."""
    return next((type(cell) for cell in column if cell is not None), float)
