"""Tests of every elementwise op, generated from the op table: a new op is tested automatically."""

import math

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import Value
from needs import needs
from strategies import (
    ATTRS,
    DIFFERENTIABLE,
    ELEMENTWISE,
    FIRST,
    PYTORCH,
    ROUNDING,
    as_value_function,
    points,
    torch_equivalent,
)

each_op = pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)


@merge_cases
@each_op
def test_gradient_matches_central_difference(op):
    for point in points(op):
        assert mg.gradcheck(as_value_function(op), point, **FIRST)


@merge_cases
@each_op
def test_second_gradient_matches_central_difference(op):
    for point in points(op):
        assert mg.gradgradcheck(as_value_function(op), point, **FIRST)


@merge_cases
@each_op
def test_third_gradient_matches_central_difference(op):
    def gradient(*leaves):
        y = as_value_function(op)(*leaves)
        return [g for g in mg.grad(y, leaves, create_graph=True, allow_unused=True) if g is not None]

    for point in points(op, count=5):
        assert mg.gradgradcheck(gradient, point, atol=1e-5, rtol=1e-5)  # third derivatives of 1/x reach 10^3 here


@merge_cases
@each_op
def test_displayed_rule_has_the_rule_s_value(op):
    for point in points(op):
        attrs = ATTRS.get(op.name, {})
        y = op(*point, **attrs)
        for rule, shown in zip(op.rules, op.shown, strict=True):
            if rule is not None:
                assert shown(1.0, y, *point, **attrs) == pytest.approx(rule(1.0, y, *point, **attrs), rel=ROUNDING)


@merge_cases
@each_op
def test_floats_and_values_give_the_same_result(op):
    for point in points(op):
        assert as_value_function(op)(*[Value(x) for x in point]).data == op(
            *[x if r else x > 0 for x, r in zip(point, op.vjp, strict=True)], **ATTRS.get(op.name, {})
        )


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_values_and_gradients_are_pytorch_s(torch, op):
    torch_function, attrs = torch_equivalent(op), ATTRS.get(op.name, {})
    corners = (0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan)
    samples = points(op) + _pairs(corners, len(op.inputs))
    for point in samples:
        if op.name == "where":
            point = (point[0] > 0, *point[1:])
        if op.name == "softsign" and math.isinf(point[0]):
            continue  # the gradient is 0 there; PyTorch divides inf by inf
        inputs = [x if isinstance(x, bool) else Value(x) for x in point]
        tensors = [torch.tensor(x, dtype=None if isinstance(x, bool) else torch.float64) for x in point]
        for t in tensors:
            t.requires_grad_(t.dtype == torch.float64 and op.differentiable)
        y, z = op(*inputs, **attrs), torch_function(*tensors, **attrs)
        assert float(y) == pytest.approx(float(z.detach()), rel=PYTORCH, nan_ok=True), point
        if op.differentiable:
            y.backward()
            z.backward()
            for x, t in zip(inputs, tensors, strict=True):
                if isinstance(x, Value):
                    assert x.grad == pytest.approx(t.grad.item(), rel=PYTORCH, abs=1e-300, nan_ok=True), point


def _pairs(corners, arity):
    if arity == 1:
        return [(x,) for x in corners]
    return [(x, y, 2.0)[:arity] for x in corners for y in corners]


def test_gradient_of_scalar_power_has_the_precision_of_its_exponent():
    needs("numpy")
    x = mg.tensor([0.3], dtype=mg.float64, requires_grad=True)
    (gradient,) = mg.grad(2**x, [x], [mg.ones_like(x)], create_graph=True)
    assert gradient.item() == pytest.approx(2**0.3 * math.log(2), rel=1e-15)
