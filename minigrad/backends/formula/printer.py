"""Printing of formulas as LaTeX, MathML and plain text. Each printer returns the text and its precedence.

The caller adds brackets by precedence. In a *template*, operands are represented by placeholders, called holes:
characters of the private use area, ``HOLES + 8 * number + required``. Inserted text is put in brackets if its
precedence is below `required`. Two marks depend on the inserted text: DOT_MARK becomes a dot in front of a digit, and
text between SUPERSCRIPT_START and SUPERSCRIPT_END becomes superscript digits if it is an integer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple

from minigrad.backends.formula.parser import DOT, JUXTAPOSITION, SYMBOLS, Part, is_infix, parse, precedence_of
from minigrad.core.op import Op, Operand

__all__ = [
    "DOT_MARK",
    "HOLES",
    "LATEX",
    "MATHML",
    "SUPERSCRIPT_END",
    "SUPERSCRIPT_START",
    "TEXT",
    "Notation",
    "print_formula",
    "template",
]

_ARGUMENT = Op.ATOM + 1  # minimum precedence of a function argument without brackets
_UNKNOWN = 99  # precedence of a hole, whose text is unknown
HOLES, DOT_MARK, SUPERSCRIPT_START, SUPERSCRIPT_END = 0xE000, "\uf8f0", "\uf8f1", "\uf8f2"
_HOLE = re.compile("[\ue000-\uf8ef]")


class Notation(NamedTuple):
    """Notation of formulas: how to print names, constructs with a template in `shapes`, and all other parts.

    `operand_precedence` maps a construct to the minimum precedence of each part without brackets, and `precedence` maps
    it to its own precedence. If `is_linear`, constructs that LaTeX groups visually, such as fractions, may also need
    brackets.
    """

    print_name: Callable[[str], str]
    shapes: Mapping[str, str]
    print_part: Callable[[Part, list[str]], str]
    operand_precedence: Mapping[str, tuple[int, ...]] = {
        "power": (Op.ATOM, 0),
        "sub": (Op.ATOM, 0),
        "call": (0, _ARGUMENT),
    }
    precedence: Mapping[str, int] = {"frac": Op.PRODUCT, "power": Op.POWER, "fence": _ARGUMENT}
    is_linear: bool = False
    has_holes: bool = False


_WORD = r"[\w\u0300-\u036f.'\"′…()\[\]]+"
_KEYS = r"(?:\.\w+\([^()]*\)|\[[^\[\]]*\])+"  # indices and method calls, as in the name of a view
_ATOMIC = re.compile(rf"{_KEYS}|(?!.*[²³¹⁰-⁹]){_WORD}(?: {_WORD})*")  # other labels, such as x1*w1 + b, need brackets
_NEEDS_DOT = re.compile(r"(?:<[^>]*>)*[\d|‖]")
_HOLE_FIRST = re.compile(f"(?:<[^>]*>)*{_HOLE.pattern}")


def print_formula(formula: Any, writer: Notation) -> tuple[str, int]:
    """Return the text of `formula`, and its precedence."""
    op, value = formula.op, formula.value
    if op is not None:
        operands = {name: formula.attrs.get(name, name) for name in op.attrs} | dict(
            zip(op.inputs, formula.args, strict=True)
        )
        printed, precedence = _print_part(parse(op.formula, (*op.inputs, *op.attrs)), operands, writer)
        return printed, precedence if precedence == _UNKNOWN else min(
            precedence, Op.ATOM if op.precedence is None else op.precedence
        )
    return _print_leaf(value, writer)


def _print_leaf(value: Any, writer: Notation) -> tuple[str, int]:
    """Return the text and precedence of a name, a number or another attribute."""
    if isinstance(value, str):
        if writer.has_holes and _HOLE.fullmatch(value):
            return value, _UNKNOWN
        return writer.print_name(value), Op.ATOM if _ATOMIC.fullmatch(value) else Op.COMPARISON
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _print_part(_number_part(float(value), writer.is_linear), {}, writer)
    return writer.print_name(str(value)), Op.ATOM


def _print_part(part: Part, operands: Mapping[str, Any], writer: Notation) -> tuple[str, int]:
    if part.kind == "operand":
        operand = operands[part.text]
        return print_formula(operand, writer) if isinstance(operand, Operand) else _print_leaf(operand, writer)
    row = part.parts if part.kind == "row" else ()
    needs = [_required_precedence(row, k) for k in range(len(row))] or writer.operand_precedence.get(
        part.kind, (0,) * len(part.parts)
    )
    printed = []
    for piece, required in zip(part.parts, needs, strict=True):
        text, precedence = _print_part(piece, operands, writer)
        # A declared formula contains the brackets that LaTeX needs. An inserted operand may need more.
        may_need_brackets = writer.is_linear or piece.kind == "operand" or part.kind == "call"
        if precedence == _UNKNOWN and may_need_brackets:
            hole_index, hole_precedence = divmod(ord(text) - HOLES, 8)
            text = chr(HOLES + 8 * hole_index + max(hole_precedence, required))
        printed.append(
            writer.shapes["fence"].format(text, "(", ")") if precedence < required and may_need_brackets else text
        )
    for k, piece in enumerate(row):
        if piece == JUXTAPOSITION and _NEEDS_DOT.match(printed[k + 1]):
            printed[k] = writer.print_part(DOT, [])  # as in 2 · 3 and 2 · |a|
        elif piece == JUXTAPOSITION and writer.has_holes and _HOLE_FIRST.match(printed[k + 1]):
            printed[k] = DOT_MARK
    if part.kind == "power" and writer.has_holes and writer.is_linear and _HOLE.search(printed[1]):
        return f"{printed[0]}{SUPERSCRIPT_START}{printed[1]}{SUPERSCRIPT_END}", Op.POWER
    shape = writer.shapes.get(part.kind)
    text = writer.print_part(part, printed) if shape is None else shape.format(*printed, *part.text)
    if part.kind == "sub" and writer.is_linear and printed[1].startswith(("[", ".")):
        text = "".join(printed)  # Python's syntax
    return text, min(
        (precedence_of(row, k) for k in range(len(row))), default=writer.precedence.get(part.kind, Op.ATOM)
    )


def _required_precedence(row: tuple[Part, ...], k: int) -> int:
    """Return the minimum precedence at which part `k` of a row needs no brackets."""
    required = 0
    if row[k].kind != "sign" and k + 1 < len(row) and row[k + 1].text != ",":
        after = precedence_of(row, k + 1)
        required = after + 1 if after in (Op.COMPARISON, Op.POWER) or row[k + 1] == JUXTAPOSITION else after
    if row[k].kind != "sign" and k > 0 and row[k - 1].text != ",":
        before = precedence_of(row, k - 1)  # as in a - (b - c) and a - (-b); a < -3 needs no brackets
        required = max(required, before + 1 if before == Op.COMPARISON else max(before, Op.PREFIX) + 1)
    return required


def _number_part(x: float, flat: bool) -> Part:
    """Convert a number to a formula: six significant digits, 2.5 · 10⁻⁷ for 2.5e-7 unless `flat`, and 0 for -0."""
    if x < 0:
        return Part("row", parts=(Part("sign", "-"), _number_part(-x, flat)))
    if not math.isfinite(x):
        return Part("letter", r"\mathrm{NaN}" if math.isnan(x) else r"\infty")
    digits, _, power = f"{abs(x):.6g}".partition("e")
    if not power:
        return Part("number", digits)
    if flat:  # used on node cards and in tables
        return Part("scientific", f"{digits}e{power.replace('-', '−')}")
    power_of_ten = Part("power", parts=(Part("number", "10"), _number_part(float(power), flat)))
    return power_of_ten if digits == "1" else Part("row", parts=(Part("number", digits), DOT, power_of_ten))


def _join_row(row: tuple[Part, ...], part_sources: list[str]) -> str:
    """Join the printed parts of a row, with spaces around infix signs and none after prefix signs."""
    joined = ""
    for k, text in enumerate(part_sources):
        is_prefix_word = row[k].kind == "sign" and k < len(row) - 1 and text not in ("-", "−", "+", "∂")  # such as Σ
        joined += (
            ", "
            if row[k].text == ","
            else f" {text} ".replace("  ", " ")
            if is_infix(row, k)
            else text + " " * is_prefix_word
        )
    return joined


_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def _latex_name(name: str) -> str:
    if match := re.fullmatch(r"([A-Za-z])(\d+)", name.translate(_DIGITS)):
        return f"{match[1]}_{{{match[2]}}}"
    special = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", "<": "{<}", ">": "{>}", " ": "\\ "}
    clean = "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return clean if re.fullmatch(r"[A-Za-z]", name) else rf"\mathrm{{{clean}}}"


def _print_latex(part: Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _join_row(part.parts, inner)
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


def _print_mathml(part: Part, inner: list[str]) -> str:
    if part.kind == "cases":
        rows = [f"<mtr><mtd>{inner[k]}</mtd><mtd>{inner[k + 1]}</mtd></mtr>" for k in range(0, len(inner), 2)]
        return f"<mrow><mo>{{</mo><mtable columnalign='left left'>{''.join(rows)}</mtable></mrow>"
    if part.kind == "row":
        return f"<mrow>{''.join(inner)}</mrow>"
    if part == JUXTAPOSITION:
        return '<mspace width=".17em"/>'
    tag = {"name": "mi", "letter": "mi", "number": "mn", "word": "mtext"}.get(part.kind, "mo")
    return f"<{tag}>{escape(_print_text(part, inner))}</{tag}>"


_SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _print_text(part: Part, inner: list[str]) -> str:
    match part.kind:
        case "row":
            return _join_row(part.parts, inner)
        case "power":
            if inner[1] == SYMBOLS[r"\top"]:
                return f"{inner[0]}ᵀ"
            integer = re.fullmatch(r"\(?(−?\d+)\)?", inner[1])
            return inner[0] + (integer[1].translate(_SUPERSCRIPTS) if integer else f"^{inner[1]}")
        case "cases":
            rows = [f"{inner[k]} if {inner[k + 1]} else " for k in range(0, len(inner) - 2, 2)]
            return f"({''.join(rows)}{inner[-2]})"
        case _:
            return SYMBOLS.get(part.text, part.text.lstrip("\\"))


LATEX = Notation(
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
    _print_latex,
)
MATHML = Notation(
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
    _print_mathml,
)
TEXT = Notation(
    str,
    {
        "frac": "{} / {}",
        "sqrt": "√{}",
        "overline": "mean({})",
        "sub": "{}_{}",
        "call": "{}{}",
        "fence": "{1}{0}{2}",
    },
    _print_text,
    operand_precedence={
        "frac": (Op.PRODUCT, Op.POWER),
        "sqrt": (Op.ATOM,),
        "power": (Op.ATOM, Op.ATOM),
        "sub": (Op.ATOM, Op.ATOM),
        "call": (0, _ARGUMENT),
    },
    precedence={"frac": Op.PRODUCT, "sqrt": Op.POWER, "power": Op.POWER, "scientific": Op.POWER, "fence": _ARGUMENT},
    is_linear=True,
)


def template(formula: Any) -> dict[str, str]:
    """Return `formula` as text, MathML (without a math element) and LaTeX. Characters from HOLES on are holes."""
    notations = {"text": TEXT, "mathml": MATHML, "latex": LATEX}
    return {name: print_formula(formula, writer._replace(has_holes=True))[0] for name, writer in notations.items()}
