"""Formulas: what an op and its rules print, in LaTeX, MathML and text."""

import re
from xml.etree import ElementTree

import pytest

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative
from strategies import DIFFERENTIABLE

FORMULAS = {
    "add": "a + b", "sub": "a − b", "mul": "a · b", "div": "a / b", "neg": "−a", "pow": "a^b", "exp": "e^a",
    "log": "ln(a)", "sqrt": "√a", "sin": "sin(a)",
    "cos": "cos(a)", "tanh": "tanh(a)", "sigmoid": "σ(a)",
    "relu": "relu(a)", "abs": "|a|", "sign": "sign(a)",
    "maximum": "max(a, b)", "minimum": "min(a, b)", "where": "(b if a else c)",
    "lt": "a < b", "le": "a ≤ b", "gt": "a > b", "ge": "a ≥ b", "eq": "a = b", "ne": "a ≠ b",
}  # fmt: skip
DERIVATIVES = {
    "add": ["1", "1"], "sub": ["1", "−1"], "mul": ["b", "a"], "div": ["1 / b", "−y / b"], "neg": ["−1"],
    "pow": ["b · a^(b − 1)", "y · ln(a)"], "exp": ["y"], "log": ["1 / a"], "sqrt": ["1 / (2 · y)"], "sin": ["cos(a)"],
    "cos": ["−sin(a)"], "tanh": ["1 − y · y"], "sigmoid": ["y · (1 − y)"], "relu": ["(0 if y ≤ 0 else 1)"],
    "abs": ["sign(a)"], "sign": ["0"], "maximum": ["(1 if a > b else 0)", "(1 if b > a else 0)"],
    "minimum": ["(1 if a < b else 0)", "(1 if b < a else 0)"], "where": [None, "(1 if a else 0)", "(0 if a else 1)"],
}  # fmt: skip


@pytest.mark.parametrize("op", mg.OPS.values(), ids=lambda op: op.name)
def test_each_op_prints_its_formula(op):
    assert expression(op, op.inputs).text() == FORMULAS[op.name]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_rule_prints_its_derivative(op):
    printed = [local_derivative(op, slot, "y", op.inputs) for slot in range(len(op.inputs))]
    assert [p.text() if p else None for p in printed] == DERIVATIVES[op.name]


@pytest.mark.parametrize(
    ("op", "operands", "latex"),
    [
        ("div", ["a", "b"], r"\frac{a}{b}"),
        ("pow", [-3.0, 2.0], r"\left(-3\right)^{2}"),
        ("mul", ["a", -3.0], r"a \cdot \left(-3\right)"),
        ("add", [1.0, -3.0], r"1 + \left(-3\right)"),
        ("neg", [-3.0], r"-\left(-3\right)"),
        ("tanh", ["w1"], r"\tanh\left(w_{1}\right)"),
        ("abs", ["loss"], r"\left|\mathrm{loss}\right|"),
        ("where", ["m", "x", 0.0], r"\begin{cases} x & m \\ 0 & \text{otherwise} \end{cases}"),
        ("add", ["50% {x}", "a_b"], r"\mathrm{50\% \{x\}} + \mathrm{a\_b}"),
        ("exp", [float("inf")], r"e^{\infty}"),
    ],
)
def test_latex(op, operands, latex):
    assert expression(mg.OPS[op], operands).latex() == latex


def test_numbers_are_plugged_in_and_choices_decided():
    ops = mg.OPS
    assert local_derivative(ops["tanh"], 0, 0.5, [0.549306]).text() == "1 − 0.5 · 0.5"
    assert local_derivative(ops["relu"], 0, 0.0, [-3.0]).text() == "0"
    assert local_derivative(ops["maximum"], 1, 3.0, [2.0, 3.0]).text() == "1"
    assert local_derivative(ops["pow"], 0, 8.0, [2.0, 3.0]).text() == "3 · 2²"
    assert local_derivative(ops["pow"], 0, "y", ["a", 2.0]).text() == "2 · a"
    assert local_derivative(ops["div"], 1, 0.5, [1.0, 2.0]).text() == "−0.5 / 2"


def test_attributes_print_under_their_names_or_as_their_numbers():
    op = mg.Op("test_leaky", "{a}", vjp=(lambda g, a, slope: mg.where(a > 0, g, g * slope),), attrs=("slope",))
    try:
        assert local_derivative(op, 0, "y", ["a"]).text() == "(1 if a > 0 else slope)"
        assert local_derivative(op, 0, "y", [-2.0], {"slope": 0.1}).text() == "0.1"
    finally:
        del mg.OPS["test_leaky"]


def test_brackets_keep_what_the_graph_computed():
    a, b, c = (Formula(name) for name in "abc")
    assert (a - (b - c)).text() == "a − (b − c)"
    assert ((a - b) - c).text() == "a − b − c"
    assert ((a + b) * c).text() == "(a + b) · c"
    assert (a / (b * c)).text() == "a / (b · c)"
    assert ((a + b) / c).latex() == r"\frac{a + b}{c}"
    assert ((a * b) ** (c + 1)).text() == "(a · b)^(c + 1)"
    assert ((a**b) ** c).text() == "(a^b)^c"
    assert (-(a + b)).text() == "−(a + b)"
    assert (-(a * b)).text() == "−a · b"
    assert repr(a + 1) == "Formula(a + 1)"


def test_mathml_is_well_formed_and_a_name_cannot_leave_its_element():
    hostile = '<script>alert("x")</script>&'
    for op in mg.OPS.values():
        xml = expression(op, [hostile] * len(op.inputs)).mathml()
        root = ElementTree.fromstring(xml)
        assert not [e for e in root.iter() if e.tag.endswith("script")]
        assert hostile in "".join(root.itertext())
    assert expression(mg.OPS["sub"], ["x", -2.0]).mathml() == (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow><mi>x</mi><mo>−</mo>'
        "<mrow><mo>(</mo><mrow><mo>−</mo><mn>2</mn></mrow><mo>)</mo></mrow></mrow></math>"
    )


def test_a_formula_that_is_not_balanced_is_refused():
    from minigrad.backends.formula import _parse

    with pytest.raises(ValueError, match=re.escape("formula '{a}}': unbalanced at ['}']")):
        _parse("{a}}", ("a",), 0)
