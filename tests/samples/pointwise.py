"""More functions of each number alone."""

import numpy as np

from samples import ints, numbers, sample

x, y, angles = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, low=-400.0, high=400.0)
gaps = np.where(y > 1.5, np.nan, x)
holes = np.where(x > 1.5, 0.0, x)
ends = np.array([[np.inf, -np.inf, 0.0], [-0.0, 2.5, np.nan]])

SAMPLES = [
    sample("round, decimals", lambda F, x: F.round(x, decimals=1), x, kinked=True),
    sample("round, decimals below 0", lambda F, x: x.round(decimals=-2), angles, kinked=True),
    sample("fix", lambda F, x: F.fix(x), x, kinked=True),
    sample("frac", lambda F, x: x.frac(), x),
    sample("fmod", lambda F, x, y: F.fmod(x, y), angles, y),
    sample("fmod by a number", lambda F, x: x.fmod(1.7), angles),
    sample("fmod of ints", lambda F, n: F.fmod(n - 3, 2), ints(7, below=7), differs={"uint8": "it wraps"}),
    sample("positive", lambda F, x: F.positive(x), x),
    sample("rsub", lambda F, x, y: F.rsub(x, y, alpha=2), x, y),
    sample("deg2rad", lambda F, x: F.deg2rad(x), angles),
    sample("rad2deg", lambda F, x: x.rad2deg(), x),
    sample("float_power", lambda F, x: F.float_power(x, 3), x),
    sample("fmax", lambda F, x, y: F.fmax(x, y), gaps, y, kinked=True),
    sample("fmin", lambda F, x, y: x.fmin(y), gaps, y, kinked=True),
    sample("heaviside", lambda F, x, y: F.heaviside(x, y).detach(), holes, y),
    sample("isposinf", lambda F, x: F.isposinf(x), ends),
    sample("isneginf", lambda F, x: x.isneginf(), ends),
    sample("signbit", lambda F, x: F.signbit(x), ends),
    sample("logaddexp2", lambda F, x, y: F.logaddexp2(x, y), x, y),
    sample("sinc", lambda F, x: F.sinc(x), x),
    sample("sinc at 0", lambda F, x: F.sinc(x), holes, kinked=True),
    sample("xlogy", lambda F, x, y: F.xlogy(x, y), holes, numbers(3, 4, low=0.1, high=3.0), kinked=True),
    sample("xlogy by a number", lambda F, x: x.xlogy(2.5), x),
    sample("xlogy of a number", lambda F, x: F.xlogy(2.5, x), numbers(3, 4, low=0.1, high=3.0)),
]  # fmt: skip
