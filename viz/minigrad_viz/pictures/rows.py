"""Row wrapping: a drawing wider than a page is cut between columns, and each row is laid out separately.

A value from an earlier row is represented by a mention, a small card with its name, left of its use. A block that spans
several rows has a frame in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from minigrad_viz.pictures.boxes import Frame, Mention, Stack
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.pairs import Pair
from minigrad_viz.trace.visible import Item, Wire

__all__ = ["PAGE", "Part", "Row", "in_rows"]

PAGE = 1140  # pixels; with margins, the width of a page in a 1280-pixel window, where text is not scaled down
_MENTIONS = 150  # approximate width of the mentions in a row, in pixels
_HALF = 0.45  # minimum fill of a row that ends early, at the end of a block
_PARTS = (
    1.6,
    1.35,
    1.15,
    1.0,
    0.85,
    0.7,
    0.55,
    0.4,
)  # row widths to try, as fractions of a page, before the row is laid out again

Box = tuple[float, float, float, float]
Part = Card | Stack | Frame | Mention | Pair
Row = tuple[list[Item], list[Wire], list[Part]]


def in_rows(
    row: Row, boxes: Sequence[Box], width_of: Callable[[Row], float], mention: Callable[[Wire], Mention]
) -> list[Row]:
    """Wrap `row`, whose items have the boxes `boxes`, into rows no wider than a page, if cuts between columns allow it.

    `width_of` returns the width of a row after layout; `mention` returns the card for the source of a wire from an
    earlier row.
    """
    rows = [row]
    for part in _PARTS:
        if cuts := _cuts(row, boxes, part * PAGE):
            rows = _cut(row, boxes, cuts, mention)
            if all(width_of(one) <= PAGE for one in rows):
                break
    return rows


def _cuts(row: Row, boxes: Sequence[Box], room: float) -> list[float]:
    """Return the x of the cuts: between columns, and through as few frames as possible without sparse rows."""
    items, _, _ = row
    spans = sorted((x, x + width) for item, (x, _, width, _) in zip(items, boxes, strict=True) if not item.framed)
    if not spans:
        return []
    between, reach = [], spans[0][1]
    for left, right in spans:
        if left > reach:
            between.append((reach + left) / 2)
        reach = max(reach, right)
    frames = [(x, x + width) for item, (x, _, width, _) in zip(items, boxes, strict=True) if item.framed]

    def through(x: float) -> int:
        """Return the number of frames that a cut at `x` crosses."""
        return sum(left < x < right for left, right in frames)

    cuts: list[float] = []
    start = spans[0][0]
    while reach - start > room:
        longest = room - (_MENTIONS if cuts else 0)
        fits = [x for x in between if start < x <= start + longest] or [x for x in between if x > start][:1]
        if not fits:
            break
        full = [x for x in fits if x >= start + _HALF * longest]
        start = min(full, key=lambda x: (through(x), -x)) if full else max(fits)
        cuts.append(start)
    return cuts


def _cut(row: Row, boxes: Sequence[Box], cuts: Sequence[float], mention: Callable[[Wire], Mention]) -> list[Row]:
    items, wires, parts = row
    of = [sum(x > cut for cut in cuts) for x, _, _, _ in boxes]
    first: dict[int, int] = {}  # first row in which an item is used
    for wire in wires:
        first[wire.start] = min(first.get(wire.start, of[wire.end]), of[wire.end])
    for at in {wire.start for wire in wires} - {wire.end for wire in wires}:
        of[at] = first[at]  # items without inputs are placed in the row of their first use
    rows, begun = [], set[int]()
    for number in range(len(cuts) + 1):
        inside = {at for at, item in enumerate(items) if of[at] == number and not item.framed}
        kept = set(inside)
        for at in inside:
            while (at := items[at].outer) >= 0:
                kept.add(at)
        again = kept & begun
        begun |= kept - inside
        shown = [
            replace(part, note="continued") if k in again and isinstance(part, Frame) else part
            for k, part in enumerate(parts)
        ]
        rows.append(_row((items, wires, shown), kept, inside, mention))
    return rows


def _row(row: Row, kept: set[int], inside: set[int], mention: Callable[[Wire], Mention]) -> Row:
    """Return a row of the items `kept`, which are `inside` and the frames around them, and mentions of the sources of
    wires from other rows."""
    items, wires, parts = row
    here: dict[int, int] = {}
    found: Row = ([], [], [])
    mentions: dict[tuple[int, int, int], list[Wire]] = {}
    for wire in wires:
        if wire.end in inside and wire.start not in inside:
            mentions.setdefault((wire.start, wire.value, items[wire.end].outer), []).append(wire)
    waiting = list(mentions.items())
    sources: dict[int, int] = {}  # wire id -> index of its mention
    for at in sorted(kept):
        for key, some in [one for one in waiting if min(wire.end for wire in one[1]) == at]:
            for wire in some:
                sources[id(wire)] = len(found[0])
            found[0].append(Item(-1, -1, False, here.get(key[2], -1)))
            found[2].append(mention(some[0]))
        here[at] = len(found[0])
        found[0].append(items[at]._replace(outer=here.get(items[at].outer, -1)))
        found[2].append(parts[at])
    for wire in wires:
        if wire.end in inside:
            start = sources[id(wire)] if id(wire) in sources else here[wire.start]
            found[1].append(Wire(start, here[wire.end], wire.value, wire.edges))
    return found
