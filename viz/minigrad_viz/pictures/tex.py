"""Conversion of labels to TeX. Names, values and formulas are set in math mode."""

from __future__ import annotations

import re
import unicodedata

from minigrad.backends.formula import Formula
from minigrad.backends.formula.parser import SYMBOLS
from minigrad.backends.formula.printer import LATEX, print_formula

__all__ = ["escape_tex", "format_amount", "format_formula", "format_math", "format_name"]

_SPECIAL = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", '"': "''", "—": "---"}
_SPECIAL |= {character: f"\\{character}" for character in "#$%&_{}"} | {"–": "--", "…": r"\dots{}", "\u00a0": "~"}
_MATH = {sign: tex for tex, sign in SYMBOLS.items() if tex.startswith("\\") and len(sign) == 1}
_MATH |= {letter: f"\\{unicodedata.name(letter).split()[-1].lower()}" for letter in "ζθικνξυφχψω"}
_MATH |= {letter: f"\\{unicodedata.name(letter).split()[-1].capitalize()}" for letter in "ΓΔΘΞΠΣΦΨΩ"} | {
    "Λ": r"\Lambda"
}
_MATH |= {
    "−": "-",
    "∇": r"\nabla",
    "√": r"\surd",
    "→": r"\to",
    "′": "'",
    "‖": r"\|",
    "±": r"\pm",
    "∗": "*",
    "≈": r"\approx",
}
_MATH |= {sign: sign for sign in "<>|"} | {"\u22c1": r"\bigvee", "ᵀ": r"{}^{\top}", "∏": r"\prod"}
_MATH |= {sub: f"{{}}_{{{k}}}" for k, sub in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_MATH |= {sup: f"{{}}^{{{k}}}" for k, sup in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {"⁻": "{}^{-}"}
_ACCENTED = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_NAME_PATTERN = re.compile(r"([^\W\d_]+)(?:_?(\d+)|_([^\W_]+))?(['′]*)")
_NUMBER_PATTERN = re.compile(r"(\d[\d.]*)e([+−]?)0*(\d+)")
_MATH_PATTERN = re.compile(r"(?:[\d.,=+()\[\] −×·∞Σ]|e[+−]?\d)+")


def escape_tex(label: str) -> str:
    r"""Escape a string for TeX, in text and math mode. Characters that TeX's fonts lack become question marks.

    >>> print(escape_tex("50% of a_1 & b"), escape_tex("2×3"), escape_tex("重"))
    50\% of a\_1 \& b 2\ensuremath{\times}3 ?
    """
    return "".join(map(_escape_character, label))


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _MATH:
        return f"\\ensuremath{{{_MATH[character]}}}"
    if character.isascii() and character.isprintable():
        return character
    if character in _ACCENTED:
        return character
    plain = unicodedata.normalize("NFKD", character)[:1]
    return plain if plain.isascii() and plain.isalnum() else "" if unicodedata.combining(character) else "?"


def format_name(label: str) -> str:
    r"""Format a name for math mode: a letter is a variable, and the part after an underscore is a subscript.

    >>> print(*map(format_name, ["w", "w_1", "v₁₂", "x_in", "α", "bias", "w[0]"]))
    w w_{1} v_{12} x_{\mathrm{in}} \alpha \mathrm{bias} \text{w[0]}
    """
    match = _NAME_PATTERN.fullmatch(label.translate(_SUBSCRIPTS) if label[-1:] in "₀₁₂₃₄₅₆₇₈₉" else label)
    if match is None:
        return f"\\text{{{escape_tex(label)}}}"
    base, digits, word, primes = match.groups()
    subscript = digits or (word if word and len(word) == 1 else word and f"\\mathrm{{{escape_tex(word)}}}")
    return f"{_format_base(base)}{primes.replace('′', chr(39))}{f'_{{{subscript}}}' if subscript else ''}"


def _format_base(base: str) -> str:
    if len(base) > 1:
        return f"\\mathrm{{{escape_tex(base)}}}"
    return base if base.isascii() else _MATH.get(base, f"\\text{{{escape_tex(base)}}}")


def format_math(label: str) -> str:
    r"""Format the values and signs on cards and edges for math mode.

    >>> print(format_math("−3.0"), format_math("2.5e−07"), format_math("1.0 × (−3.0) = −3.0"), format_math("—"))
    -3.0 2.5\cdot 10^{-7} 1.0 \times (-3.0) = -3.0 \text{---}
    """
    if not _MATH_PATTERN.fullmatch(label):
        return f"\\text{{{escape_tex(label)}}}"
    with_powers = _NUMBER_PATTERN.sub(
        lambda match: f"{match[1]}\\cdot 10^{{{match[2].replace('+', '')}{match[3]}}}", label
    )
    return "".join(_MATH.get(character, character) for character in with_powers)


def format_amount(label: str) -> str:
    """Format a value or gradient of a card, in math mode if it is numeric."""
    return f"${format_math(label)}$" if _MATH_PATTERN.fullmatch(label) else escape_tex(label)


_FORMULA_STYLE = LATEX._replace(
    print_name=format_name, shapes={**LATEX.shapes, "fence": r"\mathopen{{}}\left{1}{0}\right{2}"}
)


def format_formula(rule: Formula | str) -> str:
    """Format a formula for math mode; a formula taller than a line becomes plain text."""
    if isinstance(rule, str):
        return f"\\text{{{escape_tex(rule)}}}"
    tex = print_formula(rule, _FORMULA_STYLE)[0].replace("‖", r"\|")
    return f"\\text{{{escape_tex(rule.formula())}}}" if r"\begin" in tex else tex
