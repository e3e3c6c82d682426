"""Derivative rules: the names that they read, the values saved for them, and their common signature.

The `op` arguments are ops under construction; see `minigrad.core.op.Op` for what can be declared.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.core.errors import DeclarationError
from minigrad.core.specialise import compile_function

__all__ = ["OpSignature", "Rule", "SavePlan", "adapt_rule", "check_declaration", "read_names", "save_plan"]

Rule = Callable[..., Any]

_PLACEHOLDER = re.compile(r"(?<!begin)(?<!end)(?<!operatorname)(?<!text)\{([^\W\d]\w*)\}")


class SavePlan(NamedTuple):
    """The outputs, operands and auxiliary results that an operation saves for its derivative rules."""

    outputs: tuple[bool, ...]
    operands: tuple[bool, ...]
    aux: frozenset[str]


class OpSignature:
    """Descriptor for the signature of an op: its operands, then its attributes with their defaults."""

    def __get__(self, op: Any, owner: type) -> inspect.Signature:
        if op is None:
            raise AttributeError("Op itself has its constructor's signature.")
        kind = inspect.Parameter.VAR_POSITIONAL if op.variadic else inspect.Parameter.POSITIONAL_ONLY
        parameters = [inspect.Parameter(name, kind) for name in op.inputs]
        for name in op.attrs:
            default = op.defaults.get(name, inspect.Parameter.empty)
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
        return inspect.Signature(parameters)


def check_declaration(op: Any, shown: tuple[Rule | str | None, ...]) -> None:
    """Raise DeclarationError if the declaration of `op` is inconsistent."""
    if not len(op.inputs) == len(op.vjp) == len(shown):
        raise DeclarationError(
            f"Op {op.name!r}: expected one rule per input, but got {len(op.inputs)} inputs, {len(op.vjp)} rules and "
            f"{len(shown)} rules to show."
        )
    names = ["g", "y", "out", *op.output_names, *op.inputs, *op.aux, *op.attrs]
    invalid = sorted({name for name in names if names.count(name) > 1 or not name.isidentifier()})
    if invalid:
        raise DeclarationError(
            f"Op {op.name!r}: {invalid} cannot name operands, aux or attrs. Names must be unique identifiers; g, y and "
            "out are reserved for the gradient, the output, and the array that a kernel writes to."
        )
    for rule in (*shown, op.meaning):
        read_names(op, rule)


def read_names(op: Any, rule: Rule | str | None) -> frozenset[str]:
    """Return the names that a rule of `op` reads. Raises DeclarationError for unknown names."""
    if rule is None:
        return frozenset()
    parameter_names = _PLACEHOLDER.findall(rule) if isinstance(rule, str) else inspect.signature(rule).parameters
    names = frozenset(parameter_names)
    allowed = {"g", "y", *op.inputs} if not op.variadic else {"g", "slot"}
    allowed |= {*op.output_names, *op.aux, *op.attrs}
    unknown = sorted(names - allowed - {f"{name}_shape" for name in op.inputs if not op.variadic})
    if unknown:
        raise DeclarationError(
            f"Op {op.name!r}: a rule reads unknown names {unknown}; expected {sorted(allowed)}.\n"
            "  Name an operand, a result in aux=, or an attribute in attrs=."
        )
    return names


def adapt_rule(op: Any, rule: Rule | None) -> Rule | None:
    """Adapt a rule to the signature ``(g, y, *operands, **static)``, so that calls need no lookup of names."""
    if rule is None:
        return None
    static = (*op.aux, *op.attrs, *op.shapes)
    operands = (*op.inputs, "*") if static else op.inputs
    if op.variadic:
        operands = ("*_",) if op.joint else ("*_", "slot")
    parameters = ", ".join(["g", "y", *operands, *static])
    parameters_of_rule = inspect.signature(rule).parameters.values()
    output_expressions = {name: f"y[{k}]" for k, name in enumerate(op.output_names)}
    arguments = ", ".join(
        f"{p.name}={output_expressions.get(p.name, p.name)}"
        if p.kind is p.KEYWORD_ONLY
        else output_expressions.get(p.name, p.name)
        for p in parameters_of_rule
    )
    return compile_function("adapted", f"def adapted({parameters}):\n    return rule({arguments})\n", {"rule": rule})


def save_plan(op: Any, needs_grad: tuple[bool, ...]) -> SavePlan | None:
    """Return the plan for the operands marked in `needs_grad`; None if none of them has a derivative rule."""
    if op.variadic:
        return SavePlan((False,) * op.outputs, (False,) * len(needs_grad), frozenset()) if True in needs_grad else None
    read_by_rule = [r for r, rule, w in zip(op.reads, op.rules, needs_grad, strict=True) if rule is not None and w]
    names = frozenset().union(*read_by_rule)
    outputs = tuple("y" in names or name in names for name in op.output_names or ("y",))
    plan = SavePlan(outputs, tuple(name in names for name in op.inputs), names & set(op.aux))
    return plan if read_by_rule else None
