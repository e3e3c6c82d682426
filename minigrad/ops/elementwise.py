"""Operations that act on each number alone. A rule says, given g, the output's gradient: what does the operand get?

They serve floats, Values and formulas alike, so a rule may use only operators and other operations. Division is
written `div`, never ``1 / x`` on a float, and a choice is `where`, never a product with 0 or 1: floats are IEEE floats
here, and inf * 0 is nan.
"""

from minigrad.op import ANY, POSITIVE, Domain, Op

__all__ = [
    "abs",
    "add",
    "cos",
    "div",
    "eq",
    "exp",
    "ge",
    "gt",
    "le",
    "log",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "relu",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "sub",
    "tanh",
    "where",
]

abs: Op  # rules may name operations that are declared further down
cos: Op
div: Op
log: Op
neg: Op
pow: Op
sign: Op
where: Op

KINKED = Domain(-3.0, 3.0, kinks=(0.0,))

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
div = Op(
    "div",
    r"\frac{a}{b}",
    vjp=(lambda g, b: div(g, b), lambda g, y, b: neg(g * div(y, b))),
    domain=(ANY, POSITIVE),
    precedence=Op.PRODUCT,
    promotes="float",
)
neg = Op("neg", "-{a}", vjp=(lambda g: neg(g),), domain=(ANY,), precedence=Op.PREFIX, promotes="number")
# As in PyTorch: a**0 has slope 0 in a, also at 0, and 0**b does not change with b. Where a factor would be infinite,
# `where` puts 1 in place of a *inside* the function. To choose among results would not do: the rules of the branch not
# taken run too, and inf * 0 is nan. For a < 0, a**b is real at whole b only: the gradient of b is nan, from log(a).
pow = Op(
    "pow",
    "{a}^{b}",
    vjp=(
        lambda g, a, b: g * (b * pow(where(b == 0, where(abs(a) > 0, a, 1.0), a), b - 1.0)),
        lambda g, y, a, b: g * (y * log(where(a == 0, where(b >= 0, 1.0, a), a))),
    ),
    shown=(lambda g, a, b: g * (b * pow(a, b - 1.0)), lambda g, y, a: g * (y * log(a))),
    domain=(POSITIVE, ANY),
    precedence=Op.POWER,
    promotes="same",
)

# --- functions of one number ---

exp = Op("exp", "e^{a}", vjp=(lambda g, y: g * y,), domain=(ANY,), precedence=Op.POWER, promotes="float")
log = Op("log", r"\ln {a}", vjp=(lambda g, a: div(g, a),), domain=(POSITIVE,), promotes="float")
sqrt = Op("sqrt", r"\sqrt{a}", vjp=(lambda g, y: div(g, 2.0 * y),), domain=(POSITIVE,), promotes="float")
sin = Op("sin", r"\sin {a}", vjp=(lambda g, a: g * cos(a),), domain=(ANY,), promotes="float")
cos = Op("cos", r"\cos {a}", vjp=(lambda g, a: neg(g * sin(a)),), domain=(ANY,), promotes="float")
tanh = Op("tanh", r"\tanh {a}", vjp=(lambda g, y: g * (1.0 - y * y),), domain=(ANY,), promotes="float")
sigmoid = Op("sigmoid", r"\sigma {a}", vjp=(lambda g, y: g * (y * (1.0 - y)),), domain=(ANY,), promotes="float")
relu = Op(
    "relu", r"\operatorname{relu} {a}", vjp=(lambda g, y: where(y <= 0, 0.0, g),), domain=(KINKED,), promotes="same"
)
abs = Op(
    "abs",
    r"\left|{a}\right|",
    vjp=(lambda g, a: where(a == 0, 0.0, g * sign(a)),),
    shown=(lambda g, a: g * sign(a),),
    domain=(KINKED,),
    promotes="same",
)
sign = Op("sign", r"\operatorname{sign} {a}", vjp=(lambda g: where(False, g, 0.0),), domain=(KINKED,), promotes="same")

# --- choices: where two operands tie, the gradient is shared evenly, as in PyTorch ---

maximum = Op(
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
where = Op(
    "where",
    r"\begin{cases} {b} & {a} \\ {c} & \text{otherwise} \end{cases}",
    vjp=(None, lambda g, a: where(a, g, 0.0), lambda g, a: where(a, 0.0, g)),
    domain=(ANY, ANY, ANY),
)

# --- comparisons: True or False, and no gradient ---

lt = Op("lt", "{a} < {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
le = Op("le", r"{a} \le {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
gt = Op("gt", "{a} > {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
ge = Op("ge", r"{a} \ge {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
eq = Op("eq", "{a} = {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")
ne = Op("ne", r"{a} \ne {b}", vjp=(None, None), domain=(ANY, ANY), precedence=Op.COMPARISON, promotes="same")

ELEMENTWISE = tuple(globals()[name] for name in __all__)
