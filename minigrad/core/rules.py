"""Rules: what the parameter names of a derivative rule declare, what is saved for it, and how it is called.

An op is given here as it is being declared: `minigrad.core.op.Op` says what may be declared.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.core.errors import DeclarationError
from minigrad.core.specialise import compile_function

__all__ = ["Rule", "SavePlan", "Signature", "adapt", "check_declaration", "names_read", "save_plan"]

Rule = Callable[..., Any]

_NAMED = re.compile(r"(?<!begin)(?<!end)(?<!operatorname)(?<!text)\{([^\W\d]\w*)\}")


class SavePlan(NamedTuple):
    """Which numbers of an operation are kept for its rules: each output, each operand, and which auxiliary results.

    `constants` says whether an operand may want no gradient.
    """

    outputs: tuple[bool, ...]
    operands: tuple[bool, ...]
    aux: frozenset[str]
    constants: bool = True


class Signature:
    """What `inspect.signature`, and so `help`, says of an op: its operands, then its attributes and their defaults."""

    def __get__(self, op: Any, owner: type) -> inspect.Signature:
        if op is None:
            raise AttributeError("Op itself has its constructor's signature.")
        kind = inspect.Parameter.VAR_POSITIONAL if op.variadic else inspect.Parameter.POSITIONAL_ONLY
        found = [inspect.Parameter(name, kind) for name in op.inputs]
        for name in op.attrs:
            default = op.defaults.get(name, inspect.Parameter.empty)
            found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
        return inspect.Signature(found)


def check_declaration(op: Any, shown: tuple[Rule | str | None, ...]) -> None:
    """Raise DeclarationError where the parts of the declaration of `op` contradict each other."""
    if not len(op.inputs) == len(op.vjp) == len(shown):
        raise DeclarationError(
            f"Op {op.name!r} names {len(op.inputs)} inputs and has {len(op.vjp)} rules and {len(shown)} to show: "
            "write one rule per input."
        )
    names = ["g", "y", "out", *op.parts, *op.inputs, *op.aux, *op.attrs]
    twice = sorted({name for name in names if names.count(name) > 1 or not name.isidentifier()})
    if twice:
        raise DeclarationError(
            f"Op {op.name!r}: {twice} cannot name operands, aux or attrs: each name must be an identifier, and "
            "stand once; g, y and out are taken, by the gradient, the output, and where a kernel writes."
        )
    for rule in (*shown, op.meaning):
        names_read(op, rule)


def names_read(op: Any, rule: Rule | str | None) -> frozenset[str]:
    """Return the names that a rule of `op` asks for. Raises DeclarationError for one that stands for nothing."""
    if rule is None:
        return frozenset()
    found = _NAMED.findall(rule) if isinstance(rule, str) else inspect.signature(rule).parameters
    names = frozenset(found)
    known = {"g", "y", *op.inputs} if not op.variadic else {"g", "slot"}
    known |= {*op.parts, *op.aux, *op.attrs}
    unknown = sorted(names - known - {f"{name}_shape" for name in op.inputs if not op.variadic})
    if unknown:
        raise DeclarationError(
            f"Op {op.name!r}: a rule asks for {unknown}, but there is only {sorted(known)}.\n"
            "  Name an operand, a result in aux=, or an attribute in attrs=."
        )
    return names


def adapt(op: Any, rule: Rule | None) -> Rule | None:
    """Return the rule under one signature, (g, y, *operands, **static), so that the chain rule looks no names up."""
    if rule is None:
        return None
    static = (*op.aux, *op.attrs, *op.shapes)
    operands = (*op.inputs, "*") if static else op.inputs
    if op.variadic:
        operands = ("*_",) if op.joint else ("*_", "slot")
    parameters = ", ".join(["g", "y", *operands, *static])
    read = inspect.signature(rule).parameters.values()
    given = {name: f"y[{k}]" for k, name in enumerate(op.parts)}
    arguments = ", ".join(
        f"{p.name}={given.get(p.name, p.name)}" if p.kind is p.KEYWORD_ONLY else given.get(p.name, p.name) for p in read
    )
    return compile_function("adapted", f"def adapted({parameters}):\n    return rule({arguments})\n", {"rule": rule})


def save_plan(op: Any, wants: tuple[bool, ...]) -> SavePlan | None:
    """Return what `op` keeps if the operands so marked want a gradient; None where none of them has a rule."""
    if op.variadic:
        return SavePlan((False,) * op.outputs, (False,) * len(wants), frozenset()) if True in wants else None
    read = [r for r, rule, w in zip(op.reads, op.rules, wants, strict=True) if rule is not None and w]
    names = frozenset().union(*read)
    outputs = tuple("y" in names or name in names for name in op.parts or ("y",))
    kept = SavePlan(outputs, tuple(name in names for name in op.inputs), names & set(op.aux), not all(wants))
    return kept if read else None
