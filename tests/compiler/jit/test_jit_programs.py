"""Random programs: `mg.jit`, call by call, launch by launch and fused into one kernel, computes what eager mode does.

500 of them with `make nightly`, 42 with `make test`.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compiler.jit import step_trace
from needs import needs
from tiers import NIGHTLY

needs("hypothesis")

RUNS = 6
ROUNDS = mg.get_default_device() == "cuda"  # fusion contracts a product and a sum into one instruction there
UNARY = {
    "tanh": mg.tanh,
    "sin": mg.sin,
    "sigmoid": mg.sigmoid,
    "relu": mg.relu,
    "neg": lambda x: -x,
    "abs": mg.abs,
    "square": lambda x: x.tanh().square(),
    "sqrt": lambda x: (x.abs() + 1).sqrt(),
    "log": lambda x: (x.abs() + 1).log(),
    "gelu": mg.functional.gelu,
    "halved": lambda x: 0.5 * x + 1,
    "clamped": lambda x: x.clamp(-0.5, 0.5),
    "turned": lambda x: x.mT.contiguous().mT if x.ndim > 1 else x,
    "part": lambda x: mg.cat([x[1:], x[:1]]) if x.ndim > 1 else x,
    "softmax": lambda x: mg.functional.softmax(x, -1) if x.ndim else x,
    "sum": lambda x: x.sum(-1, keepdim=True) / 8 if x.ndim else x,
    "rows": lambda x: x.mean(0) if x.ndim > 1 else x,
    "largest": lambda x: x.amax(-1, keepdim=True) if x.ndim else x,
    "whole": lambda x: x.mean(),
    "norm": lambda x: mg.functional.layer_norm(x, x.shape[-1:]) if x.ndim else x,
    "product": lambda x: (x @ x.mT).tanh() @ x if x.ndim > 1 else x,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b.abs() + 1),
    "maximum": mg.maximum,
    "where": lambda a, b: mg.where(a > b, a, b * 0.5),
}
IN_PLACE = {
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b.tanh()),
    "sub_": lambda a, b: a.sub_(b, alpha=0.5),
    "clamp_": lambda a, b: a.clamp_(-1, 1),
}
COMPILES = pytest.mark.needs("compiled kernels")
index = st.integers(0, 100)
lines = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), index, index),
    st.tuples(st.sampled_from(sorted(BINARY)), index, index),
    st.tuples(st.sampled_from(sorted(IN_PLACE)), index, index),
)
programs = st.tuples(
    st.sampled_from([(4, 16), (3, 5), (2, 3, 32), (64, 48), (1, 16)]), st.lists(lines, min_size=2, max_size=14), index
)


class Program:
    """A training step made of `lines`: each applies a function to results of earlier lines."""

    def __init__(self, shape, lines, seed):
        mg.manual_seed(seed)
        self.shape, self.lines = shape, lines
        self.w = mg.randn(*shape).requires_grad_()
        self.b = mg.randn(shape[-1]).requires_grad_()
        update = mg.optim.SGD if ROUNDS else mg.optim.Adam  # Adam amplifies rounding errors around 0
        self.optimizer = update([self.w, self.b], lr=0.01)

    def __call__(self, x):
        tensors = [x * 1, self.w, self.b, x.sum(-1, keepdim=True) / 8]
        for name, a, b in self.lines:
            a, b = tensors[a % len(tensors)], tensors[b % len(tensors)]
            if name in UNARY:
                tensors.append(UNARY[name](a))
            elif name in BINARY:
                tensors.append(BINARY[name](a, b))
            elif mg.broadcast_shapes(a.shape, b.shape) == a.shape and not a.is_leaf:
                IN_PLACE[name](a, b)
        self.optimizer.zero_grad()
        loss = sum([one.mean() for one in tensors])
        loss.backward()
        self.optimizer.step()
        return loss, tensors[-1].detach()


def trained(program, wrap):
    """Return the results of the program in some runs; or why it is refused."""
    shape, lines, seed = program
    instance = Program(shape, lines, seed)
    step, results = wrap(instance), []
    for _ in range(RUNS):
        try:
            results += [x.detach().numpy().copy() for x in step(mg.randn(*shape))]
        except RuntimeError as refusal:
            return str(refusal)
    return [*results, *[x.detach().numpy() for x in (instance.w, instance.b, instance.w.grad)]]


def compare(program):
    actual, expected = trained(program, mg.jit), trained(program, lambda step: step)
    if isinstance(actual, str) or isinstance(expected, str):
        assert actual == expected
        return
    for actual_array, expected_array in zip(actual, expected, strict=True):
        if ROUNDS:
            np.testing.assert_allclose(actual_array, expected_array, rtol=1e-4, atol=1e-5)
        else:
            assert repr(actual_array.tolist()) == repr(expected_array.tolist())


@pytest.mark.slow
@settings(max_examples=440 if NIGHTLY else 12)
@given(programs)
def test_launched_it_is_what_eager_computes(program):
    compare(program)


@COMPILES
@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "examples"), [(0, 50), (step_trace.MAX_MERGED_LAUNCHES, 10)], ids=["fused", "joined"]
)
def test_compiled_it_is_what_eager_computes(limit, examples, monkeypatch):
    monkeypatch.setattr(step_trace, "MERGE_AFTER_REPLAYS", 1)
    monkeypatch.setattr(step_trace, "MAX_MERGED_LAUNCHES", limit)
    settings(max_examples=examples if NIGHTLY else examples // 10)(given(programs)(compare))()
