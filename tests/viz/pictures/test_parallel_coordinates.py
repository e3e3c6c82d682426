"""Parallel coordinates of a sweep, and the widget that follows one."""

import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import minigrad_viz
from minigrad.core.errors import MissingFileError
from minigrad_viz.pictures.parallel_coordinates import render_sweep
from needs import needs
from sweeps import make_sweep

needs("safetensors")

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(svg):
    root = ElementTree.fromstring(svg)
    paths = [one for one in root.iter(f"{SVG}path") if one.get("class", "").startswith("trial")]
    return [(one.get("class"), one.find(f"{SVG}title").text) for one in paths if one.find(f"{SVG}title") is not None]


def test_each_finished_trial_has_a_line_the_best_on_top():
    lines = lines_of(render_sweep(make_sweep(states=["done", "stopped", "running", "diverged"])))
    assert len(lines) == 11
    assert lines[-1] == ("trial first", "trial 1")
    assert lines[-2] == ("trial q0 early", "trial 2")
    assert lines[0] == ("trial lost", "trial 4")
    assert [title for _, title in lines[1:]] == [f"trial {k}" for k in (12, 11, 10, 9, 8, 7, 6, 5, 2, 1)]
    assert [look for look, _ in lines[1:8]] == [f"trial q{k}" for k in (4, 4, 3, 3, 2, 2, 1)]


def test_best_trial_is_the_highest_if_maximising():
    assert lines_of(render_sweep(make_sweep(goal="max val_loss")))[-1] == ("trial first", "trial 12")


def test_ticks_match_values_also_on_a_logarithmic_scale():
    svg = render_sweep(
        make_sweep(random={"lr": {"from": 1e-4, "to": 1e-1, "log": True}}, grid=None, samples=5, count=5)
    )
    root = ElementTree.fromstring(svg)
    labels = {one.text: float(one.get("y")) for one in root.iter(f"{SVG}text") if "over end" in one.get("class", "")}
    decades = [labels[text] for text in ("0.0001", "0.001", "0.01", "0.1")]
    assert np.diff(decades) == pytest.approx([np.diff(decades)[0]] * 3, abs=0.2)
    first = make_sweep(random={"lr": {"from": 1e-4, "to": 1e-1, "log": True}}, grid=None, samples=5, count=5).trials[0]
    path = next(one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "trial first")
    share = (np.log10(first.values["lr"]) + 4) / 3
    y = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
    assert y + 3.5 == pytest.approx(decades[0] + share * (decades[3] - decades[0]), abs=0.3)


def test_text_alternative_and_escaped_names():
    sweep = make_sweep(grid={"act": ["<b>&", "\x00\u202e"]})
    root = ElementTree.fromstring(render_sweep(sweep))
    assert root.get("role") == "img"
    title, described = root.find(f"{SVG}title").text, root.find(f"{SVG}desc").text
    assert title == "min val_loss · 12 of 12 trials · trial 1 reached 0.12 at epoch 1"
    assert (
        "a line for each trial over the axes act, lr (logarithmic), width and val_loss. The best, trial 1: act <b>&"
        in described
    )
    assert "\u202e" not in render_sweep(sweep)


@pytest.mark.parametrize("count", [0, 1])
def test_zero_and_one_trials_are_drawn(count):
    sweep = make_sweep(states=["done"] * count + ["waiting"] * 12)
    svg = render_sweep(sweep)
    assert ("no trial has finished yet" in svg) is (count == 0)
    assert len(lines_of(svg)) == count


def test_widget_follows_the_directory_with_a_text_fallback(tmp_path):
    needs("anywidget")
    with pytest.raises(MissingFileError):
        minigrad_viz.sweep(tmp_path)
    widget = minigrad_viz.sweep(tmp_path, wait=True)
    assert "There is no sweep in" in repr(widget)
    sweep = make_sweep(tmp_path, states=["done", *["waiting"] * 11])
    sweep.save()
    end = time.monotonic() + 30
    while not widget.state["rows"] and time.monotonic() < end:
        time.sleep(0.05)
    assert [row[0] for row in widget.state["rows"]] == ["trial", "1"]
    assert widget.state["sentence"] == "1 of 12 trials"
    assert widget.state["picture"] == widget.svg() == render_sweep(sweep)
    data, _ = widget._repr_mimebundle_()
    assert sorted(data) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert data["text/plain"] == repr(sweep)
    assert "<td" in data["text/html"]
    assert "data:image/svg+xml;base64," in data["text/html"]
    widget.close()
