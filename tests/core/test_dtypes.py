"""Dtypes and type promotion, against PyTorch."""

import itertools

import pytest

from minigrad.core import dtypes
from minigrad.core.dtypes import DTYPES, as_dtype, get_default_dtype, promote_types, result_type, set_default_dtype
from minigrad.core.errors import DTypeError


@pytest.mark.parity
def test_every_pair_promotes_as_in_pytorch(torch):
    for a, b in itertools.product(DTYPES.values(), repeat=2):
        assert promote_types(a, b).name == str(torch.promote_types(getattr(torch, a.name), getattr(torch, b.name)))[6:]


@pytest.mark.parity
def test_every_triple_of_ranks_promotes_as_in_pytorch(torch):
    for a, b, value in itertools.product(DTYPES.values(), DTYPES.values(), (True, 2, 2.0)):
        with_dims = torch.ones(2, dtype=getattr(torch, a.name))
        scalar = torch.ones((), dtype=getattr(torch, b.name))
        expected = str(torch.result_type(with_dims, scalar))[6:]
        assert result_type([a], [b]).name == expected
        assert (
            result_type([a], numbers=[dtypes.dtype_of_scalar(value)]).name
            == str(torch.result_type(with_dims, value))[6:]
        )
        assert result_type([], [b], [dtypes.dtype_of_scalar(value)]).name == str(torch.result_type(scalar, value))[6:]


def test_a_dtype_can_be_given_as_python_type_or_numpy_dtype():
    import numpy as np

    assert [as_dtype(x) for x in (float, int, bool, "int32", np.dtype("uint8"), np.dtype("float64"))] == [
        dtypes.float32,
        dtypes.int64,
        dtypes.bool,
        dtypes.int32,
        dtypes.uint8,
        dtypes.float64,
    ]
    with pytest.raises(DTypeError) as error:
        as_dtype("complex64")
    assert str(error.value) == (
        "dtype: expected one of float64, float32, int64, int32, uint8, bool, but got 'complex64'.\n"
        "  Write mg.float32, for example."
    )


def test_the_default_dtype_must_be_floating_point():
    assert get_default_dtype() is dtypes.float32
    try:
        set_default_dtype(dtypes.float64)
        assert dtypes.dtype_of_scalar(1.0) is dtypes.float64
        assert as_dtype(float) is dtypes.float64
    finally:
        set_default_dtype(dtypes.float32)
    with pytest.raises(DTypeError, match=r"only floating-point types are supported .* got minigrad\.int64"):
        set_default_dtype(dtypes.int64)
