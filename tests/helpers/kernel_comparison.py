"""Compare Taichi's kernels with NumPy's on the same inputs."""

import numpy as np

from minigrad.backends.taichi.runtime.array import TaichiArray
from minigrad.core.dispatch import dispatch
from taichi_device import DEVICE, to_device

RNG = np.random.default_rng(0)
TOLERANCES = {"float32": 2e-6, "float64": 1e-13}


def random_array(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


def copy_to_device(x):
    """Copy an array to the device, with the same strides."""
    if not isinstance(x, np.ndarray):
        return x
    order = sorted(range(x.ndim), key=lambda k: -x.strides[k])
    return to_device(x.transpose(order)).transpose([order.index(k) for k in range(x.ndim)])


def assert_same_result(op, *inputs, tolerance=None, **attrs):
    """Assert that the kernels of both devices return the same values, shapes and dtypes."""
    expected = dispatch(op, "numpy", inputs, attrs)
    actual = dispatch(op, DEVICE, tuple(map(copy_to_device, inputs)), attrs)
    pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
    for result, reference in pairs:
        assert isinstance(result, TaichiArray)
        assert (result.shape, result.dtype) == (reference.shape, reference.dtype)
        scale = np.abs(reference[np.isfinite(reference)]).max(initial=0.0)
        relative = TOLERANCES.get(reference.dtype.name, 0) if tolerance is None else tolerance
        np.testing.assert_allclose(result.host, reference, rtol=0, atol=relative * scale)
