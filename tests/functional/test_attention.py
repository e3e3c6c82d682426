"""Softmax and attention: edge cases, third derivatives, dropout, and invalid arguments."""

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, ShapeError
from strategies import PARITY, SECOND, THIRD
from tiers import cross

F = mg.functional


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def assert_close(actual, expected, tolerance=PARITY["float64"]):
    parity.assert_close(actual.detach().numpy(), expected.numpy(force=True), tolerance)


EDGE_CASES = {
    "nan": [1.0, np.nan, 3.0],
    "inf": [1.0, np.inf, 2.0],
    "-inf": [1.0, -np.inf, 2.0],
    "all -inf": [-np.inf, -np.inf, -np.inf],
    "huge": [1e308, -1e308, 1e308],
    "one": [3.0],
    "none": [],
}


@pytest.mark.parity
@pytest.mark.parametrize("corner", EDGE_CASES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_edge_cases_match_pytorch_values_and_gradients(torch, name, corner):
    array = np.array(EDGE_CASES[corner])
    x, t = mg.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    actual, expected = getattr(F, name)(x, 0), getattr(torch.nn.functional, name)(t, 0)
    assert_close(actual, expected)
    actual.backward(mg.tensor(random_array(*array.shape)))
    expected.backward(torch.tensor(random_array(*array.shape)))
    assert_close(x.grad, t.grad)


def test_softmax_of_a_0d_tensor_is_1():
    x = mg.tensor(3.0, requires_grad=True)
    y = x.softmax(-1)
    y.backward()
    assert (y.item(), y.shape, x.grad.item(), x.log_softmax(0).item()) == (1.0, (), 0.0, 0.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_third_gradients_match_central_differences(name):
    outer = mg.tensor(random_array(2, 3, seed=1))

    def second(x):
        (first,) = mg.grad(getattr(F, name)(x, 1), [x], outer, create_graph=True)
        return mg.grad(mg.exp(first).sum(), [x], create_graph=True)

    assert mg.gradgradcheck(second, [mg.tensor(random_array(2, 3))], **THIRD)


def test_attention_has_third_gradients():
    inputs = [mg.tensor(random_array(*shape, seed=k)) for k, shape in enumerate([(2, 2), (3, 2), (3, 2), (2, 3)])]

    def second(*inputs):
        first = mg.grad(mg.exp(F.scaled_dot_product_attention(*inputs)).sum(), inputs, create_graph=True)
        return mg.grad(sum(mg.exp(g).sum() for g in first), inputs, create_graph=True)

    assert mg.gradgradcheck(second, inputs, fast_mode=True, **THIRD)


@pytest.mark.parity
def test_fully_masked_query_gets_zeros_and_no_gradient(torch):
    q, k, v = random_array(2, 3), random_array(4, 3, seed=1), random_array(4, 2, seed=2)
    mask = np.array([[0.0, -1.0, -np.inf, 0.5], [-np.inf] * 4])
    for mask_array in (mask, mask > -np.inf):
        leaves = [mg.tensor(x, requires_grad=True) for x in (q, k, v)]
        torch_leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
        actual = F.scaled_dot_product_attention(*leaves, mg.tensor(mask_array))
        expected = torch.nn.functional.scaled_dot_product_attention(*torch_leaves, torch.tensor(mask_array))
        assert actual[1].tolist() == [0.0, 0.0]
        assert_close(actual, expected)
        for a, b in zip(
            mg.grad(actual, leaves, mg.ones(2, 2, dtype=mg.float64)),
            torch.autograd.grad(expected.sum(), torch_leaves),
            strict=True,
        ):
            assert_close(a, b)


@cross(1, sizes=[(1, 16), (33, 32), (20, 48), (48, 48), (600, 128)], is_causal=[False, True])
def test_vectorised_rows_match_the_formula(sizes, is_causal):
    """Kernels vectorise these rows, and skip masked keys with `is_causal`."""
    queries, keys = sizes
    q, k, v, g = [random_array(2, n, 8, seed=n + s) for s, n in enumerate((queries, keys, keys, queries))]
    scores = np.einsum("bqe,bke->bqk", q, k) / 8**0.5
    scores = np.where(np.tri(queries, keys, dtype=bool) | (not is_causal), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    x = [mg.tensor(one, dtype=mg.float32, requires_grad=True) for one in (q, k, v)]
    y = F.scaled_dot_product_attention(*x, is_causal=is_causal)
    parity.assert_close(y.detach().numpy(), weights @ v, PARITY["float32"])
    y.backward(mg.tensor(g, dtype=mg.float32))
    grad_weights = g @ v.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True)) / 8**0.5
    parity.assert_close(x[0].grad.numpy(), grad_scores @ k, PARITY["float32"])
    parity.assert_close(x[1].grad.numpy(), grad_scores.swapaxes(-1, -2) @ q, PARITY["float32"])
    parity.assert_close(x[2].grad.numpy(), weights.swapaxes(-1, -2) @ g, PARITY["float32"])


def test_vectorised_rows_of_minus_infinity_give_zeros():
    q, k, v = mg.ones(1, 2), mg.full((16, 2), -mg.inf), mg.ones(16, 2)
    assert F.scaled_dot_product_attention(q, k, v).tolist() == [[0.0, 0.0]]


def test_attention_is_one_operation():
    names = []
    with mg.tap(lambda call: names.append(call.op)):
        F.softmax(mg.zeros(2, 3), 1)
        F.log_softmax(mg.zeros(2, 3), 1)
        mg.OPS["scaled_dot_product_attention"](
            *(mg.zeros(2, 3), mg.zeros(4, 3), mg.zeros(4, 2), None), is_causal=True, scale=1.0, p=0.0, seed=0
        )
    assert names == ["softmax", "log_softmax", "scaled_dot_product_attention"]


def test_attention_drops_weights_and_scales_the_rest():
    """With an identity as values the result is the weights: 1/50 each, of which a fifth is dropped."""
    mg.random.manual_seed(2)
    weights = F.scaled_dot_product_attention(
        mg.zeros(200, 2), mg.zeros(50, 2), mg.tensor(np.eye(50, dtype="f")), dropout_p=0.2
    )
    scaled = weights.numpy() * 50
    assert np.allclose(scaled[scaled > 0], 1.25)
    assert abs((scaled == 0).mean() - 0.2) < 0.02  # five standard deviations of 10,000 samples


def test_dropped_weights_have_derivatives_to_second_order():
    def seeded(*inputs):
        mg.random.manual_seed(0)
        return F.scaled_dot_product_attention(*inputs, dropout_p=0.4)

    inputs = [mg.tensor(random_array(*shape, seed=k)) for k, shape in enumerate([(2, 2), (3, 2), (3, 2)])]
    assert mg.gradcheck(seeded, inputs)
    assert mg.gradgradcheck(seeded, inputs, **SECOND)


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize(
    "wrong",
    [
        "F.softmax(x, 3)",
        "F.softmax(x, 1, dtype=F.int64)",
        "F.log_softmax(x.to(F.int64), 1)",
        "F.softmin(x.to(F.int64), 1)",
        "attention(x[0, 0], x[0, 0], x[0, 0])",
        "attention(x, x[:, :, :2], x)",
        "attention(x, x, x[:, :3])",
        "attention(x, x.to(F.float64), x)",
        "attention(x.to(F.int64), x.to(F.int64), x.to(F.int64))",
        "attention(x, x, x, x[0, :, :1].to(F.int64))",
        "attention(x, x, x, x[0, :, :1].to(F.float64))",
        "attention(x, x, x, x[0])",
        "attention(x[0], x[0], x[0], x[:, :, :1])",
        "attention(x, x, x, x[0, :, :1], is_causal=True)",
        "attention(x, x, x, dropout_p=1.5)",
        "attention(x, x[:1].expand(3, 4, 3), x)",
        "attention(x[0], x[0], x[0], enable_gqa=True)",
        "attention(x[:1].expand(3, 4, 3), x, x, enable_gqa=True)",
    ],
)
def test_calls_that_pytorch_rejects_raise(torch, wrong):

    for functions, zeros, errors in (
        (parity.torch_functions(), torch.zeros, (RuntimeError, ValueError, TypeError, IndexError)),
        (parity.minigrad_functions(), mg.zeros, MinigradError),
    ):
        with pytest.raises(errors):
            eval(wrong, {"F": functions, "attention": functions.scaled_dot_product_attention, "x": zeros(2, 4, 3)})


ERRORS = {
    "F.softmax(x)": (
        ArgumentError,
        ("softmax: implicit dimension choice is not supported.\n  Write softmax(x, dim=-1) for the last dimension."),
    ),
    "F.softmin(x.to(mg.int64), 1)": (
        DTypeError,
        "softmin: expected input to be a floating-point tensor, but got int64.\n  Write input.to(mg.float32).",
    ),
    "attention(x[0, 0], x, x)": (
        ShapeError,
        (
            "scaled_dot_product_attention: expected query, key and value to all be at least 2-dimensional, (…, tokens, "
            "features), but got (3,), (2, 4, 3) and (2, 4, 3).\n  x[None] adds a leading dimension."
        ),
    ),
    "attention(x, x[:, :, :2], x)": (
        ShapeError,
        (
            "scaled_dot_product_attention: shapes of query (2, 4, 3), key (2, 4, 2) and value (2, 4, 3) do not match: "
            "query (…, L, E) and key (…, S, E) must have the same E, key and value (…, S, V) the same S."
        ),
    ),
    "attention(x, x, x, mg.ones(4, 4, dtype=mg.int64))": (
        DTypeError,
        (
            "scaled_dot_product_attention: expected attn_mask dtype to be bool (True takes part) or float32 (added to "
            "the scores), but got int64."
        ),
    ),
    "attention(x, x, x, [True])": (
        DTypeError,
        "scaled_dot_product_attention: attn_mask must be a tensor, not a list.\n  Convert it first: mg.tensor(x).",
    ),
    "attention(x, x, x, mg.zeros(3, 1, 4, 4))": (
        ShapeError,
        ("scaled_dot_product_attention: attn_mask of shape (3, 1, 4, 4) cannot be broadcast to (2, 4, 4)."),
    ),
    "attention(x, x, x, dropout_p=2)": (
        ArgumentError,
        "scaled_dot_product_attention: dropout_p has to be between 0 and 1, but got 2.",
    ),
}


@pytest.mark.parametrize("wrong", ERRORS)
def test_error_messages(wrong):
    error_type, message = ERRORS[wrong]
    with pytest.raises(error_type) as error:
        eval(wrong, {"F": F, "mg": mg, "attention": F.scaled_dot_product_attention, "x": mg.zeros(2, 4, 3)})
    assert str(error.value) == message
