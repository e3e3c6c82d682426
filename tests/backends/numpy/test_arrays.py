"""Indices are int64 on every machine, although NumPy's own are as wide as a pointer."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.dispatch import accept_raw_values
from minigrad.core.op import OPS

F = mg.nn.functional


@pytest.fixture
def pointers_of_32_bits(monkeypatch):
    """Let NumPy's functions return indices as on a 32-bit machine, such as Pyodide's."""

    def narrow(function):
        def call(*args, **kwargs):
            result = np.asarray(function(*args, **kwargs))
            is_default = kwargs.get("dtype") is None and result.dtype == np.int64
            return result.astype(np.int32) if is_default else result

        return call

    for name in ("argmax", "argmin", "argsort", "argwhere", "arange", "prod"):
        monkeypatch.setattr(np, name, narrow(getattr(np, name)))


def numbers():
    return mg.tensor([3.0, 1.0, 2.0, 1.0], device="numpy")


def image():
    return mg.tensor([[[1.0, 4.0], [2.0, 3.0]]], device="numpy")


CALLS = {
    "argmax": (lambda: numbers().argmax(), 0),
    "argmin": (lambda: numbers().argmin(0, keepdim=True), [1]),
    "max": (lambda: numbers().max(0).indices, 0),
    "min": (lambda: numbers().min(0).indices, 1),
    "median": (lambda: numbers().median(0).indices, 3),
    "kthvalue": (lambda: numbers().kthvalue(3).indices, 2),
    "sort": (lambda: numbers().sort().indices, [1, 3, 2, 0]),
    "sort, descending": (lambda: numbers().sort(descending=True).indices, [0, 2, 1, 3]),
    "argsort": (lambda: numbers().argsort(), [1, 3, 2, 0]),
    "topk": (lambda: numbers().topk(2).indices, [0, 2]),
    "nonzero": (lambda: (numbers() > 1).nonzero(), [[0], [2]]),
    "nonzero, as a tuple": (lambda: (numbers() > 1).nonzero(as_tuple=True)[0], [0, 2]),
    "where": (lambda: mg.where(numbers() > 1)[0], [0, 2]),
    "count_nonzero": (lambda: (numbers() > 1).count_nonzero(), 2),
    "searchsorted": (lambda: mg.searchsorted(numbers().sort().values, numbers()), [3, 0, 2, 0]),
    "bucketize": (lambda: mg.bucketize(numbers(), mg.tensor([1.5, 2.5], device="numpy")), [2, 0, 1, 0]),
    "bincount": (lambda: mg.bincount(numbers().to(mg.int32)), [0, 2, 1, 1]),
    "unique, inverse": (lambda: numbers().unique(return_inverse=True)[1], [2, 0, 1, 0]),
    "unique, counts": (lambda: numbers().unique(return_counts=True)[1], [2, 1, 1]),
    "max_pool2d": (lambda: F.max_pool2d(image(), 2, return_indices=True)[1], [[[1]]]),
    "sum of bools": (lambda: (numbers() > 1).sum(), 2),
    "sum of int32": (lambda: mg.full((2,), 2**31 - 1, dtype=mg.int32, device="numpy").sum(), 2**32 - 2),
    "prod of int32": (lambda: mg.full((2,), 2**20, dtype=mg.int32, device="numpy").prod(), 2**40),
    "cumsum of bools": (lambda: (numbers() > 1).cumsum(0), [1, 1, 2, 2]),
    "cumsum of int32": (lambda: mg.full((2,), 2**30, dtype=mg.int32, device="numpy").cumsum(0), [2**30, 2**31]),
    "arange": (lambda: mg.arange(2**40, 2**40 + 2, device="numpy"), [2**40, 2**40 + 1]),
    "tensor of ints": (lambda: mg.tensor([1, 2], device="numpy"), [1, 2]),
    "tril_indices": (lambda: mg.tril_indices(2, 2, device="numpy"), [[0, 1, 1], [0, 0, 1]]),
    "targets of toys": (lambda: mg.data.moons(2, device="numpy", seed=0)[1].sort().values, [0, 1]),
}


@merge_cases
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_indices_and_sums_of_integers_are_int64(call, pointers_of_32_bits):
    function, expected = call
    result = function()
    assert (result.dtype, result.tolist()) == (mg.int64, expected)


def test_random_indices_are_int64(pointers_of_32_bits):
    for indices in (mg.randperm(5, device="numpy"), mg.multinomial(mg.ones(5, device="numpy"), 5)):
        assert (indices.dtype, sorted(indices.tolist())) == (mg.int64, [0, 1, 2, 3, 4])


def test_random_shapes_are_multiplied_exactly(pointers_of_32_bits):
    """The number of elements of a shape used to overflow into a positive number, which then was the number drawn."""
    with pytest.raises((mg.errors.OutOfMemoryError, mg.errors.ShapeError), match=r"memory|Unable to allocate"):
        mg.rand(2**16, 2**16, 2**16, device="numpy")


def test_scalars_of_each_name_of_an_integer_type_reach_the_kernels():
    """NumPy names one width twice, for example long and long long, and calls kernels with scalars of either."""
    with accept_raw_values():
        for code in ("i", "l", "q"):
            assert OPS["neg"](np.dtype(code).type(2)) == -2, code
