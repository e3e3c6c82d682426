"""Compare Taichi's kernels with NumPy's on the same inputs."""

import numpy as np

from minigrad.backends.taichi.runtime.array import TaichiArray
from minigrad.core.dispatch import dispatch
from places import HERE, put

RNG = np.random.default_rng(0)
CLOSE = {"float32": 2e-6, "float64": 1e-13}


def numbers(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


def on_cpu(x):
    """Copy an array to the device, with the same strides."""
    if not isinstance(x, np.ndarray):
        return x
    order = sorted(range(x.ndim), key=lambda k: -x.strides[k])
    return put(x.transpose(order)).transpose([order.index(k) for k in range(x.ndim)])


def same(op, *inputs, tolerance=None, **attrs):
    """Assert that the kernels of both devices return the same values, shapes and dtypes."""
    expected = dispatch(op, "numpy", inputs, attrs)
    found = dispatch(op, HERE, tuple(map(on_cpu, inputs)), attrs)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for mine, its in pairs:
        assert isinstance(mine, TaichiArray)
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        scale = np.abs(its[np.isfinite(its)]).max(initial=0.0)
        close = CLOSE.get(its.dtype.name, 0) if tolerance is None else tolerance
        np.testing.assert_allclose(mine.host, its, rtol=0, atol=close * scale)
