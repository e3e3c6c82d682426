"""Linear algebra."""

from samples import numbers, sample

SAMPLES = [
    sample("matmul", lambda F, a, b: F.matmul(a, b), numbers(3, 4), numbers(4, 2)),
    sample("matmul of vectors", lambda F, a, b: F.matmul(a, b), numbers(3), numbers(3, seed=1)),
    sample("matmul, batched and broadcast", lambda F, a, b: a @ b, numbers(3, 1, 2, 3), numbers(2, 3, 2)),
    sample("mm", lambda F, a, b: F.mm(a, b), numbers(3, 4), numbers(4, 2)),
    sample("bmm", lambda F, a, b: a.bmm(b), numbers(3, 2, 4), numbers(3, 4, 2)),
    sample("dot", lambda F, a, b: a.dot(b), numbers(3), numbers(3, seed=1)),
    sample("outer", lambda F, a, b: F.outer(a, b), numbers(3), numbers(2)),
    sample("linear", lambda F, x, w, b: F.linear(x, w, b), numbers(3, 4), numbers(2, 4), numbers(2)),
]
