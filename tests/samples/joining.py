"""Concatenation, stacking, Cartesian products and combinations."""

from samples import distinct_floats, sample

x = distinct_floats(3, 4)
y = distinct_floats(3, 4, seed=1)
v = distinct_floats(5)

SAMPLES = [
    sample("concatenate", lambda F, x, y: F.concatenate([x, y], dim=-1), x, y),
    sample("column_stack", lambda F, x, y: F.column_stack((x, y)), distinct_floats(3), distinct_floats(3, 2)),
    sample("dstack", lambda F, x, y: F.dstack((x, y)), x, y),
    sample("row_stack", lambda F, x, y: F.row_stack((x, y)), x, y),
    sample("block_diag", lambda F, x, v: F.block_diag(x, v, x[0, 0]), x, v),
    sample("cartesian_prod", lambda F, v, w: F.cartesian_prod(v, w, v), distinct_floats(2), distinct_floats(3)),
    sample("combinations", lambda F, v: F.combinations(v, 3), v),
    sample("combinations with replacement", lambda F, v: F.combinations(v, with_replacement=True), v),
]  # fmt: skip
