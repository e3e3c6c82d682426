"""Taichi's row and column kernels agree with NumPy at sizes around vectors, chunks and cores."""

import numpy as np
import pytest

from minigrad.core.dispatch import dispatch
from minigrad.core.storage import get_allocator
from minigrad.ops.normalization import Norm
from needs import needs
from taichi_device import DEVICE
from tiers import choose_cases, cross, mark_nightly

needs("taichi")


FLOATS = ("float32", "float64")
SHAPES = [(1, 1), (3, 31), (3, 32), (5, 33), (2, 1000), (40, 1017), (0, 40), (300, 4), (64, 48), (5, 7, 32)]
TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


def random_values(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


def on_cpu(x):
    return get_allocator(DEVICE).copy(x) if isinstance(x, np.ndarray) else x


def check(op, inputs, device_inputs=None, skip=(), **attrs):
    """Compare the ``cpu`` kernel with NumPy's; `device_inputs` are its operands if they are views on the device."""
    with np.errstate(all="ignore"):
        expected = dispatch(op, "numpy", inputs, attrs)
    actual = dispatch(op, DEVICE, tuple(map(on_cpu, inputs)) if device_inputs is None else device_inputs, attrs)
    expected, actual = (x if isinstance(x, tuple) else (x,) for x in (expected, actual))
    for k, (x, y) in enumerate(zip(actual, expected, strict=True)):
        if k not in skip:
            x, y = get_allocator(DEVICE).to_numpy(x), np.asarray(y)
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            close = TOLERANCE.get(y.dtype.name, 0)
            largest = np.abs(y[np.isfinite(y)].astype(float)).max(initial=0)
            np.testing.assert_allclose(x, y, rtol=close, atol=close * largest)


@cross(1, shape=SHAPES, dtype=FLOATS)
def test_softmax_family(shape, dtype):
    x, u = 3 * random_values(*shape, dtype=dtype), random_values(*shape, dtype=dtype, seed=1)
    for dim in range(len(shape)):
        for op in ("softmax", "log_softmax"):
            check(op, (x,), dim=dim)
            check(op, (x[::-1],), (on_cpu(x)[::-1],), dim=dim)
        for op in ("softmax_backward", "log_softmax_backward"):
            check(op, (u, x / 10), dim=dim)
            check(op, (np.broadcast_to(u[:1], shape), x / 10), dim=dim)


def test_softmax_of_non_finite_and_large_values():
    x = random_values(6, 50)
    x[0, 3], x[1, 48], x[2, 0], x[3], x[4, 7] = np.nan, np.inf, -np.inf, -np.inf, 1e30
    for op in ("softmax", "log_softmax"):
        check(op, (x,), dim=1)


@cross(
    1,
    shape=choose_cases(
        [(31,), (3, 20, 48), (7, 5000), (40_000, 4), (100_001,), (999, 33), (5_000, 48), (1_500_000,)], "", 5
    ),
    view=[False, True],
)
def test_sums_accumulate_in_float64(shape, view):
    whole = np.concatenate([random_values(*shape), random_values(*shape, seed=1)])
    x, mine = (whole[1:], on_cpu(whole)[1:]) if view else (whole, on_cpu(whole))
    dims = [tuple(range(x.ndim)), *[(k,) for k in range(x.ndim)], *([(0, 1), (1, 2), (0, 2)] if x.ndim == 3 else [])]
    for dim in dims:
        for op, more in {"sum": {}, "mean": {}, "var": {"correction": 1}, "norm": {"p": 2.0}, "logsumexp": {}}.items():
            its = dispatch(op, "numpy", (x.astype(np.float64),), {"dim": dim, "keepdim": False, **more})
            y = get_allocator(DEVICE).to_numpy(dispatch(op, DEVICE, (mine,), {"dim": dim, "keepdim": False, **more}))
            np.testing.assert_allclose(y, its, rtol=2e-6, atol=1e-6 * max(1, np.abs(its).max()))


def test_a_sum_of_many_ones_is_exact_and_of_tenths_close():
    dim = {"dim": (0,), "keepdim": False}
    # The nearest float32.
    assert dispatch("sum", DEVICE, (on_cpu(np.ones(20_000_001, np.float32)),), dim).item() == 20_000_000
    tenths = np.full(10**7, 0.1, np.float32)
    assert abs(dispatch("sum", DEVICE, (on_cpu(tenths),), dim).item() / tenths.sum(dtype=np.float64) - 1) < 1e-6


NORMS = {
    "layer_norm": [Norm((33, n), (1,), (1,), 1e-5) for n in (5, 50, 64, 1000)],
    "rms_norm": [Norm((33, n), (1,), (1,), 1e-5, False) for n in (5, 64)],
    "batch_norm": [
        Norm(shape, (0, 2), (1,), 1e-5) for shape in ((6, 8, 49), (6, 8, 64), (5, 9, 4), (70, 32, 1), (7, 3, 1))
    ],
    "instance_norm": [Norm(shape, (2,), (1,), 1e-5) for shape in ((6, 8, 49), (6, 8, 64))],
    "group_norm": [Norm(shape, (2, 3), (1, 2), 1e-5) for shape in ((6, 2, 4, 48), (6, 2, 4, 49), (6, 3, 5, 2))],
}


@cross(1, op_and_norm=[(op, norm) for op, all in NORMS.items() for norm in all], dtype=FLOATS)
def test_norms(op_and_norm, dtype):
    op, norm = op_and_norm
    size = int(np.prod([norm.shape[k] for k in norm.along]))
    a, u = random_values(*norm.shape, dtype=dtype), random_values(*norm.shape, dtype=dtype, seed=1)
    for weight, bias in (
        (None, None),
        (random_values(size, dtype=dtype, seed=2), random_values(size, dtype=dtype, seed=3)),
    ):
        inputs = (a, weight) if op == "rms_norm" else (a, weight, bias)
        check(op, inputs, norm=norm)
        *_, mean, rstd = dispatch(op, "numpy", inputs, {"norm": norm})
        check("norm_backward", (u, a, weight, np.asarray(mean), rstd), norm=norm)
        check("norm_weight", (u, a, np.asarray(mean), rstd), norm=norm, to=(size,))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 10), (33, 40), (6, 5, 3, 2), (2000, 7)], ids=str)
def test_losses_of_classes(shape, reduction):
    a, classes = random_values(*shape), shape[1]
    targets = np.random.default_rng(1).integers(0, classes, (shape[0], *shape[2:]))
    ignoring = targets.copy()
    ignoring.flat[::3] = -100
    for b in (targets, ignoring):
        for weight in (None, np.abs(random_values(classes, seed=2))):
            for op in ("cross_entropy", "nll_loss"):
                check(op, (a, b, weight), skip=(2,), ignore_index=-100, reduction=reduction)
            attrs = {"ignore_index": -100, "reduction": reduction}
            up, *aux = dispatch("cross_entropy", "numpy", (a, b, weight), attrs)
            check("cross_entropy_backward", (np.asarray(up), a, *map(np.asarray, aux)))
    check("soft_cross_entropy", (a, np.abs(random_values(*shape, seed=3))))


@pytest.mark.parametrize("wrong", [-1, 5, 10**12])
def test_out_of_bounds_class_raises(wrong):
    for op in ("cross_entropy", "nll_loss"):
        inputs = on_cpu(random_values(3, 5)), on_cpu(np.array([1, wrong, 2])), None
        with pytest.raises(IndexError):
            dispatch(op, DEVICE, inputs, {"ignore_index": -100, "reduction": "mean"})


@cross(2, shape=[(1, 1), (3, 40), (100, 70), (4, 5, 6)], dtype=[*FLOATS, "int64", "int32", "uint8", "bool"])
def test_argmax_takes_the_first_maximum_and_cumsum_matches(shape, dtype):
    x = np.round(3 * np.abs(random_values(*shape))).astype(dtype)  # with many ties
    if x.dtype.kind == "f":
        x.flat[x.size // 2 :: 7] = np.nan
    for dim in range(len(shape)):
        for op in ("max", "min", "argmax", "argmin"):
            check(op, (x,), dim=dim, keepdim=dim == 0)
        for reverse in (False, True):
            check("cumsum", (x,), dim=dim, reverse=reverse)
            if dtype != "bool":
                check("recur", (x % 2, x), dim=dim, reverse=reverse)
    check("cumprod", (np.where(x > 0, 1, x).astype(dtype),), dim=0, reverse=True)


WIDE_SHAPES = [(5, 33), (64, 48), (7, 1017), (1100, 1000), (3, 7, 32)]


@pytest.mark.parametrize("odd", [0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", mark_nightly(WIDE_SHAPES, [(5, 33), (64, 48), (3, 7, 32)]), ids=str)
def test_vectorised_extrema_and_their_indices(shape, odd):
    x = np.round(2 * random_values(*shape))
    x[random_values(*shape, seed=1) > 2] = odd
    x[0] = odd
    for dim in range(len(shape)):
        for op in ("max", "min", "argmax", "argmin"):
            check(op, (x,), dim=dim, keepdim=False)
        for op in ("amax", "amin"):
            check(op, (x,), dim=(dim,), keepdim=False)
    check("amax", (x,), dim=tuple(range(x.ndim)), keepdim=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [0, 1, 7, 5003])
def test_dropout_masks_match(size, dtype):
    for key in (0, 5, 2**64 - 3):
        check("dropout", (random_values(size, dtype=dtype),), p=0.3, key=key)
