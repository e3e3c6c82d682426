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


def evaluate(expression: ast.expr, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression that contains constants, operators, comparisons, `names`, attributes and calls.

    >>> evaluate(ast.parse("-a / (1 + abs(a))", mode="eval").body, {"a": 3.0, "abs": abs})
    -0.75
    """
    match expression:
        case ast.Constant():
            return expression.value
        case ast.Name():
            return names[expression.id]
        case ast.Attribute():
            return getattr(evaluate(expression.value, names), expression.attr)
        case ast.Call():
            return evaluate(expression.func, names)(*[evaluate(x, names) for x in expression.args])
        case ast.UnaryOp():
            return _OPERATORS[type(expression.op)](evaluate(expression.operand, names))
        case ast.BinOp():
            return _OPERATORS[type(expression.op)](evaluate(expression.left, names), evaluate(expression.right, names))
        case ast.Compare():
            result, left = True, evaluate(expression.left, names)
            for operator_node, comparator in zip(expression.ops, expression.comparators, strict=True):
                right = evaluate(comparator, names)
                result, left = _OPERATORS[type(operator_node)](left, right), right
                if not result:
                    return result
            return result
    raise TypeError(f"unsupported expression: {ast.unparse(expression)}")
