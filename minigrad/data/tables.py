"""Read CSV files into tables of typed columns, which can be converted to tensors by name."""

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
_INT_PATTERN = re.compile(r"[+-]?\d{1,100}")  # longer ints exceed 64 bits, and Python refuses to parse 4,300 digits
_FLOAT_PATTERN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


class Table:
    """Named columns of equal length, of type int, float or str, with None for missing cells.

    ``table["age"]`` returns a column as a list, and ``len(table)`` returns the number of rows.
    """

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        """The column names, in order."""
        return list(self._columns)

    @property
    def types(self) -> dict[str, type]:
        """The type of each column: int, float or str."""
        return {name: _column_type(column) for name, column in self._columns.items()}

    def missing(self) -> dict[str, int]:
        """Return the number of missing cells of each column that has any."""
        counts = {name: column.count(None) for name, column in self._columns.items()}
        return {name: count for name, count in counts.items() if count}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._columns:
            raise ArgumentError(
                f"Table: no column named {name!r}; the columns are {', '.join(map(repr, self.columns))}."
            )
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {kind.__name__}" for name, kind in self.types.items())
        return printable(f"Table({len(self)} rows; {kinds})")

    def tensor(self, *names: str, dtype: DType | None = None, device: str | None = None) -> Tensor:
        """Convert numeric columns (default: all) to a tensor of shape (rows, columns), or (rows,) for a single name.

        The dtype defaults to int64 if all cells are ints, else to float32, with nan for missing cells. Raises
        DTypeError for columns of strings, and for missing cells if `dtype` is not floating point.
        """
        columns = [self[name] for name in names or self.columns]
        for name, column in zip(names or self.columns, columns, strict=True):
            if _column_type(column) is str:
                row = next(k for k, cell in enumerate(column) if isinstance(cell, str))
                raise DTypeError(
                    f"Table: column {name!r} contains strings, such as {column[row]!r} in row {row}.\n"
                    f"  Select numeric columns, or write table.classes({name!r})."
                )
        has_missing = any(None in column for column in columns)
        is_int = not has_missing and all(_column_type(column) is int for column in columns)
        result_dtype = dtype if dtype is not None else int64 if is_int else float32
        if has_missing and not result_dtype.is_floating_point:
            raise DTypeError(
                f"Table: some cells are missing, and dtype {result_dtype.name} cannot represent nan; see missing()."
            )
        cells = [[float("nan") if cell is None else cell for cell in column] for column in columns]
        rows = cells[0] if len(names) == 1 else [list(row) for row in zip(*cells, strict=True)]
        return tensor(rows, dtype=result_dtype, device=device)

    def classes(self, name: str, device: str | None = None) -> tuple[Tensor, list[Any]]:
        """Encode a column as class indices: return an int64 tensor, (rows,), and the sorted list of classes.

        Raises DTypeError for missing cells.

        >>> Table({"kind": ["b", "a", "b"]}).classes("kind")
        (tensor([1, 0, 1]), ['a', 'b'])
        """
        column = self[name]
        if None in column:
            raise DTypeError(f"Table: column {name!r} has a missing cell in row {column.index(None)}.")
        class_list = sorted(set(column))
        class_index = {kind: k for k, kind in enumerate(class_list)}
        return tensor([class_index[cell] for cell in column], dtype=int64, device=device), class_list


def read_csv(
    path: str | PathLike[str],
    *,
    header: bool | Sequence[str] = True,
    delimiter: str = ",",
    missing: Sequence[str] = MISSING,
    encoding: str = "utf-8-sig",
) -> Table:
    """Read a CSV file into a `Table`. Quoted cells may contain delimiters and line breaks.

    `header` specifies whether the first row contains the column names, or provides the names for a file without them.
    By default, unnamed columns are "0", "1", …. Cells in `missing` become None. A column has type int or float if all
    its other cells do, else str. Raises FileFormatError for rows of unequal length, duplicate column names, and files
    that cannot be decoded.

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
        lines = _read_rows(file, fspath(path), delimiter)
        names = next(lines, (1, []))[1] if header is True else None if header is False else list(header)
        rows = [row for _, row in _check_row_lengths(lines, names, fspath(path))]
    if names is None:
        names = [str(k) for k in range(len(rows[0]) if rows else 0)]
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise FileFormatError(f"{path}: duplicate column name {duplicate!r}.\n  Pass the names: header=[…].")
    missing_values = set(missing)
    cells = zip(*rows, strict=True) if rows else [() for _ in names]
    return Table({name: _convert_column(column, missing_values) for name, column in zip(names, cells, strict=True)})


def _read_rows(file: Any, path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, row) for each row, skipping empty lines; a row may span several lines."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any("\0" in cell for cell in row):
                raise FileFormatError(f"{path}, line {reader.line_num}: contains a NUL byte, so it is not a text file.")
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {reader.line_num}: {error}.") from None
    except UnicodeError as error:
        if not isinstance(error, UnicodeDecodeError) or (error.start == 0 and error.encoding in _BOM_ENCODINGS):
            raise FileFormatError(
                f"{path}: no byte order mark at the start of the file.\n"
                '  Pass the byte order, such as encoding="utf-16-le".'
            ) from None
        raise FileFormatError(
            f"{path}: cannot decode as {error.encoding}: byte {error.start} is {error.object[error.start]:#04x}.\n"
            '  Pass another encoding, such as encoding="latin-1".'
        ) from None


_BOM_ENCODINGS = ("utf-16", "utf-32")  # for these, Python 3.13 reports a missing mark like any decoding error


def _check_row_lengths(
    lines: Iterator[tuple[int, list[str]]], names: list[str] | None, path: str
) -> Iterator[tuple[int, list[str]]]:
    width = None if names is None else len(names)
    for line, row in lines:
        if width is not None and len(row) != width:
            raise FileFormatError(f"{path}, line {line}: expected {width} cells, but got {len(row)}.")
        width = len(row)
        yield line, row


def _convert_column(column: Sequence[str], missing: set[str]) -> list[Any]:
    cells = [None if (text := cell.strip()) in missing else text for cell in column]
    values = [cell for cell in cells if cell is not None]
    cell_type: type = str
    if values and all(map(_FLOAT_PATTERN.fullmatch, values)):
        is_int = all(map(_INT_PATTERN.fullmatch, values)) and all(-(2**63) <= int(cell) < 2**63 for cell in values)
        cell_type = int if is_int else float
    if cell_type is str:
        return [None if cell is None else whole for cell, whole in zip(cells, column, strict=True)]
    return [None if cell is None else cell_type(cell) for cell in cells]


def _column_type(column: Sequence[Any]) -> type:
    """Return the type of the cells of a column, or float if all are missing."""
    return next((type(cell) for cell in column if cell is not None), float)
