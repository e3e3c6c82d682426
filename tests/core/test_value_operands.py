"""Operands and data of a Value: scalars are accepted, other types and tensors are rejected."""

import re

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import Value
from minigrad.core.errors import DTypeError
from needs import needs


@merge_cases
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + 2", 5.0),
        ("2 + a", 5.0),
        ("a - 2", 1.0),
        ("2 - a", -1.0),
        ("a * 2", 6.0),
        ("2 * a", 6.0),
        ("a / 2", 1.5),
        ("2 / a", 2 / 3),
        ("a**2", 9.0),
        ("2**a", 8.0),
        ("-a", -3.0),
        ("abs(-a)", 3.0),
        ("a.max(5)", 5.0),
        ("a.min(5)", 3.0),
        ("max(a, Value(1.0))", 3.0),
        ("sum([a, a, a])", 9.0),
    ],
)
def test_scalars_are_valid_on_either_side(expression, expected):
    assert eval(expression, {"a": Value(3.0), "Value": Value}).data == expected


def test_comparisons_use_values_and_sets_use_identity():
    a, b = Value(2.0), Value(2.0)
    assert a == b
    assert a == 2
    assert a != 3
    assert a < 3 <= Value(3.0)
    assert a >= b
    assert (a == "2") is False
    assert (a == None) is False  # noqa: E711 -- the comparison is the subject
    assert len({a, b}) == 2
    with pytest.raises(TypeError, match="'<' not supported between instances of 'Value' and 'str'"):
        _ = a < "2"


def test_a_value_converts_to_float_bool_and_str():
    assert float(Value(2.5)) == 2.5
    assert Value(2.5).item() == 2.5
    assert [bool(Value(x)) for x in (0.0, -0.0, 0.1)] == [False, False, True]
    assert f"{Value(2.0):.3f} {Value(2.0)}" == "2.000 Value(2.0)"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("3", "Value: '3' is a str; expected a real scalar, an int or a float."),
        (
            None,
            "Value: None is a NoneType; expected a real scalar, an int or a float.",
        ),
        (
            1j,
            "Value: 1j is a complex; expected a real scalar, an int or a float.",
        ),
        (
            [1.0],
            "Value: [1.0] is a list; expected a real scalar, an int or a float.",
        ),
    ],
)
def test_data_must_be_a_real_scalar(wrong, message):
    with pytest.raises(DTypeError) as error:
        Value(wrong)
    assert str(error.value) == message


def test_a_value_of_a_value_raises():
    with pytest.raises(
        DTypeError, match=r"Value: Value\(2\.0\) is a Value; expected a real scalar.\n  Pass x.data or float"
    ):
        Value(Value(2.0))


def test_ints_beyond_float_and_other_numpy_scalars_raise():
    import numpy as np

    with pytest.raises(DTypeError, match=r"mul: the integer is too large to convert to float; the maximum is 1\.8e308"):
        Value(1.0) * 10**400
    for wrong in (np.complex128(2 + 1j), np.str_("3"), np.array([1.0])):
        with pytest.raises(DTypeError, match="expected a real scalar"):
            Value(wrong)
    with pytest.raises(DTypeError, match="expected a real scalar"):
        Value(1.0) * np.array([1.0, 2.0])


def test_unary_plus_and_int_work():
    a = Value(2.7)
    assert +a is a
    assert int(a) == 2


def test_an_operand_of_an_unsupported_type_raises():
    with pytest.raises(DTypeError, match="mul: 'x' is a str; expected a real scalar"):
        Value(2.0) * "x"
    with pytest.raises(DTypeError, match=r"sub: \[1\] is a list; expected a real scalar"):
        [1] - Value(2.0)


def test_a_foreign_type_gets_its_reflected_operator():
    class Metres:
        def __radd__(self, other):
            return ("metres", other)

    a = Value(2.0)
    assert a + Metres() == ("metres", a)


def test_numpy_scalars_are_valid_on_either_side():
    import numpy as np

    a = Value(3.0)
    for two in (np.float64(2), np.float32(2), np.int64(2), np.array(2.0)):
        assert (a * two).data == 6.0
        assert (two * a).data == 6.0
        assert type((two * a).data) is float


SIGNS = "+ - * / ** < <= > >= == !="
MEETINGS = [
    *[f"{left} {sign} {right}" for sign in SIGNS.split() for left, right in ("vt", "tv")],
    *[f"mg.{name}({operands})" for name in ("maximum", "minimum", "pow") for operands in ("v, t", "t, v")],
    "mg.where(True, v, t)",
    "mg.where(True, t, v)",
    "Value(t)",
    "setattr(v, 'data', t)",
    "v.max(t)",
    "v.backward(t)",
]


def refusal(expression, tensor):
    v = Value(1.0)
    with pytest.raises(DTypeError) as caught:
        eval(expression, {"v": v, "t": tensor, "mg": mg, "Value": Value})
    assert (v.data, v.grad) == (1.0, None)
    return str(caught.value)


@merge_cases
@pytest.mark.parametrize("expression", MEETINGS)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_mixing_a_value_and_a_tensor_raises(expression, shape):
    needs("numpy")
    message = refusal(expression, mg.ones(*shape))
    assert re.search(r"tensor\(.*\) is a Tensor; expected a real|Value\(1\.0\) is a Value; expected a real", message)


@merge_cases
@pytest.mark.parity
@pytest.mark.parametrize("expression", MEETINGS)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_mixing_a_value_and_a_pytorch_tensor_raises(torch, expression, shape):
    assert "is a torch.Tensor; expected a real scalar, an int or a float" in refusal(expression, torch.ones(shape))


@merge_cases
@pytest.mark.parametrize("expression", [f"t {sign}= v" for sign in ("+", "-", "*", "/", "**")] + ["t.copy_(v)"])
def test_writing_a_value_into_a_tensor_raises(expression):
    needs("numpy")
    space = {"t": mg.ones(2), "v": Value(2.0)}
    with pytest.raises(DTypeError, match=r"Value\(2\.0\) is a Value; expected a real scalar"):
        exec(expression, space)
    assert space["t"].tolist() == [1.0, 1.0]
