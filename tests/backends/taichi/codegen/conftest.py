"""Jitted steps whose launches are merged early."""

import pytest

from minigrad.compiler.jit import recording


@pytest.fixture
def soon(monkeypatch):
    """Merge launches in the third run instead of later."""
    monkeypatch.setattr(recording, "JOINED", 1)
