"""default_collate and default_convert follow PyTorch's rules."""

import re
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.data import default_collate, default_convert

Point = namedtuple("Point", "x y")

EXAMPLES = {
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.0, 2.5],
    "strings": ["a", "b"],
    "bytes": [b"a", b"b"],
    "arrays": [np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)],
    "numpy floats": [np.float32(1), np.float32(2)],
    "numpy integers": [np.int64(1), np.int64(2)],
    "tuples": [(1, "a"), (2, "b")],
    "lists": [[1, 2], [3, 4]],
    "dicts": [{"x": 1, "y": (2, "a")}, {"x": 3, "y": (4, "b")}],
    "an ordered dict": [OrderedDict(a=1), OrderedDict(a=2)],
    "named tuples": [Point(1, np.uint8(2)), Point(3, np.uint8(4))],
}


def to_lists(obj):
    """Return nested data with tensors and arrays as lists, for either library."""
    if hasattr(obj, "dtype"):
        return str(obj.dtype).split(".")[-1], np.asarray(obj).tolist()
    if isinstance(obj, dict):
        return type(obj), {key: to_lists(x) for key, x in obj.items()}
    if isinstance(obj, list | tuple):
        return type(obj), [to_lists(x) for x in obj]
    return type(obj), obj


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_batches_match_pytorch(torch, name, function):
    actual = getattr(mg.data, function)(EXAMPLES[name])
    assert to_lists(actual) == to_lists(getattr(torch.utils.data, function)(EXAMPLES[name]))


def test_tensors_are_stacked_on_their_device():
    batch = default_collate([(mg.ones(2, device="numpy"), 1), (mg.zeros(2, device="numpy"), 2)])
    assert (batch[0].tolist(), batch[0].device) == ([[1.0, 1.0], [0.0, 0.0]], "numpy")
    assert batch[1].dtype is mg.int64


def test_arrays_become_tensors_one_by_one():
    x, rest = default_convert((np.ones(2, np.float32), {"a": "text", "n": 3}))
    assert (type(x), x.dtype, rest) == (mg.Tensor, mg.float32, {"a": "text", "n": 3})


@pytest.mark.parametrize(
    ("batch", "kind", "message"),
    [
        ([mg.ones(2), mg.ones(3)], ShapeError, r"equal size, but got \(2,\) at entry 0 and \(3,\) at entry 1"),
        ([np.ones(2), np.ones(3)], ShapeError, r"equal size, but got \(2,\) at entry 0"),
        ([[1, 2], [1]], ShapeError, "each element in list of batch should be of equal size, but got sizes 1, 2"),
        ([None], DTypeError, "numbers, dicts or lists; found builtins.NoneType"),
        ([np.array(["a"])], DTypeError, "found an array of <U1"),
        ([], ShapeError, "the batch is empty"),
    ],
)
def test_invalid_batches_raise(batch, kind, message):
    with pytest.raises(kind, match=message) as caught:
        default_collate(batch)
    assert re.match("default_collate: ", str(caught.value))


def test_samples_with_different_keys_raise():
    with pytest.raises(ShapeError, match=r"sample 0 of this batch has keys \['a'\], but sample 1 has \['b'\]"):
        default_collate([{"a": 1}, {"b": 1}])
