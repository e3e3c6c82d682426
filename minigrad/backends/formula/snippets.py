"""Taichi code for scalar operations: snippets that compute an operation and its rules in float64.

Functions named ``…_of`` are the elementwise snippets of ``cpu``. Other functions are Taichi's (``ti.``) or defined in
`backends/taichi/codegen/functions.py`. `backends/taichi/kernels/tape.py` generates the loops around the snippets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from minigrad.backends.formula import Formula
from minigrad.backends.formula.codegen import (
    FUNCTION_NAMES,
    OPERAND_NAMES,
    TargetLanguage,
    Unwritable,
    check_scalar_op,
    op_code,
    rule_code,
)
from minigrad.core.op import Op

__all__ = ["TAICHI", "float_literal", "forward_code", "gradient_codes"]

_OP_NAMES = {"max": "maximum", "min": "minimum", "leakyrelu": "leaky_relu", "not": "logical_not"}
FUNCTIONS = {name: f"{_OP_NAMES.get(name, name)}_of" for name in FUNCTION_NAMES.split()}
FUNCTIONS |= {name: f"ti.{name}" for name in ("sin", "cos", "tan", "tanh", "exp", "log", "floor", "ceil")}
FUNCTIONS |= {name: name for name in ("sinh", "cosh", "log2", "erf", "isnan", "isinf", "isfinite")}
FUNCTIONS |= {f"arc{name}": f"a{name}_of" for name in ("sin", "cos", "tan")}
FUNCTIONS |= {f"ar{name}": f"a{name}" for name in ("sinh", "cosh")} | {"artanh": "atanh", "atan2": "atan2_of"}
FUNCTIONS |= {"ln": "ti.log", "trunc": "truncated", "round": "rounded", "remainder": "floor_mod", "sigma": "sigmoid"}


def float_literal(x: float) -> str:
    """Return a float literal. An integer literal would have an integer type in Taichi."""
    if not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "(-inf)"
    digits = repr(float(x))
    return f"({digits})" if digits.startswith("-") else digits


TAICHI = TargetLanguage(
    runtime_name="Taichi",
    functions=FUNCTIONS,
    helpers={name: f"ti.{name}" for name in ("abs", "exp", "pow", "sqrt")}
    | {name: name for name in ("expm1", "log1p", "softplus")}
    | {"quotient": "floor_div"},
    constants={"e": repr(math.e), r"\pi": repr(math.pi), r"\infty": "inf", r"\mathrm{NaN}": "nan"},
    comparisons={
        "<": "({} < {})",
        ">": "({} > {})",
        r"\le": "({} <= {})",
        r"\ge": "({} >= {})",
        "=": "({} == {})",
        r"\ne": "(({} == {}) == 0)",  # in Taichi nan != nan is false
    },
    logic={r"\lor": "({} | {})", r"\land": "({} & {})", r"\oplus": "(({} == {}) == 0)"},
    conditional="ti.select({}, {}, {})",
    is_true="(({} == 0.0) == 0)",
    missing_attr=lambda name: {"min": "(-inf)", "max": "inf"}.get(name, "nan"),  # a missing bound
    literal=float_literal,
)


def forward_code(op: Op, fixed: Mapping[str, Any]) -> str:
    """Return code for `op`. The names a, b, … denote its operands, then its attributes that are not `fixed`.

    Raises Unwritable if Taichi does not support its formula.

    >>> from minigrad import OPS
    >>> forward_code(OPS["softsign"], {})
    '(a / (1.0 + ti.abs(a)))'
    """
    check_scalar_op(op)
    names = _operand_names(op, fixed)
    return op_code(op, names, {name: fixed.get(name, names.get(name)) for name in op.attrs}, TAICHI)


def gradient_codes(op: Op, fixed: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return code for the gradient of each operand, which may also contain g and y; None if there is no derivative.

    Raises Unwritable if Taichi does not support a rule.

    >>> from minigrad import OPS
    >>> gradient_codes(OPS["elu"], {})     # the attribute alpha is called b
    ('ti.select((a <= 0.0), (g * (b * ti.exp(ti.select((a < 0.0), a, 0.0)))), g)',)
    """
    check_scalar_op(op)
    names = _operand_names(op, fixed)
    attrs = {name: fixed[name] if name in fixed else Formula(names[name]) for name in op.attrs}
    return tuple([rule and rule_code(op, rule, names, attrs, TAICHI) for rule in op.rules])


def _operand_names(op: Op, fixed: Mapping[str, Any]) -> dict[str, str]:
    names = (*op.inputs, *[name for name in op.attrs if name not in fixed])
    if len(names) > len(OPERAND_NAMES):
        raise Unwritable(f"{op.name} has more than {len(OPERAND_NAMES)} operands and attributes.")
    return dict(zip(names, OPERAND_NAMES, strict=False))
