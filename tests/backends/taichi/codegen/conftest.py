"""Recorded steps whose launches are joined without waiting for many runs."""

import pytest

from minigrad.compiler.jit import recording


@pytest.fixture
def soon(monkeypatch):
    """Fused on the third run, not after many."""
    monkeypatch.setattr(recording, "JOINED", 1)
