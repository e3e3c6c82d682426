"""Renamed classes: deprecated names still work for one release, and warn."""

import importlib

import pytest

from cases import merge_cases

OLD = {
    "minigrad_viz.trace": {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"},
    "minigrad_viz.trace.rows": {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"},
    "minigrad_viz.trace.history": {"Event": "Arrival", "History": "Timeline"},
}


@merge_cases
@pytest.mark.parametrize(("module", "old"), [(module, old) for module, names in OLD.items() for old in names])
def test_old_name_is_the_new_class_and_says_so(module, old):
    place, new = importlib.import_module(module), OLD[module][old]
    with pytest.warns(DeprecationWarning, match=rf"{module}.{old} is deprecated .*; use {new}\."):
        found = getattr(place, old)
    assert found is getattr(place, new)
    assert old not in place.__all__


def test_what_never_was_is_missing():
    with pytest.raises(AttributeError, match=r"module 'minigrad_viz\.trace\.rows' has no attribute 'Nodes'"):
        importlib.import_module("minigrad_viz.trace.rows").Nodes  # noqa: B018
