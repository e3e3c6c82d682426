"""Summaries of arrays: every shape, non-finite elements, and text that does not depend on the last digits."""

import math

import numpy as np
import pytest

from minigrad_viz.trace.arrays import BINS, MAX_CELLS, format_summary, grid, summary


@pytest.mark.parametrize(
    ("shape", "rows", "cols"),
    [((), 1, 1), ((5,), 1, 5), ((3, 4), 3, 4), ((2, 3, 4), 6, 4), ((0,), 1, 0), ((3, 0), 3, 0), ((0, 3), 0, 3)],
)
def test_leading_dimensions_are_stacked(shape, rows, cols):
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    short = summary(array)
    assert (short["shape"], short["rows"], short["cols"]) == (list(shape), rows, cols)
    assert short["cells"] == array.reshape(-1).tolist()
    assert "step" not in short


@pytest.mark.parametrize("shape", [(MAX_CELLS + 1,), (101, 100), (784, 128), (3, 5000), (20_000, 2)])
def test_large_array_is_subsampled_but_fully_counted(shape):
    array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    short = summary(array)
    flat = array.reshape(-1, shape[-1]) if len(shape) > 1 else array.reshape(1, -1)
    r, c = short["step"]
    assert MAX_CELLS / 4 < len(short["cells"]) <= MAX_CELLS
    assert short["cells"] == flat[::r, ::c].reshape(-1).tolist()
    assert len(short["cells"]) == short["rows"] * short["cols"]
    assert sum(short["hist"]) == short["size"] == array.size
    assert (short["min"], short["max"]) == (0.0, array.size - 1.0)
    assert short["mean"] == pytest.approx(array.mean())
    assert short["std"] == pytest.approx(array.std())


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (12, 4, 3), (7, 9, 2), (6, 2, 5, 3), (64, 1, 28, 28)])
def test_matrices_are_tiled_in_reading_order(shape):
    array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    short = summary(array, max_cells=10**6)
    rows, cols, across = grid(shape)
    assert (short["rows"], short["cols"]) == (rows, cols)
    matrices = array.reshape(-1, *shape[-2:])
    lines = [np.hstack(matrices[k : k + across]) for k in range(0, len(matrices), across)]
    assert short["cells"] == np.vstack(lines).reshape(-1).tolist()


def test_nan_and_inf_are_excluded_from_the_statistics():
    short = summary(np.array([np.nan, np.inf, -np.inf, 1.0, 3.0]))
    assert (short["nan"], short["inf"], short["min"], short["max"], short["mean"]) == (1, 2, 1.0, 3.0, 2.0)
    assert short["hist"] == [1, *[0] * (BINS - 2), 1]
    assert format_summary(short) == "(5,) float64 1.0 … 3.0, mean 2.0, std 1.0 █▁▁▁▁▁▁▁▁▁▁█ NaN! 1 Inf! 2"


def test_array_without_finite_elements_has_no_statistics():
    short = summary(np.array([np.nan, np.inf]))
    assert [short[key] for key in ("min", "max", "mean", "std")] == [None] * 4
    assert format_summary(short) == "(2,) float64 NaN! 1 Inf! 1"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_every_dtype(dtype):
    short = summary(np.array([0, 1, 1, 0], dtype))
    assert (short["dtype"], short["min"], short["max"], short["mean"]) == (dtype, 0.0, 1.0, 0.5)
    assert short["cells"] == [0.0, 1.0, 1.0, 0.0]
    assert {type(cell) for cell in short["cells"]} == {float}


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_values_of_any_magnitude_have_statistics(scale):
    short = summary(np.array([scale, -scale]))
    assert (short["mean"], short["std"], sum(short["hist"])) == (0.0, scale, 2)


@pytest.mark.parametrize("noise", [0.0, 1e-8, -1e-8])
def test_line_does_not_depend_on_the_last_digits(noise):
    rough = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (8, 12)) * noise
    grid = np.linspace(-3.0, 3.0, 96).reshape(8, 12)
    ties = np.array([[2.125, -2.125, 0.0, 1.125]])
    assert format_summary(summary(grid + rough)) == "(8, 12) float64 -3.0 … 3.0, mean 0.0, std 1.75 ████████████"
    wobble = rough[:1, :4]
    assert format_summary(summary(ties + wobble)) == "(1, 4) float64 -2.13 … 2.13, mean 0.281, std 1.58 █▁▁▁▁▁█▁▁█▁█"
    assert format_summary(summary(np.full((8, 12), 1 / 3) + rough)) == "(8, 12) float64 all 0.333"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(2.5), "() float32 2.5"),
        (np.zeros((0, 3)), "(0, 3) float64 empty"),
        (np.zeros(3), "(3,) float64 all 0.0"),
        (np.array([1000, 123456], np.int64), "(2,) int64 1000 … 123456, mean 62200.0, std 61200.0 █▁▁▁▁▁▁▁▁▁▁█"),
        (np.array([-0.0]), "(1,) float64 0.0"),
        (np.float64("nan"), "() float64 NaN! 1"),
    ],
)
def test_line(array, text):
    assert format_summary(summary(array)) == text
