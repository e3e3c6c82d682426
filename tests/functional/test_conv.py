"""Convolution: channels last, error messages, edge cases, and peak memory for a large image."""

import tracemalloc

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.numpy import conv as kernels
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.ops.conv import Window

F = mg.functional


def normal_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# --- channels last ---

CHANNELS_LAST = {
    "conv1d": (F.conv1d, (2, 4, 7), (6, 2, 3), 6, "NLC"),
    "conv2d": (F.conv2d, (2, 4, 6, 5), (6, 2, 3, 2), 6, "NHWC"),
    "conv_transpose1d": (F.conv_transpose1d, (2, 4, 5), (4, 3, 3), 6, "NLC"),
    "conv_transpose2d": (F.conv_transpose2d, (2, 4, 3, 5), (4, 3, 3, 2), 6, "NHWC"),
}


@pytest.mark.parametrize("batched", [True, False], ids=["batched", "one"])
@pytest.mark.parametrize("name", CHANNELS_LAST)
def test_channels_last_only_permutes_input_and_result(name, batched):
    function, image, weight, out, data_format = CHANNELS_LAST[name]
    image = image if batched else image[1:]
    lead, spatial_dims = (0,) if batched else (), len(weight) - 2
    last = (*lead, *range(len(lead) + 1, len(lead) + 1 + spatial_dims), len(lead))
    first = tuple(np.argsort(last))
    settings = {"stride": 2, "padding": 1, "groups": 2}
    x, w, b = (mg.tensor(normal_array(*shape), requires_grad=True) for shape in (image, weight, (out,)))
    z = mg.tensor(np.ascontiguousarray(x.detach().numpy().transpose(last)), requires_grad=True)
    expected = function(x, w, b, **settings)
    result = function(z, w, b, **settings, data_format=data_format)
    np.testing.assert_array_equal(result.detach().numpy().transpose(first), expected.detach().numpy())
    g = normal_array(*expected.shape, seed=1)
    expected_grads = mg.grad(expected, [x, w], mg.tensor(g))
    actual = mg.grad(result, [z, w], mg.tensor(np.ascontiguousarray(g.transpose(last))))
    np.testing.assert_array_equal(actual[0].numpy().transpose(first), expected_grads[0].numpy())
    np.testing.assert_allclose(actual[1].numpy(), expected_grads[1].numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CHANNELS_LAST)
def test_channels_last_has_right_gradients_to_second_order(name):
    function, image, weight, out, data_format = CHANNELS_LAST[name]
    image = (image[0], *image[2:], image[1])
    inputs = [mg.tensor(normal_array(*shape)) for shape in (image, weight, (out,))]
    call = lambda x, w, b: function(x, w, b, padding=1, groups=2, data_format=data_format)  # noqa: E731
    assert mg.gradcheck(call, inputs, fast_mode=True)
    assert mg.gradgradcheck(call, inputs, fast_mode=True)


# --- invalid arguments and their messages ---


def test_channel_mismatch_names_both_counts():
    with pytest.raises(ShapeError) as error:
        mg.conv2d(mg.ones(2, 3, 8, 8), mg.ones(4, 2, 3, 3), groups=2)
    assert str(error.value) == (
        "conv2d: given groups=2 and weight of shape (4, 2, 3, 3), expected input (2, 3, 8, 8) to have 4 channels, but "
        "got 3 channels instead."
    )


def test_channel_mismatch_suggests_channels_last():
    with pytest.raises(ShapeError) as error:
        mg.conv2d(mg.ones(2, 8, 8, 3), mg.ones(4, 3, 3, 3))
    assert str(error.value) == (
        "conv2d: given groups=1 and weight of shape (4, 3, 3, 3), expected input (2, 8, 8, 3) to have 3 channels, but "
        'got 8 channels instead.\n  If the input is channels last, write data_format="NHWC".'
    )


def test_kernel_size_error_names_dilation_and_padding():
    with pytest.raises(ShapeError) as error:
        mg.conv2d(mg.ones(1, 1, 4, 9), mg.ones(1, 1, 3, 3), dilation=3, padding=(1, 0))
    assert str(error.value) == (
        "conv2d: kernel size (3, 3), (7, 7) with dilation (3, 3), can't be greater than input size (4, 9), (6, 9) with "
        "padding.\n  Use a smaller kernel or more padding."
    )


def test_kernel_size_error_omits_zero_padding():
    with pytest.raises(ShapeError) as error:
        mg.conv2d(mg.ones(1, 1, 1, 1), mg.ones(1, 1, 3, 3))
    assert str(error.value) == (
        "conv2d: kernel size (3, 3) can't be greater than input size (1, 1).\n  Use a smaller kernel or more padding."
    )


def test_fold_error_names_the_expected_columns():
    with pytest.raises(ShapeError) as error:
        mg.fold(mg.ones(2, 8, 4), 4, 2)
    assert str(error.value) == (
        "fold: with output_size=(4, 4) and kernel_size=(2, 2), expected input (…, C * 4, 3 * 3 = 9 sliding blocks), "
        "but got (2, 8, 4).\n  Pass the settings of the unfold call."
    )


X, W, WT = mg.ones(2, 4, 6, 6), mg.ones(6, 4, 3, 3), mg.ones(4, 6, 3, 3)
INVALID = {
    "a list": (
        lambda: mg.conv2d([1.0], W),
        DTypeError,
        r"conv2d: input must be a tensor, not a list\.\n  Convert it first",
    ),
    "two dimensions": (
        lambda: mg.conv2d(mg.ones(6, 6), W),
        ShapeError,
        r"expected input of shape \(N, C, H, W\), or \(C, H, W\) unbatched",
    ),
    "no rows": (lambda: mg.conv2d(mg.ones(2, 4, 0, 6), W, padding=3), ShapeError, "Only N may be 0"),
    "flat weight": (lambda: mg.conv2d(X, mg.ones(6, 4)), ShapeError, r"weight of shape \(out, in / groups, kH, kW\)"),
    "weight a list": (lambda: mg.conv2d(X, [1.0]), DTypeError, "conv2d: weight must be a tensor, not a list"),
    "no outputs": (lambda: mg.conv2d(X, mg.ones(0, 4, 3, 3)), ShapeError, r"but got \(0, 4, 3, 3\)"),
    "groups": (lambda: mg.conv2d(X, mg.ones(5, 2, 3, 3), groups=2), ShapeError, "divisible by groups=2"),
    "groups 0": (
        lambda: mg.conv2d(X, W, groups=0),
        ShapeError,
        "expected groups to be one int of at least 1, but got 0",
    ),
    "bias": (lambda: mg.conv2d(X, W, mg.ones(5)), ShapeError, r"expected bias to be 1-dimensional with 6 elements"),
    "types": (
        lambda: mg.conv2d(X, W.to(mg.float64)),
        DTypeError,
        r"expected weight to have the same dtype as input \(float32\), but got float64",
    ),
    "bools": (lambda: mg.conv2d(X > 0, W > 0), DTypeError, "not implemented for bool"),
    "stride 0": (
        lambda: mg.conv2d(X, W, stride=0),
        ShapeError,
        "conv2d: expected stride to be one int or 2 ints of at least 1, but got 0",
    ),
    "stride 1.5": (
        lambda: mg.conv2d(X, W, stride=1.5),
        DTypeError,
        "stride must be an int or a tuple of ints, not 1.5",
    ),
    "three strides": (
        lambda: mg.conv2d(X, W, stride=(1, 2, 3)),
        ShapeError,
        r"one int or 2 ints of at least 1, but got \(1, 2, 3\)",
    ),
    "dilation 0": (
        lambda: mg.conv2d(X, W, dilation=(1, 0)),
        ShapeError,
        r"expected dilation to be .* of at least 1, but got \(1, 0\)",
    ),
    "padding -1": (
        lambda: mg.conv2d(X, W, padding=-1),
        ShapeError,
        "expected padding to be .* of at least 0, but got -1",
    ),
    "padding full": (
        lambda: mg.conv2d(X, W, padding="full"),
        DTypeError,
        "padding must be an int or a tuple of ints, not 'full'",
    ),
    "same, strided": (
        lambda: mg.conv2d(X, W, 2 * X[0, 0, 0], 2, "same"),
        ArgumentError,
        'padding="same" is not supported for strided',
    ),
    "too large": (lambda: mg.conv2d(X, mg.ones(1, 4, 7, 1)), ShapeError, r"kernel size \(7, 1\) can\'t be greater"),
    "no window": (lambda: mg.conv2d(X, mg.ones(1, 4, 0, 1)), ShapeError, r"kernel size \(0, 1\)"),
    "format": (
        lambda: mg.conv2d(X, W, data_format="NCL"),
        ArgumentError,
        "expected data_format to be one of 'NCHW', 'NHWC'",
    ),
    "conv1d": (
        lambda: mg.conv1d(X, W),
        ShapeError,
        r"conv1d: expected input of shape \(N, C, L\), or \(C, L\) unbatched",
    ),
    "output padding": (
        lambda: mg.conv_transpose2d(X, WT, stride=2, output_padding=2),
        ShapeError,
        "must be smaller than either stride or dilation, but got output_padding=2, stride=2 and dilation=1",
    ),
    "transposed, same": (
        lambda: mg.conv_transpose2d(X, WT, padding="same"),
        DTypeError,
        "padding must be an int or .*, not 'same'",
    ),
    "transposed, cut": (
        lambda: mg.conv_transpose2d(X, WT, padding=5),
        ShapeError,
        r"output size \(-2, -2\) is too small",
    ),
    "transposed, channels": (
        lambda: mg.conv_transpose2d(X, W),
        ShapeError,
        r"to have 6 channels, but got 4 channels instead",
    ),
    "transposed, weight": (
        lambda: mg.conv_transpose1d(X[0], W),
        ShapeError,
        r"weight of shape \(in, out / groups, kL\)",
    ),
    "unfold": (lambda: mg.unfold(mg.ones(4, 4), 2), ShapeError, "unfold: expected input of shape"),
    "unfold, too large": (lambda: mg.unfold(X, 7), ShapeError, r"unfold: kernel size \(7, 7\)"),
    "unfold 0": (lambda: mg.unfold(X, 0), ShapeError, "expected kernel_size to be .* of at least 1, but got 0"),
    "fold, length": (lambda: mg.fold(mg.ones(2, 7, 9), 4, 2), ShapeError, r"but got \(2, 7, 9\)"),
    "fold, dimensions": (lambda: mg.fold(mg.ones(2, 2, 8, 9), 4, 2), ShapeError, r"\(N, C kH kW, oH oW\)"),
}


@merge_cases
@pytest.mark.parametrize("wrong", INVALID)
def test_invalid_arguments_raise(wrong):
    call, error_type, message = INVALID[wrong]
    with pytest.raises(error_type, match=message):
        call()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@merge_cases
@pytest.mark.parametrize("wrong", INVALID)
def test_pytorch_rejects_them_too(torch, wrong, monkeypatch):

    class TorchModule:
        float64, ones = torch.float64, torch.ones

        def __getattr__(self, name):
            return getattr(torch.nn.functional, name)

    for name, value in {"mg": TorchModule(), "X": torch.ones(2, 4, 6, 6), "W": torch.ones(6, 4, 3, 3)}.items():
        monkeypatch.setitem(globals(), name, value)
    monkeypatch.setitem(globals(), "WT", torch.ones(4, 6, 3, 3))
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError, AttributeError)):
        INVALID[wrong][0]()


# --- edge cases ---


@pytest.mark.parity
def test_nan_and_inf_affect_only_windows_that_contain_them(torch):
    x, w = normal_array(1, 1, 6, 7), normal_array(1, 1, 2, 3)
    x[0, 0, 1, 2], x[0, 0, 4, 5] = np.nan, np.inf
    actual = mg.conv2d(mg.tensor(x), mg.tensor(w), padding=1).numpy()
    expected = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), padding=1).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert np.isnan(actual).sum() == 6


def test_empty_batch_gives_empty_result_and_zero_gradients():
    x = mg.ones(0, 4, 6, 6).requires_grad_()
    w, b = mg.ones(6, 4, 3, 3).requires_grad_(), mg.ones(6).requires_grad_()
    y = mg.conv2d(x, w, b, stride=2)
    assert y.shape == (0, 6, 2, 2)
    gradients = mg.grad(y.sum(), [x, w, b])
    assert [g.shape for g in gradients] == [(0, 4, 6, 6), (6, 4, 3, 3), (6,)]
    assert not any(g.numpy().any() for g in gradients)


def test_odd_same_padding_goes_at_the_end():
    x, w = mg.tensor([[1.0, 2.0, 3.0]]), mg.tensor([[[1.0, 10.0]]])
    assert mg.conv1d(x, w, padding="same").tolist() == [[21.0, 32.0, 3.0]]


# --- kernels process blocks ---


@pytest.mark.parity
@pytest.mark.parametrize("block", [1, 60, 400, 10_000])
@pytest.mark.parametrize(
    ("size", "settings"),
    [
        ((3, 3), {"padding": 1}),
        ((3, 2), {"stride": 2, "padding": 1}),
        ((2, 2), {"stride": (3, 1), "dilation": (2, 3), "groups": 2}),
        ((1, 1), {"groups": 2}),
        ((1, 1), {"stride": 2}),
    ],
    ids=str,
)
def test_results_do_not_depend_on_the_block_size(torch, block, size, settings, monkeypatch):
    monkeypatch.setattr(kernels, "COLUMN_ELEMENTS", block)
    arrays = normal_array(5, 4, 7, 6), normal_array(2, 4 // settings.get("groups", 1), *size), normal_array(2)
    actual = [mg.tensor(x, requires_grad=True) for x in arrays]
    expected = [torch.tensor(x, requires_grad=True) for x in arrays]
    y, z = mg.conv2d(*actual, **settings), torch.nn.functional.conv2d(*expected, **settings)
    g = normal_array(*y.shape, seed=1)
    y.backward(mg.tensor(g))
    z.backward(torch.tensor(g))
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-11, atol=1e-12)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-11, atol=1e-12)


def test_large_image_is_not_unfolded_at_once():
    x, w = np.ones((1, 16, 256, 256), np.float32), np.ones((16, 16, 3, 3), np.float32)
    tracemalloc.start()
    try:
        kernels.conv2d(x, w, None, window=Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), groups=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * x.nbytes  # im2col alone would take 9 times as much
