"""PyTorch's names that existing code uses have the same meaning in minigrad."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, MinigradError
from minigrad.core.modes import modes, slow_path


@pytest.mark.parity
@pytest.mark.parametrize("name", ["float", "double", "int", "long"])
def test_dtypes_have_pytorch_s_aliases(torch, name):
    torch_dtype = getattr(torch, name)
    assert repr(getattr(mg, name)) == str(torch_dtype).replace("torch", "minigrad")
    assert repr(mg.zeros(2, dtype=getattr(mg, name)).dtype) == str(torch.zeros(2, dtype=torch_dtype).dtype).replace(
        "torch", "minigrad"
    )
    assert isinstance(getattr(mg, name), mg.dtype)


def test_python_types_are_dtypes():
    assert [mg.zeros(1, dtype=t).dtype for t in (float, int, bool)] == [mg.float32, mg.int64, mg.bool]


@pytest.mark.parity
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_limits_of_floats_are_pytorch_s(torch, name):
    actual, expected = mg.finfo(getattr(mg, name)), torch.finfo(getattr(torch, name))
    for limit in actual._fields:
        assert getattr(actual, limit) == getattr(expected, limit), limit
    assert mg.finfo() == mg.finfo(mg.float32)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["uint8", "int32", "int64"])
def test_limits_of_integers_are_pytorch_s(torch, name):
    actual, expected = mg.iinfo(getattr(mg, name)), torch.iinfo(getattr(torch, name))
    for limit in actual._fields:
        assert getattr(actual, limit) == getattr(expected, limit), limit


def test_limits_of_the_wrong_kind_raise():
    with pytest.raises(
        DTypeError,
        match=r"finfo: requires a floating-point dtype, but got int64\.\n  Write mg\.iinfo\(minigrad\.int64\)\.",
    ):
        mg.finfo(mg.int64)
    for kind in (mg.float32, mg.bool):
        with pytest.raises(DTypeError, match=f"iinfo: requires an integer dtype, but got {kind.name}"):
            mg.iinfo(kind)


@pytest.mark.parity
def test_constants_are_pytorch_s(torch):
    for name in ("inf", "pi", "e", "newaxis"):
        assert getattr(mg, name) == getattr(torch, name)
    assert math.isnan(mg.nan)
    assert mg.zeros(3)[:, mg.newaxis].shape == mg.Size([3, 1])


def test_a_program_chooses_its_device_as_in_pytorch():
    device = mg.device("cuda" if mg.cuda.is_available() else "cpu")
    x = mg.zeros(2, device=device).to(device)
    assert (x.device, x.device.type, mg.device("cuda", 1).type) == (device, device.type, "cuda")
    assert (x.is_cuda, mg.cuda.device_count()) == (mg.cuda.is_available(), int(mg.cuda.is_available()))
    y = x.to("cpu").to("cpu", mg.float64)
    assert y.device == mg.device("cpu") == mg.device("cpu:0")
    assert mg.ones(2, device=y.device).type(mg.long).type() == "minigrad.int64"


@pytest.mark.parity
def test_grad_mode_switches_as_in_pytorch(torch):
    def record(lib):
        modes = []

        def look():
            modes.append((lib.is_grad_enabled(), (lib.ones(1, requires_grad=True) * 2).requires_grad))

        with lib.set_grad_enabled(False):
            look()
            with lib.set_grad_enabled(True):
                look()
            look()
        look()
        lib.set_grad_enabled(False)
        look()
        with lib.enable_grad():
            look()
        look()
        lib.set_grad_enabled(True)
        look()
        with lib.no_grad():
            lib.set_grad_enabled(True)
            look()
        look()
        lib.set_grad_enabled(False)(look)()
        look()
        for mode in (lib.inference_mode, lib.inference_mode(), lib.no_grad(), lib.autograd.no_grad()):
            mode(look)()
        with lib.inference_mode(False):
            look()
        return modes

    assert record(mg) == record(torch)


def test_grad_mode_keeps_the_fast_path():
    before = len(slow_path.reasons)
    with mg.set_grad_enabled(False), mg.set_grad_enabled(True):
        assert len(slow_path.reasons) == before
    with mg.no_grad():
        with mg.set_grad_enabled(True):
            assert modes.grad
        assert not modes.grad
    mg.set_grad_enabled(True)
    mg.set_grad_enabled(False)
    mg.set_grad_enabled(False)
    assert len(slow_path.reasons) == before + 1
    mg.set_grad_enabled(True)
    assert (len(slow_path.reasons), modes.grad) == (before, True)


def test_grad_takes_only_inputs_and_no_other():
    x = mg.tensor(3.0, requires_grad=True)
    assert mg.grad(x * x, x, only_inputs=True)[0].item() == 6.0
    with pytest.raises(DTypeError, match=r"only_inputs=False is not supported, since grad never writes \.grad"):
        mg.grad(x * x, x, only_inputs=False)


@pytest.mark.parity
def test_axis_is_an_alias_of_dim(torch):
    def compute(lib):
        x = lib.tensor([[1.0, 5.0], [4.0, 2.0]])
        calls = [x.sum(axis=0), x.mean(axis=-1, keepdims=True), lib.cat([x, x], axis=1), lib.stack([x, x], axis=2)]
        calls += [x.max(axis=1).values, lib.argmax(x, axis=0), x.var(axis=0, keepdims=True), lib.softmax(x, axis=1)]
        return [y.tolist() for y in calls]

    for actual, expected in zip(compute(mg), compute(torch), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    with pytest.raises(TypeError, match="axis"):
        mg.zeros(2, 2).sum(dim=0, axis=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: mg.sin([1, 2]),
            (
                "sin: [1, 2] is a list; expected a Python scalar, a Value or a tensor.\n  Convert sequences to a "
                "tensor first: mg.tensor(…)."
            ),
        ),
        (
            lambda x: mg.functional.cross_entropy(x, mg.zeros(2)),
            (
                "cross_entropy: target has the shape (2,) of class indices, but dtype float32.\n"
                "  Write target.long() for class indices; class probabilities have shape (2, 3)."
            ),
        ),
        (lambda x: x @ 3, "matmul: other must be a tensor, not an int.\n  Convert it first: mg.tensor(x)."),
        (lambda x: mg.randint(5), "randint: missing the argument size.\n  Pass a shape: randint(5, (2, 3))."),
        (
            lambda x: x.to("tpu"),
            (
                f"to: device 'tpu' is not available; the default device is '{mg.get_default_device()}'.\n"
                f"  Omit device=, or write device='{mg.get_default_device()}'."
            ),
        ),
        (
            lambda x: x.type("torch.FloatTensor"),
            (
                "dtype: expected one of float64, float32, int64, int32, uint8, bool, but got "
                "'torch.FloatTensor'.\n  Write mg.float32, for example."
            ),
        ),
    ],
    ids=["list", "classes of floats", "a number's rows", "no shape", "no such device", "type of a string"],
)
def test_common_mistakes_are_explained(call, message):
    with pytest.raises(MinigradError) as error:
        call(mg.zeros(2, 3))
    assert str(error.value) == message
