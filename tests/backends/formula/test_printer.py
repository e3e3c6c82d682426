"""Writing formulas: brackets, numbers and labels; and the printed formula means what was computed."""

import math
import random
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.formula import Formula, expression
from strategies import ELEMENTWISE


def test_brackets_keep_what_the_graph_computed():
    a, b, c = (Formula(name) for name in "abc")
    assert (a - (b - c)).formula() == "a − (b − c)"
    assert ((a - b) - c).formula() == "a − b − c"
    assert ((a + b) * c).formula() == "(a + b) · c"
    assert (a / (b * c)).formula() == "a / (b · c)"
    assert ((a + b) / c).latex() == r"\frac{a + b}{c}"
    assert ((a * b) ** (c + 1)).formula() == "(a · b)^(c + 1)"
    assert ((a**b) ** c).formula() == "(a^b)^c"
    assert (-(a + b)).formula() == "−(a + b)"
    assert (-(a * b)).formula() == "−a · b"
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


@merge_cases
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_precedence_of_an_op_follows_from_its_formula(op, declare):
    x, y = expression(op, op.inputs), expression(declare(op.formula, len(op.inputs)), op.inputs)
    for use in (lambda f: f - f, lambda f: f * f, lambda f: f**f, lambda f: -f, lambda f: f < f):
        assert use(y).formula() == use(x).formula()


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
def test_formula_of_a_custom_op_is_bracketed_inside_and_out(formula, text, latex, declare):
    a, b, c = (Formula(name) for name in "abc")
    product = declare(formula)(a + b) * c
    assert (product.formula(), product.latex()) == (text, latex)


def test_precedence_that_is_declared_loosens_a_formula(declare):
    tight, loose = declare(r"\text{the} {a}"), declare(r"\text{the} {a}", precedence=mg.Op.COMPARISON)
    assert (tight(Formula("a")) + 1.0).formula() == "the a + 1"
    assert (loose(Formula("a")) + 1.0).formula() == "(the a) + 1"


def test_adjacent_factors_are_separated_by_a_dot(declare):
    op = declare("2 {a}^2")
    assert expression(op, ["a"]).formula() == "2 a²"
    assert expression(op, [3.0]).formula() == "2 · 3²"
    assert (op(abs(Formula("a"))) + 1.0).formula() == "2 · |a|² + 1"
    assert expression(op, [3.0]).latex() == r"2 \cdot 3^{2}"
    assert "<mn>2</mn><mo>·</mo><msup>" in expression(op, [3.0]).mathml()


def test_root_is_bracketed_only_in_text():
    root = mg.OPS["sqrt"](Formula("x"))
    assert ((root**2).formula(), (root**2).latex()) == ("(√x)²", r"\sqrt{x}^{2}")
    assert mg.OPS["sqrt"](root).formula() == "√(√x)"
    assert mg.OPS["sqrt"](Formula("x") + 1.0).formula() == "√(x + 1)"
    assert (1.0 / root).formula() == "1 / √x"


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
    assert (Formula(x).formula(), Formula(x).latex()) == (text, latex)
    assert (Formula(x) ** 2.0).latex() == squared
    ElementTree.fromstring(Formula(x).mathml())


def test_large_and_small_numbers_are_powers_of_ten_in_mathml():
    power = "<msup><mrow><mn>10</mn></mrow><mrow><mrow><mo>−</mo><mn>7</mn></mrow></mrow></msup>"
    assert Formula(1e-7).mathml().endswith(f">{power}</math>")
    assert Formula(2.5e-7).mathml().endswith(f"><mrow><mn>2.5</mn><mo>·</mo>{power}</mrow></math>")


@merge_cases
@pytest.mark.parametrize("label", ["x1*w1 + b", "x - y", "a/b", "x²", "-x", "2 · x", "e^x", "n!"])
def test_label_that_is_an_expression_is_bracketed(label):
    assert (Formula(label) ** 2.0).formula() == f"({label})²"
    assert (1.0 - Formula(label)).latex().startswith(r"1 - \left(")


@merge_cases
@pytest.mark.parametrize(
    "label", ["w", "w_1", "w[0]", "p['b']", "layer.weight", "petal length", "重み", "x̂", "v₁₂", "f(x)"]
)
def test_label_that_is_a_name_is_not_bracketed(label):
    assert (Formula(label) ** 2.0).formula() == f"{label}²"


def test_label_of_several_words_keeps_its_spaces_in_latex():
    assert Formula("petal length").latex() == r"\mathrm{petal\ length}"


COMPARISONS = {"<": "lt", "≤": "le", ">": "gt", "≥": "ge", "=": "eq", "≠": "ne"}

FUNCTION_OPS = {"ln": "log", "σ": "sigmoid", "max": "maximum", "min": "minimum"}
FUNCTION_OPS |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arsinh": "asinh", "arcosh": "acosh"}
FUNCTION_OPS |= {"artanh": "atanh"}
# Booleans cannot be operands of arithmetic; and at jumps and edges rounding could change the result to 1 or nan.
UNSUITABLE_OPS = {*COMPARISONS.values(), "isnan", "isinf", "isfinite", "floor_divide", "remainder"}
UNSUITABLE_OPS |= {"floor", "ceil", "round", "trunc", "logical_and", "logical_or", "logical_xor", "logical_not"}
UNSUITABLE_OPS |= {"asin", "acos", "acosh", "atanh"}


class FormulaEvaluator:
    """Evaluator of a line of text by the usual conventions of mathematics, independent of the printer."""

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
        function = mg.OPS[FUNCTION_OPS.get(token, token)]
        squared = self.take("²")
        assert self.take("("), f"{token} of what?"
        arguments = [self.comparison()]
        while self.take(","):
            arguments.append(self.comparison())
        assert self.take(")")
        return mg.OPS["pow"](function(*arguments), 2.0) if squared else function(*arguments)


NAMES = {"a": 1.3, "b": 0.7, "c": 2.1, "e": math.e, "π": math.pi}
NUMBERS = (2.0, -3.0, 0.5, -1.5, 1e-7, 2.5e-6, 3.0, 1.0, 0.0)
CUSTOM_FORMULAS = {  # formulas of custom ops, and their meanings
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
    """Return a random formula and its value."""
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
    if not abs(value) < 1e4:  # also NaN: after rounding, the sine of a large number would differ
        raise OverflowError
    return op(*[formula for formula, _ in operands]), value


@pytest.mark.parametrize("seed", range(4))
def test_text_of_a_random_expression_has_its_value(seed, declare):
    ops = [(op, op) for op in ELEMENTWISE if not op.attrs and op.name not in UNSUITABLE_OPS]
    ops += [(declare(formula, meaning.__code__.co_argcount), meaning) for formula, meaning in CUSTOM_FORMULAS.items()]
    generator, read = random.Random(seed), 0
    for _ in range(300):
        try:
            formula, value = grow(generator, ops, 3)
        except (OverflowError, ZeroDivisionError):
            continue
        if not isinstance(formula, Formula):
            continue
        text = formula.formula()
        result = FormulaEvaluator(text, NAMES).read()
        assert math.isclose(result, value, rel_tol=1e-5, abs_tol=1e-9), (text, result, value)
        read += 1
    assert read > 100
