"""Tensors put together, cut and paired."""

from samples import ints, numbers, sample

x, y, v = numbers(3, 4), numbers(3, 4, seed=1), numbers(5)
a, b = numbers(2, 3, 4), numbers(2, 4, 2, seed=1)

SAMPLES = [
    sample("atleast_3d", lambda F, x, v: F.atleast_3d(v.sum(), v, x), x, v),
    sample("atleast_3d of one", lambda F, a: F.atleast_3d(a), a),
    sample("row_stack", lambda F, x, y: F.row_stack((x, y)), x, y),
    sample("block_diag", lambda F, x, v: F.block_diag(x, v, x[0, 0]), x, v),
    sample("cartesian_prod", lambda F, v, w: F.cartesian_prod(v, w, v), numbers(2), numbers(3)),
    sample("combinations", lambda F, v: F.combinations(v, 3), v),
    sample("combinations with replacement", lambda F, v: F.combinations(v, with_replacement=True), v),
    sample("diagflat", lambda F, x: F.diagflat(x, 1), numbers(2, 2)),
    sample("vander", lambda F, v: F.vander(v.detach(), 4), v),  # PyTorch overwrites what its rule needs
    sample("vander, increasing", lambda F, v: F.vander(v, increasing=True), v, parity=False),
    sample("unravel_index", lambda F, n: F.unravel_index(n, (2, 3, 4)), ints(5, below=24)),
    sample("split_with_sizes", lambda F, x: F.split_with_sizes(x, [1, 3], 1), x),
    sample("hsplit", lambda F, x: F.hsplit(x, 2), x),
    sample("vsplit", lambda F, x: x.vsplit([1]), x),
    sample("dsplit", lambda F, a: F.dsplit(a, 2), a),
    sample("ger", lambda F, v, w: F.ger(v, w), v, numbers(3)),
    sample("chain_matmul", lambda F, x, y, z: F.chain_matmul(x, y, z), x, numbers(4, 2), numbers(2, 3)),
    sample("cross", lambda F, x, y: F.cross(x, y, dim=0), x, y,
           differs={"broadcast": "what should be 0 is rounded otherwise"}),
    sample("cross along the last", lambda F, x, y: x.cross(y, -1), numbers(2, 3), numbers(2, 3, seed=1)),
    sample("dist", lambda F, x, y: F.dist(x, y), x, y),
    sample("cov", lambda F, x: F.cov(x), x),
    sample("cov of a line", lambda F, v: v.cov(correction=0), v),
    sample("cov, counted", lambda F, x, n: F.cov(x, fweights=n + 1), x, ints(4, below=3)),
    sample("cov, weighed", lambda F, x, w: F.cov(x, aweights=w, correction=0), x, numbers(4, low=0.1, high=2.0)),
    sample("cov, counted and weighed", lambda F, x, n, w: x.cov(fweights=n, aweights=w), x, ints(4, below=3),
           numbers(4, low=0.1, high=2.0)),
    sample("corrcoef", lambda F, x: F.corrcoef(x), x,
           differs={"broadcast": "what should be 0 is rounded otherwise"}),
    sample("trapezoid", lambda F, x: F.trapezoid(x, dx=0.5, dim=0), x,
           differs={"empty": "PyTorch's zeros have no gradient"}),
    sample("trapezoid at places", lambda F, x, v: F.trapz(x, v), x, numbers(4)),
]  # fmt: skip
