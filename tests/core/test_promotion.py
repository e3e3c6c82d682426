"""Type promotion as in PyTorch; gradients have the dtype of their tensor."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from strategies import RELATIVE


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("number", [True, 2, 2.5])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "lt", "exp"])
def test_types_come_out_as_in_pytorch(torch, name, dtype, number):
    op, theirs = mg.OPS[name], getattr(torch, name)
    ours, twin = mg.tensor(np.ones(3, dtype)), torch.ones(3, dtype=getattr(torch, dtype))
    if len(op.inputs) == 1:
        y, z = op(ours), theirs(twin)
    elif name == "maximum":
        y, z = op(ours, mg.tensor(number)), theirs(twin, torch.tensor(number))
    else:
        y, z = op(ours, number), theirs(twin, number)
    assert y.dtype.name == str(z.dtype)[6:]
    np.testing.assert_allclose(y.numpy().astype(float), z.numpy().astype(float), rtol=RELATIVE["float32"])


def test_a_gradient_has_the_type_of_its_tensor_in_each_order():
    x = mg.ones(2, requires_grad=True)
    y = (x + mg.ones(2, dtype=mg.float64)).square().sum()
    (slope,) = mg.grad(y, x, create_graph=True)
    y.backward(retain_graph=True)
    assert (y.dtype, slope.dtype, x.grad.dtype) == (mg.float64, mg.float32, mg.float32)
    assert mg.grad(slope.sum(), x)[0].dtype is mg.float32
