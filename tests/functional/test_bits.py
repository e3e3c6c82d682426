"""Bitwise operators beyond the sample table: in-place forms, masks, and invalid arguments."""

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, ShapeError


def test_operators_write_in_place():
    x = mg.tensor([12, 10])
    same, mask = x, mg.tensor([True, False, True])
    x &= 14
    x |= mg.tensor([1, 0])
    x ^= 3
    mask &= mg.tensor([True, True, False])
    assert x is same
    assert (x.tolist(), mask.tolist()) == ([14, 9], [True, False, False])
    assert mask.bitwise_not_().tolist() == [False, True, True]


def test_floats_are_rejected():
    x = mg.tensor([1, 2])
    for write in (lambda: x.bitwise_and_(1.5), lambda: x.__ior__(mg.ones(2)), lambda: x & 0.5):
        with pytest.raises(DTypeError, match="only implemented for integer and bool tensors"):
            write()
    assert x.tolist() == [1, 2]


def test_missing_parentheses_are_explained():
    x = mg.tensor([1.0, 2.0])
    with pytest.raises(DTypeError) as error:
        bool(x > 0 & x < 2)  # Python parses this as x > (0 & x) < 2
    assert str(error.value) == (
        "bitwise_and: & is only implemented for integer and bool tensors, but got float32.\n"
        "  It binds tighter than a comparison: write (x > 0) & (x < 1)."
    )
    with pytest.raises(DTypeError, match=r"write ~\(x < 1\)"):
        mg.bitwise_not(x)


def test_shapes_must_broadcast():
    with pytest.raises(ShapeError):
        mg.tensor([True, False]) & mg.tensor([True, False, True])
