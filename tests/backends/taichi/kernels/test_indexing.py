"""Gather, scatter and scatter-add on ``cpu`` agree bitwise with the NumPy kernels."""

import hashlib

import numpy as np
import pytest

from cases import merge_cases
from minigrad.core.dispatch import dispatch
from minigrad.core.dtypes import DTYPES
from needs import needs
from places import HERE, put

needs("taichi")


TYPES = list(DTYPES)
LAID = {  # the same elements in another memory layout
    "rows": lambda x: x,
    "columns": lambda x: x.transpose(),
    "stepped": lambda x: x[::-1, ::2] if x.ndim > 1 else x[::-2],
}


def numbers(*shape, dtype="float32", seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * 10).astype(dtype)


def places(size, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, size, shape)


def same(op, *inputs, **attrs):
    """Return the result, after checking its dtype, shape and bits against the NumPy kernel."""
    ours = [put(x) if isinstance(x, np.ndarray) else x for x in inputs]
    found = dispatch(op, HERE, tuple(ours), attrs).host
    right = np.asarray(dispatch(op, "numpy", inputs, attrs))
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    assert found.tobytes() == right.tobytes()
    return found


@merge_cases
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("inner", [1, 4, 5, 16, 48])
def test_lines_and_slices_are_those_of_numpy(dtype, dim, inner):
    a = numbers(7, 6, inner, dtype=dtype)
    shape = [5, 4, inner]
    shape[dim] = 23
    b, c = places(a.shape[dim], *shape), numbers(*shape, dtype=dtype, seed=2)
    same("gather", a, b, dim=dim)
    same("scatter", a, b, c, dim=dim)
    same("scatter_add", a, b, c, dim=dim, shape=None)
    same("scatter_add", None, b, c, dim=dim, shape=a.shape)
    shape = [*a.shape[:dim], 3, 5, *a.shape[dim + 1 :]]
    b, c = places(a.shape[dim], 3, 5), numbers(*shape, dtype=dtype, seed=2)
    same("index_select", a, b, dim=dim)
    same("index_copy", a, b, c, dim=dim)
    same("index_copy", a, b, c.ravel()[0].item(), dim=dim)
    same("index_add", a, b, c, dim=dim, shape=None)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4095, 4096, 4097, 50_000])
def test_sizes_around_what_one_core_does_alone(size):
    a, b, c = numbers(size), places(size, size), numbers(size, seed=2)
    same("index_select", a, b, dim=0)
    same("index_add", None, b, c, dim=0, shape=(size,))
    same("scatter", a, b, c, dim=0)
    same("last", b, dim=None)
    same("nonzero", (a > 3) * a)
    same("embedding", numbers(size, 16), places(size, 3, 5), padding_idx=None, by_freq=False)
    same("index_add", None, places(7, size), numbers(size, 3), dim=0, shape=(7, 3))
    same("pick_along", numbers(3, size), places(3, size), dim=0, keepdim=False)
    same("put_along", a, places(3, size), shape=(3, size), dim=0, keepdim=False)
    same("pick_along", numbers(size, 3), places(3, size, 1), dim=1, keepdim=True)


@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arrays_may_lie_anyhow(laid, dtype):
    a, b = LAID[laid](numbers(30, 40, dtype=dtype)), LAID[laid](places(15, 30, 40))
    whole, index = put(numbers(30, 40, dtype=dtype)), put(places(15, 30, 40))
    ours, at = LAID[laid](whole), LAID[laid](index)
    for op, attrs in [("gather", {"dim": 0}), ("index_select", {"dim": 1}), ("nonzero", {})]:
        given = [(a, ours), (b, at)][: 1 if op == "nonzero" else 2]
        found = dispatch(op, HERE, tuple(two for _, two in given), attrs).host
        np.testing.assert_array_equal(found, dispatch(op, "numpy", tuple(one for one, _ in given), attrs))
    for op in ("scatter", "scatter_add"):
        attrs = {"dim": 1} | ({"shape": None} if op == "scatter_add" else {})
        found = dispatch(op, HERE, (ours, at, ours), attrs).host
        np.testing.assert_array_equal(found, dispatch(op, "numpy", (a, b, a), attrs))
    into, right = (
        LAID[laid](put(a * 0 if laid == "rows" else np.zeros((30, 40), dtype))),
        np.zeros(a.shape, dtype),
    )
    row = numbers(a.shape[1], dtype=dtype)
    dispatch("index_copy", HERE, (into, put(places(9, 4)), put(row)), {"dim": 0}, out=into)
    right[places(9, 4)] = row
    np.testing.assert_array_equal(into.host, right)


@pytest.mark.parametrize("dtype", TYPES)
def test_nothing_at_all_and_no_dimensions(dtype):
    same("gather", numbers(0, 3, dtype=dtype), places(1, 0, 2), dim=0)
    same("index_select", numbers(3, 0, dtype=dtype), places(3, 4), dim=0)
    same("index_add", None, places(1, 0), numbers(0, 2, dtype=dtype), dim=0, shape=(4, 2))
    same("last", places(1, 0), dim=None)
    for x in (np.ones((), dtype), np.zeros((), dtype), np.zeros((0, 3), dtype), np.zeros((3, 4, 5), dtype)):
        same("nonzero", x)
    same("repeat_interleave", numbers(2, 3, dtype=dtype), repeats=0, dim=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("times", [1, 2000])
def test_nan_and_the_smallest_float_are_not_zero_and_minus_zero_is(dtype, times):
    least = np.array([1], np.int32 if dtype == "float32" else np.int64).view(dtype)[0]
    x = put(np.array([0.0, -0.0, np.nan, np.inf, least, -least] * times, dtype))
    found = dispatch("nonzero", HERE, (x,), {}).host
    np.testing.assert_array_equal(found[:, 0] % 6, [2, 3, 4, 5] * times)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_the_last_of_equal_indices_is_told(dim):
    same("last", places(4, 6, 9), dim=dim)


def test_places_in_an_area_and_repeats():
    a, b = numbers(3, 4, 8, 9), places(72, 3, 4, 2, 5)
    same("pick_at", a, b, dims=2)
    same("put_at", numbers(3, 4, 2, 5), b, shape=a.shape, dims=2)
    for repeats in (3, (0, 2, 1, 3)):
        made = same("repeat_interleave", a, repeats=repeats, dim=1)
        found = dispatch("repeat_interleave_backward", HERE, (put(made),), {"count": 4, "repeats": repeats, "dim": 1})
        right = dispatch("repeat_interleave_backward", "numpy", (made,), {"count": 4, "repeats": repeats, "dim": 1})
        np.testing.assert_allclose(found.host, right, rtol=1e-6)


@pytest.mark.parametrize(
    ("size", "stride"),
    [
        ((3, 4), (1, 2)),
        ((5, 4, 3), (20, 1, 2)),
        ((2, 2), (0, 0)),
        ((0, 3), (1, 1)),
        ((50, 5), (5, -1)),
        ((90, 9), (2, 1)),
    ],
)
def test_gradients_of_windows_that_overlap_are_added_up(size, stride):
    given, own = numbers(*size), {"shape": (300,), "own": (1,)}
    found = dispatch("as_strided_backward", HERE, (put(given),), own | {"size": size, "stride": stride, "offset": 7})
    right = dispatch("as_strided_backward", "numpy", (given,), own | {"size": size, "stride": stride, "offset": 7})
    np.testing.assert_allclose(found.host, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 3, 2**32])
@pytest.mark.parametrize("op", ["index_select", "index_copy", "index_add"])
def test_an_index_out_of_range_raises_and_touches_nothing(op, wrong):
    x, at = put(numbers(3)), put(np.array([wrong]))
    more = {"index_select": (), "index_copy": (1.0,), "index_add": (put(numbers(1)),)}[op]
    with pytest.raises(IndexError, match="index out of range: an index is out of bounds for dimension 0 with size 3"):
        dispatch(op, HERE, (x, at, *more), {"dim": 0} | ({"shape": None} if op == "index_add" else {}))
    dispatch("index_select", HERE, (x, put(np.array([0]))), {"dim": 0})  # the error flag is cleared


def test_a_number_too_large_for_the_type_is_refused():
    with pytest.raises(Exception, match="300"):
        dispatch("index_copy", HERE, (put(numbers(3, dtype="uint8")), put(places(3, 1)), 300), {"dim": 0})


def test_what_is_read_may_be_what_is_written():
    x = put(np.arange(4))
    assert dispatch("index_copy", HERE, (x, x, x[::-1]), {"dim": 0}, out=x).tolist() == [3, 2, 1, 0]


def digest():
    """Hash results that would depend on the order of additions if cores raced."""
    found = hashlib.sha256()
    for shape, at in [((50, 3000), 0), ((50, 3000), 1), ((100_000, 3), 0), ((20_000, 64), 0)]:
        c, b = put(numbers(*shape)), put(places(13, *shape))
        attrs = {"dim": at, "shape": tuple(13 if k == at else n for k, n in enumerate(shape))}
        found.update(dispatch("scatter_add", HERE, (None, b, c), attrs).tobytes())
        found.update(dispatch("index_add", HERE, (None, put(places(13, shape[at])), c), attrs).tobytes())
    attrs = {"shape": (20_000,), "own": (1,), "size": (2000, 9, 500), "stride": (9, 1, 3), "offset": 0}
    found.update(dispatch("as_strided_backward", HERE, (put(numbers(2000, 9, 500)),), attrs).tobytes())
    return found.hexdigest()
