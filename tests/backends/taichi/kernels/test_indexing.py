"""Gather, scatter and scatter-add on ``cpu`` agree bitwise with the NumPy kernels."""

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
LAYOUTS = {  # the same elements in another memory layout
    "rows": lambda x: x,
    "columns": lambda x: x.transpose(),
    "stepped": lambda x: x[::-1, ::2] if x.ndim > 1 else x[::-2],
}


def random_values(*shape, dtype="float32", seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * 10).astype(dtype)


def random_index(size, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, size, shape)


def check_bitwise(op, *inputs, **attrs):
    """Return the result, after checking its dtype, shape and bits against the NumPy kernel."""
    ours = [to_device(x) if isinstance(x, np.ndarray) else x for x in inputs]
    found = dispatch(op, DEVICE, tuple(ours), attrs).host
    right = np.asarray(dispatch(op, "numpy", inputs, attrs))
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    assert found.tobytes() == right.tobytes()
    return found


@merge_cases
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("inner", [1, 4, 5, 16, 48])
def test_gather_and_index_select_match_numpy(dtype, dim, inner):
    a = random_values(7, 6, inner, dtype=dtype)
    shape = [5, 4, inner]
    shape[dim] = 23
    b, c = random_index(a.shape[dim], *shape), random_values(*shape, dtype=dtype, seed=2)
    check_bitwise("gather", a, b, dim=dim)
    check_bitwise("scatter", a, b, c, dim=dim)
    check_bitwise("scatter_add", a, b, c, dim=dim, shape=None)
    check_bitwise("scatter_add", None, b, c, dim=dim, shape=a.shape)
    shape = [*a.shape[:dim], 3, 5, *a.shape[dim + 1 :]]
    b, c = random_index(a.shape[dim], 3, 5), random_values(*shape, dtype=dtype, seed=2)
    check_bitwise("index_select", a, b, dim=dim)
    check_bitwise("index_copy", a, b, c, dim=dim)
    check_bitwise("index_copy", a, b, c.ravel()[0].item(), dim=dim)
    check_bitwise("index_add", a, b, c, dim=dim, shape=None)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4095, 4096, 4097, 50_000])
def test_sizes_around_the_serial_limit(size):
    a, b, c = random_values(size), random_index(size, size), random_values(size, seed=2)
    check_bitwise("index_select", a, b, dim=0)
    check_bitwise("index_add", None, b, c, dim=0, shape=(size,))
    check_bitwise("scatter", a, b, c, dim=0)
    check_bitwise("last", b, dim=None)
    check_bitwise("nonzero", (a > 3) * a)
    check_bitwise("embedding", random_values(size, 16), random_index(size, 3, 5), padding_idx=None, by_freq=False)
    check_bitwise("index_add", None, random_index(7, size), random_values(size, 3), dim=0, shape=(7, 3))
    check_bitwise("pick_along", random_values(3, size), random_index(3, size), dim=0, keepdim=False)
    check_bitwise("put_along", a, random_index(3, size), shape=(3, size), dim=0, keepdim=False)
    check_bitwise("pick_along", random_values(size, 3), random_index(3, size, 1), dim=1, keepdim=True)


@pytest.mark.parametrize("laid", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arrays_may_have_any_strides(laid, dtype):
    a, b = LAYOUTS[laid](random_values(30, 40, dtype=dtype)), LAYOUTS[laid](random_index(15, 30, 40))
    whole, index = to_device(random_values(30, 40, dtype=dtype)), to_device(random_index(15, 30, 40))
    ours, at = LAYOUTS[laid](whole), LAYOUTS[laid](index)
    for op, attrs in [("gather", {"dim": 0}), ("index_select", {"dim": 1}), ("nonzero", {})]:
        given = [(a, ours), (b, at)][: 1 if op == "nonzero" else 2]
        found = dispatch(op, DEVICE, tuple(two for _, two in given), attrs).host
        np.testing.assert_array_equal(found, dispatch(op, "numpy", tuple(one for one, _ in given), attrs))
    for op in ("scatter", "scatter_add"):
        attrs = {"dim": 1} | ({"shape": None} if op == "scatter_add" else {})
        found = dispatch(op, DEVICE, (ours, at, ours), attrs).host
        np.testing.assert_array_equal(found, dispatch(op, "numpy", (a, b, a), attrs))
    into, right = (
        LAYOUTS[laid](to_device(a * 0 if laid == "rows" else np.zeros((30, 40), dtype))),
        np.zeros(a.shape, dtype),
    )
    row = random_values(a.shape[1], dtype=dtype)
    dispatch("index_copy", DEVICE, (into, to_device(random_index(9, 4)), to_device(row)), {"dim": 0}, out=into)
    right[random_index(9, 4)] = row
    np.testing.assert_array_equal(into.host, right)


@pytest.mark.parametrize("dtype", TYPES)
def test_empty_and_0d_arrays(dtype):
    check_bitwise("gather", random_values(0, 3, dtype=dtype), random_index(1, 0, 2), dim=0)
    check_bitwise("index_select", random_values(3, 0, dtype=dtype), random_index(3, 4), dim=0)
    check_bitwise("index_add", None, random_index(1, 0), random_values(0, 2, dtype=dtype), dim=0, shape=(4, 2))
    check_bitwise("last", random_index(1, 0), dim=None)
    for x in (np.ones((), dtype), np.zeros((), dtype), np.zeros((0, 3), dtype), np.zeros((3, 4, 5), dtype)):
        check_bitwise("nonzero", x)
    check_bitwise("repeat_interleave", random_values(2, 3, dtype=dtype), repeats=0, dim=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("times", [1, 2000])
def test_nonzero_of_nan_subnormals_and_minus_zero(dtype, times):
    least = np.array([1], np.int32 if dtype == "float32" else np.int64).view(dtype)[0]
    x = to_device(np.array([0.0, -0.0, np.nan, np.inf, least, -least] * times, dtype))
    found = dispatch("nonzero", DEVICE, (x,), {}).host
    np.testing.assert_array_equal(found[:, 0] % 6, [2, 3, 4, 5] * times)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_last_marks_the_last_of_equal_indices(dim):
    check_bitwise("last", random_index(4, 6, 9), dim=dim)


def test_pick_at_put_at_and_repeat_interleave():
    a, b = random_values(3, 4, 8, 9), random_index(72, 3, 4, 2, 5)
    check_bitwise("pick_at", a, b, dims=2)
    check_bitwise("put_at", random_values(3, 4, 2, 5), b, shape=a.shape, dims=2)
    for repeats in (3, (0, 2, 1, 3)):
        made = check_bitwise("repeat_interleave", a, repeats=repeats, dim=1)
        found = dispatch(
            "repeat_interleave_backward", DEVICE, (to_device(made),), {"count": 4, "repeats": repeats, "dim": 1}
        )
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
def test_gradients_of_overlapping_windows_are_summed(size, stride):
    given, own = random_values(*size), {"shape": (300,), "own": (1,)}
    found = dispatch(
        "as_strided_backward", DEVICE, (to_device(given),), own | {"size": size, "stride": stride, "offset": 7}
    )
    right = dispatch("as_strided_backward", "numpy", (given,), own | {"size": size, "stride": stride, "offset": 7})
    np.testing.assert_allclose(found.host, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 3, 2**32])
@pytest.mark.parametrize("op", ["index_select", "index_copy", "index_add"])
def test_index_out_of_range_raises_and_writes_nothing(op, wrong):
    x, at = to_device(random_values(3)), to_device(np.array([wrong]))
    more = {"index_select": (), "index_copy": (1.0,), "index_add": (to_device(random_values(1)),)}[op]
    with pytest.raises(IndexError, match="index out of range: an index is out of bounds for dimension 0 with size 3"):
        dispatch(op, DEVICE, (x, at, *more), {"dim": 0} | ({"shape": None} if op == "index_add" else {}))
    dispatch("index_select", DEVICE, (x, to_device(np.array([0]))), {"dim": 0})  # the error flag is cleared


def test_scalar_out_of_range_raises():
    with pytest.raises(Exception, match="300"):
        dispatch(
            "index_copy",
            DEVICE,
            (to_device(random_values(3, dtype="uint8")), to_device(random_index(3, 1)), 300),
            {"dim": 0},
        )


def test_source_and_destination_may_alias():
    x = to_device(np.arange(4))
    assert dispatch("index_copy", DEVICE, (x, x, x[::-1]), {"dim": 0}, out=x).tolist() == [3, 2, 1, 0]


def digest():
    """Hash results that would depend on the order of additions if cores raced."""
    found = hashlib.sha256()
    for shape, at in [((50, 3000), 0), ((50, 3000), 1), ((100_000, 3), 0), ((20_000, 64), 0)]:
        c, b = to_device(random_values(*shape)), to_device(random_index(13, *shape))
        attrs = {"dim": at, "shape": tuple(13 if k == at else n for k, n in enumerate(shape))}
        found.update(dispatch("scatter_add", DEVICE, (None, b, c), attrs).tobytes())
        found.update(dispatch("index_add", DEVICE, (None, to_device(random_index(13, shape[at])), c), attrs).tobytes())
    attrs = {"shape": (20_000,), "own": (1,), "size": (2000, 9, 500), "stride": (9, 1, 3), "offset": 0}
    found.update(dispatch("as_strided_backward", DEVICE, (to_device(random_values(2000, 9, 500)),), attrs).tobytes())
    return found.hexdigest()
