"""Conversion of labels to TeX: text, and names, values and formulas in math mode."""

from __future__ import annotations

import re
import unicodedata

from minigrad.backends.formula import Formula
from minigrad.backends.formula.reading import SYMBOLS
from minigrad.backends.formula.writing import LATEX, write

__all__ = ["amount", "formula", "math", "name", "text"]

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
_NAME = re.compile(r"([^\W\d_]+)(?:_?(\d+)|_([^\W_]+))?(['′]*)")
_NUMBER = re.compile(r"(\d[\d.]*)e([+−]?)0*(\d+)")
_MATHEMATICAL = re.compile(r"(?:[\d.,=+()\[\] −×·∞Σ]|e[+−]?\d)+")


def text(said: str) -> str:
    r"""Escape a string for TeX, in text and math mode. Characters that TeX's fonts lack become question marks.

    >>> print(text("50% of a_1 & b"), text("2×3"), text("重"))
    50\% of a\_1 \& b 2\ensuremath{\times}3 ?
    """
    return "".join(map(_character, said))


def _character(character: str) -> str:
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


def name(called: str) -> str:
    r"""Format a name for math mode: a letter is a variable, and the part after an underscore is a subscript.

    >>> print(name("w"), name("w_1"), name("v₁₂"), name("x_in"), name("α"), name("bias"), name("w[0]"))
    w w_{1} v_{12} x_{\mathrm{in}} \alpha \mathrm{bias} \text{w[0]}
    """
    found = _NAME.fullmatch(called.translate(_SUBSCRIPTS) if called[-1:] in "₀₁₂₃₄₅₆₇₈₉" else called)
    if found is None:
        return f"\\text{{{text(called)}}}"
    base, digits, word, primes = found.groups()
    below = digits or (word if word and len(word) == 1 else word and f"\\mathrm{{{text(word)}}}")
    return f"{_base(base)}{primes.replace('′', chr(39))}{f'_{{{below}}}' if below else ''}"


def _base(base: str) -> str:
    if len(base) > 1:
        return f"\\mathrm{{{text(base)}}}"
    return base if base.isascii() else _MATH.get(base, f"\\text{{{text(base)}}}")


def math(said: str) -> str:
    r"""Format the values and signs on cards and edges for math mode.

    >>> print(math("−3.0"), math("2.5e−07"), math("1.0 × (−3.0) = −3.0"), math("—"))
    -3.0 2.5\cdot 10^{-7} 1.0 \times (-3.0) = -3.0 \text{---}
    """
    if not _MATHEMATICAL.fullmatch(said):
        return f"\\text{{{text(said)}}}"
    powers = _NUMBER.sub(lambda found: f"{found[1]}\\cdot 10^{{{found[2].replace('+', '')}{found[3]}}}", said)
    return "".join(_MATH.get(character, character) for character in powers)


def amount(said: str) -> str:
    """Format a quantity of a card, in math mode if it is numeric."""
    return f"${math(said)}$" if _MATHEMATICAL.fullmatch(said) else text(said)


_TEX = LATEX._replace(name=name, shapes={**LATEX.shapes, "fence": r"\mathopen{{}}\left{1}{0}\right{2}"})


def formula(rule: Formula | str) -> str:
    """Format a formula for math mode; a formula taller than a line becomes plain text."""
    if isinstance(rule, str):
        return f"\\text{{{text(rule)}}}"
    written = write(rule, _TEX)[0].replace("‖", r"\|")
    return f"\\text{{{text(rule.text())}}}" if r"\begin" in written else written
