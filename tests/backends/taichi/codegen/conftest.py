"""Jitted steps whose launches are merged early."""

import pytest

from minigrad.compiler.jit import step_trace


@pytest.fixture
def merge_early(monkeypatch):
    """Merge launches in the third run instead of later."""
    monkeypatch.setattr(step_trace, "MERGE_AFTER_REPLAYS", 1)
