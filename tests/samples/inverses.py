"""Linear solves, inverses, determinants and factorisations."""

from samples import distinct_floats, sample

SINGULAR = {"broadcast": "equal rows: a GPU reports them late, and PyTorch's gradients are 0 or infinite"}


def definite(F, x):
    """Return a positive definite matrix computed from any matrix (…, n, 3)."""
    return x.mT @ x + 2 * F.eye(3, dtype=x.dtype, device=x.device)


def lower(F, x):
    """Return a lower triangular matrix with a diagonal away from 0."""
    return F.tril(x, -1) * 0.5 + 2 * F.eye(3, dtype=x.dtype, device=x.device)


def triangle(F, a, b, **options):
    return F.linalg.solve_triangular(lower(F, a), b * 1.0, upper=False, **options)


a, b, many, sides = distinct_floats(3, 3), distinct_floats(3, 2), distinct_floats(2, 3, 3), distinct_floats(2, 3, 4)

SAMPLES = [
    sample("solve", lambda F, a, b: F.linalg.solve(a, b), a, b, differs=SINGULAR),
    sample("solve, a vector", lambda F, a, b: F.linalg.solve(a, b), a, distinct_floats(3), differs=SINGULAR),
    sample("solve, a vector for each", lambda F, a, b: F.linalg.solve(a, b), many, distinct_floats(2, 3)),
    sample("solve, batches", lambda F, a, b: F.linalg.solve(a, b), many, sides),
    sample("solve, batches broadcast", lambda F, a, b: F.linalg.solve(a, b), many, distinct_floats(2, 1, 3, 2)),
    sample("solve from the right", lambda F, a, b: F.linalg.solve(a, b, left=False), many, distinct_floats(2, 4, 3)),
    sample("inverse", lambda F, a: F.inverse(a), a, differs=SINGULAR),
    sample("inverse of many", lambda F, a: a.inverse(), many),
    sample("linalg.inv", lambda F, a: F.linalg.inv(a), many),
    sample("matrix_power below 0", lambda F, a: F.linalg.matrix_power(a, -2), many),
    sample("det", lambda F, a: F.det(a), a, differs=SINGULAR),
    sample("det of many", lambda F, a: F.linalg.det(a), many),
    sample("slogdet", lambda F, a: F.slogdet(a), a, differs=SINGULAR),
    sample("slogdet of many", lambda F, a: F.linalg.slogdet(a), many),
    sample("logdet", lambda F, a: definite(F, a).logdet(), many),
    sample("cholesky", lambda F, a: F.linalg.cholesky(definite(F, a)), distinct_floats(2, 4, 3)),
    sample("cholesky, upper", lambda F, a: F.cholesky(definite(F, a), upper=True), a),
    sample("cholesky_solve", lambda F, b, a: F.cholesky_solve(b, lower(F, a)), b, a),
    sample("cholesky_solve, upper", lambda F, b, a: b.cholesky_solve(lower(F, a).mT, upper=True), sides, many),
    sample("cholesky_inverse", lambda F, a: F.cholesky_inverse(lower(F, a)), a),
    sample("cholesky_inverse, upper", lambda F, a: lower(F, a).mT.cholesky_inverse(upper=True), many),
    sample("solve_triangular, lower", triangle, a, b),
    sample("solve_triangular, upper",
           lambda F, a, b: F.linalg.solve_triangular(lower(F, a).mT, b * 1.0, upper=True), many, sides),
    sample("solve_triangular, unitriangular",
           lambda F, a, b: F.linalg.solve_triangular(a * 0.5, b * 1.0, upper=True, unitriangular=True),
           many, distinct_floats(3, 1)),
    sample("solve_triangular from the right", lambda F, a, b: triangle(F, a, b, left=False), a, distinct_floats(2, 3)),
    sample("svdvals", lambda F, a: F.linalg.svdvals(a), many, differs=SINGULAR),
    sample("svdvals, wide matrix", lambda F, a: F.linalg.svdvals(a), distinct_floats(2, 4)),
    sample("matrix_norm, nuc", lambda F, a: F.linalg.matrix_norm(a, "nuc"), distinct_floats(4, 2)),
]  # fmt: skip
