"""Normalisation and dropout.

Every norm standardises elements to mean 0 and variance 1, then scales by a weight and shifts by a bias. layer_norm,
batch_norm, instance_norm and group_norm differ only in which elements share statistics, given by `Norm`; rms_norm does
not subtract the mean. All share two gradient operations, for a and for the weight.

Every norm saves the mean and rstd, 1 over the standard deviation. In the gradient rules these are only cached results:
the rule of a includes the gradients that flow through them.
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
    """Parameters of a norm: which elements are standardised together, and how.

    The operand is reshaped to `shape`. Mean and variance are taken over its dimensions `dim`; weight and bias extend
    along its dimensions `along`. `eps` is added to the variance. The mean is subtracted only if `centred`.
    """

    shape: Shape
    dim: tuple[int, ...]
    along: tuple[int, ...]
    eps: float
    centred: bool = True


def _standardised(a: Any, norm: Norm) -> tuple[Any, Any]:
    """Return a, standardised in norm.shape, and its rstd, both differentiable with respect to a."""
    x = reshape(a, shape=norm.shape)
    x = x - average(x, dim=norm.dim, keepdim=True) if norm.centred else x
    rstd = rsqrt(average(x * x, dim=norm.dim, keepdim=True) + norm.eps)
    return x * rstd, rstd


def _weighted(x: Any, weight: Any, norm: Norm) -> Any:
    """Multiply x, reshaped to norm.shape, by the weight."""
    x = reshape(x, shape=norm.shape)
    if weight is None:
        return x
    return x * reshape(weight, shape=_along(norm))


def _along(norm: Norm) -> Shape:
    """Return the shape in which a weight broadcasts with norm.shape."""
    return tuple(size if k in norm.along else 1 for k, size in enumerate(norm.shape))


def _scaled(a: Any, w: Any, norm: Norm) -> tuple[Any, ...]:
    """Compute a norm without bias; return it with its mean and rstd."""
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
    """Sum x over all dimensions but norm.along, to the shape of the weight: the adjoint of `_weighted`."""
    rest = tuple(k for k in range(len(norm.shape)) if k not in norm.along)
    return reshape(sum(reshape(x, shape=norm.shape), dim=rest, keepdim=False), shape=to)


def _norm(name: str, formula: str, by_a: str, inputs: tuple[str, ...] = ("a", "w", "b"), outputs: int = 1) -> Op:
    """Declare a norm. With three outputs it also returns mean and variance without gradients, for running averages."""

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

# The displayed gradient of a, with norm(a) the standardised a.
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
    """VJP of `norm_backward` for a: through x, by the VJP of a norm again, and through rstd."""
    x, scale = _standardised(a, norm)
    v, h = reshape(g, shape=norm.shape), _weighted(u, w, norm)

    def mean_product(p: Any, q: Any) -> Any:
        return average(p * q, dim=norm.dim, keepdim=True)

    by_x = neg(scale * (v * mean_product(h, x) + h * mean_product(v, x)))
    y = reshape(norm_backward(u, a, w, mean, rstd, norm=norm), shape=norm.shape)
    by_rstd = reshape(scale * x * mean_product(v, y), shape=a.shape)
    return norm_backward(reshape(by_x, shape=a.shape), a, None, mean, rstd, norm=norm) - by_rstd


# The VJP of a norm for a, from the upstream gradient u. With x the standardised a and h = u w, it is
# rstd (h - E h - x E[h x]), without E h if not centred (combines the gradients of Ioffe and Szegedy 2015, section 3).
# It is self-adjoint in h.
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

# The VJP of a norm for the weight, of shape `to`: the sum of u x.
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

# 0 with probability p, else a / (1 - p). The mask is a function of the key, so the rule recomputes it and no mask is
# saved (Srivastava et al. 2014).
dropout: Op = Op(
    "dropout",
    r"\operatorname{dropout} {a}",
    vjp=(lambda g, p, key: dropout(g, p=p, key=key),),
    shown=(r"\operatorname{dropout} {g}",),
    attrs=("p", "key"),
)
