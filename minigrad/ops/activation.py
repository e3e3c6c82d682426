"""Elementwise activation functions. Gradient rules follow the conventions of `elementwise`."""

import math
from typing import Any

from minigrad.core.op import ANY, Domain, Op
from minigrad.ops.elementwise import KINK_AT_ZERO, abs, div, erf, exp, neg, square, tanh, where

__all__ = [
    "elu",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "hardtanh",
    "leaky_relu",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_backward",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "step",
]

gelu_backward: Op  # rules may refer to operations declared later

sigmoid = Op("sigmoid", r"\sigma {a}", vjp=(lambda g, y: g * (y * (1.0 - y)),), domain=(ANY,), promotes="float")
softplus = Op(
    "softplus", r"\ln\left(1 + e^{a}\right)", vjp=(lambda g, a: g * sigmoid(a),), domain=(ANY,), promotes="float"
)
silu = Op(
    "silu",
    r"{a} \cdot \sigma {a}",
    vjp=(lambda g, a: g * (sigmoid(a) * (1.0 + a * (1.0 - sigmoid(a)))),),
    domain=(ANY,),
    precedence=Op.PRODUCT,
    promotes="float",
)
mish = Op(
    "mish",
    r"{a} \cdot \tanh \ln\left(1 + e^{a}\right)",
    vjp=(lambda g, a: g * (tanh(softplus(a)) + a * (sigmoid(a) * (1.0 - square(tanh(softplus(a)))))),),
    domain=(ANY,),
    precedence=Op.PRODUCT,
    promotes="float",
)
GELU_ROOT, GELU_CUBIC = math.sqrt(2.0 / math.pi), 0.044715  # Hendrycks and Gimpel 2016


def _normal_density(a: Any) -> Any:
    return 1.0 / math.sqrt(2.0 * math.pi) * exp(neg(0.5 * (a * a)))


def _tanh_of_cubic(a: Any) -> Any:
    return tanh(GELU_ROOT * (a + GELU_CUBIC * (a * (a * a))))


def _gelu_shown_rule(g: Any, a: Any) -> Any:
    return g * (0.5 * (1.0 + erf(a * math.sqrt(0.5))) + a * _normal_density(a))


def _gelu_tanh_shown_rule(g: Any, a: Any) -> Any:
    return g * (0.5 * (1.0 + _tanh_of_cubic(a)) + 0.5 * a * ((1.0 - square(_tanh_of_cubic(a))) * _cubic_derivative(a)))


def _cubic_derivative(a: Any) -> Any:
    """Return the derivative of the argument of tanh in `_tanh_of_cubic`."""
    return GELU_ROOT * (1.0 + 3.0 * GELU_CUBIC * (a * a))


def _curvature_factor(b: Any) -> Any:
    return _cubic_derivative(b) + b * (
        3.0 * GELU_CUBIC * GELU_ROOT * b - _tanh_of_cubic(b) * square(_cubic_derivative(b))
    )


def _gelu_tanh_backward_rule(g: Any, a: Any, b: Any) -> Any:
    # Computing 1 - tanh² would lose precision where tanh² is almost 1.
    doubled_argument = 2.0 * GELU_ROOT * (b + GELU_CUBIC * (b * (b * b)))
    return g * a * (4.0 * (sigmoid(doubled_argument) * sigmoid(-doubled_argument)) * _curvature_factor(b))


def _gelu_tanh_backward_shown_rule(g: Any, a: Any, b: Any) -> Any:
    return g * a * ((1.0 - square(_tanh_of_cubic(b))) * _curvature_factor(b))


gelu = Op(  # a Φ(a), where Φ is the standard normal distribution function; the derivative is Φ(a) + a Φ'(a)
    "gelu",
    r"\frac{a}{2} \cdot \left(1 + \operatorname{erf} \frac{a}{\sqrt{2}}\right)",
    vjp=(lambda g, a: gelu_backward(g, a),),
    shown=(_gelu_shown_rule,),
    domain=(Domain(-1.0, 3.0),),  # below -1, 1 + erf loses precision, as in PyTorch
    precedence=Op.PRODUCT,
    promotes="float",
)
gelu_tanh = Op(  # PyTorch's gelu(approximate="tanh")
    "gelu_tanh",
    r"\frac{a}{2} \cdot \left(1 + "
    r"\tanh\left(\sqrt{\frac{2}{\pi}} \cdot \left({a} + 0.044715 \cdot {a}^3\right)\right)\right)",
    vjp=(lambda g, a: gelu_tanh_backward(g, a),),
    shown=(_gelu_tanh_shown_rule,),
    domain=(Domain(-1.0, 3.0),),
    precedence=Op.PRODUCT,
    promotes="float",
)
gelu_backward = Op(  # the VJP of gelu: a is the upstream gradient, b the operand
    "gelu_backward",
    r"{a} \cdot \left(\frac{1}{2} \cdot \left(1 + \operatorname{erf} \frac{b}{\sqrt{2}}\right)"
    r" + {b} \cdot \frac{e^{-{b}^2 / 2}}{\sqrt{2 \cdot \pi}}\right)",
    vjp=(lambda g, b: gelu_backward(g, b), lambda g, a, b: g * (a * (_normal_density(b) * (2.0 - b * b)))),
    shown=(lambda g, b: _gelu_shown_rule(g, b), lambda g, a, b: g * (a * (_normal_density(b) * (2.0 - b * b)))),
    domain=(ANY, Domain(-1.0, 3.0)),
    precedence=Op.PRODUCT,
    promotes="float",
)
gelu_tanh_backward: Op = Op(
    "gelu_tanh_backward",
    r"{a} \cdot \left(\frac{1}{2} \cdot \left(1 + "
    r"\tanh\left(\sqrt{\frac{2}{\pi}} \cdot \left({b} + 0.044715 \cdot {b}^3\right)\right)\right) + \frac{b}{2} \cdot "
    r"\left(1 - \tanh^2\left(\sqrt{\frac{2}{\pi}} \cdot \left({b} + 0.044715 \cdot {b}^3\right)\right)\right) \cdot "
    r"\sqrt{\frac{2}{\pi}} \cdot \left(1 + 0.134145 \cdot {b}^2\right)\right)",
    vjp=(lambda g, b: gelu_tanh_backward(g, b), _gelu_tanh_backward_rule),
    shown=(lambda g, b: _gelu_tanh_shown_rule(g, b), _gelu_tanh_backward_shown_rule),
    domain=(ANY, Domain(-1.0, 3.0)),
    precedence=Op.PRODUCT,
    promotes="float",
)
softsign = Op(
    "softsign",
    r"\frac{a}{1 + \left|{a}\right|}",
    vjp=(lambda g, a: div(g, square(1.0 + abs(a))),),
    domain=(KINK_AT_ZERO,),  # the second derivative is discontinuous at 0
    precedence=Op.PRODUCT,
    promotes="float",
)

# --- activations with kinks, where the subgradients are those of PyTorch ---

relu = Op(
    "relu",
    r"\operatorname{relu} {a}",
    vjp=(lambda g, y: relu_backward(g, y),),
    shown=(lambda g, y: where(y <= 0, 0.0, g),),
    domain=(KINK_AT_ZERO,),
    promotes="number",
)
relu_backward: Op = Op(  # the VJP of relu: a is the upstream gradient, b the saved output
    "relu_backward",
    r"\begin{cases} 0 & {b} \le 0 \\ {a} & \text{otherwise} \end{cases}",
    vjp=(lambda g, b: relu_backward(g, b), lambda g: g * 0.0),
    shown=(lambda g, b: where(b <= 0, 0.0, g), lambda g: g * 0.0),
    domain=(ANY, KINK_AT_ZERO),
    promotes="same",
)
relu6 = Op(
    "relu6",
    r"\operatorname{relu6} {a}",
    vjp=(lambda g, y: where(y <= 0, 0.0, where(y >= 6, 0.0, g)),),
    domain=(Domain(-2.0, 8.0, kinks=(0.0, 6.0)),),
    promotes="number",
)
hardtanh = Op(
    "hardtanh",
    r"\operatorname{hardtanh} {a}",
    vjp=(lambda g, y, min_val, max_val: where(y <= min_val, 0.0, where(y >= max_val, 0.0, g)),),
    attrs={"min_val": -1.0, "max_val": 1.0},
    domain=(Domain(-3.0, 3.0, kinks=(-1.0, 1.0)),),
    promotes="number",
)
leaky_relu = Op(
    "leaky_relu",
    r"\operatorname{leakyrelu} {a}",
    vjp=(lambda g, a, negative_slope: where(a > 0, g, g * negative_slope),),
    attrs={"negative_slope": 0.01},
    domain=(KINK_AT_ZERO,),
    promotes="float",
)
prelu = Op(  # leaky_relu with a learned slope
    "prelu",
    r"\operatorname{prelu}\left({a}, {b}\right)",
    vjp=(lambda g, a, b: where(a > 0, g, g * b), lambda g, a: where(a > 0, 0.0, g * a)),
    domain=(KINK_AT_ZERO, ANY),
    promotes="float",
)
step = Op(  # the derivative of leaky_relu, which is 1 for a > 0 and alpha elsewhere
    "step",
    r"\operatorname{step} {a}",
    vjp=(lambda g: where(False, g, 0.0),),
    attrs={"alpha": 0.0},
    domain=(KINK_AT_ZERO,),
    promotes="float",
)
elu = Op(  # equals alpha * (exp(a) - 1) below 0
    "elu",
    r"\operatorname{elu} {a}",
    vjp=(
        lambda g, a, alpha: where(a <= 0, g * (alpha * exp(where(a < 0, a, 0.0))), g),
    ),  # y + alpha would lose precision; the second derivative at 0 is 0
    shown=(lambda g, a, alpha: where(a <= 0, g * (alpha * exp(a)), g),),
    attrs={"alpha": 1.0},
    domain=(KINK_AT_ZERO,),
    promotes="float",
)
# Klambauer et al. 2017, appendix A.
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
selu = Op(  # equals SCALE * ALPHA * (exp(a) - 1) below 0
    "selu",
    r"\operatorname{selu} {a}",
    vjp=(lambda g, a: g * where(a <= 0, SELU_SCALE * SELU_ALPHA * exp(where(a < 0, a, 0.0)), SELU_SCALE),),
    shown=(lambda g, a: g * where(a <= 0, SELU_SCALE * SELU_ALPHA * exp(a), SELU_SCALE),),
    domain=(KINK_AT_ZERO,),
    promotes="float",
)

ACTIVATIONS = tuple(globals()[name] for name in __all__)
