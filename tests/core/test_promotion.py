"""Type promotion as in PyTorch; gradients have the dtype of their tensor."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from strategies import RELATIVE


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("scalar", [True, 2, 2.5])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "lt", "exp"])
def test_result_dtypes_match_pytorch(torch, name, dtype, scalar):
    op, expected = mg.OPS[name], getattr(torch, name)
    result, twin = mg.tensor(np.ones(3, dtype)), torch.ones(3, dtype=getattr(torch, dtype))
    if len(op.inputs) == 1:
        y, z = op(result), expected(twin)
    elif name == "maximum":
        y, z = op(result, mg.tensor(scalar)), expected(twin, torch.tensor(scalar))
    else:
        y, z = op(result, scalar), expected(twin, scalar)
    assert y.dtype.name == str(z.dtype)[6:]
    np.testing.assert_allclose(y.numpy().astype(float), z.numpy().astype(float), rtol=RELATIVE["float32"])


def test_gradients_have_the_dtype_of_their_tensor_in_every_order():
    x = mg.ones(2, requires_grad=True)
    y = (x + mg.ones(2, dtype=mg.float64)).square().sum()
    (gradient,) = mg.grad(y, x, create_graph=True)
    y.backward(retain_graph=True)
    assert (y.dtype, gradient.dtype, x.grad.dtype) == (mg.float64, mg.float32, mg.float32)
    assert mg.grad(gradient.sum(), x)[0].dtype is mg.float32
