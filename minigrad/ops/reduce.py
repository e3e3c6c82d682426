"""Reductions and cumulative operations. `dim` contains non-negative dimensions in ascending order.

Gradient rules use `spread` to expand a reduced tensor to the operand's shape.
"""

from __future__ import annotations

from math import prod as product
from typing import Any

from minigrad.core.op import Op, adjoint_formula
from minigrad.core.shapes import Shape, reduced_shape
from minigrad.ops.elementwise import abs, div, eq, exp, log, pow, sign, sqrt, where
from minigrad.ops.shape import expand, reshape

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "pick_along",
    "prod",
    "put_along",
    "recur",
    "shift",
    "spread",
    "std",
    "sum",
    "var",
]


_REDUCTION_ATTRS = ("dim", "keepdim")


def spread(x: Any, shape: Shape, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Expand `x`, the result of a reduction over `dim`, to the unreduced `shape`."""
    return expand(x if keepdim else reshape(x, shape=reduced_shape(shape, dim, True)), shape=shape)


def _count(shape: Shape, dim: tuple[int, ...]) -> int:
    return product(shape[k] for k in dim)


# --- sums ---

sum: Op = Op(
    "sum",
    r"\sum {a}",
    vjp=(lambda g, a_shape, dim, keepdim: spread(g, a_shape, dim, keepdim),),
    shown=(r"\operatorname{expand} {g}",),
    attrs=_REDUCTION_ATTRS,
)
mean: Op = Op(
    "mean",
    r"\operatorname{mean} {a}",
    vjp=(lambda g, a_shape, dim, keepdim: spread(div(g, float(_count(a_shape, dim))), a_shape, dim, keepdim),),
    shown=(r"\frac{\operatorname{expand} {g}}{\text{count}}",),
    attrs=_REDUCTION_ATTRS,
    promotes="float",
    meaning=lambda a, a_shape, dim, keepdim: div(sum(a, dim=dim, keepdim=keepdim), float(_count(a_shape, dim))),
)


def _deviation(a: Any, dim: tuple[int, ...]) -> Any:
    return a - mean(a, dim=dim, keepdim=True)


def _degrees_of_freedom(shape: Shape, dim: tuple[int, ...], correction: float) -> float:
    dof = _count(shape, dim) - correction
    return float(dof if dof > 0 else 0)


def _var_rule(g: Any, a: Any, a_shape: Shape, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    scaled_grad = div(2.0 * g, _degrees_of_freedom(a_shape, dim, correction))
    return spread(scaled_grad, a_shape, dim, keepdim) * _deviation(a, dim)


def _std_rule(g: Any, y: Any, a: Any, a_shape: Shape, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """The gradient is 0 where all elements are equal, as in PyTorch. The second derivative there is nan."""
    reciprocal = where(y == 0, 0.0, div(1.0, y))
    scaled_grad = div(g, _degrees_of_freedom(a_shape, dim, correction))
    return spread(reciprocal, a_shape, dim, keepdim) * _deviation(a, dim) * spread(scaled_grad, a_shape, dim, keepdim)


def _var_meaning(a: Any, a_shape: Shape, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    deviation = _deviation(a, dim)
    return div(sum(deviation * deviation, dim=dim, keepdim=keepdim), _degrees_of_freedom(a_shape, dim, correction))


var: Op = Op(
    "var",
    r"\operatorname{var} {a}",
    vjp=(_var_rule,),
    shown=(r"\frac{2}{\text{count} - {correction}} \cdot {g} \cdot \left({a} - \overline{a}\right)",),
    attrs=("dim", "correction", "keepdim"),
    promotes="float",
    meaning=_var_meaning,
)
std = Op(
    "std",
    r"\operatorname{std} {a}",
    vjp=(_std_rule,),
    shown=(r"\frac{g}{\left(\text{count} - {correction}\right) \cdot {y}} \cdot \left({a} - \overline{a}\right)",),
    attrs=("dim", "correction", "keepdim"),
    promotes="float",
    meaning=lambda a, dim, correction, keepdim: sqrt(var(a, dim=dim, correction=correction, keepdim=keepdim)),
)


def _logsumexp_meaning(a: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Subtract the maximum before exp, to avoid overflow."""
    exp_sum = sum(exp(a - amax(a, dim=dim, keepdim=True)), dim=dim, keepdim=keepdim)
    return amax(a, dim=dim, keepdim=keepdim) + log(exp_sum)


logsumexp = Op(
    "logsumexp",
    r"\ln\left(\sum e^{a}\right)",
    vjp=(
        lambda g, y, a, a_shape, dim, keepdim: (
            spread(g, a_shape, dim, keepdim) * exp(a - spread(y, a_shape, dim, keepdim))
        ),
    ),
    shown=(r"{g} \cdot e^{{a} - {y}}",),
    attrs=_REDUCTION_ATTRS,
    promotes="float",
    meaning=_logsumexp_meaning,
)


def _norm_rule(g: Any, y: Any, a: Any, a_shape: Shape, p: float, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return g a |a|^(p - 2) / y^(p - 1), or 0 where y or a is 0, and for p = 0, which counts nonzero elements.

    The unselected branch of `where` is nan there, so second derivatives at 0, where a norm is not differentiable, are
    nan rather than 0.
    """
    if p == 0:
        return where(False, spread(g, a_shape, dim, keepdim), 0.0)
    if p == 2:
        reciprocal = where(y == 0, 0.0, div(1.0, y))  # g / y may under- or overflow where g a / y does not
        return spread(reciprocal, a_shape, dim, keepdim) * a * spread(g, a_shape, dim, keepdim)
    if 0 < p < 2:
        power = where(a == 0, 0.0, sign(a) * pow(sign(a) * a, p - 1.0))
        return spread(where(y == 0, 0.0, g * pow(y, 1.0 - p)), a_shape, dim, keepdim) * power
    expanded_norm = spread(y, a_shape, dim, keepdim)
    ratio = div(a, expanded_norm)  # powers of the ratio do not overflow
    if p < 0:
        power = sign(a) * pow(sign(a) * ratio, p - 1.0)
    else:
        power = pow(ratio, p - 1.0) if p % 2 == 0 else ratio * pow(abs(ratio), p - 2.0)
    return where(expanded_norm == 0, 0.0, spread(g, a_shape, dim, keepdim) * power)


def _norm_shown_rule(g: Any, y: Any, a: Any, p: float) -> Any:
    return where(p == 0, 0.0, g * (sign(a) * pow(div(abs(a), y), p - 1.0)))


norm = Op(
    "norm",
    r"\left\|{a}\right\|",
    vjp=(_norm_rule,),
    shown=(_norm_shown_rule,),
    attrs=("p", "dim", "keepdim"),
    promotes="float",
)

# --- extrema ---


def _amax_rule(g: Any, y: Any, a: Any, a_shape: Shape, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Divide `g` evenly between the elements that equal the result."""
    is_extreme = eq(a, spread(y, a_shape, dim, keepdim))
    tied_grad = where(is_extreme, spread(g, a_shape, dim, keepdim), 0.0)
    return div(tied_grad, sum(is_extreme, dim=dim, keepdim=True))


amax: Op = Op(
    "amax",
    r"\max {a}",
    vjp=(_amax_rule,),
    shown=(r"\begin{cases} \frac{g}{\sum \left({a} = {y}\right)} & {a} = {y} \\ 0 & \text{otherwise} \end{cases}",),
    attrs=_REDUCTION_ATTRS,
)
amin = Op(
    "amin",
    r"\min {a}",
    vjp=(_amax_rule,),
    shown=(r"\begin{cases} \frac{g}{\sum \left({a} = {y}\right)} & {a} = {y} \\ 0 & \text{otherwise} \end{cases}",),
    attrs=_REDUCTION_ATTRS,
)


# Below, `dim` is a single int. max and min return values and indices; the element at the index receives the gradient.
def _max_rule(g: Any, y1: Any, a_shape: Shape, dim: int, keepdim: bool) -> Any:
    return put_along(g[0], y1, shape=a_shape, dim=dim, keepdim=keepdim)


max = Op(
    "max",
    r"\max {a}",
    vjp=(_max_rule,),
    shown=(r"\begin{cases} {g} & \text{selected} \\ 0 & \text{otherwise} \end{cases}",),
    attrs=_REDUCTION_ATTRS,
    outputs=2,
)
min = Op(
    "min",
    r"\min {a}",
    vjp=(_max_rule,),
    shown=(r"\begin{cases} {g} & \text{selected} \\ 0 & \text{otherwise} \end{cases}",),
    attrs=_REDUCTION_ATTRS,
    outputs=2,
)
argmax = Op("argmax", r"\operatorname{argmax} {a}", vjp=(None,), attrs=_REDUCTION_ATTRS)
argmin = Op("argmin", r"\operatorname{argmin} {a}", vjp=(None,), attrs=_REDUCTION_ATTRS)

# pick_along reads the element at index b along `dim`. Its adjoint, put_along, writes a to index b of a zero tensor.
pick_along: Op = Op(
    "pick_along",
    "{a}_{b}",
    vjp=(lambda g, a_shape, b, dim, keepdim: put_along(g, b, shape=a_shape, dim=dim, keepdim=keepdim), None),
    shown=(r"\begin{cases} {g} & \text{selected} \\ 0 & \text{otherwise} \end{cases}", None),
    attrs=_REDUCTION_ATTRS,
)
put_along: Op = Op(
    "put_along",
    r"\operatorname{put}\left({a}, {b}\right)",
    vjp=(lambda g, b, dim, keepdim: pick_along(g, b, dim=dim, keepdim=keepdim), None),
    shown=("{g}_{b}", None),
    attrs=("shape", "dim", "keepdim"),
)

# --- cumulative operations, which start at the first element, or at the last if `reverse` ---

cumsum: Op = Op(
    "cumsum",
    r"\operatorname{cumsum} {a}",
    vjp=(lambda g, dim, reverse: cumsum(g, dim=dim, reverse=not reverse),),
    shown=(r"\operatorname{cumsum}^\top {g}",),
    attrs=("dim", "reverse"),
)


def _predecessor_shift(reverse: bool) -> int:
    return -1 if reverse else 1  # the shift that moves each element's predecessor into its position


def _cumprod_rule(g: Any, y: Any, a: Any, dim: int, reverse: bool) -> Any:
    """Multiply the product before each element by the gradient of the products after it, avoiding division by 0."""
    return shift(y, dim=dim, by=_predecessor_shift(reverse), fill=1.0) * _recur_rule(g, a, dim, reverse)


cumprod: Op = Op(
    "cumprod",
    r"\operatorname{cumprod} {a}",
    vjp=(_cumprod_rule,),
    shown=(adjoint_formula("a"),),
    attrs=("dim", "reverse"),
)


def _prod_rule(g: Any, a: Any, a_shape: Shape, dim: int, keepdim: bool) -> Any:
    """Multiply `g` by the product of all elements before and all elements after each element."""
    before = shift(cumprod(a, dim=dim, reverse=False), dim=dim, by=1, fill=1.0)
    after = shift(cumprod(a, dim=dim, reverse=True), dim=dim, by=-1, fill=1.0)
    return spread(g, a_shape, (dim,), keepdim) * (before * after)


prod = Op(
    "prod", r"\prod {a}", vjp=(_prod_rule,), shown=(r"{g} \cdot \prod_{\text{others}} {a}",), attrs=_REDUCTION_ATTRS
)


# recur computes the recurrence y[k] = b[k] + a[k] y[k-1], where y is 0 before the first element.
def _recur_rule(g: Any, a: Any, dim: int, reverse: bool) -> Any:
    """VJP for b."""
    return recur(shift(a, dim=dim, by=-_predecessor_shift(reverse), fill=0.0), g, dim=dim, reverse=not reverse)


recur: Op = Op(
    "recur",
    r"\operatorname{recur}\left({a}, {b}\right)",
    vjp=(
        lambda g, y, a, dim, reverse: (
            shift(y, dim=dim, by=_predecessor_shift(reverse), fill=0.0) * _recur_rule(g, a, dim, reverse)
        ),
        _recur_rule,
    ),
    shown=(adjoint_formula("a"), adjoint_formula("b")),
    attrs=("dim", "reverse"),
    promotes="same",
)

# Shifts by `by` positions along `dim`. Elements shifted out are discarded; vacated positions are set to `fill`.
shift: Op = Op(
    "shift",
    r"\operatorname{shift} {a}",
    vjp=(lambda g, dim, by: shift(g, dim=dim, by=-by, fill=0.0),),
    shown=(r"\operatorname{shift}^\top {g}",),
    attrs=("dim", "by", "fill"),
)

# --- logical reductions ---

any = Op("any", r"\bigvee {a}", vjp=(None,), attrs=_REDUCTION_ATTRS)
all = Op("all", r"\bigwedge {a}", vjp=(None,), attrs=_REDUCTION_ATTRS)
