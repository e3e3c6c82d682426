"""Plot: what its SVG draws, its text forms, and its errors."""

import re

import numpy as np
import pytest

from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, ShapeError
from minigrad_viz import Plot
from minigrad_viz.pictures.palette import SERIES
from svgs import elements, text_of

nan, inf = float("nan"), float("inf")


def bare(**options):
    """Return a plot of 100 by 100 pixels per unit, without axes: (0, 0) is at (16, 216), (2, 2) at (216, 16)."""
    return Plot(axis=False, xlim=(0, 2), ylim=(0, 2), width=232, height=232, **options)


def paths(plot, css_class):
    return [path.get("d") for path in elements(plot.svg(), css_class)]


def texts(plot):
    return [text_of(element) for element in elements(plot.svg(), "mg")[0].iter("{http://www.w3.org/2000/svg}text")]


# --- marks ---


def test_a_line_goes_through_its_points():
    assert paths(bare().line([0, 1, 2], [0, 2, 1]), "curve") == ["M16 216L116 16L216 116"]


def test_nan_and_infinity_interrupt_a_line():
    plot = bare().line([0, 0.5, 1, 1.5, 2], [0, 1, nan, 1, inf])
    assert paths(plot, "curve") == ["M16 216L66 116M166 116h0"]


def test_a_line_far_outside_the_axes_has_coordinates_that_renderers_can_represent():
    assert paths(bare().line([0, 1], [0, 1e300]), "curve") == ["M16 216L116 -100000"]


def test_markers_have_the_shape_and_colour_of_their_series():
    plot = bare().points([1], [1]).points([1], [1]).points([1], [1]).line([1], [1], color="C0", marker="s")
    shapes = [(path.get("class"), re.findall("[a-zA-Z]", path.get("d"))) for path in elements(plot.svg(), "mark")]
    assert [css_class for css_class, _ in shapes] == ["mark C0", "mark C1", "mark C2", "mark C0"]
    assert ["".join(letters) for _, letters in shapes] == ["Mmaaz", "Mmlhz", "Mmhvhz", "Mmhvhz"]


def test_points_outside_the_axes_are_not_drawn():
    (path,) = paths(bare().points([1, 3, 1, nan], [1, 1, -1, 1]), "mark")
    assert path.count("M") == 1
    assert path.startswith("M116 116m")


def test_equal_neighbours_of_a_map_are_one_rectangle_that_ends_at_the_grid():
    plot = bare().regions([0, 1, 2], [0, 2], [[0, 0, 2], [2, 2, 2]])
    assert [(path.get("class"), path.get("d")) for path in elements(plot.svg(), "map")] == [
        ("area map C0", "M16 116H166V216H16z"),
        ("area map C2", "M166 116H216V216H166zM16 16H216V116H16z"),
    ]


def test_rectangles_and_horizontal_lines():
    plot = bare().rectangle(0.5, 1, 1, 0.5, color="C3", alpha=0.5).hline(1.5)
    (area,) = elements(plot.svg(), "area")
    assert (area.get("class"), area.get("fill-opacity"), area.get("d")) == ("area C3", "0.5", "M66 66H166V116H66z")
    assert paths(plot, "dashes") == ["M16 66L216 66"]


def test_text_is_anchored_at_its_point_and_letters_of_maths_are_italic():
    plot = bare().text(1, 1, r"area $a \cdot h_1$ < 2", ha="center", color="C1")
    (element,) = elements(plot.svg(), "C1")
    assert (element.get("x"), element.get("y"), element.get("text-anchor")) == ("116", "116", "middle")
    assert text_of(element) == "area a · h₁ < 2"
    assert [text_of(part) for part in elements(plot.svg(), "it")] == ["a", "h"]


def test_data_may_be_arrays_and_generators():
    expected = bare().line([0, 1, 2], [0, 1, 2]).svg()
    assert bare().line(np.arange(3), np.arange(3.0)).svg() == expected
    assert bare().line(range(3), (float(k) for k in range(3))).svg() == expected


# --- axes and legend ---


def test_axes_have_ticks_and_labels():
    plot = Plot(xlabel="weight $w$", ylabel="answer $y$", ylim=(-0.05, 1.05)).line([-4, 0], [0, 1])
    assert texts(plot)[:5] == ["−4", "−3", "−2", "−1", "0"]
    assert texts(plot)[5:] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "weight w", "answer y"]


def test_logarithmic_axes_have_powers_of_ten():
    plot = Plot(xscale="log", yscale="log").line([1e-6, 1], [1e-4, 1])
    assert texts(plot) == ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]


def test_labels_of_the_vertical_axis_are_inside_the_picture():
    plot = Plot().line([0, 1], [0, 80_000_000])
    element = next(one for one in elements(plot.svg(), "dim") if text_of(one) == "80,000,000")
    assert element.get("text-anchor") == "end"
    assert float(element.get("x")) > 16 + 10 * 7


def test_equal_scales_show_a_square_as_a_square():
    plot = Plot(aspect="equal", axis=False, width=400, height=200).rectangle(0, 0, 3, 3)
    assert paths(plot, "area") == ["M116 16H284V184H116z"]


@merge_cases
@pytest.mark.parametrize(
    ("corner", "is_left", "is_upper"),
    [("upper left", True, True), ("upper right", False, True), ("lower left", True, False), ("lower right", 0, 0)],
)
def test_the_legend_is_in_its_corner_and_lists_labelled_marks(corner, is_left, is_upper):
    plot = bare(legend=corner).line([0, 2], [0, 2], "rising", marker="o").points([1], [1]).hline(1, "goal")
    assert texts(plot) == ["rising", "goal"]
    (ground,) = paths(plot, "ground")
    x, y = map(float, re.match(r"M([\d.]+) ([\d.]+)", ground).groups())
    assert ((x < 116), (y < 116)) == (is_left, is_upper)
    assert len(paths(plot, "curve")) == len(paths(plot, "dashes")) == 2


def test_a_plot_without_labels_has_no_legend():
    assert paths(bare().line([0, 1], [0, 1]), "ground") == []


def test_an_empty_plot_is_drawn():
    assert texts(Plot(ylabel="loss"))[-1] == "loss"
    assert repr(Plot()) == "Plot()"


# --- results ---


def test_the_plot_follows_the_theme_unless_one_is_given():
    plot = bare().line([0, 1], [0, 1])
    assert SERIES["light"][0] in plot.svg()
    assert "@media (prefers-color-scheme:dark){" in plot.svg()
    assert f".mg .C0{{color:{SERIES['dark'][0]}}}" in plot.svg()
    assert "@media" not in plot.svg("dark")
    assert SERIES["light"][0] not in plot.svg("dark")


def test_a_notebook_shows_an_image_with_a_text_alternative():
    plot = Plot(xlabel="step", ylabel="loss $L$").line([0, 1, 9], [1.16, 0.5, 0.1129], "<b>").points([0], [1]).hline(2)
    plot.rectangle(0, 0, 1, 1).rectangle(1, 1, 1, 1)
    bundle = plot._repr_mimebundle_()
    assert sorted(bundle) == ["text/html", "text/plain"]
    assert bundle["text/plain"] == "Plot(loss L over step: <b>; 1 point; horizontal line at 2; 2 × rectangle)"
    alternative = (
        "Plot of loss L over step: &lt;b&gt; from 1.16 at 0 to 0.113 at 9; 1 point; horizontal line at 2; "
        "2 × rectangle."
    )
    assert (
        f'alt="{alternative}" width="480" style="width:min(100%,576px);max-width:none;height:auto">'
        in (bundle["text/html"])
    )
    assert f"<desc>{alternative}</desc>" in plot.svg()
    assert 'role="img"' in plot.svg()


def test_coordinates_are_rounded_so_that_every_machine_draws_the_same():
    one, other = (bare().line([0, 1, 2], [1 / 3, 2 / 3 + error, 1]) for error in (0.0, 1e-12))
    assert one.svg() == other.svg()
    assert paths(one, "curve") == ["M16 182.7L116 149.3L216 116"]


@pytest.mark.needs("typst")
def test_a_plot_is_saved(tmp_path):
    plot = bare().line([0, 1], [0, 1], "rising")
    plot.save(tmp_path / "plot.svg", theme="dark")
    plot.save(tmp_path / "plot.png")
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == plot.svg("dark")
    header = (tmp_path / "plot.png").read_bytes()[:24]
    assert (int.from_bytes(header[16:20]), int.from_bytes(header[20:24])) == (464, 464)
    with pytest.raises(ArgumentError, match=r"has no supported suffix\.\n  Use one of \.svg, \.png, \.txt"):
        plot.save(tmp_path / "plot.jpg")


# --- errors ---

LOG_LIMITS = "Plot: xlim must be (low, high), two increasing numbers or None, positive on a logarithmic axis"
WRONG = [
    (lambda: Plot().line([1, 2, 3], [1, 2]), ShapeError, "line: got 3 xs but 2 ys.\n  Pass a y for each x."),
    (lambda: Plot().points(["a"], [1]), DTypeError, "points: xs must be real numbers, but got ['a'], a list."),
    (lambda: Plot().line(3, [1]), DTypeError, "line: xs must be real numbers, but got 3, an int."),
    (lambda: Plot().hline(nan), ArgumentError, "hline: y must be finite, but got [nan]."),
    (lambda: Plot().text(inf, 1, "far"), ArgumentError, "text: x must be finite, but got [inf]."),
    (lambda: Plot().hline("a"), DTypeError, "hline: y must be real numbers, but got ['a'], a list."),
    (
        lambda: Plot(yscale="log").line([1, 2], [1, 0]),
        ArgumentError,
        "line: ys[1] is 0.0, but a logarithmic axis has only positive numbers.\n  Omit it, or pass NaN.",
    ),
    (
        lambda: Plot().line([1], [1], color="red"),
        ArgumentError,
        "line: color must be one of 'C0', 'C1', 'C2', 'C3', but got 'red'.",
    ),
    (
        lambda: Plot().points([1], [1], marker="x"),
        ArgumentError,
        "points: marker must be one of 'o', '^', 's', but got 'x'.",
    ),
    (
        lambda: Plot(legend="best"),
        ArgumentError,
        "Plot: legend must be one of 'upper left', 'upper right', 'lower left', 'lower right', but got 'best'.",
    ),
    (
        lambda: Plot(xscale="log", xlim=(0, 1)),
        ArgumentError,
        f"{LOG_LIMITS}, but got (0, 1).",
    ),
    (
        lambda: Plot(ylim=(2, 1)),
        ArgumentError,
        "Plot: ylim must be (low, high), two increasing numbers or None, but got (2, 1).",
    ),
    (lambda: Plot(ylim=3), ArgumentError, "Plot: ylim must be (low, high), two increasing numbers or None, but got 3."),
    (
        lambda: Plot().regions([0, 1], [0, 1], [[0, 1], [0]]),
        ShapeError,
        "regions: expected 2 rows of 2 classes, one for each of ys and of xs, but got 2 rows of 1 or 2.",
    ),
    (
        lambda: Plot().regions([0, 1], [0, 1], [[0, 1], [0, 4]]),
        ArgumentError,
        "regions: expected classes from 0 to 3, but got [0, 1, 4].",
    ),
    (
        lambda: Plot().regions([1, 0], [0, 1], [[0, 1], [0, 1]]),
        ArgumentError,
        "regions: expected at least two increasing xs, but got [1.0, 0.0].",
    ),
]


@merge_cases
@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_invalid_arguments_raise(call, error, message):
    with pytest.raises(MinigradError) as raised:
        call()
    assert (type(raised.value), str(raised.value)) == (error, message)
