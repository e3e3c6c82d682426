"""Comparison functions beyond the operators: closeness, and maxima that ignore nan."""

import numpy as np

from samples import distinct_floats, sample

y = distinct_floats(3, 4, seed=1)
x = distinct_floats(3, 4)
gaps = np.where(y > 1.5, np.nan, x)
ends = np.array([[np.inf, -np.inf, 0.0], [-0.0, 2.5, np.nan]])

SAMPLES = [
    sample("fmax", lambda F, x, y: F.fmax(x, y), gaps, y, kinked=True),
    sample("fmin", lambda F, x, y: x.fmin(y), gaps, y, kinked=True),
    sample("isposinf", lambda F, x: F.isposinf(x), ends),
    sample("isneginf", lambda F, x: x.isneginf(), ends),
    sample("signbit", lambda F, x: F.signbit(x), ends),
]  # fmt: skip
