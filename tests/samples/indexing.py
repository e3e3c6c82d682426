"""Reading and writing by index."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

MASK = np.array([[True, False, True, False], [False, False, True, True], [True, False, False, True]])
REPEATED_INDEX = np.array([2, 0, 2, 1])  # repeats the index 2
# For shape (3, 4), along dimension 0; repeats an index in one column.
COORDINATES_ALONG_0 = np.array([[0, 2, 1, 0], [2, 2, 0, 1]])


def getitem_sample(name, key):
    return sample(f"x[{name}]", lambda F, x: x[key], distinct_floats(3, 4, 2))


def put(x, key, value):
    y = x.clone()
    y[key] = value
    return y


def put_in_view(x, value):
    y = x.clone()
    y.permute(1, 0)[1][[2, 0]] = value
    return y


def setitem_sample(name, key, *shape):
    return [
        sample(
            f"x[{name}] = a tensor",
            lambda F, x, v: put(x, key, v),
            distinct_floats(3, 4, 2),
            distinct_floats(*shape, seed=1),
        ),
        sample(f"x[{name}] = a scalar", lambda F, x: put(x, key, 2.5), distinct_floats(3, 4, 2)),
        sample(
            f"x[{name}] = 0-d tensor",
            lambda F, x, v: put(x, key, v.amax()),
            distinct_floats(3, 4, 2),
            distinct_floats(1),
        ),
    ]


def with_index(name, call, index, *inputs):
    return sample(name, call, distinct_floats(3, 4), index, *inputs)


UNIQUE_INDEX = np.array([[1, 0, 2, 1], [2, 2, 0, 0]])  # along dimension 0, without repeated positions

# Differences from PyTorch.
REPEATED_WRITES = {
    "broadcast": "of two writes to one position, PyTorch gives both the gradient, minigrad only the last"
}
UNCHECKED_SHAPE = dict.fromkeys(
    ("broadcast", "empty"), "PyTorch does not check the shape of elements that it does not write"
)
NEEDS_VIEW = dict.fromkeys(("transposed", "sliced", "broadcast"), "PyTorch needs an input that can be viewed as 1-d")

SAMPLES = [
    *[
        getitem_sample(name, key)
        for name, key in {
            "[1, 0]": [1, 0],
            "[2, -1, 2]": [2, -1, 2],
            ":, [1, 0]": (slice(None), [1, 0]),
            "..., [1, 1]": (..., [1, 1]),
            "[0, 2], [1, 3]": ([0, 2], [1, 3]),
            "[[0], [2]], [1, 3]": ([[0], [2]], [1, 3]),
            "[0, 1], :, [0, 1]": ([0, 1], slice(None), [0, 1]),
            "0, :, [0, 1]": (0, slice(None), [0, 1]),
            "[0, 1], None, [0, 1]": ([0, 1], None, [0, 1]),
            "None, [0, 1]": (None, [0, 1]),
            "[0, 1], 0": ([0, 1], 0),
            "1:, [3, 0], 0:1": (slice(1, None), [3, 0], slice(0, 1)),
            "::2, [0, -1]": (slice(None, None, 2), [0, -1]),
            "True": True,
            "True, [0, 1]": (True, [0, 1]),
            "[True, False, True]": [True, False, True],
            ":, [True, False, True, False]": (slice(None), [True, False, True, False]),
            "[True, False, True], :, 0": ([True, False, True], slice(None), 0),
            "[True, False, True], :, [1, 0]": ([True, False, True], slice(None), [1, 0]),
            "range(2)": range(2),
        }.items()
    ],
    sample("x[[]]", lambda F, x: x[[]], distinct_floats(3, 4), kinked=True),  # there is nothing to check
    sample("x[False]", lambda F, x: x[False], distinct_floats(3, 4), kinked=True),
    sample("x[index]", lambda F, x, i: x[i], distinct_floats(3, 4), REPEATED_INDEX),
    sample(
        "x[index, index]",
        lambda F, x, i, j: x[i, j],
        distinct_floats(3, 4),
        REPEATED_INDEX,
        distinct_ints(4, high=3, seed=2),
    ),
    sample("x[int32]", lambda F, x, i: x[i], distinct_floats(3, 4), REPEATED_INDEX.astype(np.int32)),
    sample("x[one int]", lambda F, x, i: x[i.sum(), 1:], distinct_floats(3, 4), np.array([1, 0])),
    sample("x[from an int tensor on]", lambda F, x, i: x[i.sum() :], distinct_floats(3, 4), np.array([1, 0])),
    sample("x[mask]", lambda F, x, m: x[m], distinct_floats(3, 4), MASK),
    sample("x[mask of rows]", lambda F, x, m: x[m], distinct_floats(3, 4), MASK[:, 0]),
    sample("x[:, mask, index]", lambda F, x: x[:, [True, False, True, True], [1, 0, 0]], distinct_floats(2, 4, 2)),
    sample("x[x > 0]", lambda F, x: x[x > 0], distinct_floats(3, 4)),
    sample("x[one bool]", lambda F, x: x[x.sum() > 0], distinct_floats(3, 4), kinked=True),
    *setitem_sample("[1, 0]", [1, 0], 2, 4, 2),
    *setitem_sample("[2, 0], rows broadcast", [2, 0], 4, 2),
    *setitem_sample(":, [1, -1]", (slice(None), [1, -1]), 3, 2, 2),
    *setitem_sample("[0, 1], :, [0, 1]", ([0, 1], slice(None), [0, 1]), 2, 4),
    *setitem_sample("[[0], [2]], [1, 3]", ([[0], [2]], [1, 3]), 2, 2, 2),
    *setitem_sample("1:, [3, 0], 0", (slice(1, None), [3, 0], 0), 2, 2),
    *setitem_sample("True", True, 1, 3, 4, 2),
    sample(
        "x[False] = a tensor",
        lambda F, x, v: put(x, False, v),
        distinct_floats(3, 4),
        distinct_floats(4, seed=1),
        differs=UNCHECKED_SHAPE,
    ),
    sample("x[False] = a scalar", lambda F, x: put(x, False, 2.5), distinct_floats(3, 4)),
    *setitem_sample("[True, False, True]", [True, False, True], 2, 4, 2),
    *setitem_sample("1", 1, 1, 1, 4, 2),
    *setitem_sample("..., ::2, 1", (..., slice(None, None, 2), 1), 3, 2),
    sample(
        "x[mask] = a tensor", lambda F, x, m, v: put(x, m, v), distinct_floats(3, 4), MASK, distinct_floats(6, seed=1)
    ),
    sample("x[mask] = a scalar", lambda F, x, m: put(x, m, 0.5), distinct_floats(3, 4), MASK),
    sample(
        "x[1][index] = a tensor", lambda F, x, v: put_in_view(x, v), distinct_floats(3, 4), distinct_floats(2, seed=1)
    ),
    with_index("gather", lambda F, x, i: F.gather(x, 0, i), COORDINATES_ALONG_0),
    with_index("gather, dim -1", lambda F, x, i: x.gather(-1, i), distinct_ints(3, 5, high=4)),
    with_index("gather, smaller index", lambda F, x, i: F.gather(x, 1, i), distinct_ints(2, 5, high=4)),
    with_index("gather, int32", lambda F, x, i: F.gather(x, 0, i), COORDINATES_ALONG_0.astype(np.int32)),
    sample("gather of a line", lambda F, x, i: F.gather(x, 0, i), distinct_floats(4), distinct_ints(6, high=4)),
    sample(
        "gather in three dimensions",
        lambda F, x, i: F.gather(x, 1, i),
        distinct_floats(2, 3, 2),
        distinct_ints(2, 4, 2, high=3),
    ),
    sample(
        "scatter",
        lambda F, x, i, v: F.scatter(x, 0, i, v),
        distinct_floats(3, 4),
        UNIQUE_INDEX,
        distinct_floats(2, 4, seed=1),
        differs=REPEATED_WRITES,
    ),
    sample(
        "scatter, larger src",
        lambda F, x, i, v: x.scatter(1, i, v[:, :2]),
        distinct_floats(3, 4),
        np.array([[3, 0], [1, 2]]),
        distinct_floats(2, 3, seed=1),
    ),
    with_index("scatter, a scalar", lambda F, x, i: F.scatter(x, 0, i, 1.5), COORDINATES_ALONG_0),
    with_index("scatter, value=", lambda F, x, i: F.scatter(x, 0, i, value=1.5), COORDINATES_ALONG_0),
    sample(
        "scatter_",
        lambda F, x, i, v: x.clone().scatter_(-2, i, v),
        distinct_floats(3, 4),
        UNIQUE_INDEX,
        distinct_floats(2, 4, seed=1),
        differs=REPEATED_WRITES,
    ),
    with_index("scatter_, a scalar", lambda F, x, i: x.clone().scatter_(0, i, 1.5), COORDINATES_ALONG_0),
    sample(
        "scatter_add",
        lambda F, x, i, v: F.scatter_add(x, 0, i, v),
        distinct_floats(3, 4),
        COORDINATES_ALONG_0,
        distinct_floats(2, 4, seed=1),
    ),
    sample(
        "scatter_add, larger src",
        lambda F, x, i, v: x.scatter_add(1, i, v[:2]),
        distinct_floats(3, 4),
        distinct_ints(2, 3, high=2),
        distinct_floats(3, 3, seed=1),
    ),
    sample(
        "scatter_add_",
        lambda F, x, i, v: x.clone().scatter_add_(0, i, v),
        distinct_floats(3, 4),
        COORDINATES_ALONG_0,
        distinct_floats(2, 4),
    ),
    with_index("index_select", lambda F, x, i: F.index_select(x, 0, i), REPEATED_INDEX),
    with_index("index_select, dim -1", lambda F, x, i: x.index_select(-1, i), REPEATED_INDEX),
    sample(
        "index_add",
        lambda F, x, i, v: F.index_add(x, 0, i, v),
        distinct_floats(3, 4),
        REPEATED_INDEX,
        distinct_floats(4, 4, seed=1),
    ),
    sample(
        "index_add, alpha",
        lambda F, x, i, v: x.index_add(1, i, v, alpha=2),
        distinct_floats(3, 4),
        REPEATED_INDEX,
        distinct_floats(3, 4, seed=1),
    ),
    sample(
        "index_add_",
        lambda F, x, i, v: x.clone().index_add_(0, i, v),
        distinct_floats(3, 4),
        REPEATED_INDEX,
        distinct_floats(4, 4, seed=1),
    ),
    sample(
        "index_copy",
        lambda F, x, i, v: F.index_copy(x, 1, i, v),
        distinct_floats(3, 4),
        REPEATED_INDEX[1:],
        distinct_floats(3, 3, seed=1),
        differs=REPEATED_WRITES,
    ),
    sample(
        "index_copy_",
        lambda F, x, i, v: x.clone().index_copy_(0, i, v),
        distinct_floats(3, 4),
        REPEATED_INDEX[2:],
        distinct_floats(2, 4),
        differs=REPEATED_WRITES,
    ),
    with_index("index_fill", lambda F, x, i: F.index_fill(x, 1, i, 2), REPEATED_INDEX),
    with_index("index_fill, from the end", lambda F, x, i: x.index_fill(0, i, 2.5), REPEATED_INDEX - 3),
    with_index(
        "index_fill, a tensor", lambda F, x, i, v: x.index_fill(0, i, v.amax()), REPEATED_INDEX[:2], distinct_floats(1)
    ),
    with_index("index_fill_", lambda F, x, i: x.clone().index_fill_(0, i, 2), REPEATED_INDEX),
    with_index("take", lambda F, x, i: F.take(x, i), np.array([[0, 11], [3, -12]])),
    with_index("take_along_dim", lambda F, x, i: F.take_along_dim(x, i, 1), distinct_ints(3, 2, high=4)),
    with_index(
        "take_along_dim, broadcast", lambda F, x, i: x.take_along_dim(i, dim=1), distinct_ints(1, 3, high=4) - 2
    ),
    sample(
        "take_along_dim, input broadcast",
        lambda F, x, i: F.take_along_dim(x, i, 0),
        distinct_floats(3, 1),
        distinct_ints(2, 4, high=3),
    ),
    sample(
        "take_along_dim, without dim",
        lambda F, x, i: F.take_along_dim(x, i),
        distinct_floats(3, 4),
        distinct_ints(3, 2, high=12),
        differs=NEEDS_VIEW,
    ),
    sample("embedding", lambda F, i, w: F.embedding(i, w), distinct_ints(2, 3, high=4), distinct_floats(4, 3)),
    sample(
        "embedding, padding_idx",
        lambda F, i, w: F.embedding(i, w, padding_idx=-3),
        distinct_ints(5, high=4),
        distinct_floats(4, 3),
        differs={"empty": "PyTorch's refusal is an AssertionError"},
        kinked=True,
    ),
    sample("one_hot", lambda F, i: F.one_hot(i, 5), distinct_ints(2, 3, high=4)),
    sample("one_hot, counted", lambda F, i: F.one_hot(i), distinct_ints(2, 3, high=4)),
    with_index("masked_fill", lambda F, x, m: F.masked_fill(x, m, 2.5), MASK),
    with_index("masked_fill, broadcast", lambda F, x, m: x.masked_fill(m, 2), MASK[0]),
    with_index("masked_fill, a tensor", lambda F, x, m, v: x.masked_fill(m, v.amax()), MASK, distinct_floats(1)),
    with_index("masked_fill_", lambda F, x, m: x.clone().masked_fill_(m, -1), MASK),
    with_index("masked_select", lambda F, x, m: F.masked_select(x, m), MASK),
    with_index("masked_select, broadcast", lambda F, x, m: x.masked_select(m), MASK[0]),
    sample(
        "masked_scatter",
        lambda F, x, m, v: F.masked_scatter(x, m, v),
        distinct_floats(3, 4),
        MASK,
        distinct_floats(2, 4, seed=1),
    ),
    sample(
        "masked_scatter_",
        lambda F, x, m, v: x.clone().masked_scatter_(m, v),
        distinct_floats(3, 4),
        MASK[0],
        distinct_floats(8),
    ),
    sample("nonzero", lambda F, x: F.nonzero(x), distinct_ints(3, 4, high=3)),
    sample("nonzero of floats", lambda F, x: (x > 0).nonzero(), distinct_floats(3, 4)),
    sample("nonzero, as_tuple", lambda F, x: F.nonzero(x, as_tuple=True), distinct_ints(3, 4, high=3)),
    sample("argwhere", lambda F, x: F.argwhere(x), distinct_ints(3, 4, high=3)),
    sample("count_nonzero", lambda F, x: F.count_nonzero(x), distinct_ints(3, 4, high=3)),
    sample("count_nonzero, dim", lambda F, x: x.count_nonzero(dim=-1), distinct_ints(3, 4, high=3)),
    sample("count_nonzero, dims", lambda F, x: x.count_nonzero((0, -1)), distinct_ints(3, 4, high=3)),
]
