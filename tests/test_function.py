"""autograd.Function: forward and backward passes written by hand."""

import inspect

import pytest

import minigrad as mg
from minigrad.errors import GraphError, ShapeError

np = pytest.importorskip("numpy")


class Exp(mg.autograd.Function):
    """e to a power, whose rule reads the result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Scaled(mg.autograd.Function):
    """A product with a plain number, in the newer style."""

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


class Both(mg.autograd.Function):
    """The sum and the product of two operands, and which is larger."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        larger = a > b
        ctx.mark_non_differentiable(larger)
        return a + b, a * b, larger

    @staticmethod
    def backward(ctx, by_sum, by_product, _):
        a, b = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, True)
        return by_sum + by_product * b, by_sum + by_product * a


def numbers(*given):
    return mg.tensor(given, dtype=mg.float64, requires_grad=True)


def test_a_function_that_saves_its_result_is_differentiated_to_third_order():
    x = numbers(0.5, -1.0)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = mg.grad(y, x, mg.ones(2, dtype=mg.float64), create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), np.exp([0.5, -1.0]), rtol=1e-15)


def test_plain_operands_and_setup_context():
    x = numbers(1.0, 2.0)
    y = Scaled.apply(x, 3.0)
    y.backward(mg.ones(2, dtype=mg.float64))
    assert (y.tolist(), x.grad.tolist(), y.grad_fn.name) == ([3.0, 6.0], [3.0, 3.0], "ScaledBackward")


def test_several_results_of_which_some_are_used():
    a, b = numbers(2.0), numbers(5.0)
    total, product, larger = Both.apply(a, b)
    assert (larger.tolist(), larger.requires_grad) == ([False], False)
    assert [g.item() for g in mg.grad(product, [a, b], retain_graph=True)] == [5.0, 2.0]
    assert [g.item() for g in mg.grad([total, product], [a, b])] == [6.0, 3.0]
    assert mg.gradgradcheck(lambda a, b: Both.apply(a, b)[:2], [numbers(2.0), numbers(5.0)])


def test_nothing_is_recorded_without_a_gradient_to_find():
    assert Exp.apply(mg.tensor([1.0])).is_leaf
    with mg.no_grad():
        assert Exp.apply(numbers(1.0)).is_leaf


def test_an_overwritten_saved_tensor_is_refused():
    x = numbers(1.0, 2.0)
    y = Exp.apply(x)
    y.add_(1.0)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(GraphError) as error:
        y.backward(mg.ones(2))
    assert str(error.value) == (
        "backward: Exp saved a tensor, number 0, of shape (2,), at version 0, but it is at version 1 now: "
        f"overwritten by add_, at {__file__}:{line}: y.add_(1.0)\n"
        "  Write out of place there (x = x + 1, not x += 1), or save a clone()."
    )
    assert x.grad is None


def test_a_second_backward_finds_what_was_saved_given_up():
    x = numbers(1.0)
    y = Exp.apply(x)
    y.backward()
    with pytest.raises(GraphError, match="the graph behind Exp was freed"):
        y.backward()


def test_wrong_gradients_are_refused():
    class Few(mg.autograd.Function):
        forward = staticmethod(lambda ctx, a, b: a * b)
        backward = staticmethod(lambda ctx, g: g)

    class Wide(mg.autograd.Function):
        forward = staticmethod(lambda ctx, a: a * 1.0)
        backward = staticmethod(lambda ctx, g: g.expand(3, 2))

    with pytest.raises(GraphError) as error:
        Few.apply(numbers(1.0), numbers(2.0)).backward()
    assert str(error.value) == (
        "backward: Few.backward returned 1 gradients for 2 operands of forward.\n"
        "  Return one for each, in their order; None for what has no gradient."
    )
    with pytest.raises(ShapeError, match=r"Wide.backward returned a gradient of shape \(3, 2\) for operand 0"):
        Wide.apply(numbers(1.0, 2.0)).backward(mg.ones(2))
    with pytest.raises(GraphError, match=r"Bad.forward returned 3, not a tensor"):
        type("Bad", (mg.autograd.Function,), {"forward": staticmethod(lambda ctx, x: 3)}).apply(numbers(1.0))


def test_functions_do_not_enter_the_op_table():
    Exp.apply(numbers(1.0))
    assert "Exp" not in mg.OPS
