"""Samples of gradients: the operations that gradient rules use, differentiated to second order themselves.

Such a sample calls the gradient of another call, so its second derivatives are third derivatives of that call.
Operations that are no function's gradient are called directly.
"""

import numpy as np

from minigrad.core.op import OPS
from samples import distinct_floats, distinct_ints, sample


def gradient_sample(name, call, u, *inputs, **options):
    """Return a sample of the gradient of a call for its first input, with upstream gradient u."""

    def gradient(F, u, *x):
        return F.autograd.grad(call(F, *x), x[0], u, create_graph=True)[0]

    return sample(f"gradient of {name}", gradient, u, *inputs, **options)


def direct_call(name, *inputs, **attrs):
    """Return a sample that calls an operation for which PyTorch has no function."""
    return sample(name, lambda F, *x: OPS[name](*x, **attrs), *inputs, parity=False)


x = distinct_floats(2, 3)
OTHER_SHAPE = dict.fromkeys(("broadcast", "empty", "0-d"), "the shape of u differs from that of the result")
OTHER_BASE = OTHER_SHAPE | dict.fromkeys(
    ("sliced", "transposed"), "the gradient flows to the base, not to the intermediate view"
)

SAMPLES = [
    gradient_sample("expand", lambda F, x: x.expand(4, 2, 3), distinct_floats(4, 2, 3), x, differs=OTHER_SHAPE),
    gradient_sample("index", lambda F, x: x[1:, ::2], distinct_floats(1, 2), x, differs=OTHER_SHAPE),
    gradient_sample("unfold", lambda F, x: x.unfold(1, 2, 1), distinct_floats(2, 2, 2), x, differs=OTHER_SHAPE),
    gradient_sample("as_strided", lambda F, x: x.as_strided((2, 2, 2), (1, 2, 1)), distinct_floats(2, 2, 2), x,
        differs=OTHER_BASE),
    gradient_sample("repeat_interleave", lambda F, x: x.repeat_interleave(2, dim=1), distinct_floats(2, 6), x,
        differs=OTHER_SHAPE),
    gradient_sample("max", lambda F, x: x.max(dim=1).values, distinct_floats(2), x, differs=OTHER_SHAPE),
    gradient_sample("layer_norm", lambda F, x, w: F.layer_norm(x, (3,), w), distinct_floats(2, 3, seed=1), x,
        distinct_floats(3), differs=OTHER_SHAPE),
    gradient_sample("layer_norm by the weight", lambda F, w, x: F.layer_norm(x, (3,), w), distinct_floats(2, 3, seed=1),
        distinct_floats(3), x,
          differs=OTHER_SHAPE),
    gradient_sample("softmax", lambda F, x: F.softmax(x, 1), distinct_floats(2, 3, seed=1), x, differs=OTHER_SHAPE),
    gradient_sample("log_softmax", lambda F, x: F.log_softmax(x, 0), distinct_floats(2, 3, seed=1), x,
        differs=OTHER_SHAPE),
    gradient_sample("attention", lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), distinct_floats(2, 2,
        seed=1), distinct_floats(2, 3),
          distinct_floats(2, 3, seed=2), distinct_floats(2, 2, seed=3), differs=OTHER_SHAPE),
    gradient_sample("cross_entropy", lambda F, x, t: F.cross_entropy(x, t), distinct_floats(), x, distinct_ints(2,
        high=3), differs=OTHER_SHAPE),
    gradient_sample("max_pool2d", lambda F, x: F.max_pool2d(x, 2), distinct_floats(1, 2, 2), distinct_floats(1, 4, 4),
        differs=OTHER_SHAPE),
    gradient_sample("conv2d by the weight", lambda F, w, x: F.conv2d(x, w), distinct_floats(1, 2, 2, 2),
        distinct_floats(2, 1, 2, 2),
          distinct_floats(1, 1, 3, 3), differs=OTHER_SHAPE),
    gradient_sample("cumprod", lambda F, x: x.cumprod(1), distinct_floats(2, 3, seed=1), x, differs=OTHER_SHAPE),
    gradient_sample("grid_sample", lambda F, x, points: F.grid_sample(x, points, align_corners=False),
        distinct_floats(1, 2, 2, 2),
          distinct_floats(1, 2, 3, 3), distinct_floats(1, 2, 2, 2, low=-0.6, high=0.6), parity=False),
    gradient_sample("det", lambda F, x: F.det(x), distinct_floats(2), distinct_floats(2, 3, 3), differs=OTHER_SHAPE),
    direct_call("pick_along", x, distinct_ints(2, high=3), dim=1, keepdim=False),
    direct_call("pick_at", distinct_floats(1, 3, 3), distinct_ints(1, 2, 2, high=9), dims=2),
    direct_call("put_along", distinct_floats(2), distinct_ints(2, high=3), shape=(2, 3), dim=1, keepdim=False),
    direct_call("recur", x, distinct_floats(2, 3, seed=1), dim=1, reverse=False),
    direct_call("shift", x, dim=1, by=1, fill=0.0),
    sample("to, round trip", lambda F, x: x.to(F.float32).to(F.float64), np.array([0.5, -2.0]), eps=0.5),
]  # fmt: skip
