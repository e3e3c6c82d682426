"""The dashboard of `watch`: all values, well-formed SVG, and warnings."""

import html
import re

from minigrad_viz.pictures.dashboard import WIDTH, LayerRow, TrainingView, dashboard_text, render_dashboard
from minigrad_viz.pictures.palette import DARK, LIGHT


def training_view():
    """Return a view with every kind of content."""
    import numpy as np

    sample = np.linspace(-1.0, 3.0, 50)
    layers = [
        LayerRow("a<b>", "Linear", sample, sample * 1e-3, [(1, 2.0), (5, 0.5)], 0.5),
        LayerRow("c", "ReLU", np.array([np.nan, 1.0]), None, [], None, 0.75),
        LayerRow("d", "Linear", sample, None, [(1, 0.000123)], 6.12e-08, 1.0),
    ]
    losses = [(k, 2.0 / k) for k in range(1, 1001)]
    return TrainingView("Net", 1000, 900, losses, [(500, 0.1), (1000, float("nan"))], layers, 3)


def test_dashboard_shows_all_values_and_marks_warnings():
    svg = render_dashboard(training_view())
    labels = [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg)]
    for text in ("a<b>", "Linear", "−1.0 … 3.0", "0.5", "! 0.5", "! 75%", "! 100%", "! 6.12e−08", "! 1 NaN or Inf"):
        assert text in labels
    assert "Net after 1,000 steps · loss 0.002, initially 2.0 · validation NaN · layers at step 900" in labels
    assert any("logarithmic" in text for text in labels)
    assert LIGHT["forward"] in svg
    assert DARK["forward"] in svg


def test_dashboard_is_well_formed_and_texts_do_not_overlap():
    from xml.etree import ElementTree

    from minigrad_viz.trace.notation import text_width

    root = ElementTree.fromstring(render_dashboard(training_view()))
    ends = []
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        x, label = float(text.get("x")), "".join(text.itertext())
        if "end" not in text.get("class"):
            ends.append((x + text_width(label, 11, "warn" in text.get("class")), float(text.get("y")), x, label))
            assert ends[-1][0] <= WIDTH - 8, label  # the right edge of a row's stripe
    begins = [(float(bar.get("x")), float(bar.get("y")) + 6) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    begins += [(x, y) for _, y, x, _ in ends]
    for end, y, x, label in ends:
        assert not [at for at, level in begins if level == y and x < at < end], label


def test_dashboard_without_a_finite_loss_reports_it():
    assert "no finite loss" in render_dashboard(TrainingView("Net", 2, 0, [(1, float("inf")), (2, float("nan"))]))


def test_dashboard_is_drawn_for_zero_and_one_steps():
    assert "no loss yet" in render_dashboard(TrainingView("Net"))
    assert dashboard_text(TrainingView("Net")).startswith("Net: no step yet")
    assert 'class="curve"' in render_dashboard(TrainingView("Net", 1, 0, [(1, 2.0)]))
