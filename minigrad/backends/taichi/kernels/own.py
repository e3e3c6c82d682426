"""Kernels from user-written snippets, validated so that no expression can crash the process."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from minigrad.backends.taichi.codegen.functions import FUNCTIONS, OF_TWO
from minigrad.backends.taichi.codegen.source import LETTERS
from minigrad.backends.taichi.kernels.elementwise import common_type, computed
from minigrad.backends.taichi.runtime import array, driver
from minigrad.backends.taichi.runtime.array import CPU, CpuArray, empty, like
from minigrad.backends.taichi.runtime.buffers import downloaded
from minigrad.backends.taichi.runtime.locking import parse
from minigrad.core.errors import ArgumentError, DTypeError

__all__ = ["from_snippet"]

_OF_TAICHI = {
    "abs": 1, "acos": 1, "asin": 1, "atan2": 2, "ceil": 1, "cos": 1, "exp": 1, "floor": 1, "log": 1, "max": 2, "min": 2,
    "pow": 2, "select": 3, "sin": 1, "sqrt": 1, "tan": 1, "tanh": 1,
}  # fmt: skip
_TRUTHS = ("isnan", "isinf", "isfinite")
_OURS = {name: 1 for name in FUNCTIONS if name not in _TRUTHS and name not in OF_TWO}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LOGIC = (ast.BitAnd, ast.BitOr)


def from_snippet(op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> Callable[..., Any]:
    """Return the kernel of the elementwise operation `op`, computed by an expression in its operands and attributes."""
    text = _Checked(op, inputs, attrs, snippet).text

    def run(*operands: Any, out: Any = None, **given: Any) -> Any:
        if array.target is not CPU and any(isinstance(x, CpuArray) for x in operands):
            return beside_a_gpu(operands, out, given)
        return computed(op, text, operands, common_type(operands), out, given)

    def beside_a_gpu(operands: tuple[Any, ...], out: Any, given: dict[str, Any]) -> Any:
        """Compute on ``cpu`` operands while Taichi runs on a GPU: copy them to the GPU, and the result back."""
        dtype, gpu = common_type(operands), driver.arch()
        if gpu in driver.NARROW and dtype == np.float64:
            raise DTypeError(
                f"{op}: its snippet is compiled for {gpu}, on which Taichi runs and which does not support float64.\n"
                "  Use float32 instead, x.to(mg.float32), or compute on cpu in a process without GPU tensors."
            )
        there = [like(x) if isinstance(x, CpuArray) else x for x in operands]
        result = downloaded(computed(op, text, there, dtype, None, given))
        out = empty(result.shape, result.dtype, CPU) if out is None else out
        np.copyto(out.view(np.ndarray), result)
        return out

    return run


class _Checked(ast.NodeTransformer):
    """A validated snippet: `text` has the operands renamed to a, b, c, … and uses only supported constructs."""

    def __init__(self, op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> None:
        self._op, self._snippet = op, snippet
        self._names = {**dict(zip(inputs, LETTERS, strict=False)), **{name: name for name in attrs}}
        try:
            tree = parse(snippet.strip(), mode="eval")
        except SyntaxError as error:
            raise self._refused(f"is not a valid Python expression: {error.msg}") from None
        self.text = ast.unparse(self._varying(tree.body))

    def _refused(self, why: str) -> ArgumentError:
        functions = ", ".join([*(f"ti.{name}" for name in sorted(_OF_TAICHI)), *sorted(_OURS)])
        return ArgumentError(
            f"kernel: the snippet {self._snippet!r} of {self._op} {why}.\n"
            f"  It may contain {', '.join(self._names)}, constants, + - * /, functions ({functions}), and conditions, "
            f"ti.select(a > 0, …, …), of < <= > >= == & | {' '.join(_TRUTHS)}.\n"
            f"  Otherwise register a function of arrays: @mg.kernel({self._op!r}, …) above def {self._op}(a): …"
        )

    def _truthless(self, node: Any) -> Any:
        """Validate a numeric subexpression."""
        if isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and isinstance(node.op, _LOGIC)):
            raise self._refused(f"computes with {ast.unparse(node)!r}, which is a bool")
        return self.visit(node)

    def _truth(self, node: Any) -> Any:
        """Validate a boolean subexpression."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, _LOGIC):
            return ast.BinOp(self._truth(node.left), node.op, self._truth(node.right))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _TRUTHS and len(node.args) == 1:
            return ast.Call(node.func, [self._varying(node.args[0])], [])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], ast.NotEq):
            return ast.Compare(self._varying(node.left), node.ops, [self._truthless(node.comparators[0])])
        raise self._refused(f"selects by {ast.unparse(node)!r}, which is not a comparison")

    def _varying(self, node: Any) -> Any:
        """Validate a subexpression that contains an operand: a constant one would be a scalar, not a vector."""
        found = self._truthless(node)
        if not any(isinstance(part, ast.Name) and part.id != "ti" for part in ast.walk(node)):
            raise self._refused(f"has {ast.unparse(node)!r} where an operand is required: write out the result")
        return found

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if not isinstance(node.op, _ARITHMETIC):
            raise self._refused(f"uses an unsupported operator in {ast.unparse(node)!r}")
        left, right = self._truthless(node.left), self._truthless(node.right)
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            raise self._refused(f"contains the constant {ast.unparse(node)!r}: write out its value")
        return ast.BinOp(left, node.op, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.USub):
            raise self._refused(f"uses an unsupported operator in {ast.unparse(node)!r}")
        inner = self._truthless(node.operand)
        return (
            ast.Constant(-cast(float, inner.value))
            if isinstance(inner, ast.Constant)
            else ast.BinOp(inner, ast.Mult(), _MINUS)
        )

    def visit_Call(self, node: ast.Call) -> Any:
        called = ast.unparse(node.func)
        takes = _OURS.get(called) if isinstance(node.func, ast.Name) else _OF_TAICHI.get(called.removeprefix("ti."))
        if takes != len(node.args) or node.keywords:
            raise self._refused(f"calls {ast.unparse(node)!r}")
        if called == "ti.select":
            args = [self._truth(node.args[0]), *[self._truthless(x) for x in node.args[1:]]]
        else:
            args = [self._varying(node.args[0]), *[self._truthless(x) for x in node.args[1:]]]
        return ast.Call(node.func, args, [])

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            raise self._refused(f"uses the unknown name {node.id!r}")
        return ast.Name(self._names[node.id])

    def visit_Constant(self, node: ast.Constant) -> Any:
        if node.value.__class__ not in (int, float):
            raise self._refused(f"contains the unsupported {node.value!r}")
        return ast.Constant(float(node.value))  # dividing vectors of ints crashes the process

    def generic_visit(self, node: ast.AST) -> Any:
        raise self._refused(f"contains the unsupported {ast.unparse(node)!r}")


_MINUS = ast.Constant(-1.0)
