"""Registration of functions as methods: names, operators, in-place forms. The op samples test their results."""

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from minigrad.core.registry import FUNCTIONS, METHODS, TOPICS, register
from needs import needs

needs("numpy")


def test_register_adds_function_method_inplace_method_and_operator():
    assert mg.remainder(7, mg.tensor(4)).item() == mg.tensor(7).remainder(4).item() == 3
    x = mg.tensor(7)
    y = x
    y %= 4
    assert (y is x, x.item(), (10 % x).item(), (x % 2).item()) == (True, 3, 1, 1)
    assert "remainder" in TOPICS["minigrad.functional.arithmetic"].functions
    assert {"remainder", "remainder_"} <= set(TOPICS["minigrad.functional.arithmetic"].methods)


def test_aliases_are_the_same_function():
    assert (mg.subtract, mg.Tensor.subtract, mg.Tensor.subtract_) == (mg.sub, mg.Tensor.sub, mg.Tensor.sub_)
    assert (mg.arctan, mg.Tensor.negative_) == (mg.atan, mg.Tensor.neg_)


def test_a_name_is_registered_once():
    def clone(input):
        return input

    initial = (dict(FUNCTIONS), dict(METHODS))
    with pytest.raises(ValueError, match="clone is registered twice"):
        register(clone)
    assert initial == (FUNCTIONS, METHODS)


def test_an_inplace_method_saves_its_operand_for_backward():
    x = mg.tensor([0.5, 2.0], dtype=mg.float64, requires_grad=True)
    (x * 1.0).float_power_(3).sum().backward()
    assert x.grad.tolist() == [0.75, 12.0]


def test_an_invalid_inplace_result_raises_with_the_methods_name():
    x = mg.ones(3)
    with pytest.raises(
        ShapeError, match=r"addmm_: output with shape \(3,\) doesn't match the broadcast shape \(3, 3\)"
    ):
        x.addmm_(mg.ones(3, 3), mg.ones(3, 3))
    with pytest.raises(DTypeError, match="cumsum_: the result type can't be cast to the desired output type int64"):
        mg.ones(3, dtype=mg.int64).cumsum_(0, dtype=mg.float32)
    with pytest.raises(
        GraphError, match="nan_to_num_: a leaf that requires grad is being used in an in-place operation"
    ):
        mg.ones(3, requires_grad=True).nan_to_num_()
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_inplace_methods_write_in_place_and_accept_numpys_names():
    x = mg.arange(6.0).view(2, 3)
    assert x[1].cumsum_(axis=0) is not x
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 7.0, 12.0]]
    assert x.cumprod_.__name__ == "cumprod_"
    assert x.cumprod_.__doc__ == "In-place version of `cumprod`."


def test_clamp_inplace_accepts_clamps_arguments_and_validates_the_dtype():
    x = mg.tensor([1.0, 5.0, 9.0], requires_grad=True)
    y = (x * 1.0).clamp_(min=mg.tensor([2.0, 2.0, 2.0]), max=6)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([2.0, 5.0, 6.0], [0.0, 1.0, 0.0])
    full = mg.tensor([1, 5])
    assert full.clip_(2, 3).tolist() == [2, 3]
    with pytest.raises(DTypeError, match="clamp_: the result type can't be cast to the desired output type int64"):
        full.clamp_(-1.5, 2.5)
    with pytest.raises(ArgumentError, match="at least one of min and max must not be None"):
        full.clamp_()
    assert full.tolist() == [2, 3]


def test_integer_division_of_an_empty_tensor_does_not_raise():
    assert (mg.zeros(0, dtype=mg.int64) // mg.tensor(0)).tolist() == []
    assert (mg.zeros(0, dtype=mg.int64) % mg.tensor([0])).tolist() == []
