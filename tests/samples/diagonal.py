"""Diagonals and triangles of matrices: extracted, filled, or built from a vector."""

from samples import distinct_floats, sample

x = distinct_floats(3, 4)

SAMPLES = [
    sample("fill_diagonal_", lambda F, x: (x * 1.0).fill_diagonal_(2.5), distinct_floats(3, 4)),
    sample("tril_", lambda F, x: (x * 1.0).tril_(-1), x),
    sample("triu_", lambda F, x: (x * 1.0).triu_(1), x),
    sample("diagflat", lambda F, x: F.diagflat(x, 1), distinct_floats(2, 2)),
]  # fmt: skip
