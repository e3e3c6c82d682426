"""Scatter reductions, index_put and writes into copies."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

rows = np.array([0, 2, 0])
x, y, at = distinct_floats(4, 3), distinct_floats(6, 3, seed=1), distinct_ints(6, 3, high=4)
ties = distinct_floats(6, 3, seed=1).round()


def scatter_reduce_sample(name, include, source=y, **options):
    return sample(
        f"scatter_reduce, {name}, {'with' if include else 'without'} itself{', ties' * (source is ties)}",
        lambda F, x, y, n: x.scatter_reduce(0, n, y, name, include_self=include),
        x, source, at, **options,
    )  # fmt: skip


SAMPLES = [
    *[scatter_reduce_sample(name, include) for name in ("sum", "mean", "amax", "amin", "prod") for include in (True,
        False)],
    *[scatter_reduce_sample(name, False, ties, kinked=True) for name in ("amax", "amin")],
    sample("scatter_reduce, some positions", lambda F, x, y, n: F.scatter_reduce(x, 0, n[:2] % 2, y[:2], "amax"),
           x, y, at),
    sample("scatter_reduce along columns", lambda F, x, y, n: F.scatter_reduce(x, 1, n % 3, y, "mean"), y, x,
           distinct_ints(4, 3, high=3)),
    sample("scatter, multiply", lambda F, x, y, n: x.scatter(0, n, y, reduce="multiply"), x, y, at, parity=False),
    sample("scatter, add", lambda F, x, n: F.scatter(x, 0, n, value=2, reduce="add"), x, at, parity=False),
    sample("scatter_reduce_", lambda F, x, y, n: (x * 1.0).scatter_reduce_(0, n, y, "sum"), x, y, at),
    sample("index_put", lambda F, x, y, n, m: F.index_put(x, (n, m), y[0, :2]), x, y, rows[:2], np.array([1, 1])),
    sample("index_put, accumulate", lambda F, x, y, n: x.index_put((n,), y[:3], accumulate=True), x, y, rows),
    sample("index_put_", lambda F, x, y, n: (x * 1.0).index_put_((n,), y[0], True), x, y, rows),
    sample("select_scatter", lambda F, x, y: F.select_scatter(x, y[0], 0, -1), x, y),
    sample("slice_scatter", lambda F, x, y: F.slice_scatter(x, y[:2], 0, 1, None, 2), x, y),
    sample("diagonal_scatter", lambda F, x, y: x.diagonal_scatter(y[0], -1), x, y),
]  # fmt: skip
