"""The overlay of a moment: glows, and pills on or near their edges."""

from minigrad_viz import to_trace
from minigrad_viz.pictures.moments import drawn
from minigrad_viz.pictures.overlay import active_at, large_in, pill_width
from minigrad_viz.pictures.scene import scene
from minigrad_viz.pictures.svg import MARGIN
from minigrad_viz.trace.history import Timeline
from sample_graphs import neuron, scalars
from svgs import elements, words


def picture(trace, position):
    return drawn(trace, None, Timeline(trace).at(position)).svg


def test_the_node_that_is_computed_glows_with_the_edges_into_it():
    svg = picture(to_trace(neuron()), 1)
    assert [halo.get("class") for halo in elements(svg, "halo")] == ["halo forward"]
    (flow,) = elements(svg, "flow")
    assert (flow.get("class"), flow.get("d").count("M")) == ("flow forward", 2)
    (chip,) = elements(svg, "chip")
    assert words(chip) == "Forward 1 of 3"


def test_a_gradient_glows_on_its_edge_and_tints_those_that_it_has_passed():
    svg = picture(to_trace(neuron()), 6)
    assert [core.get("class") for core in elements(svg, "core")] == ["core backward"]
    assert [words(text) for text in elements(svg, "words")] == ["0.25 × 1.0 = 0.25"]
    lines = [line.get("class") for line in elements(svg, "edge")]
    assert lines == ["edge", "edge", "edge", "edge", "edge done positive"]
    assert len(elements(svg, "point")) == 1
    starts = [line.get("d").split()[0] for line in elements(svg, "edge")]
    tips = [tip.get("d").split()[0] for tip in elements(svg, "tip")]
    assert [at for at in range(5) if float(tips[at][1:]) < float(starts[at][1:])] == [2, 4]  # they point back


def test_nothing_is_active_at_the_start():
    timeline = Timeline(to_trace(neuron()))
    assert active_at(scene(timeline.trace, None, timeline), timeline.at(0)) is None


def test_words_about_an_edge_lie_near_its_middle_and_inside_the_picture():
    timeline = Timeline(to_trace(scalars()))
    seen = scene(timeline.trace, None, timeline)
    for position in range(timeline.seed + 1, timeline.last + 1):
        active = active_at(seen, timeline.at(position))
        (x, y), (middle, level), half = active.place, active.middle, large_in(seen) * pill_width(active.words) / 2
        assert abs(y - level) <= 120
        assert x - half >= -MARGIN
        assert x + half <= seen.width + MARGIN
        assert abs(x - middle) <= 170 + half


def test_words_are_beside_an_edge_where_they_would_hide_a_box():
    timeline = Timeline(to_trace(scalars()))
    seen = scene(timeline.trace, None, timeline)
    active = [active_at(seen, timeline.at(position)) for position in range(timeline.seed + 1, timeline.last + 1)]
    moved = [one for one in active if one.place != one.middle]
    assert 0 < len(moved) < len(active)
