"""Interoperability: Python protocols, NumPy, DLPack, copies, pickles and `.data`."""

import copy
import operator
import pickle

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError, GraphError, MinigradError, ShapeError
from minigrad.pytorch.advice import DIFFERENCES
from taichi_device import in_memory

# --- Python ---

QUERIES = {
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "float": float,
    "int": int,
    "bool": bool,
    "index": operator.index,
    "len": len,
    "iter": lambda x: [one.tolist() for one in x],
    "contains": lambda x: 2 in x,
    "format": lambda x: f"{x}" if not x.ndim else None,
    "format a number": lambda x: f"{x:.2f}",
    "numel": lambda x: x.numel(),
    "nelement": lambda x: x.nelement(),
    "dim": lambda x: x.dim(),
    "size": lambda x: tuple(x.size()),
    "size of the last": lambda x: x.size(-1),
    "size of a third": lambda x: x.size(2),
    "element_size": lambda x: x.element_size(),
    "itemsize": lambda x: x.itemsize,
    "nbytes": lambda x: x.nbytes,
    "is_floating_point": lambda x: x.is_floating_point(),
}
DATA = {
    "0-d float": 2.5,
    "0-d int": 2,
    "0-d bool": True,
    "one": [3.0],
    "one int": [[2]],
    "vector": [1.0, 2.0, 3.0],
    "matrix": [[1, 2], [3, 4], [5, 6]],
    "empty": [],
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("question", QUERIES)
def test_python_protocols_match_pytorch(torch, question, kind):
    try:
        expected = QUERIES[question](torch.tensor(DATA[kind]))
    except (RuntimeError, TypeError, IndexError, ValueError):
        with pytest.raises(MinigradError):
            QUERIES[question](mg.tensor(DATA[kind]))
        return
    answer = QUERIES[question](mg.tensor(DATA[kind]))
    assert answer == expected
    assert type(answer) is type(expected)


def test_iteration_yields_differentiable_views():
    x = mg.zeros(3, 2, requires_grad=True)
    sum(row.sum() * k for k, row in enumerate(x)).backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    base = mg.zeros(2, 2)
    for row in base:
        row.add_(1.0)
    assert (base.tolist(), base._version) == ([[1.0, 1.0], [1.0, 1.0]], 2)


def test_query_functions():
    assert [mg.is_tensor(x) for x in (mg.zeros(2), np.zeros(2), 1.0)] == [True, False, False]
    assert (mg.numel(mg.zeros(2, 3)), mg.is_floating_point(mg.zeros(2))) == (6, True)
    assert list(range(mg.tensor(3))) == [0, 1, 2]


# --- dtypes and devices ---


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("name", ["float", "double", "int", "long", "bool", "byte"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_dtype_conversions_match_pytorch(torch, dtype, name):
    array = np.array([0, 1, 2.75, 3]).astype(dtype)
    actual, expected = getattr(mg.tensor(array), name)(), getattr(torch.tensor(array), name)()
    assert actual.dtype.name == str(expected.dtype)[6:]
    assert actual.tolist() == expected.tolist()


@in_memory
def test_to_accepts_dtype_device_or_tensor_and_copies_only_if_needed():
    x = mg.ones(2)
    double = mg.zeros(1, dtype=mg.float64)
    assert x.to(mg.float32) is x.to(x.device) is x.to(x) is x.to(None) is x.float() is x.cpu() is x.type_as(x) is x
    for y in (x.to(mg.float64), x.to(float).double(), x.to(double), x.to(x.device, mg.float64), x.to(dtype=mg.float64)):
        assert y.dtype is mg.float64
    copied = x.to(mg.float32, copy=True)
    x.add_(1.0)
    assert copied.tolist() == [1.0, 1.0]


def test_gradient_of_a_conversion_has_the_original_dtype():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x.double() * 3.0).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (mg.float32, [3.0, 3.0])
    assert not x.long().requires_grad


# --- .data ---


def test_assigning_data_writes_outside_the_graph():
    p = mg.tensor([1.0, 2.0], requires_grad=True)
    view = p.detach()
    (p * p).sum().backward()
    p.data = p.data - 0.5 * p.grad
    assert (p.tolist(), view.tolist(), p.is_leaf, p.requires_grad) == ([0.0, 0.0], [0.0, 0.0], True, True)
    p.data -= 1.0
    assert p.tolist() == [-1.0, -1.0]


def test_backward_after_assigning_data_raises():
    p = mg.tensor([1.0, 2.0], requires_grad=True)
    y = (p * p).sum()
    p.data = mg.zeros(2)
    with pytest.raises(GraphError, match="mul saved its operand a of shape"):
        y.backward()
    for value in (mg.zeros(3), mg.zeros(2, dtype=mg.float64), 1.0):
        with pytest.raises(ShapeError, match=r"data: expected a tensor of dtype float32 and shape \(2,\), but got"):
            p.data = value


WRITES = [
    "s.data[0] = 5.0",
    "s.data = s.data * 2",
    "s.data.mul_(2)",
    "s.data.fill_(3.0)",
    "s.data.zero_()",
    "s.data.copy_(s.data * 2)",
    "s.data[:1].add_(1)",
]


def write_between_forward_and_backward(library, statement):
    w = library.tensor([1.0, 2.0], requires_grad=True)
    s = w * 1
    y = (s * s).sum()
    exec(statement, {"s": s})
    y.backward()
    return w.grad.tolist(), (2 * s).tolist()


@merge_cases
@pytest.mark.parametrize("statement", WRITES)
def test_writes_through_data_are_detected(statement):
    with pytest.raises(
        GraphError, match=r"mul saved its operand a of shape \(2,\), which has been modified by an inplace operation"
    ):
        write_between_forward_and_backward(mg, statement)


@merge_cases
@pytest.mark.parity
@pytest.mark.parametrize("statement", WRITES)
def test_pytorch_does_not_detect_writes_through_data(torch, statement):
    gradient, gradient_of_new_values = write_between_forward_and_backward(torch, statement)
    assert gradient == gradient_of_new_values != [2.0, 4.0]
    assert "PyTorch silently computes another gradient" in DIFFERENCES["torch.Tensor.data"]


# --- NumPy ---


@in_memory
def test_numpy_shares_memory_and_force_detaches():
    x = mg.zeros(2, requires_grad=True)
    assert np.shares_memory(x.numpy(force=True), x.detach().numpy())
    with pytest.raises(GraphError) as error:
        x.numpy()
    assert str(error.value) == (
        "numpy: can't be called on a tensor that requires grad; NumPy would lose the gradient.\n"
        "  Use x.detach().numpy()."
    )


@in_memory
def test_asarray_of_a_tensor_respects_copy():
    x = mg.tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.asarray(x, copy=True), x.numpy())
    with pytest.raises(ValueError, match="cannot become an array of float64 without a copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    with pytest.raises(GraphError, match=r"Use x\.detach\(\)\.numpy\(\)"):
        np.asarray(mg.zeros(2, requires_grad=True))
    assert np.stack([x, x]).shape == (2, 2)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "lt", "ge", "eq", "ne"])
def test_numpy_defers_operators_to_tensors(name):
    x, function = mg.tensor([1.0, 2.0]), getattr(operator, name)
    for array in (np.ones(2), np.ones(2, np.int64)):
        with pytest.raises(DTypeError, match="ndarray is not supported; expected a tensor"):
            function(array, x)
    for scalar in (np.float64(2.0), np.float32(2.0), np.int64(2)):
        assert function(scalar, x).tolist() == function(2.0, x).tolist()
        assert function(scalar, x).dtype is function(2.0, x).dtype


def test_numpy_ufuncs_reject_tensors():
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.exp(mg.zeros(2))


# --- DLPack ---


@in_memory
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_numpy_and_minigrad_share_memory_through_dlpack(dtype):
    x = mg.zeros(2, 3, dtype=getattr(mg, dtype))
    array = np.from_dlpack(x.permute(1, 0))
    x[0, 1] = 1
    assert (array.shape, array[1, 0], array.dtype.name) == ((3, 2), 1, dtype)
    back = mg.from_dlpack(array)
    assert np.shares_memory(back.numpy(), x.numpy())
    assert x.__dlpack_device__() == (1, 0)


@in_memory
@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_pytorch_and_minigrad_share_memory_through_dlpack(torch, dtype):
    torch_tensor = torch.zeros(3, 2, dtype=getattr(torch, dtype))
    tensor = mg.from_dlpack(torch_tensor.T)
    torch_tensor[2, 1] = 1
    assert (tensor.shape, tensor[1, 2].item(), tensor.dtype.name) == ((2, 3), 1, dtype)
    tensor[0, 0] = 1
    assert (torch_tensor[0, 0].item(), tensor._version) == (1, 1)
    back = torch.from_dlpack(tensor)
    tensor[0, 1] = 1
    assert back[0, 1].item() == 1
    assert back.data_ptr() == torch_tensor.data_ptr()


@in_memory
def test_read_only_memory_is_shared_but_not_written():
    array = np.arange(3.0)
    array.flags.writeable = False
    for shared in (mg.from_numpy(array), mg.from_dlpack(array), mg.from_numpy(array)[1:]):
        assert (shared + 1.0).tolist()[-1] == 3.0
        with pytest.raises(GraphError) as error:
            shared.add_(1.0)
        assert str(error.value) == ("add_: the tensor shares memory with a read-only array.\n  clone() it first.")
        assert shared._version == 0
        assert shared.clone().add_(1.0).tolist()[-1] == 3.0


def test_dlpack_errors():
    with pytest.raises(
        GraphError, match=r"__dlpack__: can't be called on a tensor that requires grad; .*\n  Use x.detach\(\)\."
    ):
        np.from_dlpack(mg.zeros(2, requires_grad=True))
    with pytest.raises(GraphError, match="__dlpack__: can't be called on a tensor that requires grad"):
        mg.from_dlpack(mg.zeros(2, requires_grad=True))
    with pytest.raises(DTypeError, match="from_dlpack: list cannot be shared"):
        mg.from_dlpack([1.0])
    with pytest.raises(DTypeError, match="expected one of float64"):
        mg.from_dlpack(np.zeros(2, np.int8))


# --- copies ---


def test_copy_shares_memory_and_deepcopy_does_not():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert (shallow.requires_grad, deep.requires_grad, shallow.is_leaf, deep.is_leaf) == (True,) * 4
    assert (shallow.grad, deep.grad.tolist()) == (None, [2.0, 4.0])
    with mg.no_grad():
        x.mul_(0.0)
        x.grad.mul_(0.0)
    assert (shallow.tolist(), shallow._version) == ([0.0, 0.0], 1)
    assert (deep.tolist(), deep.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0])


def test_deepcopy_preserves_identity():
    x = mg.zeros(2)
    one, two, view = copy.deepcopy([x, x, x[:1]])
    assert one is two
    one.add_(1.0)
    assert view.tolist() == [0.0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_leaves_are_pickled(protocol):
    x = mg.tensor([[1.0, float("nan")], [3.0, 4.0]], requires_grad=True)
    for leaf in (x, mg.tensor(3), mg.zeros(0, 2), mg.tensor([True]), x.detach().permute(1, 0)):
        back = pickle.loads(pickle.dumps(leaf, protocol))
        assert (back.shape, back.dtype, back.requires_grad) == (leaf.shape, leaf.dtype, leaf.requires_grad)
        np.testing.assert_array_equal(back.detach().numpy(), leaf.detach().numpy())
        back.detach().copy_(1)


def test_equal_foreign_dtypes_are_not_converted():
    nn, array = mg.nn, np.random.default_rng(0).normal(size=(2, 1, 8, 8)).astype(np.float32)
    unpickled = pickle.loads(pickle.dumps(array))  # its dtype equals NumPy's own, but is another object
    model = nn.Sequential(
        *(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 2, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 3)),
    )
    for x in (mg.from_numpy(unpickled), pickle.loads(pickle.dumps(mg.tensor(array)))):
        with mg.profile() as profile:
            nn.functional.cross_entropy(model(x), mg.tensor([0, 2])).backward()
        assert "to" not in {op for op, _ in profile.rows}


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_non_leaf_tensors_cannot_be_copied(duplicate):
    y = mg.ones(2, requires_grad=True) * 2.0
    with pytest.raises(GraphError) as error:
        duplicate(y)
    name = "pickle" if duplicate is pickle.dumps else duplicate.__name__
    assert str(error.value) == (
        f"{name}: only graph leaves are supported, but this tensor was computed by <MulBackward>.\n"
        "  Write x.detach() for its values alone."
    )
    duplicate(y.detach())


# --- devices in pickles ---


def test_unpickling_from_an_unavailable_device_uses_the_default(monkeypatch):
    from minigrad.core import storage
    from minigrad.functional import interop

    unavailable = storage.get_allocator("numpy")._replace(is_available=lambda: False)
    monkeypatch.setitem(storage._allocators, "metal", unavailable)
    x = interop._unpickled(np.ones(2, np.float32), "metal", False)
    assert (x.device, x.tolist()) == (mg.get_default_device(), [1.0, 1.0])
