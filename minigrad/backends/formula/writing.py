"""Printers of formulas as LaTeX, MathML and plain text: each returns the text and its precedence.

The caller adds brackets by precedence. In a *template* operands are placeholders: each is a hole, a character of the
private use area, ``HOLES + 8 * number + least``. The inserted text gets brackets if its precedence is below `least`.
Two marks depend on the inserted text: APART becomes a dot in front of a digit, and the text between RAISED and END
becomes superscript digits if it is an integer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple

from minigrad.backends.formula.reading import DOT, NEXT_TO, SYMBOLS, Part, binding, infix, parse
from minigrad.core.op import Op, Operand

__all__ = ["APART", "END", "HOLES", "LATEX", "MATHML", "RAISED", "TEXT", "Writer", "template", "write"]

_FENCED = Op.ATOM + 1  # the precedence that the argument of a function needs
_OPEN = 99  # the precedence of a hole, which is unknown
HOLES, APART, RAISED, END = 0xE000, "\uf8f0", "\uf8f1", "\uf8f2"
_HOLE = re.compile("[\ue000-\uf8ef]")


class Writer(NamedTuple):
    """The spelling of names, of constructs with a fixed shape, and of all other parts in one notation.

    `needs` is the precedence that each part of a construct needs to omit brackets, and `binds` the precedence of the
    construct. In a `flat` notation, constructs that LaTeX groups visually, such as a fraction, may need brackets too.
    """

    name: Callable[[str], str]
    shapes: Mapping[str, str]
    other: Callable[[Part, list[str]], str]
    needs: Mapping[str, tuple[int, ...]] = {"power": (Op.ATOM, 0), "sub": (Op.ATOM, 0), "call": (0, _FENCED)}
    binds: Mapping[str, int] = {"frac": Op.PRODUCT, "power": Op.POWER, "fence": _FENCED}
    flat: bool = False
    holes: bool = False


_WORD = r"[\w\u0300-\u036f.'\"′…()\[\]]+"
_KEYS = r"(?:\.\w+\([^()]*\)|\[[^\[\]]*\])+"  # an index, or the path to a view
_ATOMIC = re.compile(rf"{_KEYS}|(?!.*[²³¹⁰-⁹]){_WORD}(?: {_WORD})*")  # other labels, such as x1*w1 + b, need brackets
_APART = re.compile(r"(?:<[^>]*>)*[\d|‖]")
_HOLE_FIRST = re.compile(f"(?:<[^>]*>)*{_HOLE.pattern}")


def write(formula: Any, writer: Writer) -> tuple[str, int]:
    """Return the text of `formula`, and its precedence."""
    op, value = formula.op, formula.value
    if op is not None:
        operands = {name: formula.attrs.get(name, name) for name in op.attrs} | dict(
            zip(op.inputs, formula.args, strict=True)
        )
        text, binds = _assemble(parse(op.formula, (*op.inputs, *op.attrs)), operands, writer)
        return text, binds if binds == _OPEN else min(binds, Op.ATOM if op.precedence is None else op.precedence)
    return _leaf(value, writer)


def _leaf(value: Any, writer: Writer) -> tuple[str, int]:
    """Return the text and precedence of a name, a number or another attribute."""
    if isinstance(value, str):
        if writer.holes and _HOLE.fullmatch(value):
            return value, _OPEN
        return writer.name(value), Op.ATOM if _ATOMIC.fullmatch(value) else Op.COMPARISON
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _assemble(_number(float(value), writer.flat), {}, writer)
    return writer.name(str(value)), Op.ATOM


def _assemble(part: Part, operands: Mapping[str, Any], writer: Writer) -> tuple[str, int]:
    if part.kind == "operand":
        given = operands[part.text]
        return write(given, writer) if isinstance(given, Operand) else _leaf(given, writer)
    row = part.parts if part.kind == "row" else ()
    needs = [_needs(row, k) for k in range(len(row))] or writer.needs.get(part.kind, (0,) * len(part.parts))
    texts = []
    for piece, least in zip(part.parts, needs, strict=True):
        text, binds = _assemble(piece, operands, writer)
        # A formula has brackets where LaTeX needs them; an inserted operand may need more.
        may_need = writer.flat or piece.kind == "operand" or part.kind == "call"
        if binds == _OPEN and may_need:
            number, known = divmod(ord(text) - HOLES, 8)
            text = chr(HOLES + 8 * number + max(known, least))
        texts.append(writer.shapes["fence"].format(text, "(", ")") if binds < least and may_need else text)
    for k, piece in enumerate(row):
        if piece == NEXT_TO and _APART.match(texts[k + 1]):
            texts[k] = writer.other(DOT, [])  # 2 · 3, not 2 3; 2 · |a|
        elif piece == NEXT_TO and writer.holes and _HOLE_FIRST.match(texts[k + 1]):
            texts[k] = APART
    if part.kind == "power" and writer.holes and writer.flat and _HOLE.search(texts[1]):
        return f"{texts[0]}{RAISED}{texts[1]}{END}", Op.POWER
    shape = writer.shapes.get(part.kind)
    text = writer.other(part, texts) if shape is None else shape.format(*texts, *part.text)
    if part.kind == "sub" and writer.flat and texts[1].startswith(("[", ".")):
        text = "".join(texts)  # Python's syntax
    return text, min((binding(row, k) for k in range(len(row))), default=writer.binds.get(part.kind, Op.ATOM))


def _needs(row: tuple[Part, ...], k: int) -> int:
    """Return the precedence that part `k` needs to stand between its neighbours without brackets."""
    least = 0
    if row[k].kind != "sign" and k + 1 < len(row) and row[k + 1].text != ",":
        after = binding(row, k + 1)
        least = after + 1 if after in (Op.COMPARISON, Op.POWER) or row[k + 1] == NEXT_TO else after
    if row[k].kind != "sign" and k > 0 and row[k - 1].text != ",":
        before = binding(row, k - 1)  # a - (b - c), and no minus sign after a sign, except as in a < -3
        least = max(least, before + 1 if before == Op.COMPARISON else max(before, Op.PREFIX) + 1)
    return least


def _number(x: float, flat: bool) -> Part:
    """Return a number as a formula: six significant digits, unsigned zero; 2.5e-7 is 2.5 · 10⁻⁷, unless `flat`."""
    if x < 0:
        return Part("row", parts=(Part("sign", "-"), _number(-x, flat)))
    if not math.isfinite(x):
        return Part("letter", r"\mathrm{NaN}" if math.isnan(x) else r"\infty")
    digits, _, power = f"{abs(x):.6g}".partition("e")
    if not power:
        return Part("number", digits)
    if flat:  # as on node cards and in tables
        return Part("scientific", f"{digits}e{power.replace('-', '−')}")
    tens = Part("power", parts=(Part("number", "10"), _number(float(power), flat)))
    return tens if digits == "1" else Part("row", parts=(Part("number", digits), DOT, tens))


def _spaced(row: tuple[Part, ...], texts: list[str]) -> str:
    """Join a row with spaces around signs between operands, and none after prefix signs."""
    out = ""
    for k, text in enumerate(texts):
        word = row[k].kind == "sign" and k < len(row) - 1 and text not in ("-", "−", "+", "∂")  # such as Σ
        out += ", " if row[k].text == "," else f" {text} ".replace("  ", " ") if infix(row, k) else text + " " * word
    return out


_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def _latex_name(name: str) -> str:
    if match := re.fullmatch(r"([A-Za-z])(\d+)", name.translate(_DIGITS)):
        return f"{match[1]}_{{{match[2]}}}"
    special = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", "<": "{<}", ">": "{>}", " ": "\\ "}
    clean = "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return clean if re.fullmatch(r"[A-Za-z]", name) else rf"\mathrm{{{clean}}}"


def _latex(part: Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _spaced(part.parts, inner)
        case "cases":
            rows = r" \\ ".join(f"{inner[k]} & {inner[k + 1]}" for k in range(0, len(inner), 2))
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        case "name" if not part.text.startswith("\\"):
            name = re.sub(r"\w*\d\w*", r"\\text{\g<0>}", part.text)  # MathJax 3 inserts a space before a bare digit
            return rf"\operatorname{{{name}}}"
        case "word" if not part.text.startswith("\\"):
            return rf"\text{{{part.text}}}"
        case _:
            return part.text


def _mathml(part: Part, inner: list[str]) -> str:
    if part.kind == "cases":
        rows = [f"<mtr><mtd>{inner[k]}</mtd><mtd>{inner[k + 1]}</mtd></mtr>" for k in range(0, len(inner), 2)]
        return f"<mrow><mo>{{</mo><mtable columnalign='left left'>{''.join(rows)}</mtable></mrow>"
    if part.kind == "row":
        return f"<mrow>{''.join(inner)}</mrow>"
    if part == NEXT_TO:
        return '<mspace width=".17em"/>'
    tag = {"name": "mi", "letter": "mi", "number": "mn", "word": "mtext"}.get(part.kind, "mo")
    return f"<{tag}>{escape(_plain(part, inner))}</{tag}>"


_SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _plain(part: Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _spaced(part.parts, inner)
        case "power":
            if inner[1] == SYMBOLS[r"\top"]:
                return f"{inner[0]}ᵀ"
            whole = re.fullmatch(r"\(?(−?\d+)\)?", inner[1])
            return inner[0] + (whole[1].translate(_SUPERSCRIPTS) if whole else f"^{inner[1]}")
        case "cases":
            rows = [f"{inner[k]} if {inner[k + 1]} else " for k in range(0, len(inner) - 2, 2)]
            return f"({''.join(rows)}{inner[-2]})"
        case _:
            return SYMBOLS.get(part.text, part.text.lstrip("\\"))


LATEX = Writer(
    _latex_name,
    {
        "frac": r"\frac{{{}}}{{{}}}",
        "sqrt": r"\sqrt{{{}}}",
        "overline": r"\overline{{{}}}",
        "power": "{}^{{{}}}",
        "sub": "{}_{{{}}}",
        "call": "{}{}",
        "fence": r"\left{1}{0}\right{2}",
    },
    _latex,
)
MATHML = Writer(
    lambda name: f"<mi>{escape(name)}</mi>",
    {
        "frac": "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>",
        "sqrt": "<msqrt>{}</msqrt>",
        "overline": "<mover><mrow>{}</mrow><mo>‾</mo></mover>",
        "sub": "<msub><mrow>{}</mrow><mrow>{}</mrow></msub>",
        "power": "<msup><mrow>{}</mrow><mrow>{}</mrow></msup>",
        "call": "<mrow>{}{}</mrow>",
        "fence": "<mrow><mo>{1}</mo>{0}<mo>{2}</mo></mrow>",
    },
    _mathml,
)
TEXT = Writer(
    str,
    {
        "frac": "{} / {}",
        "sqrt": "√{}",
        "overline": "mean({})",
        "sub": "{}_{}",
        "call": "{}{}",
        "fence": "{1}{0}{2}",
    },
    _plain,
    needs={
        "frac": (Op.PRODUCT, Op.POWER),
        "sqrt": (Op.ATOM,),
        "power": (Op.ATOM, Op.ATOM),
        "sub": (Op.ATOM, Op.ATOM),
        "call": (0, _FENCED),
    },
    binds={"frac": Op.PRODUCT, "sqrt": Op.POWER, "power": Op.POWER, "scientific": Op.POWER, "fence": _FENCED},
    flat=True,
)


def template(formula: Any) -> dict[str, str]:
    """Return `formula` as text, MathML (without its element) and LaTeX; one-letter names from HOLES on are holes."""
    notations = {"text": TEXT, "mathml": MATHML, "latex": LATEX}
    return {name: write(formula, writer._replace(holes=True))[0] for name, writer in notations.items()}
