"""The drawing of a moment: the values computed so far, the active node and edges, and the caption above.

It matches the player at that position (`frontend/src/drawing/looks.js`): the active node glows, active edges are
highlighted, and a pill shows the factors of the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from minigrad_viz.pictures import boxes, heat, strokes
from minigrad_viz.pictures.boxes import Frame
from minigrad_viz.pictures.curves import Point, curve, samples_of, short, tip
from minigrad_viz.pictures.overlay import AROUND, SEEN, active_at, glow, wire_glow
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import Scene, scene
from minigrad_viz.pictures.strokes import Strokes
from minigrad_viz.pictures.svg import MARGIN, Picture, document, flowing, line, picture, placed_label
from minigrad_viz.trace import Trace
from minigrad_viz.trace.captions import Caption, caption, scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import brief, escape, text_width

__all__ = ["Stage", "Traveller", "drawn", "stage_of"]

_LEAST = 480.0  # minimum width, in pixels, for the caption
_WORDS, _FORMULA = 19.0, 21.0  # line heights of words and of formulas
_BAR = 22.0  # height of the progress bar
_SHAPES = (
    ".mg .many{{stroke-width:2.5}}.mg .final .grad{{font-weight:700}}"
    ".mg .halo,.mg .core,.mg .flow,.mg .leader{{fill:none}}.mg .halo{{stroke-width:9;stroke-opacity:.5}}"
    ".mg .core{{stroke-width:2.5}}.mg .flow{{stroke-width:4.5}}.mg .leader{{stroke-width:1.5}}"
    ".mg .words{{font-size:12px;font-weight:700;text-anchor:middle}}.mg .say{{font-size:13px}}"
    ".mg .formula{{font-size:14px}}.mg .chip{{font-size:11.5px;font-weight:700}}.mg .count{{font-size:11px}}"
)
_COLOURS = (
    ".mg .future{{stroke:{rim}}}.mg .tip{{stroke:none}}"
    ".mg .tip.future{{fill:{rim}}}"
    ".mg .pale .box,.mg .pale .stack{{stroke:{rim};fill:{page}}}.mg .pale .ring{{stroke:{rim}}}"
    ".mg .pale .head,.mg .pale .wash{{fill:{page}}}.mg .pale text,.mg .pale .head+text{{fill:{muted}}}"
    ".mg .wait .grad,.mg .blocked .grad{{fill:{muted}}}"
    ".mg .forward{{stroke:{halo}}}.mg .backward{{stroke:{hot}}}.mg .core.forward{{stroke:{forward}}}"
    ".mg .backward.less{{stroke:{negative}}}.mg .point{{fill:{hot}}}.mg .point.less{{fill:{negative}}}"
    ".mg .leader{{stroke:{hot}}}.mg .leader.less{{stroke:{negative}}}.mg .pill{{fill:{backward}}}"
    ".mg .pill.less{{fill:{negative}}}.mg .words{{fill:{page}}}"
    ".mg .way{{fill:{rim}}}"
    ".mg .ground-start{{fill:{op}}}.mg .chip-start{{fill:{on-op}}}.mg .ground-forward{{fill:{forward}}}"
    ".mg .chip-forward{{fill:{page}}}.mg .ground-edge{{fill:{wash}}}.mg .chip-edge{{fill:{backward}}}"
    ".mg .track{{fill:{halo}}}.mg .track.back{{fill:{heat}}}.mg .now{{fill:{ink};stroke:{page};stroke-width:2}}"
)


def drawn(
    trace: Trace,
    opened: Collection[int] | None = None,
    now: Moment | None = None,
    theme: Theme | None = None,
    more: str = "",
) -> Picture:
    """Return the drawing of a trace, or of a moment of it; the arguments are those of `svg.picture`."""
    if now is None:
        return picture(trace, opened, theme, more)
    stage = stage_of(scene(trace, opened, now.timeline), [now.position], bar=False)
    said = " ".join(filter(None, caption(now)))
    return stage.document("".join(stage.pieces(now.position)), theme, more, said=said)


@dataclass(frozen=True, slots=True)
class Traveller:
    """The gradient that moves back over an edge: the label of its pill, and the points along its path."""

    text: str
    points: list[Point]


# --- the drawing -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stage:
    """A scene with a caption band above it, which is high enough for each of its moments, so that all have one size."""

    seen: Scene
    width: float
    band: float
    zoom: float
    """The font scale of the band relative to the scene."""
    bar: bool
    """Whether the band contains a progress bar."""
    strokes: Strokes
    """The strokes of edges that a gradient has flowed back over."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in pixels."""
        return math.ceil(self.width + 2 * MARGIN), math.ceil(self.band + self.seen.height + 2 * AROUND)

    @property
    def origin(self) -> Point:
        """The origin of the scene, which is centred horizontally."""
        return MARGIN + (self.width - self.seen.width) / 2, self.band + AROUND

    def document(
        self,
        inside: str,
        theme: Theme | None,
        more: str = "",
        shown: tuple[int, int] | None = None,
        box: tuple[float, float] | None = None,
        said: str = "",
    ) -> Picture:
        """Return the document around `inside`. `more` is additional CSS, `shown` the displayed size, `box` the size of
        the view box, and `said` the text alternative."""
        trace = self.seen.trace
        shapes, colours = (
            boxes.SHAPES + heat.SHAPES + _SHAPES,
            boxes.COLOURS + heat.COLOURS + _COLOURS + strokes.COLOURS,
        )
        css = stylesheet(shapes, colours, theme) + more
        return document(trace, inside, box or self.size, css, said or trace.sentence(), shown)

    def pieces(self, position: int) -> list[str]:
        """Return the SVG pieces at a position, from back to front. Their number and meaning is the same at every
        position."""
        assert self.seen.timeline is not None
        seen, now = self.seen, self.seen.timeline.at(position)
        active = active_at(seen, now)
        parts = [seen.part_at(at, now) for at in range(len(seen.items))]
        placed = list(zip(parts, seen.boxes, strict=True))
        frames = [part.draw(*box) for part, box in placed if isinstance(part, Frame)]
        cards = [part.draw(box.x, box.y) for part, box in placed if not isinstance(part, Frame)]
        wires = [self._wire(at, now) for at in range(len(seen.wires))]
        lines, labels = [line for line, _ in wires], [label for _, label in wires]
        over = [wire_glow(seen, active), *labels, *cards, glow(seen, parts, active)]
        return [*(self._moved(piece) for piece in (*frames, *lines, *over)), self._words(now)]

    def _moved(self, piece: str) -> str:
        x, y = self.origin
        return f'<g transform="translate({x:g} {y:g})">{piece}</g>' if piece else ""

    def _wire(self, at: int, now: Moment) -> tuple[str, str]:
        """Return the path of a wire, and its arrowhead with its label."""
        seen, wire, route = self.seen, self.seen.wires[at], self.seen.routes[at]
        marks = ("" if flowing(seen.trace, wire) else "none", "many" if len(wire.edges) > 1 else "")
        time = seen.time_of(wire, now)
        stroke = self.strokes.of(wire.edges) if time == "done" else None
        back = time == "done" or now.edge in wire.edges
        path = line(curve(route, back), " ".join(filter(None, [*marks, time])), stroke)
        look = " ".join(filter(None, ("tip", time, stroke and stroke.sign)))
        head = f'<path class="{look}" d="{tip(route[0], -1, 1.2) if back else tip(route[-1])}"/>'
        if not (label := seen.label_at(at, now)):
            return path, head
        ground, text = placed_label(seen.trace, wire.edges[0], label, route[-1], seen.heights[at], titled=False)
        return path, f'<path class="ground" d="{ground}"/>{head}{text}'

    def traveller(self, position: int) -> Traveller | None:
        """Return the gradient that moves at a position; None if none does or it is an array, too long for a pill."""
        assert self.seen.timeline is not None
        now = self.seen.timeline.at(position)
        wire, event = self.seen.wire_of.get(now.edge), now.event
        number = scalar_of(event.contribution) if event else None
        if wire is None or not isinstance(number, float):
            return None
        (left, top), points = self.origin, samples_of(self.seen.routes[wire])[::-1]
        return Traveller(brief(number), [(x + left, y + top) for x, y in points])

    # --- words ---

    def _words(self, now: Moment) -> str:
        """Return the band: a chip with the caption, a formula below, and the progress bar."""
        said = caption(now)
        look = "edge" if now.kind == "seed" else now.kind
        wide = _chip_width(said.chip)
        parts = [
            f'<rect class="ground-{look}" y="-14" width="{short(wide)}" height="19" rx="9.5"/>',
            f'<text class="chip chip-{look}" x="8" y="-0.5">{escape(said.chip)}</text>',
        ]
        y = 0.0
        for k, (kind, runs) in enumerate(_rows(said, now.kind, self.width / self.zoom)):
            y += (_WORDS if kind == "say" else _FORMULA) if k else 0.0
            spans = "".join(f'<tspan class="{look}">{escape(text)}</tspan>' for look, text in runs)
            parts.append(f'<text class="{kind}" x="{0 if k else short(wide + 10)}" y="{short(y)}">{spans}</text>')
        if self.bar:
            parts.append(self._bar(now))
        place = f"translate({MARGIN:g} {short(MARGIN + 14 * self.zoom)})"
        return f'<g transform="{place} scale({self.zoom:g})">{"".join(parts)}</g>'

    def _bar(self, now: Moment) -> str:
        """Return the progress bar: a track in two colours, forward and backward, with a dot at the current moment."""
        timeline, wide = now.timeline, self.width / self.zoom
        long = wide - text_width(f"{timeline.last} / {timeline.last}", 11) - 12
        last, y = max(timeline.last, 1), (self.band - MARGIN) / self.zoom - 16
        split, at = long * timeline.forward / last, long * now.position / last
        return (
            f'<rect class="track back" y="{short(y - 2)}" width="{short(long)}" height="4" rx="2"/>'
            f'<rect class="track" y="{short(y - 2)}" width="{short(split)}" height="4" rx="2"/>'
            f'<circle class="now" cx="{short(at)}" cy="{short(y)}" r="6"/>'
            f'<text class="num count dim" x="{short(wide)}" y="{short(y + 4)}">{now.position} / {timeline.last}</text>'
        )


def stage_of(seen: Scene, positions: Sequence[int], bar: bool) -> Stage:
    """Return the stage of a scene for the moments at `positions`."""
    assert seen.timeline is not None
    width, zoom = max(seen.width, _LEAST), max(1.0, seen.width / SEEN)
    heights = []
    for position in positions:
        now = seen.timeline.at(position)
        kinds = [kind for kind, _ in _rows(caption(now), now.kind, width / zoom)]
        heights.append(_WORDS * kinds.count("say") + _FORMULA * kinds.count("formula"))
    return Stage(
        seen, width, MARGIN + zoom * (max(heights) + (_BAR if bar else 0.0)), zoom, bar, Strokes(seen.timeline.run)
    )


def _chip_width(chip: str) -> float:
    return text_width(chip, 11.5, True) + 16


Run = tuple[str, str]


def _rows(said: Caption, kind: str, width: float) -> list[tuple[str, list[Run]]]:
    """Return the lines of a caption, "say" or "formula", as runs of one colour; the first is shorter by the chip."""
    result = "fw" if kind == "forward" else "bw"
    words = _wrapped([("ink", said.words)], width, 13, width - _chip_width(said.chip) - 10)
    formula = [("ink", said.formula), (result, said.result), ("dim", f"  {said.total}" if said.total else "")]
    return [("say", line) for line in words] + [
        ("formula", line) for line in _wrapped([run for run in formula if run[1].strip()], width, 14, width)
    ]


def _wrapped(runs: Sequence[Run], width: float, size: float, first: float) -> list[list[Run]]:
    """Wrap runs of words to lines of `width`, the first of width `first`."""
    lines: list[list[Run]] = []
    left = 0.0
    for look, text in runs:
        for word in text.split(" "):
            wide = 0.94 * text_width(f"{word} ", size)  # widths are overestimates
            if not lines or (wide > left and lines[-1]):
                left = width if lines else first
                lines.append([])
            left -= wide
            if lines[-1] and lines[-1][-1][0] == look:
                lines[-1][-1] = (look, f"{lines[-1][-1][1]} {word}")
            else:
                lines[-1].append((look, f" {word}" if lines[-1] else word))
    return [line for line in lines if any(text.strip() for _, text in line)]
