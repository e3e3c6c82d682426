"""Inverses, determinants and factors beyond the sample table: large matrices, error messages, deferred errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, LinAlgError, ShapeError
from needs import needs
from parity import assert_close
from strategies import PARITY

REGULAR = np.random.default_rng(0).normal(size=(2, 24, 24)).astype("float32") + 4 * np.eye(24, dtype="float32")
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def force_launches(monkeypatch):
    """Make each step of elimination a launch, as for matrices that are too large for one thread."""
    from minigrad.backends.taichi.codegen import source
    from minigrad.backends.taichi.kernels import elimination

    monkeypatch.setattr(elimination, "MAX_SERIAL", 0)
    monkeypatch.setattr(elimination, "MAX_SERIAL_GPU", 0)
    monkeypatch.setattr(source, "CORES", 3)


@pytest.mark.parametrize("launches", ["one", "one a step"])
@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky"])
def test_elimination_matches_lapack(monkeypatch, name, launches):
    if launches != "one":
        needs("taichi")
        force_launches(monkeypatch)
    matrices = REGULAR if name != "cholesky" else REGULAR @ REGULAR.swapaxes(1, 2)
    result, expected = (
        getattr(mg.linalg, name)(mg.tensor(matrices)),
        getattr(np.linalg, name)(matrices.astype("float64")),
    )
    for x, y in zip(result, expected, strict=True) if name == "slogdet" else [(result, expected)]:
        assert_close(x.numpy(), y, PARITY["float32"])


@pytest.mark.parametrize("launches", ["one", "one a step"])
def test_rows_are_swapped_at_a_zero_pivot(monkeypatch, launches):
    if launches != "one":
        needs("taichi")
        force_launches(monkeypatch)
    swapped = mg.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 4.0]])
    assert mg.det(swapped.requires_grad_()).item() == -8.0
    assert mg.grad(mg.det(swapped), swapped)[0].tolist() == [[0.0, -4.0, 0.0], [-8.0, 0.0, 0.0], [0.0, 0.0, -2.0]]
    assert mg.inverse(swapped).tolist() == [[0.0, 1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.25]]


@pytest.mark.parametrize(
    ("matrix", "cofactors"),
    [
        (SINGULAR, [[4.0, -2.0], [-2.0, 1.0]]),
        ([[0.0, 1.0], [0.0, 2.0]], [[2.0, 0.0], [-1.0, 0.0]]),
        (
            [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
            [[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]],
        ),
        ([[1.0, 1.0, 1.0]] * 3, [[0.0] * 3] * 3),
    ],
)
def test_determinant_gradient_at_a_singular_matrix_is_the_cofactors(matrix, cofactors):
    a = mg.tensor(matrix, requires_grad=True)
    mg.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), cofactors, atol=12 * PARITY["float32"])


def test_slogdet_gradients():
    a = mg.tensor([[2.0, 0.0], [0.0, -4.0]], requires_grad=True)
    sign, logarithm = mg.slogdet(a)
    assert (sign.item(), logarithm.item()) == (-1.0, pytest.approx(np.log(8), rel=1e-6))
    assert mg.grad(sign, a, retain_graph=True)[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert mg.grad(logarithm, a)[0].tolist() == [[0.5, 0.0], [0.0, -0.25]]


def test_determinant_edge_cases():
    singular, negative = mg.tensor(SINGULAR), mg.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert (mg.det(singular).item(), mg.logdet(singular).item()) == (0.0, -np.inf)
    assert [x.item() for x in mg.slogdet(singular)] == [0.0, -np.inf]
    assert (mg.det(negative).item(), np.isnan(mg.logdet(negative).item())) == (-1.0, True)
    assert (mg.det(mg.empty(0, 0)).item(), mg.inverse(mg.empty(2, 0, 0)).shape) == (1.0, (2, 0, 0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: mg.inverse(x), "inverse: the input matrix is singular: its rows are linearly dependent"),
        (lambda x: mg.linalg.inv(x[None].expand(3, 2, 2)), "inverse: the input matrix is singular"),
        (lambda x: mg.linalg.solve(x, x[0]), r"solve: the input matrix is singular.*\n  Add a small value"),
        (lambda x: mg.cholesky(-x), r"cholesky: the input is not positive-definite: x @ A @ x is 0, negative or nan"),
        (lambda x: mg.cholesky(x * mg.nan), "cholesky: the input is not positive-definite"),
    ],
)
def test_singular_matrices_raise_and_later_calls_work(call, text):
    with pytest.raises(LinAlgError, match=text):
        call(mg.tensor(SINGULAR)).numpy()
    assert mg.inverse(mg.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_linalg_error_matches_pytorch():
    assert mg.linalg.LinAlgError is LinAlgError
    assert issubclass(LinAlgError, RuntimeError)


def test_cholesky_and_solve_triangular_read_one_triangle():
    half, unread = mg.tensor([[4.0, 0.0], [2.0, 5.0]]), mg.tensor([[0.0, mg.nan], [0.0, 0.0]])
    assert mg.cholesky(half + unread).tolist() == [[2.0, 0.0], [1.0, 2.0]]
    assert mg.cholesky((half + unread).mT, upper=True).tolist() == [[2.0, 1.0], [0.0, 2.0]]
    solution = mg.linalg.solve_triangular(half + unread, mg.tensor([[4.0], [7.0]]), upper=False)
    assert solution.tolist() == [[1.0], [1.0]]


def test_solve_triangular_allows_a_zero_diagonal():
    result = mg.linalg.solve_triangular(mg.zeros(1, 1), mg.tensor([[1.0, 0.0]]), upper=True)
    np.testing.assert_array_equal(result.numpy(), [[np.inf, np.nan]])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: mg.inverse(mg.ones(2, 3)),
            ShapeError,
            r"inverse: input must be batches of square matrices.*got shape \(2, 3\)",
        ),
        (
            lambda: mg.det(mg.ones(3)),
            ShapeError,
            r"det: input must be batches of square matrices, \(…, n, n\), but got shape \(3,\)",
        ),
        (
            lambda: mg.linalg.solve(mg.eye(3), mg.ones(2, 2)),
            ShapeError,
            r"solve: incompatible shapes of A \(3, 3\) and B \(2, 2\)",
        ),
        (lambda: mg.linalg.solve(mg.eye(3), mg.ones(3), left=False), ShapeError, r"Write B\[\.\.\., None, :\]"),
        (
            lambda: mg.inverse(mg.eye(2).to(mg.int64)),
            DTypeError,
            "inverse: expected input to be a floating-point tensor, but got int64",
        ),
        (lambda: mg.linalg.solve(mg.eye(2), [1.0, 2.0]), DTypeError, "solve: B must be a tensor, not a list"),
        (
            lambda: mg.cholesky_solve(mg.ones(2, 1).to(mg.int64), mg.eye(2)),
            DTypeError,
            r"cholesky_solve: expected B to have the same dtype as A \(float32\), but got int64",
        ),
    ],
)
def test_invalid_arguments_raise(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.needs("float64")
def test_solve_can_be_jitted():
    step = mg.jit(lambda a, b: mg.linalg.solve(a, b))
    b = mg.ones(24, dtype=mg.float64)
    for k in range(3):
        a = mg.tensor(REGULAR[0].astype("float64") + k * np.eye(24))
        assert_close(step(a, b).numpy(), np.linalg.solve(a.numpy(), b.numpy()), PARITY["float64"])
