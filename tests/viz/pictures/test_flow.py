"""Gradient flow as a heatmap: the shade of each cell, the signs, the legend and the alarms."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from minigrad_viz.pictures.flow import Scale, alarm_lines, draw_flow, make_scale, summary_line, text_lines
from minigrad_viz.pictures.palette import FLOW
from minigrad_viz.trace.gradient_flow import MAX_COLUMNS, Alarm, Flow, StepMeasurement
from minigrad_viz.trace.notation import text_width
from svgs import elements, text_of

NAMES, KINDS = ["first", "relu", "last"], ["Linear", "ReLU", "Linear"]
LEFT, RIGHT, ROW = 146, 824, 19


def flow_of(*steps):
    flow = Flow()
    for step, sizes in enumerate(steps, 1):
        present = {row: size for row, size in enumerate(sizes) if size is not None}
        flow.add(step, StepMeasurement(present, list(range(len(sizes)))))
    return flow


def svg_of(flow, names=NAMES, kinds=KINDS):
    body, height = draw_flow(flow, names, kinds, 0.0)
    return f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>', height


def cells(svg, count):
    """Return the shade of each cell, by (row, column), from the paths."""
    cell_width = min((RIGHT - LEFT) / count, 24.0)
    shades = {}
    for shade in range(len(FLOW["light"])):
        for path in (one.get("d") for one in elements(svg, f"g{shade}") if one.get("d")):
            for x, y, end in re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", path):
                row = round((float(y) - 24) / ROW)
                for column in range(round((float(x) - LEFT) / cell_width), round((float(end) - LEFT) / cell_width)):
                    assert (row, column) not in shades
                    shades[row, column] = shade
    return shades


def test_scale_has_integer_exponents_and_at_most_twelve_decades():
    assert make_scale(flow_of([2e-5, 0.0, 0.3])) == Scale(-5, 0)
    assert make_scale(flow_of([1e-2, math.nan, math.inf])) == Scale(-3, -2)
    assert make_scale(flow_of([1e-30, 1.0, 50.0])) == Scale(-10, 2)
    assert Scale(-3, 0).ticks == [-3, -2, -1, 0]
    assert Scale(-10, 2).ticks == [-10, -8, -6, -4, -2, 0, 2]
    assert [Scale(-4, 0).bin_index(size, 8) for size in (1e-9, 1e-4, 1.1e-2, 0.5, 1.0, 9.0)] == [0, 0, 4, 7, 7, 7]


def test_a_cell_has_the_shade_of_its_size_on_the_logarithmic_scale():
    flow = flow_of([1e-9, None, 1.0], [1.1e-6, None, 1.0], [1e-3, None, 1.0])
    shades = cells(svg_of(flow)[0], 3)
    assert shades == {(0, 0): 0, (0, 1): 3, (0, 2): 6, (1, 0): 8, (1, 1): 8, (1, 2): 8}


def test_rows_are_named_after_module_paths_in_order():
    svg, _ = svg_of(flow_of([1.0, None, 1.0]), ["blocks.0.a", "relu", "<head>"])
    labels = [text_of(text) for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert labels[0] == "Gradient flow"
    assert [text for text in labels if "Linear" in text] == ["blocks.0.aLinear", "<head>Linear"]


def test_blank_zero_and_non_finite_cells_have_signs_in_the_legend():
    svg, _ = svg_of(flow_of([0.1, 0.1], [0.0, 0.1], [math.nan, 0.1], [None, 0.1]), ["a", "b"], ["A", "B"])
    assert cells(svg, 4) == {(0, 0): 8, (1, 0): 8, (1, 1): 8, (1, 2): 8, (1, 3): 8}
    assert elements(svg, "nil")[0].get("d") == "M170.0 33.5H194.0"
    assert elements(svg, "wild")[0].get("d").startswith("M195.0 26l")
    labels = [text_of(one) for one in elements(svg, "key")]
    assert {"NaN or Inf", "0", "blank: no gradient measured", "start of an alarm"} <= set(labels)
    plain, _ = svg_of(flow_of([0.1, 0.1]), ["a", "b"], ["A", "B"])
    assert [text_of(one) for one in elements(plain, "key")][1:] == ["step 1", "10⁻²", "10⁻¹"]


def test_alarms_have_a_sign_in_their_first_cell_and_a_line_below():
    flow = Flow()
    for step in range(1, 11):
        measured = {0: 1e-8 if step >= 4 else 0.1, 2: 0.1}
        flow.add(step, StepMeasurement(measured, [0, 1, 2], dead={1: 0.75 if step >= 7 else 0.0}))
    svg, _ = svg_of(flow)
    signs = {one[0].text: one[1] for one in elements(svg, "begins")}
    positions = {text: (float(sign.get("cx")), float(sign.get("cy"))) for text, sign in signs.items()}
    assert positions == {
        "step 4: vanishing gradient in first: 1.0e−8, versus 0.1 in last, nearest the loss": (
            LEFT + 3.5 * 24,
            24 + 9,
        ),
        "step 7: dead ReLUs in relu: 75% of the units": (LEFT + 6.5 * 24, 24 + ROW + 9),
    }
    assert [text_of(one) for one in elements(svg, "said")] == list(positions)
    assert [text_of(one) for one in elements(svg, "bang")].count("!") == 5  # two in cells, one in the legend, two below


def test_long_training_states_the_steps_per_column():
    flow = flow_of(*[[0.1]] * 1000)
    svg, _ = svg_of(flow, ["a"], ["A"])
    labels = [text_of(one) for one in elements(svg, "key")]
    assert labels[0] == "root mean square of each layer's gradient · each column: maximum over 8 measured steps"
    assert labels[1:7] == ["step 1", "201", "401", "593", "793", "1,000"]  # the first step of each of these columns
    assert len(cells(svg, len(flow.columns))) == len(flow.columns) == 125
    assert "one column per measured step" in svg_of(flow_of([0.1]), ["a"], ["A"])[0]


@pytest.mark.parametrize("count", [1, 2, 7, MAX_COLUMNS])
def test_texts_fit_and_do_not_overlap(count):
    flow = flow_of(*[[10.0 ** -(3 * row) for row in range(8)]] * count)
    flow.alarms += [Alarm("stale", count, row) for row in range(8)]
    svg, height = svg_of(flow, [f"encoder.layers.{row}.self_attention" for row in range(8)], ["MultiheadAttention"] * 8)
    spans = {}
    for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if text.get("class") in ("bang", "sub"):
            continue
        label_width = text_width(text_of(text), 12.5 if text.get("class") is None else 12)
        x, y = float(text.get("x")), float(text.get("y"))
        begin = x - label_width / 2 if "mid" in text.get("class", "") else x
        spans.setdefault(y, []).append((begin, begin + label_width, text_of(text)))
        assert y <= height
    for line in spans.values():
        line.sort()
        for (_, end, text), (begin, _, _) in pairwise(line):
            assert end <= begin, text
        assert line[-1][1] <= 840 - 8


def test_alarms_of_one_kind_are_one_line_with_their_range_and_the_worst():
    flow = Flow(alarms=[Alarm("vanishing", 3 + row, row, 10.0**-row, 20.0, 7) for row in range(6)])
    flow.alarms.append(Alarm("nan", 9, 2, math.nan, reference_row=2))
    flow.alarms.append(Alarm("inf", 8, 1, math.inf))
    flow.alarms.append(Alarm("grown", 5, 0, 3.0e5, 0.25))
    flow.alarms.append(Alarm("stale", 2, 1))
    assert alarm_lines(flow, "abcdefgh") == [
        "steps 3 to 8: vanishing gradient in a, b, c, d and 2 more: 1.0e−5 in f, versus 20.0 in h, nearest the loss",
        "step 9: the first NaN, in the output of c",
        "step 8: the first infinity, in the gradient of b",
        "step 5: exploding gradient in a: 3.0e5, previously about 0.25",
        "step 2: stale gradients in b: not cleared after the previous step; call zero_grad()",
    ]


def test_text_has_bars_and_signs_in_at_most_sixty_columns():
    flow = flow_of([1e-6, None, 1.0], [0.0, None, 1.0], [math.nan, None, 1.0], [None, None, 1.0])
    assert text_lines(flow, NAMES) == [
        "gradient flow: root mean square of each layer's gradient; one column per measured step, 1 to 4",
        "first  !0!",
        "last   ████",
        "▁ 10⁻⁶ … █ 10⁰, × NaN or Inf, 0 zero, ! start of an alarm",
        "! step 1: vanishing gradient in first: 1.0e−6, versus 1.0 in last, nearest the loss",
        "! step 3: the first NaN, in the gradient of first",
    ]
    long = text_lines(flow_of(*[[0.011]] * 1000), ["a"])
    assert "each column: maximum over 24 measured steps, 1 to 1,000" in long[0]
    assert long[1] == "a  " + "▁" * 42


def test_summary_has_the_range_and_alarms():
    flow = flow_of([1e-6, None, 0.5], [1e-6, None, 0.5])
    assert summary_line(flow, NAMES) == (
        "Gradient flow: 2 layers over 2 measured steps, from 10⁻⁶ to 10⁰. "
        "step 1: vanishing gradient in first: 1.0e−6, versus 0.5 in last, nearest the loss."
    )
    assert (summary_line(Flow(), NAMES), text_lines(Flow(), NAMES), draw_flow(Flow(), NAMES, KINDS, 0.0)) == (
        "",
        [],
        ("", 0.0),
    )
