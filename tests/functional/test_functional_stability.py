"""Numerical stability on each device: long reductions, large and small values, and singular points."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError
from taichi_device import DEVICE

DEVICES = ["numpy", DEVICE]
INF = math.inf


@pytest.fixture(autouse=True, params=DEVICES)
def _device(request):
    before = mg.get_default_device()
    mg.set_default_device(request.param)
    yield
    mg.set_default_device(before)


def gradients(function, *arrays, dtype="float32"):
    """Return the gradients of the sum of the function's results with respect to its inputs."""
    inputs = [mg.tensor(np.array(x, dtype), requires_grad=True) for x in arrays]
    y = function(*inputs)
    results = mg.grad(y, inputs, mg.ones_like(y))
    return [x.numpy() for x in results]


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "norm", "logsumexp", "prod", "cumsum", "cumprod"])
def test_long_columns_reduce_to_1e_6(name):
    samples = np.random.default_rng(0).normal(size=(300_000, 2))
    x = (samples * 1e-3 + 1 if "prod" in name else samples + (0 if name == "logsumexp" else 1e4)).astype(np.float32)
    reference = x.astype(np.float64)
    expected = {
        "var": lambda: reference.var(0, ddof=1),
        "std": lambda: reference.std(0, ddof=1),
        "norm": lambda: np.sqrt((reference * reference).sum(0)),
        "logsumexp": lambda: np.log(np.exp(reference).sum(0)),
    }.get(name, lambda: getattr(reference, name)(0))()
    np.testing.assert_allclose(getattr(mg.tensor(x), name)(dim=0).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_long_columns_is_accurate(name):
    x = np.random.default_rng(0).random((300_000, 2), dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    expected /= expected.sum(0)
    result = getattr(mg.tensor(x), name)(0).numpy()
    np.testing.assert_allclose(result, expected if name == "softmax" else np.log(expected), rtol=1e-6)


def test_bias_gradient_sums_many_rows_accurately():
    g = np.random.default_rng(0).random((300_000, 2), dtype=np.float32)
    bias = mg.zeros(2, requires_grad=True)
    (result,) = mg.grad(mg.tensor(g) + bias, bias, mg.tensor(g))
    np.testing.assert_allclose(result.numpy(), g.astype(np.float64).sum(0), rtol=1e-6)


SCALES = [("float32", 1e25), ("float32", 1e-30), ("float64", 1e200), ("float64", 1e-200)]
ROOTS = {
    "norm": lambda x: x.norm(),
    "norm, columns": lambda x: x.norm(dim=0),
    **{f"norm, p={p}": lambda x, p=p: x.norm(p, dim=1) for p in (0.5, 1.5, 3, 10, -2)},
    "matrix_norm": mg.linalg.matrix_norm,
    "std": lambda x: x.std(),
    "std, rows": lambda x: x.std(dim=1),
    "cdist": lambda x: mg.cdist(x, x.flip(0) * -0.5),
    "cdist, p=3": lambda x: mg.cdist(x, x.flip(0) * -0.5, 3.0),
    "dist": lambda x: mg.dist(x, x.flip(0) * -0.5),
    "pairwise_distance": lambda x: mg.nn.functional.pairwise_distance(x, x.flip(0) * -0.5, eps=0.0),
    "hypot": lambda x: mg.hypot(x, x.flip(0)),
}
RATIOS = {
    "normalize": lambda x: mg.nn.functional.normalize(x, eps=0.0),
    "cosine_similarity": lambda x: mg.nn.functional.cosine_similarity(x, x.flip(1) + x, eps=0.0),
    "standardised": lambda x: (x - x.mean()) / x.std(),
    "layer_norm": lambda x: mg.nn.functional.layer_norm(x, (32,), eps=1e-90),
    "rms_norm": lambda x: mg.nn.functional.rms_norm(x, (32,), eps=1e-90),
    "group_norm": lambda x: mg.nn.functional.group_norm(x, 2, eps=1e-90),
    "batch_norm": lambda x: mg.nn.functional.batch_norm(x, None, None, training=True, eps=1e-90),
}


# Roots and ratios. Normalisation averages squares in float64, so float64 inputs have no headroom.
SCALED_CASES = [
    (name, dtype, scale)
    for name in (*ROOTS, *RATIOS)
    for dtype, scale in SCALES
    if dtype == "float32" or name in ROOTS or not name.endswith("_norm")
]


@pytest.mark.parametrize(("name", "dtype", "scale"), SCALED_CASES)
def test_roots_survive_overflow_and_underflow_of_squares(name, dtype, scale):
    power = int(name in ROOTS)  # of the scale in the result; the gradients have one less
    function = {**ROOTS, **RATIOS}[name]
    x = np.random.default_rng(0).normal(size=(6, 32))

    def weighted(v):
        y = function(v)
        return y * mg.tensor(np.linspace(1.0, 2.0, y.numel()).reshape(y.shape).astype(dtype))

    near, far = (function(mg.tensor((x * s).astype(dtype))).numpy() for s in (1.0, scale))
    rtol = 2e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(far / scale**power, near, rtol=rtol, atol=rtol)
    (near,), (far,) = gradients(weighted, x, dtype=dtype), gradients(weighted, x * scale, dtype=dtype)
    far = far if power else far.astype("float64") * scale
    np.testing.assert_allclose(far, near, rtol=100 * rtol, atol=rtol * np.abs(near).max())


@pytest.mark.parametrize("scale", [1e25, 1e-30])
def test_clip_grad_norm_survives_overflow_and_underflow(scale):
    weights = [mg.zeros(2, requires_grad=True), mg.zeros(1, requires_grad=True)]
    for weight, gradient in zip(weights, ([2.0, -4.0], [4.0]), strict=True):
        weight.grad = mg.tensor(gradient) * scale
    total = mg.nn.utils.clip_grad_norm_(weights, 3.0)
    assert total.item() == pytest.approx(6 * scale)
    result = [x for weight in weights for x in weight.grad.tolist()]
    np.testing.assert_allclose(result, np.array([2.0, -4.0, 4.0]) * min(0.5, scale), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e25, 1e-30])
def test_weight_norm_does_not_depend_on_the_scale_of_its_direction(scale):
    results = []
    for factor in (1.0, scale):
        layer = mg.nn.Linear(3, 2, bias=False)
        layer.weight.data.copy_(mg.tensor([[1.0, -2.0, 0.5], [3.0, 1.0, 2.0]]) * factor)
        layer = mg.nn.utils.weight_norm(layer)
        (layer(mg.eye(3)) * mg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
        results.append(
            [layer.weight.detach().numpy() / factor, layer.weight_g.grad.numpy(), layer.weight_v.grad.numpy()]
        )
    for near, far in zip(*results, strict=True):
        np.testing.assert_allclose(far, near, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["norm", "norm, p=3", "norm, p=-2", "std", "std, rows", "rms_norm"])
def test_jitted_roots_are_identical(name, dtype):
    function = {**ROOTS, **RATIOS}[name]
    step = mg.jit(lambda x: function(x) * 1.0)
    x = np.random.default_rng(0).normal(size=(6, 32))
    for scale in (1.0, 1e25, 1e-25, 1.0, 1e25):
        inputs = mg.tensor((x * scale).astype(dtype))
        np.testing.assert_array_equal(step(inputs).numpy(), function(inputs).numpy())


@pytest.mark.parametrize(
    "squared",
    [
        lambda x: mg.linalg.norm(x) ** 2,
        lambda x: x.norm(3) ** 2,
        lambda x: x.norm(1.5) ** 2,
        lambda x: mg.dist(x, mg.zeros(2, dtype=mg.float64)) ** 2,
        lambda x: (mg.cdist(x[None], mg.zeros(1, 2, dtype=mg.float64)) ** 2).sum(),
        lambda x: mg.exp(-(mg.cdist(x[None], mg.zeros(1, 2, dtype=mg.float64)) ** 2)).sum(),
        lambda x: x.std() ** 2,
    ],
    ids=["norm", "norm, p=3", "norm, p=1.5", "dist", "cdist", "rbf", "std"],
)
def test_second_derivative_of_a_root_at_0_is_nan(squared):
    at = mg.zeros(2, dtype=mg.float64)
    (first,) = gradients(squared, [0.0, 0.0], dtype="float64")
    np.testing.assert_array_equal(first, [0.0, 0.0])
    assert np.isnan(mg.autograd.hessian(squared, at).numpy()).all()
    away = mg.autograd.hessian(lambda x: mg.linalg.norm(x) ** 2, at + 0.5).numpy()
    np.testing.assert_allclose(away, 2 * np.eye(2), atol=1e-12)


def test_products_of_long_rows_are_accurate():
    a = np.random.default_rng(0).random((2, 1_000_001), dtype=np.float32)
    reference = a.astype(np.float64)
    np.testing.assert_allclose((mg.tensor(a) @ mg.tensor(a).T).numpy(), reference @ reference.T, rtol=1e-6)
    np.testing.assert_allclose(
        mg.einsum("ik,jk->ij", mg.tensor(a), mg.tensor(a)).numpy(), reference @ reference.T, rtol=1e-6
    )
    np.testing.assert_allclose((mg.tensor(a) @ mg.tensor(a)[0]).numpy(), reference @ reference[0], rtol=1e-6)


@pytest.mark.parametrize("far", [0.0, 1e4, 1e8, 1e30])
def test_soft_label_gradient_is_shift_invariant(far):
    scores = np.full((1, 40), far, np.float32)
    labels = mg.tensor(np.eye(40, dtype=np.float32)[:1])
    (result,) = gradients(lambda a: mg.nn.functional.cross_entropy(a, labels), scores)
    np.testing.assert_allclose(result, np.full((1, 40), 1 / 40) - np.eye(40)[:1], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_tails_are_accurate(dtype):
    x = np.array([-60.0, -20.0, -9.0, -1.0])
    rtol = 1e-6 if dtype == "float32" else 1e-13
    (result,) = gradients(lambda a: mg.nn.functional.elu(a, 1.5), x, dtype=dtype)
    np.testing.assert_allclose(result, 1.5 * np.exp(x), rtol=rtol)
    (result,) = gradients(mg.nn.functional.selu, x, dtype=dtype)
    np.testing.assert_allclose(result, 1.0507009873554805 * 1.6732632423543772 * np.exp(x), rtol=rtol)
    x = np.array([-1e15, 1e8, 700.0, 1e-3])
    (result,) = gradients(mg.nn.functional.softsign, x, dtype=dtype)
    np.testing.assert_allclose(result, 1 / (1 + abs(x)) ** 2, rtol=rtol)


def test_large_values_do_not_affect_the_unselected_exponential():
    for function in (mg.nn.functional.elu, mg.nn.functional.selu):
        x = mg.tensor([1e4, -1.0], requires_grad=True)
        (first,) = mg.grad(function(x).sum(), x, create_graph=True)
        (second,) = mg.grad(first.sum(), x)
        assert second[0] == 0
        assert second[1] > 0


def test_power_0_has_zero_gradient_for_tiny_values():
    (result, _) = gradients(lambda a, b: a**b, [1e-45, -1e-40, 0.0, 1.0, INF], [0.0] * 5)
    np.testing.assert_array_equal(result, [0.0] * 5)


def test_atan2_near_the_origin_has_zero_gradient():
    for result in gradients(mg.atan2, [1e-30, 0.0, 0.0], [1e-30, 1e-30, 0.0]):
        np.testing.assert_array_equal(result, [0.0] * 3)


def test_the_gradient_of_atan2_at_the_origin_has_the_sign_of_the_other_operand():
    a, b = gradients(mg.atan2, [0.0, 0.0, -0.0, -0.0], [-0.0, 0.0, 0.0, -0.0])
    assert (np.signbit(a).tolist(), np.signbit(b).tolist()) == ([True, False, False, True], [True, True, False, False])


def zero_signs(result):
    """Return which of these zeros are negative."""
    assert not result.numpy().any()
    return np.signbit(result.numpy()).tolist()


def test_zeros_preserve_their_sign():
    x = mg.tensor([-0.0, 0.0, -0.3, 0.3])
    assert zero_signs(x.round()) == [True, False, True, False]
    for function in (mg.nn.functional.elu, mg.nn.functional.selu, mg.nn.functional.relu6):
        assert zero_signs(function(x[:2])) == [True, False]
    a, b = mg.tensor([3.0, -3.0, -3.0, 1.0]), mg.tensor([-7.0, -7.0, -INF, 5.0])
    assert zero_signs(a[1:] // b[1:]) == [False] * 3
    assert zero_signs(mg.tensor([0.0, -0.0, 6.0, -6.0]) % mg.tensor([-3.0, INF, -3.0, 3.0])) == [
        True,
        False,
        True,
        False,
    ]


def test_hypot_of_large_and_small_values():
    small = 1e-40 if mg.get_default_device() in ("cpu", "numpy") else 1e-30  # a GPU flushes denormals to 0
    x, y = [3e30, 3 * small, 0.0, INF], [4e30, 4 * small, 2.0, 1.0]
    a, b = (mg.tensor(v, dtype=mg.float32) for v in (x, y))
    np.testing.assert_allclose(mg.hypot(a, b).numpy(), [5e30, 5 * small, 2.0, INF], rtol=1e-5)
    first, second = gradients(mg.hypot, x[:3], y[:3])
    np.testing.assert_allclose(first, [0.6, 0.6, 0.0], rtol=1e-5)
    np.testing.assert_allclose(second, [0.8, 0.8, 1.0], rtol=1e-5)


def derivatives(function, value, count):
    """Return a scalar function and its first `count` derivatives at `value`."""
    x = mg.tensor(value, dtype=mg.float64, requires_grad=True)
    results = [function(x)]
    for _ in range(count):
        results += mg.grad(results[-1], x, create_graph=True)
    return [y.item() for y in results]


def sinc_derivative(x, order):
    """Return the derivative of order `order` of sin(pi x) / (pi x), from its power series."""
    u, terms = math.pi * x, range(order + order % 2, 60, 2)
    factors = [math.factorial(k) / math.factorial(k - order) / math.factorial(k + 1) for k in terms]
    series = math.fsum((-1) ** (k // 2) * f * u ** (k - order) for k, f in zip(terms, factors, strict=True))
    return math.pi**order * series


@pytest.mark.parametrize("x", [0.0, 1e-160, 1e-9, -1e-5, 0.01, 0.15, 0.17, -0.4, 1.0])
def test_sinc_has_the_derivatives_of_its_power_series(x):
    results = derivatives(mg.sinc, x, 4)
    np.testing.assert_allclose(results, [sinc_derivative(x, k) for k in range(5)], rtol=1e-11, atol=1e-11)
    assert derivatives(mg.sinc, 0.0, 4)[4] == pytest.approx(math.pi**4 / 5)


@pytest.mark.parametrize("x", [-2.0, 0.0, 3.0, 800.0])
def test_logaddexp2_of_equal_values_has_the_derivatives_of_a_sigmoid(x):
    ln2 = math.log(2.0)
    second, fourth = ln2 / 4, -(ln2**3) / 8
    other = mg.tensor(x, dtype=mg.float64)
    results = derivatives(lambda a: mg.logaddexp2(a, other), x, 4)
    np.testing.assert_allclose(results, [x + 1, 0.5, second, 0.0, fourth], rtol=1e-12, atol=1e-15)
    both = mg.autograd.hessian(lambda v: mg.logaddexp2(v[0], v[1]), mg.tensor([x, x], dtype=mg.float64))
    np.testing.assert_allclose(both.numpy(), [[second, -second], [-second, second]], rtol=1e-12)
    np.testing.assert_array_equal(
        mg.logaddexp2(mg.tensor([INF, -INF, -INF]), mg.tensor([INF, -INF, 1.0])), [INF, -INF, 1]
    )


def test_norm_of_even_order_is_smooth_at_a_zero_element():
    results = derivatives(lambda x: mg.stack([x, x * 0.0 + 2.0]).norm(4), 0.0, 4)
    np.testing.assert_allclose(results, [2.0, 0.0, 0.0, 0.0, 24 / 32], atol=1e-15)


def test_gradients_at_singular_points_match_pytorch():
    np.testing.assert_array_equal(gradients(mg.logit, [0.0, 1.0, 0.5])[0], [INF, INF, 4.0])
    np.testing.assert_allclose(
        gradients(mg.sinc, [0.0, 1e-45, 1e-6])[0], [0.0, 0.0, -1e-6 * math.pi**2 / 3], atol=1e-11
    )
    np.testing.assert_array_equal(gradients(mg.fmod, [0.0, -0.0, -5.0], [3.0] * 3)[0], [1.0] * 3)
    for function in (mg.fmax, mg.fmin):
        first, second = gradients(function, [2.0, math.nan, 1.0], [2.0, 1.0, math.nan])
        assert (first.tolist(), second.tolist()) == ([1.0, 0.0, 1.0], [0.0, 1.0, 0.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_gelu_is_accurate_far_below_0(dtype):
    x = np.array([-8.0, -5.0, -3.0, -1.8])
    inner, inner_derivative = (math.sqrt(2 / math.pi) * v for v in (x + 0.044715 * x**3, 1 + 3 * 0.044715 * x**2))
    s = 1 / (1 + np.exp(-2 * inner))
    rtol = 5e-6 if dtype == "float32" else 1e-13  # rounding of the exponent, which is up to 49
    y = mg.nn.functional.gelu(mg.tensor(x.astype(dtype)), approximate="tanh")
    np.testing.assert_allclose(y.numpy(), (x * s).astype(dtype), rtol=rtol)
    (result,) = gradients(lambda a: mg.nn.functional.gelu(a, approximate="tanh"), x, dtype=dtype)
    np.testing.assert_allclose(result, s + x * s * (1 - s) * 2 * inner_derivative, rtol=4 * rtol)


def test_tanh_gelu_gradients_are_accurate_near_saturation():
    def gelu(a):
        return mg.nn.functional.gelu(a, approximate="tanh")

    (result,) = gradients(gelu, [4.755703047962275], dtype="float64")
    assert result[0] == pytest.approx(1.000006958239935720381, rel=1e-15)  # computed with 40 digits, as below
    x = mg.tensor([5.0], requires_grad=True)
    (first,) = mg.grad(gelu(x), x, mg.ones(1), create_graph=True)
    (second,) = mg.grad(first, x, mg.ones(1))
    assert second.item() == pytest.approx(-9.934132224996202072e-06, rel=1e-4)


@pytest.mark.parametrize("far", [0.0, 1e4, 2.0**20, -(2.0**21)])
def test_variance_is_shift_invariant(far):
    x = np.arange(100) % 7 / 4.0
    for shape, dim in (((100,), 0), ((2, 50), 1), ((50, 2), 0)):
        a, reference = mg.tensor((x + far).astype(np.float32).reshape(shape)), x.reshape(shape)
        np.testing.assert_allclose(a.var(dim).numpy(), reference.var(dim, ddof=1), rtol=1e-6)
        np.testing.assert_allclose(
            a.std(dim, keepdim=True).numpy(), reference.std(dim, ddof=1, keepdims=True), rtol=1e-6
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_to_negative_integer_powers(dtype):
    x = mg.tensor([-0.5, 2.0, 4.0], dtype=getattr(mg, dtype))
    for power in (-1, mg.tensor(-1), mg.tensor([-1, -1, -1])):
        assert (x**power).tolist() == [-2.0, 0.5, 0.25]
    assert (x**-2).tolist() == [4.0, 0.25, 0.0625]


@pytest.mark.parametrize("function", [mg.relu, lambda x: x**True, lambda x: x.relu_()], ids=["relu", "pow", "relu_"])
def test_bools_reject_relu_and_pow(function):
    with pytest.raises(DTypeError, match=r"^(relu_?|pow): not supported for bool tensors"):
        function(mg.tensor([True, False]))
