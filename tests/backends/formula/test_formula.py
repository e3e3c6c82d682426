"""Formulas: the LaTeX, MathML and text that an op and its rules print."""

import re
from xml.etree import ElementTree

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.formula import expression, local_derivative, product
from minigrad.core.errors import DeclarationError
from strategies import DIFFERENTIABLE, ELEMENTWISE

FORMULAS = {
    "add": "a + b", "sub": "a − b", "mul": "a · b", "div": "a / b", "neg": "−a", "pow": "a^b", "exp": "e^a",
    "log": "ln(a)", "sqrt": "√a", "sin": "sin(a)",
    "cos": "cos(a)", "tanh": "tanh(a)", "sigmoid": "σ(a)",
    "relu": "relu(a)", "abs": "|a|", "sign": "sign(a)",
    "maximum": "max(a, b)", "minimum": "min(a, b)", "where": "(b if a else c)",
    "lt": "a < b", "le": "a ≤ b", "gt": "a > b", "ge": "a ≥ b", "eq": "a = b", "ne": "a ≠ b",
    "square": "a²", "reciprocal": "1 / a", "rsqrt": "1 / √a", "expm1": "e^a − 1", "log1p": "ln(1 + a)",
    "log2": "log2(a)", "tan": "tan(a)", "asin": "arcsin(a)", "acos": "arccos(a)", "atan": "arctan(a)",
    "sinh": "sinh(a)", "cosh": "cosh(a)", "asinh": "arsinh(a)", "acosh": "arcosh(a)", "atanh": "artanh(a)",
    "erf": "erf(a)", "atan2": "atan2(a, b)", "floor": "floor(a)", "ceil": "ceil(a)", "round": "round(a)",
    "trunc": "trunc(a)", "floor_divide": "floor(a / b)", "remainder": "remainder(a, b)",
    "isnan": "isnan(a)", "isinf": "isinf(a)", "isfinite": "isfinite(a)",
    "logical_and": "a ∧ b", "logical_or": "a ∨ b", "logical_xor": "a ⊕ b", "logical_not": "not(a)",
    "softplus": "ln(1 + e^a)", "silu": "a · σ(a)", "mish": "a · tanh(ln(1 + e^a))", "softsign": "a / (1 + |a|)",
    "relu_backward": "(0 if b ≤ 0 else a)", "relu6": "relu6(a)", "hardtanh": "hardtanh(a)", "selu": "selu(a)",
    "clamp": "clamp(a)", "lerp": "a + c · (b − a)", "elu": "elu(a)", "leaky_relu": "leakyrelu(a)",
    "prelu": "prelu(a, b)", "step": "step(a)", "gelu": "a / 2 · (1 + erf(a / √2))",
    "gelu_tanh": "a / 2 · (1 + tanh(√(2 / π) · (a + 0.044715 · a³)))",
    "gelu_backward": "a · (1 / 2 · (1 + erf(b / √2)) + b · (e^(−b² / 2) / √(2 · π)))", "gelu_tanh_backward": (
            "a · (1 / 2 · (1 + tanh(√(2 / π) · (b + 0.044715 · b³))) + b / 2 · (1 − tanh²(√(2 / π) · (b + 0.044715"
            " · b³))) · √(2 / π) · (1 + 0.134145 · b²))"
        ),
}  # fmt: skip
DERIVATIVES = {
    "add": ["1", "1"], "sub": ["1", "−1"], "mul": ["b", "a"], "div": ["1 / b", "−a / b²"], "neg": ["−1"],
    "pow": ["b · a^(b − 1)", "y · ln(a)"], "exp": ["y"], "log": ["1 / a"], "sqrt": ["1 / (2 · y)"], "sin": ["cos(a)"],
    "cos": ["−sin(a)"], "tanh": ["1 − y · y"], "sigmoid": ["y · (1 − y)"], "relu": ["(0 if y ≤ 0 else 1)"],
    "abs": ["sign(a)"], "sign": ["0"], "maximum": ["(1 if a > b else 0)", "(1 if b > a else 0)"],
    "minimum": ["(1 if a < b else 0)", "(1 if b < a else 0)"], "where": [None, "(1 if a else 0)", "(0 if a else 1)"],
    "square": ["2 · a"], "reciprocal": ["−y · y"], "rsqrt": ["−0.5 · (y · y · y)"], "expm1": ["y + 1"],
    "log1p": ["1 / (1 + a)"], "log2": ["1 / (a · 0.693147)"], "tan": ["1 + y · y"], "asin": ["1 / √(1 − a · a)"],
    "acos": ["−1 / √(1 − a · a)"], "atan": ["1 / (a · a + 1)"], "sinh": ["cosh(a)"], "cosh": ["sinh(a)"],
    "asinh": ["1 / √(a · a + 1)"], "acosh": ["1 / √(a · a − 1)"], "atanh": ["1 / (1 − a · a)"],
    "erf": ["1.12838 · e^(−a · a)"], "atan2": ["b / (a · a + b · b)", "−a / (a · a + b · b)"],
    "floor": ["0"], "ceil": ["0"], "round": ["0"], "trunc": ["0"], "remainder": ["1", "−floor(a / b)"],
    "softplus": ["σ(a)"], "silu": ["σ(a) · (1 + a · (1 − σ(a)))"],
    "mish": ["tanh(ln(1 + e^a)) + a · (σ(a) · (1 − tanh(ln(1 + e^a))²))"], "softsign": ["1 / (1 + |a|)²"],
    "relu_backward": ["(0 if b ≤ 0 else 1)", "0"],
    "relu6": ["(0 if y ≤ 0 else (0 if y ≥ 6 else 1))"],
    "hardtanh": ["(0 if y ≤ min_val else (0 if y ≥ max_val else 1))"], "selu": ["(1.7581 · e^a if a ≤ 0 else 1.0507)"],
    "clamp": ["((1 if a ≤ max else 0) if a ≥ min else 0)"], "lerp": ["1 − c", "c", "b − a"],
    "elu": ["(alpha · e^a if a ≤ 0 else 1)"], "leaky_relu": ["(1 if a > 0 else negative_slope)"],
    "prelu": ["(1 if a > 0 else b)", "(0 if a > 0 else a)"], "step": ["0"],
    "gelu": ["0.5 · (1 + erf(a · 0.707107)) + a · (0.398942 · e^(−0.5 · (a · a)))"],
    "gelu_tanh": [
        (
            "0.5 · (1 + tanh(0.797885 · (a + 0.044715 · (a · (a · a))))) + 0.5 · a · "
            "((1 − tanh(0.797885 · (a + 0.044715 · (a · (a · a))))²) · (0.797885 · (1 + 0.134145 · (a · a))))"
        )
    ],
    "gelu_backward": [
        "0.5 · (1 + erf(b · 0.707107)) + b · (0.398942 · e^(−0.5 · (b · b)))",
        "a · (0.398942 · e^(−0.5 · (b · b)) · (2 − b · b))",
    ],
    "gelu_tanh_backward": [
        (
            "0.5 · (1 + tanh(0.797885 · (b + 0.044715 · (b · (b · b))))) + 0.5 · b · ((1 − tanh(0.797885"
            " · (b + 0.044715 · (b · (b · b))))²) · (0.797885 · (1 + 0.134145 · (b · b))))"
        ),
        (
            "a · ((1 − tanh(0.797885 · (b + 0.044715 · (b · (b · b))))²) · (0.797885 · (1 + 0.134145 · (b · b)) + b · "
            "(0.107032 · b − tanh(0.797885 · (b + 0.044715 · (b · (b · b)))) · "
            "(0.797885 · (1 + 0.134145 · (b · b)))²)))"
        ),
    ],
}  # fmt: skip


@merge_cases
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_each_op_prints_its_formula(op):
    assert expression(op, op.inputs).formula() == FORMULAS[op.name]


@merge_cases
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_rule_prints_its_derivative(op):
    printed = [local_derivative(op, slot, "y", op.inputs) for slot in range(len(op.inputs))]
    assert [None if p is None else p.formula() for p in printed] == DERIVATIVES[op.name]


@merge_cases
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
        ("add", ["50% {x}", "a_b"], r"\left(\mathrm{50\%\ \{x\}}\right) + \mathrm{a\_b}"),
        ("exp", [float("inf")], r"e^{\infty}"),
        ("relu6", ["a"], r"\operatorname{\text{relu6}}\left(a\right)"),
        ("leaky_relu", ["a"], r"\operatorname{leakyrelu}\left(a\right)"),
    ],
)
def test_latex(op, operands, latex):
    assert expression(mg.OPS[op], operands).latex() == latex


def test_values_are_substituted_and_branches_resolved():
    ops = mg.OPS
    assert local_derivative(ops["tanh"], 0, 0.5, [0.549306]).formula() == "1 − 0.5 · 0.5"
    assert local_derivative(ops["relu"], 0, 0.0, [-3.0]).formula() == "0"
    assert local_derivative(ops["maximum"], 1, 3.0, [2.0, 3.0]).formula() == "1"
    assert local_derivative(ops["pow"], 0, 8.0, [2.0, 3.0]).formula() == "3 · 2²"
    assert local_derivative(ops["pow"], 0, "y", ["a", 2.0]).formula() == "2 · a"
    assert local_derivative(ops["div"], 1, 0.5, [1.0, 2.0]).formula() == "−1 / 2²"


def test_attributes_print_as_names_or_values():
    op = mg.Op("test_leaky", "{a}", vjp=(lambda g, a, slope: mg.where(a > 0, g, g * slope),), attrs=("slope",))
    try:
        assert local_derivative(op, 0, "y", ["a"]).formula() == "(1 if a > 0 else slope)"
        assert local_derivative(op, 0, "y", [-2.0], {"slope": 0.1}).formula() == "0.1"
    finally:
        del mg.OPS["test_leaky"]


def test_power_of_a_constant_is_computed_from_a_sum_or_a_difference_and_nothing_else(declare):
    def first(rule):
        return local_derivative(declare("{a}^{b}", 2, rule), 0, "y", ["x", 2.0]).formula()

    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b - 1.0)) == "x"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b + 1.0)) == "x³"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b * 2.0)) == "x^(2 · 2)"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, -b)) == "x⁻²"


def test_truth_value_of_a_formula_raises_with_advice(declare):
    op = declare("{a}", 1, lambda g, a: g * 2.0 * a if a > 0 else 0.0)
    with pytest.raises(TypeError) as error:
        local_derivative(op, 0, "y", ["x"])
    assert str(error.value) == (
        "The truth value of the formula x > 0 is undefined.\n"
        "  Write where(condition, a, b) in a rule instead of if, and, or, not."
    )
    assert local_derivative(op, 0, 4.0, [2.0]).formula() == "2 · 2"


def test_all_cases_of_a_custom_op_are_printed(declare):
    op = declare(r"\begin{cases} 0 & {a} < 0 \\ {a} & {a} < 1 \\ 1 & \text{otherwise} \end{cases}")
    assert expression(op, ["x"]).formula() == "(0 if x < 0 else x if x < 1 else 1)"


def test_a_formula_that_is_not_balanced_is_refused():
    from minigrad.backends.formula.parser import parse

    with pytest.raises(ValueError, match=re.escape("formula '{a}}': unbalanced at ['}']")):
        parse("{a}}", ("a",))


@merge_cases
@pytest.mark.parametrize("op", [op for op in mg.OPS.values() if op.differentiable], ids=lambda op: op.name)
def test_each_rule_can_be_shown_as_a_product_with_g(op):
    for slot, rule in enumerate(op.vjp):
        rule_product = product(op, slot, "y", op.inputs)
        if rule is None:
            assert rule_product is None
            continue
        assert rule_product.latex()
        assert "\\" not in rule_product.formula()
        ElementTree.fromstring(rule_product.mathml())


@merge_cases
@pytest.mark.parametrize(
    ("op", "slot", "text", "latex"),
    [
        ("matmul", 0, "g bᵀ", r"g b^{\top}"),
        ("linear", 1, "gᵀ a", r"g^{\top} a"),
        ("mean", 0, "expand(g) / count", r"\frac{\operatorname{expand}\left(g\right)}{\text{count}}"),
        ("softmax", 0, "y · (g − sum(g · y))", None),
        ("permute", 0, "permute⁻¹(g)", r"\operatorname{permute}^{-1}\left(g\right)"),
        ("max", 0, "(g if selected else 0)", r"\begin{cases} g & \text{selected} \\ 0 & \text{otherwise} \end{cases}"),
        ("recur", 1, "(∂y / ∂b)ᵀ g", r"\left(\frac{\partial y}{\partial b}\right)^{\top} g"),
        ("sin", 0, "g · cos(a)", r"g \cdot \cos\left(a\right)"),
        ("logsumexp", 0, "g · e^(a − y)", r"g \cdot e^{a - y}"),
        ("cat", 0, "part₀(g)", None),
    ],
)
def test_products_with_g(op, slot, text, latex):
    rule_product = product(mg.OPS[op], slot, "y", mg.OPS[op].inputs)
    assert rule_product.formula() == text.replace("₀", "_0")
    assert latex is None or rule_product.latex() == latex


def test_attributes_and_constants_are_in_a_product():
    assert product(mg.OPS["var"], 0, "y", "a", {"correction": 1}).formula() == "2 / (count − 1) · g · (a − mean(a))"
    assert product(mg.OPS["norm"], 0, "y", "a", {"p": 2.0}).formula() == "g · (sign(a) · (|a| / y))"
    assert product(mg.OPS["norm"], 0, "y", "a", {"p": 0.0}).formula() == "0"
    assert product(mg.OPS["cat"], 1, "y", ["a", "b", "c"]).formula() == "part_1(g)"
    assert product(mg.OPS["matmul"], 1, "y", ["x1*w1 + b", "b"]).formula() == "(x1*w1 + b)ᵀ g"


def test_shown_formulas_may_use_only_available_names():
    with pytest.raises(DeclarationError, match=re.escape("a rule reads unknown names ['w']; expected ['a', 'g', 'y']")):
        mg.Op("test_shown", "{a}", vjp=(lambda g: g,), shown=(r"\operatorname{sum} {g} {w}",))
