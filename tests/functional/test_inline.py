"""Elementwise operations on the fast path and the general one: identical bits, for every operation and order."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.op import OPS
from strategies import points

INLINED = [op for op in OPS.values() if op.inlined is not None]
CORNERS = (0.0, -0.0, 1.0, -2.5, 0.5, 3.0, 1e-45, 1e38, np.inf, -np.inf, np.nan, -1.0)


def both(run):
    """Return the results of `run` on the fast path and, inside a scope, which forces it, on the general one."""
    found = []
    for block in (nullcontext(), mg.scope("seen")):
        with block:
            found.append(run())
    return found


def bits(x):
    """Return the bits of a tensor or an array, or the repr of a Python scalar or None."""
    x = x.detach().numpy() if isinstance(x, mg.Tensor) else x
    return (str(x.dtype), x.shape, x.tobytes()) if isinstance(x, np.ndarray) else repr(x)


def step_of(y):
    """Return what the graph node of `y` stores."""
    step = y.grad_fn
    if step is None:
        return y.requires_grad
    kinds = [type(x).__name__ for x in step.next_functions]
    return step.name, kinds, [*map(bits, step.constants)], [*map(bits, step._saved)]


def orders(op, operands, needs):
    """Return the result of `op`, its graph node and its derivatives of the first three orders, as bits."""
    given = [mg.tensor(x, device="numpy") if isinstance(x, np.ndarray) else x for x in operands]
    leaves = [x.requires_grad_() for x, need in zip(given, needs, strict=True) if need and isinstance(x, mg.Tensor)]
    y = op(*given)
    found = [bits(y), step_of(y)]
    for _ in range(3 if leaves else 0):
        if not y.requires_grad:
            break
        grads = mg.grad(y, leaves, mg.ones_like(y), retain_graph=True, allow_unused=True)
        found += [*map(bits, grads)]
        grads = [g for g in mg.grad(y, leaves, mg.ones_like(y), create_graph=True, allow_unused=True) if g is not None]
        grads = [g.sum() for g in grads if g.requires_grad]
        if not grads:
            break
        y = sum(grads[1:], grads[0])
    return found


def operands_of(op, dtype):
    """Return operands for the fast path, and some near misses: other shapes, another dtype, scalars on either side."""
    samples = [x.astype(dtype) for x in np.array(points(op, count=6)).T.reshape(len(op.inputs), 2, 3)]
    corners = np.array(CORNERS, dtype)
    if len(samples) == 1:
        return [samples, [corners], [samples[0].T], [samples[0][:0]]]
    a, b = samples
    mixed = [[a, b], [a, b[0]], [a[:, :1], b[:1]], [a.T, b.T], [a, b.astype("float64")]]
    mixed += [[a, 0.75], [0.75, b], [a, 2], [2, b], [corners, corners[::-1].copy()], [corners, 0.0], [-0.0, corners]]
    return mixed


@merge_cases
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", INLINED, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_inlined_has_the_bits_and_the_step_of_the_general_way(op, dtype):
    for operands in operands_of(op, dtype):
        for needs in {(True,) * len(operands), (False, True)[: len(operands)], (True, False)[: len(operands)]}:
            fast, general = both(lambda operands=operands, needs=needs: orders(op, operands, needs))
            assert fast == general, (operands, needs)


def test_one_tensor_as_both_operands_is_inlined_alike():
    def run():
        x = mg.tensor([1.5, -0.5], requires_grad=True)
        (x * x + x / x).sum().backward()
        return bits(x.grad)

    fast, general = both(run)
    assert fast == general


def test_every_pointwise_operation_that_can_be_is_inlined():
    assert {"add", "sub", "mul", "div", "pow", "exp", "log", "tanh", "sigmoid", "relu", "neg"} <= {
        op.name for op in INLINED
    }
