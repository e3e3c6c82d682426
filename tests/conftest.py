"""What tests ask for by name."""

import pytest


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="needs the extra 'parity': make test EXTRAS=dev,parity")
