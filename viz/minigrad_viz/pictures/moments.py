"""Drawings of a moment, with the values computed so far, the active node and edges, and a caption.

The drawing matches the player at that position (`frontend/src/drawing/appearance.js`): the active node glows, active
edges are highlighted, and a pill shows the factors of the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from minigrad_viz.pictures import boxes, heat, strokes
from minigrad_viz.pictures.boxes import Frame
from minigrad_viz.pictures.curves import Point, arrowhead_path, curve_path, format_coordinate, sample_curve
from minigrad_viz.pictures.overlay import FULL_SIZE_WIDTH, OVERLAY_MARGIN, active_at, draw_glow, wire_glow
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import Scene, build_scene
from minigrad_viz.pictures.strokes import Strokes
from minigrad_viz.pictures.svg import MARGIN, Picture, document, edge_path, has_gradient_flow, label_svg, render_svg
from minigrad_viz.trace import Trace
from minigrad_viz.trace.captions import Caption, caption_of, scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import escape, format_brief, text_width

__all__ = ["MovingGradient", "Stage", "make_stage", "render_moment"]

_MIN_WIDTH = 480.0  # minimum width of the drawing and its caption, in pixels
_WORDS_HEIGHT, _FORMULA_HEIGHT = 19.0, 21.0  # line heights of words and of formulas, in pixels
_BAR_HEIGHT = 22.0  # height of the progress bar, in pixels
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


def render_moment(
    trace: Trace,
    open_blocks: Collection[int] | None = None,
    moment: Moment | None = None,
    theme: Theme | None = None,
    css: str = "",
) -> Picture:
    """Return the drawing of a trace, in the final state or at a moment. Other arguments are as in `svg.render_svg`."""
    if moment is None:
        return render_svg(trace, open_blocks, theme, css)
    stage = make_stage(build_scene(trace, open_blocks, moment.timeline), [moment.position], has_progress_bar=False)
    description = " ".join(filter(None, caption_of(moment)))
    return stage.document("".join(stage.pieces(moment.position)), theme, css, description=description)


@dataclass(frozen=True, slots=True)
class MovingGradient:
    """A gradient that moves backwards along an edge, with the label of its pill and the points of its path."""

    text: str
    points: list[Point]


# --- the drawing -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stage:
    """A scene below a band with the caption. The height of the band is the same for every moment."""

    scene: Scene
    width: float
    band_height: float
    zoom: float
    """The scale of the band's fonts relative to those of the scene."""
    has_progress_bar: bool
    """Whether the band contains a progress bar."""
    strokes: Strokes
    """The strokes of the edges over which a gradient has flowed back."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in pixels."""
        return math.ceil(self.width + 2 * MARGIN), math.ceil(self.band_height + self.scene.height + 2 * OVERLAY_MARGIN)

    @property
    def origin(self) -> Point:
        """The origin of the scene, which is centred horizontally."""
        return MARGIN + (self.width - self.scene.width) / 2, self.band_height + OVERLAY_MARGIN

    def document(
        self,
        content: str,
        theme: Theme | None,
        extra_css: str = "",
        display_size: tuple[int, int] | None = None,
        view_size: tuple[float, float] | None = None,
        description: str = "",
    ) -> Picture:
        """Return the SVG document that contains `content`.

        `extra_css` is additional CSS, `display_size` the displayed size, `view_size` the size of the view box, and
        `description` the text alternative.
        """
        trace = self.scene.trace
        shapes, colours = (
            boxes.SHAPES + heat.SHAPES + _SHAPES,
            boxes.COLOURS + heat.COLOURS + _COLOURS + strokes.COLOURS,
        )
        css = stylesheet(shapes, colours, theme) + extra_css
        return document(trace, content, view_size or self.size, css, description or trace.sentence(), display_size)

    def pieces(self, position: int) -> list[str]:
        """Return the SVG pieces of the moment at a position, from back to front.

        Every position has the same number of pieces, and corresponding pieces show the same objects.
        """
        assert self.scene.timeline is not None
        scene, moment = self.scene, self.scene.timeline.at(position)
        active = active_at(scene, moment)
        parts = [scene.part_at(at, moment) for at in range(len(scene.items))]
        boxed_parts = list(zip(parts, scene.boxes, strict=True))
        frames = [part.draw(*box) for part, box in boxed_parts if isinstance(part, Frame)]
        cards = [part.draw(box.x, box.y) for part, box in boxed_parts if not isinstance(part, Frame)]
        wires = [self._draw_wire(at, moment) for at in range(len(scene.wires))]
        lines, labels = [line for line, _ in wires], [label for _, label in wires]
        overlay_pieces = [wire_glow(scene, active), *labels, *cards, draw_glow(scene, parts, active)]
        return [*(self._translate(piece) for piece in (*frames, *lines, *overlay_pieces)), self._draw_band(moment)]

    def _translate(self, piece: str) -> str:
        x, y = self.origin
        return f'<g transform="translate({x:g} {y:g})">{piece}</g>' if piece else ""

    def _draw_wire(self, index: int, moment: Moment) -> tuple[str, str]:
        """Return the SVG of a wire's path, and the SVG of its arrowhead and label."""
        scene, wire, route = self.scene, self.scene.wires[index], self.scene.routes[index]
        classes = ("" if has_gradient_flow(scene.trace, wire) else "none", "many" if len(wire.edges) > 1 else "")
        state = scene.wire_state(wire, moment)
        stroke = self.strokes.of(wire.edges) if state == "done" else None
        is_backward = state == "done" or moment.edge in wire.edges
        path = edge_path(curve_path(route, is_backward), " ".join(filter(None, [*classes, state])), stroke)
        tip_class = " ".join(filter(None, ("tip", state, stroke and stroke.sign)))
        arrowhead = (
            f'<path class="{tip_class}" '
            f'd="{arrowhead_path(route[0], -1, 1.2) if is_backward else arrowhead_path(route[-1])}"/>'
        )
        if not (label := scene.label_at(index, moment)):
            return path, arrowhead
        background, text = label_svg(
            scene.trace, wire.edges[0], label, route[-1], scene.heights[index], with_title=False
        )
        return path, f'<path class="ground" d="{background}"/>{arrowhead}{text}'

    def moving_gradient(self, position: int) -> MovingGradient | None:
        """Return the moving gradient at a position, or None if there is none or it is an array, too long for a pill."""
        assert self.scene.timeline is not None
        moment = self.scene.timeline.at(position)
        wire, event = self.scene.wire_of.get(moment.edge), moment.event
        contribution = scalar_of(event.contribution) if event else None
        if wire is None or not isinstance(contribution, float):
            return None
        (left, top), points = self.origin, sample_curve(self.scene.routes[wire])[::-1]
        return MovingGradient(format_brief(contribution), [(x + left, y + top) for x, y in points])

    # --- caption ---

    def _draw_band(self, moment: Moment) -> str:
        """Return the SVG of the band, with the caption, a formula below it, and the progress bar."""
        caption = caption_of(moment)
        chip_kind = "edge" if moment.kind == "seed" else moment.kind
        chip_width = _chip_width(caption.chip)
        parts = [
            f'<rect class="ground-{chip_kind}" y="-14" width="{format_coordinate(chip_width)}" height="19" rx="9.5"/>',
            f'<text class="chip chip-{chip_kind}" x="8" y="-0.5">{escape(caption.chip)}</text>',
        ]
        y = 0.0
        for k, (kind, runs) in enumerate(_caption_lines(caption, moment.kind, self.width / self.zoom)):
            y += (_WORDS_HEIGHT if kind == "say" else _FORMULA_HEIGHT) if k else 0.0
            spans = "".join(f'<tspan class="{look}">{escape(text)}</tspan>' for look, text in runs)
            parts.append(
                f'<text class="{kind}" x="{0 if k else format_coordinate(chip_width + 10)}" '
                f'y="{format_coordinate(y)}">{spans}</text>'
            )
        if self.has_progress_bar:
            parts.append(self._draw_bar(moment))
        transform = f"translate({MARGIN:g} {format_coordinate(MARGIN + 14 * self.zoom)})"
        return f'<g transform="{transform} scale({self.zoom:g})">{"".join(parts)}</g>'

    def _draw_bar(self, moment: Moment) -> str:
        """Return the SVG of the progress bar, in one colour each for forward and backward, with a dot at the moment."""
        timeline, width = moment.timeline, self.width / self.zoom
        track_length = width - text_width(f"{timeline.last} / {timeline.last}", 11) - 12
        step_count, y = max(timeline.last, 1), (self.band_height - MARGIN) / self.zoom - 16
        forward_length, dot_x = (
            track_length * timeline.forward / step_count,
            track_length * moment.position / step_count,
        )
        return (
            f'<rect class="track back" y="{format_coordinate(y - 2)}" width="{format_coordinate(track_length)}" '
            'height="4" rx="2"/>'
            f'<rect class="track" y="{format_coordinate(y - 2)}" width="{format_coordinate(forward_length)}" '
            'height="4" rx="2"/>'
            f'<circle class="now" cx="{format_coordinate(dot_x)}" cy="{format_coordinate(y)}" r="6"/>'
            f'<text class="num count dim" x="{format_coordinate(width)}" '
            f'y="{format_coordinate(y + 4)}">{moment.position} / {timeline.last}</text>'
        )


def make_stage(scene: Scene, positions: Sequence[int], has_progress_bar: bool) -> Stage:
    """Create the stage of a scene, whose band is high enough for the moments at `positions`."""
    assert scene.timeline is not None
    width, zoom = max(scene.width, _MIN_WIDTH), max(1.0, scene.width / FULL_SIZE_WIDTH)
    heights = []
    for position in positions:
        moment = scene.timeline.at(position)
        kinds = [kind for kind, _ in _caption_lines(caption_of(moment), moment.kind, width / zoom)]
        heights.append(_WORDS_HEIGHT * kinds.count("say") + _FORMULA_HEIGHT * kinds.count("formula"))
    return Stage(
        scene,
        width,
        MARGIN + zoom * (max(heights) + (_BAR_HEIGHT if has_progress_bar else 0.0)),
        zoom,
        has_progress_bar,
        Strokes(scene.timeline.backward_pass),
    )


def _chip_width(chip: str) -> float:
    return text_width(chip, 11.5, True) + 16


Run = tuple[str, str]


def _caption_lines(caption: Caption, kind: str, width: float) -> list[tuple[str, list[Run]]]:
    """Return the kind ("say" or "formula") and the runs of each line. The first line is shorter because of the chip."""
    result = "fw" if kind == "forward" else "bw"
    words = _wrap_runs([("ink", caption.words)], width, 13, width - _chip_width(caption.chip) - 10)
    formula = [
        ("ink", caption.formula),
        (result, caption.result),
        ("dim", f"  {caption.total}" if caption.total else ""),
    ]
    return [("say", line) for line in words] + [
        ("formula", line) for line in _wrap_runs([run for run in formula if run[1].strip()], width, 14, width)
    ]


def _wrap_runs(runs: Sequence[Run], width: float, size: float, first_width: float) -> list[list[Run]]:
    """Wrap runs of words to lines of width `width`, except the first line, which has width `first_width`."""
    lines: list[list[Run]] = []
    remaining = 0.0
    for css_class, text in runs:
        for word in text.split(" "):
            word_width = 0.94 * text_width(f"{word} ", size)  # widths are overestimates
            if not lines or (word_width > remaining and lines[-1]):
                remaining = width if lines else first_width
                lines.append([])
            remaining -= word_width
            if lines[-1] and lines[-1][-1][0] == css_class:
                lines[-1][-1] = (css_class, f"{lines[-1][-1][1]} {word}")
            else:
                lines[-1].append((css_class, f" {word}" if lines[-1] else word))
    return [line for line in lines if any(text.strip() for _, text in line)]
