"""Parallel coordinates of a sweep, and the widget that follows one."""

import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import minigrad_viz
from minigrad.core.errors import MissingFileError
from minigrad_viz.pictures.parallel import parallel
from needs import needs
from sweeps import made

needs("safetensors")

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(svg):
    root = ElementTree.fromstring(svg)
    found = [one for one in root.iter(f"{SVG}path") if one.get("class", "").startswith("trial")]
    return [(one.get("class"), one.find(f"{SVG}title").text) for one in found if one.find(f"{SVG}title") is not None]


def test_a_line_for_each_trial_that_ended_the_best_over_all_others():
    lines = lines_of(parallel(made(states=["done", "stopped", "running", "diverged"])))
    assert len(lines) == 11
    assert lines[-1] == ("trial first", "trial 1")
    assert lines[-2] == ("trial q0 early", "trial 2")
    assert lines[0] == ("trial lost", "trial 4")
    assert [number for _, number in lines[1:]] == [f"trial {k}" for k in (12, 11, 10, 9, 8, 7, 6, 5, 2, 1)]
    assert [look for look, _ in lines[1:8]] == [f"trial q{k}" for k in (4, 4, 3, 3, 2, 2, 1)]


def test_where_more_is_better_the_last_is_the_best():
    assert lines_of(parallel(made(goal="max val_loss")))[-1] == ("trial first", "trial 12")


def test_axes_stand_where_values_do_also_on_a_logarithmic_scale():
    svg = parallel(made(random={"lr": {"from": 1e-4, "to": 1e-1, "log": True}}, grid=None, samples=5, count=5))
    root = ElementTree.fromstring(svg)
    labels = {one.text: float(one.get("y")) for one in root.iter(f"{SVG}text") if "over end" in one.get("class", "")}
    decades = [labels[text] for text in ("0.0001", "0.001", "0.01", "0.1")]
    assert np.diff(decades) == pytest.approx([np.diff(decades)[0]] * 3, abs=0.2)
    first = made(random={"lr": {"from": 1e-4, "to": 1e-1, "log": True}}, grid=None, samples=5, count=5).trials[0]
    path = next(one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "trial first")
    share = (np.log10(first.values["lr"]) + 4) / 3
    y = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
    assert y + 3.5 == pytest.approx(decades[0] + share * (decades[3] - decades[0]), abs=0.3)


def test_who_does_not_see_it_is_told_and_names_of_others_stay_text():
    found = made(grid={"act": ["<b>&", "\x00\u202e"]})
    root = ElementTree.fromstring(parallel(found))
    assert root.get("role") == "img"
    title, described = root.find(f"{SVG}title").text, root.find(f"{SVG}desc").text
    assert title == "min val_loss · 12 of 12 trials · trial 1 reached 0.12 at epoch 1"
    assert (
        "a line for each trial over the axes act, lr (logarithmic), width and val_loss. The best, trial 1: act <b>&"
        in described
    )
    assert "\u202e" not in parallel(found)


@pytest.mark.parametrize("count", [0, 1])
def test_no_trial_and_one_trial_are_pictures_too(count):
    found = made(states=["done"] * count + ["waiting"] * 12)
    svg = parallel(found)
    assert ("no trial has finished yet" in svg) is (count == 0)
    assert len(lines_of(svg)) == count


def test_a_widget_follows_the_folder_and_says_the_same_without_one(tmp_path):
    needs("anywidget")
    with pytest.raises(MissingFileError):
        minigrad_viz.sweep(tmp_path)
    seen = minigrad_viz.sweep(tmp_path, wait=True)
    assert "There is no sweep in" in repr(seen)
    found = made(tmp_path, states=["done", *["waiting"] * 11])
    found.save()
    end = time.monotonic() + 30
    while not seen.state["rows"] and time.monotonic() < end:
        time.sleep(0.05)
    assert [row[0] for row in seen.state["rows"]] == ["trial", "1"]
    assert seen.state["sentence"] == "1 of 12 trials"
    assert seen.state["picture"] == seen.svg() == parallel(found)
    data, _ = seen._repr_mimebundle_()
    assert sorted(data) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert data["text/plain"] == repr(found)
    assert "<td" in data["text/html"]
    assert "data:image/svg+xml;base64," in data["text/html"]
    seen.close()
