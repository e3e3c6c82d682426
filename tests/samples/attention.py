"""Softmax and attention."""

from types import MappingProxyType

import numpy as np

from samples import distinct_floats, sample

Q, K, V = distinct_floats(2, 3, 2), distinct_floats(2, 4, 2, seed=1), distinct_floats(2, 4, 3, seed=2)
MASK = np.array([[True, True, False, True], [False, True, True, False], [True, False, False, False]])
HIDDEN = np.array([[True, True, False, True], [False, False, False, False], [True, False, True, False]])


INTS = ("int64", "int32", "uint8", "bool")
EMPTY = {"empty": "PyTorch does not check the sizes of what is empty"}
COARSE = {"broadcast": "equal rows: the gradients nearly cancel, with few accurate digits in PyTorch's float32"}
ZERO = {"broadcast": "equal elements: a gradient of 0 up to rounding errors"}


def attention(name, inputs, differs=MappingProxyType({}), **keywords):
    return sample(name, lambda F, *x: F.scaled_dot_product_attention(*x, **keywords), *inputs, differs=differs)


SAMPLES = [
    sample("softmax", lambda F, x: F.softmax(x, dim=1), distinct_floats(3, 4)),
    sample("softmax along the first dimension", lambda F, x: F.softmax(x, 0), distinct_floats(3, 4, 2), differs=ZERO),
    sample("softmax along a negative dimension", lambda F, x: x.softmax(-2), distinct_floats(2, 3, 4)),
    sample("softmax as float64", lambda F, x: F.softmax(x, dim=-1, dtype=F.float64), distinct_floats(3, 4)),
    sample("softmax of one element", lambda F, x: F.softmax(x, 0), distinct_floats(1)),
    sample("softmax of large values", lambda F, x: F.softmax(x, 0), distinct_floats(5, low=900, high=903)),
    sample("log_softmax", lambda F, x: F.log_softmax(x, dim=1), distinct_floats(3, 4)),
    sample(
        "log_softmax along the first dimension", lambda F, x: x.log_softmax(0), distinct_floats(4, 3, 2), differs=ZERO
    ),
    sample("log_softmax as float64", lambda F, x: F.log_softmax(x, dim=-1, dtype=F.float64), distinct_floats(3, 4)),
    sample(
        "log_softmax of distant values",
        lambda F, x: F.log_softmax(x, 0),
        distinct_floats(5, low=-300, high=300),
        differs=ZERO,
    ),
    sample("softmin", lambda F, x: F.softmin(x, dim=1), distinct_floats(3, 4)),
    attention("attention", (Q, K, V)),
    attention("attention of matrices", (Q[0], K[0], V[0]), ZERO),
    attention("attention, scaled", (Q, K, V), scale=0.3),
    attention("attention, scaled by 0", (Q, K, V), scale=0.0),
    attention("attention, causal", (Q, K, V), is_causal=True),
    attention("attention, causal with more queries than keys", (K, Q, V[:, :3]), is_causal=True),
    attention(
        "attention, 4-d",
        (distinct_floats(2, 2, 3, 2), distinct_floats(2, 2, 4, 2, seed=1), distinct_floats(2, 2, 4, 2, seed=2)),
    ),
    attention(
        "attention, broadcast",
        (distinct_floats(2, 1, 3, 2), distinct_floats(2, 4, 2, seed=1), distinct_floats(2, 4, 2, seed=2)),
        EMPTY,
    ),
    attention(
        "attention, batches of values alone",
        (distinct_floats(3, 2), distinct_floats(4, 2, seed=1), distinct_floats(2, 4, 2, seed=2)),
        EMPTY,
    ),
    attention("attention, a mask of floats", (Q, K, V, distinct_floats(3, 4, seed=3)), EMPTY | COARSE),
    attention("attention, a mask a key", (Q, K, V, distinct_floats(4, seed=3)), EMPTY),
    attention("attention, a mask a batch", (Q, K, V, distinct_floats(2, 1, 4, seed=3)), COARSE),
    attention(
        "attention, no keys",
        (Q, K[:, :0], V[:, :0]),
        dict.fromkeys(INTS, "PyTorch does not check the type of what is empty"),
    ),
    sample(
        "attention, a mask of bools",
        lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0),
        *(Q, K, V, MASK.astype(np.int64)),
        differs=EMPTY,
    ),
    sample(
        "attention, a query that sees nothing",
        lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0),
        *(Q, K, V, HIDDEN.astype(np.int64)),
        differs=EMPTY,
    ),
    attention(
        "attention, grouped heads",
        (distinct_floats(1, 4, 2, 2), distinct_floats(1, 2, 3, 2, seed=1), distinct_floats(1, 2, 3, 2, seed=2)),
        enable_gqa=True,
    ),
    attention(
        "attention, heads grouped by key and value apart",
        (
            distinct_floats(4, 2, 2),
            distinct_floats(2, 3, 2, seed=1),
            distinct_floats(1, 3, 2, seed=2),
            distinct_floats(4, 2, 3, seed=3),
        ),
        EMPTY,
        enable_gqa=True,
    ),
]
