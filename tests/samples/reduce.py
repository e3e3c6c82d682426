"""Reductions: over all, one and several dimensions. Their corners are in test_reduce."""

import math

import numpy as np

from samples import distinct_floats, sample

x = distinct_floats(2, 3, 4)
few = distinct_floats(3, 4, low=0.5, high=2.0)

shares = distinct_floats(3, 4, low=0.1, high=0.9)
table = distinct_floats(3, 4)
gaps = np.where(distinct_floats(3, 4, low=0.1, high=0.9) > 0.6, np.nan, table)

SAMPLES = [
    sample("sum", lambda F, x: x.sum(), x),
    sample("sum of a dimension", lambda F, x: F.sum(x, dim=-1, keepdim=True), x),
    sample("sum as another type", lambda F, x: x.sum(0, dtype=F.float64), x),
    sample("mean of two dimensions", lambda F, x: x.mean((0, -1)), x),
    sample("var", lambda F, x: F.var(x, dim=1, correction=0), x),
    sample("std", lambda F, x: x.std(dim=(0, 2), keepdim=True), x),
    sample("var, unbiased", lambda F, x: (x.var(1, False), x.var(True), x.std(unbiased=False)), x),
    sample("std, unbiased, keepdim", lambda F, x: F.std(x, (0, 1), True, True), x),
    sample("var_mean", lambda F, x: F.var_mean(x, dim=1, unbiased=False), x),
    sample("std_mean", lambda F, x: F.std_mean(x, (0, 2), correction=0, keepdim=True), x),
    sample("logsumexp", lambda F, x: F.logsumexp(x, (0, 1)), x),
    sample("norm", lambda F, x: F.norm(x, dim=1), few),
    sample("norm, p = 3", lambda F, x: F.norm(x, 3, dim=(0, 1)), few),
    sample("norm, p = 1.5", lambda F, x: F.norm(x, 1.5, dim=0), few),
    sample("norm, p = inf", lambda F, x: F.norm(x, math.inf, dim=1), few),
    sample("amax", lambda F, x: x.amax((0, 1)), x),
    sample("amin", lambda F, x: x.amin(-1, keepdim=True), x),
    sample("max", lambda F, x: x.max(), x),
    sample("max of a dimension", lambda F, x: tuple(x.max(dim=1)), x),
    sample("min of a dimension", lambda F, x: tuple(F.min(x, dim=-1, keepdim=True)), x),
    sample("argmax", lambda F, x: x.argmax(dim=1), x),
    sample("argmin", lambda F, x: F.argmin(x), x),
    sample("prod", lambda F, x: x.prod(), few),
    sample("prod of a dimension", lambda F, x: x.prod(dim=1, keepdim=True), few),
    sample("cumsum", lambda F, x: x.cumsum(1), x),
    sample("cumprod", lambda F, x: x.cumprod(-1), few),
    sample("diff", lambda F, x: x.diff(dim=1), x),
    sample("diff, twice", lambda F, x: F.diff(x, 2), x),
    sample("diff, prepend and append", lambda F, x: F.diff(x, 2, 1, prepend=x[:, 1:], append=x * 2.0), x),
    sample("any", lambda F, x: (x > 2).any(dim=1), x),
    sample("all", lambda F, x: (x > -2.5).all(), x),
    sample("aminmax", lambda F, x: tuple(F.aminmax(x)), distinct_floats(3, 4)),
    sample("aminmax, dim", lambda F, x: tuple(x.aminmax(dim=0, keepdim=True)), distinct_floats(3, 4)),
    sample("nansum", lambda F, x: F.nansum(x, 1), gaps, kinked=True),
    sample("nanmean", lambda F, x: x.nanmean(), gaps, kinked=True),
    sample("cumsum_", lambda F, x: (x * 1.0).cumsum_(1), distinct_floats(3, 4)),
    sample("cumprod_", lambda F, x: (x * 1.0).cumprod_(dim=0), distinct_floats(3, 4)),
    sample("cumsum_, twice", lambda F, x: ((x * 1.0).cumsum_(1) * x).cumsum_(0), distinct_floats(3, 4)),
]
