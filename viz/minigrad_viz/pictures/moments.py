"""The picture of a moment: every number as far as it is known, what is active, and above it the words about it.

It looks as the player does at that position (`frontend/src/drawing/looks.js`): the item that changes glows,
what goes over an edge is marked on it, and on a pill stand the factors of the chain rule.
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

_LEAST = 480.0  # pixels: words need some width
_WORDS, _FORMULA = 19.0, 21.0  # the heights of a line of words, and of one of a formula
_BAR = 22.0  # the height of the line that shows how far it is
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
    """The picture of a trace, or of a moment of it; the arguments are those of `svg.picture`."""
    if now is None:
        return picture(trace, opened, theme, more)
    stage = stage_of(scene(trace, opened, now.timeline), [now.position], bar=False)
    said = " ".join(filter(None, caption(now)))
    return stage.document("".join(stage.pieces(now.position)), theme, more, said=said)


@dataclass(frozen=True, slots=True)
class Traveller:
    """The gradient that goes back over an edge: what stands on its pill, and the points that it passes."""

    text: str
    points: list[Point]


# --- the drawing -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stage:
    """A scene with a band of words above it, which is as high as any of its moments needs; all have one size."""

    seen: Scene
    width: float
    band: float
    zoom: float
    """How many times as large the words of the band are as those in the scene."""
    bar: bool
    """Whether a line in the band shows how far it is."""
    strokes: Strokes
    """How edges are drawn that a gradient has gone back over."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return math.ceil(self.width + 2 * MARGIN), math.ceil(self.band + self.seen.height + 2 * AROUND)

    @property
    def origin(self) -> Point:
        """Where the scene begins: it is in the middle of the width."""
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
        """The document around pieces. `more` is CSS, `shown` another size to be shown at, `box` one to be cut to, and
        `said` what a screen reader says of it."""
        trace = self.seen.trace
        shapes, colours = (
            boxes.SHAPES + heat.SHAPES + _SHAPES,
            boxes.COLOURS + heat.COLOURS + _COLOURS + strokes.COLOURS,
        )
        css = stylesheet(shapes, colours, theme) + more
        return document(trace, inside, box or self.size, css, said or trace.sentence(), shown)

    def pieces(self, position: int) -> list[str]:
        """SVG of all that is seen at a position, from back to front: always as many, and of the same things."""
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
        """The line of a wire; its tip with its label."""
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
        """What travels at a position, and where; None if nothing does: of an array nobody could read the numbers."""
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
        """The band: a chip with words, a formula below, and how far it is."""
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
        """A line in two colours, for forward and backward, with a dot where the moment is."""
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
    """The stage of a scene for some of its moments."""
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
    """The lines of a caption, "say" or "formula", as runs of one colour; the first has room for the chip."""
    result = "fw" if kind == "forward" else "bw"
    words = _wrapped([("ink", said.words)], width, 13, width - _chip_width(said.chip) - 10)
    formula = [("ink", said.formula), (result, said.result), ("dim", f"  {said.total}" if said.total else "")]
    return [("say", line) for line in words] + [
        ("formula", line) for line in _wrapped([run for run in formula if run[1].strip()], width, 14, width)
    ]


def _wrapped(runs: Sequence[Run], width: float, size: float, first: float) -> list[list[Run]]:
    """Runs of words in lines that fit in `width`, and the first in `first`."""
    lines: list[list[Run]] = []
    left = 0.0
    for look, text in runs:
        for word in text.split(" "):
            wide = 0.94 * text_width(f"{word} ", size)  # which is more than most need
            if not lines or (wide > left and lines[-1]):
                left = width if lines else first
                lines.append([])
            left -= wide
            if lines[-1] and lines[-1][-1][0] == look:
                lines[-1][-1] = (look, f"{lines[-1][-1][1]} {word}")
            else:
                lines[-1].append((look, f" {word}" if lines[-1] else word))
    return [line for line in lines if any(text.strip() for _, text in line)]
