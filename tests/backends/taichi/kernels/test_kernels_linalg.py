"""Matmul, convolution, pooling and sampling on ``cpu`` agree with NumPy at sizes that the op samples do not cover."""

import itertools

import numpy as np
import pytest

from kernel_comparison import RNG, assert_same_result, copy_to_device, random_array
from minigrad.backends.taichi.runtime import kernel
from minigrad.core.dispatch import dispatch, get_kernels
from minigrad.ops.conv import Window
from needs import needs
from taichi_device import DEVICE, to_device
from tiers import choose_cases, cross

needs("taichi")
BEGIN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def reset_generator():
    """Reset the generator for each test, so that bounds on rounding errors do not depend on the order of tests."""
    RNG.bit_generator.state = BEGIN


OPS = (
    *("matmul", "linear", "contract", "conv2d", "conv2d_input", "conv2d_weight", "im2col", "col2im", "max_pool"),
    *("min_pool", "resample", "grid_sample", "grid_put", "scaled_dot_product_attention", "attention_backward"),
)


@pytest.mark.parametrize("op", OPS)
def test_op_has_a_taichi_kernel(op):
    assert not get_kernels(op)[DEVICE].__qualname__.startswith("through_host")


@cross(
    1,
    sizes=[
        (32, 784, 16),
        (17, 33, 19),
        (2, 3, 700),
        (8, 16, 16),
        (7, 1100, 5),
        (65, 12, 48),
        (260, 1040, 272),
        (150, 300, 200),
    ],
    dtype=["float32", "float64"],
)
def test_products_of_every_layout_and_batch(dtype, sizes):
    m, k, n = sizes
    batches = [((), ()), ((3,), (3,)), ((1,), (3,)), ((3,), ()), ((2, 1), (1, 4))]
    for (left, right), turn_a, turn_b in itertools.product(
        choose_cases(batches, f"{sizes}", 2), (False, True), (False, True)
    ):
        a = (
            random_array(*left, k, m, dtype=dtype).swapaxes(-1, -2)
            if turn_a
            else random_array(*left, m, k, dtype=dtype)
        )
        b = (
            random_array(*right, n, k, dtype=dtype).swapaxes(-1, -2)
            if turn_b
            else random_array(*right, k, n, dtype=dtype)
        )
        assert_same_result("matmul", a, b)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 500, 1), (1, 90, 90), (90, 90, 1)])
def test_products_of_empty_matrices_and_single_rows(sizes):
    m, k, n = sizes
    assert_same_result("matmul", random_array(m, k), random_array(k, n))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_products_of_integers(dtype):
    a, b = RNG.integers(0, 9, (20, 30)).astype(dtype), RNG.integers(0, 9, (30, 25)).astype(dtype)
    assert_same_result("matmul", a, b)


@cross(1, sizes=[(32, 128), (24, 50), (16, 64), (3, 11)], dtype=["float32", "float64"])
def test_products_of_the_heads_of_sequences(dtype, sizes):
    """Sequences and heads are a batch of two dimensions, which no single stride describes; one may be broadcast."""
    width, length = sizes
    x = to_device(random_array(3, length, 2 * width * 4, dtype=dtype))
    q, k = (x[..., part * width * 4 :][..., : width * 4].reshape(3, length, 4, width).swapaxes(1, 2) for part in (0, 1))
    scores = to_device(random_array(3, 4, length, length, dtype=dtype))
    launches = []
    with kernel.observe_launches(lambda kernel: launches.append(kernel.name)):
        for a, b in ((q, k.swapaxes(-1, -2)), (scores, k), (scores.swapaxes(-1, -2), q), (q[:1], k.swapaxes(-1, -2))):
            found = dispatch("matmul", DEVICE, (a, b)).host
            np.testing.assert_allclose(found, a.host @ b.host, rtol=1e-4, atol=1e-4)
    copies = [name for name in launches if "copy" in name or "contiguous" in name]
    assert DEVICE != "cpu" or not copies, "on a GPU, a kernel reads a batch by one stride"


def test_products_of_misaligned_views():
    """Vector loads need aligned memory: misaligned views use another kernel."""
    a, b = random_array(70, 81), random_array(81, 90)
    mine, its = to_device(a), to_device(b)
    for rows, inner, columns in itertools.product((0, 1, 2), (0, 1, 4), (0, 1, 16)):
        found = dispatch("matmul", DEVICE, (mine[rows:, inner:], its[inner:, columns:]))
        expected = a[rows:, inner:] @ b[inner:, columns:]
        np.testing.assert_allclose(found.host, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
        found = dispatch("matmul", DEVICE, (mine[rows::2, inner::2], its[inner::2, columns::3]))
        expected = a[rows::2, inner::2] @ b[inner::2, columns::3]
        np.testing.assert_allclose(found.host, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_nan_stays_in_its_row_and_column():
    a, b = random_array(40, 37), random_array(37, 45)
    a[3, 36], b[35, 44] = np.nan, np.inf
    found = dispatch("matmul", DEVICE, (to_device(a), to_device(b))).host
    clean = np.ones((40, 45), bool)
    clean[3] = clean[:, 44] = False
    assert (np.isfinite(found) == clean).all()
    assert (np.isposinf(found[:, 44]) | np.isneginf(found[:, 44]) | (np.arange(40) == 3)).all()


def test_product_with_large_inner_size_is_precise():
    a, b = np.full((8, 100_000), 0.1, "float32"), np.ones((100_000, 16), "float32")
    found = dispatch("matmul", DEVICE, (to_device(a), to_device(b))).host
    np.testing.assert_allclose(found, a.astype("float64") @ b, rtol=3e-6)


@pytest.mark.parametrize("shape", [(40, 90), (2, 20, 90), (90,)])
@pytest.mark.parametrize("outputs", [16, 33, 128])
def test_linear_with_and_without_a_bias(shape, outputs):
    x, w = random_array(*shape), random_array(outputs, 90)
    if len(shape) > 1:
        for bias in (None, random_array(outputs), random_array(1)):
            assert_same_result("linear", x, w, bias)


WINDOWS = [
    (9, 8, Window((3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1))),
    (12, 11, Window((3, 3), (2, 1), ((1, 0), (2, 1)), (1, 2))),
    (16, 16, Window((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1))),
    (10, 10, Window((2, 2), (1, 1), ((-1, 0), (0, -2)), (1, 1))),
    (10, 10, Window((2, 2), (1, 1), ((-1, 3), (4, -2)), (1, 1))),
    (7, 7, Window((3, 3), (1, 1), ((2, 2), (3, 3)), (1, 1))),
    (8, 8, Window((3, 3), (3, 2), ((1, 1), (1, 1)), (1, 1))),
]


@cross(
    1,
    window=choose_cases(WINDOWS, "", 5),
    dtype=["float32", "float64"],
    channels=[(8, 16, 1), (16, 5, 1), (3, 33, 1), (4, 6, 2), (4, 4, 4)],
)
def test_convolution_and_its_gradients(window, dtype, channels):
    (height, width, window), (inner, outer, groups) = window, channels
    x, w = (
        random_array(6, inner, height, width, dtype=dtype),
        random_array(outer, inner // groups, *window.size, dtype=dtype),
    )
    assert_same_result("conv2d", x, w, None, window=window, groups=groups)
    assert_same_result("conv2d", x, w, random_array(outer, dtype=dtype), window=window, groups=groups)
    g = np.empty_like(dispatch("conv2d", "numpy", (x, w, None), {"window": window, "groups": groups}))
    g[...] = random_array(*g.shape, dtype=dtype)
    assert_same_result("conv2d_weight", g, x, window=window, groups=groups)
    assert_same_result("conv2d_input", g, w, shape=x.shape, window=window, groups=groups)
    columns = dispatch("im2col", "numpy", (x,), {"window": window})
    assert_same_result("im2col", x, window=window)
    assert_same_result("col2im", columns, shape=x.shape, window=window)


def test_convolution_of_channels_last_images():
    x, w = random_array(4, 10, 10, 16).transpose(0, 3, 1, 2), random_array(8, 3, 3, 16).transpose(0, 3, 1, 2)
    assert_same_result(
        "conv2d", x, w, random_array(8), window=Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), groups=1
    )


@pytest.mark.parametrize("op", ["max_pool", "min_pool"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_pools_of_ties_and_nan(op, dtype):
    x = RNG.integers(0, 4, (5, 3, 40, 41)).astype(dtype)
    if x.dtype.kind == "f":
        x[RNG.uniform(size=x.shape) < 0.1] = np.nan
        x[RNG.uniform(size=x.shape) < 0.1] = -np.inf
    windows = tuple(tuple(range(max(0, at - 1), min(n, at + 2)) for at in range(0, n, 2)) for n in (40, 41))
    expected = dispatch(op, "numpy", (x,), {"windows": windows})
    for layout in (x, np.ascontiguousarray(x.T).T):
        found = dispatch(op, DEVICE, (copy_to_device(layout),), {"windows": windows})
        for mine, its in zip(found, expected, strict=True):
            assert mine.dtype == its.dtype
            np.testing.assert_array_equal(mine.host, its)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("back", [False, True])
def test_resampling_along_every_dimension(dim, back):
    rows = tuple((range(k, k + 3), (0.25, 0.5, 0.25 + k)) for k in range(0, 18, 2))
    shape = [30, 31, 32]
    shape[dim] = 9 if back else 20
    assert_same_result("resample", random_array(*shape), rows=rows, dim=dim, size=20, back=back)


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sampling_on_and_off_the_image(nearest, dtype):
    x, y = (RNG.uniform(-3, 12, (3, 30, 20)).astype(dtype) for _ in range(2))
    x[0, 0, :5] = [0.5, 1.5, -0.5, 8.5, 9.0]
    assert_same_result("grid_sample", random_array(3, 4, 9, 10, dtype=dtype), x, y, nearest=nearest)
    assert_same_result("grid_put", random_array(3, 4, 30, 20, dtype=dtype), x, y, shape=(3, 4, 9, 10), nearest=nearest)


@pytest.mark.parametrize("masked", [None, "bool", "float32", "causal"])
def test_attention_and_its_gradients(masked):
    q, k, v = random_array(2, 3, 40, 16), random_array(2, 3, 50, 16), random_array(2, 3, 50, 24)
    mask = {None: None, "causal": None, "bool": random_array(40, 50) > 0, "float32": random_array(40, 50)}[masked]
    if masked == "bool":
        mask[7] = False
    how = {"scale": 0.25, "p": 0.0, "seed": 0}
    assert_same_result("scaled_dot_product_attention", q, k, v, mask, is_causal=masked == "causal", **how)
    weights = dispatch("scaled_dot_product_attention", "numpy", (q, k, v, mask), {"is_causal": False, **how})[1]
    assert_same_result("attention_backward", random_array(2, 3, 40, 24), q, k, v, weights, **how)
