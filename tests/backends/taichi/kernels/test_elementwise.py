"""Corner cases of Taichi's elementwise kernels, against NumPy: overlapping memory, integer minima, overflow."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
import parity
from minigrad.core.errors import DTypeError
from needs import needs
from taichi_device import DEVICE

needs("taichi")


CORNERS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e10, -1e10, 3e38, 1e-30, 0.1, -0.1, 3.0, -3.0, 7.5, 2.0**24]
DIVISIONS = {"%": np.remainder, "//": np.floor_divide}


@pytest.fixture(autouse=True)
def _here():
    before = mg.get_default_device()
    mg.set_default_device(DEVICE)
    yield
    mg.set_default_device(before)


def pairs(numbers, dtype):
    return [np.array(side, dtype) for side in zip(*itertools.product(numbers, numbers), strict=True)]


def divided(sign, a, b):
    x, y = mg.tensor(a), mg.tensor(b)
    return (x % y if sign == "%" else x // y).numpy()


@pytest.mark.parametrize("dtype", parity.FLOATS)
@pytest.mark.parametrize("sign", DIVISIONS)
def test_remainder_is_exact_for_any_quotient(sign, dtype):
    a, b = pairs(CORNERS, dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(divided(sign, a, b), DIVISIONS[sign](a, b))


def test_dividing_the_minimum_int_by_minus_one_does_not_crash():
    code, expected = f"import minigrad as mg\nmg.set_default_device({DEVICE!r})\n", []
    for sign, dtype in itertools.product(DIVISIONS, ("int32", "int64", "uint8")):
        limits = np.iinfo(dtype)
        numbers = [limits.min, limits.min + 1, limits.max, 1, 2, 7] + [-1, -2, -7] * (limits.min < 0)
        a, b = pairs(numbers, dtype)
        a, b = a[b != 0], b[b != 0]
        code += f"x, y = (mg.tensor(v, dtype=mg.{dtype}) for v in {(a.tolist(), b.tolist())!r})\n"
        code += f"print({sign!r}, x.dtype, (x {sign} y).tolist(), flush=True)\n"
        with np.errstate(all="ignore"):
            expected.append(f"{sign} minigrad.{dtype} {DIVISIONS[sign](a, b).tolist()}")
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stdout.splitlines()[-len(expected) :]) == (0, expected), child.stderr


@pytest.mark.parametrize("dtype", parity.FLOATS)
def test_infinity_rounds_to_itself_and_halves_round_to_even(dtype):
    x = mg.tensor(np.array([np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5, -1.5, 1e30], dtype))
    np.testing.assert_array_equal(x.round().numpy(), np.array([np.inf, -np.inf, np.nan, 0, 2, 2, 0, -2, 1e30], dtype))


@pytest.mark.parametrize("dtype", parity.FLOATS)
def test_acosh_below_one_is_nan(dtype):
    x = mg.tensor(np.array([-3e38, -104.0, -1.0, 0.0, 0.999, -np.inf], dtype))
    assert x.acosh().isnan().all().item()


WRITES = {
    "from the left": lambda x: x[1:].add_(x[:-1]),
    "copied from the left": lambda x: x[1:].copy_(x[:-1]),
    "copied from the right": lambda x: x[:-1].copy_(x[1:]),
    "one number of it": lambda x: x.add_(x[3]),
    "half of it": lambda x: x.view(-1, 2)[:, 0].mul_(x[: x.shape[0] // 2]),
    "turned": lambda x: x.view(4, -1).copy_(x.view(-1, 4).T),
    "turned and of the same shape": lambda x: x.view(2, 2, -1).sub_(x.view(2, 2, -1).transpose(0, 1)),
    "two parts of it": lambda x: x[4:].lerp_(x[:-4], x[2:-2]),
}


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("size", [16, 40_000])
def test_overlapping_operands_are_read_before_they_are_written(how, size):
    """Even with several writing threads, every operand is read before it is overwritten."""
    numbers = np.random.default_rng(0).integers(-4, 5, size).astype(np.float32)
    mine, its = mg.tensor(numbers), mg.tensor(numbers, device="numpy")
    WRITES[how](mine)
    WRITES[how](its)
    np.testing.assert_array_equal(mine.numpy(), its.numpy())


def test_ints_compare_with_ints_beyond_their_dtype():
    x, y = mg.tensor([-(2**63), 0, 2**63 - 1]), mg.tensor([1e30, -1e30])
    for far in (2**63, 2**64 + 1, 10**30):
        assert (x < far).tolist() == (x > -far - 1).tolist() == (x != far).tolist() == [True] * 3
        assert (x == far).tolist() == (x >= far).tolist() == [False] * 3
    assert (y > 2**64).tolist() == [True, False]


def test_scalar_out_of_range_raises_instead_of_wrapping():
    x = mg.zeros(3, dtype=mg.uint8)
    for value in (300, -256, float("nan"), float("inf"), 2**70):
        for fill in (x.fill_, lambda value: mg.full((2,), value, dtype=mg.uint8)):
            with pytest.raises(DTypeError, match="cannot be converted to uint8 without overflow"):
                fill(value)
    with pytest.raises(DTypeError, match="value cannot be converted to type"):
        x.copy_(300)
    assert x.tolist() == [0, 0, 0]
    assert x.fill_(-1).tolist() == [255] * 3, "as in PyTorch"
    assert (x.fill_(2.7).tolist(), mg.full((2,), 2.7, dtype=mg.int32).tolist()) == ([2] * 3, [2] * 2)


@pytest.mark.parametrize("dtype", parity.FLOATS)
def test_asin_and_acos_beyond_one_and_of_nan_are_nan(dtype):
    x = mg.tensor(np.array([-3e38, -1.5, 1.001, np.inf, -np.inf, np.nan], dtype))
    assert x.asin().isnan().all().item()
    assert x.acos().isnan().all().item()
    np.testing.assert_allclose(mg.tensor([-1.0, 0.0, 1.0]).acos().tolist(), [np.pi, np.pi / 2, 0], rtol=1e-6)
    nan, one = mg.tensor(np.array([np.nan], dtype)), mg.tensor(np.array([1], dtype))
    assert all(y.isnan().item() for y in (nan.atan(), mg.atan2(nan, one), mg.atan2(one, nan)))


def test_relu_propagates_nan():
    for size in (1, 40):  # scalar and vectorised
        assert np.isnan(mg.full((size,), np.nan).relu().numpy()).all()
