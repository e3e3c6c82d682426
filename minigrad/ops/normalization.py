"""Normalisation and dropout.

Every norm standardises elements to mean 0 and variance 1, then scales by a weight and shifts by a bias. layer_norm,
batch_norm, instance_norm and group_norm differ only in the elements that share statistics, which `Norm` describes;
rms_norm does not subtract the mean. All norms use the same two gradient operations, for the operand a and for the
weight.

Every norm saves the mean and rstd, the reciprocal of the standard deviation. The gradient rules use them only as cached
results; the rule for a includes the gradients that flow through them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrad.core.op import Op, adjoint_formula
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
    """Parameters of a norm, which determine the elements that are standardised together.

    The operand is reshaped to `shape`. Mean and variance are computed over its dimensions `dim`; weight and bias have
    its dimensions `along`. `eps` is added to the variance. The mean is subtracted only if `centred`.
    """

    shape: Shape
    dim: tuple[int, ...]
    along: tuple[int, ...]
    eps: float
    centred: bool = True


def _standardise(a: Any, norm: Norm) -> tuple[Any, Any]:
    """Reshape `a` to ``norm.shape`` and standardise it over ``norm.dim``. Return the differentiable result and rstd."""
    x = reshape(a, shape=norm.shape)
    x = x - average(x, dim=norm.dim, keepdim=True) if norm.centred else x
    rstd = rsqrt(average(x * x, dim=norm.dim, keepdim=True) + norm.eps)
    return x * rstd, rstd


def _apply_weight(x: Any, weight: Any, norm: Norm) -> Any:
    """Multiply x, reshaped to norm.shape, by the weight."""
    x = reshape(x, shape=norm.shape)
    if weight is None:
        return x
    return x * reshape(weight, shape=_weight_shape(norm))


def _weight_shape(norm: Norm) -> Shape:
    """Return the shape to which a weight is reshaped to broadcast with norm.shape."""
    return tuple(size if k in norm.along else 1 for k, size in enumerate(norm.shape))


def _norm_without_bias(a: Any, w: Any, norm: Norm) -> tuple[Any, ...]:
    """Compute a norm without bias. Return the result, the mean and rstd."""
    x, rstd = _standardise(a, norm)
    mean = average(reshape(a, shape=norm.shape), dim=norm.dim, keepdim=True)
    return reshape(_apply_weight(reshape(x, shape=a.shape), w, norm), shape=a.shape), mean, rstd


def _norm_with_bias(a: Any, w: Any, b: Any, norm: Norm) -> tuple[Any, ...]:
    y, mean, rstd = _norm_without_bias(a, w, norm)
    if b is not None:
        y = reshape(reshape(y, shape=norm.shape) + reshape(b, shape=_weight_shape(norm)), shape=a.shape)
    return y, mean, rstd


def _norm_backward_meaning(u: Any, a: Any, w: Any, norm: Norm) -> Any:
    x, rstd = _standardise(a, norm)
    h = _apply_weight(u, w, norm)
    centred_h = h - average(h, dim=norm.dim, keepdim=True) if norm.centred else h
    return reshape(rstd * (centred_h - x * average(h * x, dim=norm.dim, keepdim=True)), shape=a.shape)


def _sum_to_weight(x: Any, to: Shape, norm: Norm) -> Any:
    """Sum x over all dimensions except norm.along, and reshape it to `to`. This is the adjoint of `_apply_weight`."""
    reduced_dims = tuple(k for k in range(len(norm.shape)) if k not in norm.along)
    total = sum(reshape(x, shape=norm.shape), dim=reduced_dims, keepdim=False)
    return total if total.shape == to else reshape(total, shape=to)


def _declare_norm(
    name: str, formula: str, shown_a: str, inputs: tuple[str, ...] = ("a", "w", "b"), outputs: int = 1
) -> Op:
    """Declare a norm. With three outputs, it also returns mean and variance for running averages, without gradients."""

    def output_grad(g: Any) -> Any:
        return g if outputs == 1 else g[0]

    rules = (
        lambda g, a, w, mean, rstd, norm: norm_backward(output_grad(g), a, w, mean, rstd, norm=norm),
        lambda g, a, mean, rstd, w_shape, norm: norm_weight(output_grad(g), a, mean, rstd, to=w_shape, norm=norm),
        lambda g, b_shape, norm: _sum_to_weight(output_grad(g), b_shape, norm),
    )
    return Op(
        name,
        formula,
        vjp=rules[: len(inputs)],
        shown=(shown_a, r"\sum {g} \cdot \operatorname{norm} {a}", r"\sum {g}")[: len(inputs)],
        inputs=inputs,
        aux=("mean", "rstd"),
        attrs=("norm",),
        outputs=outputs,
        meaning=(_norm_without_bias if "b" not in inputs else _norm_with_bias) if outputs == 1 else None,
    )


_NORM_FORMULA = r"\frac{{a} - \operatorname{E} {a}}{\sqrt{\operatorname{var} {a} + \epsilon}} \cdot {w} + {b}"

# Formulas for the displayed gradient of a, in which norm(a) is the standardised a.
_SHOWN_MEAN_TERM = (
    r"\operatorname{norm} {a} \cdot \operatorname{E}\left({g} \cdot {w} \cdot \operatorname{norm} {a}\right)\right)"
)
_SHOWN_CENTRED = r"{rstd} \cdot \left({g} \cdot {w} - \operatorname{E}\left({g} \cdot {w}\right) - " + _SHOWN_MEAN_TERM
_SHOWN_UNCENTRED = r"{rstd} \cdot \left({g} \cdot {w} - " + _SHOWN_MEAN_TERM

layer_norm = _declare_norm("layer_norm", _NORM_FORMULA, _SHOWN_CENTRED)
group_norm = _declare_norm("group_norm", _NORM_FORMULA, _SHOWN_CENTRED)
batch_norm = _declare_norm("batch_norm", _NORM_FORMULA, _SHOWN_CENTRED, outputs=3)
instance_norm = _declare_norm("instance_norm", _NORM_FORMULA, _SHOWN_CENTRED, outputs=3)
rms_norm = _declare_norm(
    "rms_norm", r"\frac{a}{\sqrt{\operatorname{E} {a}^2 + \epsilon}} \cdot {w}", _SHOWN_UNCENTRED, ("a", "w")
)


def _norm_backward_rule(g: Any, u: Any, a: Any, w: Any, mean: Any, rstd: Any, norm: Norm) -> Any:
    """VJP of `norm_backward` for a. Gradients flow through x, by the VJP of a norm, and through rstd."""
    x, scale = _standardise(a, norm)
    v, h = reshape(g, shape=norm.shape), _apply_weight(u, w, norm)

    def mean_product(p: Any, q: Any) -> Any:
        return average(p * q, dim=norm.dim, keepdim=True)

    grad_x = neg(scale * (v * mean_product(h, x) + h * mean_product(v, x)))
    y = reshape(norm_backward(u, a, w, mean, rstd, norm=norm), shape=norm.shape)
    grad_rstd = reshape(scale * x * mean_product(v, y), shape=a.shape)
    return norm_backward(reshape(grad_x, shape=a.shape), a, None, mean, rstd, norm=norm) - grad_rstd


# The VJP of a norm for a, from the upstream gradient u. If x is the standardised a and h = u w, the VJP is
# rstd (h - E h - x E[h x]), without E h if not centred. It combines the gradients of Ioffe and Szegedy 2015, section 3,
# and is self-adjoint in h.
norm_backward: Op = Op(
    "norm_backward",
    r"\operatorname{normBackward}\left({u}, {a}, {w}\right)",
    vjp=(
        lambda g, a, w, mean, rstd, norm: reshape(
            _apply_weight(norm_backward(g, a, None, mean, rstd, norm=norm), w, norm), shape=a.shape
        ),
        _norm_backward_rule,
        lambda g, u, a, mean, rstd, w_shape, norm: _sum_to_weight(
            u * norm_backward(g, a, None, mean, rstd, norm=norm), w_shape, norm
        ),
        None,
        None,
    ),
    shown=(
        adjoint_formula("u"),
        adjoint_formula("a"),
        adjoint_formula("w"),
        None,
        None,
    ),
    inputs=("u", "a", "w", "mean", "rstd"),
    attrs=("norm",),
    meaning=_norm_backward_meaning,
)

# The VJP of a norm for the weight, which is the sum of u x, with the shape `to`.
norm_weight: Op = Op(
    "norm_weight",
    r"\operatorname{normWeight}\left({u}, {a}\right)",
    vjp=(
        lambda g, a, norm: reshape(_apply_weight(_standardise(a, norm)[0], g, norm), shape=a.shape),
        lambda g, u, a, mean, rstd, norm: norm_backward(u, a, g, mean, rstd, norm=norm),
        None,
        None,
    ),
    shown=(
        adjoint_formula("u"),
        adjoint_formula("a"),
        None,
        None,
    ),
    inputs=("u", "a", "mean", "rstd"),
    attrs=("to", "norm"),
    meaning=lambda u, a, to, norm: _sum_to_weight(reshape(u, shape=norm.shape) * _standardise(a, norm)[0], to, norm),
)

# Elements are 0 with probability p, else a / (1 - p) (Srivastava et al. 2014). The rule recomputes the mask from the
# key, so that no mask is saved.
dropout: Op = Op(
    "dropout",
    r"\operatorname{dropout} {a}",
    vjp=(lambda g, p, key: dropout(g, p=p, key=key),),
    shown=(r"\operatorname{dropout} {g}",),
    attrs=("p", "key"),
)
