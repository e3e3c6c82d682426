"""Linear algebra: comparison with PyTorch, and errors."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError, ShapeError
from strategies import THIRD

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
def test_matmul_has_pytorch_s_value_gradients_and_second_gradients(torch, shapes):
    generator = np.random.default_rng(0)
    array = [generator.normal(size=shape) for shape in shapes]
    a, b = (mg.tensor(x, requires_grad=True) for x in array)
    ta, tb = (torch.tensor(x, requires_grad=True) for x in array)
    y, z = mg.matmul(a, b), torch.matmul(ta, tb)
    assert y.shape == tuple(z.shape)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12, atol=1e-14)
    weights = generator.normal(size=z.shape)
    y.backward(mg.tensor(weights), create_graph=True)
    torch_grads = torch.autograd.grad(z, (ta, tb), torch.tensor(weights), create_graph=True)
    for x, t in zip((a, b), torch_grads, strict=True):
        np.testing.assert_allclose(x.grad.detach().numpy(), t.detach().numpy(), rtol=1e-12, atol=1e-14)
    first = a.grad
    a.grad = b.grad = None
    (first * first).backward(mg.tensor(np.ones(first.shape)))
    (second,) = torch.autograd.grad(torch_grads[0] * torch_grads[0], tb, torch.ones_like(torch_grads[0]))
    np.testing.assert_allclose(b.grad.numpy(), second.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parity
def test_linear_with_its_bias_is_pytorch_s(torch):
    x, w, b = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0])
    actual = mg.linear(mg.tensor(x), mg.tensor(w), mg.tensor(b))
    expected = torch.nn.functional.linear(torch.tensor(x), torch.tensor(w), torch.tensor(b))
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@merge_cases
@pytest.mark.parametrize("other", [None, 2.0, "a", np.ones(2), [1.0, 2.0], mg.Value(1.0)], ids=str)
def test_matmul_operator_rejects_non_tensors_on_either_side(other):
    for multiply, operand in ((lambda x: x @ other, "other"), (lambda x: other @ x, "input")):
        with pytest.raises(DTypeError, match=rf"matmul: {operand} must be a tensor, not an? {type(other).__name__}"):
            multiply(mg.ones(2))


def test_products_of_vectors_and_the_operator():
    u, v = mg.tensor([1.0, 2.0]), mg.tensor([3.0, -1.0])
    assert mg.dot(u, v).item() == 1.0
    assert mg.outer(u, v).tolist() == [[3.0, -1.0], [6.0, -2.0]]
    assert (u[None] @ v).tolist() == [1.0]
    assert mg.bmm(mg.ones(2, 1, 3), mg.ones(2, 3, 1)).tolist() == [[[3.0]], [[3.0]]]


def test_inner_size_mismatch_suggests_a_transpose():
    with pytest.raises(ShapeError) as error:
        mg.matmul(mg.ones(32, 784), mg.ones(128, 784))
    assert str(error.value) == (
        "matmul: mat1 and mat2 shapes cannot be multiplied ((32, 784) @ (128, 784)): "
        "the inner sizes 784 and 128 differ.\n"
        "  Did you mean x @ w.T, which gives (32, 128)?"
    )
    with pytest.raises(ShapeError, match=r"Did you mean x\.T @ w, which gives \(3, 4\)\?"):
        mg.matmul(mg.ones(2, 3), mg.ones(2, 4))


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: mg.matmul(mg.tensor(1.0), mg.ones(2)), ShapeError, "matmul: both arguments need to be at least 1-d"),
        (lambda: mg.matmul(mg.ones(2, 1, 3), mg.ones(5, 3, 1)), ShapeError, r"matmul: shapes \(2,\) and \(5,\)"),
        (
            lambda: mg.matmul(mg.ones(2), mg.ones(2, dtype=mg.float64)),
            DTypeError,
            r"matmul: expected other to have the same dtype as input \(float32\), but got float64\.",
        ),
        (
            lambda: mg.mm(mg.ones(2), mg.ones(2)),
            ShapeError,
            r"mm: each operand must be a 2D tensor, but got \(2,\) and \(2,\); matmul takes any\.",
        ),
        (
            lambda: mg.bmm(mg.ones(2, 1, 1), mg.ones(3, 1, 1)),
            ShapeError,
            "bmm: expected equal batch sizes, but got 2 and 3",
        ),
        (lambda: mg.dot(mg.ones(2), mg.ones(3)), ShapeError, "inner sizes 2 and 3 differ"),
    ],
    ids=["number", "batches", "types", "mm", "bmm", "dot"],
)
def test_invalid_products_raise(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


EINSUM_REFUSED = {
    "too few operands": ("ij,jk", (2, 3)),
    "too many operands": ("ij", (2, 3), (2, 3)),
    "a letter from nowhere": ("ij->k", (2, 3)),
    "a letter twice in the output": ("ij->ijj", (2, 3)),
    "a digit": ("i1", (2, 3)),
    "two dots": ("..ij", (2, 3)),
    "dots twice": ("i...j...", (2, 3)),
    "two arrows": ("i->i->i", (2,)),
    "sizes at odds": ("ij,jk", (2, 3), (4, 5)),
    "unequal sides": ("ii", (2, 3)),
    "a side of 1": ("ii", (2, 1)),
    "too few letters": ("ij", (2, 3, 4)),
    "too many letters": ("ijk", (2, 3)),
    "dots at odds": ("...i,...i", (2, 3), (4, 3)),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("case", EINSUM_REFUSED)
def test_equations_that_pytorch_refuses_are_refused(torch, case):
    equation, *shapes = EINSUM_REFUSED[case]
    with pytest.raises(RuntimeError):
        torch.einsum(equation, *[torch.ones(shape) for shape in shapes])
    with pytest.raises(ShapeError, match="einsum: "):
        mg.einsum(equation, *[mg.ones(*shape) for shape in shapes])


def test_einsum_reports_both_sizes_of_a_subscript():
    with pytest.raises(ShapeError) as error:
        mg.einsum("bi,ij->bj", mg.ones(32, 784), mg.ones(128, 784))
    assert str(error.value) == (
        "einsum: 'bi,ij->bj': subscript 'i' has size 128, which does not broadcast with previously seen size 784.\n"
        "  The operands have shapes (32, 784) and (128, 784)."
    )


@pytest.mark.parity
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(0, 3), (3, 2)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ii->i", [(0, 0)]),
        ("", [()]),
        ("->", [()]),
        (",->", [(), ()]),
        (",i->i", [(), (3,)]),
        ("ij->i...", [(2, 3)]),
    ],
)
def test_einsum_of_empty_and_0d_operands_matches_pytorch(torch, equation, shapes):
    actual = mg.einsum(equation, *[mg.ones(*shape) for shape in shapes])
    expected = torch.einsum(equation, *[torch.ones(shape) for shape in shapes])
    assert actual.shape == tuple(expected.shape)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("equation", ["...", "ij->ij", "ij->ji", "ab", "ii->i"])
def test_an_equation_of_one_operand_gives_a_view_of_it(equation):
    x = mg.ones(2, 2, requires_grad=True)
    y = mg.einsum(equation, x)
    assert (y is x, y.is_leaf, y.storage is x.storage) == (False, False, True)


def test_a_contraction_is_one_product_of_matrices_forward_and_two_backward():
    calls = []
    a, b = mg.tensor(np.ones((2, 3, 4)), requires_grad=True), mg.tensor(np.ones((2, 5, 4)), requires_grad=True)
    with mg.tap(lambda call: calls.append(call.op)):
        mg.einsum("bqd,bkd->bqk", a, b).backward(mg.tensor(np.ones((2, 3, 5))))
    assert [op for op in calls if op != "contiguous"] == ["contract"] * 3  # gradients are copied to their own memory


@pytest.mark.parity
def test_linear_of_empty_input_matches_pytorch(torch):
    for shape in ((0, 3), (2, 0, 3), (0,), (4, 0)):
        arrays = [np.ones(shape), np.ones((2, shape[-1])), np.arange(2.0)]
        tensors, torch_tensors = [mg.tensor(x, requires_grad=True) for x in arrays], [torch.tensor(x) for x in arrays]
        y, z = mg.linear(*tensors), torch.nn.functional.linear(*torch_tensors)
        np.testing.assert_array_equal(y.detach().numpy(), z.numpy())
        y.sum().backward()
        assert [x.grad.shape for x in tensors] == [x.shape for x in arrays]


def test_third_derivatives_of_linear_and_einsum():
    x, w = mg.tensor(np.linspace(-1, 1, 6).reshape(2, 3)), mg.tensor(np.linspace(0.5, 2, 6).reshape(2, 3))
    for function in (mg.linear, lambda x, w: mg.einsum("bi,oi->bo", x, w)):

        def gradient(x, w, function=function):
            y = function(x, w)
            return mg.grad((y * y * y).sum(), [x, w], create_graph=True)

        assert mg.gradgradcheck(gradient, [x, w], fast_mode=True, **THIRD)


def test_beta_0_ignores_the_input():
    assert mg.addmm(mg.full((2,), float("nan")), mg.ones(2, 3), mg.ones(3, 2), beta=0).tolist() == [[3.0, 3.0]] * 2


def test_beta_0_gives_the_input_a_zero_gradient():
    x = mg.full((2,), float("nan"), requires_grad=True)
    y = mg.addmm(x, mg.ones(2, 3), mg.ones(3, 2), beta=0)
    mg.sum(y).backward()
    assert (y.tolist(), x.grad.tolist()) == ([[3.0, 3.0]] * 2, [0.0, 0.0])


def test_linear_reports_mismatched_features():
    with pytest.raises(ShapeError) as error:
        mg.linear(mg.ones(32, 100), mg.ones(128, 784))
    assert str(error.value) == (
        "linear: input and weight shapes cannot be multiplied ((32, 100) and (128, 784)).\n"
        "  Expected an input of shape (…, in) and a weight of shape (out, in)."
    )


@merge_cases
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            lambda: mg.linear(mg.ones(2, 3), mg.ones(4, 3), mg.ones(2)),
            ShapeError,
            r"bias of shape \(4,\), but got \(2,\)",
        ),
        (lambda: mg.linear(mg.ones(2, 3), mg.ones(3), mg.ones(2)), ShapeError, r"cannot be multiplied .* and \(3,\)\)"),
        (
            lambda: mg.linear(mg.ones(2, 3), mg.ones(4, 3, dtype=mg.float64)),
            DTypeError,
            r"linear: expected weight to have the same dtype as input \(float32\), but got float64\.",
        ),
        (
            lambda: mg.einsum("i,i", mg.ones(2), mg.ones(2, dtype=mg.float64)),
            DTypeError,
            r"einsum: expected operand 1 to have the same dtype as operand 0 \(float32\), but got",
        ),
        (lambda: mg.einsum("i,i", [1.0, 2.0]), DTypeError, r"einsum: operand 0 must be a tensor, not a float\."),
        (
            lambda: mg.einsum(mg.ones(2), [52]),
            ShapeError,
            r"einsum: subscripts in \[52\] must be in the valid range \[0, 52\), or `\.\.\.`\.",
        ),
        (
            lambda: mg.tensordot(mg.ones(2, 3), mg.ones(3, 2), 3),
            ShapeError,
            r"tensordot: expected 0 <= dims <= 2, the dimensions of both, but got dims=3\.",
        ),
        (
            lambda: mg.tensordot(mg.ones(2, 3), mg.ones(3, 2), -1),
            ShapeError,
            r"tensordot: expected 0 <= dims <= 2, the dimensions of both, but got dims=-1\.",
        ),
        (lambda: mg.tensordot(mg.ones(2, 3), mg.ones(2, 2), 1), ShapeError, r"1 of \(2, 3\) and 0 of \(2, 2\)"),
        (
            lambda: mg.einsum("...i,...", mg.ones(2, 3), mg.ones(4)),
            ShapeError,
            r"einsum: '\.\.\.i,\.\.\.': a dimension of \.\.\. has size 4, which does not broadcast with",
        ),
        (
            lambda: mg.tensordot(mg.ones(2, 3), mg.ones(3, 2), ([1], [0, 1])),
            ShapeError,
            r"tensordot: both lists in dims=\(\[1\], \[0, 1\]\) should have the same length and no",
        ),
        (lambda: mg.inner(mg.ones(2, 3), mg.ones(1)), ShapeError, r"inner: the last dimensions must match, but got"),
        (lambda: mg.addmm(mg.ones(3), mg.ones(2, 3), mg.ones(3, 2)), ShapeError, "addmm: shapes"),
        (
            lambda: mg.addmv(mg.ones(2, 2), mg.ones(2, 3), mg.ones(3)),
            ShapeError,
            r"addmv: input of shape \(2, 2\) cannot be broadcast to \(2,\)\.",
        ),
        (
            lambda: mg.tensor([1]).addmv(mg.tensor([[1]]), mg.tensor([2]), beta=0.5),
            DTypeError,
            r"addmv: for integer tensors, beta must not be a floating-point number, but got 0\.5\.",
        ),
        (
            lambda: mg.mv(mg.ones(2, 3), mg.ones(3, 1)),
            ShapeError,
            r"mv: each operand must be a 1D tensor, but got \(3, 1\); matmul takes any\.",
        ),
        (
            lambda: mg.trace(mg.ones(2)),
            ShapeError,
            r"trace: each operand must be a 2D tensor, but got \(2,\); matmul takes any\.",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


def test_invalid_matrix_equation_or_power_raises():
    x = mg.eye(2)
    with pytest.raises(
        DTypeError, match=r"einsum: expected a list of ints as subscripts of an operand, but got 'ij'\."
    ):
        mg.einsum(x, "ij")
    with pytest.raises(DTypeError, match=r"matrix_power: n=0\.5 is a float, not an int"):
        mg.linalg.matrix_power(x, 0.5)
    with pytest.raises(DTypeError, match=r"linear: input must be a tensor, not a list\."):
        mg.nn.Linear(2, 2)([1.0, 2.0])


def test_mixed_dtypes_suggest_converting_the_integers():
    with pytest.raises(
        DTypeError, match=r"linear: expected input to have the same dtype as weight \(float32\), but got int64\."
    ):
        mg.nn.Linear(2, 2)(mg.tensor([[1, 2]]))


def test_a_negative_power_is_that_of_the_inverse():
    x = mg.tensor([[2.0, 1.0], [0.0, 4.0]], dtype=mg.float64)
    assert mg.allclose(mg.linalg.matrix_power(x, -2) @ x @ x, mg.eye(2, dtype=mg.float64))


def test_a_determinant_has_its_second_derivative():
    x = mg.tensor([[2.0, 1.0, 0.5], [0.0, 3.0, 1.0], [1.0, -1.0, 4.0]], dtype=mg.float64, requires_grad=True)
    assert mg.gradgradcheck(mg.linalg.det, x)
