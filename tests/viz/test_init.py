"""The deprecated names of the viewer's modules."""

import sys
from importlib import import_module

import pytest

import minigrad as mg
import minigrad_viz
from cases import merge_cases
from needs import needs


@merge_cases
@pytest.mark.parametrize(("old", "new"), minigrad_viz.RENAMED_MODULES.items())
def test_a_renamed_module_is_imported_under_its_old_name_with_a_warning(old, new, monkeypatch):
    needs("numpy", "ipywidgets", "anywidget", "IPython")
    monkeypatch.delitem(sys.modules, f"minigrad_viz.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match=rf"minigrad_viz\.{old} is deprecated .*import minigrad_viz\.{new}"):
        module = import_module(f"minigrad_viz.{old}")
    assert module is import_module(f"minigrad_viz.{new}")


def test_the_player_and_public_functions_keep_their_names():
    needs("ipywidgets", "anywidget")
    from minigrad_viz.widget import Player

    assert isinstance(minigrad_viz.step(mg.Value(2.0).exp()), Player)
    assert callable(minigrad_viz.explain)
