"""The overlay of a moment: glows, and pills on or near their edges."""

from minigrad_viz import to_trace
from minigrad_viz.pictures.moments import render_moment
from minigrad_viz.pictures.overlay import active_at, pill_scale_for, pill_width
from minigrad_viz.pictures.scene import build_scene
from minigrad_viz.pictures.svg import MARGIN
from minigrad_viz.trace.history import Timeline
from sample_graphs import neuron, scalars
from svgs import elements, text_of


def picture(trace, position):
    return render_moment(trace, None, Timeline(trace).at(position)).svg


def test_active_node_glows_with_its_incoming_edges():
    svg = picture(to_trace(neuron()), 1)
    assert [halo.get("class") for halo in elements(svg, "halo")] == ["halo forward"]
    (flow,) = elements(svg, "flow")
    assert (flow.get("class"), flow.get("d").count("M")) == ("flow forward", 2)
    (chip,) = elements(svg, "chip")
    assert text_of(chip) == "Forward 1 of 3"


def test_active_gradient_glows_and_colours_previous_edges():
    svg = picture(to_trace(neuron()), 6)
    assert [core.get("class") for core in elements(svg, "core")] == ["core backward"]
    assert [text_of(text) for text in elements(svg, "words")] == ["0.25 × 1.0 = 0.25"]
    lines = [line.get("class") for line in elements(svg, "edge")]
    assert lines == ["edge", "edge", "edge", "edge", "edge done positive"]
    assert len(elements(svg, "point")) == 1
    starts = [line.get("d").split()[0] for line in elements(svg, "edge")]
    tips = [tip.get("d").split()[0] for tip in elements(svg, "tip")]
    assert [at for at in range(5) if float(tips[at][1:]) < float(starts[at][1:])] == [2, 4]  # they point back


def test_nothing_is_active_at_the_start():
    timeline = Timeline(to_trace(neuron()))
    assert active_at(build_scene(timeline.trace, None, timeline), timeline.at(0)) is None


def test_pill_is_near_the_midpoint_and_inside_the_drawing():
    timeline = Timeline(to_trace(scalars()))
    scene = build_scene(timeline.trace, None, timeline)
    for position in range(timeline.seed + 1, timeline.last + 1):
        active = active_at(scene, timeline.at(position))
        (x, y), (middle, level), half = (
            active.pill_center,
            active.edge_midpoint,
            pill_scale_for(scene) * pill_width(active.label) / 2,
        )
        assert abs(y - level) <= 120
        assert x - half >= -MARGIN
        assert x + half <= scene.width + MARGIN
        assert abs(x - middle) <= 170 + half


def test_pill_moves_off_its_edge_to_avoid_boxes():
    timeline = Timeline(to_trace(scalars()))
    scene = build_scene(timeline.trace, None, timeline)
    active = [active_at(scene, timeline.at(position)) for position in range(timeline.seed + 1, timeline.last + 1)]
    displaced = [one for one in active if one.pill_center != one.edge_midpoint]
    assert 0 < len(displaced) < len(active)
