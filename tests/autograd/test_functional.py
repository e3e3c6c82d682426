"""vjp, jvp, hvp, jacobian and hessian, against PyTorch and hand-computed results."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.autograd import hessian, hvp, jacobian, jvp, vjp
from minigrad.core.errors import DTypeError, ShapeError

A, B = np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([1.5, -0.5])


def one(a, b):
    return ((a @ b).tanh() * b).sum()


def several(a, b):
    return (a @ b).tanh(), a.exp() * 2.0


def pair(torch):
    return (mg.tensor(A), mg.tensor(B)), (torch.tensor(A), torch.tensor(B))


def assert_same(actual, expected):
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b)
    else:
        assert actual.shape == tuple(expected.shape)
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parity
def test_products_match_pytorch(torch):
    result, torch_inputs = pair(torch)
    functional = torch.autograd.functional
    assert_same(vjp(one, result), functional.vjp(one, torch_inputs))
    assert_same(jvp(one, result, result), functional.jvp(one, torch_inputs, torch_inputs))
    assert_same(hvp(one, result, result), functional.hvp(one, torch_inputs, torch_inputs))
    assert_same(
        vjp(several, result, (result[1], result[0])),
        functional.vjp(several, torch_inputs, (torch_inputs[1], torch_inputs[0])),
    )
    assert_same(jvp(several, result, result), functional.jvp(several, torch_inputs, torch_inputs))


@pytest.mark.parity
def test_jacobians_and_hessians_match_pytorch(torch):
    result, torch_inputs = pair(torch)
    functional = torch.autograd.functional
    assert_same(jacobian(several, result), functional.jacobian(several, torch_inputs))
    assert_same(hessian(one, result), functional.hessian(one, torch_inputs))
    assert_same(jacobian(lambda b: b * b, result[1]), functional.jacobian(lambda b: b * b, torch_inputs[1]))


def test_results_are_differentiable_with_create_graph():
    x = mg.tensor([1.0, 2.0], dtype=mg.float64, requires_grad=True)
    derivatives = jacobian(lambda x: x * x * x, x, create_graph=True)
    assert mg.grad(derivatives.sum(), x)[0].tolist() == [6.0, 12.0]
    assert not jacobian(lambda x: x * x, x).requires_grad


def test_derivatives_of_values_are_floats():
    assert jacobian(lambda a, b: (a * b, a + b), (2.0, 3.0)) == ((3.0, 2.0), (1.0, 1.0))
    assert hessian(lambda a, b: a * a * b, (2.0, 3.0)) == ((6.0, 4.0), (4.0, 0.0))
    value, derivative = jvp(lambda a: a * a, 3.0, 2.0)
    assert (float(value), derivative) == (9.0, 12.0)


def test_unused_inputs_get_zeros():
    x, y = mg.tensor([1.0, 2.0]), mg.tensor([3.0])
    assert [g.tolist() for g in vjp(lambda x, y: x.sum(), (x, y))[1]] == [[1.0, 1.0], [0.0]]
    assert hessian(lambda x: x.sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_an_invalid_v_raises():
    x = mg.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"vjp: v can only be None for a single element, but the shape is \(2,\)"):
        vjp(lambda x: x * x, x)
    with pytest.raises(ShapeError, match=r"jvp: v has invalid size: should be \(2,\) but got \(3,\)"):
        jvp(lambda x: x * x, x, mg.ones(3))
    with pytest.raises(DTypeError, match="hvp: v has 2 entries, but expected 1"):
        hvp(lambda x: x.sum(), x, (x, x))
    with pytest.raises(ShapeError, match="hessian: the function must return a tensor with one element"):
        hessian(lambda x: x * x, x)


@pytest.mark.parametrize("derivative", [vjp, jvp, hvp, jacobian, hessian])
def test_a_function_with_another_return_type_raises(derivative):
    with pytest.raises(DTypeError) as error:
        derivative(lambda x: 3.0, mg.tensor([1.0, 2.0]))
    assert str(error.value) == (
        "autograd: the function returned 3.0, a float; expected a tensor or a Value.\n"
        "  Return what was computed from the arguments, several results as a tuple."
    )


@pytest.mark.parametrize("function", [mg.nn.functional.elu, mg.nn.functional.selu, mg.nn.functional.celu])
def test_second_derivatives_at_the_kink_match_pytorch(function):
    x = mg.zeros(1, requires_grad=True)
    (derivative,) = mg.grad(mg.sum(function(x)), [x], create_graph=True)
    (bend,) = mg.grad(mg.sum(derivative), [x])
    assert bend.tolist() == [0.0]
    assert derivative.item() == pytest.approx(1.7580993 if function is mg.nn.functional.selu else 1.0)
