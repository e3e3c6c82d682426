"""Tensor indexing: random keys against PyTorch, reads, views and writes."""

import random

import numpy as np
import pytest

import minigrad as mg
from arrays import arange
from cases import merge_cases
from minigrad.core.errors import GraphError, ShapeError
from taichi_device import ON_GPU, in_memory

# --- keys ---

SIZES = (3, 4, 2, 3)


def random_key(generator):
    """Return a key for SIZES that PyTorch supports, with parts of all kinds; arrays represent tensors."""
    broadcast_shape = generator.choice([(2,), (1, 2), (3,)])  # index tensors broadcast to this
    key, dim = [], 0
    while dim < len(SIZES) and generator.random() < 0.8:
        size, kind = SIZES[dim], generator.choice(["int", "slice", "none", "index", "index", "one", "mask", "list"])
        if kind == "none":
            key.append(None)
            continue
        if kind == "mask":
            mask = np.zeros(size, bool)
            mask[generator.sample(range(size), generator.choice([1, min(broadcast_shape[-1], size)]))] = True
            key.append(mask)
        elif kind == "slice":
            key.append(slice(generator.randrange(size), None, generator.choice([1, 2])))
        elif kind == "index":
            shape = broadcast_shape[generator.randrange(len(broadcast_shape)) :]
            key.append(np.array([generator.randrange(-size, size) for _ in range(int(np.prod(shape)))]).reshape(shape))
        else:
            one = generator.randrange(-size, size)
            key.append({"int": one, "one": np.array(one), "list": [one]}[kind])
        dim += 1
    if generator.random() < 0.3:
        key.insert(generator.randrange(len(key) + 1), ...)
    return tuple(key)


def convert_key(key, tensor):
    return tuple(tensor(part) if isinstance(part, np.ndarray) else part for part in key)


@pytest.mark.parity
@merge_cases(by="first")
@pytest.mark.parametrize("first", range(0, 300, 30))
@pytest.mark.parametrize("offset", range(30))
def test_random_keys_match_pytorch_for_reads_writes_and_gradients(torch, first, offset):
    seed = first + offset
    generator = random.Random(seed)
    key = random_key(generator)
    values = np.random.default_rng(seed).standard_normal(SIZES)
    x, t = mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    mg_key, torch_key = convert_key(key, mg.tensor), convert_key(key, torch.tensor)
    try:
        expected = t[torch_key]
    except IndexError:
        with pytest.raises(ShapeError):
            x[mg_key]
        return
    actual = x[mg_key]
    assert actual.detach().tolist() == expected.tolist()
    weight = np.random.default_rng(seed + 1).standard_normal(tuple(expected.shape))
    actual.backward(mg.tensor(weight))
    expected.backward(torch.tensor(weight))
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-12, atol=1e-12)

    write_counts = np.zeros(SIZES, np.int64)  # writes per element: repeated writes are undefined in PyTorch
    np.add.at(
        write_counts.reshape(-1), torch.arange(write_counts.size).reshape(SIZES)[torch_key].numpy().reshape(-1), 1
    )
    if write_counts.max(initial=0) > 1:
        return
    v, u = mg.tensor(weight, requires_grad=True), torch.tensor(weight, requires_grad=True)
    y, z = x * 2.0, t * 2.0
    y[mg_key], z[torch_key] = v, u
    assert y.detach().tolist() == z.tolist()
    (y * y).backward(mg.tensor(values))
    x_grad, v_grad = x.grad.numpy() - t.grad.numpy(), v.grad
    x_expected, v_expected = torch.autograd.grad(z * z, [t, u], torch.tensor(values))
    np.testing.assert_allclose(x_grad, x_expected.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(v_grad.numpy(), v_expected.numpy(), rtol=1e-12, atol=1e-12)


def test_lists_of_lists_are_one_index_as_in_numpy():
    array = arange(3, 4)  # PyTorch used to read this as x[[0, 1], [1, 2]] and deprecated that
    assert mg.tensor(array)[[[0, 1], [1, 2]]].tolist() == array[[[0, 1], [1, 2]]].tolist()


def test_an_int_is_not_a_separate_index_tensor():
    """NumPy puts the 2 first in x[0, :, [0, 1]]; PyTorch and minigrad apply the int first."""
    assert mg.zeros(2, 3, 4)[0, :, [0, 1]].shape == (3, 2)
    assert mg.zeros(2, 3, 4)[mg.tensor(0), :, [0, 1]].shape == (3, 2)
    assert mg.zeros(2, 3, 4)[[0, 0], :, [0, 1]].shape == (2, 3)


def test_keys_may_contain_numpy_arrays_and_scalars():
    x = mg.tensor(arange(3, 4))
    assert x[np.int64(1), np.array([0, -1])].tolist() == [5.0, 8.0]
    assert x[np.array([True, False, True])].shape == (2, 4)


def test_indexing_by_tensors_copies_and_by_ints_and_slices_does_not():
    x = mg.zeros(3, 4)
    x[[0, 1]].add_(1.0)
    assert not x.numpy().any()
    x[0:2].add_(1.0)
    x[mg.tensor(2)].add_(1.0)
    assert x.numpy().all()


@in_memory
@merge_cases
@pytest.mark.parametrize(
    "key", [0, -1, (1, 2), (..., 0), (0, ...), slice(None, None, 2), (slice(1, None), None, -1), None, ...], ids=repr
)
def test_basic_indexing_is_numpy_s_and_gives_views(key):
    array = np.arange(12.0).reshape(3, 4)
    a = mg.from_numpy(array)
    view = a[key]
    assert view.tolist() == array[key].tolist()
    view.mul_(-1.0)
    assert a[key].tolist() == array[key].tolist() == view.tolist()
    assert (view.numpy() <= 0).all()


# --- writes ---


def test_writing_one_index_touches_no_other_elements():
    x, calls = mg.zeros(3, 4), []
    with mg.tap(calls.append):
        x[1:][[1, 0]] = 2.0
    written = calls[-1]
    assert (written.op, written.out.shape) == ("index_copy", (2, 4))
    assert ON_GPU or np.shares_memory(written.result, x.numpy())


def test_source_may_overlap_the_destination():
    x = mg.tensor([1.0, 2.0, 3.0, 4.0])
    x[[1, 2, 3]] = x[:3]
    assert x.tolist() == [1.0, 1.0, 2.0, 3.0]


# --- errors ---


def test_indexed_write_to_a_leaf_that_requires_grad_raises():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match="a leaf that requires grad is being used in an in-place operation"):
        x[[0]] = 1.0
    with mg.no_grad():
        x[[0]] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_int32_indices_and_negative_steps_are_accepted():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x[mg.tensor([2, 0], dtype=mg.int32)]
    y.backward(mg.tensor([10.0, 1.0]))
    assert (y.tolist(), x.grad.tolist(), x[::-1].tolist()) == ([3.0, 1.0], [1.0, 0.0, 10.0], [3.0, 2.0, 1.0])
