"""The kernel registry and dispatch."""

import pytest

import minigrad as mg
from minigrad.core.dispatch import Call, dispatch, is_tapped, register_runner
from minigrad.core.errors import DeviceError
from minigrad.core.modes import slow_path
from minigrad.core.op import Op


def test_a_tap_receives_op_device_operands_attributes_out_result_and_time():
    log: list[Call] = []
    with mg.tap(log.append):
        assert is_tapped()
        dispatch("add", "python", (2.0, 3.0))
    assert not is_tapped()
    (call,) = log
    assert (call.op, call.device, call.inputs, call.attrs, call.out, call.result) == (
        "add",
        "python",
        (2.0, 3.0),
        {},
        None,
        5.0,
    )
    assert 0 <= call.seconds < 1


def test_taps_nest_and_exit_on_exceptions():
    outer, inner = [], []

    def fail():
        with mg.tap(inner.append):
            dispatch("add", "python", (1.0, 1.0))
            raise KeyError

    with mg.tap(outer.append):
        with pytest.raises(KeyError):
            fail()
        dispatch("mul", "python", (1.0, 1.0))
    assert [c.op for c in outer] == ["add", "mul"]
    assert [c.op for c in inner] == ["add"]


def test_out_is_explicit_and_raises_for_immutable_values():
    with pytest.raises(DeviceError) as error:
        dispatch("add", "python", (1.0, 2.0), out=3.0)
    assert str(error.value) == "add: out= is not supported on the device 'python', whose values are immutable."


def test_a_device_with_a_runner_decides_how_its_kernels_are_called():
    calls = []
    mg.kernel("test_fill", "test_device")(lambda a, *, value: a * value)
    register_runner("test_device")(lambda kernel, inputs, attrs, out: calls.append(out) or kernel(*inputs, **attrs))
    buffer = object()
    assert dispatch("test_fill", "test_device", (3.0,), {"value": 2.0}, out=buffer) == 6.0
    assert calls == [buffer]


def test_values_use_the_fast_path_only_without_listeners():
    reasons = len(slow_path.reasons)
    with mg.tap(lambda call: None), mg.scope("s"):
        assert len(slow_path.reasons) == reasons + 2
    assert len(slow_path.reasons) == reasons


def test_a_kernel_may_use_tensors_without_numpy_warnings():
    import numpy as np

    op = Op("by_tensors", "{a}", vjp=(None,), listed=False)

    def by_tensors(a):
        x = mg.as_tensor(a, device="numpy")
        return (1.0 / x + x.exp() + x.sum()).numpy()

    mg.kernel("by_tensors", "numpy")(by_tensors)
    assert op(mg.tensor([0.0, 1.0], device="numpy")).tolist() == pytest.approx([np.inf, 2.0 + np.e])
