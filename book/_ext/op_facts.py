"""Facts about operations for the book, read from the declarations."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from copy import copy
from functools import cache
from itertools import takewhile
from types import ModuleType
from typing import Any, NamedTuple

import minigrad as mg
import minigrad.functional  # registers the kernels of arrays
from minigrad import ops
from minigrad.backends.formula import expression, local_derivative, product
from minigrad.core.dispatch import get_kernels
from minigrad.core.op import Op
from minigrad.core.storage import DEVICES

__all__ = ["Rule", "declaration_comment", "devices", "dtype_rule", "families", "formula", "rules", "sample_intervals"]

_PROMOTIONS = {
    "same": "any; operands are promoted to a common dtype",
    "number": "any but bool; operands are promoted to a common dtype",
    "int": "any; operands are promoted to a common dtype, and bools to `int64`",
    "float": "any; integers and bools are promoted to the default floating-point dtype",
    "rest": "the first operand is a condition; the others are promoted to a common dtype",
}
_TOOL_COMMENT = re.compile(r"(noqa|type: ignore)\b")  # comments for tools, not for the book
_NO_PROMOTION = "any, without promotion"


class Rule(NamedTuple):
    """The local derivative with respect to an operand and its product with g, in LaTeX, and their origin.

    `local` is None for operations that are not elementwise; both are None if the operand receives no gradient.
    """

    operand: str
    local: str | None
    product: str | None
    origin: str  # "printed", "rewritten", "stated", "adjoint" or "" for none


@cache
def families() -> dict[str, tuple[ModuleType, list[Op]]]:
    """Return the modules of `minigrad.ops` and their operations, in the order of declaration."""
    by_family: dict[str, tuple[ModuleType, list[Op]]] = {}
    for family in ops._FAMILIES:
        family_ops = [op for name, op in mg.OPS.items() if name in family.__all__ and getattr(family, name) is op]
        by_family[family.__name__.rpartition(".")[2]] = (family, family_ops)
    return by_family


def formula(op: Op) -> str:
    """Return the formula of an operation in LaTeX."""
    return expression(op, op.inputs).latex()


def rules(op: Op) -> list[Rule]:
    """Return the derivatives with respect to each operand, obtained by evaluating the gradient rules on symbols."""
    return [_describe_rule(op, slot, name) for slot, name in enumerate(op.inputs)]


def _describe_rule(op: Op, slot: int, name: str) -> Rule:
    shown = op.shown[0 if op.variadic else slot]
    if shown is None:
        return Rule(name, None, None, "")
    local = _rule_latex(local_derivative, op, slot) if op.domain else None
    received = _rule_latex(product, op, slot)
    if isinstance(shown, str):
        return Rule(name, local, received, "adjoint" if r"{\partial {y}}" in shown else "stated")
    return Rule(name, local, received, "printed" if _actual_rule_latex(op, slot) == received else "rewritten")


def _rule_latex(printer: Callable[..., Any], op: Op, slot: int) -> str:
    """Return the LaTeX that `how` prints for the gradient rule of an operand."""
    latex: str = printer(op, slot, "y", op.inputs).latex()
    return latex


def _actual_rule_latex(op: Op, slot: int) -> str | None:
    """Return the LaTeX of the rule that computes the gradient, or None if the rule branches on an attribute."""
    actual = copy(op)
    actual.shown = op.rules
    try:
        return _rule_latex(product, actual, slot)
    except TypeError:
        return None


def devices(op: Op) -> list[str]:
    """Return the devices that have a kernel for an operation."""
    return [device for device in ("python", *DEVICES) if device in get_kernels(op.name)]


def dtype_rule(op: Op) -> str:
    """Return which dtypes an operation accepts and how it promotes them."""
    return _PROMOTIONS[op.promotes] if op.promotes else _NO_PROMOTION


def sample_intervals(op: Op) -> str:
    """Return the intervals from which tests sample each operand, without its kinks."""
    parts = []
    for name, domain in zip(op.inputs, op.domain, strict=True):
        kinks = ", ".join(f"{x:g}" for x in domain.kinks)
        parts.append(f"${name}$ from {domain.low:g} to {domain.high:g}{f' but for {kinks}' if kinks else ''}")
    return "; ".join(parts).replace("-", "−")


# --- where it is declared --------------------------------------------------------------------------------------------


@cache
def declaration_lines(family: ModuleType) -> dict[str, tuple[int, int]]:
    """Return the first and last line (from 1) of each declaration, including comments above it."""
    lines = inspect.getsource(family).splitlines()
    lines_by_name = {}
    for statement in ast.parse("\n".join(lines)).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(target, ast.Name):
            first = statement.lineno
            while lines[first - 2].startswith("# ") and not lines[first - 2].startswith("# ---"):
                first -= 1
            lines_by_name[target.id] = first, statement.end_lineno or first
    return lines_by_name


def declaration_comment(family: ModuleType, op: Op) -> str:
    """Return the comments at the declaration of an operation."""
    first, last = declaration_lines(family)[op.name]
    lines = inspect.getsource(family).splitlines()[first - 1 : last]
    preceding = list(takewhile(lambda line: line.startswith("# "), lines))
    _, _, trailing = lines[len(preceding)].partition("  # ")
    sentences = [line[2:] for line in preceding] + (
        [_as_sentence(trailing)] if trailing and not _TOOL_COMMENT.match(trailing) else []
    )
    return " ".join(sentences)


def _as_sentence(text: str) -> str:
    """Add a full stop and, unless `text` starts with a name, capitalise it."""
    start = text[0] if re.match(r"\w*[`_(]", text) else text[0].upper()
    return f"{start}{text[1:]}{'' if text.endswith('.') else '.'}"
