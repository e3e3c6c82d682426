"""JavaScript code for scalar operations, so that a page can recompute them without Python.

FUNCTIONS contains the functions of JavaScript's Math, and functions that the player defines because Math lacks them or
handles special values differently (without a dot in their names). The player accepts only the output of `codegen`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from minigrad.backends.formula import Formula
from minigrad.backends.formula.codegen import (
    FUNCTION_NAMES,
    OPERAND_NAMES,
    TargetLanguage,
    Unwritable,
    check_scalar_op,
    rule_code,
)
from minigrad.backends.formula.codegen import op_code as applied_in
from minigrad.core.op import Op

__all__ = ["FUNCTIONS", "Unwritable", "float_literal", "javascript", "op_code"]

FUNCTIONS = {name: f"Math.{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log2", "atan2")}
FUNCTIONS |= {"ln": "Math.log", "log": "Math.log", "floor": "Math.floor", "ceil": "Math.ceil", "trunc": "Math.trunc"}
FUNCTIONS |= {f"arc{name}": f"Math.a{name}" for name in ("sin", "cos", "tan")}
FUNCTIONS |= {f"ar{name}": f"Math.a{name}" for name in ("sinh", "cosh", "tanh")}
FUNCTIONS |= {name: name for name in FUNCTION_NAMES.split()} | {"sigma": "sigmoid"}


def float_literal(x: float) -> str:
    """Return a float literal."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "(-Infinity)"
    digits = repr(x).removesuffix(".0")
    return f"({digits})" if digits.startswith("-") else digits


JAVASCRIPT = TargetLanguage(
    runtime_name="the player",
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
    conditional="({} ? {} : {})",
    is_true="({} !== 0)",
    missing_attr=lambda name: "null",
    literal=float_literal,
)


def javascript(op: Op) -> dict[str, Any]:
    """Return code of `op` on scalars. "js" is an expression in the operands a, b, … and the attributes. "rules"
    contains an expression for the gradient of each operand, which may also contain g and y, or None if there is no
    derivative. If no code can be generated, "why" states the reason.

    >>> from minigrad import OPS
    >>> javascript(OPS["tanh"])
    {'js': 'Math.tanh(a)', 'rules': ['(g * (1 - (y * y)))'], 'why': None}
    >>> javascript(OPS["softmax"])["why"]
    'softmax is not defined on scalars.'
    """
    try:
        check_scalar_op(op)
        conflicts = sorted(set(op.attrs) & {*OPERAND_NAMES, "g", "y"})
        if conflicts or len(op.inputs) > len(OPERAND_NAMES):
            raise Unwritable(f"{op.name} has an attribute with the name of an operand, or too many operands.")
        names = dict(zip(op.inputs, OPERAND_NAMES, strict=False))
        forward = op_code(op, names, {name: name for name in op.attrs})
        rules = [rule and _rule_code(op, rule, names) for rule in op.rules]
    except Unwritable as error:
        return {"js": None, "rules": [None] * len(op.inputs), "why": str(error)}
    return {"js": forward, "rules": rules, "why": None}


def op_code(op: Op, operands: Mapping[str, str], attrs: Mapping[str, Any]) -> str:
    """Return code for the op's formula on `operands`. If the formula is a single function of the player, the function
    also receives the attributes that the formula omits."""
    return applied_in(op, operands, attrs, JAVASCRIPT)


def _rule_code(op: Op, rule: Callable[..., Any], names: Mapping[str, str]) -> str:
    def write(missing_attrs: dict[str, None]) -> str:
        attrs = {name: Formula(name) for name in op.attrs} | missing_attrs
        return rule_code(op, rule, names, attrs, JAVASCRIPT)

    return _branch_on_missing(op, write)


def _branch_on_missing(op: Op, write: Callable[[dict[str, None]], str]) -> str:
    """Return code that branches on which optional attributes are None. `write` returns the code of each branch."""

    def branch(names: list[str], missing_attrs: dict[str, None]) -> str:
        if not names:
            return write(missing_attrs)
        without, present = branch(names[1:], {**missing_attrs, names[0]: None}), branch(names[1:], missing_attrs)
        return present if without == present else f"(({names[0]} === null) ? {without} : {present})"

    return branch([name for name, default in op.defaults.items() if default is None], {})
