"""Resizing: sizes, scale factors and options against PyTorch, and errors."""

import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from parity import assert_close
from strategies import PARITY

F = mg.functional
INF = float("inf")


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area"])
def test_every_size_resizes_as_in_pytorch(torch, mode):
    for n in (1, 2, 3, 5, 8, 13, 28):
        x = np.linspace(-1.0, 1.0, n) ** 3
        sizes = [{"size": m} for m in (1, 2, 3, 4, 7, 9, 14, 28, 33, 56)]
        factors = [{"scale_factor": f} for f in (0.5, 0.7, 1.3, 1.5, 2.0, 2.3, 3)]
        corners = [{}, {"align_corners": True}] if mode == "linear" else [{}]
        for keywords in [s | c for s in sizes + factors for c in corners]:
            if int(n * keywords.get("scale_factor", 1)) < 1:
                continue
            actual = F.interpolate(mg.tensor(x[None, None]), mode=mode, **keywords).numpy()
            expected = torch.nn.functional.interpolate(torch.tensor(x[None, None]), mode=mode, **keywords).numpy()
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14, err_msg=f"{n} to {keywords}")


@pytest.mark.parity
def test_the_nearest_pixel_is_exact_in_float32_where_pytorch_takes_its_neighbour(torch):
    x = np.arange(39, dtype=np.float32)[None, None]
    actual = F.interpolate(mg.tensor(x), 33).tolist()
    assert actual == [[[float(k * 39 // 33) for k in range(33)]]]
    assert torch.nn.functional.interpolate(torch.tensor(x), 33).tolist() != actual


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_every_size_of_images_resizes_as_in_pytorch(torch, mode):
    for n in (1, 2, 3, 5, 13, 28):
        x = np.linspace(-1.0, 1.0, 2 * n).reshape(1, 1, n, 2) ** 3
        for size in (1, 2, 3, 4, 7, 14, 33):
            for antialias in (False, True):
                for align_corners in (False, True):
                    keywords = {"mode": mode, "antialias": antialias, "align_corners": align_corners}
                    actual = F.interpolate(mg.tensor(x), (size, 3), **keywords).numpy()
                    expected = torch.nn.functional.interpolate(torch.tensor(x), (size, 3), **keywords).numpy()
                    np.testing.assert_allclose(
                        actual, expected, rtol=0, atol=1e-14, err_msg=f"{n} to {size}, {keywords}"
                    )


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_uint8_are_rounded_in_each_dimension_as_in_pytorch(torch, mode):
    x = np.random.default_rng(0).integers(0, 256, size=(1, 3, 20, 30), dtype=np.uint8)
    for size in ((40, 60), (33, 41), (7, 90)):
        actual = F.interpolate(mg.tensor(x), size, mode=mode)
        expected = torch.nn.functional.interpolate(torch.tensor(x), size, mode=mode)
        assert actual.dtype is mg.uint8
        apart = np.abs(actual.numpy().astype(int) - expected.numpy().astype(int))
        assert apart.max() <= 1
        assert apart.mean() < 0.05  # PyTorch rounds its weights to 16 bits


def test_an_empty_batch_gives_an_empty_batch_and_areas_may_be_of_size_0():
    assert F.interpolate(mg.zeros(0, 2, 4), scale_factor=1.5).shape == (0, 2, 6)
    assert F.interpolate(mg.ones(1, 2, 4), scale_factor=0.2, mode="area").shape == (1, 2, 0)


@pytest.mark.parity
def test_images_of_realistic_size_are_pytorch_s(torch):
    x = np.random.default_rng(0).normal(size=(2, 3, 28, 31)).astype(np.float32)
    for call in (
        lambda F, x: F.interpolate(x, (45, 17), mode="bilinear"),
        lambda F, x: F.interpolate(x, (45, 17), mode="bicubic"),
        lambda F, x: F.interpolate(x, (11, 17), mode="bilinear", antialias=True),
    ):
        input, t = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        y, z = call(F, input), call(torch.nn.functional, t)
        assert_close(y.detach().numpy(), z.numpy(force=True), PARITY["float32"])
        (y * y).sum().backward()
        (z * z).sum().backward()
        assert_close(input.grad.numpy(), t.grad.numpy(), PARITY["float32"])


ONES = mg.ones(2, 3, 4, 5)
WRONG = [
    (
        lambda: F.interpolate(ONES[0], 3, mode="bicubic"),
        ArgumentError,
        "interpolate: mode='bicubic' does not support 3-d input.\n  The modes are nearest, nearest-exact and area (3-d",
    ),
    (
        lambda: F.interpolate(ONES, 3, mode="linear"),
        ArgumentError,
        "interpolate: mode='linear' does not support 4-d input",
    ),
    (lambda: F.interpolate(ONES[0, 0], 3), ArgumentError, "interpolate: mode='nearest' does not support 2-d input"),
    (
        lambda: F.interpolate(ONES, 3, mode="area", antialias=True),
        ArgumentError,
        "interpolate: antialias is only supported for bilinear and bicubic, but got 'area'.",
    ),
    (
        lambda: F.interpolate(ONES, 3, align_corners=False),
        ArgumentError,
        "interpolate: align_corners can only be set with the linear modes and bicubic, but got 'nearest'.",
    ),
    (
        lambda: F.interpolate(ONES),
        ArgumentError,
        "interpolate: either size or scale_factor should be defined; recompute_scale_factor requires scale_factor.",
    ),
    (lambda: F.interpolate(ONES, 3, 2.0), ArgumentError, "interpolate: either size or scale_factor"),
    (lambda: F.interpolate(ONES, 3, recompute_scale_factor=True), ArgumentError, "interpolate: either size or"),
    (
        lambda: F.interpolate(ONES, scale_factor=0.1),
        ShapeError,
        "interpolate: input and output sizes should be greater than 0, but got input (2, 3, 4, 5) and size (0, 0).",
    ),
    (
        lambda: F.interpolate(ONES, scale_factor=(2.0, -1.0)),
        ArgumentError,
        "interpolate: expected scale_factor to be a positive scalar or a sequence of 2, but got (2.0, -1.0).",
    ),
    (
        lambda: F.interpolate(ONES, scale_factor=INF),
        ArgumentError,
        "interpolate: expected scale_factor to be a positive scalar or a sequence of 2, but got inf.",
    ),
    (
        lambda: F.interpolate(ONES.to(mg.int32), 3, mode="bilinear"),
        DTypeError,
        "interpolate: expected input to be a floating-point tensor, but got int32.",
    ),
]


@merge_cases
@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG, ids=[m.split("\n")[0] for *_, m in WRONG])
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        wrong()
