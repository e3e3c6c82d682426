"""Arithmetic functions with arguments that the operations lack, such as `alpha` and `rounding_mode`."""

from samples import distinct_floats, distinct_ints, sample

angles = distinct_floats(3, 4, low=-400.0, high=400.0)
y = distinct_floats(3, 4, seed=1)
x = distinct_floats(3, 4)

SAMPLES = [
    sample("fmod", lambda F, x, y: F.fmod(x, y), angles, y),
    sample("fmod by a scalar", lambda F, x: x.fmod(1.7), angles),
    sample("fmod of ints", lambda F, n: F.fmod(n - 3, 2), distinct_ints(7, high=7),
        differs={"uint8": "unsigned wraparound"}),
    sample("positive", lambda F, x: F.positive(x), x),
    sample("rsub", lambda F, x, y: F.rsub(x, y, alpha=2), x, y),
    sample("float_power", lambda F, x: F.float_power(x, 3), x),
]  # fmt: skip
