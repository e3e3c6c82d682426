"""Films in animated SVG, GIF and MP4: the same moments, order and pace as the player, with the engine's values."""

import io
import math
import re
import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError
from minigrad_viz import play, step, to_trace
from minigrad_viz.pictures.film import film_of, point_on, positions_of
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.trace.history import Timeline
from moments import Moments
from needs import needs
from played import Played, scalar_graph
from svgs import SVG, elements_in, words
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


def seen_at(svg, seconds):
    """Return the document at a time, without the elements that its animations hide then."""
    css = re.search("<style>(.*?)</style>", svg, re.S)[1]
    total = float(re.search(r"animation:([\d.]+)s", css)[1])
    share = 100 * seconds / total
    hidden = {}
    for name, frames in re.findall(r"@keyframes ([\w-]+)\{((?:[^{}]+\{[^{}]*\})+)\}", css):
        state = "visible"
        times = [
            (100.0 if when == "to" else float(when.rstrip("%")), rule)
            for whens, rule in re.findall(r"([^{}]+)\{([^{}]*)\}", frames)
            for when in whens.split(",")
        ]
        for when, rule in sorted(times, key=lambda pair: pair[0]):
            if when <= share + 1e-6:
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
    found = []
    for card in root.iter(f"{SVG}g"):
        kinds = card.get("class", "").split()
        if kinds and kinds[0] in ("leaf", "op", "constant"):
            found.append((tuple(kinds), [words(element) for element in elements_in(card, "num")]))
    return found


def chips(root):
    return [words(chip) for chip in elements_in(root, "chip")]


@pytest.mark.parametrize("seed", choose_cases(range(40), "film", 6))
def test_every_still_of_the_animation_shows_the_engines_numbers(seed):
    game = Played(scalar_graph(seed)[0])
    expected = Moments(game)
    film = film_of(game.trace)
    svg = film.svg()
    assert film.positions == list(range(game.last + 1))
    for at, position in enumerate(film.positions):
        root = seen_at(svg, (at + 0.99) * film.step)
        assert chips(root) == [expected.chip(position)]
        assert [words(element) for element in elements_in(root, "count")] == [f"{position} / {game.last}"]
        shown = cards(root)
        told = [expected.card(node, position) for node in range(len(shown))]
        for (kinds, numbers), card in zip(shown, told, strict=True):
            wanted = [card["value"]] if kinds[0] == "constant" else [card["value"], card["grad"]]
            assert (numbers, "pale" in kinds) == (wanted, "pale" in card["state"]), position


def test_gradient_travels_from_the_result_back_to_the_operand():
    film = film_of(to_trace(neuron()))
    svg = film.svg()
    edge = 5 * film.step
    assert [words(pill) for pill in elements_in(seen_at(svg, edge + 0.3), "words")] == ["1.0 × 0.25 = 0.25", "0.25"]
    assert [words(pill) for pill in elements_in(seen_at(svg, edge + 0.7), "words")] == ["1.0 × 0.25 = 0.25"]
    way = re.search(r"@keyframes t5\{(.*?)\}(?=@keyframes|\})", svg)[1]
    xs = [float(x) for x in re.findall(r"translate\(([\d.]+)px", way)]
    assert xs == sorted(xs, reverse=True)
    one = film.traveller(5)
    assert (one.text, xs[0], xs[-1]) == (
        "0.25",
        pytest.approx(one.points[0][0], abs=0.1),
        pytest.approx(one.points[-1][0], abs=0.1),
    )
    assert one.points[0][0] > one.points[-1][0]


def test_animation_shows_the_end_where_nothing_moves_and_stands_still_for_who_wants_that():
    svg = film_of(to_trace(neuron())).svg()
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
    assert next(numbers for _, numbers in cards(root)) == ["−2.0", "0.75"]


def test_animation_has_no_script_and_is_small():
    svg = film_of(to_trace(neuron())).svg()
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle"}
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert len(svg) < 50_000


# --- pace ------------------------------------------------------------------------------------------------------------


def test_six_nodes_take_eight_seconds_and_the_end_is_seen_twice_as_long():
    film = film_of(to_trace(neuron()))
    assert (len(film.positions), film.step) == (10, 0.8)
    assert film.duration == pytest.approx(8.8)


@pytest.mark.parametrize("length", [30, 37, 118, 119, 400, 3000])
def test_any_graph_takes_at_most_a_minute(length):
    film = film_of(to_trace(chain(length)))
    assert film.duration <= 60
    assert (film.positions[0], film.positions[-1]) == (0, 2 * length + 1)
    assert film.step >= 0.24
    assert film.step == 0.8 or film.duration == pytest.approx(59), "as slow as there is time for"


def test_long_film_of_closed_blocks_goes_from_one_to_the_next():
    trace = to_trace(chain(3000))
    timeline = Timeline(trace)
    shown, _ = positions_of(timeline, 0, timeline.last, "edge", {0})
    blocks = [trace.block[timeline.at(position).node] for position in shown[1:-1]]
    assert len(set(blocks)) > 5
    assert len(shown) < 70


def test_speed_shortens_and_stretches():
    trace = to_trace(neuron())
    assert film_of(trace, speed=2.0).duration == pytest.approx(4.4)
    assert film_of(trace, speed=0.25).duration == pytest.approx(35.2)


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
def test_film_goes_from_start_to_stop(ends, positions):
    film = film_of(to_trace(neuron()), **ends)
    assert film.positions == list(positions)
    svg = film.svg()
    assert len(set(re.findall(r'class="num count dim"[^>]*>(\d+) / 9', svg))) == len(positions)


def test_operation_at_a_time_is_a_still_for_each_operation():
    film = film_of(to_trace(neuron()), unit="op")
    assert film.positions == [0, 1, 2, 3, 4, 5, 7, 9]


def test_point_on_a_way_is_by_length():
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


def test_gif_has_a_still_for_each_step_and_lasts_as_long_as_asked(gif):
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


def test_size_with_a_height_has_the_picture_in_its_middle_on_its_ground(gif):
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


def test_mp4_has_even_sides_and_lasts_as_long_as_asked(mp4):
    codec, rate, frames = mp4(play(neuron()), size=(401, 187))
    assert (codec.name, codec.width, codec.height, codec.pix_fmt) == ("h264", 402, 188, "yuv420p")
    assert (rate, len(frames)) == (20.0, 176)
    assert frames[0].shape == (188, 402)


def test_mp4_changes_where_the_step_does(mp4):
    _, rate, frames = mp4(play(neuron()), size=300, fps=30, stop=3)
    assert (rate, len(frames)) == (30.0, 120)
    moved = [at for at in range(1, len(frames)) if abs(frames[at].astype(int) - frames[at - 1]).max() > 60]
    assert moved == [24, 48, 72]


def test_player_of_tensors_is_filmed_with_its_heatmaps(gif):
    needs("numpy")
    with mg.record():
        x = mg.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
        y = (x * x).sum()
    frames, durations = gif(play(y), size=400)
    assert len(frames) == len(durations) == 7, "an array does not travel"
    assert len({frame.tobytes() for frame in frames}) == 7


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
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
def test_options_that_make_no_sense_are_refused(tmp_path, options, said):
    with pytest.raises(ArgumentError) as raised:
        step(neuron()).save(tmp_path / "y.gif", **options)
    assert str(raised.value) == said
    assert list(tmp_path.iterdir()) == []


def test_rate_at_which_steps_would_be_skipped_or_no_gif_can_have_is_refused(tmp_path):
    needs("typst", "av")
    with pytest.raises(ArgumentError) as raised:
        play(neuron()).save(tmp_path / "y.mp4", fps=1)
    assert str(raised.value) == (
        "save: at fps = 1 a frame lasts 1 s, longer than a step (0.8 s).\n"
        "  Use at least 2 frames per second, or a lower speed."
    )
    with pytest.raises(ArgumentError, match=r"^save: GIF supports at most 50 frames per second, but got fps = 60\."):
        play(neuron()).save(tmp_path / "y.gif", fps=60)


def test_player_says_what_films_there_are(tmp_path):
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


def test_numbers_that_were_changed_in_the_player_are_not_filmed_as_they_were(tmp_path):
    said = r"^save: w was changed in the player, and Python has not recomputed the graph\."
    player = step(neuron())
    player.leaf_w = 1.0
    with pytest.raises(ArgumentError, match=said):
        player.save(tmp_path / "y.svg")
    player.leaf_w = -2.0
    player.save(tmp_path / "y.svg")
    player.values = {"w": 5.0}
    with pytest.raises(ArgumentError, match=said):
        player.save(tmp_path / "y.svg")


def test_player_is_saved_as_a_page_that_begins_as_it_stands(tmp_path):
    step(neuron(), position=7).save(tmp_path / "y.html", theme="dark")
    page = (tmp_path / "y.html").read_text(encoding="utf-8")
    assert "&quot;position&quot;: 7" in page
    assert "data-theme=dark" in page


def test_open_blocks_of_the_player_are_open_in_its_film(tmp_path):
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


def test_traveller_is_slow_at_both_ends():
    film = film_of(to_trace(neuron()))
    cuts = film._cuts(20)
    first, arrived, after = cuts[5]
    assert (first, arrived, after) == (80, math.ceil((5 * 0.8 + 0.6) * 20), 96)
