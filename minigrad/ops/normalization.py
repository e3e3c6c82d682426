"""Normalisation and dropout.

One idea carries every norm: numbers are brought to mean 0 and variance 1, then scaled by a weight and shifted by a
bias. Which of them together, `Norm` says; that alone tells layer_norm, batch_norm, instance_norm and group_norm apart,
and rms_norm, which leaves the mean in. The two operations of their gradients, by a and by the weight, serve all.

Every norm keeps the mean, and rstd, 1 over the standard deviation. For the rules of the gradients they are not operands
but results, spared a second computation: what goes through them is part of the rule of a.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrad.core.op import Op, adjoint
from minigrad.core.shapes import Shape
from minigrad.ops.elementwise import neg, rsqrt
from minigrad.ops.reduce import mean as average
from minigrad.ops.reduce import sum
from minigrad.ops.shape import reshape

__all__ = [
    "Norm",
    "batch_norm",
    "dropout",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "norm_backward",
    "norm_weight",
    "rms_norm",
]


class Norm(NamedTuple):
    """Which numbers are standardised together, and how.

    The operand is seen in `shape`; mean and variance are taken over its dimensions `dim`, and weight and bias run along
    its dimensions `along`. `eps` is added to the variance. Without `centred` the mean is not subtracted.
    """

    shape: Shape
    dim: tuple[int, ...]
    along: tuple[int, ...]
    eps: float
    centred: bool = True


def _standardised(a: Any, norm: Norm) -> tuple[Any, Any]:
    """a, in norm.shape, standardised, and its rstd: for rules, as functions of a."""
    x = reshape(a, shape=norm.shape)
    x = x - average(x, dim=norm.dim, keepdim=True) if norm.centred else x
    rstd = rsqrt(average(x * x, dim=norm.dim, keepdim=True) + norm.eps)
    return x * rstd, rstd


def _weighted(x: Any, weight: Any, norm: Norm) -> Any:
    """x, in norm.shape, times the weight."""
    x = reshape(x, shape=norm.shape)
    if weight is None:
        return x
    return x * reshape(weight, shape=_along(norm))


def _along(norm: Norm) -> Shape:
    """The shape of a weight beside norm.shape."""
    return tuple(size if k in norm.along else 1 for k, size in enumerate(norm.shape))


def _scaled(a: Any, w: Any, norm: Norm) -> tuple[Any, ...]:
    """A norm without a bias, with its mean and rstd."""
    x, rstd = _standardised(a, norm)
    mean = average(reshape(a, shape=norm.shape), dim=norm.dim, keepdim=True)
    return reshape(_weighted(reshape(x, shape=a.shape), w, norm), shape=a.shape), mean, rstd


def _scaled_and_moved(a: Any, w: Any, b: Any, norm: Norm) -> tuple[Any, ...]:
    y, mean, rstd = _scaled(a, w, norm)
    if b is not None:
        y = reshape(reshape(y, shape=norm.shape) + reshape(b, shape=_along(norm)), shape=a.shape)
    return y, mean, rstd


def _turned(u: Any, a: Any, w: Any, norm: Norm) -> Any:
    x, rstd = _standardised(a, norm)
    h = _weighted(u, w, norm)
    rest = h - average(h, dim=norm.dim, keepdim=True) if norm.centred else h
    return reshape(rstd * (rest - x * average(h * x, dim=norm.dim, keepdim=True)), shape=a.shape)


def _gathered(x: Any, to: Shape, norm: Norm) -> Any:
    """x, summed to what runs along norm.along, in the shape of the weight: `_weighted` undone."""
    rest = tuple(k for k in range(len(norm.shape)) if k not in norm.along)
    return reshape(sum(reshape(x, shape=norm.shape), dim=rest, keepdim=False), shape=to)


def _norm(name: str, formula: str, by_a: str, inputs: tuple[str, ...] = ("a", "w", "b"), outputs: int = 1) -> Op:
    """Declare a norm. If it has three outputs, mean and variance are the others, for running averages: no gradient."""

    def first(g: Any) -> Any:
        return g if outputs == 1 else g[0]

    rules = (
        lambda g, a, w, mean, rstd, norm: norm_backward(first(g), a, w, mean, rstd, norm=norm),
        lambda g, a, mean, rstd, w_shape, norm: norm_weight(first(g), a, mean, rstd, to=w_shape, norm=norm),
        lambda g, b_shape, norm: _gathered(first(g), b_shape, norm),
    )
    return Op(
        name,
        formula,
        vjp=rules[: len(inputs)],
        shown=(by_a, r"\sum {g} \cdot \operatorname{norm} {a}", r"\sum {g}")[: len(inputs)],
        inputs=inputs,
        aux=("mean", "rstd"),
        attrs=("norm",),
        outputs=outputs,
        meaning=(_scaled if "b" not in inputs else _scaled_and_moved) if outputs == 1 else None,
    )


_STANDARD = r"\frac{{a} - \operatorname{E} {a}}{\sqrt{\operatorname{var} {a} + \epsilon}} \cdot {w} + {b}"

# What a gets, as it is shown: norm(a) is the standardised a.
_TURNED = (
    r"\operatorname{norm} {a} \cdot \operatorname{E}\left({g} \cdot {w} \cdot \operatorname{norm} {a}\right)\right)"
)
_CENTRED = r"{rstd} \cdot \left({g} \cdot {w} - \operatorname{E}\left({g} \cdot {w}\right) - " + _TURNED
_SCALED = r"{rstd} \cdot \left({g} \cdot {w} - " + _TURNED

layer_norm = _norm("layer_norm", _STANDARD, _CENTRED)
group_norm = _norm("group_norm", _STANDARD, _CENTRED)
batch_norm = _norm("batch_norm", _STANDARD, _CENTRED, outputs=3)
instance_norm = _norm("instance_norm", _STANDARD, _CENTRED, outputs=3)
rms_norm = _norm("rms_norm", r"\frac{a}{\sqrt{\operatorname{E} {a}^2 + \epsilon}} \cdot {w}", _SCALED, ("a", "w"))


def _curvature_rule(g: Any, u: Any, a: Any, w: Any, mean: Any, rstd: Any, norm: Norm) -> Any:
    """What a gets from `norm_backward`: by way of x, whose rule is a norm's again, and by way of rstd."""
    x, scale = _standardised(a, norm)
    v, h = reshape(g, shape=norm.shape), _weighted(u, w, norm)

    def mean_product(p: Any, q: Any) -> Any:
        return average(p * q, dim=norm.dim, keepdim=True)

    by_x = neg(scale * (v * mean_product(h, x) + h * mean_product(v, x)))
    y = reshape(norm_backward(u, a, w, mean, rstd, norm=norm), shape=norm.shape)
    by_rstd = reshape(scale * x * mean_product(v, y), shape=a.shape)
    return norm_backward(reshape(by_x, shape=a.shape), a, None, mean, rstd, norm=norm) - by_rstd


# What a gets from u, the gradient of a norm. With x the standardised a, and h = u w, it is
# rstd (h - E h - x E[h x]), without E h if the mean is left in: Ioffe and Szegedy 2015, section 3, put together.
# As a map of h it is its own transpose.
norm_backward: Op = Op(
    "norm_backward",
    r"\operatorname{normBackward}\left({u}, {a}, {w}\right)",
    vjp=(
        lambda g, a, w, mean, rstd, norm: reshape(
            _weighted(norm_backward(g, a, None, mean, rstd, norm=norm), w, norm), shape=a.shape
        ),
        _curvature_rule,
        lambda g, u, a, mean, rstd, w_shape, norm: _gathered(
            u * norm_backward(g, a, None, mean, rstd, norm=norm), w_shape, norm
        ),
        None,
        None,
    ),
    shown=(
        adjoint("u"),
        adjoint("a"),
        adjoint("w"),
        None,
        None,
    ),
    inputs=("u", "a", "w", "mean", "rstd"),
    attrs=("norm",),
    meaning=_turned,
)

# What the weight gets, in its shape, `to`: the sum of u x.
norm_weight: Op = Op(
    "norm_weight",
    r"\operatorname{normWeight}\left({u}, {a}\right)",
    vjp=(
        lambda g, a, norm: reshape(_weighted(_standardised(a, norm)[0], g, norm), shape=a.shape),
        lambda g, u, a, mean, rstd, norm: norm_backward(u, a, g, mean, rstd, norm=norm),
        None,
        None,
    ),
    shown=(
        adjoint("u"),
        adjoint("a"),
        None,
        None,
    ),
    inputs=("u", "a", "mean", "rstd"),
    attrs=("to", "norm"),
    meaning=lambda u, a, to, norm: _gathered(reshape(u, shape=norm.shape) * _standardised(a, norm)[0], to, norm),
)

# 0 with probability p, else a / (1 - p). Which are 0 follows from the key alone: the same in the rule, where nothing
# needs to be kept for it (Srivastava et al. 2014).
dropout: Op = Op(
    "dropout",
    r"\operatorname{dropout} {a}",
    vjp=(lambda g, p, key: dropout(g, p=p, key=key),),
    shown=(r"\operatorname{dropout} {g}",),
    attrs=("p", "key"),
)
