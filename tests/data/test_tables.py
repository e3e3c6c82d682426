"""CSV files: types of cells and columns, and invalid files."""

import math
import time

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError
from minigrad.data import read_csv

TEXT = 'age,height,name,smokes\n31,1.5,"Ada, ""Countess""",yes\n,2,"two\nlines",no\n40,NA,é,yes\n'


@pytest.fixture
def write(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "a.csv"
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return path

    return write


def test_columns_have_types_and_missing_cells_are_none(write):
    table = read_csv(write(TEXT))
    assert table.columns == ["age", "height", "name", "smokes"]
    assert table.types == {"age": int, "height": float, "name": str, "smokes": str}
    assert table["age"] == [31, None, 40]
    assert table["height"] == [1.5, 2.0, None]
    assert table["name"] == ['Ada, "Countess"', "two\nlines", "é"]
    assert table.missing() == {"age": 1, "height": 1}
    assert (len(table), repr(table)) == (3, "Table(3 rows; age: int, height: float, name: str, smokes: str)")


def test_numbers_become_tensors_and_missing_ones_nan(write):
    table = read_csv(write("a,b,c\n1,2.5,3\n4,,6\n"))
    both = table.tensor("a", "b")
    assert (both.shape, both.dtype) == ((2, 2), mg.float32)
    assert both.isnan().tolist() == [[False, False], [False, True]]
    assert (table.tensor("a", "c").dtype, table.tensor("c").tolist()) == (mg.int64, [3, 6])
    assert table.tensor("c", dtype=mg.float32, device="numpy").device == "numpy"
    assert table.tensor().shape == (2, 3)


def test_strings_become_classes(write):
    classes, kinds = read_csv(write(TEXT)).classes("smokes")
    assert (classes.tolist(), classes.dtype, kinds) == ([1, 0, 1], mg.int64, ["no", "yes"])


@pytest.mark.parametrize(
    ("text", "options", "columns"),
    [
        ("1,2\n3,4\n", {"header": False}, {"0": [1, 3], "1": [2, 4]}),
        ("1;2\n3;4\n", {"header": ["x", "y"], "delimiter": ";"}, {"x": [1, 3], "y": [2, 4]}),
        ("a,b\n", {}, {"a": [], "b": []}),
        ("", {}, {}),
        ("a\n-9\n7\n", {"missing": ["-9"]}, {"a": [None, 7]}),
        ("\ufeffa\n1\n\n2\n", {}, {"a": [1, 2]}),
        ("a\n007\n1e3\n", {}, {"a": [7.0, 1000.0]}),
        ("a\n1_000\n2\n", {}, {"a": ["1_000", "2"]}),
        ("a\n99999999999999999999\n", {}, {"a": [1e20]}),
        ("a\n-inf\n 2 \n", {}, {"a": [float("-inf"), 2.0]}),
        ("a\n 2\n x\n", {}, {"a": [" 2", " x"]}),
    ],
)
def test_tables_round_trip(write, text, options, columns):
    table = read_csv(write(text), **options)
    assert {name: table[name] for name in table.columns} == columns


def test_other_encodings_are_read(write):
    path = write("a\né\n", "latin-1")
    with pytest.raises(FileFormatError, match=r"cannot decode as utf-8: byte 2 is 0xe9\.\n  Pass another encoding"):
        read_csv(path)
    assert read_csv(path, encoding="latin-1")["a"] == ["é"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", r"a\.csv, line 3: expected 2 cells, but got 1"),
        ("a,a\n1,2\n", "duplicate column name 'a'"),
        ('a\n"never closed\n', r"a\.csv, line 2: unexpected end of data"),
        ("a\n" + "x" * 200_000 + "\n", r"line 2: field larger than field limit"),
        (b"a\n\0\n", "line 2: contains a NUL byte"),
    ],
)
def test_invalid_tables_raise(write, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_csv(write(text))


def test_non_numeric_columns_raise(write):
    table = read_csv(write(TEXT))
    with pytest.raises(DTypeError, match=r"column 'name' contains strings, such as 'Ada.*\n.*table.classes\('name'\)"):
        table.tensor()
    with pytest.raises(DTypeError, match="some cells are missing, and dtype int64 cannot represent nan"):
        table.tensor("age", dtype=mg.int64)
    with pytest.raises(DTypeError, match="column 'age' has a missing cell in row 1"):
        table.classes("age")
    with pytest.raises(ArgumentError, match="no column named 'x'; the columns are 'age', 'height', 'name', 'smokes'"):
        table["x"]


def test_a_missing_byte_order_mark_raises(write):
    with pytest.raises(FileFormatError, match=r'no byte order mark at the start of the file\.\n.*"utf-16-le"'):
        read_csv(write(b"a\0\n\0"), encoding="utf-16")


def test_integers_beyond_64_bits_are_floats(write):
    table = read_csv(write("a,b\n" + "0" * 5000 + "7," + "9" * 5000 + "\n1,1\n"))
    assert (table["a"], table["b"]) == ([7.0, 1.0], [math.inf, 1.0])


def test_an_almost_numeric_cell_parses_in_linear_time(write):
    path = write("a\n" + "1" * 100_000 + "x\n")  # takes minutes if the regular expression backtracks
    start = time.process_time()
    assert read_csv(path).types == {"a": str}
    assert time.process_time() - start < 1
