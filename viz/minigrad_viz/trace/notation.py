"""Formatting of numbers, names and formulas, and estimates of text widths. The output is the same on every machine."""

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
    "FORMULA_ERRORS",
    "char_columns",
    "escape",
    "extra_arguments",
    "fit",
    "fit_columns",
    "format_attribute",
    "format_brief",
    "format_compact",
    "format_float",
    "format_pretty",
    "formula_attributes",
    "formula_text",
    "handle",
    "is_function",
    "local_formula",
    "make_formula",
    "mathml",
    "product_formula",
    "round_for_display",
    "round_for_json",
    "sanitize",
    "shorten",
    "shorten_name",
    "subscript",
    "text_width",
]

# --- numbers ---------------------------------------------------------------------------------------------------------


def format_float(x: float | None) -> str:
    """Format `x` to 6 significant digits in Python's notation for floats. -0.0 becomes 0.0 and None a dash.

    >>> [format_float(x) for x in (2.0, 0.1 + 0.2, -0.0, 1e-7, 123456789.0, float("-inf"), None)]
    ['2.0', '0.3', '0.0', '1e-07', '1.23457e+08', '-inf', '—']
    """
    if x is None:
        return "—"
    text = f"{x:.6g}"
    if text == "-0":
        return "0.0"
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def format_pretty(x: float | None) -> str:
    """Format `x` as `format_float` does, but with a true minus sign, ∞ and NaN.

    >>> format_pretty(-3.0), format_pretty(float("inf")), format_pretty(float("nan"))
    ('−3.0', '∞', 'NaN')
    """
    return format_float(x).replace("-", "−").replace("inf", "∞").replace("nan", "NaN")


def round_for_display(x: float) -> float:
    """Round `x` for display to three significant digits, but do not round its integer part.

    >>> round_for_display(0.123456), round_for_display(1089.7), round_for_display(-2.0)
    (0.123, 1090.0, -2.0)
    """
    if not math.isfinite(x):
        return x
    digits = max(3, min(6, 1 + math.floor(math.log10(abs(x) or 1))))
    return float(f"{x:.{digits}g}")


def format_brief(x: float | None) -> str:
    """Format `round_for_display(x)` as `format_pretty` does.

    >>> format_brief(0.123456), format_brief(-2.0), format_brief(None)
    ('0.123', '−2.0', '—')
    """
    return format_pretty(None if x is None else round_for_display(x))


def format_compact(x: float | None) -> str:
    """Format `x` to 2 significant digits as `format_pretty` does. Small and large numbers have an exponent.

    >>> [format_compact(x) for x in (-0.00454, 0.25, 123.0, 0.0, 2e9, None)]
    ['−4.5e−3', '0.25', '120.0', '0.0', '2.0e9', '—']
    """
    if x is None or not x or not math.isfinite(x) or 0.01 <= abs(x) < 1e4:
        return format_pretty(None if x is None else float(f"{x:.2g}"))
    mantissa, _, power = f"{x:.1e}".partition("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def round_for_json(x: float | None) -> float | str | None:
    """Round `x` to 6 significant digits for JSON; NaN and infinities become strings.

    >>> [round_for_json(x) for x in (1 / 3, -0.0, float("nan"), float("-inf"), None)]
    [0.333333, 0.0, 'NaN', '-Infinity', None]
    """
    if x is None:
        return None
    if math.isfinite(x):
        return float(f"{x:.6g}") or 0.0
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


# --- names, in which users may use any character -------------------------------------------------------------------

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# Characters that XML forbids, that UTF-8 cannot encode, or that change the direction of the surrounding text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_SPACES = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")


def sanitize(text: object) -> str:
    """Return `text` on one line, with characters that XML forbids replaced by U+FFFD.

    >>> sanitize("two\\nlines"), sanitize("a\\x00b")
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


def escape(escaped: str) -> str:
    """Escape a string for XML or HTML content and attributes.

    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#39;c&#39;'
    """
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace('"', "&quot;").replace("'", "&#39;")


def subscript(n: int) -> str:
    """Return the digits of `n` as subscripts.

    >>> subscript(12)
    '₁₂'
    """
    return str(n).translate(_SUBSCRIPTS)


def handle(index: int) -> str:
    """Return the name of an unnamed node: v with the node's tape index as a subscript, which is not a valid identifier.

    >>> handle(12)
    'v₁₂'
    """
    return f"v{subscript(index)}"


# --- attributes ------------------------------------------------------------------------------------------------------


def format_attribute(name: str, x: Any) -> str:
    """Format the value of the attribute `name` as in user code: a key as in ``x[0, 1:3]``, a type by its name.

    >>> format_attribute("key", (slice(None), slice(2, 4), 0)), format_attribute("dtype", mg.float64)
    ('[:, 2:4, 0]', 'float64')
    >>> format_attribute("rows", (range(0, 2), range(1, 3))), format_attribute("how", object())
    ('(0:2, 1:3)', 'object')
    """
    if isinstance(x, tuple) and name == "key":
        text = f"[{', '.join(map(_format_index, x))}]"
    elif isinstance(x, tuple) and name == "chain":
        text = "".join(_format_view(*step) for step in x)
    elif isinstance(x, Norm):
        text = _format_norm(x)
    elif _is_windows(name, x):
        text = _format_windows(x)
    else:
        text = _format_object(x)
    return shorten(sanitize(text), MAX_ATTRIBUTE_LENGTH)


def _format_object(x: Any) -> str:
    """Format any object as in user code, or by the name of its class."""
    if x is None or (isinstance(x, str | bool | int | float | complex) and type(x).__module__ == "builtins"):
        return str(x)
    if isinstance(x, Enum):
        return x.name.lower()
    if isinstance(x, mg.dtype):
        return x.name
    if isinstance(x, slice | range) or x is ...:
        return _format_index(x)
    if hasattr(x, "_fields"):  # a named tuple such as a convolution's window
        return ", ".join(f"{key} {_format_object(part)}" for key, part in zip(x._fields, x, strict=True))
    if isinstance(x, tuple | list):
        parts = ", ".join(map(_format_object, x)) + ("," if isinstance(x, tuple) and len(x) == 1 else "")
        return f"({parts})" if isinstance(x, tuple) else f"[{parts}]"
    if isinstance(x, type) or callable(x):
        return getattr(x, "__name__", type(x).__name__).strip("_<>")
    text = str(x)
    return type(x).__name__.strip("_") if _ADDRESS.search(text) or text.startswith(("<", "_")) else text


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def formula_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attributes for a formula. Numbers and None are unchanged, other objects become short strings."""
    return {name: x if isinstance(x, int | float | None) else format_attribute(name, x) for name, x in attrs.items()}


MAX_ATTRIBUTE_LENGTH = 80  # maximum length of a formatted attribute


def _is_windows(name: str, x: Any) -> bool:
    """Whether the attribute is the `windows` of a pooling operation, not a user-defined attribute of that name."""
    if name != "windows" or not isinstance(x, tuple):
        return False
    has_dims = all(isinstance(ranges, tuple | list) and ranges for ranges in x)
    return has_dims and all(isinstance(window, range) for ranges in x for window in ranges)


def _format_windows(x: Any) -> str:
    """Format the windows of a pooling (ranges by dimension), as those of a convolution if they are regular."""
    regular = [_regular_window(ranges) for ranges in x]
    if None in regular:
        return " × ".join(f"({', '.join(map(_format_index, ranges))})" for ranges in x)
    sizes, strides, padding, dilation = zip(*[window for window in regular if window], strict=True)
    return f"size {sizes}, stride {strides}, padding {tuple((by, by) for by in padding)}, dilation {dilation}"


def _format_norm(x: Any) -> str:
    """Format the dimensions over which a norm standardises, and the eps added to the variance."""
    dims = ", ".join(map(str, x.dim))
    mean = "" if x.centred else ", without a mean"
    return f"over dim {dims} of {_format_object(x.shape)}, eps {x.eps:g}{mean}"


def _regular_window(ranges: Sequence[range]) -> tuple[int, int, int, int] | None:
    """Return the size, stride, padding and dilation of windows clipped to the input; None if they are irregular."""
    full_window = max(ranges, key=len)
    last = max(indices[-1] for indices in ranges if indices)
    first, second = ranges[0], ranges[1 % len(ranges)]
    for stride in (second.start - first.start, second.stop - first.stop):
        padding = stride * ranges.index(full_window) - full_window.start
        starts = range(-padding, -padding + stride * len(ranges), stride) if stride else [full_window.start]
        expected = [[start + full_window.step * k for k in range(len(full_window))] for start in starts]
        if [list(one) for one in ranges] == [[at for at in one if 0 <= at <= last] for one in expected]:
            return len(full_window), stride or 1, padding, full_window.step
    return None


def _format_index(index: Any) -> str:
    """Format the index of one dimension of a key, or the indices that a window covers."""
    if not isinstance(index, slice | range):
        return "…" if index is ... else _format_object(index)
    ends = ["" if end is None else str(end) for end in (index.start, index.stop, index.step)]
    return ":".join(ends[: 2 + (ends[2] not in ("", "1"))])


def _format_view(op: mg.Op, attrs: Mapping[str, Any]) -> str:
    """Format one step of a view's chain, such as ``[0]`` or ``.reshape(2, 3)``."""
    if op.name == "index":
        return format_attribute("key", attrs["key"])
    return f".{op.name}({', '.join(format_attribute(name, x).strip('()') for name, x in attrs.items())})"


# --- formulas --------------------------------------------------------------------------------------------------------

# A custom op may have a rule that only accepts floats; it is still drawn.
FORMULA_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def make_formula(op: mg.Op, operands: Sequence[str | float], attrs: Mapping[str, Any] | None = None) -> Formula | str:
    """Return the formula of `op` applied to names or numbers, as a string if it cannot be derived.

    `attrs` may contain the op's attributes as they are displayed.

    >>> formula_text(make_formula(mg.OPS["mul"], ["a", -3.0]))
    'a · (−3)'
    """
    operands = [*operands, *extra_arguments(op, attrs)]
    try:
        formula = expression(op, operands, attrs)
        formula.formula()
    except FORMULA_ERRORS:
        names = [x if isinstance(x, str) else format_float(x) for x in operands]
        return f"{op.name}({', '.join(names)})"
    return formula


def is_function(op: mg.Op) -> bool:
    """Whether `op` is an `autograd.Function`, whose attributes are not in any table."""
    return op.variadic and op.aux == ("ctx",)


def extra_arguments(op: mg.Op, attrs: Mapping[str, Any] | None) -> list[str]:
    """Return the non-tensor arguments of a Function in call syntax, such as ``dim=-1``."""
    arguments = formula_attributes(attrs or {}) if is_function(op) else {}
    return [f"{name}={x}".replace("=-", "=−") for name, x in arguments.items() if name not in ("output", "outputs")]


def local_formula(op: mg.Op, slot: int, output: str | float, operands: Sequence[str | float]) -> Formula | None:
    """Return the derivative of `op` with respect to operand `slot`; None if it cannot be expressed as a formula."""
    return _if_writable(lambda: local_derivative(op, slot, output, operands))


def product_formula(
    op: mg.Op, slot: int, output: str, operands: Sequence[str | float], attrs: Mapping[str, Any]
) -> Formula | None:
    """Return the VJP of operand `slot` for output gradient g; None if it cannot be expressed as a formula."""
    return None if op.variadic else _if_writable(lambda: product(op, slot, output, operands, attrs))


def _if_writable(build: Callable[[], Formula | None]) -> Formula | None:
    try:
        formula = build()
        if formula is not None:
            formula.formula()
    except FORMULA_ERRORS:
        return None
    return formula


def formula_text(formula: Formula | str) -> str:
    """Return `formula` as one line of text."""
    return formula if isinstance(formula, str) else formula.formula()


def mathml(formula: Formula | str) -> str:
    """Return `formula` as a ``<math>`` element."""
    return f"<math><mtext>{escape(formula)}</mtext></math>" if isinstance(formula, str) else formula.mathml()


# --- widths ----------------------------------------------------------------------------------------------------------

# Widths in hundredths of the font size, rounded up from DejaVu Sans, the widest common sans serif, so that text also
# fits in other fonts. Bold is 13% wider.
_WIDTHS = {"'ijlIJ": 29, " !,./:;\\|-·′": 36, '"()[]frt': 41, "*?_`csz²³∂": 55, "mMOQ": 86, "%@W…—\ufffd": 104}
_WIDTHS |= {"Fkvxyao": 61, "0123456789$ESbdghnpqueTPL{}": 64, "AVBRXZC": 70, "DGHNUK&w": 82, "#+<=>^~−×≤≥≠∞": 84}
_WIDTH_OF = {character: width for group, width in _WIDTHS.items() for character in group}
_WIDTH_OF |= dict.fromkeys("₀₁₂₃₄₅₆₇₈₉⁰¹⁴⁵⁶⁷⁸⁹", 40)


def char_columns(character: str) -> int:
    """Return the number of terminal columns: 0 for combining marks, 2 for East Asian letters and emoji."""
    code = ord(character)
    if 0x300 <= code < 0x370 or 0x200B <= code < 0x2010 or 0xFE00 <= code < 0xFE10:
        return 0
    return 2 if 0x1100 <= code < 0x1160 or 0x2E80 <= code < 0xD7B0 or 0xF900 <= code < 0xFB00 or code > 0x1F000 else 1


def fit_columns(text: str, columns: int) -> str:
    """Truncate `text` to a number of terminal columns."""
    return shorten(text, columns if all(char_columns(c) < 2 for c in text) else columns // 2)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Estimate the maximum width of `text`, in the unit of the font size `size`.

    >>> text_width("ab", 10), text_width("ab", 10, bold=True)
    (12.5, 14.12)
    """
    width = sum(_WIDTH_OF.get(c) or (0, 85, 135)[char_columns(c)] for c in text)
    return round(width * size * (0.0113 if bold else 0.01), 2)


def fit(text: str, max_width: float, size: float, bold: bool = False) -> str:
    """Truncate `text` to width `max_width`. Truncated text ends in an ellipsis."""
    text = shorten(text, int(max_width / size * 4) + 2)  # no character is narrower than a quarter of `size`
    while len(text) > 2 and text_width(text, size, bold) > max_width:
        text = f"{text[:-2]}…"
    return text
