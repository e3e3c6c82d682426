"""What the book says of an operation: all of it is read from its declaration, or tried."""

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
    "same": "any; operands are brought to the type that holds all of them",
    "number": "numbers, in the type that holds all of them; bools are refused",
    "int": "any; operands are brought to the type that holds all of them, and bools become `int64`",
    "float": "any; ints and bools become the default float, fractions keep their type",
    "rest": "the first is a condition; the others are brought to the type that holds all of them",
}
_FOR_TOOLS = re.compile(r"(noqa|type: ignore)\b")  # comments that are no remarks
_AS_GIVEN = "as they are given: nothing is converted"


class Rule(NamedTuple):
    """The derivative by one operand, in LaTeX: alone, where it is one number, and times g; and how it was come by.

    `local` is None for operations on whole tensors, and both are None where no gradient goes.
    """

    operand: str
    local: str | None
    product: str | None
    how: str  # "printed", "rewritten", "stated", "adjoint" or "" for none


@cache
def families() -> dict[str, tuple[ModuleType, list[Op]]]:
    """The modules of `minigrad.ops` and their operations, in the order of their declarations."""
    found: dict[str, tuple[ModuleType, list[Op]]] = {}
    for family in ops._FAMILIES:
        own = [op for name, op in mg.OPS.items() if name in family.__all__ and getattr(family, name) is op]
        found[family.__name__.rpartition(".")[2]] = (family, own)
    return found


def formula(op: Op) -> str:
    """What it computes, in LaTeX."""
    return expression(op, op.inputs).latex()


def rules(op: Op) -> list[Rule]:
    """The derivative by each operand, as the rule itself prints it."""
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
    """A rule in LaTeX."""
    found: str = how(op, slot, "y", op.inputs).latex()
    return found


def _own(op: Op, slot: int) -> str | None:
    """What the rule that computes prints; None for one that chooses by an attribute, which a name cannot stand for."""
    itself = copy(op)
    itself.shown = op.rules
    try:
        return _latex(product, itself, slot)
    except TypeError:
        return None


def devices(op: Op) -> list[str]:
    """Where it has a kernel."""
    return [device for device in ("python", *DEVICES) if device in kernels_of(op.name)]


def types(op: Op) -> str:
    """Which types it takes, as far as its declaration says."""
    return _TYPES[op.promotes] if op.promotes else _AS_GIVEN


def sampled(op: Op) -> str:
    """Where tests sample its operands: where it is defined, and away from its kinks."""
    parts = []
    for name, domain in zip(op.inputs, op.domain, strict=True):
        kinks = ", ".join(f"{x:g}" for x in domain.kinks)
        parts.append(f"${name}$ from {domain.low:g} to {domain.high:g}{f' but for {kinks}' if kinks else ''}")
    return "; ".join(parts).replace("-", "−")


# --- where it is declared --------------------------------------------------------------------------------------------


@cache
def declared(family: ModuleType) -> dict[str, tuple[int, int]]:
    """The lines of each declaration, first and last, counted from 1; comments above belong to it."""
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
    """What the comments at its declaration say of it."""
    first, last = declared(family)[op.name]
    lines = inspect.getsource(family).splitlines()[first - 1 : last]
    above = list(takewhile(lambda line: line.startswith("# "), lines))
    _, _, beside = lines[len(above)].partition("  # ")
    said = [line[2:] for line in above] + ([_sentence(beside)] if beside and not _FOR_TOOLS.match(beside) else [])
    return " ".join(said)


def _sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name, and a full stop."""
    start = text[0] if re.match(r"\w*[`_(]", text) else text[0].upper()
    return f"{start}{text[1:]}{'' if text.endswith('.') else '.'}"
