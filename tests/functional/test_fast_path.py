"""Elementwise operations on the fast path and the general one: identical bits, for every operation and order."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.op import OPS
from strategies import points

FAST_OPS = [op for op in OPS.values() if op.fast_path is not None]
SPECIAL_VALUES = (0.0, -0.0, 1.0, -2.5, 0.5, 3.0, 1e-45, 1e38, np.inf, -np.inf, np.nan, -1.0)


def run_both_paths(run):
    """Return the results of `run` on the fast path and, inside a scope, which forces it, on the general one."""
    results = []
    for block in (nullcontext(), mg.scope("seen")):
        with block:
            results.append(run())
    return results


def bits(x):
    """Return the bits of a tensor or an array, or the repr of a Python scalar or None."""
    x = x.detach().numpy() if isinstance(x, mg.Tensor) else x
    return (str(x.dtype), x.shape, x.tobytes()) if isinstance(x, np.ndarray) else repr(x)


def node_state(y):
    """Return what the graph node of `y` stores."""
    step = y.grad_fn
    if step is None:
        return y.requires_grad
    kinds = [type(x).__name__ for x in step.next_functions]
    return step.name, kinds, [*map(bits, step.constants)], [*map(bits, step._saved)]


def derivative_bits(op, operands, needs):
    """Return the result of `op`, its graph node and its derivatives of the first three orders, as bits."""
    tensors = [mg.tensor(x, device="numpy") if isinstance(x, np.ndarray) else x for x in operands]
    leaves = [x.requires_grad_() for x, need in zip(tensors, needs, strict=True) if need and isinstance(x, mg.Tensor)]
    y = op(*tensors)
    results = [bits(y), node_state(y)]
    for _ in range(3 if leaves else 0):
        if not y.requires_grad:
            break
        grads = mg.grad(y, leaves, mg.ones_like(y), retain_graph=True, allow_unused=True)
        results += [*map(bits, grads)]
        grads = [g for g in mg.grad(y, leaves, mg.ones_like(y), create_graph=True, allow_unused=True) if g is not None]
        grads = [g.sum() for g in grads if g.requires_grad]
        if not grads:
            break
        y = sum(grads[1:], grads[0])
    return results


def make_operands(op, dtype):
    """Return operands for the fast path, and some near misses: other shapes, another dtype, scalars on either side."""
    samples = [x.astype(dtype) for x in np.array(points(op, count=6)).T.reshape(len(op.inputs), 2, 3)]
    special = np.array(SPECIAL_VALUES, dtype)
    if len(samples) == 1:
        return [samples, [special], [samples[0].T], [samples[0][:0]]]
    a, b = samples
    mixed = [[a, b], [a, b[0]], [a[:, :1], b[:1]], [a.T, b.T], [a, b.astype("float64")]]
    mixed += [[a, 0.75], [0.75, b], [a, 2], [2, b], [special, special[::-1].copy()], [special, 0.0], [-0.0, special]]
    return mixed


@merge_cases
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", FAST_OPS, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fast_path_matches_the_general_path_bit_for_bit(op, dtype):
    for operands in make_operands(op, dtype):
        for needs in {(True,) * len(operands), (False, True)[: len(operands)], (True, False)[: len(operands)]}:
            fast, general = run_both_paths(lambda operands=operands, needs=needs: derivative_bits(op, operands, needs))
            assert fast == general, (operands, needs)


def test_one_tensor_as_both_operands():
    def run():
        x = mg.tensor([1.5, -0.5], requires_grad=True)
        (x * x + x / x).sum().backward()
        return bits(x.grad)

    fast, general = run_both_paths(run)
    assert fast == general


def test_common_pointwise_operations_have_a_fast_path():
    assert {"add", "sub", "mul", "div", "pow", "exp", "log", "tanh", "sigmoid", "relu", "neg"} <= {
        op.name for op in FAST_OPS
    }
