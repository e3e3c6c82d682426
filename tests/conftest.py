"""What tests ask for by name."""

import os

import pytest

import minigrad as mg


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="needs the extra 'parity': make test EXTRAS=dev,parity")


@pytest.fixture
def on_cpu():
    """Tensors are made on ``cpu``, whatever the default device is."""
    before = mg.get_default_device()
    mg.set_default_device("cpu")
    yield
    mg.set_default_device(before)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """On a GPU without float64 a test that asks for it is skipped where that is refused, in these words."""
    try:
        return (yield)
    except mg.errors.DTypeError as refusal:
        if str(refusal).startswith(f"float64: the device {mg.get_default_device()} has none."):
            pytest.skip("needs float64, which this GPU refuses")
        raise


if os.environ.get("MINIGRAD_DEVICE"):  # the whole suite with tensors on another device
    mg.set_default_device(os.environ["MINIGRAD_DEVICE"])


@pytest.fixture(autouse=True)
def _nothing_open():
    """What a kernel of one test found wrong, and nobody asked for, is not the next one's."""
    yield
    if mg.get_default_device() in ("cuda", "vulkan", "metal"):
        from minigrad.backends.taichi import checks

        checks.forget()


collect_ignore = ["torch_code"]  # programs for PyTorch, which tests load
if mg.get_default_device() not in ("cuda", "vulkan", "metal"):
    collect_ignore.append("gpu")
