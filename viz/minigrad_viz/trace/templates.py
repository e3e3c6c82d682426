"""Formula templates whose placeholders the player replaces by names and numbers. Even long graphs have few templates.

A template depends on the operation, its attributes and its constant operands. It contains the values of the constants,
so that a square shows 2 · x. Placeholder 0 is the node itself, the others are its operands; g is the gradient.
`minigrad.backends.formula.printer` defines how placeholders are marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative, product
from minigrad.backends.formula.javascript import javascript
from minigrad.backends.formula.printer import HOLES
from minigrad.backends.formula.printer import template as written
from minigrad_viz.trace.notation import FORMULA_ERRORS, extra_arguments, format_float, formula_attributes, make_formula

__all__ = ["Template", "local_template", "product_template", "serialize_op", "template"]

Template = Mapping[str, str]
_Key = tuple[tuple[str, Any], ...]


def template(op: mg.Op, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None) -> Template:
    """Return the formula of `op` as {"text": …, "mathml": …, "latex": …}. `constants` contains the values of constant
    operands.

    >>> template(mg.OPS["mul"], [None, -3.0])["text"].encode("unicode_escape")
    b'\\\\ue00b \\\\xb7 (\\\\u22123)'
    """
    return _template(op, tuple(constants), _attrs_key(attrs))


def local_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """Return the template of the derivative of `op` with respect to operand `slot`; None if there is no formula."""
    return _rule_template(local_derivative, op, slot, tuple(constants), _attrs_key(attrs))


def product_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """Return the template of the VJP of operand `slot` for gradient g; None if there is no formula."""
    return _rule_template(product, op, slot, tuple(constants), _attrs_key(attrs))


@lru_cache(maxsize=1000)
def serialize_op(op: mg.Op) -> dict[str, Any]:
    """Return a serialised operation: its name, its LaTeX formula, and its computation in JavaScript."""
    formula = make_formula(op, op.inputs)
    latex = formula if isinstance(formula, str) else formula.latex()
    return {"name": op.name, "formula": latex, **javascript(op)}


def _attrs_key(attrs: Mapping[str, Any] | None) -> _Key:
    return tuple(formula_attributes(attrs or {}).items())


def _placeholders(constants: tuple[float | None, ...]) -> list[str | float]:
    return [chr(HOLES + 8 * (k + 1)) if x is None else x for k, x in enumerate(constants)]


@lru_cache(maxsize=10_000)
def _template(op: mg.Op, constants: tuple[float | None, ...], attrs: _Key) -> Template:
    operands, arguments = _placeholders(constants), extra_arguments(op, dict(attrs))
    try:
        return written(expression(op, [*operands, *arguments], dict(attrs)))
    except FORMULA_ERRORS:
        operand_texts = [x if isinstance(x, str) else format_float(x) for x in operands]
        marked_up = [*operand_texts, *(f"<mtext>{escape(text)}</mtext>" for text in arguments)]
        comma = '<mo separator="true">,</mo>'
        return {
            "text": f"{op.name}({', '.join([*operand_texts, *arguments])})",
            "mathml": f"<mrow><mi>{escape(op.name)}</mi><mo>(</mo>{comma.join(marked_up)}<mo>)</mo></mrow>",
            "latex": rf"\operatorname{{{op.name}}}({', '.join([*operand_texts, *arguments])})".replace("_", r"\_"),
        }


@lru_cache(maxsize=10_000)
def _rule_template(
    build: Any, op: mg.Op, slot: int, constants: tuple[float | None, ...], attrs: _Key
) -> Template | None:
    try:
        formula: Formula | None = build(op, slot, chr(HOLES), _placeholders(constants), dict(attrs))
        return None if formula is None else written(formula)
    except FORMULA_ERRORS:
        return None
