"""Pooling: edge cases against PyTorch, deliberate differences, and errors."""

import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from parity import assert_close
from strategies import PARITY

F = mg.functional
NAN, INF = float("nan"), float("inf")


def image(rows, **options):
    return mg.tensor([rows], dtype=mg.float64, **options)


# --- max and min pooling ---

CORNERS = {
    "a nan": [[1.0, NAN, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.0, 1.0, 2.0, 3.0]],
    "many nans": [[NAN, 1.0, NAN, 0.0], [2.0, NAN, 3.0, NAN], [NAN, NAN, NAN, NAN]],
    "-inf": [[-INF] * 4] * 3,
    "inf": [[INF, 1.0, INF, -INF], [INF, INF, 0.0, -INF], [-INF, 2.0, 3.0, INF]],
    "ties": [[1.0, 2.0, 2.0, 1.0], [2.0, 1.0, 1.0, 2.0], [2.0, 2.0, 2.0, 2.0]],
    "zeros": [[0.0] * 4] * 3,
}
CALLS = {
    "2": lambda F, x: F.max_pool2d(x, 2, return_indices=True),
    "2, stride 1, padded": lambda F, x: F.max_pool2d(x, 2, 1, 1, return_indices=True),
    "3, padded, dilated": lambda F, x: F.max_pool2d(x, (2, 3), 1, (1, 0), (2, 1), return_indices=True),
    "rounded up": lambda F, x: F.max_pool2d(x, (2, 3), ceil_mode=True, return_indices=True),
    "adaptive": lambda F, x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
    "of lines": lambda F, x: F.max_pool1d(x[0], 3, 2, 1, return_indices=True),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_of_max_pooling_are_pytorch_s(torch, corner, call):
    x, t = image(CORNERS[corner], requires_grad=True), torch.tensor([CORNERS[corner]], dtype=torch.float64)
    t.requires_grad_()
    (values, indices), (torch_values, torch_indices) = CALLS[call](F, x), CALLS[call](torch.nn.functional, t)
    np.testing.assert_array_equal(values.detach().numpy(), torch_values.numpy(force=True))
    np.testing.assert_array_equal(indices.numpy(), torch_indices.numpy())
    weight = np.arange(1.0, 1.0 + np.prod(values.shape))
    values.backward(mg.tensor(weight.reshape(values.shape)))
    torch_values.backward(torch.tensor(weight.reshape(values.shape)))
    np.testing.assert_array_equal(x.grad.numpy(), t.grad.numpy())


def test_min_pool_is_negated_max_pool_and_propagates_nan():
    x = image([[3.0, NAN, 0.0, -0.5], [1.0, 4.0, 2.0, -0.5]])
    minima, at = F.min_pool2d(x, (2, 1), return_indices=True)
    assert minima.tolist()[0][0][::2] == [1.0, 0.0]
    assert np.isnan(minima.numpy()[0, 0, 1])
    assert at.tolist() == [[[4, 1, 2, 3]]]
    assert F.min_pool2d(image([[0.0, 7.0]]).to(mg.uint8), (1, 2)).tolist() == [[[0]]]


def test_pooling_an_empty_batch_gives_an_empty_batch():
    for function in (F.max_pool2d, F.min_pool2d, F.avg_pool2d):
        assert function(mg.zeros(0, 2, 4, 5), 2).shape == (0, 2, 2, 2)
    assert F.adaptive_avg_pool2d(mg.zeros(0, 2, 4, 5), (3, None)).shape == (0, 2, 3, 5)
    assert F.adaptive_avg_pool2d(mg.ones(2, 0, 4, 5), 0).shape == (2, 0, 0, 0)
    assert F.adaptive_max_pool2d(mg.ones(2, 4, 5), (0, 2)).shape == (2, 0, 2)


def test_pick_at_and_put_at_are_adjoint():
    x, at = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), mg.tensor([[3, 0, 3]])
    picked = mg.OPS["pick_at"](x, at[0], dims=2)
    picked.backward(mg.tensor([5.0, 7.0, 11.0]))
    assert (picked.tolist(), x.grad.tolist()) == ([4.0, 1.0, 4.0], [[7.0, 0.0], [0.0, 16.0]])


def test_overwriting_saved_indices_raises():
    x = image([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    indices.mul_(0)
    with pytest.raises(GraphError, match="max_pool saved its result"):
        values.sum().backward()


def test_third_derivatives_of_a_pooled_cube_flow_to_the_maxima():
    x = image([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    y = F.max_pool2d(x * x * x, 2).sum()
    for expected in (3 * 49.0, 6 * 7.0, 6.0):
        (gradient,) = mg.grad(y, x, create_graph=True)
        assert gradient.tolist() == [[[0.0, 0.0], [expected, 0.0]]]
        y = gradient.sum()


# --- average pooling and sizes ---


def test_nan_outside_a_window_does_not_affect_its_mean():
    x = image([[1.0, 3.0, INF, 5.0, NAN, 2.0]])
    assert str(F.avg_pool2d(x, (1, 2)).tolist()) == "[[[2.0, inf, nan]]]"
    x = image([[1.0, 3.0, INF]], requires_grad=True)
    F.avg_pool2d(x, (1, 2), 1).backward(mg.tensor([[[INF, 2.0]]], dtype=mg.float64))
    assert x.grad.tolist() == [[[INF, INF, 1.0]]]


def test_resizing_by_two_and_back_by_mean_changes_nothing():
    x = mg.tensor(np.random.default_rng(0).normal(size=(2, 3, 4, 5)))
    assert np.array_equal(F.avg_pool2d(F.interpolate(x, scale_factor=2), 2).numpy(), x.numpy())


@pytest.mark.parity
def test_realistic_sizes_match_pytorch(torch):
    x = np.random.default_rng(0).normal(size=(2, 3, 28, 31)).astype(np.float32)
    for call in (
        lambda F, x: F.max_pool2d(x, 3, 2, 1),
        lambda F, x: F.max_pool2d(x, 5, 1, 2),
        lambda F, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda F, x: F.adaptive_avg_pool2d(x, 7),
        lambda F, x: F.adaptive_max_pool2d(x, (9, 11)),
    ):
        input, t = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        y, z = call(F, input), call(torch.nn.functional, t)
        assert_close(y.detach().numpy(), z.numpy(force=True), PARITY["float32"])
        (y * y).sum().backward()
        (z * z).sum().backward()
        assert_close(input.grad.numpy(), t.grad.numpy(), PARITY["float32"])


# --- errors ---

ONES = mg.ones(2, 3, 4, 5)
WRONG = [
    (
        lambda: F.max_pool2d(ONES, 5),
        ShapeError,
        "max_pool2d: output size is too small: a window of 5 is larger than the size 4 in shape (2, 3, 4, 5).",
    ),
    (
        lambda: F.max_pool2d(ONES, 2, padding=1, dilation=6),
        ShapeError,
        "max_pool2d: output size is too small: a window of 7 is larger than the size 4 in shape (2, 3, 4, 5), with",
    ),
    (
        lambda: F.avg_pool2d(ONES, 3, padding=(1, 2)),
        ShapeError,
        "avg_pool2d: padding should be at most half of the kernel size, but got padding=2 and kernel_size=3.",
    ),
    (
        lambda: F.max_pool2d(ONES[..., :1, :1], 2, 1, 1, 2),
        ShapeError,
        "max_pool2d: with padding=1 and dilation=2 a window over shape (2, 3, 1, 1) covers only padding.\n  Reduce",
    ),
    (
        lambda: F.max_pool2d(ONES, 2, 0),
        ShapeError,
        "max_pool2d: expected stride to be one int or 2 ints of at least 1, but got 0.",
    ),
    (
        lambda: F.max_pool2d(ONES, 0),
        ShapeError,
        "max_pool2d: expected kernel_size to be one int or 2 ints of at least 1, but got 0.",
    ),
    (
        lambda: F.max_pool2d(ONES, 2, padding=-1),
        ShapeError,
        "max_pool2d: expected padding to be one int or 2 ints of at least 0, but got -1.",
    ),
    (
        lambda: F.max_pool2d(ONES, 2, dilation=0),
        ShapeError,
        "max_pool2d: expected dilation to be one int or 2 ints of at least 1, but got 0.",
    ),
    (
        lambda: F.max_pool2d(ONES, (1, 2, 3)),
        ShapeError,
        "max_pool2d: expected kernel_size to be one int or 2 ints of at least 1, but got (1, 2, 3).",
    ),
    (
        lambda: F.avg_pool2d(ONES, 2.0),
        DTypeError,
        "avg_pool2d: kernel_size must be an int or a tuple of ints, not 2.0.",
    ),
    (
        lambda: F.max_pool2d(ONES[0, 0], 2),
        ShapeError,
        "max_pool2d: expected input of shape (N, C, H, W), or (C, H, W) unbatched, but got (4, 5).\n  Only N may be 0.",
    ),
    (
        lambda: F.max_pool1d(ONES, 2),
        ShapeError,
        "max_pool1d: expected input of shape (N, C, L), or (C, L) unbatched, but got (2, 3, 4, 5).\n  Only N may be 0.",
    ),
    (
        lambda: F.max_pool2d(ONES[:, :0], 2),
        ShapeError,
        (
            "max_pool2d: expected input of shape (N, C, H, W), or (C, H, W) unbatched, but got (2, 0, 4, 5).\n"
            "  Only N may be 0."
        ),
    ),
    (
        lambda: F.avg_pool2d(ONES.to(mg.int64), 2),
        DTypeError,
        "avg_pool2d: expected input to be a floating-point tensor, but got int64.\n  Write input.to(mg.float32).",
    ),
    (
        lambda: F.avg_pool2d(ONES, 2, divisor_override=0),
        ArgumentError,
        "avg_pool2d: divisor_override=0: the divisor must not be zero.",
    ),
    (
        lambda: F.max_pool2d(ONES, 2, data_format="NCWH"),
        ArgumentError,
        "max_pool2d: expected data_format to be one of 'NCHW', 'NHWC', but got 'NCWH'.",
    ),
    (
        lambda: F.max_pool2d([1.0], 2),
        DTypeError,
        "max_pool2d: input must be a tensor, not a list.\n  Convert it first: mg.tensor(x).",
    ),
    (
        lambda: F.adaptive_avg_pool2d(ONES, (1, 2, 3)),
        ShapeError,
        "adaptive_avg_pool2d: expected an output_size of 2 sizes, but got (1, 2, 3).",
    ),
    (
        lambda: F.adaptive_avg_pool1d(ONES[0], None),
        DTypeError,
        "adaptive_avg_pool1d: output_size must be an int or a tuple of ints, not None.",
    ),
    (
        lambda: F.adaptive_avg_pool2d(ONES, (-1, 2)),
        ShapeError,
        "adaptive_avg_pool2d: expected output_size to be one int or 2 ints of at least 0, but got [-1, 2].",
    ),
    (
        lambda: F.adaptive_avg_pool2d(ONES[:, :, :0], 2),
        ShapeError,
        "adaptive_avg_pool2d: expected input of shape (N, C, H, W), or (C, H, W) unbatched, but got (2, 3, 0, 5)",
    ),
]


@merge_cases
@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG, ids=[m.split("\n")[0] for *_, m in WRONG])
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        wrong()


# --- lp pooling ---


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("p", [1, 2, 3.0, 4, 0.5, -1, -2.0, INF, -INF])
def test_lp_pools_of_each_order_are_pytorch_s(torch, p, dims):
    nn = (mg.nn.functional, torch.nn.functional)
    for row in ([1.0, -3.0, 2.0, 4.0, 0.0, 0.0, -1.5], [0.5, 2.0, 2.0, 1.0, 4.0, 3.0, 2.5]):
        x = np.array([[row]] if dims == 1 else [[[row, row[::-1]]]])
        input, torch_input = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        actual, expected = (
            getattr(L, f"lp_pool{dims}d")(t, p, 2, 1) for L, t in zip(nn, (input, torch_input), strict=True)
        )
        np.testing.assert_allclose(actual.detach().numpy(), expected.numpy(force=True), rtol=1e-12)
        actual.sum().backward()
        expected.sum().backward()
        np.testing.assert_allclose(input.grad.numpy(), torch_input.grad.numpy(), rtol=1e-12)
    layer = getattr(mg.nn, f"LPPool{dims}d")(p, 2, 1)
    np.testing.assert_array_equal(layer(input.detach()).numpy(), actual.detach().numpy())


def test_lp_pool_of_order_0_raises():
    with pytest.raises(ArgumentError, match="lp_pool1d: norm_type=0: the exponent 1 / norm_type is undefined"):
        mg.nn.functional.lp_pool1d(mg.ones(1, 1, 4), 0, 2)
