"""Formulas with places left for names and numbers, which the player fills: as long as the graph is, they are few.

A template depends on the operation, on which operands are constants, whose numbers are in it already, so that a square
shows 2 · x, and on the attributes. Place 0 is for the node itself, the others for its operands; g stands for the
gradient. How a place is marked, `minigrad.backends.formula.writing` says.
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
    """The formula of `op` as {"text": …, "mathml": …, "latex": …}; `constants` are numbers of operands.

    >>> template(mg.OPS["mul"], [None, -3.0])["text"].encode("unicode_escape")
    b'\\\\ue00b \\\\xb7 (\\\\u22123)'
    """
    return _template(op, tuple(constants), _plain(attrs))


def local_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """That of the derivative of `op` by operand number `slot`; None where it cannot be written."""
    return _rule_template(local_derivative, op, slot, tuple(constants), _plain(attrs))


def product_template(
    op: mg.Op, slot: int, constants: Sequence[float | None], attrs: Mapping[str, Any] | None = None
) -> Template | None:
    """That of what operand number `slot` gets from the gradient g; None where it cannot be written."""
    return _rule_template(product, op, slot, tuple(constants), _plain(attrs))


@lru_cache(maxsize=1000)
def op_data(op: mg.Op) -> dict[str, Any]:
    """What a trace says of an operation: its name, its formula in LaTeX, and how to compute it in JavaScript."""
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
