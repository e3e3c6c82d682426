"""Splitting a tensor into views."""

from samples import distinct_floats, sample

x = distinct_floats(3, 4)
a = distinct_floats(2, 3, 4)

SAMPLES = [
    sample("split_with_sizes", lambda F, x: F.split_with_sizes(x, [1, 3], 1), x),
    sample("hsplit", lambda F, x: F.hsplit(x, 2), x),
    sample("vsplit", lambda F, x: x.vsplit([1]), x),
    sample("dsplit", lambda F, a: F.dsplit(a, 2), a),
]  # fmt: skip
