"""The face that prints: a `Formula` is what an operation returns when its operands are names instead of numbers.

Run a derivative rule on formulas and it prints itself, so what a reader sees cannot drift from what is computed:

>>> from minigrad import OPS
>>> local_derivative(OPS["tanh"], 0, "y", ["a"]).latex()
'1 - y \\\\cdot y'
>>> local_derivative(OPS["mul"], 0, "c", ["a", -3.0]).text()
'−3'

An op declares its formula in a little LaTeX. `_parse` reads that; LaTeX, MathML and plain text are written from what it
read. Only formulas of ops are parsed: names and numbers of users are put in afterwards, escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from minigrad.op import Op, Operand

__all__ = ["Formula", "expression", "local_derivative"]


class Formula(Operand):
    """An expression: a name, a number, or an operation on expressions."""

    __slots__ = ("args", "op", "value")

    def __init__(self, value: str | float | None = None, op: Op | None = None, args: tuple[Formula, ...] = ()) -> None:
        self.value = value if isinstance(value, str) or op is not None else float(value or 0.0)
        self.op = op
        self.args = args

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.name == "where" and isinstance(inputs[0], bool):
            return inputs[1] if inputs[0] else inputs[2]
        args = tuple([x if isinstance(x, Formula) else Formula(x) for x in inputs])
        simpler = _simpler(op, args)
        return Formula(op=op, args=args) if simpler is None else simpler

    @property
    def precedence(self) -> int:
        """How tightly it binds, on the scale of `Op`: a negative number is as loose as a minus sign."""
        if self.op is not None:
            return self.op.precedence
        negative = not isinstance(self.value, str) and str(self.value).startswith("-")
        return Op.PREFIX if negative else Op.ATOM

    def latex(self) -> str:
        """LaTeX, for math mode."""
        return _write(self, _LATEX)

    def mathml(self) -> str:
        """A whole ``<math>`` element, which browsers draw by themselves."""
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{_write(self, _MATHML)}</math>'

    def text(self) -> str:
        """One line of Unicode text."""
        return _write(self, _TEXT)

    def __repr__(self) -> str:
        return f"Formula({self.text()})"


_ONE = Formula(1.0)  # the g of a local derivative, known by identity: a user's own 1.0 stays on the page


def expression(op: Op, operands: Sequence[str | float]) -> Formula:
    """`op` applied to `operands`, each a name or a number.

    >>> from minigrad import OPS
    >>> expression(OPS["div"], ["a", 2.0]).latex()
    '\\\\frac{a}{2}'
    """
    return Formula(op=op, args=tuple([Formula(x) for x in operands]))


def local_derivative(
    op: Op, slot: int, output: str | float, operands: Sequence[str | float], static: Mapping[str, Any] | None = None
) -> Formula | None:
    """The derivative of `op` by its operand number `slot`, from the op's own rule; None where there is no rule.

    `output` and `operands` are names, to get the formula, or numbers, to get it with the numbers plugged in. The op's
    attributes and auxiliary results appear under their names, unless `static` gives their numbers.
    """
    rule = op.shown[slot]
    if rule is None:
        return None
    names = {name: name for name in (*op.aux, *op.attrs)} | dict(static or {})
    kept = {name: Formula(x) if isinstance(x, str | float) else x for name, x in names.items()}
    derivative = rule(_ONE, Formula(output), *[Formula(x) for x in operands], **kept)
    return derivative if isinstance(derivative, Formula) else Formula(derivative)


def _simpler(op: Op, args: tuple[Formula, ...]) -> Any:
    """What an operation on `args` reduces to, where writing it out would only be noise; else None."""
    if op.name == "mul" and (args[0] is _ONE or args[1] is _ONE):
        return args[1] if args[0] is _ONE else args[0]
    numbers = [x.value for x in args if isinstance(x.value, float)]
    if len(numbers) == len(args):
        if op.name in _DECIDED:  # a comparison of numbers is True or False, so that `where` can choose
            return _DECIDED[op.name](*numbers)
        if op.name == "neg" and args[0] is _ONE:
            return Formula(-1.0)
    if op.name == "pow" and args[1].op is not None and all(isinstance(x.value, float) for x in args[1].args):
        power = args[1].args[0].value - args[1].args[1].value  # type: ignore[operator]  # the b - 1 of a constant power
        return args[0] if power == 1.0 else Formula(op=op, args=(args[0], Formula(power)))
    return None


_DECIDED: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


# --- reading an op's formula -----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A piece of a formula: a symbol or an operand (`text`), or a construct (frac, power, cases, …) of parts.

    An operand is written in brackets if `how` is "call", as it is if "bare", else as precedence asks.
    """

    kind: str
    text: str = ""
    parts: tuple[_Part, ...] = ()
    how: str = "bare"


_TOKEN = re.compile(
    r"\\(?:left|right)\S|\\(?:begin|end)\{cases\}|\\(?:operatorname|text)\{[^}]*\}|\\[A-Za-z]+|\\\\|\d+(?:\.\d+)?|\S"
)
_SYMBOLS = {
    r"\cdot": "·",
    r"\le": "≤",
    r"\ge": "≥",
    r"\ne": "≠",
    r"\sigma": "σ",
    "-": "−",
    "<": "<",
    ">": ">",
}
_FUNCTIONS = {r"\tanh", r"\sin", r"\cos", r"\ln", r"\max", r"\min", r"\sigma"}


@lru_cache(maxsize=1000)
def _parse(latex: str, names: tuple[str, ...], precedence: int) -> _Part:
    """The parts of an op's formula, in which a group ``{a}`` around an operand's name stands for that operand."""
    tokens: list[str] = _TOKEN.findall(latex)
    row, rest = _row(tokens, 0, names, precedence == Op.ATOM)
    if rest != len(tokens):
        raise ValueError(f"formula {latex!r}: unbalanced at {tokens[rest:]}")
    return row


def _row(tokens: list[str], i: int, names: tuple[str, ...], atom: bool) -> tuple[_Part, int]:
    parts: list[_Part] = []
    while i < len(tokens) and not tokens[i].startswith((r"\right", r"\end", "}", "&", r"\\")):
        token = tokens[i]
        if token == "^":
            exponent, i = _group(tokens, i + 1, names)
            base = parts.pop()._replace(how="right")  # (a^b)^c needs its brackets: powers bind from the right
            parts.append(_Part("power", parts=(base, exponent)))
            continue
        if token in (r"\frac", r"\sqrt"):
            first, i = _group(tokens, i + 1, names)
            second, i = _group(tokens, i, names) if token == r"\frac" else (None, i)
            parts.append(_Part(token[1:], parts=(first, second) if second else (first,)))
        elif token.startswith(r"\left"):
            body, j = _row(tokens, i + 1, names, True)
            parts.append(_Part("fence", token[5:] + tokens[j][6:], (body,)))
            i = j + 1
        elif token.startswith(r"\begin"):
            cells, i = _cases(tokens, i + 1, names)
            parts.append(_Part("cases", parts=tuple(cells)))
        elif token.startswith((r"\operatorname", r"\text")):
            command, word = token[1:-1].split("{")
            parts.append(_Part("name" if command == "operatorname" else "word", word))
            i += 1
        elif token == "{" and tokens[i + 1] in names and tokens[i + 2] == "}":
            called = bool(parts) and parts[-1].kind == "name"
            how = "call" if called else "bare" if atom else "left" if i == 0 else "right"
            parts.append(_Part("operand", tokens[i + 1], how=how))
            i += 3
        else:
            kind = "name" if token in _FUNCTIONS else "number" if token[0].isdigit() else "sign"
            kind = "letter" if token.isalpha() else kind
            parts.append(_Part(kind, token))
            i += 1
    return (parts[0] if len(parts) == 1 else _Part("row", parts=tuple(parts))), i


def _group(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[_Part, int]:
    """A braced argument, which needs no brackets of its own: ``{a}`` or ``{…}``; or a single token."""
    if tokens[i] != "{":
        return _Part("number" if tokens[i][0].isdigit() else "letter", tokens[i]), i + 1
    if tokens[i + 1] in names and tokens[i + 2] == "}":
        return _Part("operand", tokens[i + 1]), i + 3
    part, j = _row(tokens, i + 1, names, True)
    return part, j + 1


def _cases(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[list[_Part], int]:
    """The cells of ``value & condition \\\\ value & condition``, in reading order."""
    cells = []
    while True:
        cell, i = _row(tokens, i, names, True)
        cells.append(cell)
        i += 1
        if tokens[i - 1].startswith(r"\end"):
            return cells, i


# --- writing ---------------------------------------------------------------------------------------------------------


class _Writer(NamedTuple):
    """How one notation spells each kind of part."""

    symbol: Callable[[str], str]
    number: Callable[[float], str]
    part: Callable[[_Part, list[str], list[int]], str]
    brackets: Callable[[str], str]


def _write(formula: Formula, writer: _Writer) -> str:
    if formula.op is None:
        value = formula.value
        return writer.symbol(value) if isinstance(value, str) else writer.number(float(value))  # type: ignore[arg-type]
    op = formula.op
    operands = dict(zip(op.inputs, formula.args, strict=True))

    def write(part: _Part) -> tuple[str, int]:
        if part.kind != "operand":
            inner = [write(p) for p in part.parts]
            return writer.part(part, [text for text, _ in inner], [p for _, p in inner]), _LOOSENESS.get(
                part.kind, Op.ATOM
            )
        operand = operands[part.text]
        loosest = {"call": Op.ATOM, "left": op.precedence - 1, "right": max(op.precedence, Op.PREFIX)}.get(part.how, -1)
        if op.precedence == Op.COMPARISON and part.how == "right":
            loosest = op.precedence
        text = _write(operand, writer)
        bracketed = operand.precedence <= loosest
        return (writer.brackets(text), Op.ATOM) if bracketed else (text, operand.precedence)

    return write(_parse(op.formula, op.inputs, op.precedence))[0]


_LOOSENESS = {"frac": Op.PRODUCT, "power": Op.POWER, "row": Op.SUM}


def _decimal(x: float, minus: str) -> str:
    """Six significant digits; a zero has no sign."""
    if math.isnan(x):
        return "NaN"
    return (minus if x < 0 else "") + ("∞" if math.isinf(x) else f"{abs(x):.6g}")


def _latex_symbol(name: str) -> str:
    if match := re.fullmatch(r"([A-Za-z])(\d+)", name):
        return f"{match[1]}_{{{match[2]}}}"
    special = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", "<": "{<}", ">": "{>}"}
    clean = "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return clean if re.fullmatch(r"[A-Za-z]", name) else rf"\mathrm{{{clean}}}"


def _latex_part(part: _Part, inner: list[str], _: list[int]) -> str:
    match part.kind:
        case "frac":
            return rf"\frac{{{inner[0]}}}{{{inner[1]}}}"
        case "sqrt":
            return rf"\sqrt{{{inner[0]}}}"
        case "power":
            return f"{inner[0]}^{{{inner[1]}}}"
        case "fence":
            return rf"\left{part.text[0]}{inner[0]}\right{part.text[1]}"
        case "cases":
            rows = r" \\ ".join(f"{inner[k]} & {inner[k + 1]}" for k in range(0, len(inner), 2))
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "row":
            return _spaced(part, inner, "", " ")
        case "name":
            return part.text if part.text.startswith("\\") else rf"\operatorname{{{part.text}}}"
        case "word":
            return rf"\text{{{part.text}}}"
        case _:
            return part.text


def _spaced(part: _Part, inner: list[str], tight: str, space: str) -> str:
    """A row: spaces around a sign between operands, none after one that comes first or after a function."""
    out = ""
    for k, (piece, text) in enumerate(zip(part.parts, inner, strict=True)):
        infix = piece.kind == "sign" and k > 0 and piece.text != ","
        out += f"{space}{text}{space}" if infix else text + (space if piece.text == "," else tight)
    return out


def _mathml_part(part: _Part, inner: list[str], _: list[int]) -> str:
    match part.kind:
        case "frac":
            return f"<mfrac><mrow>{inner[0]}</mrow><mrow>{inner[1]}</mrow></mfrac>"
        case "sqrt":
            return f"<msqrt>{inner[0]}</msqrt>"
        case "power":
            return f"<msup><mrow>{inner[0]}</mrow><mrow>{inner[1]}</mrow></msup>"
        case "fence":
            return f"<mrow><mo>{part.text[0]}</mo>{inner[0]}<mo>{part.text[1]}</mo></mrow>"
        case "cases":
            rows = [f"<mtr><mtd>{inner[k]}</mtd><mtd>{inner[k + 1]}</mtd></mtr>" for k in range(0, len(inner), 2)]
            return f"<mrow><mo>{{</mo><mtable columnalign='left left'>{''.join(rows)}</mtable></mrow>"
        case "row":
            return f"<mrow>{''.join(inner)}</mrow>"
        case "name" | "letter":
            return f"<mi>{escape(_SYMBOLS.get(part.text, part.text.lstrip(chr(92))))}</mi>"
        case "number":
            return f"<mn>{part.text}</mn>"
        case "word":
            return f"<mtext>{escape(part.text)}</mtext>"
        case _:
            return f"<mo>{escape(_SYMBOLS.get(part.text, part.text))}</mo>"


def _mathml_number(x: float) -> str:
    text = _decimal(x, "−")
    return f"<mrow><mo>−</mo><mn>{text[1:]}</mn></mrow>" if text.startswith("−") else f"<mn>{text}</mn>"


_SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _text_part(part: _Part, inner: list[str], looseness: list[int]) -> str:
    def at_least(k: int, precedence: int) -> str:
        return inner[k] if looseness[k] >= precedence else f"({inner[k]})"

    match part.kind:
        case "frac":
            return f"{at_least(0, Op.PRODUCT)} / {at_least(1, Op.POWER)}"
        case "sqrt":
            return f"√{at_least(0, Op.ATOM)}"
        case "power":
            exponent = inner[1]
            if re.fullmatch(r"−?\d+", exponent):
                return inner[0] + exponent.translate(_SUPERSCRIPTS)
            return f"{inner[0]}^{at_least(1, Op.ATOM)}"
        case "fence":
            return part.text[0] + inner[0] + part.text[1]
        case "cases":
            return f"({inner[0]} if {inner[1]} else {inner[2]})"
        case "row":
            return _spaced(part, inner, "", " ")
        case _:
            return _SYMBOLS.get(part.text, part.text.lstrip("\\"))


def _mathml_brackets(text: str) -> str:
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


_LATEX = _Writer(
    _latex_symbol, lambda x: _decimal(x, "-").replace("∞", r"\infty"), _latex_part, r"\left({}\right)".format
)
_MATHML = _Writer(lambda name: f"<mi>{escape(name)}</mi>", _mathml_number, _mathml_part, _mathml_brackets)
_TEXT = _Writer(str, lambda x: _decimal(x, "−"), _text_part, "({})".format)
