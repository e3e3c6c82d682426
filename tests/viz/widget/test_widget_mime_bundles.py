"""What each object offers to a notebook, which part a host shows, and what anywidget does in Colab."""

import json
import re
import subprocess
import sys

import pytest

from bundles import HTML, ORDER, TEXT, WIDGET, WIDGETS, make_bundles, shown_type


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    return make_bundles(tmp_path_factory.mktemp("sweep"))


def test_each_object_offers_a_picture_and_text_and_players_a_widget(bundles):
    types = {name: set(bundle) for name, bundle in bundles.items()}
    assert types == {name: {HTML, TEXT} | ({WIDGET} if name in WIDGETS else set()) for name in bundles}
    assert set(bundles) > WIDGETS


def test_each_host_shows_a_widget_a_picture_or_text(bundles):
    shown = {host: {name: shown_type(bundle, host) for name, bundle in bundles.items()} for host in ORDER}
    for host, types in shown.items():
        live, other = {types[name] for name in WIDGETS}, {types[name] for name in set(types) - WIDGETS}
        if host in ("JupyterLab, JupyterHub", "VS Code"):
            assert (host, live, other) == (host, {WIDGET}, {HTML})
        else:
            expected = {TEXT} if host in ("VS Code, restricted mode", "a terminal") else {HTML}
            assert (host, live, other) == (host, expected, expected)


def test_the_picture_is_in_the_html_and_loads_nothing(bundles):
    for name, bundle in bundles.items():
        sources = re.findall(r'<img [^>]*?src="([^"]*)"', bundle[HTML])
        assert (name, len(sources)) == (name, 1)
        assert sources[0].startswith("data:image/svg+xml;base64,")
        markup = bundle[HTML].replace(sources[0], "")
        assert re.findall(r"https?://|<svg|<style|<link|\bon\w+=", markup) == [], name
        assert set(re.findall(r"<script[^>]*>", markup)) <= {'<script type="application/json" class="minigrad-trace">'}


def test_the_text_alone_has_the_values(bundles):
    text = {name: bundle[TEXT] for name, bundle in bundles.items()}
    for name in ("draw", "step", "play", "tour"):
        assert re.search(r"^2  v₂ +a · b +-6\.0 ", text[name].replace("−", "-"), re.MULTILINE), name
    assert re.search(r"^1  b +leaf +-3\.0 +-4\.0 ", text["compare"].replace("−", "-"), re.MULTILINE)
    assert text["watch"].startswith("Sequential after 3 steps · loss")
    assert text["sweep"].splitlines()[2].split()[:4] == ["2", "done", "0.2", "0.4"]
    assert "ShapeError: linear: input and weight shapes cannot be multiplied" in text["draw a model that raises"]


COLAB = """
import json, sys, types

calls = []
module = types.ModuleType("google.colab.output")
module.enable_custom_widget_manager = lambda: calls.append("enabled")
module._widgets = types.SimpleNamespace(_installed_url="https://example.org/manager.js")
sys.modules |= {"google": types.ModuleType("google"), "google.colab": types.ModuleType("google.colab")}
sys.modules["google.colab.output"] = module

import minigrad as mg
from minigrad_viz import step

_, metadata = (step(mg.Value(2.0) * 3), step(mg.Value(2.0) * 3))[0]._repr_mimebundle_()
print(json.dumps([calls, metadata]))
"""


def test_in_colab_a_player_enables_third_party_widgets_once():
    """anywidget asks Colab for its widget manager when a widget is created, and the display names that manager."""
    child = subprocess.run([sys.executable, "-c", COLAB], capture_output=True, text=True, timeout=300, check=True)
    calls, metadata = json.loads(child.stdout)
    assert calls == ["enabled"]
    assert metadata == {WIDGET: {"colab": {"custom_widget_manager": {"url": "https://example.org/manager.js"}}}}
