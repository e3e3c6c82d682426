"""Kernels from user-written snippets, validated so that no expression can crash the process."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from minigrad.backends.taichi.codegen.functions import BINARY_FUNCTIONS, FUNCTIONS
from minigrad.backends.taichi.codegen.source import LETTERS
from minigrad.backends.taichi.kernels.elementwise import evaluate, result_dtype
from minigrad.backends.taichi.runtime import array, driver
from minigrad.backends.taichi.runtime.array import CPU, CpuArray, copy_to_device, empty
from minigrad.backends.taichi.runtime.buffers import copy_to_numpy
from minigrad.backends.taichi.runtime.locking import parse
from minigrad.core.errors import ArgumentError, DTypeError

__all__ = ["from_snippet"]

_TAICHI_FUNCTIONS = {
    "abs": 1, "acos": 1, "asin": 1, "atan2": 2, "ceil": 1, "cos": 1, "exp": 1, "floor": 1, "log": 1, "max": 2, "min": 2,
    "pow": 2, "select": 3, "sin": 1, "sqrt": 1, "tan": 1, "tanh": 1,
}  # fmt: skip
_PREDICATES = ("isnan", "isinf", "isfinite")
_LIBRARY_FUNCTIONS = {name: 1 for name in FUNCTIONS if name not in _PREDICATES and name not in BINARY_FUNCTIONS}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LOGIC = (ast.BitAnd, ast.BitOr)


def from_snippet(op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> Callable[..., Any]:
    """Return a kernel for the elementwise operation `op`, which evaluates an expression of its operands and
    attributes."""
    expression = _SnippetValidator(op, inputs, attrs, snippet).expression

    def run(*operands: Any, out: Any = None, **attr_values: Any) -> Any:
        if array.target is not CPU and any(isinstance(x, CpuArray) for x in operands):
            return compute_via_gpu(operands, out, attr_values)
        return evaluate(op, expression, operands, result_dtype(operands), out, attr_values)

    def compute_via_gpu(operands: tuple[Any, ...], out: Any, attr_values: dict[str, Any]) -> Any:
        """Compute on ``cpu`` operands while Taichi runs on a GPU: copy the operands to the GPU, and the result back."""
        dtype, gpu = result_dtype(operands), driver.arch()
        if gpu in driver.NO_FLOAT64 and dtype == np.float64:
            raise DTypeError(
                f"{op}: its snippet is compiled for {gpu}, on which Taichi runs and which does not support float64.\n"
                "  Use float32 instead, x.to(mg.float32), or compute on cpu in a process without GPU tensors."
            )
        gpu_operands = [copy_to_device(x) if isinstance(x, CpuArray) else x for x in operands]
        result = copy_to_numpy(evaluate(op, expression, gpu_operands, dtype, None, attr_values))
        out = empty(result.shape, result.dtype, CPU) if out is None else out
        np.copyto(out.view(np.ndarray), result)
        return out

    return run


class _SnippetValidator(ast.NodeTransformer):
    """A validated snippet: `expression` has the operands renamed to a, b, c, … and uses only supported constructs."""

    def __init__(self, op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> None:
        self._op, self._snippet = op, snippet
        self._names = {**dict(zip(inputs, LETTERS, strict=False)), **{name: name for name in attrs}}
        try:
            tree = parse(snippet.strip(), mode="eval")
        except SyntaxError as error:
            raise self._error(f"is not a valid Python expression: {error.msg}") from None
        self.expression = ast.unparse(self._visit_varying(tree.body))

    def _error(self, reason: str) -> ArgumentError:
        functions = ", ".join([*(f"ti.{name}" for name in sorted(_TAICHI_FUNCTIONS)), *sorted(_LIBRARY_FUNCTIONS)])
        return ArgumentError(
            f"kernel: the snippet {self._snippet!r} of {self._op} {reason}.\n"
            f"  It may contain {', '.join(self._names)}, constants, + - * /, functions ({functions}), and conditions, "
            f"ti.select(a > 0, …, …), of < <= > >= == & | {' '.join(_PREDICATES)}.\n"
            f"  Otherwise register a function of arrays: @mg.kernel({self._op!r}, …) above def {self._op}(a): …"
        )

    def _visit_numeric(self, node: Any) -> Any:
        """Validate a numeric subexpression."""
        if isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and isinstance(node.op, _LOGIC)):
            raise self._error(f"computes with {ast.unparse(node)!r}, which is a bool")
        return self.visit(node)

    def _visit_condition(self, node: Any) -> Any:
        """Validate a boolean subexpression."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, _LOGIC):
            return ast.BinOp(self._visit_condition(node.left), node.op, self._visit_condition(node.right))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _PREDICATES and len(node.args) == 1:
            return ast.Call(node.func, [self._visit_varying(node.args[0])], [])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], ast.NotEq):
            return ast.Compare(self._visit_varying(node.left), node.ops, [self._visit_numeric(node.comparators[0])])
        raise self._error(f"selects by {ast.unparse(node)!r}, which is not a comparison")

    def _visit_varying(self, node: Any) -> Any:
        """Validate a subexpression that must contain an operand, since a constant would be a scalar, not a vector."""
        validated = self._visit_numeric(node)
        if not any(isinstance(part, ast.Name) and part.id != "ti" for part in ast.walk(node)):
            raise self._error(f"has {ast.unparse(node)!r} where an operand is required: write out the result")
        return validated

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if not isinstance(node.op, _ARITHMETIC):
            raise self._error(f"uses an unsupported operator in {ast.unparse(node)!r}")
        left, right = self._visit_numeric(node.left), self._visit_numeric(node.right)
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            raise self._error(f"contains the constant {ast.unparse(node)!r}: write out its value")
        return ast.BinOp(left, node.op, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.USub):
            raise self._error(f"uses an unsupported operator in {ast.unparse(node)!r}")
        operand = self._visit_numeric(node.operand)
        return (
            ast.Constant(-cast(float, operand.value))
            if isinstance(operand, ast.Constant)
            else ast.BinOp(operand, ast.Mult(), _MINUS_ONE)
        )

    def visit_Call(self, node: ast.Call) -> Any:
        function_name = ast.unparse(node.func)
        arity = (
            _LIBRARY_FUNCTIONS.get(function_name)
            if isinstance(node.func, ast.Name)
            else _TAICHI_FUNCTIONS.get(function_name.removeprefix("ti."))
        )
        if arity != len(node.args) or node.keywords:
            raise self._error(f"calls {ast.unparse(node)!r}")
        if function_name == "ti.select":
            args = [self._visit_condition(node.args[0]), *[self._visit_numeric(x) for x in node.args[1:]]]
        else:
            args = [self._visit_varying(node.args[0]), *[self._visit_numeric(x) for x in node.args[1:]]]
        return ast.Call(node.func, args, [])

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            raise self._error(f"uses the unknown name {node.id!r}")
        return ast.Name(self._names[node.id])

    def visit_Constant(self, node: ast.Constant) -> Any:
        if node.value.__class__ not in (int, float):
            raise self._error(f"contains the unsupported {node.value!r}")
        return ast.Constant(float(node.value))  # dividing vectors of ints crashes the process

    def generic_visit(self, node: ast.AST) -> Any:
        raise self._error(f"contains the unsupported {ast.unparse(node)!r}")


_MINUS_ONE = ast.Constant(-1.0)
