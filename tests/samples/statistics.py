"""Medians, quantiles and covariances."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

x = distinct_floats(3, 4)
v = distinct_floats(5)
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
rows = distinct_floats(3, 5)
gaps = np.where(rows > 1.5, np.nan, rows)

SAMPLES = [
    sample("cov", lambda F, x: F.cov(x), x),
    sample("cov of a line", lambda F, v: v.cov(correction=0), v),
    sample("cov, counted", lambda F, x, n: F.cov(x, fweights=n + 1), x, distinct_ints(4, high=3)),
    sample("cov, weighed", lambda F, x, w: F.cov(x, aweights=w, correction=0), x, distinct_floats(4, low=0.1,
        high=2.0)),
    sample("cov, counted and weighed", lambda F, x, n, w: x.cov(fweights=n, aweights=w), x, distinct_ints(4, high=3),
           distinct_floats(4, low=0.1, high=2.0)),
    sample("corrcoef", lambda F, x: F.corrcoef(x), x,
           differs={"broadcast": "zeros differ by rounding errors"}),
    *[sample(f"quantile, {way}", lambda F, x, way=way: F.quantile(x, 0.3, interpolation=way), rows)
      for way in INTERPOLATIONS],
    sample("quantile along a dimension", lambda F, x: x.quantile(0.7, dim=1, keepdim=True), rows),
    sample("quantile, several", lambda F, x: F.quantile(x, x.new_tensor([0.0, 0.35, 1.0]), dim=0), rows),
    sample("quantile, several, keepdim", lambda F, x: F.quantile(x, x.new_tensor([0.2, 0.6]), keepdim=True), rows),
    sample("quantile, tensor q", lambda F, x, q: F.quantile(x, q, dim=1), rows, distinct_floats(4, low=0.0, high=1.0)),
    sample("nanquantile, tensor q", lambda F, x, q: x.nanquantile(q.mean(), 1), gaps, distinct_floats(4, low=0.0,
        high=1.0),
           kinked=True),
    sample("quantile of nans", lambda F, x: F.quantile(x, 0.5, dim=1), gaps, kinked=True),
    sample("nanquantile", lambda F, x: F.nanquantile(x, 0.4, dim=0), gaps, kinked=True),
    sample("nanquantile, several", lambda F, x: x.nanquantile(x.new_tensor([0.4, 0.9]), 1, True), gaps, kinked=True),
    sample("nanmedian", lambda F, x: F.nanmedian(x), gaps, kinked=True,
           differs={"empty": "empty dimension"}),
    sample("nanmedian along a dimension", lambda F, x: tuple(x.nanmedian(1, keepdim=True)), gaps, kinked=True),
]  # fmt: skip
