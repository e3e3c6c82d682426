"""Elementwise operations. A gradient rule (VJP) maps g, the gradient of the output, to the gradient of an operand.

Rules run on floats, Values, tensors and formulas, so they may use only operators and other operations. They divide with
`div`, since Python's ``1 / x`` raises for 0.0, and mask with `where`, never by multiplying with 0 or 1: inf * 0 is nan.
"""

import math
from typing import Any

from minigrad.core.op import ANY, POSITIVE, Domain, Op

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "ge",
    "gt",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "lerp",
    "log",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
    "trunc",
    "where",
]

abs: Op  # rules may refer to operations declared later


def _angle_derivative(a: Any, b: Any) -> Any:
    """Return b / (a² + b²), or 0 with the sign of b where the denominator is 0 or underflows, as PyTorch does."""
    n = a * a + b * b
    return where(n == 0, 0.0 * b, div(b, n))


def _clamp_rule(g: Any, a: Any, min: float | None, max: float | None) -> Any:
    if max is not None:
        g = where(a <= max, g, 0.0)
    return g if min is None else where(a >= min, g, 0.0)


KINK_AT_ZERO = Domain(-3.0, 3.0, kinks=(0.0,))
KINKS_AT_INTEGERS = Domain(-3.0, 3.0, kinks=(-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0))
KINKS_AT_HALVES = Domain(-3.0, 3.0, kinks=(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5))
UNIT_INTERVAL = Domain(-0.9, 0.9)

# --- arithmetic ---

add = Op("add", "{a} + {b}", vjp=(lambda g: g, lambda g: g), domain=(ANY, ANY), precedence=Op.SUM, promotes="same")
sub = Op(
    "sub", "{a} - {b}", vjp=(lambda g: g, lambda g: neg(g)), domain=(ANY, ANY), precedence=Op.SUM, promotes="number"
)
mul = Op(
    "mul",
    r"{a} \cdot {b}",
    vjp=(lambda g, b: g * b, lambda g, a: g * a),
    domain=(ANY, ANY),
    precedence=Op.PRODUCT,
    promotes="same",
)
div: Op = Op(
    "div",
    r"\frac{a}{b}",
    vjp=(lambda g, b: div(g, b), lambda g, a, b: neg(g * div(div(a, b), b))),
    shown=(lambda g, b: div(g, b), lambda g, a, b: neg(g * div(a, square(b)))),
    domain=(ANY, POSITIVE),
    precedence=Op.PRODUCT,
    promotes="float",
)
neg: Op = Op("neg", "-{a}", vjp=(lambda g: neg(g),), domain=(ANY,), precedence=Op.PREFIX, promotes="number")
# As in PyTorch, a**0 has derivative 0 in a, also at 0, and 0**b has derivative 0 in b. If a factor would be infinite,
# `where` replaces a by 1 *inside* the function. Selecting between results is not enough: the rules of the unselected
# branch run too, and inf * 0 is nan. For a < 0, a**b is real only for integer b, so the gradient of b is nan (log(a)).
pow: Op = Op(
    "pow",
    "{a}^{b}",
    vjp=(
        lambda g, a, b: g * (b * pow(where(b == 0, where(isfinite(div(1.0, a)), a, 1.0), a), b - 1.0)),
        lambda g, y, a, b: g * (y * log(where(a == 0, where(b >= 0, 1.0, maximum(a, b)), a))),
    ),
    shown=(lambda g, a, b: g * (b * pow(a, b - 1.0)), lambda g, y, a: g * (y * log(a))),
    domain=(POSITIVE, ANY),
    precedence=Op.POWER,
    promotes="number",
)
square: Op = Op(
    "square", "{a}^2", vjp=(lambda g, a: g * (2.0 * a),), domain=(ANY,), precedence=Op.POWER, promotes="int"
)
reciprocal = Op(
    "reciprocal",
    r"\frac{1}{a}",
    vjp=(lambda g, y: neg(g * (y * y)),),
    domain=(POSITIVE,),
    precedence=Op.PRODUCT,
    promotes="float",
)
floor_divide: Op = Op(
    "floor_divide",
    r"\operatorname{floor}\left(\frac{a}{b}\right)",
    vjp=(None, None),  # not differentiable, as in PyTorch; in contrast, `floor` has gradient 0
    domain=(ANY, POSITIVE),
    promotes="number",
)
remainder = Op(  # the result has the sign of b, like Python's %
    "remainder",
    r"\operatorname{remainder}\left({a}, {b}\right)",
    vjp=(lambda g: g, lambda g, a, b: neg(g * floor_divide(a, b))),
    domain=(Domain(-5.9, -5.1), Domain(3.0, 5.0)),  # a / b is between -2 and -1, away from discontinuities
    promotes="number",
)

# --- unary functions ---

exp = Op("exp", "e^{a}", vjp=(lambda g, y: g * y,), domain=(ANY,), precedence=Op.POWER, promotes="float")
expm1 = Op("expm1", "e^{a} - 1", vjp=(lambda g, y: g * (y + 1.0),), domain=(ANY,), precedence=Op.SUM, promotes="float")
log: Op = Op("log", r"\ln {a}", vjp=(lambda g, a: div(g, a),), domain=(POSITIVE,), promotes="float")
log1p = Op(
    "log1p",
    r"\ln\left(1 + {a}\right)",
    vjp=(lambda g, a: div(g, 1.0 + a),),
    domain=(Domain(-0.75, 3.0),),
    promotes="float",
)
log2 = Op(
    "log2",
    r"\operatorname{log2} {a}",
    vjp=(lambda g, a: div(g, a * math.log(2.0)),),
    domain=(POSITIVE,),
    promotes="float",
)
sqrt = Op("sqrt", r"\sqrt{a}", vjp=(lambda g, y: div(g, 2.0 * y),), domain=(POSITIVE,), promotes="float")
rsqrt = Op(
    "rsqrt",
    r"\frac{1}{\sqrt{a}}",
    vjp=(lambda g, y: neg(g * (0.5 * (y * y * y))),),
    domain=(POSITIVE,),
    precedence=Op.PRODUCT,
    promotes="float",
)
sin = Op("sin", r"\sin {a}", vjp=(lambda g, a: g * cos(a),), domain=(ANY,), promotes="float")
cos: Op = Op("cos", r"\cos {a}", vjp=(lambda g, a: neg(g * sin(a)),), domain=(ANY,), promotes="float")
tan = Op("tan", r"\tan {a}", vjp=(lambda g, y: g * (1.0 + y * y),), domain=(Domain(-1.2, 1.2),), promotes="float")
asin = Op("asin", r"\arcsin {a}", vjp=(lambda g, a: g * rsqrt(1.0 - a * a),), domain=(UNIT_INTERVAL,), promotes="float")
acos = Op(
    "acos", r"\arccos {a}", vjp=(lambda g, a: neg(g * rsqrt(1.0 - a * a)),), domain=(UNIT_INTERVAL,), promotes="float"
)
atan = Op("atan", r"\arctan {a}", vjp=(lambda g, a: div(g, a * a + 1.0),), domain=(ANY,), promotes="float")
sinh = Op("sinh", r"\sinh {a}", vjp=(lambda g, a: g * cosh(a),), domain=(ANY,), promotes="float")
cosh: Op = Op("cosh", r"\cosh {a}", vjp=(lambda g, a: g * sinh(a),), domain=(ANY,), promotes="float")
tanh = Op("tanh", r"\tanh {a}", vjp=(lambda g, y: g * (1.0 - y * y),), domain=(ANY,), promotes="float")
asinh = Op(
    "asinh", r"\operatorname{arsinh} {a}", vjp=(lambda g, a: g * rsqrt(a * a + 1.0),), domain=(ANY,), promotes="float"
)
acosh = Op(
    "acosh",
    r"\operatorname{arcosh} {a}",
    vjp=(lambda g, a: g * rsqrt(a * a - 1.0),),
    domain=(Domain(1.2, 3.0),),
    promotes="float",
)
atanh = Op(
    "atanh",
    r"\operatorname{artanh} {a}",
    vjp=(lambda g, a: div(g, 1.0 - a * a),),
    domain=(UNIT_INTERVAL,),
    promotes="float",
)
erf = Op(
    "erf",
    r"\operatorname{erf} {a}",
    vjp=(lambda g, a: g * (2.0 / math.sqrt(math.pi) * exp(neg(a * a))),),
    domain=(ANY,),
    promotes="float",
)
atan2 = Op(  # the angle of the point (b, a), from -pi to pi
    "atan2",
    r"\operatorname{atan2}\left({a}, {b}\right)",
    vjp=(lambda g, a, b: g * _angle_derivative(a, b), lambda g, a, b: neg(g * _angle_derivative(b, a))),
    shown=(lambda g, a, b: g * div(b, a * a + b * b), lambda g, a, b: neg(g * div(a, a * a + b * b))),
    domain=(ANY, POSITIVE),
    promotes="float",
)
abs = Op(
    "abs",
    r"\left|{a}\right|",
    vjp=(lambda g, a: where(a == 0, 0.0, g * sign(a)),),
    shown=(lambda g, a: g * sign(a),),
    domain=(KINK_AT_ZERO,),
    promotes="same",
)
sign: Op = Op(
    "sign", r"\operatorname{sign} {a}", vjp=(lambda g: where(False, g, 0.0),), domain=(KINK_AT_ZERO,), promotes="same"
)

# --- piecewise constant functions; the gradient is 0 everywhere, as in PyTorch ---

floor = Op(
    "floor",
    r"\operatorname{floor} {a}",
    vjp=(lambda g: where(False, g, 0.0),),
    domain=(KINKS_AT_INTEGERS,),
    promotes="number",
)
ceil = Op(
    "ceil",
    r"\operatorname{ceil} {a}",
    vjp=(lambda g: where(False, g, 0.0),),
    domain=(KINKS_AT_INTEGERS,),
    promotes="number",
)
round = Op(  # rounds half to even
    "round",
    r"\operatorname{round} {a}",
    vjp=(lambda g: where(False, g, 0.0),),
    domain=(KINKS_AT_HALVES,),
    promotes="number",
)
trunc = Op(
    "trunc",
    r"\operatorname{trunc} {a}",
    vjp=(lambda g: where(False, g, 0.0),),
    domain=(KINKS_AT_INTEGERS,),
    promotes="number",
)

# --- selection; the gradient is divided evenly between ties, as in PyTorch ---

maximum: Op = Op(
    "maximum",
    r"\max\left({a}, {b}\right)",
    vjp=(
        lambda g, a, b: where(a == b, 0.5 * g, where(a < b, 0.0, g)),
        lambda g, a, b: where(a == b, 0.5 * g, where(b < a, 0.0, g)),
    ),
    shown=(lambda g, a, b: where(a > b, g, 0.0), lambda g, a, b: where(b > a, g, 0.0)),
    domain=(ANY, ANY),
    promotes="same",
)
minimum = Op(
    "minimum",
    r"\min\left({a}, {b}\right)",
    vjp=(
        lambda g, a, b: where(a == b, 0.5 * g, where(a > b, 0.0, g)),
        lambda g, a, b: where(a == b, 0.5 * g, where(b > a, 0.0, g)),
    ),
    shown=(lambda g, a, b: where(a < b, g, 0.0), lambda g, a, b: where(b < a, g, 0.0)),
    domain=(ANY, ANY),
    promotes="same",
)
clamp = Op(  # clamps to [min, max]; either bound may be None
    "clamp",
    r"\operatorname{clamp} {a}",
    vjp=(_clamp_rule,),
    attrs={"min": None, "max": None},
    domain=(Domain(-3.0, 3.0, kinks=(-1.0, 1.0)),),  # the tests clamp to [-1, 1]
    promotes="number",
)
lerp = Op(  # interpolates from a (c = 0) to b (c = 1)
    "lerp",
    r"{a} + {c} \cdot \left({b} - {a}\right)",
    vjp=(lambda g, c: g * (1.0 - c), lambda g, c: g * c, lambda g, a, b: g * (b - a)),
    domain=(ANY, ANY, ANY),
    precedence=Op.SUM,
    promotes="float",
)
where: Op = Op(
    "where",
    r"\begin{cases} {b} & {a} \\ {c} & \text{otherwise} \end{cases}",
    vjp=(None, lambda g, a: where(a, g, 0.0), lambda g, a: where(a, 0.0, g)),
    domain=(ANY, ANY, ANY),
    promotes="rest",
)

# --- comparisons, which return bools and are not differentiable ---

lt = Op("lt", "{a} < {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
le = Op("le", r"{a} \le {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
gt = Op("gt", "{a} > {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
ge = Op("ge", r"{a} \ge {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
eq = Op("eq", "{a} = {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
ne = Op("ne", r"{a} \ne {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")

# --- predicates and logic, not differentiable; nonzero values, including nan, are true ---

isnan = Op("isnan", r"\operatorname{isnan} {a}", vjp=(None,), domain=(ANY,), promotes="same")
isinf = Op("isinf", r"\operatorname{isinf} {a}", vjp=(None,), domain=(ANY,), promotes="same")
isfinite: Op = Op("isfinite", r"\operatorname{isfinite} {a}", vjp=(None,), domain=(ANY,), promotes="same")
logical_and = Op(
    "logical_and", r"{a} \land {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same"
)
logical_or = Op(
    "logical_or", r"{a} \lor {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same"
)
logical_xor = Op(
    "logical_xor", r"{a} \oplus {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same"
)
logical_not = Op("logical_not", r"\operatorname{not} {a}", vjp=(None,), domain=(ANY,), promotes="same")

ELEMENTWISE = tuple(globals()[name] for name in __all__)
