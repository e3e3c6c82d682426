"""PyTorch's `linalg`, as far as it is here: its numbers and gradients, and words for the rest."""

from math import inf

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, ShapeError
from parity import close
from strategies import PARITY

A = np.random.default_rng(0).normal(size=(2, 3, 3)).astype("float32")
CALLS = {
    "vector_norm": lambda L, a: L.vector_norm(a),
    "vector_norm, ord, dim": lambda L, a: L.vector_norm(a, 3, dim=(0, 2), keepdim=True),
    "vector_norm, inf": lambda L, a: L.vector_norm(a, inf, dim=1),
    **{
        f"matrix_norm, {ord}": lambda L, a, ord=ord: L.matrix_norm(a, ord, keepdim=ord == -1)
        for ord in ("fro", 1, -1, inf, -inf)
    },
    "matrix_norm, dims": lambda L, a: L.matrix_norm(a, 1, dim=(2, 0)),
    "norm": lambda L, a: L.norm(a),
    "norm along": lambda L, a: L.norm(a, dim=-1, keepdim=True),
    "norm of vectors": lambda L, a: L.norm(a, 1, dim=2),
    "norm of a matrix": lambda L, a: L.norm(a[0], 1),
    "norm of matrices": lambda L, a: L.norm(a, inf, dim=(1, 2)),
    "vecdot": lambda L, a: L.vecdot(a, a * 2.0 + 1.0, dim=1),
    "cross": lambda L, a: L.cross(a, a * a),
    "diagonal": lambda L, a: L.diagonal(a, offset=1),
    "vander": lambda L, a: L.vander(a[0, 0].detach(), N=4) + a.sum(),
    "vander of batches": lambda L, a: L.vander(a.detach(), N=5) + a.sum(),
    "multi_dot": lambda L, a: L.multi_dot([a[0, 0], a[0], a[1], a[1, 2]]),
    "matmul": lambda L, a: L.matmul(a, a),
    **{f"matrix_power, {n}": lambda L, a, n=n: L.matrix_power(a, n) + a * 0 for n in (0, 1, 2, 5, 6)},
}


@pytest.mark.parity
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numbers_and_gradients_are_pytorch_s(torch, call):
    found = []
    for library in (mg, torch):
        a = library.tensor(A).requires_grad_()
        y = call(library.linalg, a)
        (y * y).sum().backward()
        found.append([y.detach().numpy(), a.grad.numpy()])
    for mine, its in zip(*found, strict=True):
        close(mine, its, PARITY["float32"])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda a: mg.linalg.matrix_norm(a, 2), ArgumentError, "matrix_norm: ord=2 takes singular values"),
        (lambda a: mg.linalg.vander(a, N=1), ShapeError, r"vander: N is 2 or more, and of x, \(2, 3, 3\), it is 1"),
        (lambda a: mg.linalg.norm(a, 1), ShapeError, "norm: ord=1 needs a matrix, or a vector"),
        (lambda a: mg.linalg.matrix_power(a[0, :2], 2), ShapeError, r"matrix_power: A holds square matrices"),
        (lambda a: mg.linalg.multi_dot([a]), ArgumentError, "multi_dot: a product has two factors or more"),
    ],
)
def test_what_cannot_be_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call(mg.tensor(A))


def test_a_name_that_is_not_here_says_what_to_write_instead():
    with pytest.raises(AttributeError, match=r"torch.linalg.svd is not here: .* take NumPy: np.linalg on x.numpy\(\)"):
        mg.linalg.svd(mg.eye(2))
