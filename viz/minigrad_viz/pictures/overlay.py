"""The overlay of a moment, with glows around the active node and edges, and a pill with the label of the active edge.

The player draws the same overlay: `frontend/src/drawing/overlay.js`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.boxes import Frame
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.curves import (
    ARROWHEAD_LENGTH,
    Point,
    arrowhead_path,
    curve_path,
    format_coordinate,
    midpoint,
)
from minigrad_viz.pictures.scene import Box, Part, Scene
from minigrad_viz.pictures.svg import MARGIN
from minigrad_viz.trace.captions import edge_label, scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import escape, text_width

__all__ = [
    "FULL_SIZE_WIDTH",
    "OVERLAY_MARGIN",
    "Active",
    "active_at",
    "corner_radius",
    "draw_glow",
    "draw_pill",
    "pill_scale_for",
    "pill_width",
    "wire_glow",
]

OVERLAY_MARGIN = MARGIN + 8
"""Margin above and below the boxes, in pixels, with space for a pill."""

_MAX_PILL_SCALE = 1.6  # maximum scale of a pill; larger pills would hide too much
FULL_SIZE_WIDTH = 1100.0  # width, in pixels, above which a drawing is scaled down and its pills are enlarged
_MAX_DX, _MAX_DY = 170.0, 120.0  # maximum offset of a pill from its wire, in pixels
_DY_CANDIDATES = (0, -14, 14, -26, 26, -44, 44, -64, 64, -90, 90, -_MAX_DY, _MAX_DY)
_PILL_OFFSETS = [(dx, dy) for dy in _DY_CANDIDATES for dx in (0, -36, 36, -90, 90, -_MAX_DX, _MAX_DX)]


@dataclass(frozen=True, slots=True)
class Active:
    """The active item and wires of a moment, and the position of the active edge's pill."""

    direction: str
    """ "forward" or "backward"."""
    item: int
    wires: list[int]
    label: str = ""
    pill_center: Point = (0.0, 0.0)
    """The centre of the pill."""
    edge_midpoint: Point = (0.0, 0.0)
    """The midpoint of the active edge."""
    pill_scale: float = 1.0
    """The scale of the pill."""
    css_class: str = ""
    """The CSS classes: the direction, and "less" if the gradient of the edge is negative."""


def active_at(scene: Scene, moment: Moment) -> Active | None:
    """Return the active item and wires at a moment, or None at the start."""
    if moment.node < 0:
        return None
    item = scene.item_of(moment.node)
    if moment.kind == "forward":
        incoming = scene.trace.into[moment.node]
        wires = [scene.wire_of[edge] for edge in incoming if edge in scene.wire_of]
        return Active("forward", item, list(dict.fromkeys(wires)), css_class="forward")
    if moment.kind == "seed":
        return Active("backward", item, [], css_class="backward")
    wire, box = scene.wire_of.get(moment.edge), scene.boxes[item]
    edge_midpoint = (box.x + box.width / 2, box.y + box.height + 8) if wire is None else midpoint(scene.routes[wire])
    label, pill_scale = edge_label(moment), pill_scale_for(scene)
    center = _place_pill(scene, moment, edge_midpoint, pill_scale * pill_width(label), pill_scale * 20.0)
    contribution = scalar_of(moment.event.contribution) if moment.event else None
    css_class = "backward less" if isinstance(contribution, float) and contribution < 0 else "backward"
    return Active("backward", item, [] if wire is None else [wire], label, center, edge_midpoint, pill_scale, css_class)


def pill_scale_for(scene: Scene) -> float:
    """Return the scale at which pills are legible when the entire drawing is scaled down to the page."""
    return min(_MAX_PILL_SCALE, max(1.0, scene.width / FULL_SIZE_WIDTH))


def pill_width(label: str) -> float:
    """Return the width of a pill, in pixels."""
    return text_width(label, 12, True) * 0.93 + 14


def _place_pill(scene: Scene, moment: Moment, midpoint: Point, width: float, height: float) -> Point:
    """Return the centre of a pill, near the `midpoint` of its edge, at which it hides as little as possible."""
    (x, y), half_width = midpoint, width / 2 + 4
    wire = scene.wire_of.get(moment.edge)
    end_boxes = [scene.boxes[scene.item_of(node)] for node in (moment.node, scene.trace.result[moment.edge])]
    search_box = Box(x - _MAX_DX - half_width, y - _MAX_DY - 12, 2 * (_MAX_DX + half_width), 2 * (_MAX_DY + 12))
    obstacles = [obstacle for obstacle in _obstacles(scene, wire) if _overlap_area(obstacle, search_box) > 0]
    best, lowest_cost = midpoint, math.inf
    for dx, dy in _PILL_OFFSETS:
        cx = max(half_width - MARGIN, min(scene.width + MARGIN - half_width, x + dx))
        cy = max(height / 2 - OVERLAY_MARGIN, min(scene.height + OVERLAY_MARGIN - height / 2, y + dy))
        pill_box = Box(cx - half_width, cy - height / 2, 2 * half_width, height)
        cost = math.hypot(dx, dy)
        for one in obstacles:
            is_end = one in end_boxes  # The label refers to the values in these boxes.
            cost += (4 if is_end else 1) * _overlap_area(_inflate(one, 2), pill_box)
            # A pill near another box seems to belong to that box.
            cost += 0 if is_end else _overlap_area(_inflate(one, 12), pill_box) / 8
            if cost >= lowest_cost:
                break
        if cost < lowest_cost:
            best, lowest_cost = (cx, cy), cost
    return best


def _obstacles(scene: Scene, wire: int | None) -> list[Box]:
    """Return the boxes that a pill should not cover: items, titles of frames, and all labels except that of `wire`."""
    boxes = [
        box._replace(height=22.0) if isinstance(part, Frame) else box
        for part, box in zip(scene.parts, scene.boxes, strict=True)
    ]
    for index, label in enumerate(scene.labels):
        if label and index != wire:
            width, (x, _) = text_width(label, 11), scene.routes[index][-1]
            boxes.append(Box(x - ARROWHEAD_LENGTH - 6 - width, scene.heights[index] - 5, width, 10))
    return boxes


def _inflate(box: Box, margin: float) -> Box:
    return Box(box.x - margin, box.y - margin, box.width + 2 * margin, box.height + 2 * margin)


def _overlap_area(first: Box, second: Box) -> float:
    width = min(first.x + first.width, second.x + second.width) - max(first.x, second.x)
    height = min(first.y + first.height, second.y + second.height) - max(first.y, second.y)
    return width * height if width > 0 and height > 0 else 0.0


# --- SVG -------------------------------------------------------------------------------------------------------------


def wire_glow(scene: Scene, active: Active | None) -> str:
    """Return the SVG of the glow along the active wires."""
    if active is None or not active.wires:
        return ""
    path = "".join(curve_path(scene.routes[at], active.direction == "backward") for at in active.wires)
    return f'<path class="flow {active.css_class}" d="{path}"/>'


def corner_radius(part: Part) -> float:
    """Return the radius of the corners of an item's border."""
    if not isinstance(part, Card):
        return 5.0
    kind = part.kind.split()[0]
    return {"constant": 13.0, "leaf": 12.0}.get(kind, 4.0)


def draw_glow(scene: Scene, parts: Sequence[Part], active: Active | None) -> str:
    """Return the SVG of the glow around the active item, of the gradient's arrowhead, and of the pill."""
    if active is None:
        return ""
    box, radius = scene.boxes[active.item], corner_radius(parts[active.item])
    elements = [_ring("halo", active.css_class, box, radius, 5), _ring("core", active.css_class, box, radius, 2)]
    for wire in active.wires if active.direction == "backward" else ():
        x, y = scene.routes[wire][0]
        elements.append(
            f'<path class="point{" less" if "less" in active.css_class else ""}" '
            f'd="{arrowhead_path((x + 1, y), -1, 1.6)}"/>'
        )
    if active.label:
        elements += [
            _leader_line(active),
            draw_pill(active.label, active.pill_center, active.pill_scale, "less" in active.css_class),
        ]
    return "".join(elements)


def _ring(css_class: str, direction: str, box: Box, radius: float, offset: float) -> str:
    sides = (
        f'width="{format_coordinate(box.width + 2 * offset)}" height="{format_coordinate(box.height + 2 * offset)}" '
        f'rx="{radius + offset:g}"'
    )
    return (
        f'<rect class="{css_class} {direction}" x="{format_coordinate(box.x - offset)}" '
        f'y="{format_coordinate(box.y - offset)}" {sides}/>'
    )


def _leader_line(active: Active) -> str:
    """Return the SVG of the line from a wire to its pill; "" if the pill is on the wire."""
    (x, y), (to_x, to_y) = active.edge_midpoint, active.pill_center
    if not active.wires or abs(y - to_y) < 18 * active.pill_scale:
        return ""
    end = to_y + math.copysign(10.0 * active.pill_scale, y - to_y)
    css_class = "leader less" if "less" in active.css_class else "leader"
    return (
        f'<path class="{css_class}" d="M{format_coordinate(x)} '
        f'{format_coordinate(y)}L{format_coordinate(x + (to_x - x) * 0.3)} {format_coordinate(end)}"/>'
    )


def draw_pill(label: str, center: Point, scale: float = 1.0, is_negative: bool = False) -> str:
    """Return the SVG of a pill with a label, centred at `center`, with another colour if `is_negative`."""
    width = pill_width(label)
    zoom = "" if scale == 1 else f" scale({scale:.3g})"
    css_class = "pill less" if is_negative else "pill"
    return (
        f'<g transform="translate({format_coordinate(center[0])} {format_coordinate(center[1])}){zoom}">'
        f'<rect class="{css_class}" x="{format_coordinate(-width / 2)}" y="-10" width="{format_coordinate(width)}" '
        f'height="20" rx="10"/><text class="words" x="0" y="4.3">{escape(label)}</text></g>'
    )
