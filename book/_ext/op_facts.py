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
from minigrad.core.dispatch import kernels_of
from minigrad.core.op import Op
from minigrad.core.storage import DEVICES

__all__ = ["Rule", "devices", "families", "formula", "note", "rules", "sampled", "types"]

_TYPES = {
    "same": "any; operands are promoted to a common dtype",
    "number": "any but bool; operands are promoted to a common dtype",
    "int": "any; operands are promoted to a common dtype, and bools to `int64`",
    "float": "any; integers and bools are promoted to the default floating-point dtype",
    "rest": "the first operand is a condition; the others are promoted to a common dtype",
}
_FOR_TOOLS = re.compile(r"(noqa|type: ignore)\b")  # comments for tools, not for the book
_AS_GIVEN = "any, without promotion"


class Rule(NamedTuple):
    """The local derivative with respect to an operand and its product with g, in LaTeX, and their origin.

    `local` is None for operations that are not elementwise; both are None if the operand receives no gradient.
    """

    operand: str
    local: str | None
    product: str | None
    how: str  # "printed", "rewritten", "stated", "adjoint" or "" for none


@cache
def families() -> dict[str, tuple[ModuleType, list[Op]]]:
    """Return the modules of `minigrad.ops` and their operations, in the order of declaration."""
    found: dict[str, tuple[ModuleType, list[Op]]] = {}
    for family in ops._FAMILIES:
        own = [op for name, op in mg.OPS.items() if name in family.__all__ and getattr(family, name) is op]
        found[family.__name__.rpartition(".")[2]] = (family, own)
    return found


def formula(op: Op) -> str:
    """Return the formula of an operation in LaTeX."""
    return expression(op, op.inputs).latex()


def rules(op: Op) -> list[Rule]:
    """Return the derivatives with respect to each operand, obtained by evaluating the gradient rules on symbols."""
    return [_rule(op, slot, name) for slot, name in enumerate(op.inputs)]


def _rule(op: Op, slot: int, name: str) -> Rule:
    shown = op.shown[0 if op.variadic else slot]
    if shown is None:
        return Rule(name, None, None, "")
    local = _latex(local_derivative, op, slot) if op.domain else None
    received = _latex(product, op, slot)
    if isinstance(shown, str):
        return Rule(name, local, received, "adjoint" if r"{\partial {y}}" in shown else "stated")
    return Rule(name, local, received, "printed" if _own(op, slot) == received else "rewritten")


def _latex(how: Callable[..., Any], op: Op, slot: int) -> str:
    """Return the LaTeX that `how` prints for the gradient rule of an operand."""
    found: str = how(op, slot, "y", op.inputs).latex()
    return found


def _own(op: Op, slot: int) -> str | None:
    """Return the LaTeX of the rule that computes, or None if it branches on an attribute."""
    itself = copy(op)
    itself.shown = op.rules
    try:
        return _latex(product, itself, slot)
    except TypeError:
        return None


def devices(op: Op) -> list[str]:
    """Return the devices that have a kernel for an operation."""
    return [device for device in ("python", *DEVICES) if device in kernels_of(op.name)]


def types(op: Op) -> str:
    """Return which dtypes an operation accepts and how it promotes them."""
    return _TYPES[op.promotes] if op.promotes else _AS_GIVEN


def sampled(op: Op) -> str:
    """Return the intervals from which tests sample each operand, without its kinks."""
    parts = []
    for name, domain in zip(op.inputs, op.domain, strict=True):
        kinks = ", ".join(f"{x:g}" for x in domain.kinks)
        parts.append(f"${name}$ from {domain.low:g} to {domain.high:g}{f' but for {kinks}' if kinks else ''}")
    return "; ".join(parts).replace("-", "−")


# --- where it is declared --------------------------------------------------------------------------------------------


@cache
def declared(family: ModuleType) -> dict[str, tuple[int, int]]:
    """Return the first and last line (from 1) of each declaration, including comments above it."""
    lines = inspect.getsource(family).splitlines()
    found = {}
    for statement in ast.parse("\n".join(lines)).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(target, ast.Name):
            first = statement.lineno
            while lines[first - 2].startswith("# ") and not lines[first - 2].startswith("# ---"):
                first -= 1
            found[target.id] = first, statement.end_lineno or first
    return found


def note(family: ModuleType, op: Op) -> str:
    """Return the comments at the declaration of an operation."""
    first, last = declared(family)[op.name]
    lines = inspect.getsource(family).splitlines()[first - 1 : last]
    above = list(takewhile(lambda line: line.startswith("# "), lines))
    _, _, beside = lines[len(above)].partition("  # ")
    said = [line[2:] for line in above] + ([_sentence(beside)] if beside and not _FOR_TOOLS.match(beside) else [])
    return " ".join(said)


def _sentence(text: str) -> str:
    """Add a full stop and, unless `text` starts with a name, capitalise it."""
    start = text[0] if re.match(r"\w*[`_(]", text) else text[0].upper()
    return f"{start}{text[1:]}{'' if text.endswith('.') else '.'}"
