"""Symbolic formulas: a `Formula` is the result of an operation on symbols instead of values.

Applied to formulas, a derivative rule returns its own formula, so the displayed and the computed rule cannot differ:

>>> from minigrad import OPS
>>> local_derivative(OPS["tanh"], 0, "y", ["a"]).latex()
'1 - y \\\\cdot y'
>>> local_derivative(OPS["mul"], 0, "c", ["a", -3.0]).formula()
'−3'

An op declares its formula in a subset of LaTeX, which `parser` parses; LaTeX, MathML, plain text and JavaScript are
generated from the result. Only formulas of ops are parsed; names and values from users are escaped and inserted later.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from minigrad.backends.formula.printer import LATEX, MATHML, TEXT, print_formula
from minigrad.core.deprecation import deprecated_names
from minigrad.core.op import Op, Operand

__all__ = ["Formula", "RawFormula", "expression", "local_derivative", "product"]

__getattr__ = deprecated_names(__name__, {"Phrase": "RawFormula"})


class RawFormula(NamedTuple):
    """A formula given as text, which an op displays instead of a derivative rule that is too long."""

    formula: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...] = ()
    name: str = ""
    precedence: int | None = None


class Formula(Operand):
    """An expression: a symbol, a constant, or an operation on expressions."""

    __slots__ = ("args", "attrs", "op", "value")

    def __init__(
        self,
        value: str | float | None = None,
        op: Op | RawFormula | None = None,
        args: tuple[Formula, ...] = (),
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.value = value if isinstance(value, str) or op is not None else float(value or 0.0)
        self.op = op
        self.args = args
        self.attrs = attrs

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.name == "where" and isinstance(inputs[0], bool):
            return inputs[1] if inputs[0] else inputs[2]
        args = tuple([x if isinstance(x, Formula) else Formula(x) for x in inputs])
        simplified = _simplify(op, args)
        return Formula(op=op, args=args, attrs=attrs) if simplified is None else simplified

    def latex(self) -> str:
        """Return LaTeX for math mode."""
        return print_formula(self, LATEX)[0].replace("‖", r"\|")

    def mathml(self) -> str:
        """Return a complete ``<math>`` element."""
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{print_formula(self, MATHML)[0]}</math>'

    def formula(self) -> str:
        """Return one line of Unicode text."""
        return print_formula(self, TEXT)[0]

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"The truth value of the formula {self.formula()} is undefined.\n"
            "  Write where(condition, a, b) in a rule instead of if, and, or, not."
        )

    def __repr__(self) -> str:
        return f"Formula({self.formula()})"


_ONE = Formula(1.0)  # g of a local derivative; compared by identity, so that a user's 1.0 is not simplified


def expression(op: Op, operands: Sequence[str | float], static: Mapping[str, Any] | None = None) -> Formula:
    """Return `op` applied to `operands`, each a symbol or a Python scalar; `static` may contain attributes.

    >>> from minigrad import OPS
    >>> expression(OPS["div"], ["a", 2.0]).latex()
    '\\\\frac{a}{2}'
    """
    return Formula(op=op, args=tuple([Formula(x) for x in operands]), attrs=static or {})


def local_derivative(
    op: Op, slot: int, output: str | float, operands: Sequence[str | float], static: Mapping[str, Any] | None = None
) -> Formula | None:
    """Return the local derivative of `op` with respect to operand `slot`, or None if it has no rule.

    `output` and `operands` are symbols, to get the formula, or Python scalars to substitute. The op's attributes and
    auxiliary outputs appear as symbols, unless `static` contains their values.
    """
    if isinstance(op.shown[0 if op.variadic else slot], str):
        return None  # the op displays the full product
    return _apply_rule(op, slot, _ONE, output, operands, static or {})


def product(
    op: Op, slot: int, output: str | float, operands: Sequence[str | float], static: Mapping[str, Any] | None = None
) -> Formula | None:
    """Return the gradient of operand `slot` in terms of g, the gradient of the output; None if there is no rule.

    The parameters are those of `local_derivative`.

    >>> from minigrad import OPS
    >>> product(OPS["matmul"], 0, "c", ["a", "b"]).formula()
    'g bᵀ'
    """
    return _apply_rule(op, slot, Formula("g"), output, operands, static or {})


def _apply_rule(
    op: Op, slot: int, g: Formula, output: str | float, operands: Sequence[str | float], static: Mapping[str, Any]
) -> Formula | None:
    rule: Any = op.shown[0 if op.variadic else slot]
    if rule is None:
        return None
    names: dict[str, Any] = {name: name for name in (*op.aux, *op.attrs)} | dict.fromkeys(op.shapes, ()) | dict(static)
    arguments = {name: Formula(x) if isinstance(x, str | float) else x for name, x in names.items()}
    y = (Formula(output),) * op.outputs if op.outputs > 1 else Formula(output)
    operand_formulas = [Formula(x) for x in operands]
    if isinstance(rule, str):
        parts = zip(op.output_names, y, strict=True) if isinstance(y, tuple) else [("y", y)]
        shown_operands = operand_formulas[slot : slot + 1] if op.variadic else operand_formulas
        arguments |= (
            dict(zip(op.inputs, shown_operands, strict=True)) | {"g": g, "slot": Formula(float(slot))} | dict(parts)
        )
        return Formula(
            op=RawFormula(rule, tuple(arguments)),
            args=tuple([_attribute_formula(x) for x in arguments.values()]),
        )
    derivative = rule(g, y, *operand_formulas, **arguments)
    return derivative if isinstance(derivative, Formula) else Formula(derivative)


def _attribute_formula(x: Any) -> Formula:
    """Convert an attribute of any type to a formula."""
    if isinstance(x, Formula):
        return x
    return Formula(float(x) if isinstance(x, int) and not isinstance(x, bool) else str(x))


def _simplify(op: Op, args: tuple[Formula, ...]) -> Any:
    """Return a simpler form of an operation on `args` if the full form would be hard to read, else None."""
    match op.name, args:
        case "mul", (x, y) if x is _ONE or y is _ONE:
            return y if x is _ONE else x
        case "neg", (x,) if x is _ONE:
            return Formula(-1.0)
        case "pow", (
            x,
            Formula(op=Op(name="sub" | "add" as f), args=(Formula(value=float(b)), Formula(value=float(c)))),
        ):
            power = getattr(operator, f)(b, c)  # the exponent b - 1 in the derivative of a power
            return x if power == 1.0 else Formula(op=op, args=(x, Formula(power)))
        case name, (Formula(value=float(a)), Formula(value=float(b))) if name in ("lt", "le", "gt", "ge", "eq", "ne"):
            return getattr(operator, name)(a, b)  # a bool, so that `where` can select
    return None
