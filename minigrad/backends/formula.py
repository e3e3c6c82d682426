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
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple, NoReturn

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

    def latex(self) -> str:
        """LaTeX, for math mode."""
        return _write(self, _LATEX)[0]

    def mathml(self) -> str:
        """A whole ``<math>`` element, which browsers draw by themselves."""
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{_write(self, _MATHML)[0]}</math>'

    def text(self) -> str:
        """One line of Unicode text."""
        return _write(self, _TEXT)[0]

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self.text()} is a formula, neither true nor false.\n"
            "  A rule that chooses is written where(condition, a, b), not with if, and, or, not."
        )

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
    names = {name: name for name in (*op.aux, *op.attrs)} | dict.fromkeys(op.shapes, ()) | dict(static or {})
    kept = {name: Formula(x) if isinstance(x, str | float) else x for name, x in names.items()}
    derivative = rule(_ONE, Formula(output), *[Formula(x) for x in operands], **kept)
    return derivative if isinstance(derivative, Formula) else Formula(derivative)


def _simpler(op: Op, args: tuple[Formula, ...]) -> Any:
    """What an operation on `args` reduces to, where writing it out would only be noise; else None."""
    match op.name, args:
        case "mul", (x, y) if x is _ONE or y is _ONE:
            return y if x is _ONE else x
        case "neg", (x,) if x is _ONE:
            return Formula(-1.0)
        case "pow", (
            x,
            Formula(op=Op(name="sub" | "add" as f), args=(Formula(value=float(b)), Formula(value=float(c)))),
        ):
            power = getattr(operator, f)(b, c)  # the b - 1 of a constant power
            return x if power == 1.0 else Formula(op=op, args=(x, Formula(power)))
        case name, (Formula(value=float(a)), Formula(value=float(b))) if name in ("lt", "le", "gt", "ge", "eq", "ne"):
            return getattr(operator, name)(a, b)  # True or False, so that `where` can choose
    return None


# --- reading an op's formula -----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A piece of a formula: a symbol or an operand (`text`), or a construct (frac, power, row, …) of parts."""

    kind: str
    text: str = ""
    parts: tuple[_Part, ...] = ()

    @property
    def base(self) -> _Part:
        """What stands first: of a power, what is raised to it."""
        return self.parts[0].base if self.kind == "power" else self


_TOKEN = re.compile(
    r"\\(?:left|right)\S|\\(?:begin|end)\{cases\}|\\(?:operatorname|text)\{[^}]*\}|\\[A-Za-z]+|\\\\|\d+(?:\.\d+)?|\S"
)
_FUNCTION = re.compile(r"\\(?:(?:arc)?(?:sin|cos|tan)h?|ln|log|exp|max|min|sigma)")
_LETTERS = {r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\lambda": "λ", r"\mu": "μ", r"\pi": "π", r"\infty": "∞"}
_SYMBOLS = {r"\cdot": "·", r"\times": "×", r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\sigma": "σ", "-": "−"} | _LETTERS
_SYMBOLS |= {r"\mathrm{NaN}": "NaN", r"\land": "∧", r"\lor": "∨", r"\oplus": "⊕"}
_FENCES = {"(": r"\left(", ")": r"\right)"}

# How tightly a sign between operands binds. Others, such as =, bind loosest; nothing at all between two is a product.
_SIGNS = {"+": Op.SUM, "-": Op.SUM, "/": Op.PRODUCT, r"\cdot": Op.PRODUCT, r"\times": Op.PRODUCT, "": Op.PRODUCT}
_NEXT_TO, _DOT = _Part("sign", ""), _Part("sign", r"\cdot")


@lru_cache(maxsize=1000)
def _parse(latex: str, names: tuple[str, ...]) -> _Part:
    """The parts of an op's formula, in which a group ``{a}`` around an operand's name stands for that operand."""
    tokens = [_FENCES.get(token, token) for token in _TOKEN.findall(latex)]
    row, rest = _row(tokens, 0, names)
    if rest != len(tokens):
        raise ValueError(f"formula {latex!r}: unbalanced at {tokens[rest:]}")
    return row


def _row(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[_Part, int]:
    """The parts from token `i` to the end of the group that it is in."""
    parts: list[_Part] = []
    while i < len(tokens) and not tokens[i].startswith((r"\right", r"\end", "}", "&", r"\\")):
        token = tokens[i]
        if token == "^":
            exponent, i = _group(tokens, i + 1, names)
            parts.append(_Part("power", parts=(parts.pop(), exponent)))
        elif token in (r"\frac", r"\sqrt"):
            first, i = _group(tokens, i + 1, names)
            second, i = _group(tokens, i, names) if token == r"\frac" else (None, i)
            parts.append(_Part(token[1:], parts=(first, second) if second else (first,)))
        elif token.startswith(r"\left"):
            body, j = _row(tokens, i + 1, names)
            parts.append(_Part("fence", token[5:] + tokens[j][6:], (body,)))
            i = j + 1
        elif token.startswith(r"\begin"):
            cells, i = _cases(tokens, i + 1, names)
            parts.append(_Part("cases", parts=tuple(cells)))
        else:
            part, i = _group(tokens, i, names)
            parts.append(part)
    joined: list[_Part] = []  # from the right, for in ln sin a the sine comes first
    for part in reversed(parts):
        follows = bool(joined) and part.kind != "sign" and joined[-1].kind != "sign"
        if follows and part.base.kind == "name":
            joined[-1] = _Part("call", parts=(part, joined[-1]))
        else:
            joined += [_NEXT_TO, part] if follows else [part]
    return (joined[0] if len(joined) == 1 else _Part("row", parts=tuple(joined[::-1]))), i


def _group(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[_Part, int]:
    """A braced group, such as an operand, or a single token."""
    token = tokens[i]
    if token == "{" and tokens[i + 1] in names and tokens[i + 2] == "}":
        return _Part("operand", tokens[i + 1]), i + 3
    if token == "{":
        part, j = _row(tokens, i + 1, names)
        return part, j + 1
    if token.startswith((r"\operatorname{", r"\text{")):
        command, word = token[1:-1].split("{")
        return _Part("name" if command == "operatorname" else "word", word), i + 1
    letter = token.isalpha() or token in _LETTERS
    kind = "name" if _FUNCTION.fullmatch(token) else "number" if token[0].isdigit() else "letter" if letter else "sign"
    return _Part(kind, token), i + 1


def _cases(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[list[_Part], int]:
    """The cells of ``value & condition \\\\ value & condition``, in reading order."""
    cells = []
    while True:
        cell, i = _row(tokens, i, names)
        cells.append(cell)
        i += 1
        if tokens[i - 1].startswith(r"\end"):
            return cells, i


# --- writing: each piece with how tightly it binds, so that who takes it up knows whether it needs brackets -----------


_FENCED = Op.ATOM + 1  # what the argument of a function must be


class _Writer(NamedTuple):
    """How one notation spells a name, a construct of parts whose shape is always the same, and any other part.

    `needs` says how tightly the parts of a construct must bind to stand there without brackets, and `binds` how tightly
    the whole does. Where all is written `flat`, what LaTeX groups by drawing, as a fraction, may need brackets too.
    """

    name: Callable[[str], str]
    shapes: Mapping[str, str]
    other: Callable[[_Part, list[str]], str]
    needs: Mapping[str, tuple[int, ...]] = {"power": (Op.ATOM, 0), "call": (0, _FENCED)}
    binds: Mapping[str, int] = {"frac": Op.PRODUCT, "power": Op.POWER, "fence": _FENCED}
    flat: bool = False


_WORD = r"[\w\u0300-\u036f.'\"′…()\[\]]+"
_ATOMIC = re.compile(rf"(?!.*[²³¹⁰-⁹]){_WORD}(?: {_WORD})*")  # a label may be more: x1*w1 + b
_APART = re.compile(r"(?:<[^>]*>)*[\d|]")


def _write(formula: Formula, writer: _Writer) -> tuple[str, int]:
    """The text of `formula`, and how tightly it binds."""
    op, value = formula.op, formula.value
    if op is not None:
        text, binds = _assemble(_parse(op.formula, op.inputs), dict(zip(op.inputs, formula.args, strict=True)), writer)
        return text, min(binds, Op.ATOM if op.precedence is None else op.precedence)
    if isinstance(value, str):
        return writer.name(value), Op.ATOM if _ATOMIC.fullmatch(value) else Op.COMPARISON
    return _assemble(_number(float(value or 0.0), writer.flat), {}, writer)


def _assemble(part: _Part, operands: Mapping[str, Formula], writer: _Writer) -> tuple[str, int]:
    if part.kind == "operand":
        return _write(operands[part.text], writer)
    row = part.parts if part.kind == "row" else ()
    needs = [_needs(row, k) for k in range(len(row))] or writer.needs.get(part.kind, (0,) * len(part.parts))
    texts = []
    for piece, least in zip(part.parts, needs, strict=True):
        text, binds = _assemble(piece, operands, writer)
        # What was written as LaTeX has the brackets it needs there; what is put in for an operand may need more.
        bracketed = binds < least and (writer.flat or piece.kind == "operand" or part.kind == "call")
        texts.append(writer.shapes["fence"].format(text, "(", ")") if bracketed else text)
    for k, piece in enumerate(row):
        if piece == _NEXT_TO and _APART.match(texts[k + 1]):
            texts[k] = writer.other(_DOT, [])  # 2 · 3, not 2 3; 2 · |a|
    shape = writer.shapes.get(part.kind)
    text = writer.other(part, texts) if shape is None else shape.format(*texts, *part.text)
    return text, min((_binding(row, k) for k in range(len(row))), default=writer.binds.get(part.kind, Op.ATOM))


def _infix(row: Sequence[_Part], k: int) -> bool:
    """Whether part `k` is a sign between two operands, not one before or after an operand."""
    return row[k].kind == "sign" and 0 < k < len(row) - 1 and row[k - 1].kind != "sign"


def _binding(row: Sequence[_Part], k: int) -> int:
    """How tightly part `k` holds on to its neighbours, if it is a sign."""
    if _infix(row, k):
        return _SIGNS.get(row[k].text, Op.COMPARISON)
    return Op.ATOM if row[k].kind != "sign" else Op.PREFIX if k < len(row) - 1 else Op.POWER


def _needs(row: Sequence[_Part], k: int) -> int:
    """How tightly part `k` must bind to stand between its neighbours without brackets."""
    least = 0
    if row[k].kind != "sign" and k + 1 < len(row) and row[k + 1].text != ",":
        after = _binding(row, k + 1)
        least = after + 1 if after in (Op.COMPARISON, Op.POWER) or row[k + 1] == _NEXT_TO else after
    if row[k].kind != "sign" and k > 0 and row[k - 1].text != ",":
        before = _binding(row, k - 1)  # a - (b - c), and no minus sign after a sign, except as in a < -3
        least = max(least, before + 1 if before == Op.COMPARISON else max(before, Op.PREFIX) + 1)
    return least


def _number(x: float, flat: bool) -> _Part:
    """A number as a formula: six significant digits; a zero has no sign; 2.5e-7 is 2.5 · 10⁻⁷, unless `flat`."""
    if x < 0:
        return _Part("row", parts=(_Part("sign", "-"), _number(-x, flat)))
    if not math.isfinite(x):
        return _Part("letter", r"\mathrm{NaN}" if math.isnan(x) else r"\infty")
    digits, _, power = f"{abs(x):.6g}".partition("e")
    if not power:
        return _Part("number", digits)
    if flat:  # as on the cards and in the tables beside it
        return _Part("scientific", f"{digits}e{power.replace('-', '−')}")
    tens = _Part("power", parts=(_Part("number", "10"), _number(float(power), flat)))
    return tens if digits == "1" else _Part("row", parts=(_Part("number", digits), _DOT, tens))


def _spaced(row: Sequence[_Part], texts: list[str]) -> str:
    """Spaces around a sign between operands, none after one before an operand."""
    out = ""
    for k, text in enumerate(texts):
        out += ", " if row[k].text == "," else f" {text} ".replace("  ", " ") if _infix(row, k) else text
    return out


def _latex_name(name: str) -> str:
    if match := re.fullmatch(r"([A-Za-z])(\d+)", name):
        return f"{match[1]}_{{{match[2]}}}"
    special = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", "<": "{<}", ">": "{>}", " ": "\\ "}
    clean = "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return clean if re.fullmatch(r"[A-Za-z]", name) else rf"\mathrm{{{clean}}}"


def _latex(part: _Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _spaced(part.parts, inner)
        case "cases":
            rows = r" \\ ".join(f"{inner[k]} & {inner[k + 1]}" for k in range(0, len(inner), 2))
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "name" | "word" if not part.text.startswith("\\"):
            return rf"\{'operatorname' if part.kind == 'name' else 'text'}{{{part.text}}}"
        case _:
            return part.text


def _mathml(part: _Part, inner: list[str]) -> str:
    if part.kind == "cases":
        rows = [f"<mtr><mtd>{inner[k]}</mtd><mtd>{inner[k + 1]}</mtd></mtr>" for k in range(0, len(inner), 2)]
        return f"<mrow><mo>{{</mo><mtable columnalign='left left'>{''.join(rows)}</mtable></mrow>"
    if part.kind == "row":
        return f"<mrow>{''.join(inner)}</mrow>"
    if part == _NEXT_TO:
        return '<mspace width=".17em"/>'
    tag = {"name": "mi", "letter": "mi", "number": "mn", "word": "mtext"}.get(part.kind, "mo")
    return f"<{tag}>{escape(_plain(part, inner))}</{tag}>"


_SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _plain(part: _Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _spaced(part.parts, inner)
        case "power":
            whole = re.fullmatch(r"\(?(−?\d+)\)?", inner[1])
            return inner[0] + (whole[1].translate(_SUPERSCRIPTS) if whole else f"^{inner[1]}")
        case "cases":
            rows = [f"{inner[k]} if {inner[k + 1]} else " for k in range(0, len(inner) - 2, 2)]
            return f"({''.join(rows)}{inner[-2]})"
        case _:
            return _SYMBOLS.get(part.text, part.text.lstrip("\\"))


_LATEX = _Writer(
    _latex_name,
    {
        "frac": r"\frac{{{}}}{{{}}}",
        "sqrt": r"\sqrt{{{}}}",
        "power": "{}^{{{}}}",
        "call": "{}{}",
        "fence": r"\left{1}{0}\right{2}",
    },
    _latex,
)
_MATHML = _Writer(
    lambda name: f"<mi>{escape(name)}</mi>",
    {
        "frac": "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>",
        "sqrt": "<msqrt>{}</msqrt>",
        "power": "<msup><mrow>{}</mrow><mrow>{}</mrow></msup>",
        "call": "<mrow>{}{}</mrow>",
        "fence": "<mrow><mo>{1}</mo>{0}<mo>{2}</mo></mrow>",
    },
    _mathml,
)
_TEXT = _Writer(
    str,
    {"frac": "{} / {}", "sqrt": "√{}", "call": "{}{}", "fence": "{1}{0}{2}"},
    _plain,
    needs={"frac": (Op.PRODUCT, Op.POWER), "sqrt": (Op.ATOM,), "power": (Op.ATOM, Op.ATOM), "call": (0, _FENCED)},
    binds={"frac": Op.PRODUCT, "sqrt": Op.POWER, "power": Op.POWER, "scientific": Op.POWER, "fence": _FENCED},
    flat=True,
)
