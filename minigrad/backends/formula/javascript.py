"""JavaScript code for scalar operations, so that a page can recompute them without Python.

FUNCTIONS are those of JavaScript's Math, and those that the player defines because Math lacks them or handles special
values differently (no dot in their name). The player accepts only the output of `calculating`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from minigrad.backends.formula import Formula
from minigrad.backends.formula.calculating import LETTERS, OURS, Language, Unwritable, check, rule_text
from minigrad.backends.formula.calculating import applied as applied_in
from minigrad.core.op import Op

__all__ = ["FUNCTIONS", "Unwritable", "applied", "javascript", "literal"]

FUNCTIONS = {name: f"Math.{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log2", "atan2")}
FUNCTIONS |= {"ln": "Math.log", "log": "Math.log", "floor": "Math.floor", "ceil": "Math.ceil", "trunc": "Math.trunc"}
FUNCTIONS |= {f"arc{name}": f"Math.a{name}" for name in ("sin", "cos", "tan")}
FUNCTIONS |= {f"ar{name}": f"Math.a{name}" for name in ("sinh", "cosh", "tanh")}
FUNCTIONS |= {name: name for name in OURS.split()} | {"sigma": "sigmoid"}


def literal(x: float) -> str:
    """Return a float literal."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "(-Infinity)"
    text = repr(x).removesuffix(".0")
    return f"({text})" if text.startswith("-") else text


JAVASCRIPT = Language(
    reader="the player",
    functions=FUNCTIONS,
    helpers={name: f"Math.{name}" for name in ("abs", "exp", "expm1", "log1p", "sqrt")}
    | {name: name for name in ("pow", "quotient", "softplus")},
    constants={"e": "Math.E", r"\pi": "Math.PI", r"\infty": "Infinity", r"\mathrm{NaN}": "NaN"},
    comparisons={
        "<": "({} < {})",
        ">": "({} > {})",
        r"\le": "({} <= {})",
        r"\ge": "({} >= {})",
        "=": "({} === {})",
        r"\ne": "({} !== {})",
    },
    logic={r"\lor": "({} || {})", r"\land": "({} && {})", r"\oplus": "({} !== {})"},
    choice="({} ? {} : {})",
    truth="({} !== 0)",
    null=lambda name: "null",
    literal=literal,
)


def javascript(op: Op) -> dict[str, Any]:
    """Return code of `op` on scalars: "js", an expression of the operands a, b, … and attributes, and "rules", one per
    operand, of g and y too; None without a derivative. If no code can be generated, "why" gives the reason.

    >>> from minigrad import OPS
    >>> javascript(OPS["tanh"])
    {'js': 'Math.tanh(a)', 'rules': ['(g * (1 - (y * y)))'], 'why': None}
    >>> javascript(OPS["softmax"])["why"]
    'softmax is not defined on scalars.'
    """
    try:
        check(op)
        taken = sorted(set(op.attrs) & {*LETTERS, "g", "y"})
        if taken or len(op.inputs) > len(LETTERS):
            raise Unwritable(f"{op.name} has an attribute with the name of an operand, or too many operands.")
        names = dict(zip(op.inputs, LETTERS, strict=False))
        forward = applied(op, names, {name: name for name in op.attrs})
        rules = [rule and _rule(op, rule, names) for rule in op.rules]
    except Unwritable as error:
        return {"js": None, "rules": [None] * len(op.inputs), "why": str(error)}
    return {"js": forward, "rules": rules, "why": None}


def applied(op: Op, operands: Mapping[str, str], attrs: Mapping[str, Any]) -> str:
    """Return code for the op's formula on `operands`. A single function of the player also gets omitted attributes."""
    return applied_in(op, operands, attrs, JAVASCRIPT)


def _rule(op: Op, rule: Callable[..., Any], names: Mapping[str, str]) -> str:
    def write(given: dict[str, None]) -> str:
        attrs = {name: Formula(name) for name in op.attrs} | given
        return rule_text(op, rule, names, attrs, JAVASCRIPT)

    return _by_presence(op, write)


def _by_presence(op: Op, write: Callable[[dict[str, None]], str]) -> str:
    """Return code that branches on which optional attributes are None; `write` is called for each combination."""

    def choose(names: list[str], given: dict[str, None]) -> str:
        if not names:
            return write(given)
        without, present = choose(names[1:], {**given, names[0]: None}), choose(names[1:], given)
        return present if without == present else f"(({names[0]} === null) ? {without} : {present})"

    return choose([name for name, default in op.defaults.items() if default is None], {})
