"""Row wrapping. A drawing wider than a page is cut between columns, and each row is laid out separately.

A value from an earlier row is represented by a mention, a small card with its name to the left of its use. A block that
spans several rows has a frame in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from minigrad_viz.pictures.boxes import Frame, Mention, Stack
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.pairs import ComparisonCard
from minigrad_viz.trace.visibility import Item, Wire

__all__ = ["PAGE_WIDTH", "Part", "Row", "wrap_rows"]

PAGE_WIDTH = 1140  # in pixels; fits with margins in a 1280-pixel window, so that text is not scaled down
_MENTIONS_WIDTH = 150  # approximate width of the mentions in a row, in pixels
_MIN_FILL = 0.45  # minimum filled fraction of a row that is cut early to cross fewer frames
_ROW_FRACTIONS = (
    1.6,
    1.35,
    1.15,
    1.0,
    0.85,
    0.7,
    0.55,
    0.4,
)  # row widths before a new layout, in the order in which they are tried, as fractions of a page

Box = tuple[float, float, float, float]
Part = Card | Stack | Frame | Mention | ComparisonCard
Row = tuple[list[Item], list[Wire], list[Part]]


def wrap_rows(
    row: Row, boxes: Sequence[Box], width_of: Callable[[Row], float], mention: Callable[[Wire], Mention]
) -> list[Row]:
    """Wrap `row` into rows no wider than a page, if cuts between columns allow it. `boxes` are the boxes of its items.

    `width_of` returns the width of a row after layout; `mention` returns the card for the source of a wire from an
    earlier row.
    """
    rows = [row]
    for fraction in _ROW_FRACTIONS:
        if cuts := _find_cuts(row, boxes, fraction * PAGE_WIDTH):
            rows = _split_row(row, boxes, cuts, mention)
            if all(width_of(one) <= PAGE_WIDTH for one in rows):
                break
    return rows


def _find_cuts(row: Row, boxes: Sequence[Box], max_width: float) -> list[float]:
    """Return the x coordinates of cuts between columns. They cross as few frames as possible without sparse rows."""
    items, _, _ = row
    spans = sorted((x, x + width) for item, (x, _, width, _) in zip(items, boxes, strict=True) if not item.is_frame)
    if not spans:
        return []
    gaps, right_edge = [], spans[0][1]
    for left, right in spans:
        if left > right_edge:
            gaps.append((right_edge + left) / 2)
        right_edge = max(right_edge, right)
    frames = [(x, x + width) for item, (x, _, width, _) in zip(items, boxes, strict=True) if item.is_frame]

    def frames_crossed(x: float) -> int:
        return sum(left < x < right for left, right in frames)

    cuts: list[float] = []
    start = spans[0][0]
    while right_edge - start > max_width:
        max_length = max_width - (_MENTIONS_WIDTH if cuts else 0)
        candidates = [x for x in gaps if start < x <= start + max_length] or [x for x in gaps if x > start][:1]
        if not candidates:
            break
        filling = [x for x in candidates if x >= start + _MIN_FILL * max_length]
        start = min(filling, key=lambda x: (frames_crossed(x), -x)) if filling else max(candidates)
        cuts.append(start)
    return cuts


def _split_row(row: Row, boxes: Sequence[Box], cuts: Sequence[float], mention: Callable[[Wire], Mention]) -> list[Row]:
    items, wires, parts = row
    row_of_item = [sum(x > cut for cut in cuts) for x, _, _, _ in boxes]
    first_use: dict[int, int] = {}  # first row in which an item is used
    for wire in wires:
        first_use[wire.start] = min(first_use.get(wire.start, row_of_item[wire.end]), row_of_item[wire.end])
    for index in {wire.start for wire in wires} - {wire.end for wire in wires}:
        row_of_item[index] = first_use[index]  # items without inputs are placed in the row of their first use
    rows, started = [], set[int]()
    for row_number in range(len(cuts) + 1):
        own_items = {at for at, item in enumerate(items) if row_of_item[at] == row_number and not item.is_frame}
        row_items = set(own_items)
        for index in own_items:
            while (index := items[index].outer) >= 0:
                row_items.add(index)
        continued = row_items & started
        started |= row_items - own_items
        row_parts = [
            replace(part, note="continued") if k in continued and isinstance(part, Frame) else part
            for k, part in enumerate(parts)
        ]
        rows.append(_build_row((items, wires, row_parts), row_items, own_items, mention))
    return rows


def _build_row(row: Row, row_items: set[int], own_items: set[int], mention: Callable[[Wire], Mention]) -> Row:
    """Return a row that contains `row_items` (`own_items` and the frames around them), and mentions of the sources of
    wires from other rows.
    """
    items, wires, parts = row
    new_index: dict[int, int] = {}
    result: Row = ([], [], [])
    mentions: dict[tuple[int, int, int], list[Wire]] = {}
    for wire in wires:
        if wire.end in own_items and wire.start not in own_items:
            mentions.setdefault((wire.start, wire.value, items[wire.end].outer), []).append(wire)
    pending = list(mentions.items())
    sources: dict[int, int] = {}  # maps the id of a wire to the index of its mention
    for index in sorted(row_items):
        for key, group in [one for one in pending if min(wire.end for wire in one[1]) == index]:
            for wire in group:
                sources[id(wire)] = len(result[0])
            result[0].append(Item(-1, -1, False, new_index.get(key[2], -1)))
            result[2].append(mention(group[0]))
        new_index[index] = len(result[0])
        result[0].append(items[index]._replace(outer=new_index.get(items[index].outer, -1)))
        result[2].append(parts[index])
    for wire in wires:
        if wire.end in own_items:
            start = sources[id(wire)] if id(wire) in sources else new_index[wire.start]
            result[1].append(Wire(start, new_index[wire.end], wire.value, wire.edges))
    return result
