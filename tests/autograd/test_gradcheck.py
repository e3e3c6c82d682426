"""gradcheck and gradgradcheck accept correct rules, and report where and by how much others are wrong."""

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, GradcheckError
from minigrad.core.op import OPS, Op
from needs import needs


@pytest.fixture
def wrong_square():
    """x**2 with a rule that lacks the factor 2, and with a detached rule: correct, but not differentiable again."""
    mg.kernel("wrong_square", "python")(lambda a: a * a)
    mg.kernel("detached_square", "python")(lambda a: a * a)
    yield (
        Op("wrong_square", "{a}^2", vjp=(lambda g, a: g * a,)),
        Op("detached_square", "{a}^2", vjp=(lambda g, a: g * (2.0 * float(a)),)),
    )
    del OPS["wrong_square"], OPS["detached_square"]


def test_an_incorrect_rule_is_reported_with_output_input_and_both_values(wrong_square):
    def both(x, y):
        return x * y, x + wrong_square[0](y)

    with pytest.raises(GradcheckError) as error:
        mg.gradcheck(both, [1.0, 4.0])
    assert str(error.value) == (
        "gradcheck of both: Jacobian mismatch for output 1 with respect to input 1 (= 4.0)\n"
        "  analytical: 4, numerical: 8; they differ by 4.\n"
        "  A derivative rule is incorrect, or the function has a kink or a jump at this point."
    )


def test_a_custom_function_is_reported_by_its_class_name():
    needs("numpy")

    class Halved(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(GradcheckError, match=r"^gradcheck of Halved\.apply: Jacobian mismatch for output 0 "):
        mg.gradcheck(Halved.apply, [mg.tensor(3.0, dtype=mg.float64)])


def test_a_detached_rule_passes_the_first_order_and_fails_the_second(wrong_square):
    assert mg.gradcheck(wrong_square[1], [3.0])
    with pytest.raises(
        GradcheckError, match=r"output 0 with respect to input 0 \(= 3.0\)\n  analytical: 0, numerical: 2;"
    ):
        mg.gradgradcheck(lambda x: wrong_square[1](x) * 1.0 + x * 0.0 * x, [3.0])


def test_an_unused_input_has_derivative_zero():
    assert mg.gradcheck(lambda x, y: x * x, [3.0, 1.0])


def test_the_step_size_is_relative_for_large_inputs():
    assert mg.gradcheck(lambda x: x * 1.0, [1e12])
    assert mg.gradcheck(lambda x: x * x, [1e16])


def test_an_empty_comparison_raises():
    with pytest.raises(GradcheckError, match="there are no inputs or no outputs to check"):
        mg.gradcheck(lambda x: [], [1.0])
    with pytest.raises(GradcheckError, match=r"analytical: 0, numerical: 6;"):
        mg.gradgradcheck(lambda x: x.detach() * x.detach(), [3.0])


def test_each_output_counts_in_the_second_order(wrong_square):
    """Equal weights of the outputs would let two errors cancel."""

    def both(x):
        wrong = wrong_square[1](x)
        return wrong, x * x * 2.0 - wrong

    with pytest.raises(GradcheckError, match="the gradient of both"):
        mg.gradgradcheck(both, [3.0])


def test_checks_work_inside_no_grad_and_accept_a_single_input():
    with mg.no_grad():
        assert mg.gradcheck(lambda x: x * x, 3.0)
        assert mg.gradgradcheck(lambda x: x * x * x, mg.Value(3.0))


def test_a_function_with_another_return_type_raises():
    with pytest.raises(DTypeError, match=r"it returned 3\.0, a float; expected a Value or tensor"):
        mg.gradcheck(lambda x: 3.0, [1.0])


def test_a_nan_is_a_mismatch():
    with pytest.raises(GradcheckError, match="nan"):
        mg.gradcheck(lambda x: x.log(), [-1.0])
