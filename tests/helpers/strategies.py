"""Sample points of each op and random graphs, shared by the tests of Values and tensors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import minigrad as mg
from minigrad.core.op import Op

# Every tolerance of the suite, with its reason.
EXACT = 0.0  # the same arithmetic in the same order
ROUNDING = 1e-12  # float64: the same formula with another order of operations
FIRST = {"atol": 1e-7, "rtol": 1e-6}  # a central difference of step 1e-6
SECOND = {"atol": 1e-6, "rtol": 1e-5}  # the same for a gradient, whose values are larger and rounded more often
THIRD = {"atol": 1e-4, "rtol": 1e-4}  # a second gradient: values in the hundreds, sums of many products
PARITY = {"float64": 1e-12, "float32": 1e-5}  # relative to the largest element of a result, as summation orders differ
RELATIVE = {"float64": 1e-12, "float32": 1e-6}  # relative to each element; for gradients to at least 1
PYTORCH = 1e-12  # float64: libm and PyTorch's vectorised functions differ in the last digits
TRAJECTORY = 1e-11  # float64: the same after 100 steps, each starting from the rounded result of the last
SINGLE = 1e-6  # float64, where PyTorch stores float32: NAdam's product of momenta
PROGRAM = 1e-4  # float32: models, their gradients and a few training steps in two libraries
BFLOAT16 = 4e-3  # a step of PyTorch's Muon: 15 products of 8-bit significands, times a learning rate of 0.1
PICTURE = 1e-5  # float32: an image in [0, 1], sampled where a network predicted

ELEMENTWISE = mg.ops.elementwise.ELEMENTWISE + mg.ops.activation.ACTIVATIONS
DIFFERENTIABLE = [op for op in ELEMENTWISE if op.differentiable]
# The attributes with which tests call ops that have any.
ATTRS: dict[str, dict[str, float]] = {
    "clamp": {"min": -1.0, "max": 1.0},
    "elu": {"alpha": 1.5},
    "hardtanh": {"min_val": -1.0, "max_val": 1.0},
    "leaky_relu": {"negative_slope": 0.1},
    "step": {"alpha": 0.1},
}


def torch_equivalent(op: Op) -> Callable[..., Any]:
    """Return the equivalent function of PyTorch, which usually has the same name."""
    import torch

    exceptions: dict[str, Callable[..., Any]] = {
        "gelu_backward": torch.ops.aten.gelu_backward,
        "gelu_tanh_backward": lambda a, b: torch.ops.aten.gelu_backward(a, b, approximate="tanh"),
        "relu_backward": lambda a, b: torch.ops.aten.threshold_backward(a, b, 0),
        "gelu_tanh": lambda a: torch.nn.functional.gelu(a, approximate="tanh"),
        "prelu": torch._prelu_kernel,  # the public function takes a weight per channel
        "step": lambda a, alpha: torch.where(a > 0, 1.0, alpha * torch.ones_like(a)) + 0.0 * a.floor().clamp(-1, 1),
    }
    function = exceptions.get(op.name) or getattr(torch, op.name, None) or getattr(torch.nn.functional, op.name)
    return cast(Callable[..., Any], function)


def points(op: Op, count: int = 20, seed: int = 0) -> list[tuple[float, ...]]:
    """Return `count` operand tuples inside the op's domain, at least 0.01 from its kinks and from ties."""
    generator = random.Random(f"{op.name}{seed}")
    samples: list[tuple[float, ...]] = []
    while len(samples) < count:
        point = tuple(generator.uniform(d.low, d.high) for d in op.domain)
        near_kink = any(abs(x - kink) < 0.01 for x, d in zip(point, op.domain, strict=True) for kink in d.kinks)
        near_tie = any(abs(x - y) < 0.01 for i, x in enumerate(point) for y in point[:i])
        if not near_kink and not near_tie:
            samples.append(point)
    return samples


def as_value_function(op: Op) -> Callable[..., mg.Value]:
    """Return `op` as a function of Values; the sign of a Value decides a condition, which is not differentiable."""
    is_differentiable = [rule is not None for rule in op.vjp]

    def function(*x: mg.Value) -> mg.Value:
        operands = [v if is_free else float(v) > 0 for v, is_free in zip(x, is_differentiable, strict=True)]
        result: mg.Value = op(*operands, **ATTRS.get(op.name, {}))
        return result

    function.__name__ = op.name
    return function


EXPRESSIONS: tuple[Callable[..., mg.Value], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: (a * b).tanh(),
    lambda a, b: a / (b * b + 1.0),
    lambda a, b: (a * a + 0.5) ** b.tanh(),
    lambda a, b: a.sin() - 2.0 * b.cos(),
    lambda a, b: a.max(b) * 0.5,
    lambda a, b: (-a).sigmoid() - b,
    lambda a, b: (a * a + 1.0).log() + b,
    lambda a, b: a.relu() + abs(b),
    lambda a, b: a - (b * b + 0.1).sqrt().min(3.0),
    lambda a, b: a + b.tanh().exp(),
)


def random_expression(generator: random.Random, leaves: Sequence[mg.Value], size: int) -> mg.Value:
    """Return a graph of `size` pieces over `leaves`, with much reuse and moderate values."""
    pool = list(leaves)
    for _ in range(size):
        pool.append(generator.choice(EXPRESSIONS)(generator.choice(pool), generator.choice(pool)))
    total = pool[-1]
    for value in pool[len(leaves) : -1]:
        total = total + value
    return total
