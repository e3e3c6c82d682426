"""Elementwise functions: each operation at points of its domain, and the further arguments of the functions."""

import math

import numpy as np

from samples import distinct_floats, sample
from strategies import ATTRS, ELEMENTWISE, points

WRAPPERS = {
    "gelu_tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "prelu": lambda F, x, w: F.prelu(x, w[0, :1]),
    "step": lambda F, x: F.step(x, 0.1),
}

ONLY_MINIGRAD = {"step", "gelu_backward", "gelu_tanh_backward", "relu_backward"}  # PyTorch has no function of this name
NO_INTEGER_DIVISION = dict.fromkeys(("int64", "int32", "uint8", "bool"), "PyTorch refuses integer division only here")
DIFFERS = {"hardtanh": {"uint8": "PyTorch refuses a negative bound for an unsigned dtype"}}


def operands(op):
    """Return an array for each operand of `op`, from its domain; a condition gets bools."""
    columns = np.array(points(op, count=12)).T.reshape(len(op.inputs), 3, 4)
    return [x > 0 if op.name == "where" and k == 0 else x for k, x in enumerate(columns)]


def call(op):
    return WRAPPERS.get(op.name) or (lambda F, *x: getattr(F, op.name)(*x, **ATTRS.get(op.name, {})))


a, b = distinct_floats(3, 4), distinct_floats(4, seed=1)
mask = distinct_floats(3, 4, seed=2) > 0

x = distinct_floats(3, 4)
shares = distinct_floats(3, 4, low=0.1, high=0.9)
y = distinct_floats(3, 4, seed=1)
angles = distinct_floats(3, 4, low=-400.0, high=400.0)
holes = np.where(x > 1.5, 0.0, x)

SAMPLES = [
    sample(
        op.name,
        call(op),
        *operands(op),
        parity=op.name not in ONLY_MINIGRAD,
        differs=DIFFERS.get(op.name, {}),
    )
    for op in ELEMENTWISE
]
SAMPLES += [
    sample("broadcast add", lambda F, x, y: x + y, a, b),
    sample("broadcast mul of a column", lambda F, x, y: x * y, a, distinct_floats(3, 1)),
    sample("broadcast div by a scalar", lambda F, x, y: x / y, a, distinct_floats(low=1.0, high=2.0)),
    sample("add, alpha", lambda F, x, y: F.add(x, y, alpha=2.5), a, b),
    sample("sub, alpha", lambda F, x, y: x.sub(y, alpha=2), a, b),
    sample("addcmul", lambda F, x, y, z: F.addcmul(x, y, z, value=2), a, b, distinct_floats(3, 4, seed=2)),
    sample(
        "addcdiv",
        lambda F, x, y, z: x.addcdiv(y, z, value=-0.5),
        a,
        b,
        distinct_floats(3, 4, low=1.1, high=2.9),
        differs=NO_INTEGER_DIVISION,
    ),
    sample("addcmul_ and addcdiv_", lambda F, x, y: (x * 1).addcmul_(y, y).addcdiv_(y, y * y + 1, value=2), a, b),
    sample("relu, in place", lambda F, x: F.relu(x * 1, inplace=True), a),
    sample("leaky_relu, in place", lambda F, x: F.leaky_relu(x * 1, 0.2, True), a),
    sample("elu, in place", lambda F, x: F.selu(F.elu(x * 1, 0.5, True)), a),
    sample("clamp_min and clamp_max", lambda F, x: (F.clamp_min(x, -1.25), x.clamp_max(1.25)), a),
    sample("nan_to_num", lambda F, x: F.nan_to_num(F.where(abs(x) > 1, x / 0.0, x)), a, kinked=True),
    sample("nan_to_num, replacements", lambda F, x: (x * math.inf * 0).nan_to_num(1.5, 2, -2), a, kinked=True),
    sample("+", lambda F, x: +x, a),
    sample(
        "div, floor", lambda F, x, y: F.div(x, y, rounding_mode="floor"), a, distinct_floats(3, 4, low=1.1, high=2.9)
    ),
    sample(
        "div, trunc", lambda F, x, y: F.div(x, y, rounding_mode="trunc"), a, distinct_floats(3, 4, low=1.1, high=2.9)
    ),
    sample("scalars on the left", lambda F, x: 2.5 / (1.5 - x) + 2.0 * x, distinct_floats(5, low=2.0)),
    sample(
        "powers of a scalar", lambda F, x: 2.0**x, a, differs={"float64": "PyTorch's log of the base is in float32"}
    ),
    sample("powers to a scalar", lambda F, x: x**3, a),
    sample("%", lambda F, x: x % 1.7, a),
    sample("//", lambda F, x: x.detach() // 1.7, a),
    sample("by integers", lambda F, n, m: (n % m, n // m, 7 // m, 7 % m), np.arange(-4, 4), np.array(3)),
    sample("integer powers of integers", lambda F, n, m: n**m, np.arange(-3, 3), np.arange(-2, 4)),
    sample("where with a scalar", lambda F, m, x: F.where(m, x, 0.0), mask, a),
    sample("where of two scalars", lambda F, m: F.where(m, 1.0, 2), mask),
    sample("where of two dtypes", lambda F, m, x, n: F.where(m, x, n), mask, a, np.arange(4)),
    sample("where as a method", lambda F, m, x, y: x.where(m, y), mask, a, b),
    sample("clamp, min only", lambda F, x: x.clamp(min=-0.5), a),
    sample("clamp by floats", lambda F, x: F.clamp(x, -0.5, 1.5), a),
    sample(
        "clamp by tensors", lambda F, x, low, high: F.clamp(x, low, high), a, b, distinct_floats(4, low=2.0, seed=3)
    ),
    sample("clip", lambda F, x: x.clip(max=1), a),
    sample("hardtanh, other bounds", lambda F, x: F.hardtanh(x, -0.5, 2.0), a),
    sample("softplus, beta", lambda F, x: F.softplus(x, beta=2.0), a),
    sample("softplus, threshold", lambda F, x: F.softplus(x, 2.0, 1.0), a),
    sample("logsigmoid", lambda F, x: F.logsigmoid(x), a),
    sample("leaky_relu by position", lambda F, x: F.leaky_relu(x, 0.2), a),
    sample("elu without alpha", lambda F, x: F.elu(x), a),
    sample(
        "prelu, per channel",
        lambda F, x, w: F.prelu(x, w),
        distinct_floats(2, 3, 2),
        distinct_floats(3, low=0.1, high=0.9),
    ),
    sample("isclose", lambda F, x, y: F.isclose(x, y, rtol=0.5), a, b),
    sample("in place", lambda F, x, y: (x * 1.0).add_(y, alpha=2).mul_(y).sub_(1.0).div_(20.0).tanh_(), a, b),
    sample("augmented assignment", lambda F, x, y: in_place(x * 1.0, y), a, b),
    sample("exp2", lambda F, x: F.exp2(x), x),
    sample("log10", lambda F, x: x.log10(), shares),
    sample("logit", lambda F, x: F.logit(x), shares),
    sample("logit, eps", lambda F, x: F.logit(x, eps=0.2), shares, kinked=True),
    sample("logaddexp", lambda F, x, y: F.logaddexp(x, y), x, distinct_floats(4, seed=1)),
    sample("hypot", lambda F, x, y: F.hypot(x, y), x, y),
    sample("round, decimals", lambda F, x: F.round(x, decimals=1), x, kinked=True),
    sample("round, decimals below 0", lambda F, x: x.round(decimals=-2), angles, kinked=True),
    sample("fix", lambda F, x: F.fix(x), x, kinked=True),
    sample("frac", lambda F, x: x.frac(), x),
    sample("deg2rad", lambda F, x: F.deg2rad(x), angles),
    sample("rad2deg", lambda F, x: x.rad2deg(), x),
    sample("heaviside", lambda F, x, y: F.heaviside(x, y).detach(), holes, y),
    sample("logaddexp2", lambda F, x, y: F.logaddexp2(x, y), x, y),
    sample("sinc", lambda F, x: F.sinc(x), x),
    sample("sinc at 0", lambda F, x: F.sinc(x), holes, kinked=True),
    sample("xlogy", lambda F, x, y: F.xlogy(x, y), holes, distinct_floats(3, 4, low=0.1, high=3.0), kinked=True),
    sample("xlogy by a scalar", lambda F, x: x.xlogy(2.5), x),
    sample("xlogy of a scalar", lambda F, x: F.xlogy(2.5, x), distinct_floats(3, 4, low=0.1, high=3.0)),
    sample("clamp_min_", lambda F, x: (x * 1.0).clamp_min_(0.5), x),
    sample("clamp_max_", lambda F, x: (x * 1.0).clamp_max_(0.5), x),
    sample("frac_", lambda F, x: (x * 1.0).frac_(), x),
    sample("round_, decimals", lambda F, x: (x * 1.0).round_(decimals=1), x, kinked=True),
    sample("exp2_", lambda F, x: (x * 1.0).exp2_(), x),
    sample("log10_", lambda F, x: (x * 1.0).log10_(), shares),
    sample("logit_", lambda F, x: (x * 1.0).logit_(0.2), shares, kinked=True),
    sample("hypot_", lambda F, x, y: (x * 1.0).hypot_(y), x, y),
    sample("nan_to_num_", lambda F, x: (x * 1.0).nan_to_num_(), x),
]


def in_place(x, y):
    x += y
    x *= y
    x -= 1.5
    x /= 2.0
    return x
