"""The kernels on floats: IEEE 754 at every corner, as NumPy has it."""

import math
import operator

import pytest

from minigrad.kernels import dispatch, kernels_of

np = pytest.importorskip("numpy")

CORNERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    1e308,
    -1e308,
    5e-324,
    1e3,
    -1e3,
    math.inf,
    -math.inf,
    math.nan,
)
UNARY = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0.0),
    "sign": lambda x: np.nan_to_num(np.sign(x)),  # as PyTorch: NumPy's sign of nan is nan
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def same(ours, theirs, *, signed_zero=True):
    theirs = float(theirs)
    if math.isnan(theirs):
        return math.isnan(ours)
    close = ours == theirs or math.isclose(ours, theirs, rel_tol=1e-15, abs_tol=5e-324)
    return close and (not signed_zero or ours != 0 or math.copysign(1, ours) == math.copysign(1, theirs))


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_number_is_numpy_s_at_every_corner(name):
    with np.errstate(all="ignore"):
        for x in CORNERS:
            assert same(
                dispatch(name, "python", (x,)),
                UNARY[name](np.float64(x)),
                signed_zero=name not in ("relu", "sign"),
            ), x


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_numbers_is_numpy_s_at_every_corner(name):
    with np.errstate(all="ignore"):
        for x in CORNERS:
            for y in CORNERS:
                if (name, y) == ("pow", 0.5):
                    continue  # NumPy takes a short cut through sqrt, which differs from IEEE's pow at -0 and -inf
                expected = BINARY[name](np.float64(x), np.float64(y))
                ours = dispatch(name, "python", (x, y))
                assert same(ours, expected, signed_zero=name not in ("maximum", "minimum")), (x, y)


def test_where_chooses_and_never_mixes():
    assert dispatch("where", "python", (True, 1.0, math.nan)) == 1.0
    assert dispatch("where", "python", (False, math.inf, 2.0)) == 2.0


def test_every_kernel_of_the_device_is_compared_here():
    from minigrad import OPS

    compared = {*UNARY, *BINARY, "where"}
    assert {name for name in OPS if "python" in kernels_of(name)} <= compared
