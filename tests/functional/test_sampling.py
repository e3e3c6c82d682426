"""Grid sampling: values and gradients at kinks, nan and infinity against PyTorch, and errors."""

import math
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from parity import assert_close
from strategies import ROUNDING

F = mg.functional
NAN, INF = float("nan"), float("inf")
IMAGE = np.arange(1.0, 13.0).reshape(1, 1, 3, 4) ** 1.5

# At pixel centres, halfway between them, at edges, at reflection boundaries, and far outside.
KINKS = [
    -77.0,
    -5.0,
    -3.0,
    -2.0,
    -1.75,
    -1.5,
    -1.25,
    -1.0,
    -0.75,
    -0.5,
    -0.25,
    0.0,
    0.25,
    0.75,
    1.0,
    1.25,
    1.75,
    3.0,
    5.0,
]


def sample_image(points, mode="bilinear", padding_mode="zeros", align_corners=False, image=IMAGE):
    """Return the values at points (x, y) and the gradients of their weighted sum."""
    x = mg.tensor(image, requires_grad=True)
    grid = mg.tensor(np.array(points).reshape(1, 1, -1, 2), requires_grad=True)
    y = F.grid_sample(x, grid, mode, padding_mode, align_corners)
    y.backward(mg.tensor(np.linspace(1.0, 2.0, y.shape[3]).reshape(y.shape)))
    return y.detach().numpy()[0, 0, 0], x.grad.numpy(), grid.grad.numpy()[0, 0]


@pytest.mark.parity
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_values_and_gradients_are_pytorch_s_at_every_kink(torch, mode, padding_mode, align_corners):
    points = np.array([(x, y) for x in KINKS for y in KINKS])
    actual = sample_image(points, mode, padding_mode, align_corners)
    t = torch.tensor(IMAGE, requires_grad=True)
    grid = torch.tensor(points.reshape(1, 1, -1, 2), requires_grad=True)
    y = torch.nn.functional.grid_sample(t, grid, mode, padding_mode, align_corners)
    y.backward(torch.linspace(1.0, 2.0, len(points), dtype=torch.float64).reshape(y.shape))
    np.testing.assert_allclose(actual[0], y.numpy(force=True)[0, 0, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(actual[1], t.grad.numpy(), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(actual[2], grid.grad.numpy()[0, 0], rtol=1e-12, atol=1e-12)


def test_a_point_at_nan_is_nan_among_zeros_and_the_first_pixel_elsewhere():
    """Values match PyTorch; its gradients at nan for border and reflection read outside the image's memory."""
    points = [[NAN, -2 / 3], [-0.75, NAN], [0.25, 0.0]]
    values, to_image, to_grid = sample_image(points)
    assert [math.isnan(v) for v in values] == [True, True, False]
    assert np.isfinite(to_image).all()
    assert str(to_grid[:2].tolist()) == "[[0.0, nan], [nan, 0.0]]"
    for padding_mode in ("border", "reflection"):
        values, to_image, to_grid = sample_image(points, padding_mode=padding_mode)
        assert values[:2] == pytest.approx([1.0, 1.0])
        assert to_image.sum() == pytest.approx(4.5)
        assert (to_grid[0, 0], to_grid[1, 1]) == (0.0, 0.0)
        assert np.isfinite(to_grid).all()
    assert sample_image(points, "nearest")[0].tolist()[:2] == [0.0, 0.0]


def test_points_at_infinity_are_outside_the_image():
    values, _, to_grid = sample_image([[INF, 0.0], [-INF, 0.0], [1e300, 0.0]], padding_mode="border")
    assert values.tolist() == [8.0**1.5, 5.0**1.5, 8.0**1.5]
    assert not to_grid[:, 0].any()
    values, _, _ = sample_image([[1e300, 0.0], [0.0, -1e300]])
    assert values.tolist() == [0.0, 0.0]
    values, _, to_grid = sample_image([[INF, 0.0]], padding_mode="reflection")
    assert np.isfinite(values).all()
    assert to_grid[0, 0] == 0.0


def test_nan_in_an_unread_pixel_does_not_affect_samples_or_gradients():
    image = np.array([[[[1.0, 3.0, INF, NAN]]]])
    values, to_image, to_grid = sample_image([[-0.5, 0.0]], image=image)
    assert (values.tolist(), to_grid.tolist()[0][0]) == ([2.0], 4.0)
    assert to_image.tolist() == [[[[0.5, 0.5, 0.0, 0.0]]]]


def test_the_identity_grid_gives_the_image_back():
    theta = mg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype=mg.float64)
    for align_corners in (False, True):
        grid = F.affine_grid(theta, IMAGE.shape, align_corners)
        for mode in ("bilinear", "nearest"):
            actual = F.grid_sample(mg.tensor(IMAGE), grid, mode, align_corners=align_corners).numpy()
            np.testing.assert_allclose(actual, IMAGE, rtol=1e-14)


def test_empty_batches_channels_and_grids_give_empty_images():
    for image, grid, shape in (
        ((0, 2, 3, 4), (0, 5, 6, 2), (0, 2, 5, 6)),
        ((1, 0, 3, 4), (1, 5, 6, 2), (1, 0, 5, 6)),
        ((1, 2, 3, 4), (1, 0, 6, 2), (1, 2, 0, 6)),
    ):
        x, points = mg.tensor(np.zeros(image), requires_grad=True), mg.tensor(np.zeros(grid), requires_grad=True)
        y = F.grid_sample(x, points)
        assert y.shape == shape
        y.sum().backward()
        assert (x.grad.shape, points.grad.shape) == (image, grid)


def test_grid_sample_has_third_derivatives():
    """The third derivative by x, y and a pixel is that pixel's sign in the bilinear cross term."""
    x = mg.tensor([[[[1.0, 2.0], [4.0, 9.0]]]], dtype=mg.float64, requires_grad=True)
    column = mg.tensor([[[0.25]]], dtype=mg.float64, requires_grad=True)
    row = mg.tensor([[[0.5]]], dtype=mg.float64, requires_grad=True)
    y = mg.OPS["grid_sample"](x, column, row, nearest=False).sum()
    (by_column,) = mg.grad(y, column, create_graph=True)
    (by_both,) = mg.grad(by_column.sum(), row, create_graph=True)
    assert (y.item(), by_column.item(), by_both.item()) == (3.25, 3.0, 4.0)
    assert mg.grad(by_both.sum(), x)[0].tolist() == [[[[1.0, -1.0], [-1.0, 1.0]]]]


@pytest.mark.parity
def test_images_of_realistic_size_are_pytorch_s(torch):
    generator = np.random.default_rng(0)
    image = generator.normal(size=(3, 4, 28, 31))
    points = generator.uniform(-1.3, 1.3, size=(3, 20, 17, 2))
    pairs = []
    for library, functional in ((mg, F), (torch, torch.nn.functional)):
        x, grid = library.tensor(image), library.tensor(points)
        x.requires_grad_(), grid.requires_grad_()
        y = functional.grid_sample(x, grid, align_corners=False)
        (y * y).sum().backward()
        pairs.append([np.asarray(array) for array in (y.detach().numpy(), x.grad.numpy(), grid.grad.numpy())])
    for actual, expected in zip(*pairs, strict=True):
        assert_close(actual, expected, ROUNDING)


X, GRID, THETA = mg.ones(2, 1, 3, 4), mg.zeros(2, 5, 6, 2), mg.ones(2, 2, 3)
WRONG = [
    (
        lambda: F.grid_sample(X, GRID, "cubic"),
        ArgumentError,
        "grid_sample: expected mode to be one of 'bilinear', 'nearest', 'bicubic', but got 'cubic'.",
    ),
    (
        lambda: F.grid_sample(X[..., None], mg.zeros(2, 5, 6, 7, 3), "bicubic"),
        ArgumentError,
        "grid_sample: bicubic interpolation only supports 4-d input, but got 5-d.",
    ),
    (
        lambda: F.grid_sample(X[..., None], GRID),
        ShapeError,
        "grid_sample: expected grid of shape (2, D_out, H_out, W_out, 3) for input (2, 1, 3, 4, 1), but got (2, 5, 6,",
    ),
    (
        lambda: F.grid_sample(X, GRID, padding_mode="reflect"),
        ArgumentError,
        "grid_sample: expected padding_mode to be one of 'zeros', 'border', 'reflection', but got 'reflect'.",
    ),
    (
        lambda: F.grid_sample(X[0], GRID),
        ShapeError,
        "grid_sample: expected a non-empty input (N, C, H, W) or (N, C, D, H, W), but got (1, 3, 4).",
    ),
    (
        lambda: F.grid_sample(X[:, :, :0], GRID),
        ShapeError,
        "grid_sample: expected a non-empty input (N, C, H, W) or (N, C, D, H, W), but got (2, 1, 0, 4).",
    ),
    (
        lambda: F.grid_sample(X[:1], GRID),
        ShapeError,
        "grid_sample: expected grid of shape (1, H_out, W_out, 2) for input (1, 1, 3, 4), but got (2, 5, 6, 2).",
    ),
    (
        lambda: F.grid_sample(X, GRID[..., :1]),
        ShapeError,
        "grid_sample: expected grid of shape (2, H_out, W_out, 2) for input (2, 1, 3, 4), but got (2, 5, 6, 1).",
    ),
    (
        lambda: F.grid_sample(X, GRID.to(mg.float64)),
        DTypeError,
        (
            "grid_sample: expected grid to have the same dtype as input (float32), but got float64.\n"
            "  Write grid.to(mg.float32)."
        ),
    ),
    (
        lambda: F.grid_sample(X.to(mg.int64), GRID),
        DTypeError,
        "grid_sample: expected input to be a floating-point tensor, but got int64.\n  Write input.to(mg.float32).",
    ),
    (
        lambda: F.grid_sample(X, [0.0]),
        DTypeError,
        "grid_sample: grid must be a tensor, not a list.\n  Convert it first: mg.tensor(x).",
    ),
    (
        lambda: F.affine_grid(THETA, (2, 1, 2, 3, 4)),
        ShapeError,
        "affine_grid: expected theta of shape (2, 3, 4) for size=(2, 1, 2, 3, 4), but got (2, 2, 3).",
    ),
    (
        lambda: F.affine_grid(THETA, (2, 1, 0, 3)),
        ShapeError,
        "affine_grid: expected a positive size (N, C, H, W) or (N, C, D, H, W), but got (2, 1, 0, 3).",
    ),
    (
        lambda: F.affine_grid(THETA, (1, 1, 2, 3)),
        ShapeError,
        "affine_grid: expected theta of shape (1, 2, 3) for size=(1, 1, 2, 3), but got (2, 2, 3).",
    ),
    (
        lambda: F.affine_grid(THETA.to(mg.int32), (2, 1, 2, 3)),
        DTypeError,
        "affine_grid: expected theta to be a floating-point tensor, but got int32.",
    ),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG, ids=[m.split("\n")[0] for *_, m in WRONG])
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        wrong()
