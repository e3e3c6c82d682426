"""Tiled convolution agrees with NumPy for every tiling of channels, positions and memory, bitwise on every machine."""

import hashlib

import numpy as np
import pytest

from kernel_comparison import assert_same_result, random_array
from minigrad.backends.numpy.conv import grid
from minigrad.backends.taichi.kernels import conv_tiles
from minigrad.backends.taichi.runtime import kernel
from minigrad.core.dispatch import dispatch
from minigrad.ops.conv import Window
from needs import needs
from taichi_device import DEVICE, to_device
from tiers import choose_cases, cross

needs("taichi")

pytestmark = pytest.mark.needs("NumPy-accessible memory")

SAME = Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
SIZES = {  # images, channels, height, width, channels of the result, window
    "one channel": (20, 1, 9, 12, 20, SAME),
    "two channels, five by five": (9, 2, 12, 16, 8, Window((5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1))),
    "three channels": (7, 3, 16, 16, 16, SAME),
    "five channels, odd rows": (6, 5, 11, 13, 9, SAME),
    "twelve channels, stride": (5, 12, 12, 16, 33, Window((3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1))),
    "sixteen channels": (4, 16, 8, 8, 32, SAME),
    "twenty-four channels, dilation": (3, 24, 12, 12, 17, Window((3, 2), (1, 1), ((2, 1), (0, 1)), (2, 1))),
    "rows cut off": (6, 16, 16, 16, 16, Window((3, 3), (1, 1), ((-4, 1), (-4, -4)), (1, 1))),
    "one row": (8, 16, 1, 40, 24, Window((1, 5), (1, 1), ((0, 0), (2, 2)), (1, 1))),
    "work for two cores": (24, 16, 16, 16, 32, SAME),
    "one image for two cores": (1, 32, 33, 31, 48, SAME),
    "weights for two cores": (2, 128, 8, 8, 80, SAME),
}


@cross(1, name=choose_cases(list(SIZES), "", 6), dtype=["float32", "float64"])
def test_convolution_and_both_gradients(name, dtype):
    images, inner, height, width, outer, window = SIZES[name]
    x, w = (
        random_array(images, inner, height, width, dtype=dtype),
        random_array(outer, inner, *window.size, dtype=dtype),
    )
    g = random_array(images, outer, *grid(x.shape, window), dtype=dtype)
    assert_same_result("conv2d", x, w, None, window=window, groups=1)
    assert_same_result("conv2d", x, w, random_array(outer, dtype=dtype), window=window, groups=1)
    assert_same_result("conv2d_weight", g, x, window=window, groups=1)
    assert_same_result("conv2d_input", g, w, shape=x.shape, window=window, groups=1)


def convolved(x, w, bias, g):
    """Run the convolution and both gradients on the device; return NumPy arrays."""
    attrs = {"window": SAME, "groups": 1}
    outs = (
        dispatch("conv2d", DEVICE, (x, w, bias), attrs),
        dispatch("conv2d_weight", DEVICE, (g, x), attrs),
        dispatch("conv2d_input", DEVICE, (g, w), {**attrs, "shape": x.shape}),
    )
    return [out.host for out in outs]


def test_strided_and_misaligned_views_give_the_same_bits():
    arrays = random_array(4, 16, 8, 8), random_array(32, 16, 3, 3), random_array(32), random_array(4, 32, 8, 8)
    expected = convolved(*map(to_device, arrays))

    def misaligned(x):
        return to_device(np.concatenate([[7], x.reshape(-1)]).astype(x.dtype))[1:].reshape(x.shape)

    def strided(x):
        return to_device(np.repeat(x, 2, axis=-1))[..., ::2]

    def transposed(x):
        return to_device(np.ascontiguousarray(x.T)).T

    def reversed_copy(x):
        return to_device(np.ascontiguousarray(x[::-1]))[::-1]

    for change in (misaligned, strided, transposed, reversed_copy):
        for found, one in zip(convolved(*map(change, arrays)), expected, strict=True):
            np.testing.assert_array_equal(found, one)


def test_one_element_bias_is_added_to_all_channels():
    x, w, bias = (
        to_device(random_array(4, 16, 8, 8)),
        to_device(random_array(8, 16, 3, 3)),
        to_device(np.full(1, 3, "float32")),
    )
    attrs = {"window": SAME, "groups": 1}
    found = dispatch("conv2d", DEVICE, (x, w, np.broadcast_to(bias, 8, subok=True)), attrs)
    without = dispatch("conv2d", DEVICE, (x, w, None), attrs)
    np.testing.assert_allclose(found.host - without.host, 3, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3, 5, 16])
def test_non_finite_values_affect_only_windows_that_contain_them(channels):
    x = random_array(8, channels, 12, 12)
    x[2, 0, 3, 3], x[5, channels - 1, 11, 11] = np.nan, np.inf
    found = dispatch(
        "conv2d",
        DEVICE,
        (to_device(x), to_device(np.abs(random_array(16, channels, 3, 3))), None),
        {"window": SAME, "groups": 1},
    )
    where = np.zeros((8, 12, 12), bool)
    where[2, 2:5, 2:5] = where[5, 10:, 10:] = True
    np.testing.assert_array_equal(~np.isfinite(found.host), np.broadcast_to(where[:, None], found.shape))


def test_gradient_summed_over_many_positions_is_precise():
    x, g = np.full((16, 1, 128, 128), 0.1, "float32"), np.ones((16, 1, 128, 128), "float32")
    window = Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
    found = dispatch("conv2d_weight", DEVICE, (to_device(g), to_device(x)), {"window": window, "groups": 1}).host
    assert found[0, 0, 1, 1] == pytest.approx(16 * 128 * 128 * float(np.float32(0.1)), rel=1e-5)


@pytest.mark.parametrize("images", [2, 40])
def test_each_convolution_is_one_launch(images):
    arrays = [
        to_device(random_array(*shape)) for shape in ((images, 16, 8, 8), (32, 16, 3, 3), (32,), (images, 32, 8, 8))
    ]
    heard = []
    with kernel.observe_launches(lambda kernel: heard.append(kernel.name)):
        convolved(*arrays)
    assert heard == ["conv2d", "conv2d_weight", "conv2d"]


def test_partitioning_of_sums_depends_only_on_shapes(monkeypatch):
    arrays = [to_device(random_array(*shape)) for shape in ((40, 16, 8, 8), (32, 16, 3, 3), (32,), (40, 32, 8, 8))]
    expected = convolved(*arrays)
    again = convolved(*arrays)
    monkeypatch.setattr(conv_tiles, "MAX_SERIAL_WEIGHTS", 0)  # pack weights, and add partial sums, on all cores
    conv_tiles._convolution_plan.cache_clear(), conv_tiles._weight_gradient_plan.cache_clear()
    for found, second, one in zip(convolved(*arrays), again, expected, strict=True):
        np.testing.assert_array_equal(found, one)
        np.testing.assert_array_equal(second, one)
    conv_tiles._convolution_plan.cache_clear(), conv_tiles._weight_gradient_plan.cache_clear()


def digest():
    """Hash the results of convolutions large enough for two cores."""
    draw = np.random.default_rng(3)
    found = hashlib.sha256()
    for shapes in (
        ((50, 16, 8, 8), (32, 16, 3, 3), (32,), (50, 32, 8, 8)),
        ((3, 20, 40, 41), (24, 20, 3, 3), (24,), (3, 24, 40, 41)),
    ):
        for out in convolved(*[to_device(draw.normal(size=shape).astype("float32")) for shape in shapes]):
            found.update(np.ascontiguousarray(out).tobytes())
    return found.hexdigest()
