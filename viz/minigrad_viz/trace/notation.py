"""Format numbers, names and formulas, and estimate text widths; the output is the same on every machine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative, product
from minigrad.ops.normalization import Norm

__all__ = [
    "UNWRITABLE",
    "beside",
    "brief",
    "cells",
    "clean",
    "compact",
    "escape",
    "fit",
    "fit_cells",
    "for_formula",
    "formula_of",
    "handle",
    "is_function",
    "local_formula",
    "mathml",
    "number",
    "plain",
    "pretty",
    "product_formula",
    "readable",
    "rounded",
    "shorten",
    "shorten_name",
    "shortened",
    "subscript",
    "text_width",
]

# --- numbers ---------------------------------------------------------------------------------------------------------


def number(x: float | None) -> str:
    """Format `x` to 6 significant digits, as Python writes floats; -0.0 becomes 0.0 and None a dash.

    >>> [number(x) for x in (2.0, 0.1 + 0.2, -0.0, 1e-7, 123456789.0, float("-inf"), None)]
    ['2.0', '0.3', '0.0', '1e-07', '1.23457e+08', '-inf', '—']
    """
    if x is None:
        return "—"
    text = f"{x:.6g}"
    if text == "-0":
        return "0.0"
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def pretty(x: float | None) -> str:
    """Format `x` as `number` does, with a true minus sign, ∞ and NaN.

    >>> pretty(-3.0), pretty(float("inf")), pretty(float("nan"))
    ('−3.0', '∞', 'NaN')
    """
    return number(x).replace("-", "−").replace("inf", "∞").replace("nan", "NaN")


def shortened(x: float) -> float:
    """Round `x` for a drawing to three significant digits, without rounding its integer part.

    >>> shortened(0.123456), shortened(1089.7), shortened(-2.0)
    (0.123, 1090.0, -2.0)
    """
    if not math.isfinite(x):
        return x
    digits = max(3, min(6, 1 + math.floor(math.log10(abs(x) or 1))))
    return float(f"{x:.{digits}g}")


def brief(x: float | None) -> str:
    """Format `shortened(x)` as `pretty` does.

    >>> brief(0.123456), brief(-2.0), brief(None)
    ('0.123', '−2.0', '—')
    """
    return pretty(None if x is None else shortened(x))


def compact(x: float | None) -> str:
    """Format `x` to 2 significant digits as `pretty` does, with an exponent if it is small or large.

    >>> [compact(x) for x in (-0.00454, 0.25, 123.0, 0.0, 2e9, None)]
    ['−4.5e−3', '0.25', '120.0', '0.0', '2.0e9', '—']
    """
    if x is None or not x or not math.isfinite(x) or 0.01 <= abs(x) < 1e4:
        return pretty(None if x is None else float(f"{x:.2g}"))
    mantissa, _, power = f"{x:.1e}".partition("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def rounded(x: float | None) -> float | str | None:
    """Round `x` to 6 significant digits for JSON; NaN and infinities become strings.

    >>> [rounded(x) for x in (1 / 3, -0.0, float("nan"), float("-inf"), None)]
    [0.333333, 0.0, 'NaN', '-Infinity', None]
    """
    if x is None:
        return None
    if math.isfinite(x):
        return float(f"{x:.6g}") or 0.0
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


# --- names: users choose them, so they may contain any character ---------------------------------------------------

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# Characters that XML forbids, that UTF-8 cannot encode, or that change the direction of the surrounding text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_SPACES = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")


def clean(text: object) -> str:
    """Return `text` on one line, with characters that XML forbids replaced by U+FFFD.

    >>> clean("two\\nlines"), clean("a\\x00b")
    ('two lines', 'a�b')
    """
    return _UNPRINTABLE.sub("\ufffd", _SPACES.sub(" ", str(text)))


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, ending in an ellipsis if it was truncated."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shorten_name(name: str, limit: int) -> str:
    """Shorten `name` as `shorten` does, but preserve a subscript and the end of a path, which may tell two names apart.

    >>> shorten_name("weight of the petal₁₂", 10), shorten_name("layers[0].neurons[1].w[2]", 20)
    ('weight …₁₂', '…neurons[1].w[2]')
    """
    if len(name) > limit and "." in name and " " not in name:
        parts = name.split(".")
        ends = (f"…{'.'.join(parts[k:])}" for k in range(1, len(parts)))
        name = next((end for end in ends if len(end) <= limit), name)
    start = name.rstrip("₀₁₂₃₄₅₆₇₈₉")
    tail = name[len(start) :]
    return shorten(start, limit - len(tail)) + tail if len(tail) < limit // 2 else shorten(name, limit)


def escape(text: str) -> str:
    """Escape `text` for XML or HTML content and attributes.

    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#39;c&#39;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def subscript(n: int) -> str:
    """Return the digits of `n` as subscripts.

    >>> subscript(12)
    '₁₂'
    """
    return str(n).translate(_SUBSCRIPTS)


def handle(index: int) -> str:
    """Return the name of an unnamed node: v and its tape index as a subscript, which is no Python identifier.

    >>> handle(12)
    'v₁₂'
    """
    return f"v{subscript(index)}"


# --- attributes ------------------------------------------------------------------------------------------------------


def readable(name: str, x: Any) -> str:
    """Format the attribute `name` as a user writes it: a key as in ``x[0, 1:3]``, a type by its name.

    >>> readable("key", (slice(None), slice(2, 4), 0)), readable("shape", (2, 3)), readable("dtype", mg.float64)
    ('[:, 2:4, 0]', '(2, 3)', 'float64')
    >>> readable("rows", (range(0, 2), range(1, 3))), readable("how", object())
    ('(0:2, 1:3)', 'object')
    """
    if isinstance(x, tuple) and name in ("key", "chain"):
        text = f"[{', '.join(map(_place, x))}]" if name == "key" else "".join(_view(*step) for step in x)
    else:
        text = _norm(x) if isinstance(x, Norm) else _windows(x) if _is_windows(name, x) else _written(x)
    return shorten(clean(text), _LONGEST)


def _written(x: Any) -> str:
    """Format any object as a user would write it, or by the name of its class."""
    if x is None or (isinstance(x, str | bool | int | float | complex) and type(x).__module__ == "builtins"):
        return str(x)
    if isinstance(x, Enum):
        return x.name.lower()
    if isinstance(x, mg.dtype):
        return x.name
    if isinstance(x, slice | range) or x is ...:
        return _place(x)
    if hasattr(x, "_fields"):  # a named tuple such as a convolution's window
        return ", ".join(f"{key} {_written(part)}" for key, part in zip(x._fields, x, strict=True))
    if isinstance(x, tuple | list):
        parts = ", ".join(map(_written, x)) + ("," if isinstance(x, tuple) and len(x) == 1 else "")
        return f"({parts})" if isinstance(x, tuple) else f"[{parts}]"
    if isinstance(x, type) or callable(x):
        return getattr(x, "__name__", type(x).__name__).strip("_<>")
    text = str(x)
    return type(x).__name__.strip("_") if _ADDRESS.search(text) or text.startswith(("<", "_")) else text


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def for_formula(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attributes for a formula: numbers and None are unchanged, others become short strings."""
    return {name: x if x is None or isinstance(x, int | float) else readable(name, x) for name, x in attrs.items()}


_LONGEST = 80  # characters of an attribute


def _is_windows(name: str, x: Any) -> bool:
    """Whether the attribute is a pooling's `windows`, not one that a user declared under that name."""
    rows = name == "windows" and isinstance(x, tuple) and all(isinstance(one, tuple | list) and one for one in x)
    return bool(rows) and all(isinstance(ranges, range) for one in x for ranges in one)


def _windows(x: Any) -> str:
    """Format a pooling's windows (ranges by dimension), as a convolution's if they are regular."""
    found = [_alike(ranges) for ranges in x]
    if None in found:
        return " × ".join(f"({', '.join(map(_place, ranges))})" for ranges in x)
    sizes, strides, padding, dilation = zip(*[one for one in found if one], strict=True)
    return f"size {sizes}, stride {strides}, padding {tuple((by, by) for by in padding)}, dilation {dilation}"


def _norm(x: Any) -> str:
    """Format the dims that a norm standardises and the eps that it adds to their variance."""
    dims = ", ".join(map(str, x.dim))
    mean = "" if x.centred else ", without a mean"
    return f"over dim {dims} of {_written(x.shape)}, eps {x.eps:g}{mean}"


def _alike(ranges: Sequence[range]) -> tuple[int, int, int, int] | None:
    """Return size, stride, padding and dilation of windows clipped to the input; None if they are irregular."""
    whole = max(ranges, key=len)
    last = max(one[-1] for one in ranges if one)
    first, second = ranges[0], ranges[1 % len(ranges)]
    for stride in (second.start - first.start, second.stop - first.stop):
        padding = stride * ranges.index(whole) - whole.start
        starts = range(-padding, -padding + stride * len(ranges), stride) if stride else [whole.start]
        full = [[start + whole.step * k for k in range(len(whole))] for start in starts]
        if [list(one) for one in ranges] == [[at for at in one if 0 <= at <= last] for one in full]:
            return len(whole), stride or 1, padding, whole.step
    return None


def _place(part: Any) -> str:
    """Format one dimension of a key, or the indices that a window covers."""
    if not isinstance(part, slice | range):
        return "…" if part is ... else _written(part)
    ends = ["" if end is None else str(end) for end in (part.start, part.stop, part.step)]
    return ":".join(ends[: 2 + (ends[2] not in ("", "1"))])


def _view(op: mg.Op, attrs: Mapping[str, Any]) -> str:
    """Format one step of a view's chain, such as ``[0]`` or ``.reshape(2, 3)``."""
    if op.name == "index":
        return readable("key", attrs["key"])
    return f".{op.name}({', '.join(readable(name, x).strip('()') for name, x in attrs.items())})"


# --- formulas --------------------------------------------------------------------------------------------------------

# A custom op may have a rule that only accepts floats; it is still drawn.
UNWRITABLE = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def formula_of(op: mg.Op, operands: Sequence[str | float], attrs: Mapping[str, Any] | None = None) -> Formula | str:
    """Return `op` applied to names or numbers, as a formula, or as a string if the formula cannot be derived.

    `attrs` may give its attributes as they are shown.

    >>> plain(formula_of(mg.OPS["mul"], ["a", -3.0]))
    'a · (−3)'
    """
    operands = [*operands, *beside(op, attrs)]
    try:
        formula = expression(op, operands, attrs)
        formula.text()
    except UNWRITABLE:
        names = [x if isinstance(x, str) else number(x) for x in operands]
        return f"{op.name}({', '.join(names)})"
    return formula


def is_function(op: mg.Op) -> bool:
    """Whether `op` is an `autograd.Function`, whose attributes no table lists."""
    return op.variadic and op.aux == ("ctx",)


def beside(op: mg.Op, attrs: Mapping[str, Any] | None) -> list[str]:
    """Return the non-tensor arguments of a Function as written in a call: ``dim=-1``."""
    known = for_formula(attrs or {}) if is_function(op) else {}
    return [f"{name}={x}".replace("=-", "=−") for name, x in known.items() if name not in ("output", "outputs")]


def local_formula(op: mg.Op, slot: int, output: str | float, operands: Sequence[str | float]) -> Formula | None:
    """Return the derivative of `op` with respect to operand `slot`; None if it cannot be written."""
    return _writable(lambda: local_derivative(op, slot, output, operands))


def product_formula(
    op: mg.Op, slot: int, output: str, operands: Sequence[str | float], attrs: Mapping[str, Any]
) -> Formula | None:
    """Return the VJP of operand `slot`, in which g is the gradient of the output; None if it cannot be written."""
    return None if op.variadic else _writable(lambda: product(op, slot, output, operands, attrs))


def _writable(make: Callable[[], Formula | None]) -> Formula | None:
    try:
        formula = make()
        if formula is not None:
            formula.text()
    except UNWRITABLE:
        return None
    return formula


def plain(formula: Formula | str) -> str:
    """Return `formula` as one line of text."""
    return formula if isinstance(formula, str) else formula.text()


def mathml(formula: Formula | str) -> str:
    """Return `formula` as a ``<math>`` element."""
    return f"<math><mtext>{escape(formula)}</mtext></math>" if isinstance(formula, str) else formula.mathml()


# --- widths ----------------------------------------------------------------------------------------------------------

# Hundredths of the font size, rounded up from DejaVu Sans, the widest common sans serif, so that text fits its box in
# the other fonts too. Bold is 13% wider.
_WIDTHS = {"'ijlIJ": 29, " !,./:;\\|-·′": 36, '"()[]frt': 41, "*?_`csz²³∂": 55, "mMOQ": 86, "%@W…—\ufffd": 104}
_WIDTHS |= {
    "Fkvxyao": 61,
    "0123456789$ESbdghnpqueTPL{}": 64,
    "AVBRXZC": 70,
    "DGHNUK&w": 82,
    "#+<=>^~−×≤≥≠∞": 84,
}
_WIDTH_OF = {character: width for group, width in _WIDTHS.items() for character in group}
_WIDTH_OF |= dict.fromkeys("₀₁₂₃₄₅₆₇₈₉⁰¹⁴⁵⁶⁷⁸⁹", 40)


def cells(character: str) -> int:
    """Return the terminal columns of a character: 0 for combining marks, 2 for East Asian letters and emoji."""
    code = ord(character)
    if 0x300 <= code < 0x370 or 0x200B <= code < 0x2010 or 0xFE00 <= code < 0xFE10:
        return 0
    return 2 if 0x1100 <= code < 0x1160 or 0x2E80 <= code < 0xD7B0 or 0xF900 <= code < 0xFB00 or code > 0x1F000 else 1


def fit_cells(text: str, columns: int) -> str:
    """Truncate `text` to a number of terminal columns."""
    return shorten(text, columns if all(cells(c) < 2 for c in text) else columns // 2)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Estimate the maximum width of `text`, in the unit of the font size `size`.

    >>> text_width("ab", 10), text_width("ab", 10, bold=True)
    (12.5, 14.12)
    """
    wide = sum(_WIDTH_OF.get(c) or (0, 85, 135)[cells(c)] for c in text)
    return round(wide * size * (0.0113 if bold else 0.01), 2)


def fit(text: str, room: float, size: float, bold: bool = False) -> str:
    """Truncate `text` to width `room`, ending in an ellipsis if it was truncated."""
    text = shorten(text, int(room / size * 4) + 2)  # no character is narrower than a quarter of `size`
    while len(text) > 2 and text_width(text, size, bold) > room:
        text = f"{text[:-2]}…"
    return text
