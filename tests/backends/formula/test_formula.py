"""Formulas: what an op and its rules print, in LaTeX, MathML and text."""

import math
import random
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.formula import Formula, expression, local_derivative, product
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
    assert expression(op, op.inputs).text() == FORMULAS[op.name]


@merge_cases
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_rule_prints_its_derivative(op):
    printed = [local_derivative(op, slot, "y", op.inputs) for slot in range(len(op.inputs))]
    assert [None if p is None else p.text() for p in printed] == DERIVATIVES[op.name]


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


def test_numbers_are_plugged_in_and_choices_decided():
    ops = mg.OPS
    assert local_derivative(ops["tanh"], 0, 0.5, [0.549306]).text() == "1 − 0.5 · 0.5"
    assert local_derivative(ops["relu"], 0, 0.0, [-3.0]).text() == "0"
    assert local_derivative(ops["maximum"], 1, 3.0, [2.0, 3.0]).text() == "1"
    assert local_derivative(ops["pow"], 0, 8.0, [2.0, 3.0]).text() == "3 · 2²"
    assert local_derivative(ops["pow"], 0, "y", ["a", 2.0]).text() == "2 · a"
    assert local_derivative(ops["div"], 1, 0.5, [1.0, 2.0]).text() == "−1 / 2²"


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
    for op in ELEMENTWISE:
        xml = expression(op, [hostile] * len(op.inputs)).mathml()
        root = ElementTree.fromstring(xml)
        assert not [e for e in root.iter() if e.tag.endswith("script")]
        assert hostile in "".join(root.itertext())
    assert expression(mg.OPS["sub"], ["x", -2.0]).mathml() == (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow><mi>x</mi><mo>−</mo>'
        "<mrow><mo>(</mo><mrow><mo>−</mo><mn>2</mn></mrow><mo>)</mo></mrow></mrow></math>"
    )


@pytest.fixture
def declare():
    """Declares ops for one test: a formula and how many operands it has."""
    made = []

    def one(formula: str, arity: int = 1, rule: Callable[..., object] = lambda g: g, **options: object) -> mg.Op:
        made.append(f"test_formula_{len(made)}")
        return mg.Op(made[-1], formula, vjp=(rule,) * arity, **options)

    yield one
    for name in made:
        del mg.OPS[name]


def test_power_of_a_constant_is_computed_from_a_sum_or_a_difference_and_nothing_else(declare):
    def first(rule):
        return local_derivative(declare("{a}^{b}", 2, rule), 0, "y", ["x", 2.0]).text()

    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b - 1.0)) == "x"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b + 1.0)) == "x³"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, b * 2.0)) == "x^(2 · 2)"
    assert first(lambda g, a, b: g * mg.OPS["pow"](a, -b)) == "x⁻²"


def test_rule_that_asks_a_formula_for_its_truth_is_told_to_write_where(declare):
    op = declare("{a}", 1, lambda g, a: g * 2.0 * a if a > 0 else 0.0)
    with pytest.raises(TypeError) as error:
        local_derivative(op, 0, "y", ["x"])
    assert str(error.value) == (
        "x > 0 is a formula, neither true nor false.\n"
        "  A rule that chooses is written where(condition, a, b), not with if, and, or, not."
    )
    assert local_derivative(op, 0, 4.0, [2.0]).text() == "2 · 2"


@merge_cases
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_how_tightly_an_op_binds_can_be_read_off_its_formula(op, declare):
    x, y = expression(op, op.inputs), expression(declare(op.formula, len(op.inputs)), op.inputs)
    for use in (lambda f: f - f, lambda f: f * f, lambda f: f**f, lambda f: -f, lambda f: f < f):
        assert use(y).text() == use(x).text()


@merge_cases
@pytest.mark.parametrize(
    ("formula", "text", "latex"),
    [
        ("2 {a} + 1", "(2 (a + b) + 1) · c", r"\left(2 \left(a + b\right) + 1\right) \cdot c"),
        ("2 {a}", "2 (a + b) · c", r"2 \left(a + b\right) \cdot c"),
        (r"\frac{1}{2} {a}^2", "(1 / 2) (a + b)² · c", r"\frac{1}{2} \left(a + b\right)^{2} \cdot c"),
        (r"\pi ({a} + 1)", "π (a + b + 1) · c", r"\pi \left(a + b + 1\right) \cdot c"),
        ("-{a}", "(−(a + b)) · c", r"\left(-\left(a + b\right)\right) \cdot c"),
        (r"\ln \sin {a}", "ln(sin(a + b)) · c", r"\ln\left(\sin\left(a + b\right)\right) \cdot c"),
        (r"\sin^2 {a}", "sin²(a + b) · c", r"\sin^{2}\left(a + b\right) \cdot c"),
        (r"\ln \frac{a}{2}", "ln((a + b) / 2) · c", r"\ln\left(\frac{a + b}{2}\right) \cdot c"),
        ("{a}!", "(a + b)! · c", r"\left(a + b\right)! \cdot c"),
    ],
)
def test_formula_of_a_readers_own_op_is_bracketed_inside_and_out(formula, text, latex, declare):
    a, b, c = (Formula(name) for name in "abc")
    product = declare(formula)(a + b) * c
    assert (product.text(), product.latex()) == (text, latex)


def test_precedence_that_is_declared_loosens_a_formula(declare):
    tight, loose = declare(r"\text{the} {a}"), declare(r"\text{the} {a}", precedence=mg.Op.COMPARISON)
    assert (tight(Formula("a")) + 1.0).text() == "the a + 1"
    assert (loose(Formula("a")) + 1.0).text() == "(the a) + 1"


def test_factors_that_would_run_together_are_kept_apart_by_a_dot(declare):
    op = declare("2 {a}^2")
    assert expression(op, ["a"]).text() == "2 a²"
    assert expression(op, [3.0]).text() == "2 · 3²"
    assert (op(abs(Formula("a"))) + 1.0).text() == "2 · |a|² + 1"
    assert expression(op, [3.0]).latex() == r"2 \cdot 3^{2}"
    assert "<mn>2</mn><mo>·</mo><msup>" in expression(op, [3.0]).mathml()


def test_cases_of_a_readers_own_op_are_all_told(declare):
    op = declare(r"\begin{cases} 0 & {a} < 0 \\ {a} & {a} < 1 \\ 1 & \text{otherwise} \end{cases}")
    assert expression(op, ["x"]).text() == "(0 if x < 0 else x if x < 1 else 1)"


def test_root_is_bracketed_in_text_alone():
    root = mg.OPS["sqrt"](Formula("x"))
    assert ((root**2).text(), (root**2).latex()) == ("(√x)²", r"\sqrt{x}^{2}")
    assert mg.OPS["sqrt"](root).text() == "√(√x)"
    assert mg.OPS["sqrt"](Formula("x") + 1.0).text() == "√(x + 1)"
    assert (1.0 / root).text() == "1 / √x"


@merge_cases
@pytest.mark.parametrize(
    ("x", "text", "latex", "squared"),
    [
        (1e-7, "1e−07", "10^{-7}", r"\left(10^{-7}\right)^{2}"),
        (2.5e-7, "2.5e−07", r"2.5 \cdot 10^{-7}", r"\left(2.5 \cdot 10^{-7}\right)^{2}"),
        (-3e20, "−3e+20", r"-3 \cdot 10^{20}", r"\left(-3 \cdot 10^{20}\right)^{2}"),
        (math.nan, "NaN", r"\mathrm{NaN}", r"\mathrm{NaN}^{2}"),
        (-math.inf, "−∞", r"-\infty", r"\left(-\infty\right)^{2}"),
        (-0.0, "0", "0", "0^{2}"),
    ],
)
def test_numbers(x, text, latex, squared):
    assert (Formula(x).text(), Formula(x).latex()) == (text, latex)
    assert (Formula(x) ** 2.0).latex() == squared
    ElementTree.fromstring(Formula(x).mathml())


def test_large_and_small_numbers_are_powers_of_ten_in_mathml():
    power = "<msup><mrow><mn>10</mn></mrow><mrow><mrow><mo>−</mo><mn>7</mn></mrow></mrow></msup>"
    assert Formula(1e-7).mathml().endswith(f">{power}</math>")
    assert Formula(2.5e-7).mathml().endswith(f"><mrow><mn>2.5</mn><mo>·</mo>{power}</mrow></math>")


@merge_cases
@pytest.mark.parametrize("label", ["x1*w1 + b", "x - y", "a/b", "x²", "-x", "2 · x", "e^x", "n!"])
def test_label_that_is_an_expression_is_bracketed(label):
    assert (Formula(label) ** 2.0).text() == f"({label})²"
    assert (1.0 - Formula(label)).latex().startswith(r"1 - \left(")


@merge_cases
@pytest.mark.parametrize(
    "label", ["w", "w_1", "w[0]", "p['b']", "layer.weight", "petal length", "重み", "x̂", "v₁₂", "f(x)"]
)
def test_label_that_is_a_name_is_not_bracketed(label):
    assert (Formula(label) ** 2.0).text() == f"{label}²"


def test_label_of_several_words_keeps_its_spaces_in_latex():
    assert Formula("petal length").latex() == r"\mathrm{petal\ length}"


def test_a_formula_that_is_not_balanced_is_refused():
    from minigrad.backends.formula.reading import parse

    with pytest.raises(ValueError, match=re.escape("formula '{a}}': unbalanced at ['}']")):
        parse("{a}}", ("a",))


# --- what is printed means what was computed -------------------------------------------------------------------------


COMPARISONS = {"<": "lt", "≤": "le", ">": "gt", "≥": "ge", "=": "eq", "≠": "ne"}

SPOKEN = {"ln": "log", "σ": "sigmoid", "max": "maximum", "min": "minimum"}
SPOKEN |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arsinh": "asinh", "arcosh": "acosh"}
SPOKEN |= {"artanh": "atanh"}
# True or False, which is no number to go on with; or a jump or an edge, where a rounding would become a 1 or a nan.
NO_NUMBERS = {*COMPARISONS.values(), "isnan", "isinf", "isfinite", "floor_divide", "remainder"}
NO_NUMBERS |= {"floor", "ceil", "round", "trunc", "logical_and", "logical_or", "logical_xor", "logical_not"}
NO_NUMBERS |= {"asin", "acos", "acosh", "atanh"}


class Reader:
    """Computes what a line of text says, by the conventions of school: a reader who does not know who wrote it."""

    TOKEN = re.compile(r"\d+(?:\.\d+)?(?:e[+−]\d+)?|[⁰¹²³⁴-⁹⁻]+|[A-Za-zπ]+(?:\d(?=\())?|\S")
    SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

    def __init__(self, text: str, names: dict[str, float]) -> None:
        self.tokens, self.names = [*self.TOKEN.findall(text), "end"], names

    def read(self) -> float:
        value = self.comparison()
        assert self.tokens == ["end"], f"left over: {self.tokens}"
        return value

    def take(self, *expected: str) -> str | None:
        return self.tokens.pop(0) if self.tokens[0] in expected else None

    def comparison(self):
        value = self.sum()
        while sign := self.take(*COMPARISONS):
            value = mg.OPS[COMPARISONS[sign]](value, self.sum())
        return value

    def sum(self) -> float:
        value = -self.product() if self.take("−") else self.product()
        while sign := self.take("+", "−"):
            value = mg.OPS["add"](value, self.product()) if sign == "+" else mg.OPS["sub"](value, self.product())
        return value

    def product(self) -> float:
        value = self.power()
        while True:
            if sign := self.take("·", "/"):
                value = mg.OPS["mul"](value, self.power()) if sign == "·" else mg.OPS["div"](value, self.power())
            elif re.fullmatch(r"[A-Za-zπσ(√]+\d?", self.tokens[0]) and self.tokens[0] not in ("if", "else", "end"):
                value = mg.OPS["mul"](value, self.power())
            else:
                return value

    def power(self) -> float:
        base = self.atom()
        if self.take("^"):
            return mg.OPS["pow"](base, self.power())
        if re.fullmatch(r"[⁰¹²³⁴-⁹⁻]+", self.tokens[0]):
            return mg.OPS["pow"](base, float(self.tokens.pop(0).translate(self.SUPERSCRIPTS)))
        return base

    def atom(self) -> float:
        token = self.tokens.pop(0)
        if token == "√":
            return mg.OPS["sqrt"](self.atom())
        if token in ("(", "|"):
            value = self.comparison()
            if self.take("if"):
                condition = self.comparison()
                assert self.take("else")
                value = mg.OPS["where"](condition, value, self.comparison())
            assert self.take(")" if token == "(" else "|"), f"no end of the brackets before {self.tokens}"
            return mg.OPS["abs"](value) if token == "|" else value
        if token in self.names:
            return self.names[token]
        if token[0].isdigit():
            return float(token.replace("−", "-"))
        function = mg.OPS[SPOKEN.get(token, token)]
        squared = self.take("²")
        assert self.take("("), f"{token} of what?"
        arguments = [self.comparison()]
        while self.take(","):
            arguments.append(self.comparison())
        assert self.take(")")
        return mg.OPS["pow"](function(*arguments), 2.0) if squared else function(*arguments)


NAMES = {"a": 1.3, "b": 0.7, "c": 2.1, "e": math.e, "π": math.pi}
NUMBERS = (2.0, -3.0, 0.5, -1.5, 1e-7, 2.5e-6, 3.0, 1.0, 0.0)
OWN = {  # formulas that a reader's own op may have, and what they mean
    "2 {a} + 1": lambda a: 2.0 * a + 1.0,
    r"\frac{1}{2} {a}^2": lambda a: 0.5 * (a * a),
    "{a} {b}": lambda a, b: a * b,
    "-{a} + {b}": lambda a, b: b - a,
    r"\ln \tanh {a}": lambda a: mg.OPS["log"](mg.OPS["tanh"](a)),
    r"\ln \frac{a}{b}": lambda a, b: mg.OPS["log"](mg.OPS["div"](a, b)),
    r"\sin^2 {a} + 1": lambda a: mg.OPS["pow"](mg.OPS["sin"](a), 2.0) + 1.0,
    r"({a} - {b})^{2}": lambda a, b: (a - b) * (a - b),
    r"\frac{a}{b}^2": lambda a, b: mg.OPS["pow"](mg.OPS["div"](a, b), 2.0),
    r"\sqrt{a}^{b}": lambda a, b: mg.OPS["pow"](mg.OPS["sqrt"](a), b),
    r"\pi {a}^{b}": lambda a, b: math.pi * mg.OPS["pow"](a, b),
}


def grow(generator: random.Random, ops: list[tuple[mg.Op, Callable[..., float]]], depth: int) -> tuple[Formula, float]:
    """A random formula and its value."""
    if depth == 0 or generator.random() < 0.15:
        x = generator.choice(["a", "b", "c", *NUMBERS])
        return Formula(x), NAMES.get(x, x)
    op, meaning = generator.choice(ops)
    operands = [grow(generator, ops, depth - 1) for _ in op.inputs]
    if op.name == "where":
        condition = mg.OPS[generator.choice(list(COMPARISONS.values()))]
        first, second = Formula("a"), operands[0][0]
        operands[0] = (condition(first, second), condition(NAMES["a"], operands[0][1]))
    value = float(meaning(*[value for _, value in operands]))
    if not abs(value) < 1e4:  # NaN too: the sine of a large number would be another one after rounding
        raise OverflowError
    return op(*[formula for formula, _ in operands]), value


@pytest.mark.parametrize("seed", range(4))
def test_text_of_a_random_expression_has_its_value(seed, declare):
    ops = [(op, op) for op in ELEMENTWISE if not op.attrs and op.name not in NO_NUMBERS]
    ops += [(declare(formula, meaning.__code__.co_argcount), meaning) for formula, meaning in OWN.items()]
    generator, read = random.Random(seed), 0
    for _ in range(300):
        try:
            formula, value = grow(generator, ops, 3)
        except (OverflowError, ZeroDivisionError):
            continue
        if not isinstance(formula, Formula):
            continue
        text = formula.text()
        found = Reader(text, NAMES).read()
        assert math.isclose(found, value, rel_tol=1e-5, abs_tol=1e-9), (text, found, value)
        read += 1
    assert read > 100


# --- what a tensor's gradient is made of, in words -------------------------------------------------------------------


@merge_cases
@pytest.mark.parametrize("op", [op for op in mg.OPS.values() if op.differentiable], ids=lambda op: op.name)
def test_each_rule_can_be_shown_as_a_product_with_g(op):
    for slot, rule in enumerate(op.vjp):
        found = product(op, slot, "y", op.inputs)
        if rule is None:
            assert found is None
            continue
        assert found.latex()
        assert "\\" not in found.text()
        ElementTree.fromstring(found.mathml())


@merge_cases
@pytest.mark.parametrize(
    ("op", "slot", "text", "latex"),
    [
        ("matmul", 0, "g bᵀ", r"g b^{\top}"),
        ("linear", 1, "gᵀ a", r"g^{\top} a"),
        ("mean", 0, "expand(g) / count", r"\frac{\operatorname{expand}\left(g\right)}{\text{count}}"),
        ("softmax", 0, "y · (g − sum(g · y))", None),
        ("permute", 0, "permute⁻¹(g)", r"\operatorname{permute}^{-1}\left(g\right)"),
        ("max", 0, "(g if chosen else 0)", r"\begin{cases} g & \text{chosen} \\ 0 & \text{otherwise} \end{cases}"),
        ("recur", 1, "(∂y / ∂b)ᵀ g", r"\left(\frac{\partial y}{\partial b}\right)^{\top} g"),
        ("sin", 0, "g · cos(a)", r"g \cdot \cos\left(a\right)"),
        ("logsumexp", 0, "g · e^(a − y)", r"g \cdot e^{a - y}"),
        ("cat", 0, "part₀(g)", None),
    ],
)
def test_products_with_g(op, slot, text, latex):
    found = product(mg.OPS[op], slot, "y", mg.OPS[op].inputs)
    assert found.text() == text.replace("₀", "_0")
    assert latex is None or found.latex() == latex


def test_attributes_and_constants_are_in_a_product():
    assert product(mg.OPS["var"], 0, "y", "a", {"correction": 1}).text() == "2 / (count − 1) · g · (a − mean(a))"
    assert product(mg.OPS["norm"], 0, "y", "a", {"p": 2.0}).text() == "g · (sign(a) · (|a| / y))"
    assert product(mg.OPS["norm"], 0, "y", "a", {"p": 0.0}).text() == "0"
    assert product(mg.OPS["cat"], 1, "y", ["a", "b", "c"]).text() == "part_1(g)"
    assert product(mg.OPS["matmul"], 1, "y", ["x1*w1 + b", "b"]).text() == "(x1*w1 + b)ᵀ g"


def test_what_is_shown_may_name_only_what_there_is():
    with pytest.raises(DeclarationError, match=re.escape("a rule asks for ['w'], but there is only ['a', 'g', 'y']")):
        mg.Op("test_shown", "{a}", vjp=(lambda g: g,), shown=(r"\operatorname{sum} {g} {w}",))
