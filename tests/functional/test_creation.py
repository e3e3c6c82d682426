"""Tensor creation: PyTorch's shapes, dtypes and values, memory sharing, and error messages."""

import math
import re
import sys

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, MinigradError, OutOfMemoryError, ShapeError
from taichi_device import in_memory

# Each is called with a library, minigrad or torch.
CALLS = {
    "zeros": lambda L: L.zeros(2, 3),
    "zeros of a tuple": lambda L: L.zeros((2, 3)),
    "zeros of a list": lambda L: L.zeros([2, 0]),
    "zeros with size=": lambda L: L.zeros(size=(2, 3)),
    "ones with size=": lambda L: L.ones(size=[3]),
    "zeros with a size given twice": lambda L: L.zeros(2, size=(2, 3)),
    "zeros, 0-d": lambda L: L.zeros(()),
    "zeros of ints": lambda L: L.zeros(2, dtype=L.int32),
    "ones": lambda L: L.ones(3),
    "ones of bools": lambda L: L.ones(2, 2, dtype=L.bool),
    "full of a float": lambda L: L.full((2,), 2.5),
    "full of an int": lambda L: L.full((2, 1), 7),
    "full of a bool": lambda L: L.full((), True),
    "full as float64": lambda L: L.full((1,), 7, dtype=L.float64),
    "full of a tensor": lambda L: L.full((2,), L.tensor(3.5)),
    "eye": lambda L: L.eye(3),
    "eye, wide": lambda L: L.eye(2, 4, dtype=L.int64),
    "eye, empty": lambda L: L.eye(0),
    "arange": lambda L: L.arange(5),
    "arange of a float": lambda L: L.arange(5.0),
    "arange from": lambda L: L.arange(2, 9, 3),
    "arange down": lambda L: L.arange(5, -1, -2),
    "arange by a float": lambda L: L.arange(0, 1, 0.1),
    "arange, rounded up": lambda L: L.arange(0.0, 1.05, 0.25),
    "arange, empty": lambda L: L.arange(3, 3),
    "arange as float64": lambda L: L.arange(3, dtype=L.float64),
    "arange as uint8": lambda L: L.arange(0.0, 4.0, dtype=L.uint8),
    "arange the wrong way": lambda L: L.arange(3, 1),
    "arange of int64 to a float": lambda L: L.arange(2.7, dtype=L.int64),
    "arange of int64 from a float": lambda L: L.arange(-2.5, 3.5, dtype=L.int64),
    "arange of int64 by a float": lambda L: L.arange(5, 0, -1.5, dtype=L.int64),
    "arange of int64 by less than 1": lambda L: L.arange(0, 5, 0.5, dtype=L.int64),
    "arange of int32 from a float": lambda L: L.arange(-2.5, 3.5, dtype=L.int32),
    "arange of int32 by a float": lambda L: L.arange(1.9, 5.1, 1.9, dtype=L.int32),
    "arange of bools": lambda L: L.arange(2, dtype=L.bool),
    "linspace of bools": lambda L: L.linspace(0, 1, 3, dtype=L.bool),
    "logspace of bools": lambda L: L.logspace(0, 1, 3, dtype=L.bool),
    "linspace of ints between floats": lambda L: L.linspace(1.9, 7.2, 5, dtype=L.int64),
    "linspace of ints below 0": lambda L: L.linspace(-1.9, -7.2, 5, dtype=L.int32),
    "linspace of uint8 from below 0": lambda L: L.linspace(-3, 3, 7, dtype=L.uint8),
    "linspace of uint8 beyond": lambda L: L.linspace(0, 300, 4, dtype=L.uint8),
    "linspace of ints from nan": lambda L: L.linspace(math.nan, 1, 3, dtype=L.int64),
    "logspace of ints between floats": lambda L: L.logspace(0.5, 2.5, 3, dtype=L.int32),
    "full of a negative float as uint8": lambda L: L.full((2,), -2.7, dtype=L.uint8),
    "full of -1 as uint8": lambda L: L.full((2,), -1, dtype=L.uint8),
    "arange by 0": lambda L: L.arange(0, 1, 0),
    "arange without end": lambda L: L.arange(0, float("inf")),
    "linspace": lambda L: L.linspace(0, 1, 7),
    "linspace down": lambda L: L.linspace(3.0, -2.0, 4, dtype=L.float64),
    "linspace of 1 step": lambda L: L.linspace(2, 5, 1),
    "linspace of 0 steps": lambda L: L.linspace(2, 5, 0),
    "linspace of ints": lambda L: L.linspace(0, 10, 4, dtype=L.int64),
    "linspace of negative steps": lambda L: L.linspace(0, 1, -1),
    "logspace": lambda L: L.logspace(-1, 2, 4),
    "logspace of base 2": lambda L: L.logspace(0, 3, 4, 2.0, dtype=L.float64),
    "tril_indices": lambda L: L.tril_indices(3, 4),
    "tril_indices, below": lambda L: L.tril_indices(4, 3, -1),
    "triu_indices": lambda L: L.triu_indices(3, 3, 1),
    "triu_indices, empty": lambda L: L.triu_indices(0, 3, dtype=L.int32),
    "scalar_tensor": lambda L: L.scalar_tensor(3),
    "zeros_like": lambda L: L.zeros_like(L.ones(2, 3, dtype=L.int32)),
    "ones_like of another dtype": lambda L: L.ones_like(L.zeros(2, 3), dtype=L.float64),
    "full_like": lambda L: L.full_like(L.ones(3, dtype=L.int64), 7),
    "full_like of a float": lambda L: L.full_like(L.ones(3, dtype=L.int64), 2.5),
    "new_zeros": lambda L: L.ones(2, dtype=L.int32).new_zeros(2, 3),
    "new_ones": lambda L: L.ones(2, dtype=L.float64).new_ones((3,)),
    "new_full": lambda L: L.ones(2, dtype=L.float64).new_full((2,), 3),
    "new_tensor": lambda L: L.ones(2, dtype=L.float64).new_tensor([1, 2]),
    "as_tensor": lambda L: L.as_tensor([1, 2], dtype=L.float64),
    "asarray": lambda L: L.asarray([1.5, 2.0]),
    "tensor of an empty list": lambda L: L.tensor([]),
    "tensor of rows": lambda L: L.tensor([[1, 2], [3, 4]]),
    "tensor of ints and floats": lambda L: L.tensor([1, 2.5]),
    "tensor of tensors": lambda L: L.tensor([L.tensor(1.0), L.tensor(2.0)]),
    "negative size": lambda L: L.zeros(2, -1),
    "float size": lambda L: L.zeros(2.0),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("call", CALLS)
def test_creation_matches_pytorch(torch, call):
    try:
        expected = CALLS[call](torch)
    except (RuntimeError, TypeError, ValueError):
        with pytest.raises(MinigradError):
            CALLS[call](mg)
        return
    result = CALLS[call](mg)
    assert (result.dtype.name, result.shape) == (str(expected.dtype)[6:], tuple(expected.shape))
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=2e-7)


@pytest.mark.parity
@pytest.mark.parametrize("default", ["float32", "float64"])
def test_default_dtype_is_read_at_each_call(torch, default):
    saved_dtypes = mg.get_default_dtype(), torch.get_default_dtype()
    try:
        for library in (mg, torch):
            library.set_default_dtype(getattr(library, default))
        for make in ("zeros", "ones", "empty", "rand", "randn", "eye"):
            assert getattr(mg, make)(2).dtype.name == str(getattr(torch, make)(2).dtype)[6:] == default
        assert mg.full((1,), 0.5).dtype.name == mg.linspace(0, 1, 3).dtype.name == default
    finally:
        mg.set_default_dtype(saved_dtypes[0])
        torch.set_default_dtype(saved_dtypes[1])


@in_memory
def test_as_tensor_shares_memory_if_possible():
    array, tensor = np.zeros(2), mg.zeros(2)
    shared, copied = mg.as_tensor(array), mg.as_tensor(array, dtype=mg.float32)
    array[0] = 1.0
    assert (shared.tolist(), copied.tolist(), mg.as_tensor(tensor) is tensor) == ([1.0, 0.0], [0.0, 0.0], True)


def test_as_tensor_with_another_dtype_stays_in_the_graph():
    x = mg.ones(2, requires_grad=True)
    mg.as_tensor(x, dtype=mg.float64).backward(mg.ones(2, dtype=mg.float64))
    assert x.grad.tolist() == [1.0, 1.0]


@in_memory
def test_asarray_respects_copy():
    array, tensor = np.zeros(2), mg.zeros(2, requires_grad=True)
    assert np.shares_memory(mg.asarray(array).numpy(), array)
    assert not np.shares_memory(mg.asarray(array, copy=True).numpy(), array)
    assert not mg.asarray(tensor).requires_grad
    assert mg.asarray(array, requires_grad=True).requires_grad
    with pytest.raises(DTypeError, match=r"asarray: can't alias ndarray into a tensor of float32 without a copy"):
        mg.asarray(array, dtype=mg.float32, copy=False)
    with pytest.raises(DTypeError, match=r"can't alias list into a tensor without a copy, but copy=False"):
        mg.asarray([1.0], copy=False)


def test_requires_grad_creates_a_leaf():
    for leaf in (mg.zeros(2, requires_grad=True), mg.eye(2, requires_grad=True), mg.arange(2.0, requires_grad=True)):
        assert (leaf.requires_grad, leaf.is_leaf) == (True, True)
        (leaf * leaf).sum().backward()
        assert leaf.grad.shape == leaf.shape


def test_non_native_byte_order_is_copied_but_not_shared():
    swapped = np.array([1.0, 2.0]).astype(">f8")
    assert mg.tensor(swapped).tolist() == mg.as_tensor(swapped).tolist() == [1.0, 2.0]
    with pytest.raises(DTypeError, match="from_numpy: an array with non-native byte order"):
        mg.from_numpy(swapped)


def test_unaligned_strides_are_copied_but_not_shared():
    fields = np.zeros(3, [("a", np.float32), ("b", np.uint8)])
    fields["a"] = [1, 2, 3]
    with pytest.raises(DTypeError, match=r"from_numpy: strides \(5,\) are not a multiple of the element byte size 4"):
        mg.from_numpy(fields["a"])
    assert (mg.tensor(fields["a"]) + 1).tolist() == (mg.as_tensor(fields["a"]) + 1).tolist() == [2.0, 3.0, 4.0]


ON_A_DEVICE = {
    "tensor": lambda device: mg.tensor([1.0], device=device),
    "zeros": lambda device: mg.zeros(2, device=device),
    "as_tensor": lambda device: mg.as_tensor([1.0], device=device),
    "arange": lambda device: mg.arange(3, device=device),
    "ones_like": lambda device: mg.ones_like(mg.zeros(2), device=device),
    "new_ones": lambda device: mg.zeros(2).new_ones(2, device=device),
    "rand": lambda device: mg.rand(2, device=device),
    "randint": lambda device: mg.randint(3, (2,), device=device),
    "to": lambda device: mg.zeros(2).to(device),
    "to, by keyword": lambda device: mg.zeros(2).to(device=device),
}


@pytest.mark.parametrize("make", ON_A_DEVICE)
def test_tensors_are_created_on_available_devices(make):
    assert ON_A_DEVICE[make]("numpy").device == "numpy"
    assert ON_A_DEVICE[make](None).device == mg.get_default_device()
    with pytest.raises(DeviceError, match="device 'tpu' is not available"):
        ON_A_DEVICE[make]("tpu")


def test_unknown_device_error():
    default_device = mg.get_default_device()
    with pytest.raises(DeviceError) as error:
        mg.zeros(2, device="tpu:0")
    assert str(error.value) == (
        f"zeros: device 'tpu:0' is not available; the default device is '{default_device}'.\n"
        f"  Omit device=, or write device='{default_device}'."
    )


@merge_cases
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: mg.zeros(2, -1), ShapeError, r"zeros: invalid size \(2, -1\): negative dimensions are not allowed"),
        (lambda: mg.zeros("2"), DTypeError, "zeros: invalid size '2': expected ints"),
        (lambda: mg.zeros((2, 1.5)), DTypeError, ": expected ints.\n  Write zeros"),
        (lambda: mg.arange(3, 1), ArgumentError, r"arange: bounds 3 and 1 are infinite or inconsistent with step 1\."),
        (lambda: mg.arange("3"), DTypeError, "arange: '3' is a str, not a number"),
        (lambda: mg.full((2,), "x"), DTypeError, "full: 'x' is a str, not a number"),
        (lambda: mg.full((2,), [1]), DTypeError, "is a list, not a number"),
        (
            lambda: mg.as_tensor([[1], [1, 2]]),
            ShapeError,
            r"as_tensor: expected nested sequences of equal length, but got \[\[1\], \[1, 2\]\]\.",
        ),
        (lambda: mg.zeros(2, dtype="float16"), DTypeError, "but got 'float16'"),
        (lambda: mg.ones(2, dtype=mg.int64, requires_grad=True), DTypeError, "only floating-point tensors can require"),
    ],
)
def test_error_messages(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


@merge_cases
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mg.tensor(["a"]), r"tensor: \['a'\] contains a str, which is an invalid data type\."),
        (
            lambda: mg.tensor([[1.0], [None]]),
            r"tensor: \[\[1\.0\], \[None\]\] contains a NoneType, which is an invalid data type\.",
        ),
        (lambda: mg.tensor({1, 2}), r"tensor: \{1, 2\} is a set, which is an invalid data type\."),
        (lambda: mg.tensor([mg.Value(1.0)]), r"tensor: \[Value\(1\.0\)\] contains Values, whose graph would be lost\."),
        (
            lambda: mg.tensor([2**70]),
            r"tensor: \[1180591620717411303424\] contains 1180591620717411303424, which overflows int64",
        ),
        (
            lambda: mg.tensor([300], dtype=mg.uint8),
            "tensor: value 300 cannot be converted to type uint8 without overflow, its range is 0 to",
        ),
        (
            lambda: mg.tensor([-1], dtype=mg.uint8),
            "tensor: value -1 cannot be converted to type uint8 without overflow, its range is 0 to",
        ),
        (
            lambda: mg.tensor([mg.nan], dtype=mg.int64),
            "tensor: value nan cannot be converted to type int64 without overflow, its range is",
        ),
        (
            lambda: mg.tensor([2.0**63], dtype=mg.int64),
            r"tensor: value 9\.223372036854776e\+18 cannot be converted to type int64 without overflow,",
        ),
        (lambda: mg.zeros_like([1.0]), r"zeros_like: input must be a tensor, not a list\."),
        (lambda: mg.full_like(3.0, 1.0), r"full_like: input must be a tensor, not a float\."),
        (lambda: mg.eye(2.0), r"^eye: invalid size \(2\.0, 2\.0\)"),
    ],
)
def test_invalid_data_is_named(call, text):
    with pytest.raises(DTypeError, match=text):
        call()


def test_out_of_memory_errors():
    for make in (mg.zeros, mg.empty, mg.rand):
        with pytest.raises(ShapeError, match=r"has 4,611,686,018,427,387,904 elements, "):
            make(2**31, 2**31, device="numpy")
    is_wide = sys.maxsize > 2**32
    error, message = (OutOfMemoryError, "Unable to allocate") if is_wide else (ShapeError, ".* too many for any memory")
    for call in (lambda: mg.ones(2**50, device="numpy"), lambda: mg.eye(2**28, device="numpy")):
        with pytest.raises(error, match=rf"^(ones|eye): {message}"):
            call()


def test_sizes_that_only_their_bytes_exceed_the_address_space_raise():
    count = sys.maxsize // 8 + 1
    with pytest.raises((ShapeError, OutOfMemoryError)) as caught:
        mg.zeros(count, dtype=mg.float64, device="numpy")
    many = f"zeros: shape ({count},) has {count:,} elements, too many for any memory."
    few = "zeros: the result would have 2**31 bytes or more, which overflows the byte count."
    assert str(caught.value) == (many if sys.maxsize > 2**32 else few)


def test_integer_limits_of_each_dtype():
    for dtype in (mg.int32, mg.int64):
        info = mg.iinfo(dtype)
        assert [mg.full((), x, dtype=dtype).item() for x in (info.min, info.max)] == [info.min, info.max]
        for x in (info.min - 1, info.max + 1):
            with pytest.raises(DTypeError, match=f"{x} cannot be converted to {dtype.name} without overflow"):
                mg.full((), x, dtype=dtype)


HUGE = 2**62
OVERFLOWING = {
    "zeros": lambda d: mg.zeros(0, HUGE, 4, device=d),
    "ones": lambda d: mg.ones(0, HUGE, 4, device=d),
    "empty": lambda d: mg.empty(2**40, 2**40, device=d),
    "full": lambda d: mg.full((0, HUGE, 4), 1.0, device=d),
    "eye": lambda d: mg.eye(0, HUGE, device=d),
    "zeros, one size": lambda d: mg.zeros(0, 2**63, device=d),
    "arange": lambda d: mg.arange(2**63, device=d),
    "linspace": lambda d: mg.linspace(0, 1, HUGE, device=d),
    "rand": lambda d: mg.rand(0, HUGE, 4, device=d),
    "randint": lambda d: mg.randint(3, (0, HUGE, 4), device=d),
    "randperm": lambda d: mg.randperm(HUGE, device=d),
    "tril_indices": lambda d: mg.tril_indices(2**40, 2**40, device=d),
    "triu_indices": lambda d: mg.triu_indices(2**40, 2**40, device=d),
    "new_zeros": lambda d: mg.ones(1, device=d).new_zeros(0, HUGE, 4),
    "expand": lambda d: mg.ones(1, device=d).expand(2**40, 2**40),
    "expand of an empty tensor": lambda d: mg.zeros(0, 1, 1, device=d).expand(0, HUGE, 4),
    "broadcast_to": lambda d: mg.broadcast_to(mg.ones(1, device=d), (0, HUGE, 4)),
    "reshape": lambda d: mg.zeros(0, device=d).reshape(0, HUGE, 4),
    "view": lambda d: mg.zeros(0, device=d).view(0, 2**63),
    "as_strided": lambda d: mg.ones(1, device=d).as_strided((0, HUGE, 4), (0, 0, 0)),
    "repeat": lambda d: mg.ones(1, device=d).repeat(2**40, 2**40),
    "tile": lambda d: mg.ones(1, device=d).tile(2**40, 2**40),
    "repeat_interleave": lambda d: mg.ones(2, device=d).repeat_interleave(HUGE),
    "pad": lambda d: mg.nn.functional.pad(mg.ones(1, device=d), (HUGE, HUGE)),
}


@merge_cases
@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("make", OVERFLOWING.values(), ids=OVERFLOWING)
def test_overflowing_shapes_raise(make, device):
    with pytest.raises((ShapeError, ArgumentError)) as caught:
        make(device)
    assert not re.search("array is too big|Maximum allowed dimension", str(caught.value))


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_more_than_64_dimensions_raise(on_cpu, device):
    mg.set_default_device(device)
    x, ones = mg.ones(3), [1] * 65
    for make in (
        lambda: mg.zeros(ones),
        lambda: mg.rand(ones),
        lambda: x.reshape(3, *ones),
        lambda: x.expand(*ones, 3),
        lambda: x.repeat(*ones),
        lambda: x.as_strided(ones, ones),
        lambda: mg.stack([mg.ones(ones[:64])]),
        lambda: x.reshape(3, *ones[:63]).unsqueeze(0),
    ):
        with pytest.raises(ShapeError, match="64 dimensions"):
            make()


def test_overflow_errors_name_the_sizes():
    with pytest.raises(
        ShapeError, match=r"^zeros: the nonzero sizes of shape \(0, 4611686018427387904, 4\) overflow the element"
    ):
        mg.zeros(0, HUGE, 4)
    with pytest.raises(
        ShapeError, match=r"of shape \(1,\), shape=\(1099511627776, 1099511627776\) the result would have"
    ):
        mg.ones(1).expand(2**40, 2**40)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_tril_accepts_any_diagonal(device):
    x = mg.ones(2, 3, device=device)
    assert mg.equal(x.tril(2**63), x)
    assert mg.equal(x.triu(-(2**63)), x)
    assert x.tril(-(2**63)).sum() == x.triu(2**63).sum() == 0
