"""PyTorch's `linalg`: values, gradients, and advice for the missing functions."""

from math import inf

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, ShapeError
from parity import assert_close
from strategies import PARITY
from taichi_device import DEVICE

A = np.random.default_rng(0).normal(size=(2, 3, 3)).astype("float32")
CALLS = {
    "vector_norm": lambda L, a: L.vector_norm(a),
    "vector_norm, ord, dim": lambda L, a: L.vector_norm(a, 3, dim=(0, 2), keepdim=True),
    "vector_norm, inf": lambda L, a: L.vector_norm(a, inf, dim=1),
    **{
        f"matrix_norm, {ord}": lambda L, a, ord=ord: L.matrix_norm(a, ord, keepdim=ord == -1)
        for ord in ("fro", "nuc", 1, -1, 2, -2, inf, -inf)
    },
    "matrix_norm, nuc, dims": lambda L, a: L.matrix_norm(a, "nuc", dim=(2, 0)),
    "norm, 2": lambda L, a: L.norm(a[:, :2], 2, dim=(1, 2), keepdim=True),
    "svdvals": lambda L, a: L.svdvals(a[:, 1:]),
    "svdvals of long matrices": lambda L, a: L.svdvals(a[..., 1:]),
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
def test_values_and_gradients_match_pytorch(torch, call):
    results = []
    for library in (mg, torch):
        a = library.tensor(A).requires_grad_()
        y = call(library.linalg, a)
        (y * y).sum().backward()
        results.append([y.detach().numpy(), a.grad.numpy()])
    for result, expected in zip(*results, strict=True):
        assert_close(result, expected, PARITY["float32"])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda a: mg.linalg.matrix_norm(a, 3),
            ArgumentError,
            "matrix_norm: order 3 not supported; use 'fro', 'nuc', 1, -1, 2, -2",
        ),
        (
            lambda a: mg.linalg.svdvals(a[0, 0]),
            ShapeError,
            r"svdvals: A must be batches of matrices \(…, m, n\), but has shape \(3,\)",
        ),
        (
            lambda a: mg.linalg.svdvals(a * inf),
            mg.linalg.LinAlgError,
            r"thin_svd: the input matrix contains non-finite values \(inf or nan\), so it has no",
        ),
        (lambda a: mg.linalg.vander(a, N=1), ShapeError, r"vander: N must be greater than 1, but got 1"),
        (lambda a: mg.linalg.norm(a, 1), ShapeError, "norm: ord=1 requires a matrix, or a vector"),
        (
            lambda a: mg.linalg.matrix_power(a[0, :2], 2),
            ShapeError,
            r"matrix_power: A must be batches of square matrices",
        ),
        (lambda a: mg.linalg.multi_dot([a]), ArgumentError, "multi_dot: expected at least 2 tensors but got 1"),
    ],
)
def test_invalid_arguments_raise(call, kind, text):
    with pytest.raises(kind, match=text):
        call(mg.tensor(A))


def test_a_missing_name_suggests_an_alternative():
    with pytest.raises(AttributeError, match=r"torch.linalg.svd is not available: .* use np.linalg on x.numpy\(\)"):
        mg.linalg.svd(mg.eye(2))


def vectors(A):
    """Return U, the singular values and Vᵀ of the operation behind `svdvals`."""
    return [x.numpy() for x in mg.ops.thin_svd(A)]


@pytest.mark.parametrize("device", ["numpy", DEVICE])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (1, 4), (2, 3, 4), (20, 30)])
def test_singular_values_and_vectors_reconstruct_the_matrix(device, dtype, shape):
    a = np.random.default_rng(1).normal(size=shape).astype(dtype)
    singular = (np.zeros(shape, dtype), a[..., :1] * a[..., :1, :], np.ones(shape, dtype))
    far = (a * a.dtype.type(1e30), a * a.dtype.type(1e-30))
    for A in (a, *singular, *far):
        u, s, v = vectors(mg.tensor(A, device=device))
        scale = np.abs(A).max() or 1.0
        tolerance = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose((u * s[..., None, :] / scale) @ v, A / scale, atol=tolerance * 10)
        np.testing.assert_allclose(s / scale, np.linalg.svd(A / scale, compute_uv=False), atol=tolerance * 10)
        item = np.broadcast_to(np.eye(s.shape[-1]), (*s.shape, s.shape[-1]))
        np.testing.assert_allclose(u.swapaxes(-1, -2) @ u, item, atol=tolerance)
        np.testing.assert_allclose(v @ v.swapaxes(-1, -2), item, atol=tolerance)


@pytest.mark.parity
@pytest.mark.parametrize("ord", ["nuc", 2, -2])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_spectral_norms_match_pytorch_to_third_order(torch, ord, shape):
    a, w = np.random.default_rng(2).normal(size=shape), np.linspace(-1.0, 1.0, 12)[: np.prod(shape)].reshape(shape)
    results = []
    for library, grad in ((mg, mg.grad), (torch, torch.autograd.grad)):
        x, weight = library.tensor(a).requires_grad_(), library.tensor(w)
        (first,) = grad(library.linalg.matrix_norm(x, ord) ** 2, x, create_graph=True)
        (second,) = grad((first * first * weight).sum(), x, create_graph=True)
        (third,) = grad((second * weight).sum(), x)
        results.append([t.detach().numpy() for t in (first, second, third)])
    for result, expected in zip(*results, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parity
def test_gradients_of_singular_vectors_match_pytorch(torch):
    for shape in ((3, 3), (4, 2), (2, 4)):
        k, results = min(shape), []
        a = np.random.default_rng(3).normal(size=shape)
        for library in (mg, torch):
            x = library.tensor(a).requires_grad_()
            u, s, v = mg.ops.thin_svd(x) if library is mg else torch.linalg.svd(x, full_matrices=False)
            scale = library.arange(1.0, k + 1.0, dtype=library.float64)
            y = (u * u * scale).sum() + (s * scale).sum() + (v.mT * v.mT * scale).sum() + ((u * scale) @ v)[0, 0]
            y.backward()
            results.append(x.grad.numpy())
        np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-9)
