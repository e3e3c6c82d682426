"""Normalisation and dropout: running statistics, edge cases, third derivatives, and errors."""

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, MinigradError, ShapeError
from strategies import PARITY, THIRD
from tiers import cross

F = mg.functional
NORMS = {
    "layer_norm": lambda F, x, w=None: F.layer_norm(x, x.shape[-1:], w),
    "rms_norm": lambda F, x, w=None: F.rms_norm(x, x.shape[-1:], w),
    "batch_norm": lambda F, x, w=None: F.batch_norm(x, None, None, w, training=True),
    "instance_norm": lambda F, x, w=None: F.instance_norm(x, weight=w),
    "group_norm": lambda F, x, w=None: F.group_norm(x, 2, w),
}


def random(*shape, dtype="float64", seed=0, offset=0.0):
    return (np.random.default_rng(seed).normal(size=shape) + offset).astype(dtype)


def assert_close(actual, expected, tolerance=PARITY["float64"]):
    assert (actual.dtype.name, actual.shape) == (str(expected.dtype)[6:], tuple(expected.shape))
    parity.assert_close(actual.detach().numpy(), expected.numpy(force=True), tolerance)


# --- values ---

CORNERS = {
    "nan": [1.0, np.nan, 3.0, 2.0],
    "inf": [1.0, np.inf, 3.0, 2.0],
    "equal": [2.0, 2.0, 2.0, 2.0],
}


@pytest.mark.parity
@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("norm", NORMS)
def test_corners_have_pytorch_s_values_and_gradients(torch, norm, corner):
    values = np.array([[CORNERS[corner], [0.5, 1.0, -1.0, 2.0]], [[3.0, 1.0, 4.0, 1.0], [5.0, 9.0, 2.0, 6.0]]])
    x, t = mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    actual, expected = NORMS[norm](F, x), NORMS[norm](torch.nn.functional, t)
    assert_close(actual, expected)
    weight = random(*values.shape)
    actual.backward(mg.tensor(weight))
    expected.backward(torch.tensor(weight))
    assert_close(x.grad, t.grad)


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_empty_inputs_match_pytorch(torch, norm, shape):
    assert_close(NORMS[norm](F, mg.zeros(*shape)), NORMS[norm](torch.nn.functional, torch.zeros(*shape)))


@pytest.mark.parity
@cross(1, norm=NORMS, shape=[(5000, 6, 8), (4, 6, 20000)])
def test_float32_is_as_accurate_as_float64_rounded(torch, norm, shape):
    """Inputs with a large mean, for which a naive sum loses the deviation, are compared with float64."""
    values = random(*shape, dtype="float32", offset=10.0)
    outer = random(*shape, dtype="float32", seed=1)
    grads = []
    for dtype in ("float32", "float64"):
        x = mg.tensor(values.astype(dtype), requires_grad=True)
        w = mg.ones(shape[-1] if norm in ("layer_norm", "rms_norm") else 6, dtype=x.dtype).requires_grad_()
        y = NORMS[norm](F, x, w)
        grads.append([y, *mg.grad(y, [x, w], mg.tensor(outer.astype(dtype)))])
    for single, double in zip(*grads, strict=True):
        reference = double.detach().numpy()
        np.testing.assert_allclose(
            single.detach().numpy(), reference, rtol=0, atol=PARITY["float32"] * np.abs(reference).max()
        )


@pytest.mark.parametrize("norm", NORMS)
def test_third_gradients_match_central_differences(norm):
    w = mg.tensor(random(3, seed=3) if norm in ("layer_norm", "rms_norm") else random(4, seed=3))
    outer = [mg.tensor(random(2, 4, 3, seed=k)) for k in (1, 2)]

    def second(x, w):
        x.requires_grad_(), w.requires_grad_()
        first = mg.grad(NORMS[norm](F, x, w), [x, w], outer[0], create_graph=True)
        return mg.grad((first[0] * outer[1]).sum() + mg.exp(first[1]).sum(), [x, w], create_graph=True)

    assert mg.gradgradcheck(second, [mg.tensor(random(2, 4, 3)), w], fast_mode=True, **THIRD)


@pytest.mark.parity
@pytest.mark.parametrize("momentum", [0.1, 0.75])
@pytest.mark.parametrize("norm", ["batch_norm", "instance_norm"])
def test_running_statistics_follow_over_steps_as_in_pytorch(torch, norm, momentum):
    statistics = mg.zeros(4, dtype=mg.float64), mg.ones(4, dtype=mg.float64)
    torch_statistics = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    keywords = {"training": True} if norm == "batch_norm" else {}
    for seed in range(3):
        values = random(3, 4, 5, seed=seed, offset=seed)
        getattr(F, norm)(mg.tensor(values), *statistics, momentum=momentum, **keywords)
        getattr(torch.nn.functional, norm)(torch.tensor(values), *torch_statistics, momentum=momentum, **keywords)
    for actual, expected in zip(statistics, torch_statistics, strict=True):
        assert_close(actual, expected)
        assert not actual.requires_grad


def test_empty_inputs_leave_running_statistics_unchanged():
    mean, var = mg.zeros(4), mg.ones(4)
    F.batch_norm(mg.zeros(2, 4, 0), mean, var, training=True)
    assert (mean.tolist(), var.tolist()) == ([0.0] * 4, [1.0] * 4)


def test_a_result_may_be_overwritten_before_the_gradient_is_taken():
    """An in-place activation may do so: no gradient rule of a norm reads its output."""
    for norm in NORMS.values():
        x = mg.tensor(random(2, 4, 3), requires_grad=True)
        y = norm(F, x)
        (expected,) = mg.grad(y * 3.0, [x], mg.tensor(random(2, 4, 3, seed=1)))
        y = norm(F, x)
        y.mul_(3.0)
        (gradient,) = mg.grad(y, [x], mg.tensor(random(2, 4, 3, seed=1)))
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=PARITY["float64"])


def test_a_norm_is_one_operation_of_its_name():
    x = mg.tensor(random(2, 4, 3), requires_grad=True)
    for name, norm in NORMS.items():
        calls = []
        with mg.tap(lambda call, calls=calls: calls.append(call.op)):
            norm(F, x, mg.tensor(random(3 if name in ("layer_norm", "rms_norm") else 4)))
        assert calls == [name]


# --- dropout ---


def test_dropout_keeps_the_mean_and_its_gradient_the_zeros():
    mg.random.manual_seed(1)
    x = mg.ones(400, 400).requires_grad_()
    y = F.dropout(x, 0.2)
    values = y.detach().numpy()
    assert set(np.unique(values)) == {0.0, np.float32(1.25)}
    assert abs((values == 0).mean() - 0.2) < 0.005  # five standard deviations for 160,000 draws
    y.backward(mg.ones(400, 400))
    assert (x.grad.numpy() == values).all()


def test_dropout_repeats_by_seed_and_not_from_call_to_call():
    x = mg.ones(100)
    mg.random.manual_seed(3)
    first, second = F.dropout(x).tolist(), F.dropout(x).tolist()
    mg.random.manual_seed(3)
    assert F.dropout(x).tolist() == first != second


def test_dropout_in_place_writes_into_its_operand_and_passes_the_gradient():
    x = mg.ones(50).requires_grad_()
    y = x * 2.0
    z = F.dropout(y, 0.5, inplace=True)
    assert z is y
    assert set(z.tolist()) == {0.0, 4.0}
    z.backward(mg.ones(50))
    assert x.grad.tolist() == z.tolist()


def test_dropout_has_no_second_derivative_and_drops_infinities():
    x = mg.tensor([np.inf] * 30, requires_grad=True)
    mg.random.manual_seed(0)
    assert set(F.dropout(x).tolist()) == {0.0, np.inf}
    assert F.dropout(x, 1.0).tolist() == [0.0] * 30
    assert mg.gradcheck(_seeded_dropout, [mg.tensor(random(6))])
    assert mg.gradgradcheck(_seeded_dropout, [mg.tensor(random(6))])


def _seeded_dropout(x):
    mg.random.manual_seed(0)
    return F.dropout(x * x)


# --- errors ---


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize(
    "wrong",
    [
        "F.layer_norm(x, 3)",
        "F.layer_norm(x, ())",
        "F.layer_norm(x, (4,))",
        "F.layer_norm(x, (2, 4, 3, 1))",
        "F.layer_norm(x, (3,), c)",
        "F.layer_norm(x, (3,), None, c)",
        "F.layer_norm(x, (3,), c[:3].to(F.float64))",
        "F.layer_norm(x.to(F.int64), (3,))",
        "F.rms_norm(x, (4,))",
        "F.rms_norm(x, (3,), c)",
        "F.rms_norm(x.to(F.int64), (3,))",
        "F.batch_norm(c, None, None, training=True)",
        "F.batch_norm(x, None, None)",
        "F.batch_norm(x, c, None)",
        "F.batch_norm(x, None, c, training=True)",
        "F.batch_norm(x[:1, :, :1], None, None, training=True)",
        "F.batch_norm(x, c[:3], c[:3])",
        "F.batch_norm(x, c, c, c[:3])",
        "F.batch_norm(x, c, c, eps=-1.0)",
        "F.batch_norm(x, c.to(F.float64), c.to(F.float64))",
        "F.batch_norm(x, c.clone().requires_grad_(), c)",
        "F.batch_norm(x.to(F.int64), c, c)",
        "F.instance_norm(x[:, :, 0])",
        "F.instance_norm(x, use_input_stats=False)",
        "F.instance_norm(x, c, None)",
        "F.instance_norm(x, weight=c[:3])",
        "F.group_norm(x, 3)",
        "F.group_norm(x, -2)",
        "F.group_norm(x, 2, c[:3])",
        "F.group_norm(c, 2)",
        "F.group_norm(x[:1, :, 0], 4)",
        "F.normalize(x, dim=3)",
        "F.normalize(x.to(F.int64))",
        "F.dropout(x, 1.5)",
        "F.dropout(x, -0.5, training=False)",
        "F.dropout(x.to(F.int64))",
    ],
)
def test_what_pytorch_refuses_is_refused(torch, wrong):
    import parity

    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
        eval(wrong, {"F": parity.torch_functions(), "x": torch.zeros(2, 4, 3), "c": torch.ones(4)})
    with pytest.raises(MinigradError):
        eval(wrong, {"F": parity.minigrad_functions(), "x": mg.zeros(2, 4, 3), "c": mg.ones(4)})


REFUSALS = {
    "F.layer_norm(x, (4,))": (
        ShapeError,
        (
            "layer_norm: given normalized_shape=(4,), expected input with shape (*, 4), but got input of shape "
            "(2, 4, 3).\n"
            "  Write x.shape[-1:] to normalise over the last dimension."
        ),
    ),
    "F.layer_norm(x, 3)": (
        DTypeError,
        "layer_norm: normalized_shape=3 is not a sequence of ints.\n  Write (3,) for one dimension.",
    ),
    "F.layer_norm(x, (3,), c)": (
        ShapeError,
        "layer_norm: expected weight of shape (3,) for an input of shape (2, 4, 3), but got (4,).",
    ),
    "F.rms_norm(x, (3,), mg.ones(3, dtype=mg.float64))": (
        DTypeError,
        (
            "rms_norm: expected weight to have the same dtype as input (float32), but got float64.\n"
            "  Write weight.to(mg.float32)."
        ),
    ),
    "F.batch_norm(mg.zeros(1, 4), c, c, training=True)": (
        ShapeError,
        (
            "batch_norm: expected more than 1 value per channel when training, but got input of shape (1, 4).\n"
            "  Use a larger batch, or training=False."
        ),
    ),
    "F.batch_norm(x, None, None)": (
        ArgumentError,
        "batch_norm: running_mean and running_var must be given in evaluation mode.",
    ),
    "F.batch_norm(x, c.clone().requires_grad_(), c)": (
        GraphError,
        "batch_norm: running_mean requires grad, but it is updated in place.\n  Write running_mean.detach().",
    ),
    "F.group_norm(x, 3)": (
        ShapeError,
        (
            "group_norm: expected number of channels in input to be divisible by num_groups, but got input of shape "
            "(2, 4, 3) and num_groups=3.\n"
            "  Choose a divisor of 4: 1 normalises all channels together, 4 each one separately."
        ),
    ),
    "F.dropout(x, 1.5)": (ArgumentError, "dropout: p has to be between 0 and 1, but got 1.5."),
    "F.dropout([1.0])": (DTypeError, "dropout: input must be a tensor, not a list.\n  Convert it first: mg.tensor(x)."),
}


@pytest.mark.parametrize("wrong", REFUSALS)
def test_errors_give_cause_and_advice(wrong):
    kind, message = REFUSALS[wrong]
    with pytest.raises(kind) as refusal:
        eval(wrong, {"F": F, "mg": mg, "x": mg.zeros(2, 4, 3), "c": mg.ones(4)})
    assert str(refusal.value) == message
