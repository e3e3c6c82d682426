"""Random numbers on ``cpu`` agree bitwise with the NumPy kernels; normal samples up to a few last bits."""

import hashlib

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.dispatch import dispatch
from needs import needs
from parity import LACKS_FLOAT64
from taichi_device import DEVICE, to_device

needs("taichi")


KEYS = [0, 1, 0x123456789ABCDEF0, 2**64 - 1]
OFFSETS = [0, 1, 2, 3, 5, 2**33 + 1, 2**40]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (4097,), (30_001,)]
RANGES = [
    (0, 10, mg.int64), (-5, 3, mg.int32), (0, 1, mg.int64), (0, 256, mg.uint8), (0, 2, mg.bool), (-3, 9, mg.float32),
    (-(2**53), 2**53 + 1, mg.float64), (-(2**31), 2**31, mg.int32), (0, 2**63, mg.int64),
    (-(2**62), 2**63 - 1, mg.int64), (-(2**63), 2**63 - 1, mg.int64), (-(2**63), 2**63, mg.int64),
]  # fmt: skip


def run_on_both(op, *inputs, **attrs):
    found = dispatch(op, DEVICE, tuple(map(to_device, inputs)), attrs).host
    right = dispatch(op, "numpy", inputs, attrs)
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    return found, right


@merge_cases
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=str)
def test_uniform_samples_match_bitwise_and_normal_ones_nearly(key, offset, dtype):
    for shape in SHAPES:
        found, right = run_on_both("random_uniform", key=key, offset=offset, shape=shape, dtype=dtype)
        assert found.tobytes() == right.tobytes()
        found, right = run_on_both("random_normal", key=key, offset=offset, shape=shape, dtype=dtype)
        np.testing.assert_array_less(np.abs(found - right), 8 * np.spacing(np.maximum(np.abs(right), 1e-6)))


@pytest.mark.parametrize(("low", "high", "dtype"), RANGES)
def test_ints_are_the_same_for_every_span(low, high, dtype):
    for key, offset, shape in [(3, 0, (5000,)), (2**64 - 1, 7, (3, 5)), (1, 2**40 + 1, ())]:
        found, right = run_on_both("random_int", key=key, offset=offset, shape=shape, low=low, high=high, dtype=dtype)
        assert found.tobytes() == right.tobytes()


@pytest.mark.parametrize("count", [0, 1, 2, 10, 600, 5000, 40_000])
def test_permutations_are_the_same(count):
    for key, offset in [(1, 0), (2**63, 5)]:
        np.testing.assert_array_equal(*run_on_both("random_permutation", key=key, offset=offset, count=count))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 7), (4, 1000), (9000,)], ids=str)
def test_choices_are_the_same(dtype, shape):
    weights = np.random.default_rng(0).uniform(size=shape).astype(dtype)
    weights[..., 1:2] = 0
    for count in (1, shape[-1], 300):
        found, right = run_on_both("random_choice", weights, key=5, offset=3, count=count, replacement=True)
        assert_chosen(found, right)
    for count in {1, shape[-1] // 2 + 1, shape[-1]}:
        assert_chosen(*run_on_both("random_choice", weights, key=5, offset=3, count=count, replacement=False))


def assert_chosen(found, right):
    """Check that the choices agree; without float64, a few draws near a boundary may select the adjacent index."""
    if LACKS_FLOAT64 and found.size > 100:
        assert (found != right).mean() < 0.02
    else:
        np.testing.assert_array_equal(found, right)


def test_part_of_a_stream_matches_the_full_stream():
    for op in ("random_uniform", "random_normal"):
        whole, _ = run_on_both(op, key=9, offset=0, shape=(9000,), dtype=mg.float32)
        part, _ = run_on_both(op, key=9, offset=4321, shape=(77,), dtype=mg.float32)
        assert part.tobytes() == whole[4321:][:77].tobytes()


def digest():
    """Hash samples that would depend on the order of the cores."""
    found = hashlib.sha256()
    for op in ("random_uniform", "random_normal"):
        for dtype in (mg.float32,) if LACKS_FLOAT64 else (mg.float32, mg.float64):
            found.update(
                dispatch(op, DEVICE, (), {"key": 5, "offset": 1, "shape": (100_000,), "dtype": dtype}).tobytes()
            )
    return found.hexdigest()
