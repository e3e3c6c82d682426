"""Samples of gradients: the operations that gradient rules use, differentiated to second order themselves.

Such a sample calls the gradient of another call, so its second derivatives are third derivatives of that call.
Operations that are no function's gradient are called directly.
"""

import numpy as np

from minigrad.core.op import OPS
from samples import ints, numbers, sample


def slope(name, call, u, *inputs, **options):
    """Return a sample of the gradient of a call for its first input, with upstream gradient u."""

    def gradient(F, u, *x):
        return F.autograd.grad(call(F, *x), x[0], u, create_graph=True)[0]

    return sample(f"gradient of {name}", gradient, u, *inputs, **options)


def direct(name, *inputs, **attrs):
    """Return a sample that calls an operation for which PyTorch has no function."""
    return sample(name, lambda F, *x: OPS[name](*x, **attrs), *inputs, parity=False)


x = numbers(2, 3)
SIZED = dict.fromkeys(("broadcast", "empty", "0-d"), "the shape of u differs from that of the result")
BASED = SIZED | dict.fromkeys(("sliced", "transposed"), "the gradient flows to the base, not to the intermediate view")

SAMPLES = [
    slope("expand", lambda F, x: x.expand(4, 2, 3), numbers(4, 2, 3), x, differs=SIZED),
    slope("index", lambda F, x: x[1:, ::2], numbers(1, 2), x, differs=SIZED),
    slope("unfold", lambda F, x: x.unfold(1, 2, 1), numbers(2, 2, 2), x, differs=SIZED),
    slope("as_strided", lambda F, x: x.as_strided((2, 2, 2), (1, 2, 1)), numbers(2, 2, 2), x, differs=BASED),
    slope("repeat_interleave", lambda F, x: x.repeat_interleave(2, dim=1), numbers(2, 6), x, differs=SIZED),
    slope("max", lambda F, x: x.max(dim=1).values, numbers(2), x, differs=SIZED),
    slope("layer_norm", lambda F, x, w: F.layer_norm(x, (3,), w), numbers(2, 3, seed=1), x, numbers(3), differs=SIZED),
    slope("layer_norm by the weight", lambda F, w, x: F.layer_norm(x, (3,), w), numbers(2, 3, seed=1), numbers(3), x,
          differs=SIZED),
    slope("softmax", lambda F, x: F.softmax(x, 1), numbers(2, 3, seed=1), x, differs=SIZED),
    slope("log_softmax", lambda F, x: F.log_softmax(x, 0), numbers(2, 3, seed=1), x, differs=SIZED),
    slope("attention", lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), numbers(2, 2, seed=1), numbers(2, 3),
          numbers(2, 3, seed=2), numbers(2, 2, seed=3), differs=SIZED),
    slope("cross_entropy", lambda F, x, t: F.cross_entropy(x, t), numbers(), x, ints(2, below=3), differs=SIZED),
    slope("max_pool2d", lambda F, x: F.max_pool2d(x, 2), numbers(1, 2, 2), numbers(1, 4, 4), differs=SIZED),
    slope("conv2d by the weight", lambda F, w, x: F.conv2d(x, w), numbers(1, 2, 2, 2), numbers(2, 1, 2, 2),
          numbers(1, 1, 3, 3), differs=SIZED),
    slope("cumprod", lambda F, x: x.cumprod(1), numbers(2, 3, seed=1), x, differs=SIZED),
    slope("grid_sample", lambda F, x, points: F.grid_sample(x, points, align_corners=False), numbers(1, 2, 2, 2),
          numbers(1, 2, 3, 3), numbers(1, 2, 2, 2, low=-0.6, high=0.6), parity=False),
    slope("det", lambda F, x: F.det(x), numbers(2), numbers(2, 3, 3), differs=SIZED),
    direct("pick_along", x, ints(2, below=3), dim=1, keepdim=False),
    direct("pick_at", numbers(1, 3, 3), ints(1, 2, 2, below=9), dims=2),
    direct("put_along", numbers(2), ints(2, below=3), shape=(2, 3), dim=1, keepdim=False),
    direct("recur", x, numbers(2, 3, seed=1), dim=1, reverse=False),
    direct("shift", x, dim=1, by=1, fill=0.0),
    sample("to, round trip", lambda F, x: x.to(F.float32).to(F.float64), np.array([0.5, -2.0]), eps=0.5),
]  # fmt: skip
