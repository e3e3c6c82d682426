"""Scenes: the visible items of a graph with their sizes and layout, from which all formats are rendered.

In a large graph, or in one with scopes, blocks are closed to limit the number of visible items. A scene with a timeline
can also be drawn at any moment. Each card is large enough for its values at every moment, so that nothing shifts
between moments.
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
from minigrad_viz.pictures.boxes import Mention, Stack, make_block_parts
from minigrad_viz.pictures.cards import Card, make_card
from minigrad_viz.pictures.curves import ARROWHEAD_LENGTH, Point, y_at
from minigrad_viz.pictures.node_text import has_heatmap
from minigrad_viz.pictures.row_wrapping import PAGE_WIDTH, Part, Row, wrap_rows
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Moment, Timeline
from minigrad_viz.trace.modules import initially_open_blocks
from minigrad_viz.trace.notation import format_brief, text_width
from minigrad_viz.trace.visibility import Item, Wire, visible_items

__all__ = ["OVERVIEW_WIDTH", "Box", "Overrides", "Part", "Scene", "build_scene"]

OVERVIEW_WIDTH = 3000  # in pixels; a wider drawing serves only as an overview

_MAX_HEIGHT = 1500  # maximum height of a wrapped drawing, in pixels, while blocks can be closed
_ROW_GAP = 22.0  # gap between rows
# Maximum numbers of visible items in a graph with blocks, tried in order until the drawing is legible.
_ITEM_BUDGETS = (40, 25, 15, 8)
_MAX_LABELLED_ITEMS = 60  # number of items up to which labels include short formulas of local derivatives
_MAX_LABEL_OFFSET = 15.0  # maximum vertical distance of a label from the end of its edge
_LABEL_PITCH = 13.5  # vertical distance between labels, including descenders and background


class Box(NamedTuple):
    """A rectangle with its top left corner at (`x`, `y`)."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Scene:
    """The visible items and wires of a graph, and their layout. Each item has a part and a box, each wire a route and a
    label.

    `has_special_parts` is True if any part is not a scalar card. `heights` are the y coordinates of the labels.
    """

    trace: Trace
    timeline: Timeline | None
    items: list[Item]
    wires: list[Wire]
    open_blocks: set[int]
    parts: list[Part]
    has_special_parts: bool
    labels: list[str]
    boxes: list[Box] = field(default_factory=list)
    routes: list[list[Point]] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    @cached_property
    def contribution_counts(self) -> list[int]:
        """The number of contributions to each node's gradient."""
        return self.trace.contributions()

    @cached_property
    def _item_indices(self) -> tuple[dict[int, int], dict[int, int]]:
        """Maps nodes and closed blocks to the indices of their items."""
        nodes = {item.node: at for at, item in enumerate(self.items) if item.node >= 0}
        blocks = {item.block: at for at, item in enumerate(self.items) if item.block >= 0 and not item.is_frame}
        return nodes, blocks

    def item_of(self, node: int) -> int:
        """Return the index of the item of a node, or of the closed block that contains the node."""
        nodes, blocks = self._item_indices
        if node in nodes:
            return nodes[node]
        block = self.trace.block[node]
        while block not in blocks:
            block = self.trace.blocks[block].outer
        return blocks[block]

    @cached_property
    def wire_of(self) -> dict[int, int]:
        """Maps each edge that is not inside a closed block to the index of its wire."""
        return {edge: at for at, wire in enumerate(self.wires) for edge in wire.edges}

    # --- at a moment ---

    @cached_property
    def _card_cache(self) -> dict[tuple[int, bool, int, str], Card]:
        return {}

    def part_at(self, index: int, moment: Moment) -> Part:
        """Return the part of an item at a moment."""
        item, part = self.items[index], self.parts[index]
        if isinstance(part, Stack):
            return replace(part, progress=self._progress(item.block, moment.position))
        if not isinstance(part, Card):
            return part
        gradient = moment.gradient(item.node)
        key = item.node, moment.is_computed(item.node), gradient.met, gradient.state
        if key not in self._card_cache:
            self._card_cache[key] = make_card(self.trace, item.node, self.contribution_counts[item.node], moment)
        return self._card_cache[key]

    @cached_property
    def _completion_positions(self) -> dict[int, tuple[list[int], list[int]]]:
        """Maps each closed block to the sorted positions at which operations are computed and gradients complete."""
        trace = self.trace
        positions: dict[int, tuple[list[int], list[int]]] = {block: ([], []) for block in self._item_indices[1]}
        assert self.timeline is not None
        timeline, never = self.timeline, self.timeline.last + 1
        for node, kind in enumerate(trace.kinds):
            ancestor = trace.block[node]
            while ancestor >= 0:
                if ancestor in positions:
                    if kind == "o":
                        positions[ancestor][0].append(timeline.position_of_node[node])
                    if kind in "lo" and trace.states[node] != "b":
                        arrivals = [timeline.seed] if node == timeline.root else timeline.arrivals.get(node, [never])
                        positions[ancestor][1].append(arrivals[-1])
                ancestor = trace.blocks[ancestor].outer
        return {block: (sorted(forward), sorted(backward)) for block, (forward, backward) in positions.items()}

    def _progress(self, block: int, position: int) -> tuple[float, float]:
        """Return the fraction of a closed block's operations that are computed, and of its gradients that are final."""
        forward, backward = (
            (bisect_right(positions, position) / len(positions) if positions else 1.0)
            for positions in self._completion_positions[block]
        )
        return forward, backward

    def wire_state(self, wire: Wire, moment: Moment) -> Literal["done", "future", ""]:
        """Return "done" if a gradient has flowed back over a wire, "future" if the result is not computed, else ""."""
        states = {moment.edge_state(edge) for edge in wire.edges}
        if "done" in states:
            return "done"
        has_started = "active" in states or any(moment.is_computed(self.trace.result[edge]) for edge in wire.edges)
        return "" if has_started else "future"

    def label_at(self, index: int, moment: Moment) -> str:
        """Return the label of a wire. It is empty before the wire's result is computed and while a pill replaces it."""
        is_hidden = self.wire_state(self.wires[index], moment) == "future" or moment.edge == self.wires[index].edges[0]
        return "" if is_hidden else self.labels[index]


class Overrides(NamedTuple):
    """Functions that replace the parts and labels created by `build_scene`."""

    part: Callable[[Item, Part], Part]
    label: Callable[[Wire, Item], str]
    """Called with a wire and the item at its end."""


def build_scene(
    trace: Trace,
    open_blocks: Collection[int] | None = None,
    timeline: Timeline | None = None,
    max_width: int = OVERVIEW_WIDTH,
    overrides: Overrides | None = None,
) -> Scene:
    """Return the scene of a trace, with the moments of `timeline`.

    If `open_blocks` is None, blocks are closed until the drawing is legible and, if possible, fits in `max_width`
    pixels. `overrides` replaces parts and labels.
    """
    is_structured = bool(trace.modules or trace.execution)
    for budget in _ITEM_BUDGETS if open_blocks is None else _ITEM_BUDGETS[:1]:
        scene = _visible_scene(trace, budget, open_blocks, timeline)
        if overrides is not None:
            scene.parts = [overrides.part(item, part) for item, part in zip(scene.items, scene.parts, strict=True)]
            scene.labels = [overrides.label(wire, scene.items[wire.end]) for wire in scene.wires]
        _lay_out(scene)
        if is_structured and timeline is None and scene.width > PAGE_WIDTH:
            scene = _wrap_scene(scene)
        if (scene.width <= max_width and (scene.height <= _MAX_HEIGHT or not is_structured)) or len(
            scene.open_blocks
        ) == 1:
            break
    return scene


def _visible_scene(trace: Trace, budget: int, requested: Collection[int] | None, timeline: Timeline | None) -> Scene:
    is_flat = requested is None and trace.is_fully_shown and not any(block.kind == "scope" for block in trace.blocks)
    block_of_node = [0] * len(trace.block) if is_flat else trace.block
    open_blocks = {0} if is_flat else initially_open_blocks(trace, budget) if requested is None else {0, *requested}
    items, wires = visible_items(
        trace.blocks, block_of_node, list(zip(trace.operand, trace.result, strict=True)), open_blocks
    )
    blocks = make_block_parts(trace, items, wires)
    if timeline:
        for index, part in blocks.items():
            blocks[index] = replace(part, rows=part.rows[:1], progress=(0.0, 0.0)) if isinstance(part, Stack) else part
    counts = trace.contributions()
    start = timeline.at(0) if timeline else None
    parts: list[Part] = [
        blocks[at] if item.node < 0 else make_card(trace, item.node, counts[item.node], start)
        for at, item in enumerate(items)
    ]
    nodes = [item.node for item in items if item.node >= 0]
    has_special_parts = bool(blocks) or any(has_heatmap(trace, node) or trace.kinds[node] == "x" for node in nodes)
    show_formulas = len(items) <= _MAX_LABELLED_ITEMS and not any(item.is_frame for item in items)
    labels = ["" if items[wire.end].node < 0 else _edge_label(trace, wire, show_formulas) for wire in wires]
    return Scene(trace, timeline, items, wires, open_blocks, parts, has_special_parts, labels)


def _edge_label(trace: Trace, wire: Wire, show_formulas: bool) -> str:
    """Return the label of a wire into a node: the local derivative, with its formula if there is space."""
    edge = wire.edges[0]
    if trace.local[edge] is None:
        return ""
    text = trace.local_text(edge, 10, format_brief)
    return text if show_formulas and text_width(text, 11) <= 100 else text.rpartition(" = ")[2]


# --- in rows ---------------------------------------------------------------------------------------------------------


def _wrap_scene(scene: Scene) -> Scene:
    """Return the scene wrapped into rows, which are no wider than a page wherever cuts allow it."""
    labels = {id(wire.edges): label for wire, label in zip(scene.wires, scene.labels, strict=True)}

    def lay_out_row(row: Row) -> Scene:
        items, wires, parts = row
        row_scene = replace(
            scene, items=items, wires=wires, parts=parts, labels=[labels[id(wire.edges)] for wire in wires]
        )
        _lay_out(row_scene)
        return row_scene

    def make_mention(wire: Wire) -> Mention:
        part, name = scene.parts[wire.start], scene.trace.names[wire.value] if wire.value >= 0 else None
        if name is None:
            name = part.qualified_name if isinstance(part, Stack) else scene.trace.title(wire.value)
        return Mention(name, part.tooltip if isinstance(part, Stack | Card) else "")

    unwrapped: Row = (scene.items, scene.wires, scene.parts)
    rows = list(map(lay_out_row, wrap_rows(unwrapped, scene.boxes, lambda row: lay_out_row(row).width, make_mention)))
    wrapped = replace(
        rows[0], items=[], wires=[], parts=[], labels=[], boxes=[], routes=[], heights=[], height=-_ROW_GAP
    )
    for row in rows:
        first_index, y = len(wrapped.items), wrapped.height + _ROW_GAP
        wrapped.items += [
            item._replace(outer=item.outer + first_index if item.outer >= 0 else -1) for item in row.items
        ]
        wrapped.wires += [
            replace(wire, start=wire.start + first_index, end=wire.end + first_index) for wire in row.wires
        ]
        wrapped.parts += row.parts
        wrapped.labels += row.labels
        wrapped.boxes += [box._replace(y=box.y + y) for box in row.boxes]
        wrapped.routes += [[(x, height + y) for x, height in route] for route in row.routes]
        wrapped.heights += [height + y for height in row.heights]
        wrapped.width, wrapped.height = max(wrapped.width, row.width), y + row.height
    return wrapped


# --- layout ----------------------------------------------------------------------------------------------------------


def _lay_out(scene: Scene) -> None:
    """Compute the boxes, the routes and the y coordinates of the labels."""
    max_label_width = max((text_width(label, 11) for label in scene.labels), default=0.0)
    has_frames = any(item.is_frame for item in scene.items)  # borders of frames occupy columns too
    gap = max(36.0 if has_frames else 56.0, max_label_width + 40.0)
    sizes = [part.size for part in scene.parts]
    ends = [(wire.start, wire.end) for wire in scene.wires]
    if all(item.block < 0 for item in scene.items):
        flat_layout = layout(sizes, ends, gap_x=gap, gap_y=18.0)
        corners = zip(flat_layout.centers, sizes, strict=True)
        scene.boxes = [Box(x - width / 2, y - height / 2, width, height) for (x, y), (width, height) in corners]
        scene.routes, scene.width, scene.height = flat_layout.routes, flat_layout.width, flat_layout.height
    else:
        ports = Ports([wire.value for wire in scene.wires], _port_offsets(scene))
        outer = [item.outer for item in scene.items]
        nested_layout = nest(sizes, outer, ends, gap_x=gap, gap_y=18.0, padding=14.0, ports=ports)
        scene.boxes = [Box(*box) for box in nested_layout.boxes]
        scene.routes, scene.width, scene.height = nested_layout.routes, nested_layout.width, nested_layout.height
    scene.heights = _place_labels(scene)


def _port_offsets(scene: Scene) -> list[float]:
    """Return the vertical offset of each wire's source port from its item's centre. Ports of a block are stacked."""
    values: dict[int, dict[int, int]] = {}
    for wire in scene.wires:
        index_of_value = values.setdefault(wire.start, {})
        index_of_value.setdefault(wire.value, len(index_of_value))
    heights = []
    for wire in scene.wires:
        index_of_value = values[wire.start]
        step = min(9.0, (scene.parts[wire.start].size[1] - 20.0) / len(index_of_value))
        heights.append((index_of_value[wire.value] - (len(index_of_value) - 1) / 2) * step)
    return heights


def _place_labels(scene: Scene) -> list[float]:
    """Return the y coordinate of each label, which is on its edge, near the end, without overlapping other labels."""
    labels, routes, heights = scene.labels, scene.routes, [0.0] * len(scene.labels)
    edges_by_target: dict[int, list[int]] = {}
    for index, wire in enumerate(scene.wires):
        if labels[index]:
            edges_by_target.setdefault(wire.end, []).append(index)
    for edges in edges_by_target.values():
        for edge in edges:
            x, port_y = routes[edge][-1]
            y = y_at(routes[edge], x - ARROWHEAD_LENGTH - 6 - text_width(labels[edge], 11) / 3)
            heights[edge] = min(max(y, port_y - _MAX_LABEL_OFFSET), port_y + _MAX_LABEL_OFFSET)
        if any(heights[one] + _LABEL_PITCH > heights[two] for one, two in pairwise(edges)):
            # Edges with a common source and crossing edges are separated only at their ports, with barely enough space
            # for labels.
            first, last = routes[edges[0]][-1][1], routes[edges[-1]][-1][1]
            for row, edge in enumerate(edges):
                heights[edge] = (first + last - (len(edges) - 1) * _LABEL_PITCH) / 2 + row * _LABEL_PITCH
    return heights
