"""Linear algebra on tensors, against PyTorch."""

import pytest

import minigrad as mg
from minigrad.errors import DTypeError, ShapeError

np = pytest.importorskip("numpy")

SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
]


@pytest.mark.parity
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_has_pytorch_s_value_gradients_and_second_gradients(shapes):
    torch = pytest.importorskip("torch", reason="needs the extra 'parity': make test EXTRAS=dev,parity")
    generator = np.random.default_rng(0)
    given = [generator.normal(size=shape) for shape in shapes]
    a, b = (mg.tensor(x, requires_grad=True) for x in given)
    ta, tb = (torch.tensor(x, requires_grad=True) for x in given)
    y, z = mg.matmul(a, b), torch.matmul(ta, tb)
    assert y.shape == tuple(z.shape)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12, atol=1e-14)
    weights = generator.normal(size=z.shape)
    y.backward(mg.tensor(weights), create_graph=True)
    theirs = torch.autograd.grad(z, (ta, tb), torch.tensor(weights), create_graph=True)
    for x, t in zip((a, b), theirs, strict=True):
        np.testing.assert_allclose(x.grad.detach().numpy(), t.detach().numpy(), rtol=1e-12, atol=1e-14)
    first = a.grad
    a.grad = b.grad = None
    (first * first).backward(mg.tensor(np.ones(first.shape)))
    (second,) = torch.autograd.grad(theirs[0] * theirs[0], tb, torch.ones_like(theirs[0]))
    np.testing.assert_allclose(b.grad.numpy(), second.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parity
def test_linear_with_its_bias_is_pytorch_s():
    torch = pytest.importorskip("torch", reason="needs the extra 'parity'")
    x, w, b = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0])
    ours = mg.linear(mg.tensor(x), mg.tensor(w), mg.tensor(b))
    theirs = torch.nn.functional.linear(torch.tensor(x), torch.tensor(w), torch.tensor(b))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_products_of_vectors_and_the_operator():
    u, v = mg.tensor([1.0, 2.0]), mg.tensor([3.0, -1.0])
    assert mg.dot(u, v).item() == 1.0
    assert mg.outer(u, v).tolist() == [[3.0, -1.0], [6.0, -2.0]]
    assert (u[None] @ v).tolist() == [1.0]
    assert mg.bmm(mg.ones(2, 1, 3), mg.ones(2, 3, 1)).tolist() == [[[3.0]], [[3.0]]]


def test_inner_sizes_that_differ_are_named_with_the_likely_mend():
    with pytest.raises(ShapeError) as error:
        mg.matmul(mg.ones(32, 784), mg.ones(128, 784))
    assert str(error.value) == (
        "matmul: (32, 784) @ (128, 784): the inner sizes 784 and 128 differ.\n"
        "  Did you mean x @ w.T, which gives (32, 128)?"
    )
    with pytest.raises(ShapeError, match=r"Did you mean x\.T @ w, which gives \(3, 4\)\?"):
        mg.matmul(mg.ones(2, 3), mg.ones(2, 4))


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: mg.matmul(mg.tensor(1.0), mg.ones(2)), ShapeError, "matmul: a number has no rows"),
        (lambda: mg.matmul(mg.ones(2, 1, 3), mg.ones(5, 3, 1)), ShapeError, r"matmul: shapes \(2,\) and \(5,\)"),
        (lambda: mg.matmul(mg.ones(2), mg.ones(2, dtype=mg.float64)), DTypeError, "float32 @ float64"),
        (lambda: mg.mm(mg.ones(2), mg.ones(2)), ShapeError, "mm: it takes operands of 2 dimensions"),
        (lambda: mg.bmm(mg.ones(2, 1, 1), mg.ones(3, 1, 1)), ShapeError, "bmm: batches of 2 and 3 matrices"),
        (lambda: mg.dot(mg.ones(2), mg.ones(3)), ShapeError, "inner sizes 2 and 3 differ"),
    ],
    ids=["number", "batches", "types", "mm", "bmm", "dot"],
)
def test_what_cannot_be_multiplied_is_refused(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()
