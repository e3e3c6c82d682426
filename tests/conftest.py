"""What tests ask for by name."""

import os

import pytest

import minigrad as mg


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="needs the extra 'parity': make test EXTRAS=dev,parity")


if os.environ.get("MINIGRAD_DEVICE"):  # the whole suite with tensors on another device
    mg.set_default_device(os.environ["MINIGRAD_DEVICE"])
