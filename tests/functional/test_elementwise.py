"""Elementwise functions of mixed dtypes, at nan, infinities and ties: PyTorch's values, dtypes and gradients."""

import itertools
import re
from math import inf, nan

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError
from needs import needs
from parity import FLOATS, INTS, assert_agree, default_device
from taichi_device import DEVICE


@pytest.fixture(autouse=True, params=dict.fromkeys(["numpy", DEVICE]))
def _device(request):
    with default_device(request.param):
        yield


# Three times these values overflow their dtype, or lose digits in it.
VALUES = {"float64": [0.1, 2.7], "float32": [0.1, 1.3], "int64": [3, 2**40], "int32": [5, 2**30], "uint8": [200, 100]}
VALUES["bool"] = [True, False]
ALL_TYPES = [*FLOATS, *INTS]

SCALED = {
    "add": lambda F, a, b: (F.add(a, b, alpha=3), a.add(b, alpha=-1)),
    "sub": lambda F, a, b: (F.sub(a, b, alpha=3), a.sub(b, alpha=-1), F.rsub(a, b, alpha=3)),
    "addcmul": lambda F, a, b: (F.addcmul(a, b, b, value=3), a.addcmul(b, b, value=-1)),
    "addcdiv": lambda F, a, b: (F.addcdiv(a, b, b * b, value=3), a.addcdiv(b, b * b, value=-1)),
    "add_ and sub_": lambda F, a, b: a.clone().add_(b, alpha=3).sub_(b, alpha=-1),
    "addcmul_": lambda F, a, b: a.clone().addcmul_(b, b, value=3),
    "addcdiv_": lambda F, a, b: a.clone().addcdiv_(b, b * b, value=3),
}


def is_rejected(name, a, b):
    """Return whether PyTorch rejects the dtypes: bools in a difference, integers in a quotient or a float result."""
    kinds = np.dtype(a).kind, np.dtype(b).kind
    return ("b" in kinds and name != "add") or ("div" in name and kinds[1] != "f") or (name[-1] == "_" and a != b)


@merge_cases
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(ALL_TYPES, repeat=2)))
def test_alpha_and_value_multiply_in_the_result_dtype(name, a, b):
    needs("torch")
    if not is_rejected(name, a, b):
        array, scalar = np.array(VALUES[a], a), np.array(VALUES[b][0], b)
        assert_agree(SCALED[name], array, np.array(VALUES[b], b))
        assert_agree(SCALED[name], array, scalar)


def test_in_place_sum_is_computed_in_the_wider_dtype():
    x = mg.tensor([1.0]).add_(mg.tensor([0.1], dtype=mg.float64), alpha=3)
    assert x.tolist() == [np.float32(1.0 + 0.1 * 3)]
    assert mg.zeros(1, dtype=mg.int64).sub_(mg.tensor([100], dtype=mg.uint8), alpha=3).tolist() == [-300]


@merge_cases
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda n: mg.add(n, n, alpha=2.0),
            "add: for integer tensors, alpha must not be a floating-point number, but got 2.0.",
        ),
        (
            lambda n: n.sub_(n, alpha=0.5),
            "sub_: for integer tensors, alpha must not be a floating-point number, but got 0.5",
        ),
        (
            lambda n: mg.addcmul(n, n, n, value=2.5),
            "addcmul: for integer tensors, value must not be a floating-point number, but got 2.5",
        ),
        (lambda n: mg.addcmul(n, 2, n), "addcmul: tensor1 must be a tensor, not an int"),
        (
            lambda n: mg.add(n, n, alpha=300),
            "add: alpha: 300 cannot be converted to uint8 without overflow; its maximum is 255.",
        ),
    ],
)
def test_unrepresentable_factor_raises(call, message):
    with pytest.raises(DTypeError, match=re.escape(message)):
        call(mg.tensor([1], dtype=mg.uint8))


BOUNDS = {
    "clamp": lambda F, x, low, high: (F.clamp(x, low, high), x.clone().clamp_(low, high), x.clip(low, high)),
    "hardtanh": lambda F, x, low, high: (F.hardtanh(x, low, high), F.hardtanh(x.clone(), low, high, True)),
    "clamp_min": lambda F, x, low, _: (F.clamp_min(x, low), x.clone().clamp_min_(low), x.clamp(low)),
    "clamp_max": lambda F, x, _, high: (F.clamp_max(x, high), x.clone().clamp_max_(high), x.clamp(max=high)),
}


@merge_cases
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(("low", "high"), [(nan, 3.0), (-1.0, nan), (nan, nan), (nan, -inf), (inf, nan), (-1.0, 3.0)])
@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_bound_gives_nan(name, low, high, count, dtype):
    needs("torch")
    x = np.tile(np.array([nan, inf, -inf, 0.0, 1.0, -2.0, 3.5], dtype), count)
    assert_agree(lambda F, x: tuple(y.detach() for y in BOUNDS[name](F, x, low, high)), x)


def test_clamp_of_integers_by_nan_is_nan():
    assert mg.isnan(mg.tensor([1, -7]).clamp(nan, 3.0)).all()


def test_elu_of_0_is_0_for_any_alpha():
    assert mg.nn.functional.elu(mg.tensor([0.0, 2.0]), alpha=nan).tolist() == [0.0, 2.0]


@merge_cases
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "power", [16777215.0, 16777216.0, 16777217.0, 16777217, 16777218.0, -16777217, -16777219.0, 2.0**31 + 1, 2**53 + 1]
)
def test_large_odd_power_preserves_the_sign_and_its_derivative(dtype, power):
    needs("torch")
    x = np.array([-1.0, 1.0, -0.0, 0.0, -2.0, 0.5, inf, -inf, nan], dtype)
    assert_agree(lambda F, x: (F.pow(x, power), x**power, x.clone().pow_(power)), x)
    with np.errstate(all="ignore"):
        signs = np.signbit((mg.tensor(x) ** power).numpy())[:8]
        np.testing.assert_array_equal(signs, np.signbit(x.astype("float64") ** float(power))[:8])


def test_scalar_to_the_power_of_a_tensor_has_its_dtype():
    for dtype in (mg.int64, mg.int32, mg.uint8):
        assert (2 ** mg.tensor([3, 0], dtype=dtype)).dtype is dtype
    y = 2 ** mg.tensor([3, -1], dtype=mg.int32)
    assert (y.tolist(), y.dtype) == ([8, 0], mg.int32)


SPECIAL = [list(pair) for pair in itertools.product([inf, -inf, 0.0, 1.0, -2.0, nan], repeat=2)]


def test_logaddexp_of_infinities_has_the_gradient_of_the_larger():
    needs("torch")
    assert_agree(
        lambda F, a, b: F.logaddexp(a, b),
        *np.array([pair for pair in SPECIAL if pair not in ([inf, inf], [-inf, -inf])]).T,
    )
    both = mg.tensor([inf, -inf], requires_grad=True)
    y = mg.logaddexp(both, mg.tensor([inf, -inf]))
    assert (y.tolist(), mg.grad(y.sum(), both)[0].tolist()) == ([inf, -inf], [1.0, 1.0])


def test_logaddexp_of_equal_values_has_all_derivatives():
    a = mg.tensor([0.5], requires_grad=True, dtype=mg.float64)
    (first,) = mg.grad(mg.logaddexp(a, mg.tensor([0.5], dtype=mg.float64)).sum(), a, create_graph=True)
    (second,) = mg.grad(first.sum(), a)
    assert (first.item(), second.item()) == (0.5, 0.25)  # the derivatives of a sigmoid at 0


def test_hypot_of_an_infinity_and_nan_is_infinite():
    needs("torch")
    result = mg.hypot(*mg.tensor(SPECIAL).T)
    import torch

    np.testing.assert_array_equal(result.numpy(), torch.hypot(*torch.tensor(SPECIAL).T).numpy())


@merge_cases
@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_rounded_quotient_has_zero_gradient_even_at_0(mode):
    needs("torch")
    a, b = np.array([1.0, -3.0, 0.0, inf, 5.5, -5.5]), np.array([0.0, 0.0, 0.0, 2.0, 2.0, 2.0])
    assert_agree(lambda F, a, b: (F.div(a, b, rounding_mode=mode), F.div(a, 0.0, rounding_mode=mode)), a, b)
    assert_agree(lambda F, a, b: F.div(a[:, None], b, rounding_mode=mode), a, b)
    assert_agree(lambda F, a, b: a.clone().div_(b, rounding_mode=mode), a, b)


@merge_cases
@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_rounded_integer_quotient_is_exact(mode, dtype):
    needs("torch")
    a = np.array([2**40 + 1, 2**62 + 1, 7, -7, 7, -7, 0, -6]).astype(dtype)
    b = np.array([1, -1, 2, 2, -2, -2, 3, 3]).astype(dtype)
    assert_agree(lambda F, a, b: (F.div(a, b, rounding_mode=mode), F.div(a, 3, rounding_mode=mode)), a, b)
    assert_agree(lambda F, a, b: a.clone().div_(b, rounding_mode=mode).divide_(2, rounding_mode=mode), a, b)


def test_integer_division_by_zero_raises_in_both_modes():
    for mode in ("trunc", "floor"):
        with pytest.raises(mg.errors.DivisionError, match="integer division or modulo by zero"):
            mg.tensor([1]).div_(0, rounding_mode=mode)


def test_element_equal_to_its_bound_gets_the_full_gradient():
    needs("torch")
    points = [p for p in itertools.product([-inf, 0.0, 1.0, -2.0, inf], repeat=3) if p[1] != p[2]]
    x, low, high = np.array(points).T
    assert_agree(lambda F, x, low, high: F.clamp(x, low, high), x, low, high)
    assert_agree(lambda F, x, low, high: (F.clamp(x, low), F.clamp(x, max=high)), x, low, high)
    assert_agree(lambda F, x, low, high: (x.clone().clamp_(low, high), x.clone().clamp_min_(low)), x, low, high)
    assert_agree(lambda F, x, low: F.clamp(x.reshape(-1, 5), low), x, np.array([0.0, 1.0, -2.0, 3.0, inf]))


def test_tensor_bounds_propagate_nan():
    needs("torch")
    x, low, high = np.array(list(itertools.product([nan, 0.0, 1.0], repeat=3))).T
    assert_agree(lambda F, x, low, high: F.clamp(x, low, high).detach(), x, low, high)
    with mg.no_grad():
        assert_agree(lambda F, x, low, high: F.clamp(x.detach(), low, high).detach(), x, low, high)


def test_signbit_of_nan():
    for dtype in FLOATS:
        x = np.array([0.0, -0.0, nan, np.copysign(nan, -1.0), inf, -inf, 1.0, -1.0], dtype)
        assert mg.signbit(mg.tensor(x)).tolist() == np.signbit(x).tolist() == [False, True] * 4
        assert mg.signbit(mg.tensor(np.tile(x, 40))[::2]).tolist() == [False] * 160
    for dtype, expected in (("int64", True), ("int32", True), ("uint8", False), ("bool", False)):
        assert mg.signbit(mg.tensor(np.array([-1, 0]).astype(dtype))).tolist() == [expected, False]


def test_xlogy_of_0_is_0_and_promotes_dtypes():
    needs("torch")
    x, y = np.array(
        [pair for pair in SPECIAL if pair not in ([0.0, inf], [0.0, 0.0])]
    ).T  # the gradient at 0 differs from PyTorch's
    assert_agree(lambda F, x, y: F.xlogy(x, y), x, y)
    assert_agree(lambda F, x: tuple(F.xlogy(x, y).detach() for y in (inf, 0.0, nan, 2, -1.0)), x)
    assert_agree(lambda F, y: tuple(F.xlogy(x, y).detach() for x in (inf, 0.0, nan, 2)), y)
    assert mg.xlogy(mg.zeros(2), mg.tensor([inf, 0.0])).tolist() == [0.0, 0.0]
    for a, b in itertools.product(ALL_TYPES, repeat=2):
        assert_agree(lambda F, a, b: F.xlogy(a, b).detach(), np.array(VALUES[a], a), np.array(VALUES[b][0], b))
        assert_agree(lambda F, a, b: F.xlogy(a, b).detach(), np.array(VALUES[a][0], a), np.array(VALUES[b], b))


def test_uint8_remainder_by_minus_1_wraps_as_in_pytorch():
    assert mg.tensor([200, 255], dtype=mg.uint8).fmod(-1).tolist() == [200, 0]


TENSORS_ONLY = ["dist", "outer", "inner", "dot", "mv", "mm", "matmul", "prelu"]
BINARY = ["atan2", "div", "eq", "float_power", "fmax", "fmin", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum"]


@merge_cases
@pytest.mark.parametrize("name", TENSORS_ONLY)
@pytest.mark.parametrize("wrong", [4.0, 4, None, "4", [4.0, 4.0]])
def test_binary_functions_name_the_operand_that_is_not_a_tensor(name, wrong):
    x = mg.ones(2, 2) if name in ("mm", "mv", "matmul") else mg.ones(2)
    with pytest.raises(
        DTypeError, match=rf"{name}: .* must be a tensor, not .*\.\n  Convert it first: mg\.tensor\(x\)\."
    ):
        getattr(mg.functional, name)(x, wrong)
    with pytest.raises(DTypeError, match=rf"{name}: .* must be a tensor, not .*\."):
        getattr(mg.functional, name)(wrong, x)


@merge_cases
@pytest.mark.parametrize("name", BINARY)
def test_binary_elementwise_functions_accept_scalars(name):
    """As operators do, even where PyTorch requires two tensors; the scalar is promoted as by an operator."""
    function, x = getattr(mg.functional, name), mg.tensor([0.5, 2.0])
    for a, b, tensors in ((x, 3, (x, mg.tensor(3.0))), (0.5, x, (mg.tensor(0.5), x))):
        result, expected = function(a, b), function(*tensors)
        assert (result.dtype, result.tolist()) == (expected.dtype, expected.tolist())
    assert mg.hypot(mg.tensor([3]), 4.0).tolist() == [5.0]


@merge_cases
@pytest.mark.parametrize("name", ["xlogy", "fmod", "float_power", "hypot", "logaddexp", "fmax", "fmin"])
def test_functions_that_accept_scalars_name_invalid_operands(name):
    for wrong in (None, "4", [4.0]):
        with pytest.raises(DTypeError, match=f"{name}: a .* (is not supported|is neither)|{name}: None"):
            getattr(mg.functional, name)(mg.ones(2), wrong)
