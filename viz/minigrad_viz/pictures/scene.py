"""Scenes: the visible items of a graph with their sizes and layout, from which all formats are rendered.

In a graph of more than `FULL` nodes, or with scopes, blocks are closed to limit the number of visible items. A scene
with a timeline can also show its moments: each card is large enough for its values at every moment, so that nothing
shifts between moments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from minigrad_viz.layout import Ports, layout
from minigrad_viz.layout.nesting import nest
from minigrad_viz.pictures.boxes import Mention, Stack, stacks
from minigrad_viz.pictures.cards import Card, card
from minigrad_viz.pictures.curves import TIP, Point, height_at
from minigrad_viz.pictures.quantities import pictured
from minigrad_viz.pictures.rows import PAGE, Part, Row, in_rows
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Moment, Timeline
from minigrad_viz.trace.modules import begin_open
from minigrad_viz.trace.notation import brief, text_width
from minigrad_viz.trace.visible import Item, Wire, visible

__all__ = ["WIDE", "Box", "Overrides", "Part", "Scene", "scene"]

WIDE = 3000  # pixels; a wider drawing is only an overview

_HIGH = 1500  # maximum height of a drawing in rows, in pixels, while blocks can be closed
_BETWEEN = 22.0  # gap between rows
_BUDGETS = (40, 25, 15, 8)  # numbers of visible items to try in a graph with blocks, until the drawing is legible
_LABELLED = 60  # maximum items for which labels include (short) formulas of local derivatives
_NEAR = 15.0  # maximum vertical distance of a label from the end of its edge
_PITCH = 13.5  # vertical distance of labels, including descenders and background


class Box(NamedTuple):
    """A rectangle: left, top, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Scene:
    """Items and wires with their layout: a part and a box for each item, a route and a label for each wire.

    `special` is whether there is anything except plain scalar cards. `heights` are the y of the labels.
    """

    trace: Trace
    timeline: Timeline | None
    items: list[Item]
    wires: list[Wire]
    opened: set[int]
    parts: list[Part]
    special: bool
    labels: list[str]
    boxes: list[Box] = field(default_factory=list)
    routes: list[list[Point]] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    @cached_property
    def counts(self) -> list[int]:
        """For each node, the number of contributions to its gradient."""
        return self.trace.contributions()

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int]]:
        """The items of nodes and the items of closed blocks."""
        nodes = {item.node: at for at, item in enumerate(self.items) if item.node >= 0}
        blocks = {item.block: at for at, item in enumerate(self.items) if item.block >= 0 and not item.framed}
        return nodes, blocks

    def item_of(self, node: int) -> int:
        """Return the item of a node, or of the closed block that contains it."""
        nodes, blocks = self._places
        if node in nodes:
            return nodes[node]
        k = self.trace.block[node]
        while k not in blocks:
            k = self.trace.blocks[k].outer
        return blocks[k]

    @cached_property
    def wire_of(self) -> dict[int, int]:
        """The wire of each edge that is not inside a closed block."""
        return {edge: at for at, wire in enumerate(self.wires) for edge in wire.edges}

    # --- at a moment ---

    @cached_property
    def _drawn(self) -> dict[tuple[int, bool, int, str], Card]:
        return {}

    def part_at(self, at: int, now: Moment) -> Part:
        """Return the part of item `at` at a moment."""
        item, part = self.items[at], self.parts[at]
        if isinstance(part, Stack):
            return replace(part, progress=self._progress(item.block, now.position))
        if not isinstance(part, Card):
            return part
        gradient = now.gradient(item.node)
        key = item.node, now.is_computed(item.node), gradient.met, gradient.state
        if key not in self._drawn:
            self._drawn[key] = card(self.trace, item.node, self.counts[item.node], now)
        return self._drawn[key]

    @cached_property
    def _deadlines(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each closed block, the sorted positions at which operations are computed and gradients complete."""
        trace = self.trace
        found: dict[int, tuple[list[int], list[int]]] = {block: ([], []) for block in self._places[1]}
        assert self.timeline is not None
        timeline, never = self.timeline, self.timeline.last + 1
        for node, kind in enumerate(trace.kinds):
            k = trace.block[node]
            while k >= 0:
                if k in found:
                    if kind == "o":
                        found[k][0].append(timeline.computed[node])
                    if kind in "lo" and trace.states[node] != "b":
                        arrivals = [timeline.seed] if node == timeline.root else timeline.arrivals.get(node, [never])
                        found[k][1].append(arrivals[-1])
                k = trace.blocks[k].outer
        return {block: (sorted(forward), sorted(backward)) for block, (forward, backward) in found.items()}

    def _progress(self, block: int, position: int) -> tuple[float, float]:
        """Return the computed fraction of a closed block's operations, and the complete fraction of its gradients."""
        forward, backward = (
            (bisect_right(when, position) / len(when) if when else 1.0) for when in self._deadlines[block]
        )
        return forward, backward

    def time_of(self, wire: Wire, now: Moment) -> Literal["done", "future", ""]:
        """Return "done" if a gradient has flowed back over a wire, "future" if its result is not computed yet."""
        states = {now.edge_state(edge) for edge in wire.edges}
        if "done" in states:
            return "done"
        begun = "active" in states or any(now.is_computed(self.trace.result[edge]) for edge in wire.edges)
        return "" if begun else "future"

    def label_at(self, at: int, now: Moment) -> str:
        """Return the label of wire `at`; "" before its result is computed, and while a pill labels it."""
        told = self.time_of(self.wires[at], now) == "future" or now.edge == self.wires[at].edges[0]
        return "" if told else self.labels[at]


class Overrides(NamedTuple):
    """Functions that replace the parts and labels of a `scene`."""

    part: Callable[[Item, Part], Part]
    label: Callable[[Wire, Item], str]
    """Takes a wire and the item at its end."""


def scene(
    trace: Trace,
    opened: Collection[int] | None = None,
    timeline: Timeline | None = None,
    widest: int = WIDE,
    shown: Overrides | None = None,
) -> Scene:
    """Return the scene of a trace, with the moments of `timeline`. `opened` are the open blocks; None opens as many as
    remain legible and fit in `widest` pixels while blocks can be closed. `shown` replaces parts and labels."""
    structured = bool(trace.modules or trace.how)
    for budget in _BUDGETS if opened is None else _BUDGETS[:1]:
        seen = _seen(trace, budget, opened, timeline)
        if shown is not None:
            seen.parts = [shown.part(item, part) for item, part in zip(seen.items, seen.parts, strict=True)]
            seen.labels = [shown.label(wire, seen.items[wire.end]) for wire in seen.wires]
        _place(seen)
        if structured and timeline is None and seen.width > PAGE:
            seen = _in_rows(seen)
        if (seen.width <= widest and (seen.height <= _HIGH or not structured)) or len(seen.opened) == 1:
            break
    return seen


def _seen(trace: Trace, budget: int, chosen: Collection[int] | None, timeline: Timeline | None) -> Scene:
    small = chosen is None and trace.full and not any(block.kind == "scope" for block in trace.blocks)
    where = [0] * len(trace.block) if small else trace.block
    opened = {0} if small else begin_open(trace, budget) if chosen is None else {0, *chosen}
    items, wires = visible(trace.blocks, where, list(zip(trace.operand, trace.result, strict=True)), opened)
    blocks = stacks(trace, items, wires)
    if timeline:
        for at, part in blocks.items():
            blocks[at] = replace(part, rows=part.rows[:1], progress=(0.0, 0.0)) if isinstance(part, Stack) else part
    counts = trace.contributions()
    start = timeline.at(0) if timeline else None
    parts: list[Part] = [
        blocks[at] if item.node < 0 else card(trace, item.node, counts[item.node], start)
        for at, item in enumerate(items)
    ]
    shown = [item.node for item in items if item.node >= 0]
    special = bool(blocks) or any(pictured(trace, node) or trace.kinds[node] == "x" for node in shown)
    plain = len(items) <= _LABELLED and not any(item.framed for item in items)
    labels = ["" if items[wire.end].node < 0 else _label(trace, wire, plain) for wire in wires]
    return Scene(trace, timeline, items, wires, opened, parts, special, labels)


def _label(trace: Trace, wire: Wire, plain: bool) -> str:
    """Return the label of an edge into a node: the local derivative, with its formula if that fits."""
    edge = wire.edges[0]
    if trace.local[edge] is None:
        return ""
    text = trace.local_text(edge, 10, brief)
    return text if plain and text_width(text, 11) <= 100 else text.rpartition(" = ")[2]


# --- in rows ---------------------------------------------------------------------------------------------------------


def _in_rows(seen: Scene) -> Scene:
    """Return the scene wrapped into rows no wider than a page, as far as it can be cut."""
    labels = {id(wire.edges): label for wire, label in zip(seen.wires, seen.labels, strict=True)}

    def placed(row: Row) -> Scene:
        items, wires, parts = row
        one = replace(seen, items=items, wires=wires, parts=parts, labels=[labels[id(wire.edges)] for wire in wires])
        _place(one)
        return one

    def mention(wire: Wire) -> Mention:
        part, name = seen.parts[wire.start], seen.trace.names[wire.value] if wire.value >= 0 else None
        if name is None:
            name = part.path if isinstance(part, Stack) else seen.trace.title(wire.value)
        return Mention(name, part.tooltip if isinstance(part, Stack | Card) else "")

    whole: Row = (seen.items, seen.wires, seen.parts)
    rows = list(map(placed, in_rows(whole, seen.boxes, lambda row: placed(row).width, mention)))
    found = replace(rows[0], items=[], wires=[], parts=[], labels=[], boxes=[], routes=[], heights=[], height=-_BETWEEN)
    for row in rows:
        first, y = len(found.items), found.height + _BETWEEN
        found.items += [item._replace(outer=item.outer + first if item.outer >= 0 else -1) for item in row.items]
        found.wires += [replace(wire, start=wire.start + first, end=wire.end + first) for wire in row.wires]
        found.parts += row.parts
        found.labels += row.labels
        found.boxes += [box._replace(y=box.y + y) for box in row.boxes]
        found.routes += [[(x, height + y) for x, height in route] for route in row.routes]
        found.heights += [height + y for height in row.heights]
        found.width, found.height = max(found.width, row.width), y + row.height
    return found


# --- layout ----------------------------------------------------------------------------------------------------------


def _place(seen: Scene) -> None:
    """Set the boxes, the routes and the y of the labels."""
    widest = max((text_width(label, 11) for label in seen.labels), default=0.0)
    framed = any(item.framed for item in seen.items)  # borders of frames take up columns too
    gap = max(36.0 if framed else 56.0, widest + 40.0)
    sizes = [part.size for part in seen.parts]
    ends = [(wire.start, wire.end) for wire in seen.wires]
    if all(item.block < 0 for item in seen.items):
        plain = layout(sizes, ends, gap_x=gap, gap_y=18.0)
        corners = zip(plain.centers, sizes, strict=True)
        seen.boxes = [Box(x - width / 2, y - height / 2, width, height) for (x, y), (width, height) in corners]
        seen.routes, seen.width, seen.height = plain.routes, plain.width, plain.height
    else:
        ports = Ports([wire.value for wire in seen.wires], _leave(seen))
        outer = [item.outer for item in seen.items]
        nested = nest(sizes, outer, ends, gap_x=gap, gap_y=18.0, padding=14.0, ports=ports)
        seen.boxes = [Box(*box) for box in nested.boxes]
        seen.routes, seen.width, seen.height = nested.routes, nested.width, nested.height
    seen.heights = _label_heights(seen)


def _leave(seen: Scene) -> list[float]:
    """Return the offset of each wire's source port below the middle of its item; values of a block are stacked."""
    values: dict[int, dict[int, int]] = {}
    for wire in seen.wires:
        of = values.setdefault(wire.start, {})
        of.setdefault(wire.value, len(of))
    heights = []
    for wire in seen.wires:
        of = values[wire.start]
        step = min(9.0, (seen.parts[wire.start].size[1] - 20.0) / len(of))
        heights.append((of[wire.value] - (len(of) - 1) / 2) * step)
    return heights


def _label_heights(seen: Scene) -> list[float]:
    """Return the y of each label: on its edge, near the end, without overlapping other labels."""
    labels, routes, heights = seen.labels, seen.routes, [0.0] * len(seen.labels)
    into: dict[int, list[int]] = {}
    for number, wire in enumerate(seen.wires):
        if labels[number]:
            into.setdefault(wire.end, []).append(number)
    for edges in into.values():
        for edge in edges:
            x, port = routes[edge][-1]
            y = height_at(routes[edge], x - TIP - 6 - text_width(labels[edge], 11) / 3)
            heights[edge] = min(max(y, port - _NEAR), port + _NEAR)
        if any(heights[one] + _PITCH > heights[two] for one, two in pairwise(edges)):
            # Edges with one source, or that cross, are apart only at their ports, barely enough for labels.
            first, last = routes[edges[0]][-1][1], routes[edges[-1]][-1][1]
            for at, edge in enumerate(edges):
                heights[edge] = (first + last - (len(edges) - 1) * _PITCH) / 2 + at * _PITCH
    return heights
