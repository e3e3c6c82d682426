"""Sorting on ``cpu`` agrees index by index with NumPy's stable sort."""

import hashlib

import numpy as np
import pytest

from cases import merge_cases
from minigrad.core.dispatch import dispatch
from minigrad.core.dtypes import DTYPES
from needs import needs
from taichi_device import DEVICE, to_device

needs("taichi")


TYPES = list(DTYPES)
SIZES = [1, 2, 7, 8, 9, 17, 511, 512, 513, 4097, 32_768, 32_769, 70_001, 140_000]  # around each threshold


def full_range_values(*shape, dtype, seed=0):
    """Return values from the full range of a dtype."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.normal(size=shape) * 10.0 ** rng.integers(-20, 20, shape)).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def values_with_ties(*shape, dtype):
    """Return values with many ties, including the special floats."""
    x = np.random.default_rng(1).integers(0, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[x == 0] = -0.0
        for k, special in enumerate((0.0, np.nan, -np.nan, np.inf, -np.inf)):
            x.reshape(-1)[k::11] = special
    return x


def check(op, x, **attrs):
    found, right = dispatch(op, DEVICE, (to_device(x),), attrs), dispatch(op, "numpy", (x,), attrs)
    for ours, theirs in zip(found, right, strict=True):
        ours = ours.host
        assert (ours.dtype, ours.shape, ours.flags.c_contiguous) == (theirs.dtype, theirs.shape, True)
        assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes()


@merge_cases
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_one_line_is_sorted_stably_with_nan_last(dtype, size):
    for x in (full_range_values(size, dtype=dtype), values_with_ties(size, dtype=dtype)):
        check("sort", x, dim=0, descending=False)
        check("sort", x, dim=0, descending=True)


@merge_cases
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "shape", [(3, 50), (50, 3), (3, 17, 5), (600, 7), (7, 600), (2, 33_000), (0, 3), (3, 0)], ids=str
)
def test_lines_along_each_dimension(dtype, shape):
    for x in (full_range_values(*shape, dtype=dtype), values_with_ties(*shape, dtype=dtype)):
        for dim in range(len(shape)):
            check("sort", x, dim=dim, descending=bool(dim))
            check("topk", x, k=(shape[dim] + 1) // 2, dim=dim, largest=not dim)


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_and_constant_lines(descending):
    for x in (np.arange(50_000.0), np.arange(50_000.0)[::-1].copy(), np.full(50_000, 3.0)):
        check("sort", x, dim=0, descending=descending)
        check("sort", x.astype("float32"), dim=0, descending=descending)


def test_subnormals_sort_correctly():
    bits = np.array([1, 0, 3, 2, -(2**31) + 1, -(2**31), -(2**31) + 2], np.int32)
    _, at = dispatch("sort", DEVICE, (to_device(bits.view(np.float32)),), {"dim": 0, "descending": False})
    assert at.tolist() == [6, 4, 1, 5, 0, 3, 2]


def test_column_major_array():
    x = full_range_values(40, 30, dtype="float32")
    values, at = dispatch("sort", DEVICE, (to_device(x).transpose(),), {"dim": 1, "descending": False})
    np.testing.assert_array_equal(values.host, np.sort(x.T, 1))
    np.testing.assert_array_equal(at.host, np.argsort(x.T, 1, kind="stable"))


def digest():
    found = hashlib.sha256()
    for dtype in TYPES:
        for shape in ((140_000,), (300, 700)):
            for part in dispatch(
                "sort", DEVICE, (to_device(values_with_ties(*shape, dtype=dtype)),), {"dim": 0, "descending": True}
            ):
                found.update(part.tobytes())
    return found.hexdigest()
