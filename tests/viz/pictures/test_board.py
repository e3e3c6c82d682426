"""The dashboard of `watch`: all values, well-formed SVG, and warnings."""

import html
import re

from minigrad_viz.pictures.board import WIDTH, LayerRow, TrainingView, board, lines
from minigrad_viz.pictures.palette import DARK, LIGHT


def shown():
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


def test_the_picture_says_all_numbers_and_marks_what_is_wrong_by_signs_too():
    svg = board(shown())
    texts = [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg)]
    for text in ("a<b>", "Linear", "−1.0 … 3.0", "0.5", "! 0.5", "! 75%", "! 100%", "! 6.12e−08", "! 1 NaN or Inf"):
        assert text in texts
    assert "Net after 1,000 steps · loss 0.002, initially 2.0 · validation NaN · layers at step 900" in texts
    assert any("logarithmic" in text for text in texts)
    assert LIGHT["forward"] in svg
    assert DARK["forward"] in svg


def test_the_picture_is_well_formed_and_no_text_leaves_it_or_meets_the_next():
    from xml.etree import ElementTree

    from minigrad_viz.trace.notation import text_width

    root = ElementTree.fromstring(board(shown()))
    ends = []
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        x, said = float(text.get("x")), "".join(text.itertext())
        if "end" not in text.get("class"):
            ends.append((x + text_width(said, 11, "warn" in text.get("class")), float(text.get("y")), x, said))
            assert ends[-1][0] <= WIDTH - 8, said  # the right edge of a row's stripe
    begins = [(float(bar.get("x")), float(bar.get("y")) + 6) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    begins += [(x, y) for _, y, x, _ in ends]
    for end, y, x, said in ends:
        assert not [at for at, level in begins if level == y and x < at < end], said


def test_a_training_without_a_finite_loss_says_so():
    assert "no finite loss" in board(TrainingView("Net", 2, 0, [(1, float("inf")), (2, float("nan"))]))


def test_before_the_first_step_and_of_one_step_there_is_a_picture_too():
    assert "no loss yet" in board(TrainingView("Net"))
    assert lines(TrainingView("Net")).startswith("Net: no step yet")
    assert 'class="curve"' in board(TrainingView("Net", 1, 0, [(1, 2.0)]))
