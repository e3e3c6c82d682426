"""Films in animated SVG, GIF and MP4: the same moments, order and pace as the player, with the engine's values."""

import io
import math
import re
import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError
from minigrad_viz import play, step, to_trace
from minigrad_viz.pictures.film import film_positions, make_film, point_on
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.trace.history import Timeline
from needs import needs
from playback import Playback, scalar_graph
from player_expectations import PlayerExpectations
from svgs import SVG, elements_in, text_of
from tiers import choose_cases


def neuron():
    w, x, b = mg.Value(-2.0, "w"), mg.Value(3.0, "x"), mg.Value(6.0, "b")
    z = w * x + b
    z.label = "z"
    y = z.sigmoid()
    y.label = "y"
    return y


def chain(length):
    x = mg.Value(1.0, "x")
    for _ in range(length):
        x = x.tanh()
    return x


# --- what is seen when -----------------------------------------------------------------------------------------------


def visible_at(svg, seconds):
    """Return the document at a time, without the elements that its animations hide then."""
    css = re.search("<style>(.*?)</style>", svg, re.S)[1]
    total = float(re.search(r"animation:([\d.]+)s", css)[1])
    share = 100 * seconds / total
    hidden = {}
    for name, frames in re.findall(r"@keyframes ([\w-]+)\{((?:[^{}]+\{[^{}]*\})+)\}", css):
        state = "visible"
        times = [
            (100.0 if time == "to" else float(time.rstrip("%")), rule)
            for whens, rule in re.findall(r"([^{}]+)\{([^{}]*)\}", frames)
            for time in whens.split(",")
        ]
        for time, rule in sorted(times, key=lambda pair: pair[0]):
            if time <= share + 1e-6:
                state = re.search(r"visibility:(\w+)", rule)[1]
        hidden[name] = state == "hidden"
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            name = re.search(r"animation-name:([\w-]+)", child.get("style", ""))
            if name and hidden[name[1]]:
                parent.remove(child)
    return root


def cards(root):
    rows = []
    for card in root.iter(f"{SVG}g"):
        kinds = card.get("class", "").split()
        if kinds and kinds[0] in ("leaf", "op", "constant"):
            rows.append((tuple(kinds), [text_of(element) for element in elements_in(card, "num")]))
    return rows


def chips(root):
    return [text_of(chip) for chip in elements_in(root, "chip")]


@pytest.mark.parametrize("seed", choose_cases(range(40), "film", 6))
def test_every_still_shows_the_engines_values(seed):
    game = Playback(scalar_graph(seed)[0])
    expected = PlayerExpectations(game)
    film = make_film(game.trace)
    svg = film.svg()
    assert film.positions == list(range(game.last + 1))
    for at, position in enumerate(film.positions):
        root = visible_at(svg, (at + 0.99) * film.step_seconds)
        assert chips(root) == [expected.chip(position)]
        assert [text_of(element) for element in elements_in(root, "count")] == [f"{position} / {game.last}"]
        shown = cards(root)
        descriptions = [expected.card(node, position) for node in range(len(shown))]
        for (kinds, values), card in zip(shown, descriptions, strict=True):
            expected_values = [card["value"]] if kinds[0] == "constant" else [card["value"], card["grad"]]
            assert (values, "pale" in kinds) == (expected_values, "pale" in card["state"]), position


def test_gradient_moves_from_the_result_to_the_operand():
    film = make_film(to_trace(neuron()))
    svg = film.svg()
    edge = 5 * film.step_seconds
    assert [text_of(pill) for pill in elements_in(visible_at(svg, edge + 0.3), "words")] == [
        "1.0 × 0.25 = 0.25",
        "0.25",
    ]
    assert [text_of(pill) for pill in elements_in(visible_at(svg, edge + 0.7), "words")] == ["1.0 × 0.25 = 0.25"]
    way = re.search(r"@keyframes t5\{(.*?)\}(?=@keyframes|\})", svg)[1]
    xs = [float(x) for x in re.findall(r"translate\(([\d.]+)px", way)]
    assert xs == sorted(xs, reverse=True)
    one = film.moving_gradient(5)
    assert (one.text, xs[0], xs[-1]) == (
        "0.25",
        pytest.approx(one.points[0][0], abs=0.1),
        pytest.approx(one.points[-1][0], abs=0.1),
    )
    assert one.points[0][0] > one.points[-1][0]


def test_animation_shows_the_last_still_without_motion_and_with_reduced_motion():
    svg = make_film(to_trace(neuron())).svg()
    css = re.search("<style>(.*?)</style>", svg, re.S)[1]
    assert "@media (prefers-reduced-motion:no-preference){.v{animation:" in css
    outside = css[: css.index("@media (prefers-reduced-motion")]
    assert ".v{visibility:hidden}.v.e{visibility:visible}" in outside
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in [
            one for one in parent if "v" in one.get("class", "").split() and "e" not in one.get("class", "").split()
        ]:
            parent.remove(child)
    assert chips(root) == ["Backward 5 of 5"]
    assert next(values for _, values in cards(root)) == ["−2.0", "0.75"]


def test_animation_has_no_script_and_is_small():
    svg = make_film(to_trace(neuron())).svg()
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle"}
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert len(svg) < 50_000


# --- pace ------------------------------------------------------------------------------------------------------------


def test_six_nodes_take_eight_seconds_and_the_end_lasts_twice_as_long():
    film = make_film(to_trace(neuron()))
    assert (len(film.positions), film.step_seconds) == (10, 0.8)
    assert film.duration == pytest.approx(8.8)


@pytest.mark.parametrize("length", [30, 37, 118, 119, 400, 3000])
def test_any_graph_takes_at_most_a_minute(length):
    film = make_film(to_trace(chain(length)))
    assert film.duration <= 60
    assert (film.positions[0], film.positions[-1]) == (0, 2 * length + 1)
    assert film.step_seconds >= 0.24
    assert film.step_seconds == 0.8 or film.duration == pytest.approx(59), "as slow as there is time for"


def test_long_film_skips_steps_inside_closed_blocks():
    trace = to_trace(chain(3000))
    timeline = Timeline(trace)
    shown, _ = film_positions(timeline, 0, timeline.last, "edge", {0})
    blocks = [trace.block[timeline.at(position).node] for position in shown[1:-1]]
    assert len(set(blocks)) > 5
    assert len(shown) < 70


def test_speed_scales_the_duration():
    trace = to_trace(neuron())
    assert make_film(trace, speed=2.0).duration == pytest.approx(4.4)
    assert make_film(trace, speed=0.25).duration == pytest.approx(35.2)


@pytest.mark.parametrize(
    ("ends", "positions"),
    [
        ({"start": 4}, range(4, 10)),
        ({"stop": 3}, range(4)),
        ({"start": "seed", "stop": "end"}, range(4, 10)),
        ({"start": "z", "stop": ("w", "backward")}, range(2, 9)),
        ({"start": 5, "stop": 5}, [5]),
    ],
)
def test_film_runs_from_start_to_stop(ends, positions):
    film = make_film(to_trace(neuron()), **ends)
    assert film.positions == list(positions)
    svg = film.svg()
    assert len(set(re.findall(r'class="num count dim"[^>]*>(\d+) / 9', svg))) == len(positions)


def test_unit_op_has_a_still_for_each_operation():
    film = make_film(to_trace(neuron()), unit="op")
    assert film.positions == [0, 1, 2, 3, 4, 5, 7, 9]


def test_point_on_a_polyline_is_by_length():
    corner = [(0.0, 0.0), (30.0, 0.0), (30.0, 10.0)]
    assert [point_on(corner, share) for share in (0.0, 0.5, 0.75, 0.875, 1.0)] == [
        (0.0, 0.0),
        (20.0, 0.0),
        (30.0, 0.0),
        (30.0, 5.0),
        (30.0, 10.0),
    ]


# --- GIF and MP4 -----------------------------------------------------------------------------------------------------


@pytest.fixture
def gif(tmp_path):
    """Save a player as GIF and return its frames and their durations in milliseconds."""
    needs("typst", "av", "PIL")
    from PIL import Image, ImageSequence

    def save(player, **options):
        player.save(tmp_path / "y.gif", **options)
        film = Image.open(io.BytesIO((tmp_path / "y.gif").read_bytes()))
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(film)]
        assert film.info.get("loop") == 0
        return [frame for frame, _ in frames], [duration for _, duration in frames]

    return save


def test_gif_has_a_still_for_each_step_and_the_requested_duration(gif):
    frames, durations = gif(play(neuron()), size=400)
    assert sum(durations) == 8800
    assert durations[:5] == [800] * 5, "nothing travels forward"
    assert len(frames) == 5 + 5 * (12 + 1)
    assert len({frame.tobytes() for frame in frames}) == len(frames)
    assert {frame.size for frame in frames} == {(400, round(400 * frames[0].height / 400))}


def test_gif_at_another_speed_and_rate(gif):
    _, durations = gif(play(neuron()), size=300, speed=4, fps=10, start=4, stop=6)
    assert sum(durations) == 800
    assert durations == [200, 100, 100, 100, 100, 200]


def test_gif_takes_the_speed_of_the_player(gif):
    assert sum(gif(play(neuron(), speed=2), size=200)[1]) == 4400


def test_size_with_a_height_centres_the_drawing_on_the_background(gif):
    for theme, palette in (("light", LIGHT), ("dark", DARK)):
        frames, _ = gif(play(neuron()), size=(300, 400), stop=1, theme=theme)
        page = tuple(int(palette["page"][at : at + 2], 16) for at in (1, 3, 5))
        assert frames[0].size == (300, 400)
        assert max(abs(a - b) for a, b in zip(frames[0].getpixel((150, 10)), page, strict=True)) <= 2
        assert len(frames[0].crop((0, 150, 300, 250)).getcolors(1 << 20)) > 10


@pytest.fixture
def mp4(tmp_path):
    """Save a player as MP4 and return the metadata and the frames of the file."""
    needs("typst", "av")
    import av

    def save(player, **options):
        player.save(tmp_path / "y.mp4", **options)
        with av.open(str(tmp_path / "y.mp4")) as film:
            (stream,) = film.streams.video
            frames = [frame.to_ndarray(format="gray") for frame in film.decode(stream)]
            return stream.codec_context, float(stream.average_rate), frames

    return save


def test_mp4_has_even_sides_and_the_requested_duration(mp4):
    codec, rate, frames = mp4(play(neuron()), size=(401, 187))
    assert (codec.name, codec.width, codec.height, codec.pix_fmt) == ("h264", 402, 188, "yuv420p")
    assert (rate, len(frames)) == (20.0, 176)
    assert frames[0].shape == (188, 402)


def test_mp4_changes_where_the_step_does(mp4):
    _, rate, frames = mp4(play(neuron()), size=300, fps=30, stop=3)
    assert (rate, len(frames)) == (30.0, 120)
    changes = [at for at in range(1, len(frames)) if abs(frames[at].astype(int) - frames[at - 1]).max() > 60]
    assert changes == [24, 48, 72]


def test_film_of_tensors_has_heatmaps(gif):
    needs("numpy")
    with mg.record():
        x = mg.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
        y = (x * x).sum()
    frames, durations = gif(play(y), size=400)
    assert len(frames) == len(durations) == 7, "an array does not travel"
    assert len({frame.tobytes() for frame in frames}) == 7


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0}, "save: speed must be a positive number, but got 0.\n  Omit it to use the default."),
        ({"fps": -1}, "save: fps must be a positive number, but got -1.\n  Omit it to use the default."),
        (
            {"size": (300,)},
            (
                "save: size must be a width or (width, height) in pixels, but got (300,).\n"
                "  Write size=800 or size=(800, 600)."
            ),
        ),
        (
            {"size": "big"},
            (
                "save: size must be a width or (width, height) in pixels, but got 'big'.\n"
                "  Write size=800 or size=(800, 600)."
            ),
        ),
        ({"start": 5, "stop": 2}, "save: start (position 5) is after stop (position 2).\n  Swap start and stop."),
        ({"stop": 99}, "save: position 99 is out of range.\n  Positions go from 0, before the first operation, to 9."),
        ({"theme": "blue"}, 'save: theme must be "light" or "dark", but got \'blue\'.\n  Omit it to use the default.'),
    ],
)
def test_invalid_options_are_rejected(tmp_path, options, message):
    with pytest.raises(ArgumentError) as raised:
        step(neuron()).save(tmp_path / "y.gif", **options)
    assert str(raised.value) == message
    assert list(tmp_path.iterdir()) == []


def test_unsupported_frame_rates_are_rejected(tmp_path):
    needs("typst", "av")
    with pytest.raises(ArgumentError) as raised:
        play(neuron()).save(tmp_path / "y.mp4", fps=1)
    assert str(raised.value) == (
        "save: at fps = 1 a frame lasts 1 s, longer than a step (0.8 s).\n"
        "  Use at least 2 frames per second, or a lower speed."
    )
    with pytest.raises(ArgumentError, match=r"^save: GIF supports at most 50 frames per second, but got fps = 60\."):
        play(neuron()).save(tmp_path / "y.gif", fps=60)


def test_player_lists_the_supported_formats(tmp_path):
    player = step(neuron())
    with pytest.raises(ArgumentError, match=r"has no supported suffix\.\n  Use one of \.gif, \.mp4, \.svg, \.html\.$"):
        player.save(tmp_path / "y.png")
    with pytest.raises(
        ArgumentError, match=r"^save: \.svg files have no option 'fps'\.\n  It applies to \.gif, \.mp4\.$"
    ):
        player.save(tmp_path / "y.svg", fps=10)
    with pytest.raises(MissingFileError, match=r"save: directory .* does not exist"):
        player.save(tmp_path / "films" / "y.svg")
    with pytest.raises(DTypeError, match=r"^save: 3 is an int, not a path"):
        player.save(3)


def test_film_after_changes_in_the_player_is_rejected(tmp_path):
    message = r"^save: w was changed in the player, and Python has not recomputed the graph\."
    player = step(neuron())
    player.leaf_w = 1.0
    with pytest.raises(ArgumentError, match=message):
        player.save(tmp_path / "y.svg")
    player.leaf_w = -2.0
    player.save(tmp_path / "y.svg")
    player.values = {"w": 5.0}
    with pytest.raises(ArgumentError, match=message):
        player.save(tmp_path / "y.svg")


def test_saved_page_starts_in_the_state_of_the_player(tmp_path):
    step(neuron(), position=7).save(tmp_path / "y.html", theme="dark")
    page = (tmp_path / "y.html").read_text(encoding="utf-8")
    assert "&quot;position&quot;: 7" in page
    assert "data-theme=dark" in page


def test_film_opens_the_open_blocks_of_the_player(tmp_path):
    x = mg.Value(1.0, "x")
    with mg.scope("first"):
        x = x.tanh()
    with mg.scope("second"):
        x = x.tanh()
    shown = {}
    for opened in ([0], [0, 1, 2]):
        step(x, expanded=opened).save(tmp_path / "y.svg")
        root = ET.fromstring((tmp_path / "y.svg").read_text(encoding="utf-8"))
        shown[len(opened)] = len(elements_in(root, "frame")), bool(elements_in(root, "block"))
    assert shown == {1: (0, True), 3: (2, False)}


def test_motion_is_eased_at_both_ends():
    film = make_film(to_trace(neuron()))
    cuts = film._frame_ranges(20)
    first, arrived, after = cuts[5]
    assert (first, arrived, after) == (80, math.ceil((5 * 0.8 + 0.6) * 20), 96)
