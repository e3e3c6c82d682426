"""Code generation for scalar operations: their formulas as forward code, and their rules as backward code.

The forward code comes from the op's formula; the backward code from its rules, applied to formulas. So a custom op
needs no code in another language if that language has the functions in its formula. Every subexpression is in
parentheses, so precedence does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad.backends.formula import Formula, Phrase
from minigrad.backends.formula.reading import SIGNS, Part, infix, parse
from minigrad.core.dispatch import kernels_of
from minigrad.core.op import Op

__all__ = ["LETTERS", "OURS", "Language", "Unwritable", "applied", "check", "rule_text"]

LETTERS = "abcdefhijk"  # names of operands in generated code
OURS = "erf round sign max min remainder clamp isnan isinf isfinite not"
OURS += " relu relu6 hardtanh leakyrelu prelu step elu selu"
_TRUTHS = {"isnan", "isinf", "isfinite", "not"}
_ARITHMETIC = {"+": "+", "-": "-", "/": "/", r"\cdot": "*", r"\times": "*", r"\odot": "*", "": "*"}
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Language(NamedTuple):
    """The syntax of a target language. Templates have ``{}`` for each operand."""

    reader: str
    """The name of the system that runs the code, for error messages."""
    functions: Mapping[str, str]
    """The function names in formulas, with their names in the language."""
    helpers: Mapping[str, str]
    """Functions without a name in formulas, or exact ones that replace a composition: sqrt, abs, exp, pow, …"""
    constants: Mapping[str, str]
    comparisons: Mapping[str, str]
    logic: Mapping[str, str]
    """By increasing precedence."""
    choice: str
    """Conditional expression of a condition and two values."""
    truth: str
    """Test of whether a value is true."""
    null: Callable[[str], str]
    """Function that returns the replacement for an attribute that is None, from its name."""
    literal: Callable[[float], str]


class Unwritable(Exception):
    """Why code cannot be generated, as a sentence."""


class _Truth(str):
    """Code of a boolean expression."""


class _Exp(str):
    """Code of an exponential, which ln and − 1 combine with without loss of accuracy."""

    __slots__ = ("power",)
    power: str

    @classmethod
    def of(cls, power: str, function: str) -> _Exp:
        text = cls(f"{function}({power})")
        text.power = power
        return text


def check(op: Op) -> None:
    """Raise Unwritable unless `op` is defined on scalars, and its rules read only operands, output and gradient."""
    if "python" not in kernels_of(op.name) or op.outputs > 1 or op.variadic:
        raise Unwritable(f"{op.name} is not defined on scalars.")
    if op.joint or op.aux:
        raise Unwritable(f"The rules of {op.name} read tensors saved by its kernel, which its formula does not define.")


def rule_text(
    op: Op, rule: Callable[..., Any], names: Mapping[str, str], attrs: Mapping[str, Any], language: Language
) -> str:
    """Return code for a rule of `op` on g, y and its operands, called by `names`. Raises Unwritable if it fails."""
    operands = [Formula(names[name]) for name in op.inputs]
    try:
        made = rule(Formula("g"), Formula("y"), *operands, **attrs, **dict.fromkeys(op.shapes, ()))
    except _FAILURES as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unwritable(f"A derivative rule of {op.name} is not a formula: {reason}") from None
    return _formula(made if isinstance(made, Formula) else Formula(made), language)


def _formula(formula: Formula, language: Language) -> str:
    """Return code for a formula whose symbols are names in the language."""
    op, value = formula.op, formula.value
    if op is None:
        return value if isinstance(value, str) else language.literal(float(value or 0.0))
    if isinstance(op, Phrase) or (not op.domain and "python" not in kernels_of(op.name)):
        raise Unwritable(f"{op.name} is not defined on scalars.")
    attrs = {name: _formula(x, language) if isinstance(x, Formula) else x for name, x in formula.attrs.items()}
    operands = [_formula(x, language) for x in formula.args]
    return applied(op, dict(zip(op.inputs, operands, strict=True)), attrs, language)


def applied(op: Op, operands: Mapping[str, str], attrs: Mapping[str, Any], language: Language) -> str:
    """Return code for the op's formula on `operands`. A single function of ours also gets omitted attributes."""
    whole: dict[str, str] = {}
    for name in op.attrs:
        x = attrs[name]
        if not isinstance(x, str | int | float | None):
            raise Unwritable(f"{op.name} has an attribute that is not a number, {name}={x!r}.")
        whole[name] = x if isinstance(x, str) else language.null(name) if x is None else language.literal(float(x))
    try:
        part = parse(op.formula, (*op.inputs, *op.attrs))
    except (IndexError, ValueError):
        raise Unwritable(f"The formula of {op.name} cannot be parsed.") from None
    writer = _FormulaWriter(op, {**operands, **whole}, language)
    if part.kind == "call" and part.parts[0].text.removeprefix("\\") in OURS.split():
        left_out = [whole[name] for name in op.attrs if not re.search(rf"\\{name}\b|\{{{name}\}}", op.formula)]
        return writer.call(part.parts[0], part.parts[1], tuple(left_out))
    return writer.write(part)


class _FormulaWriter:
    """Code generator for the formula of one op, given the code of its names."""

    def __init__(self, op: Op, names: Mapping[str, str], language: Language) -> None:
        self.op, self.names, self.language = op, names, language

    def refuse(self, what: str) -> Unwritable:
        what = what.removeprefix("\\")
        return Unwritable(
            f"The formula of {self.op.name} contains “{what}”, which {self.language.reader} does not support."
        )

    def write(self, part: Part) -> str:
        match part:
            case Part("operand", name):
                return self.names[name]
            case Part("number", digits):
                return self.language.literal(float(digits))
            case Part("letter", letter) if letter in self.language.constants:
                return self.language.constants[letter]
            case Part("letter", letter) if letter.removeprefix("\\") in self.names:
                return self.names[letter.removeprefix("\\")]
            case Part("frac", _, (above, below)):
                return f"({self.write(above)} / {self.write(below)})"
            case Part("sqrt", _, (inner,)):
                return self.helped("sqrt", self.write(inner))
            case Part("power", _, (base, exponent)):
                return self.power(base, self.write(exponent))
            case Part("fence", "()", (inner,)):
                return self.write(inner)
            case Part("fence", "||", (inner,)):
                return self.helped("abs", self.write(inner))
            case Part("call", _, (name, argument)):
                return self.call(name, argument)
            case Part("cases", _, cells):
                return self.cases(cells)
            case Part("row", _, row):
                return self.row(row)
        raise self.refuse(part.text or part.kind)

    def power(self, base: Part, exponent: str) -> str:
        if base == Part("letter", "e"):
            return _Exp.of(exponent, self.language.helpers["exp"])
        raised = self.write(base)
        if exponent == self.language.literal(2.0) and raised.isidentifier():
            return f"({raised} * {raised})"
        return self.helped("pow", raised, exponent)

    def helped(self, name: str, *given: str) -> str:
        """Return a call of one of the language's helpers."""
        return f"{self.language.helpers[name]}({', '.join(given)})"

    def call(self, name: Part, argument: Part, more: tuple[str, ...] = ()) -> str:
        if name.kind == "power":
            return self.helped("pow", self.call(name.parts[0], argument, more), self.write(name.parts[1]))
        word = name.text.removeprefix("\\")
        if name.kind != "name" or word not in self.language.functions:
            raise self.refuse(word or name.kind)
        inner = argument.parts[0] if argument.kind == "fence" and argument.text == "()" else argument
        if word == "floor" and inner.kind == "frac":  # a rounded quotient may be too large by 1
            return self.helped("quotient", self.write(inner.parts[0]), self.write(inner.parts[1]))
        if word == "ln" and inner.parts[:2] == (Part("number", "1"), Part("sign", "+")) and len(inner.parts) == 3:
            added = self.write(inner.parts[2])  # accurate for small values
            if isinstance(added, _Exp):
                return self.helped("softplus", added.power)
            return self.helped("log1p", added)
        given = [self.write(x) for x in _split(inner)] + list(more)
        function = self.language.functions[word]
        if word in ("max", "min"):
            return reduce(lambda a, b: f"{function}({a}, {b})", given)
        return (_Truth if word in _TRUTHS else str)(f"{function}({', '.join(given)})")

    def cases(self, cells: tuple[Part, ...]) -> str:
        text = self.language.constants[r"\mathrm{NaN}"]
        for k in range(len(cells) - 2, -1, -2):
            value, otherwise = self.write(cells[k]), cells[k + 1].kind == "word"
            text = value if otherwise else self.language.choice.format(self.truth(cells[k + 1]), value, text)
        return text

    def truth(self, part: Part) -> str:
        """Return `part` as a condition: every value except 0 is true, including NaN."""
        text = self.write(part)
        return text if isinstance(text, _Truth) else _Truth(self.language.truth.format(text))

    def row(self, row: tuple[Part, ...]) -> str:
        if len(row) == 1:
            return self.write(row[0])
        found = {k: x.text for k, x in enumerate(row) if infix(row, k)}
        for group in [{sign} for sign in self.language.logic] + [set(self.language.comparisons)]:
            places = [k for k, sign in found.items() if sign in group]
            if places:
                return self.between(row, places[-1], found[places[-1]])
        for least in (SIGNS["+"], SIGNS["/"]):
            places = [k for k, sign in found.items() if SIGNS.get(sign) == least and sign in _ARITHMETIC]
            if places:
                return self.between(row, places[-1], found[places[-1]])
            if row[0] == Part("sign", "-"):
                return f"(-{self.row(row[1:])})"
        raise self.refuse(next((x.text for x in row if x.kind == "sign"), row[0].kind))

    def between(self, row: tuple[Part, ...], k: int, sign: str) -> str:
        left, right = row[:k], row[k + 1 :]
        language = self.language
        if sign in language.logic:
            sides = [self.truth(x[0] if len(x) == 1 else Part("row", parts=x)) for x in (left, right)]
            return _Truth(language.logic[sign].format(*sides))
        if sign == "+" and (weighed := _weighed(left, right)):
            return self.between_ends(*map(self.write, weighed))
        first, second = self.row(left), self.row(right)
        if sign in language.comparisons:
            return _Truth(language.comparisons[sign].format(first, second))
        if sign == "-" and second == language.literal(1.0) and isinstance(first, _Exp):
            return self.helped("expm1", first.power)
        return f"({first} {_ARITHMETIC[sign]} {second})"

    def between_ends(self, start: str, end: str, weight: str) -> str:
        """Return the linear interpolation from `start` to `end`, exact at weights 0 and 1."""
        language = self.language
        near = _Truth(language.comparisons["<"].format(self.helped("abs", weight), language.literal(0.5)))
        away = f"({end} - {start})"
        from_end = f"({end} - ({away} * ({language.literal(1.0)} - {weight})))"
        return language.choice.format(near, f"({start} + ({weight} * {away}))", from_end)


def _weighed(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, Part, Part] | None:
    """Return start, end and weight if two summands are a and w·(b − a)."""
    match left, right:
        case (start,), (weight, Part("sign", sign), Part("fence", "()", (Part("row", _, (end, minus, same)),))):
            if _ARITHMETIC.get(sign) == "*" and minus == Part("sign", "-") and same == start:
                return start, end, weight
    return None


def _split(part: Part) -> list[Part]:
    """Return the arguments between commas."""
    if part.kind != "row":
        return [part]
    commas = [-1, *(k for k, x in enumerate(part.parts) if x == Part("sign", ",")), len(part.parts)]
    return [Part("row", parts=part.parts[a + 1 : b]) for a, b in pairwise(commas)]
