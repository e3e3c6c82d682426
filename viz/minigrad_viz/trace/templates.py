"""Formula templates whose placeholders the player fills with names and numbers; even long graphs have few of them.

A template depends on the operation, on its constant operands, whose values it contains, so that a square shows 2 · x,
and on the attributes. Placeholder 0 is the node itself, the others its operands; g is the gradient.
`minigrad.backends.formula.writing` defines how placeholders are marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative, product
from minigrad.backends.formula.javascript import javascript
from minigrad.backends.formula.writing import HOLES
from minigrad.backends.formula.writing import template as written
from minigrad_viz.trace.notation import UNWRITABLE, beside, for_formula, formula_of, number

__all__ = ["Template", "local_template", "op_data", "product_template", "template"]

Template = Mapping[str, str]
_Key = tuple[tuple[str, Any], ...]


def template(op: mg.Op, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None) -> Template:
    """Return the formula of `op` as {"text": …, "mathml": …, "latex": …}; `constants` has the values of constant
    operands.

    >>> template(mg.OPS["mul"], [None, -3.0])["text"].encode("unicode_escape")
    b'\\\\ue00b \\\\xb7 (\\\\u22123)'
    """
    return _template(op, tuple(constants), _plain(attrs))


def local_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """Return the template of the derivative of `op` with respect to operand `slot`; None if it cannot be written."""
    return _rule_template(local_derivative, op, slot, tuple(constants), _plain(attrs))


def product_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """Return the template of the VJP of operand `slot` for gradient g; None if it cannot be written."""
    return _rule_template(product, op, slot, tuple(constants), _plain(attrs))


@lru_cache(maxsize=1000)
def op_data(op: mg.Op) -> dict[str, Any]:
    """Return the serialised operation: its name, its LaTeX formula, and how to compute it in JavaScript."""
    formula = formula_of(op, op.inputs)
    latex = formula if isinstance(formula, str) else formula.latex()
    return {"name": op.name, "formula": latex, **javascript(op)}


def _plain(attrs: Mapping[str, Any] | None) -> _Key:
    return tuple(for_formula(attrs or {}).items())


def _places(constants: tuple[float | None, ...]) -> list[str | float]:
    return [chr(HOLES + 8 * (k + 1)) if x is None else x for k, x in enumerate(constants)]


@lru_cache(maxsize=10_000)
def _template(op: mg.Op, constants: tuple[float | None, ...], attrs: _Key) -> Template:
    places, more = _places(constants), beside(op, dict(attrs))
    try:
        return written(expression(op, [*places, *more], dict(attrs)))
    except UNWRITABLE:
        texts = [x if isinstance(x, str) else number(x) for x in places]
        marked = [*texts, *(f"<mtext>{escape(text)}</mtext>" for text in more)]
        comma = '<mo separator="true">,</mo>'
        return {
            "text": f"{op.name}({', '.join([*texts, *more])})",
            "mathml": f"<mrow><mi>{escape(op.name)}</mi><mo>(</mo>{comma.join(marked)}<mo>)</mo></mrow>",
            "latex": rf"\operatorname{{{op.name}}}({', '.join([*texts, *more])})".replace("_", r"\_"),
        }


@lru_cache(maxsize=10_000)
def _rule_template(
    derive: Any, op: mg.Op, slot: int, constants: tuple[float | None, ...], attrs: _Key
) -> Template | None:
    try:
        formula: Formula | None = derive(op, slot, chr(HOLES), _places(constants), dict(attrs))
        return None if formula is None else written(formula)
    except UNWRITABLE:
        return None
