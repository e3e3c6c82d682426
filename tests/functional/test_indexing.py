"""Indexing beyond the sample table: views, repeated writes, gradients, and invalid arguments."""

import math

import numpy as np
import pytest

import minigrad as mg
from arrays import arange
from cases import merge_cases
from minigrad.backends.formula import expression
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from taichi_device import DEVICE

F = mg.functional


# --- writes ---


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.index_copy(0, mg.tensor([1, 0, 1]), v),
        lambda x, v: x.scatter(0, mg.tensor([1, 0, 1]), v),
        lambda x, v: write_copy(x, mg.tensor([1, 0, 1]), v),
        lambda x, v: write_copy(x, [-2, 0, 1], v),
    ],
    ids=["index_copy", "scatter", "x[index]", "x[list]"],
)
def test_last_of_repeated_writes_wins_and_gets_the_gradient(write):
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = mg.tensor([10.0, 20.0, 30.0], requires_grad=True)
    y = write(x, v)
    assert y.tolist() == [20.0, 30.0, 3.0]
    y.backward(mg.tensor([5.0, 6.0, 7.0]))
    assert (x.grad.tolist(), v.grad.tolist()) == ([0.0, 0.0, 7.0], [0.0, 5.0, 6.0])


def write_copy(x, key, value):
    y = x.clone()
    y[key] = value
    return y


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_last_marks_the_last_of_equal_indices(shape, dim):
    b = np.random.default_rng(0).integers(0, 3, shape)
    if dim < b.ndim:
        rows = np.moveaxis(b, dim, -1)
        expected = np.array(
            [[i not in line[k + 1 :] for k, i in enumerate(line)] for line in rows.reshape(-1, shape[dim])]
        )
        expected = np.moveaxis(expected.reshape(rows.shape), -1, dim)
        assert mg.ops.last(mg.tensor(b), dim=dim).tolist() == expected.tolist()
    flat = b.reshape(-1).tolist()
    marks = mg.ops.last(mg.tensor(b)).numpy().reshape(-1).tolist()
    assert marks == [i not in flat[k + 1 :] for k, i in enumerate(flat)]


PROGRAMS = {
    "a view sees writes by index": lambda y, w, at: (y[1], y.__setitem__(at, w))[0] * y[0],
    "through a view": lambda y, w, at: (y.permute(1, 0)[1].__setitem__(at, w[0, :2]), y * y)[1],
    "through a view of a view": lambda y, w, at: (y[1:][:, 1:][0].__setitem__(at, w[0, :2]), y * 1.0)[1],
    "by a mask": lambda y, w, at: (y.__setitem__(y > 0.5, w.sum()), y * y)[1],
    "by a mask, a scalar": lambda y, w, at: (y.__setitem__(y > 0.5, 0.25), y * y)[1],
    "twice": lambda y, w, at: (y.__setitem__(at, w), y.__setitem__((0, at), w[0, :2]), y * y)[2],
    "in place": lambda y, w, at: y.scatter_(1, at.expand(3, 2), w[0, :2].expand(3, 2)).index_add_(0, at, w) * y,
    "a view, filled": lambda y, w, at: (y[0].index_fill_(0, at, 2.0), y[1].masked_fill_(y[2] > 0.0, w[0, 0]), y)[2],
    "from itself": lambda y, w, at: (y.__setitem__(at, y[1:] * 1.0), y * y)[1],
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("name", PROGRAMS)
def test_writes_match_pytorch(torch, name):
    array, weight = np.linspace(-1.0, 1.0, 12).reshape(3, 4), np.linspace(2.0, 3.0, 8).reshape(2, 4)
    results = []
    for library in (mg, torch):
        x = library.tensor(array, requires_grad=True)
        w = library.tensor(weight, requires_grad=True)
        result = PROGRAMS[name](x * 1.5, w, library.tensor([2, 0]))
        result.backward(library.tensor(np.linspace(1.0, 2.0, int(np.prod(result.shape))).reshape(tuple(result.shape))))
        grads = [np.zeros(()) if leaf.grad is None else np.asarray(leaf.grad.numpy()) for leaf in (x, w)]
        results.append([np.asarray(result.detach().numpy()), *grads])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_saved_tensor_overwritten_by_index_raises():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = y * y
    y[[0]] = 5.0
    with pytest.raises(GraphError, match="modified by an inplace operation: index_copy_"):
        z.backward(mg.ones(2))


@pytest.mark.parametrize("value", [300, float("inf"), float("nan"), -256])
def test_unrepresentable_value_raises(value):
    x, idx = mg.tensor([1, 2], dtype=mg.uint8), mg.tensor([1])
    for write in (
        lambda: x.__setitem__(0, value),
        lambda: x.__setitem__([0], value),
        lambda: x.index_fill_(0, idx, value),
    ):
        with pytest.raises(DTypeError, match="cannot be converted to uint8 without overflow; its maximum is 255"):
            write()
    x[[0]], x[1] = -1, 2.9
    assert x.tolist() == [255, 2]


def test_overwritten_index_raises():
    x, idx = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([0, 1])
    y = x[idx]
    idx.mul_(0)
    with pytest.raises(GraphError, match="index_select saved its operand b"):
        y.backward(mg.ones(2))


# --- gradients ---


def test_embedding_gradients_accumulate_in_their_dtype():
    generator = np.random.default_rng(0)
    idx, weight = generator.integers(0, 1000, 5000), generator.standard_normal((5000, 64)).astype("float32")
    w = mg.tensor(np.zeros((1000, 64), "float32"), requires_grad=True)
    F.embedding(mg.tensor(idx), w).backward(mg.tensor(weight))
    expected = np.zeros((1000, 64))
    np.add.at(expected, idx, weight.astype(float))
    assert w.grad.dtype is mg.float32
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_inf_and_nan_gradients_affect_only_their_rows():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x[[0, 0, 1]].backward(mg.tensor([float("inf"), 1.0, float("nan")]))
    assert x.grad.numpy()[0] == np.inf
    assert np.isnan(x.grad.numpy()[1])
    assert x.grad.numpy()[2] == 0.0
    w = mg.tensor([[1.0], [2.0]], requires_grad=True)
    F.embedding(mg.tensor([0, 1]), w, padding_idx=1).backward(mg.tensor([[2.0], [float("nan")]]))
    assert w.grad.tolist() == [[2.0], [0.0]]


def test_grad_fn_names():
    x, idx = mg.tensor(arange(3, 4), requires_grad=True), mg.tensor([[0, 1]])
    assert F.gather(x, 0, idx).grad_fn.name == "GatherBackward"
    assert F.embedding(idx, x).grad_fn.name == "EmbeddingBackward"
    assert x[idx].grad_fn.name == x.index_select(0, idx[0]).grad_fn.name == "IndexSelectBackward"


def test_all_indexing_and_sorting_ops_have_formulas():
    for name in (*mg.ops.indexing.__all__, *mg.ops.sorting.__all__):
        printed = expression(mg.OPS[name], ["x", "i", "v"][: len(mg.OPS[name].inputs)])
        assert all(form() for form in (printed.latex, printed.formula, printed.mathml))


def test_0d_tensors_can_be_indexed():
    x = mg.tensor(3.0)
    assert (x[True].tolist(), x[False].tolist(), x[...].tolist()) == ([3.0], [], 3.0)
    assert F.gather(x, 0, mg.tensor(0)).tolist() == 3.0
    assert F.index_select(x, 0, mg.tensor([0])).tolist() == 3.0
    assert F.nonzero(x).shape == (1, 0)
    assert [at.tolist() for at in F.nonzero(x, as_tuple=True)] == [[0]]


# --- invalid arguments ---

X = (3, 4)
INVALID = {
    "[5]": lambda L, F, x: x[[5]],
    "[-4]": lambda L, F, x: x[[-4]],
    ":, [4]": lambda L, F, x: x[:, [4]],
    "no broadcast": lambda L, F, x: x[[0, 1], [0, 1, 2]],
    "too many": lambda L, F, x: x[[0], [0], [0]],
    "a mask of another shape": lambda L, F, x: x[L.tensor([True, False])],
    "a mask with too many dimensions": lambda L, F, x: x[L.tensor([[[True]]])],
    "floats": lambda L, F, x: x[L.tensor([0.0])],
    "a str": lambda L, F, x: x["x"],
    "write another dtype": lambda L, F, x: x.__setitem__([0], L.tensor([[1, 2, 3, 4]])),
    "write another shape": lambda L, F, x: x.__setitem__([0, 1], L.tensor([1.0, 2.0])),
    "write too few": lambda L, F, x: x.__setitem__(x > 0, L.tensor([1.0, 2.0])),
    "write a list": lambda L, F, x: x.__setitem__([0], [1.0]),
    "write a list at 0": lambda L, F, x: x.__setitem__(0, [1.0]),
    "gather, larger": lambda L, F, x: F.gather(x, 0, L.tensor([[0] * 5])),
    "gather, out of range": lambda L, F, x: F.gather(x, 0, L.tensor([[3]])),
    "gather, negative": lambda L, F, x: F.gather(x, 0, L.tensor([[-1]])),
    "gather, dimensions": lambda L, F, x: F.gather(x, 0, L.tensor([0])),
    "gather, floats": lambda L, F, x: F.gather(x, 0, L.tensor([[0.0]])),
    "gather, dim": lambda L, F, x: F.gather(x, 2, L.tensor([[0]])),
    "scatter, dtype": lambda L, F, x: F.scatter(x, 0, L.tensor([[0]]), L.tensor([[1]])),
    "scatter, smaller": lambda L, F, x: F.scatter(x, 0, L.tensor([[0, 1]]), L.tensor([[1.0]])),
    "scatter, 0-d src": lambda L, F, x: F.scatter(x, 0, L.tensor([[0]]), L.tensor(1.0)),
    "scatter, larger": lambda L, F, x: F.scatter(x, 0, L.tensor([[0] * 5]), 1.0),
    "scatter, negative": lambda L, F, x: F.scatter(x, 0, L.tensor([[-1]]), 1.0),
    "scatter_add, a scalar": lambda L, F, x: F.scatter_add(x, 0, L.tensor([[0]]), 1.0),
    "index_select, a matrix": lambda L, F, x: F.index_select(x, 0, L.tensor([[0]])),
    "index_select, negative": lambda L, F, x: F.index_select(x, 0, L.tensor([-1])),
    "index_select, a mask": lambda L, F, x: F.index_select(x, 0, L.tensor([True])),
    "index_select of a 0-d tensor": lambda L, F, x: F.index_select(x[0, 0], 0, L.tensor([0, 0])),
    "index_add, dtype": lambda L, F, x: F.index_add(x, 0, L.tensor([0]), L.tensor([[1, 1, 1, 1]])),
    "index_add, shape": lambda L, F, x: F.index_add(x, 0, L.tensor([0, 0]), x[:2, :1]),
    "index_add, count": lambda L, F, x: F.index_add(x, 0, L.tensor([0, 0]), x),
    "index_copy, negative": lambda L, F, x: F.index_copy(x, 0, L.tensor([-1]), x[:1]),
    "index_fill, a vector": lambda L, F, x: F.index_fill(x, 0, L.tensor([1]), L.tensor([1.0])),
    "take, out of range": lambda L, F, x: F.take(x, L.tensor([12])),
    "take_along_dim, dimensions": lambda L, F, x: F.take_along_dim(x, L.tensor([0]), 0),
    "embedding, out of range": lambda L, F, x: F.embedding(L.tensor([3]), x),
    "embedding, negative": lambda L, F, x: F.embedding(L.tensor([-1]), x),
    "embedding, a vector": lambda L, F, x: F.embedding(L.tensor([0]), x[0]),
    "one_hot, too few": lambda L, F, x: F.one_hot(L.tensor([3]), 3),
    "one_hot, negative": lambda L, F, x: F.one_hot(L.tensor([-1])),
    "one_hot, empty": lambda L, F, x: F.one_hot(L.tensor([[0]])[:0]),
    "masked_fill, ints": lambda L, F, x: F.masked_fill(x, L.tensor([1, 0, 1, 0]), 1.0),
    "masked_fill, a vector": lambda L, F, x: F.masked_fill(x, x > 0, L.tensor([1.0])),
    "masked_fill_, larger": lambda L, F, x: x[0].masked_fill_(x > 0, 1.0),
    "masked_fill, shape": lambda L, F, x: F.masked_fill(x, L.tensor([True, False]), 1.0),
    "masked_scatter, too few": lambda L, F, x: F.masked_scatter(x, x > 0, L.tensor([1.0])),
    "masked_scatter, dtype": lambda L, F, x: F.masked_scatter(x, x > 0, L.tensor([1])),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("name", INVALID)
def test_calls_that_pytorch_rejects_raise_and_change_nothing(torch, name):
    from parity import torch_functions

    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        INVALID[name](torch, torch_functions(), torch.tensor(arange(*X)).float())
    x = mg.tensor(arange(*X)).to(mg.float32)
    with pytest.raises((ShapeError, DTypeError)):
        INVALID[name](mg, F, x)
    assert x.tolist() == arange(*X).tolist()


MESSAGES = {
    "out of range": (
        lambda x: x[0, [4]],
        ShapeError,
        """index: index 4 is out of bounds for dimension 1 with size 4.
  Valid indices are 0 to 3, or -1 to -4.""",
    ),
    "negative": (
        lambda x: x.gather(1, mg.tensor([[-1]])),
        ShapeError,
        """gather: index -1 is out of bounds for dimension 1 with size 4.
  Valid indices are 0 to 3.""",
    ),
    "empty dimension": (
        lambda x: F.embedding(mg.tensor([0]), x[:0]),
        ShapeError,
        """embedding: index 0 is out of bounds for dimension 0 with size 0.
  The dimension is empty.""",
    ),
    "bytes": (
        lambda x: x[mg.tensor([0, 1], dtype=mg.uint8)],
        DTypeError,
        """index: tensors used as indices must be int64, int32 or bool, but got uint8.
  For a mask, write x[mask.to(mg.bool)].""",
    ),
    "mask": (
        lambda x: x[mg.tensor([True, False])],
        ShapeError,
        """index: the shape of the mask (2,) at index 0 does not match the shape of the indexed dimensions (3, 4).
  A mask has one bool for each element, or for each row.""",
    ),
    "type": (
        lambda x: x.__setitem__([0], mg.tensor([[1, 2, 3, 4]])),
        DTypeError,
        """index: expected value to have the same dtype as tensor (float32), but got int64.
  Write value.to(mg.float32).""",
    ),
    "shape": (
        lambda x: x.__setitem__([0, 1], mg.ones(2)),
        ShapeError,
        "index: value of shape (2,) cannot be broadcast to the indexed shape (2, 4).",
    ),
    "option": (
        lambda x: F.embedding(mg.tensor([0]), x, sparse=True),
        ArgumentError,
        """embedding: sparse gradients are not supported; omit sparse.""",
    ),
    "reduce": (
        lambda x: x.scatter(0, mg.tensor([[0]]), 1.0, reduce="mean"),
        ArgumentError,
        "scatter: expected reduce to be one of 'add', 'multiply', but got 'mean'.",
    ),
    "src and value": (
        lambda x: x.scatter(0, mg.tensor([[0]]), 1.0, value=1.0),
        ArgumentError,
        "scatter: expected exactly one of src and value.",
    ),
}


@merge_cases
@pytest.mark.parametrize("name", MESSAGES)
def test_error_messages(name):
    call, error_type, message = MESSAGES[name]
    with pytest.raises(error_type) as error:
        call(mg.tensor(arange(3, 4)).to(mg.float32))
    assert str(error.value) == message


@pytest.mark.parametrize("device", ["numpy", DEVICE])
def test_scatter_products_have_gradients_at_zeros_and_isolate_infinity(device):
    x = mg.tensor([2.0, 3.0, 0.0, 5.0], device=device, requires_grad=True)
    src = mg.tensor([4.0, 0.0, 6.0, 7.0, math.inf, 0.0, 8.0], device=device, requires_grad=True)
    idx = mg.tensor([0, 0, 1, 1, 3, 2, 1], device=device)
    y = x.scatter_reduce(0, idx, src, "prod")
    assert y.tolist() == [0.0, 3.0 * 6 * 7 * 8, 0.0, math.inf]
    y[:3].sum().backward()
    assert x.grad[:3].tolist() == [0.0, 336.0, 0.0]
    assert src.grad.tolist() == [0.0, 8.0, 168.0, 144.0, 0.0, 0.0, 126.0]
    assert x.detach().scatter(0, idx[:3], 2.0, reduce="multiply").tolist() == [8.0, 6.0, 0.0, 5.0]
    assert mg.tensor([1, 2, 3]).scatter(0, mg.tensor([0, 0]), mg.tensor([5, 6]), reduce="add").tolist() == [12, 2, 3]
    z = mg.ones(2, device=device)
    assert z.scatter_(0, mg.tensor([1, 1], device=device), 3.0, reduce="multiply") is z
    assert z.tolist() == [1.0, 9.0]
