"""Writing an operation on numbers as JavaScript, so that a page can compute it again with no Python behind it.

Forward it is the op's formula; backward the op's own rules, run on formulas. So an op that a reader declares needs no
line of JavaScript, if its formula is made of functions in FUNCTIONS: those of JavaScript's Math, and those that the
player brings along because Math lacks them or has them with other corners (no dot in their name). Around each sign
and what it joins there are brackets: the player reads nothing else, so it needs to know of no precedence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

from minigrad.backends.formula import Formula, Phrase
from minigrad.backends.formula.reading import SIGNS, Part, infix, parse
from minigrad.kernels import kernels_of
from minigrad.op import Op

__all__ = ["FUNCTIONS", "Unwritable", "applied", "javascript", "literal"]

FUNCTIONS = {name: f"Math.{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log2", "atan2")}
FUNCTIONS |= {"ln": "Math.log", "log": "Math.log", "floor": "Math.floor", "ceil": "Math.ceil", "trunc": "Math.trunc"}
FUNCTIONS |= {f"arc{name}": f"Math.a{name}" for name in ("sin", "cos", "tan")}
FUNCTIONS |= {f"ar{name}": f"Math.a{name}" for name in ("sinh", "cosh", "tanh")}
_OURS = "erf round sign max min remainder clamp isnan isinf isfinite not"
_OURS += " relu relu6 hardtanh leakyrelu prelu step elu selu"
FUNCTIONS |= {name: name for name in _OURS.split()} | {"sigma": "sigmoid"}

_TRUTHS = {"isnan", "isinf", "isfinite", "not"}
_COMPARISONS = {"<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", "=": "===", r"\ne": "!=="}
_LOGIC = {r"\lor": "||", r"\land": "&&", r"\oplus": "!=="}  # loosest first
_ARITHMETIC = {"+": "+", "-": "-", "/": "/", r"\cdot": "*", r"\times": "*", r"\odot": "*", "": "*"}
_CONSTANTS = {"e": "Math.E", r"\pi": "Math.PI", r"\infty": "Infinity", r"\mathrm{NaN}": "NaN"}
_LETTERS = "abcdefhijk"  # what operands are called there, whatever the op calls them
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def javascript(op: Op) -> dict[str, Any]:
    """`op` for plain numbers: "js", an expression of its operands a, b, … and its attributes, and its "rules", one for
    each operand, of g and y too; None where there is no derivative. Where they cannot be written, "why" says why.

    >>> from minigrad import OPS
    >>> javascript(OPS["tanh"])
    {'js': 'Math.tanh(a)', 'rules': ['(g * (1 - (y * y)))'], 'why': None}
    >>> javascript(OPS["softmax"])["why"]
    'softmax works on whole tensors, not on single numbers.'
    """
    try:
        _check(op)
        names = dict(zip(op.inputs, _LETTERS, strict=False))
        forward = applied(op, names, {name: name for name in op.attrs})
        rules = [rule and _rule(op, rule, names) for rule in op.rules]
    except Unwritable as error:
        return {"js": None, "rules": [None] * len(op.inputs), "why": str(error)}
    return {"js": forward, "rules": rules, "why": None}


class Unwritable(Exception):
    """Why something cannot be written in JavaScript, as a sentence."""


class _Truth(str):
    """JavaScript for what is true or false."""


class _Exp(str):
    """JavaScript for e to a power, which ln and − 1 know how to take up without loss."""

    __slots__ = ("power",)
    power: str

    @classmethod
    def of(cls, power: str) -> _Exp:
        text = cls(f"Math.exp({power})")
        text.power = power
        return text


def _check(op: Op) -> None:
    if "python" not in kernels_of(op.name) or op.outputs > 1 or op.variadic:
        raise Unwritable(f"{op.name} works on whole tensors, not on single numbers.")
    if op.joint or op.aux:
        raise Unwritable(f"The rules of {op.name} read what its kernel keeps, which is not in its formula.")
    taken = sorted(set(op.attrs) & {*_LETTERS, "g", "y"})
    if taken or len(op.inputs) > len(_LETTERS):
        raise Unwritable(f"{op.name} has an attribute with the name of an operand, or too many operands.")


def _by_presence(op: Op, write: Callable[[dict[str, None]], str]) -> str:
    """What `write` makes, for each choice of the attributes that may be None: those it is told are."""

    def choose(names: list[str], given: dict[str, None]) -> str:
        if not names:
            return write(given)
        without, present = choose(names[1:], {**given, names[0]: None}), choose(names[1:], given)
        return present if without == present else f"(({names[0]} === null) ? {without} : {present})"

    return choose([name for name, default in op.defaults.items() if default is None], {})


def _rule(op: Op, rule: Callable[..., Any], names: Mapping[str, str]) -> str:
    operands = [Formula(names[name]) for name in op.inputs]

    def write(given: dict[str, None]) -> str:
        attrs = {name: Formula(name) for name in op.attrs} | given
        try:
            made = rule(Formula("g"), Formula("y"), *operands, **attrs, **dict.fromkeys(op.shapes, ()))
        except _FAILURES as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Unwritable(f"A derivative rule of {op.name} is no formula: {reason}") from None
        return _formula(made if isinstance(made, Formula) else Formula(made))

    return _by_presence(op, write)


def _formula(formula: Formula) -> str:
    """A formula whose names are names in JavaScript."""
    op, value = formula.op, formula.value
    if op is None:
        return value if isinstance(value, str) else literal(float(value or 0.0))
    if isinstance(op, Phrase) or (not op.domain and "python" not in kernels_of(op.name)):
        raise Unwritable(f"{op.name} works on whole tensors, not on single numbers.")
    attrs = {name: _formula(x) if isinstance(x, Formula) else x for name, x in formula.attrs.items()}
    return applied(op, dict(zip(op.inputs, map(_formula, formula.args), strict=True)), attrs)


def literal(x: float) -> str:
    """A number."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "(-Infinity)"
    text = repr(x).removesuffix(".0")
    return f"({text})" if text.startswith("-") else text


def applied(op: Op, operands: Mapping[str, str], attrs: Mapping[str, Any]) -> str:
    """The op's formula of `operands`. If it is one function of the player's, it gets the attributes left out, too."""
    whole: dict[str, str] = {}
    for name in op.attrs:
        x = attrs[name]
        whole[name] = x if isinstance(x, str) else "null" if x is None else literal(float(x))
    try:
        part = parse(op.formula, (*op.inputs, *op.attrs))
    except (IndexError, ValueError):
        raise Unwritable(f"The formula of {op.name} cannot be read.") from None
    writer = _Writer(op, {**operands, **whole})
    if part.kind == "call" and part.parts[0].text.removeprefix("\\") in _OURS.split():
        left_out = [whole[name] for name in op.attrs if not re.search(rf"\\{name}\b|\{{{name}\}}", op.formula)]
        return writer.call(part.parts[0], part.parts[1], tuple(left_out))
    return writer.write(part)


class _Writer:
    """Writes the formula of one op, given what its names stand for."""

    def __init__(self, op: Op, names: Mapping[str, str]) -> None:
        self.op, self.names = op, names

    def refuse(self, what: str) -> Unwritable:
        what = what.removeprefix("\\")
        return Unwritable(f"The formula of {self.op.name} has “{what}” in it, which the player cannot compute.")

    def write(self, part: Part) -> str:
        match part:
            case Part("operand", name):
                return self.names[name]
            case Part("number", digits):
                return digits
            case Part("letter", letter) if letter in _CONSTANTS:
                return _CONSTANTS[letter]
            case Part("letter", letter) if letter.removeprefix("\\") in self.names:
                return self.names[letter.removeprefix("\\")]
            case Part("frac", _, (above, below)):
                return f"({self.write(above)} / {self.write(below)})"
            case Part("sqrt", _, (inner,)):
                return f"Math.sqrt({self.write(inner)})"
            case Part("power", _, (base, exponent)):
                return self.power(base, self.write(exponent))
            case Part("fence", "()", (inner,)):
                return self.write(inner)
            case Part("fence", "||", (inner,)):
                return f"Math.abs({self.write(inner)})"
            case Part("call", _, (name, argument)):
                return self.call(name, argument)
            case Part("cases", _, cells):
                return self.cases(cells)
            case Part("row", _, row):
                return self.row(row)
        raise self.refuse(part.text or part.kind)

    def power(self, base: Part, exponent: str) -> str:
        if base == Part("letter", "e"):
            return _Exp.of(exponent)
        raised = self.write(base)
        return f"({raised} * {raised})" if exponent == "2" and raised.isidentifier() else f"pow({raised}, {exponent})"

    def call(self, name: Part, argument: Part, more: tuple[str, ...] = ()) -> str:
        if name.kind == "power":
            return f"pow({self.call(name.parts[0], argument, more)}, {self.write(name.parts[1])})"
        word = name.text.removeprefix("\\")
        if name.kind != "name" or word not in FUNCTIONS:
            raise self.refuse(word or name.kind)
        inner = argument.parts[0] if argument.kind == "fence" and argument.text == "()" else argument
        if word == "floor" and inner.kind == "frac":  # rounded, a quotient may be a whole number too large
            return f"quotient({self.write(inner.parts[0])}, {self.write(inner.parts[1])})"
        if word == "ln" and inner.parts[:2] == (Part("number", "1"), Part("sign", "+")) and len(inner.parts) == 3:
            added = self.write(inner.parts[2])  # exact for what is small beside 1
            return f"softplus({added.power})" if isinstance(added, _Exp) else f"Math.log1p({added})"
        given = [self.write(x) for x in _split(inner)] + list(more)
        if word in ("max", "min"):
            return reduce(lambda a, b: f"{word}({a}, {b})", given)
        return (_Truth if word in _TRUTHS else str)(f"{FUNCTIONS[word]}({', '.join(given)})")

    def cases(self, cells: tuple[Part, ...]) -> str:
        text = "NaN"
        for k in range(len(cells) - 2, -1, -2):
            value, otherwise = self.write(cells[k]), cells[k + 1].kind == "word"
            text = value if otherwise else f"({self.truth(cells[k + 1])} ? {value} : {text})"
        return text

    def truth(self, part: Part) -> str:
        """`part` as a condition: every number but 0 is true, NaN too."""
        text = self.write(part)
        return text if isinstance(text, _Truth) else _Truth(f"({text} !== 0)")

    def row(self, row: tuple[Part, ...]) -> str:
        if len(row) == 1:
            return self.write(row[0])
        found = {k: x.text for k, x in enumerate(row) if infix(row, k)}
        for group in [{sign} for sign in _LOGIC] + [set(_COMPARISONS)]:
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
        if sign in _LOGIC:
            sides = [self.truth(x[0] if len(x) == 1 else Part("row", parts=x)) for x in (left, right)]
            return _Truth(f"({sides[0]} {_LOGIC[sign]} {sides[1]})")
        first, second = self.row(left), self.row(right)
        if sign in _COMPARISONS:
            return _Truth(f"({first} {_COMPARISONS[sign]} {second})")
        if sign == "-" and second == "1" and isinstance(first, _Exp):
            return f"Math.expm1({first.power})"
        return f"({first} {_ARITHMETIC[sign]} {second})"


def _split(part: Part) -> list[Part]:
    """The arguments between commas."""
    if part.kind != "row":
        return [part]
    commas = [-1, *(k for k, x in enumerate(part.parts) if x == Part("sign", ",")), len(part.parts)]
    return [Part("row", parts=part.parts[a + 1 : b]) for a, b in pairwise(commas)]
