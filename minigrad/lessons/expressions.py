"""Evaluate a learner's expression by walking its syntax tree, without `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["evaluate"]

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_, ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Invert: operator.invert, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda x, items: x in items, ast.NotIn: lambda x, items: x not in items,
}  # fmt: skip


def evaluate(part: ast.expr, names: Mapping[str, Any]) -> Any:
    """Evaluate `part`: constants, operators, comparisons, `names`, and their attributes and calls.

    >>> evaluate(ast.parse("-a / (1 + abs(a))", mode="eval").body, {"a": 3.0, "abs": abs})
    -0.75
    """
    match part:
        case ast.Constant():
            return part.value
        case ast.Name():
            return names[part.id]
        case ast.Attribute():
            return getattr(evaluate(part.value, names), part.attr)
        case ast.Call():
            return evaluate(part.func, names)(*[evaluate(x, names) for x in part.args])
        case ast.UnaryOp():
            return _OPERATORS[type(part.op)](evaluate(part.operand, names))
        case ast.BinOp():
            return _OPERATORS[type(part.op)](evaluate(part.left, names), evaluate(part.right, names))
        case ast.Compare():
            found, left = True, evaluate(part.left, names)
            for sign, other in zip(part.ops, part.comparators, strict=True):
                right = evaluate(other, names)
                found, left = _OPERATORS[type(sign)](left, right), right
                if not found:
                    return found
            return found
    raise TypeError(f"unsupported expression: {ast.unparse(part)}")
