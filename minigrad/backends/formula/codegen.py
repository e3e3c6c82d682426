"""Code generation for scalar operations, in languages such as JavaScript.

Forward code is generated from the op's formula, and backward code from its rules, applied to formulas. A custom op
therefore needs no code in another language if that language has the functions in its formula. Every subexpression is
in parentheses, so precedence does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad.backends.formula import Formula, RawFormula
from minigrad.backends.formula.parser import SIGNS, Part, is_infix, parse
from minigrad.core.dispatch import get_kernels
from minigrad.core.op import Op

__all__ = ["FUNCTION_NAMES", "OPERAND_NAMES", "TargetLanguage", "Unwritable", "check_scalar_op", "op_code", "rule_code"]

OPERAND_NAMES = "abcdefhijk"  # names of operands in generated code
FUNCTION_NAMES = "erf round sign max min remainder clamp isnan isinf isfinite not"
FUNCTION_NAMES += " relu relu6 hardtanh leakyrelu prelu step elu selu"
_BOOLEAN_FUNCTIONS = {"isnan", "isinf", "isfinite", "not"}
_ARITHMETIC = {"+": "+", "-": "-", "/": "/", r"\cdot": "*", r"\times": "*", r"\odot": "*", "": "*"}
_RULE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class TargetLanguage(NamedTuple):
    """The syntax of a target language. Templates have ``{}`` for each operand."""

    runtime_name: str
    """The name of the system that runs the code, for error messages."""
    functions: Mapping[str, str]
    """Maps function names in formulas to names in the language."""
    helpers: Mapping[str, str]
    """Maps functions without a name in formulas, and accurate replacements of compositions, to names: sqrt, abs, …"""
    constants: Mapping[str, str]
    comparisons: Mapping[str, str]
    logic: Mapping[str, str]
    """Templates of logical operations, by increasing precedence."""
    conditional: str
    """Template of a conditional expression, for a condition and two values."""
    is_true: str
    """Template of an expression that tests whether a value is true."""
    missing_attr: Callable[[str], str]
    """Function that maps the name of an attribute that is None to the code that replaces it."""
    literal: Callable[[float], str]


class Unwritable(Exception):
    """Exception raised if code cannot be generated. The message is a sentence that states the reason."""


class _BooleanCode(str):
    """Code of a boolean expression."""


class _ExpCode(str):
    """Code of an exponential. The code of ln(1 + exp x) and exp x − 1 calls accurate functions instead."""

    __slots__ = ("power",)
    power: str

    @classmethod
    def from_exponent(cls, power: str, function: str) -> _ExpCode:
        code = cls(f"{function}({power})")
        code.power = power
        return code


def check_scalar_op(op: Op) -> None:
    """Raise Unwritable unless `op` is defined on scalars, and its rules read only operands, output and gradient."""
    if "python" not in get_kernels(op.name) or op.outputs > 1 or op.variadic:
        raise Unwritable(f"{op.name} is not defined on scalars.")
    if op.joint or op.aux:
        raise Unwritable(f"The rules of {op.name} read tensors saved by its kernel, which its formula does not define.")


def rule_code(
    op: Op, rule: Callable[..., Any], names: Mapping[str, str], attrs: Mapping[str, Any], language: TargetLanguage
) -> str:
    """Return code for a rule of `op` in terms of g, y and the `names` of its operands. Raises Unwritable on failure."""
    operands = [Formula(names[name]) for name in op.inputs]
    try:
        gradient = rule(Formula("g"), Formula("y"), *operands, **attrs, **dict.fromkeys(op.shapes, ()))
    except _RULE_ERRORS as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unwritable(f"A derivative rule of {op.name} is not a formula: {reason}") from None
    return _formula_code(gradient if isinstance(gradient, Formula) else Formula(gradient), language)


def _formula_code(formula: Formula, language: TargetLanguage) -> str:
    """Return code for a formula whose symbols are names in the language."""
    op, value = formula.op, formula.value
    if op is None:
        return value if isinstance(value, str) else language.literal(float(value or 0.0))
    if isinstance(op, RawFormula) or (not op.domain and "python" not in get_kernels(op.name)):
        raise Unwritable(f"{op.name} is not defined on scalars.")
    attrs = {name: _formula_code(x, language) if isinstance(x, Formula) else x for name, x in formula.attrs.items()}
    operands = [_formula_code(x, language) for x in formula.args]
    return op_code(op, dict(zip(op.inputs, operands, strict=True)), attrs, language)


def op_code(op: Op, operands: Mapping[str, str], attrs: Mapping[str, Any], language: TargetLanguage) -> str:
    """Return code for the op's formula on `operands`. If the formula is a single function of minigrad, the function
    also receives the attributes that the formula omits."""
    attr_codes: dict[str, str] = {}
    for name in op.attrs:
        x = attrs[name]
        if not isinstance(x, str | int | float | None):
            raise Unwritable(f"{op.name} has an attribute that is not a number, {name}={x!r}.")
        attr_codes[name] = (
            x if isinstance(x, str) else language.missing_attr(name) if x is None else language.literal(float(x))
        )
    try:
        part = parse(op.formula, (*op.inputs, *op.attrs))
    except (IndexError, ValueError):
        raise Unwritable(f"The formula of {op.name} cannot be parsed.") from None
    writer = _FormulaWriter(op, {**operands, **attr_codes}, language)
    if part.kind == "call" and part.parts[0].text.removeprefix("\\") in FUNCTION_NAMES.split():
        omitted = [attr_codes[name] for name in op.attrs if not re.search(rf"\\{name}\b|\{{{name}\}}", op.formula)]
        return writer.call(part.parts[0], part.parts[1], tuple(omitted))
    return writer.write(part)


class _FormulaWriter:
    """Code generator for the formula of an op. `names` maps operands and attributes to their code."""

    def __init__(self, op: Op, names: Mapping[str, str], language: TargetLanguage) -> None:
        self.op, self.names, self.language = op, names, language

    def unsupported(self, symbol: str) -> Unwritable:
        symbol = symbol.removeprefix("\\")
        return Unwritable(
            f"The formula of {self.op.name} contains “{symbol}”, which {self.language.runtime_name} does not support."
        )

    def write(self, part: Part) -> str:
        match part:
            case Part("operand", name):
                return self.names[name]
            case Part("number", digits):
                return self.language.literal(float(digits))
            case Part("letter", letter) if letter in self.language.constants:
                return self.language.constants[letter]
            case Part("letter", letter) if letter.removeprefix("\\") in self.names:
                return self.names[letter.removeprefix("\\")]
            case Part("frac", _, (above, below)):
                return f"({self.write(above)} / {self.write(below)})"
            case Part("sqrt", _, (inner,)):
                return self.helper_call("sqrt", self.write(inner))
            case Part("power", _, (base, exponent)):
                return self.power(base, self.write(exponent))
            case Part("fence", "()", (inner,)):
                return self.write(inner)
            case Part("fence", "||", (inner,)):
                return self.helper_call("abs", self.write(inner))
            case Part("call", _, (name, argument)):
                return self.call(name, argument)
            case Part("cases", _, cells):
                return self.cases(cells)
            case Part("row", _, row):
                return self.row(row)
        raise self.unsupported(part.text or part.kind)

    def power(self, base: Part, exponent: str) -> str:
        if base == Part("letter", "e"):
            return _ExpCode.from_exponent(exponent, self.language.helpers["exp"])
        base_code = self.write(base)
        if exponent == self.language.literal(2.0) and base_code.isidentifier():
            return f"({base_code} * {base_code})"
        return self.helper_call("pow", base_code, exponent)

    def helper_call(self, name: str, *arguments: str) -> str:
        return f"{self.language.helpers[name]}({', '.join(arguments)})"

    def call(self, name: Part, argument: Part, extra_arguments: tuple[str, ...] = ()) -> str:
        if name.kind == "power":
            return self.helper_call(
                "pow", self.call(name.parts[0], argument, extra_arguments), self.write(name.parts[1])
            )
        function_name = name.text.removeprefix("\\")
        if name.kind != "name" or function_name not in self.language.functions:
            raise self.unsupported(function_name or name.kind)
        inner = argument.parts[0] if argument.kind == "fence" and argument.text == "()" else argument
        if function_name == "floor" and inner.kind == "frac":  # a rounded quotient may be too large by 1
            return self.helper_call("quotient", self.write(inner.parts[0]), self.write(inner.parts[1]))
        if (
            function_name == "ln"
            and inner.parts[:2] == (Part("number", "1"), Part("sign", "+"))
            and len(inner.parts) == 3
        ):
            summand = self.write(inner.parts[2])  # accurate for small values
            if isinstance(summand, _ExpCode):
                return self.helper_call("softplus", summand.power)
            return self.helper_call("log1p", summand)
        arguments = [self.write(x) for x in _split_arguments(inner)] + list(extra_arguments)
        function = self.language.functions[function_name]
        if function_name in ("max", "min"):
            return reduce(lambda a, b: f"{function}({a}, {b})", arguments)
        return (_BooleanCode if function_name in _BOOLEAN_FUNCTIONS else str)(f"{function}({', '.join(arguments)})")

    def cases(self, cells: tuple[Part, ...]) -> str:
        code = self.language.constants[r"\mathrm{NaN}"]
        for k in range(len(cells) - 2, -1, -2):
            value, otherwise = self.write(cells[k]), cells[k + 1].kind == "word"
            code = value if otherwise else self.language.conditional.format(self.condition(cells[k + 1]), value, code)
        return code

    def condition(self, part: Part) -> str:
        """Return `part` as a condition: every value except 0 is true, including NaN."""
        code = self.write(part)
        return code if isinstance(code, _BooleanCode) else _BooleanCode(self.language.is_true.format(code))

    def row(self, row: tuple[Part, ...]) -> str:
        if len(row) == 1:
            return self.write(row[0])
        signs = {k: x.text for k, x in enumerate(row) if is_infix(row, k)}
        for group in [{sign} for sign in self.language.logic] + [set(self.language.comparisons)]:
            positions = [k for k, sign in signs.items() if sign in group]
            if positions:
                return self.infix_operation(row, positions[-1], signs[positions[-1]])
        for precedence in (SIGNS["+"], SIGNS["/"]):
            positions = [k for k, sign in signs.items() if SIGNS.get(sign) == precedence and sign in _ARITHMETIC]
            if positions:
                return self.infix_operation(row, positions[-1], signs[positions[-1]])
            if row[0] == Part("sign", "-"):
                return f"(-{self.row(row[1:])})"
        raise self.unsupported(next((x.text for x in row if x.kind == "sign"), row[0].kind))

    def infix_operation(self, row: tuple[Part, ...], k: int, sign: str) -> str:
        left, right = row[:k], row[k + 1 :]
        language = self.language
        if sign in language.logic:
            sides = [self.condition(x[0] if len(x) == 1 else Part("row", parts=x)) for x in (left, right)]
            return _BooleanCode(language.logic[sign].format(*sides))
        if sign == "+" and (lerp_parts := _match_lerp(left, right)):
            return self.lerp(*map(self.write, lerp_parts))
        first, second = self.row(left), self.row(right)
        if sign in language.comparisons:
            return _BooleanCode(language.comparisons[sign].format(first, second))
        if sign == "-" and second == language.literal(1.0) and isinstance(first, _ExpCode):
            return self.helper_call("expm1", first.power)
        return f"({first} {_ARITHMETIC[sign]} {second})"

    def lerp(self, start: str, end: str, weight: str) -> str:
        """Return the linear interpolation from `start` to `end`, exact at weights 0 and 1."""
        language = self.language
        is_near_start = _BooleanCode(
            language.comparisons["<"].format(self.helper_call("abs", weight), language.literal(0.5))
        )
        difference = f"({end} - {start})"
        from_end = f"({end} - ({difference} * ({language.literal(1.0)} - {weight})))"
        return language.conditional.format(is_near_start, f"({start} + ({weight} * {difference}))", from_end)


def _match_lerp(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, Part, Part] | None:
    """Return start, end and weight if the summands are start and weight·(end − start), else None."""
    match left, right:
        case (start,), (weight, Part("sign", sign), Part("fence", "()", (Part("row", _, (end, minus, same)),))):
            if _ARITHMETIC.get(sign) == "*" and minus == Part("sign", "-") and same == start:
                return start, end, weight
    return None


def _split_arguments(part: Part) -> list[Part]:
    """Return the arguments between commas."""
    if part.kind != "row":
        return [part]
    commas = [-1, *(k for k, x in enumerate(part.parts) if x == Part("sign", ",")), len(part.parts)]
    return [Part("row", parts=part.parts[a + 1 : b]) for a, b in pairwise(commas)]
