"""Unique elements and counts."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

n, few = distinct_ints(12, high=5), distinct_ints(3, 4, high=4)
slices = distinct_ints(6, 3, 2, high=2)
kinds = np.array([[1.5, 0.5, 1.5], [2.5, 0.5, 0.5]])

OF_NOTHING = {"empty": "PyTorch's sums of nothing are ints, whatever the weights"}

SAMPLES = [
    sample("bincount", lambda F, n: F.bincount(n), n),
    sample("bincount, minlength", lambda F, n: n.bincount(minlength=8), n),
    sample("bincount of nothing", lambda F, n: F.bincount(n[:0]), n),
    sample("bincount, weights", lambda F, n, w: F.bincount(n, w.double()), n, distinct_floats(12), differs=OF_NOTHING),
    sample("unique", lambda F, x: F.unique(x), kinds),
    sample("unique, inverse", lambda F, x: x.unique(return_inverse=True), kinds),
    sample("unique, inverse and counts", lambda F, n: F.unique(n, True, True, True), few),
    *[
        sample(
            f"{name} of slices, dim={dim}",
            lambda F, n, name=name, k=k, dim=dim: getattr(F, name)(n, *[True] * k, dim=dim),
            slices,
        )
        for name, k in (("unique", 3), ("unique_consecutive", 2))
        for dim in (0, 1, -1)
    ],
    sample("unique_consecutive", lambda F, n: F.unique_consecutive(n // 2, True, True), distinct_ints(7, high=7)),
    sample("isin", lambda F, n, m: F.isin(n, m), few, np.array([0, 3])),
    sample("isin, invert", lambda F, x, y: F.isin(x, y, invert=True), kinds, np.array([0.5, 7.0])),
]
