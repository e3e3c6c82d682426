"""Convolutions as matrix products agree with NumPy, in one part or several, and for memory of any layout."""

import numpy as np
import pytest

from kernel_comparison import assert_same_result, random_array
from minigrad.backends.numpy.conv import grid
from minigrad.backends.taichi.kernels import conv_matmul
from minigrad.core.dispatch import dispatch
from minigrad.ops.conv import Window
from needs import needs
from taichi_device import DEVICE, to_device
from tiers import choose_cases, cross

needs("taichi")

pytestmark = pytest.mark.needs("NumPy-accessible memory")

SAME = Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
STRIDED = Window((3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1))
SIZES = {  # images, channels, height, width, channels of the result, window
    "four positions": (3, 96, 2, 2, 80, SAME),
    "one image, one position": (1, 600, 1, 1, 120, Window((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1))),
    "stride": (4, 72, 8, 7, 128, STRIDED),
    "stride and dilation": (2, 70, 9, 8, 100, Window((3, 2), (2, 3), ((2, 1), (0, 1)), (2, 1))),
    "one by one, stride": (5, 256, 4, 4, 257, Window((1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1))),
    "rows cut off": (2, 96, 8, 8, 80, Window((3, 3), (1, 1), ((-2, 0), (-2, -1)), (1, 1))),
    "64 positions": (2, 192, 8, 8, 310, SAME),
    "few weights, stride": (2, 8, 17, 16, 12, STRIDED),
}


def operands(name, dtype="float32"):
    images, inner, height, width, outer, window = SIZES[name]
    x = random_array(images, inner, height, width, dtype=dtype)
    g = random_array(images, outer, *grid(x.shape, window), dtype=dtype)
    return x, random_array(outer, inner, *window.size, dtype=dtype), random_array(outer, dtype=dtype), g, window


@cross(1, name=choose_cases(list(SIZES), "", 8), dtype=["float32", "float64"])
def test_convolution_and_both_gradients(name, dtype):
    x, w, bias, g, window = operands(name, dtype)
    assert_same_result("conv2d", x, w, None, window=window, groups=1)
    assert_same_result("conv2d", x, w, bias, window=window, groups=1)
    assert_same_result("conv2d_weight", g, x, window=window, groups=1)
    assert_same_result("conv2d_input", g, w, shape=x.shape, window=window, groups=1)


def convolve(x, w, bias, g, window):
    """Run the convolution and both gradients on the device; return NumPy arrays."""
    attrs = {"window": window, "groups": 1}
    outs = (
        dispatch("conv2d", DEVICE, (x, w, bias), attrs),
        dispatch("conv2d_weight", DEVICE, (g, x), attrs),
        dispatch("conv2d_input", DEVICE, (g, w), {**attrs, "shape": x.shape}),
    )
    return [out.host for out in outs]


@pytest.mark.parametrize("images", [1, 3])
def test_parts_of_the_batch_give_the_same_results(monkeypatch, images):
    *arrays, window = operands("stride")
    y, weight_grad, input_grad = convolve(*map(to_device, arrays), window)
    monkeypatch.setattr(conv_matmul, "MAX_ROW_ELEMENTS", images * y[0, 0].size * arrays[1][0].size)
    parts = convolve(*map(to_device, arrays), window)
    for found, expected in zip(parts, (y, weight_grad, input_grad), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_strided_and_misaligned_views_give_the_same_results():
    *arrays, window = operands("four positions")
    expected = convolve(*map(to_device, arrays), window)

    def misaligned(x):
        return to_device(np.concatenate([[7], x.reshape(-1)]).astype(x.dtype))[1:].reshape(x.shape)

    def transposed(x):
        return to_device(np.ascontiguousarray(x.T)).T

    def reversed_copy(x):
        return to_device(np.ascontiguousarray(x[::-1]))[::-1]

    for change in (misaligned, transposed, reversed_copy):
        for found, one in zip(convolve(*map(change, arrays), window), expected, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-4)


def test_non_finite_values_affect_only_windows_that_contain_them():
    x = random_array(3, 96, 4, 4)
    x[1, 5, 0, 0], x[2, 95, 3, 3] = np.nan, np.inf
    found = dispatch(
        "conv2d",
        DEVICE,
        (to_device(x), to_device(np.abs(random_array(80, 96, 3, 3))), None),
        {"window": SAME, "groups": 1},
    )
    where = np.zeros((3, 4, 4), bool)
    where[1, :2, :2] = where[2, 2:, 2:] = True
    np.testing.assert_array_equal(~np.isfinite(found.host), np.broadcast_to(where[:, None], found.shape))


def test_products_over_many_channels_are_precise():
    """Each block of the sum is added separately, so that rounding errors do not grow with the number of channels."""
    x, w = np.full((1, 2048, 2, 2), 0.1, "float32"), np.full((32, 2048, 3, 3), 0.1, "float32")
    found = dispatch("conv2d", DEVICE, (to_device(x), to_device(w), None), {"window": SAME, "groups": 1}).host
    np.testing.assert_allclose(found, 4 * 2048 * float(np.float32(0.1)) ** 2, rtol=2e-6)
