"""The overlay of a moment: glows around the active node and edges, and a pill with the label of the active edge.

The player draws the same overlay: `frontend/src/drawing/overlay.js`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.boxes import Frame
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.curves import TIP, Point, curve, middle_of, short, tip
from minigrad_viz.pictures.scene import Box, Part, Scene
from minigrad_viz.pictures.svg import MARGIN
from minigrad_viz.trace.captions import on_edge, scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import escape, text_width

__all__ = ["AROUND", "SEEN", "Active", "active_at", "corner_of", "glow", "large_in", "pill", "pill_width", "wire_glow"]

AROUND = MARGIN + 8
"""Margin above and below the boxes, in pixels, with room for a pill."""

_LARGEST = 1.6  # maximum scale of a pill; larger ones would hide too much
SEEN = 1100.0  # pixels; wider drawings are displayed smaller, so their pills are larger
_ACROSS, _DOWN = 170.0, 120.0  # maximum offset of a pill from its wire; nearer is better
_DOWNS = (0, -14, 14, -26, 26, -44, 44, -64, 64, -90, 90, -_DOWN, _DOWN)
_BESIDE = [(dx, dy) for dy in _DOWNS for dx in (0, -36, 36, -90, 90, -_ACROSS, _ACROSS)]


@dataclass(frozen=True, slots=True)
class Active:
    """The active item and wires of a moment, and the pill of the active edge."""

    way: str
    """ "forward" or "backward"."""
    at: int
    wires: list[int]
    words: str = ""
    place: Point = (0.0, 0.0)
    """The centre of the pill."""
    middle: Point = (0.0, 0.0)
    """The midpoint of the edge that the pill labels."""
    large: float = 1.0
    """The scale of the pill."""
    look: str = ""
    """CSS classes: the direction, and "less" if the gradient on the edge is negative."""


def active_at(seen: Scene, now: Moment) -> Active | None:
    """Return what is active at a moment; None at the start."""
    if now.node < 0:
        return None
    at = seen.item_of(now.node)
    if now.kind == "forward":
        into = seen.trace.into[now.node]
        wires = [seen.wire_of[edge] for edge in into if edge in seen.wire_of]
        return Active("forward", at, list(dict.fromkeys(wires)), look="forward")
    if now.kind == "seed":
        return Active("backward", at, [], look="backward")
    wire, box = seen.wire_of.get(now.edge), seen.boxes[at]
    middle = (box.x + box.width / 2, box.y + box.height + 8) if wire is None else middle_of(seen.routes[wire])
    words, large = on_edge(now), large_in(seen)
    place = _beside(seen, now, middle, large * pill_width(words), large * 20.0)
    number = scalar_of(now.event.contribution) if now.event else None
    look = "backward less" if isinstance(number, float) and number < 0 else "backward"
    return Active("backward", at, [] if wire is None else [wire], words, place, middle, large, look)


def large_in(seen: Scene) -> float:
    """Return the scale of pills that keeps them legible when the entire drawing is scaled to fit."""
    return min(_LARGEST, max(1.0, seen.width / SEEN))


def pill_width(words: str) -> float:
    """Return the width of a pill, in pixels."""
    return text_width(words, 12, True) * 0.93 + 14


def _beside(seen: Scene, now: Moment, middle: Point, wide: float, high: float) -> Point:
    """Return the centre of a pill: the midpoint of its edge, or the nearest position that hides least."""
    (x, y), half = middle, wide / 2 + 4
    own = seen.wire_of.get(now.edge)
    ends = [seen.boxes[seen.item_of(node)] for node in (now.node, seen.trace.result[now.edge])]
    around = Box(x - _ACROSS - half, y - _DOWN - 12, 2 * (_ACROSS + half), 2 * (_DOWN + 12))
    near = [one for one in _covered(seen, own) if _overlap(one, around) > 0]
    best, least = middle, math.inf
    for dx, dy in _BESIDE:
        cx = max(half - MARGIN, min(seen.width + MARGIN - half, x + dx))
        cy = max(high / 2 - AROUND, min(seen.height + AROUND - high / 2, y + dy))
        words = Box(cx - half, cy - high / 2, 2 * half, high)
        hidden = math.hypot(dx, dy)
        for one in near:
            end = one in ends  # the pill is about their values
            hidden += (4 if end else 1) * _overlap(_grown(one, 2), words)
            hidden += 0 if end else _overlap(_grown(one, 12), words) / 8  # near another box it seems to belong to that
            if hidden >= least:
                break
        if hidden < least:
            best, least = (cx, cy), hidden
    return best


def _covered(seen: Scene, own: int | None) -> list[Box]:
    """Return the boxes to avoid: items, titles of frames, and labels except that of wire `own`."""
    found = [
        box._replace(height=22.0) if isinstance(part, Frame) else box
        for part, box in zip(seen.parts, seen.boxes, strict=True)
    ]
    for at, label in enumerate(seen.labels):
        if label and at != own:
            wide, (x, _) = text_width(label, 11), seen.routes[at][-1]
            found.append(Box(x - TIP - 6 - wide, seen.heights[at] - 5, wide, 10))
    return found


def _grown(box: Box, by: float) -> Box:
    return Box(box.x - by, box.y - by, box.width + 2 * by, box.height + 2 * by)


def _overlap(one: Box, other: Box) -> float:
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across * down if across > 0 and down > 0 else 0.0


# --- how it is drawn -------------------------------------------------------------------------------------------------


def wire_glow(seen: Scene, active: Active | None) -> str:
    """Return the glow along the active wires."""
    if active is None or not active.wires:
        return ""
    data = "".join(curve(seen.routes[at], active.way == "backward") for at in active.wires)
    return f'<path class="flow {active.look}" d="{data}"/>'


def corner_of(part: Part) -> float:
    """Return the corner radius of a part's border."""
    if not isinstance(part, Card):
        return 5.0
    kind = part.kind.split()[0]
    return {"constant": 13.0, "leaf": 12.0}.get(kind, 4.0)


def glow(seen: Scene, parts: Sequence[Part], active: Active | None) -> str:
    """Return the glow around the active item, the arrowhead of the gradient, and the pill."""
    if active is None:
        return ""
    box, corner = seen.boxes[active.at], corner_of(parts[active.at])
    out = [_ring("halo", active.look, box, corner, 5), _ring("core", active.look, box, corner, 2)]
    for at in active.wires if active.way == "backward" else ():
        x, y = seen.routes[at][0]
        out.append(f'<path class="point{" less" if "less" in active.look else ""}" d="{tip((x + 1, y), -1, 1.6)}"/>')
    if active.words:
        out += [_leader(active), pill(active.words, active.place, active.large, "less" in active.look)]
    return "".join(out)


def _ring(look: str, way: str, box: Box, corner: float, out: float) -> str:
    sides = f'width="{short(box.width + 2 * out)}" height="{short(box.height + 2 * out)}" rx="{corner + out:g}"'
    return f'<rect class="{look} {way}" x="{short(box.x - out)}" y="{short(box.y - out)}" {sides}/>'


def _leader(active: Active) -> str:
    """Return the leader line from a wire to its pill; "" if the pill is on the wire."""
    (x, y), (to_x, to_y) = active.middle, active.place
    if not active.wires or abs(y - to_y) < 18 * active.large:
        return ""
    end = to_y + math.copysign(10.0 * active.large, y - to_y)
    look = "leader less" if "less" in active.look else "leader"
    return f'<path class="{look}" d="M{short(x)} {short(y)}L{short(x + (to_x - x) * 0.3)} {short(end)}"/>'


def pill(words: str, place: Point, large: float = 1.0, less: bool = False) -> str:
    """Return a pill with a label, centred at `place`; `less` marks a negative gradient."""
    wide = pill_width(words)
    zoom = "" if large == 1 else f" scale({large:.3g})"
    look = "pill less" if less else "pill"
    return (
        f'<g transform="translate({short(place[0])} {short(place[1])}){zoom}">'
        f'<rect class="{look}" x="{short(-wide / 2)}" y="-10" width="{short(wide)}" height="20" rx="10"/>'
        f'<text class="words" x="0" y="4.3">{escape(words)}</text></g>'
    )
