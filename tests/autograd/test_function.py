"""autograd.Function: hand-written forward and backward passes."""

import gc
import inspect
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, GraphError, ShapeError


class Exp(mg.autograd.Function):
    """The exponential, with a rule that reads the result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Scaled(mg.autograd.Function):
    """A product with a Python scalar, in the setup_context style."""

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
    """The sum and the product of two operands, and which operand is larger."""

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


def leaf(*values):
    return mg.tensor(values, dtype=mg.float64, requires_grad=True)


def test_a_function_that_saves_its_result_is_differentiated_to_third_order():
    x = leaf(0.5, -1.0)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = mg.grad(y, x, mg.ones(2, dtype=mg.float64), create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), np.exp([0.5, -1.0]), rtol=1e-15)


def test_plain_operands_and_setup_context():
    x = leaf(1.0, 2.0)
    y = Scaled.apply(x, 3.0)
    y.backward(mg.ones(2, dtype=mg.float64))
    assert (y.tolist(), x.grad.tolist(), y.grad_fn.name) == ([3.0, 6.0], [3.0, 3.0], "ScaledBackward")


def test_unused_outputs_are_allowed():
    a, b = leaf(2.0), leaf(5.0)
    total, product, larger = Both.apply(a, b)
    assert (larger.tolist(), larger.requires_grad) == ([False], False)
    assert [g.item() for g in mg.grad(product, [a, b], retain_graph=True)] == [5.0, 2.0]
    assert [g.item() for g in mg.grad([total, product], [a, b])] == [6.0, 3.0]
    assert mg.gradgradcheck(lambda a, b: Both.apply(a, b)[:2], [leaf(2.0), leaf(5.0)])


def test_nothing_is_recorded_without_requires_grad():
    assert Exp.apply(mg.tensor([1.0])).is_leaf
    with mg.no_grad():
        assert Exp.apply(leaf(1.0)).is_leaf


def test_a_modified_saved_tensor_raises():
    x = leaf(1.0, 2.0)
    y = Exp.apply(x)
    y.add_(1.0)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(GraphError) as error:
        y.backward(mg.ones(2))
    assert str(error.value) == (
        "backward: Exp saved tensor 0, of shape (2,), which has been modified by an inplace operation: "
        f"add_, at {__file__}:{line}: y.add_(1.0)\n"
        "  Use an out-of-place operation there (x = x + 1, not x += 1), or save a clone()."
    )
    assert x.grad is None


def test_a_second_backward_raises():
    x = leaf(1.0)
    y = Exp.apply(x)
    y.backward()
    with pytest.raises(GraphError, match="a second time: Exp freed"):
        y.backward()


def test_invalid_gradients_raise():
    class Few(mg.autograd.Function):
        forward = staticmethod(lambda ctx, a, b: a * b)
        backward = staticmethod(lambda ctx, g: g)

    class Wide(mg.autograd.Function):
        forward = staticmethod(lambda ctx, a: a * 1.0)
        backward = staticmethod(lambda ctx, g: g.expand(3, 2))

    with pytest.raises(GraphError) as error:
        Few.apply(leaf(1.0), leaf(2.0)).backward()
    assert str(error.value) == (
        "backward: function Few returned an incorrect number of gradients (expected 2, got 1).\n"
        "  Return one per operand of forward, None if it has none."
    )
    with pytest.raises(
        ShapeError,
        match=r"function Wide returned an invalid gradient at index 0: got shape \(3, 2\), but expected \(2,\)",
    ):
        Wide.apply(leaf(1.0, 2.0)).backward(mg.ones(2))
    with pytest.raises(GraphError, match=r"Bad.forward returned 3; expected a tensor"):
        type("Bad", (mg.autograd.Function,), {"forward": staticmethod(lambda ctx, x: 3)}).apply(leaf(1.0))


def test_functions_are_not_in_the_op_table():
    Exp.apply(leaf(1.0))
    assert "Exp" not in mg.OPS


class Same(mg.autograd.Function):
    """Return the operand unchanged, and three times the gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * g + 0.0 * x


class Kept(mg.autograd.Function):
    """Compute the gradient in forward, as fused losses do, and count the calls."""

    calls = 0
    gradient = None

    @staticmethod
    def forward(ctx, x):
        Kept.gradient = mg.full(x.shape, 5.0)
        return x.detach() * 5.0

    @staticmethod
    def backward(ctx, g):
        Kept.calls += 1
        return Kept.gradient if bool((g == 1.0).all()) else Kept.gradient * g


def test_a_returned_operand_is_copied():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = Same.apply(x)
    y.mul_(2.0)
    y.sum().backward()
    assert (x.tolist(), y.tolist(), x.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0], [6.0, 6.0])


def test_an_operand_that_is_also_an_output_is_saved_as_operand():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (first,) = mg.grad(Same.apply(x).sum(), x, create_graph=True)
    assert mg.grad(first.sum(), x)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("tapped", [False, True])
def test_accumulation_does_not_modify_backwards_result(tapped):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = Kept.apply(x)
    with mg.tap(lambda call: None) if tapped else mg.enable_grad():
        y.backward(mg.ones(2), retain_graph=True)
        y.backward(mg.ones(2))
    assert Kept.gradient.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [10.0, 10.0]


def test_each_pass_calls_backward_once():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y, seed = Kept.apply(x), mg.ones(2)
    initial = Kept.calls
    y.backward(seed, retain_graph=True)
    seed.mul_(10.0)
    y.backward(seed)
    assert Kept.calls == initial + 2
    assert x.grad.tolist() == [55.0, 55.0]


def test_saving_an_output_creates_no_reference_cycle():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = Exp.apply(x)
    step = weakref.ref(y.grad_fn)
    (first,) = mg.grad(y.sum(), x, create_graph=True)
    gc.collect()
    gc.disable()
    del y, first
    is_freed = step() is None
    gc.enable()
    assert is_freed


@pytest.mark.parametrize(("returned", "name"), [(3.0, "float"), ([None], "list")])
def test_a_gradient_of_another_type_raises(returned, name):
    class Wrong(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return returned

    x = mg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(DTypeError) as error:
        Wrong.apply(x).sum().backward()
    assert str(error.value) == (
        "backward: function Wrong returned an invalid gradient at index 0: expected a tensor or None, but got "
        f"a {name}.\n  For several operands, return a tuple of these."
    )


def test_instantiating_a_function_suggests_apply():
    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(DTypeError, match=r"Twice: Functions should not be instantiated; use Twice\.apply\(x\)"):
        Twice(mg.ones(2))


def test_a_gradient_of_another_shape_raises():
    class Longer(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return mg.ones(3)

    y = Longer.apply(mg.ones(2, requires_grad=True))
    with pytest.raises(
        ShapeError, match=r"function Longer returned an invalid gradient at index 0: .* \(3,\), .* \(2,\)"
    ):
        y.sum().backward()


def test_a_function_may_have_the_name_of_a_built_in_operation():
    class relu(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = mg.tensor([1.0, -2.0], requires_grad=True)
    relu.apply(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])
    assert mg.OPS["relu"](x).tolist() == [1.0, 0.0]
