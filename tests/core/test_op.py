"""Declarations of operations, their validation, and calls."""

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core import dispatch
from minigrad.core.errors import DeclarationError, DTypeError
from minigrad.core.op import OPS, Op
from strategies import ELEMENTWISE


@pytest.fixture
def scratch_op():
    """Declare temporary ops."""
    initial = set(OPS)
    yield Op
    for name in set(OPS) - initial:
        del OPS[name]


def test_an_op_saves_what_its_rules_name_and_nothing_else():
    saved = {name: set(op.saves) for name, op in OPS.items()}
    assert saved["add"] == set()
    assert saved["mul"] == {"a", "b"}
    assert saved["tanh"] == {"y"}
    assert saved["div"] == {"a", "b"}
    assert saved["where"] == {"a"}


def test_a_rule_with_an_unknown_parameter_raises(scratch_op):
    with pytest.raises(
        DeclarationError, match=r"Op 'odd': a rule reads unknown names \['q'\]; expected \['a', 'g', 'y'\]"
    ):
        scratch_op("odd", "{a}", vjp=(lambda g, q: g * q,))
    assert "odd" not in OPS


def test_one_rule_per_input_is_required(scratch_op):
    with pytest.raises(DeclarationError, match="but got 2 inputs, 1 rules"):
        scratch_op("odd", "{x}", inputs=("x", "w"), vjp=(lambda g: g,))


def test_builtin_ops_cannot_be_replaced_but_user_ops_can(scratch_op):
    with pytest.raises(DeclarationError, match="Op 'tanh' is a built-in op of minigrad; choose another name"):
        Op("tanh", "{a}", vjp=(lambda g: g,))
    scratch_op("mine", "{a}", vjp=(lambda g: g,))
    second = scratch_op("mine", "2 {a}", vjp=(lambda g: 2.0 * g,))  # as when a notebook cell runs twice
    assert OPS["mine"] is second


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ({"inputs": ("g",), "vjp": (lambda g: g,)}, r"\['g'\] cannot name operands"),
        ({"attrs": ("y",), "vjp": (lambda g: g,)}, r"\['y'\] cannot name operands"),
        ({"attrs": ("a",), "vjp": (lambda g: g,)}, r"\['a'\] cannot name operands"),
        ({"attrs": ("out",), "vjp": (lambda g: g,)}, r"\['out'\] cannot name operands"),
        ({"attrs": ("no name",), "vjp": (lambda g: g,)}, r"\['no name'\] cannot name operands"),
        ({"vjp": (lambda g: g,), "shown": (lambda q: q,)}, r"a rule reads unknown names \['q'\]"),
        ({"vjp": (lambda g: g,), "shown": ()}, "1 rules and 0 rules to show"),
    ],
    ids=["operand g", "attribute y", "attribute a", "attribute out", "no identifier", "shown asks", "shown misses"],
)
def test_an_inconsistent_declaration_raises(declaration, message):
    with pytest.raises(DeclarationError, match=message):
        Op("odd", "{a}", **declaration)
    assert "odd" not in OPS


def test_ops_may_have_many_operands_and_none_is_called_g(scratch_op):
    many = scratch_op("many", "{a}", vjp=(lambda g: g,) * 9)
    assert many.inputs == tuple("abcdefhij")


def test_a_call_with_invalid_arguments_raises(scratch_op):
    scaled = scratch_op("scaled", "{a}", vjp=(lambda g, p: g * p,), attrs=("p",))
    mg.kernel("scaled", "python")(lambda a, p=2.0: a * p)
    for wrong, message in (
        (lambda: scaled(Value(1.0)), r"scaled\(\) received .*: got \(…\) but expected \(a, p=…\)"),
        (lambda: scaled(1.0, q=2.0), r"scaled\(\) received .*: got \(…, q=…\) but expected \(a, p=…\)"),
        (lambda: mg.tanh(1.0, 2.0), r"tanh\(\) received .*: got \(…, …\) but expected \(a\)"),
        (lambda: mg.exp(), r"exp\(\) received .*: got \(\) but expected \(a\)"),
        (lambda: mg.ops.add("a", "b"), "add: 'a' is a str; expected a Python scalar, a Value or a tensor"),
    ):
        with pytest.raises(DTypeError, match=message):
            wrong()


def test_ops_on_python_scalars_return_floats():
    assert repr(mg.abs(-3)) == "3.0"
    assert mg.ops.lt(1, 2) is True


def test_a_rule_may_read_a_shape_and_keyword_only_attributes(scratch_op):
    asks = scratch_op("asks", "{a}", vjp=(lambda g, *, a_shape: g * float(len(a_shape) + 1),))
    mg.kernel("asks", "python")(lambda a: a)
    x = Value(3.0)
    asks(x).backward()
    assert x.grad == 1.0
    assert asks.saves == frozenset()


def test_a_nondifferentiable_op_returns_a_constant_value(scratch_op):
    floor = scratch_op("whole", "{a}", vjp=(None,), aux=("rest",))
    mg.kernel("whole", "python")(lambda a: (a // 1.0, a % 1.0))
    y = floor(Value(2.5))
    assert (y.data, y.requires_grad, y.inputs) == (2.0, False, ())


def test_of_two_operands_one_may_be_without_a_rule(scratch_op):
    gate = scratch_op("gate", "{a}", vjp=(None, lambda g, a: g * a))
    mg.kernel("gate", "python")(lambda a, b: a * b)
    a, b = Value(2.0), Value(3.0)
    gate(a, b).backward()
    assert (a.grad, b.grad) == (None, 2.0)


def test_an_op_with_several_outputs_raises_for_values(scratch_op):
    pair = scratch_op("pair", "{a}", vjp=(lambda g: g[0],), outputs=2)
    mg.kernel("pair", "python")(lambda a: (a, a))
    with pytest.raises(DTypeError, match="pair: it returns 2 outputs, but a Value holds a single scalar"):
        pair(Value(1.0))


def test_attributes_and_auxiliary_results_reach_the_rules_that_name_them(scratch_op):
    """A scalar dropout: the kernel also returns its mask, which only the rule reads."""
    drop = scratch_op("drop", "{a}", vjp=(lambda g, mask, p: g * mask / (1.0 - p),), aux=("mask",), attrs=("p",))
    mg.kernel("drop", "python")(lambda a, p: (a * 1.0 / (1.0 - p), 1.0))
    x = Value(3.0)
    y = drop(x, p=0.5)
    y.backward()
    assert (y.data, x.grad) == (6.0, 2.0)
    assert drop.saves == {"mask"}


def test_an_op_with_three_operands_stores_all():
    a, b = Value(2.0), Value(5.0)
    y = mg.where(True, a, b)
    y.backward()
    assert y.inputs == (1.0, a, b)
    assert (y.data, a.grad, b.grad) == (2.0, 1.0, 0.0)


def test_every_op_has_a_domain_per_operand_a_formula_and_a_kernel():
    for name, op in ((op.name, op) for op in ELEMENTWISE):
        assert len(op.domain) == len(op.inputs), name
        assert all(f"{{{operand}}}" in op.formula for operand in op.inputs), name
        assert "python" in dispatch.get_kernels(name), name
