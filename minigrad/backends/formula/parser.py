"""Parser for the subset of LaTeX in which ops declare their formulas: `parse` returns a tree of parts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from minigrad.core.op import Op

__all__ = ["DOT", "JUXTAPOSITION", "SIGNS", "SYMBOLS", "Part", "is_infix", "parse", "precedence_of"]


class Part(NamedTuple):
    """Node of a formula: a symbol or an operand (`text`), or a construct (frac, power, row, …) of `parts`."""

    kind: str
    text: str = ""
    parts: tuple[Part, ...] = ()

    @property
    def base(self) -> Part:
        """The base of a power or subscript; the part itself if it is of another kind."""
        return self.parts[0].base if self.kind in ("power", "sub") else self


_TOKEN = re.compile(
    r"\\(?:left|right)\\?\S|\\(?:begin|end)\{cases\}|\\(?:operatorname|text)\{[^}]*\}|\{\w+\}|\\[A-Za-z]+|\\\\|\d+(?:\.\d+)?|\S"
)
_FUNCTION = re.compile(r"\\(?:(?:arc)?(?:sin|cos|tan)h?|ln|log|exp|max|min|sigma)")
_LETTERS = {r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\lambda": "λ", r"\mu": "μ", r"\pi": "π", r"\infty": "∞"}
_LETTERS |= {r"\epsilon": "ε", r"\delta": "δ", r"\rho": "ρ", r"\eta": "η", r"\tau": "τ"}
SYMBOLS = {r"\cdot": "·", r"\times": "×", r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\sigma": "σ", "-": "−"} | _LETTERS
SYMBOLS |= {r"\mathrm{NaN}": "NaN", r"\land": "∧", r"\lor": "∨", r"\oplus": "⊕", r"\odot": "⊙", r"\top": "\u22a4"}
SYMBOLS |= {r"\sum": "Σ", r"\prod": "∏", r"\bigvee": "\u22c1", r"\bigwedge": "⋀", r"\partial": "∂"}
_FENCES = {"(": r"\left(", ")": r"\right)"}

# Precedence of infix signs. Other signs, such as =, have the lowest precedence; adjacent operands are a product.
SIGNS = {"+": Op.SUM, "-": Op.SUM, "/": Op.PRODUCT, r"\cdot": Op.PRODUCT, r"\times": Op.PRODUCT, "": Op.PRODUCT}
SIGNS[r"\odot"] = Op.PRODUCT
JUXTAPOSITION, DOT = Part("sign", ""), Part("sign", r"\cdot")


@lru_cache(maxsize=1000)
def parse(latex: str, names: tuple[str, ...]) -> Part:
    """Parse an op's formula, in which a group ``{a}`` that contains an operand's name denotes the operand."""
    tokens = [_FENCES.get(token, token) for token in _TOKEN.findall(latex)]
    row, rest = _row(tokens, 0, names)
    if rest != len(tokens):
        raise ValueError(f"formula {latex!r}: unbalanced at {tokens[rest:]}")
    return row


def _row(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[Part, int]:
    """Parse from token `i` to the end of the enclosing group. Return the part and the index of the next token."""
    parts: list[Part] = []
    while i < len(tokens) and not tokens[i].startswith((r"\right", r"\end", "}", "&", r"\\")):
        token = tokens[i]
        if token == "^":
            exponent, i = _group(tokens, i + 1, names)
            parts.append(Part("power", parts=(parts.pop(), exponent)))
        elif token == "_":
            index, i = _group(tokens, i + 1, names)
            base = parts.pop()
            if base.kind == "fence" and parts and parts[-1].kind == "name":
                base = Part("call", parts=(parts.pop(), base))
            parts.append(Part("sub", parts=(base, index)))
        elif token in (r"\frac", r"\sqrt", r"\overline"):
            first, i = _group(tokens, i + 1, names)
            second, i = _group(tokens, i, names) if token == r"\frac" else (None, i)
            parts.append(Part(token[1:], parts=(first, second) if second else (first,)))
        elif token.startswith(r"\left"):
            body, j = _row(tokens, i + 1, names)
            parts.append(Part("fence", (token[5:] + tokens[j][6:]).replace(r"\|", "‖"), (body,)))
            i = j + 1
        elif token.startswith(r"\begin"):
            cells, i = _cases(tokens, i + 1, names)
            parts.append(Part("cases", parts=tuple(cells)))
        else:
            part, i = _group(tokens, i, names)
            parts.append(part)
    operands: list[Part] = []  # right to left: in ln sin a the sine is applied first
    for part in reversed(parts):
        is_adjacent = bool(operands) and part.kind != "sign" and operands[-1].kind != "sign"
        if is_adjacent and part.base.kind == "name":
            operands[-1] = Part("call", parts=(part, operands[-1]))
        else:
            operands += [JUXTAPOSITION, part] if is_adjacent else [part]
    return (operands[0] if len(operands) == 1 else Part("row", parts=tuple(operands[::-1]))), i


def _group(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[Part, int]:
    """Parse a braced group, such as an operand, or a single token."""
    token = tokens[i]
    if token[0] == "{" and token[1:-1] in names:
        return Part("operand", token[1:-1]), i + 1
    if token[0] == "{" and len(token) > 1:
        return _row(_TOKEN.findall(token[1:-1]), 0, names)[0], i + 1
    if token == "{":
        part, j = _row(tokens, i + 1, names)
        return part, j + 1
    if token.startswith((r"\operatorname{", r"\text{")):
        command, word = token[1:-1].split("{")
        return Part("name" if command == "operatorname" else "word", word), i + 1
    letter = token.isalpha() or token in _LETTERS
    kind = "name" if _FUNCTION.fullmatch(token) else "number" if token[0].isdigit() else "letter" if letter else "sign"
    return Part(kind, token), i + 1


def _cases(tokens: list[str], i: int, names: tuple[str, ...]) -> tuple[list[Part], int]:
    """Parse the cells of ``value & condition \\\\ value & condition``, row by row."""
    cells = []
    while True:
        cell, i = _row(tokens, i, names)
        cells.append(cell)
        i += 1
        if tokens[i - 1].startswith(r"\end"):
            return cells, i


def is_infix(row: tuple[Part, ...], k: int) -> bool:
    """Return whether part `k` is a sign between two operands, rather than a prefix or postfix sign."""
    return row[k].kind == "sign" and 0 < k < len(row) - 1 and row[k - 1].kind != "sign"


def precedence_of(row: tuple[Part, ...], k: int) -> int:
    """Return the precedence of part `k`, which is `Op.ATOM` if the part is not a sign."""
    if is_infix(row, k):
        return SIGNS.get(row[k].text, Op.COMPARISON)
    if row[k].text == r"\partial":
        return Op.POWER
    return Op.ATOM if row[k].kind != "sign" else Op.PREFIX if k < len(row) - 1 else Op.POWER
