"""Graphs as text tables, for terminals, diffs and front ends without images."""

from __future__ import annotations

from typing import Any

from minigrad_viz.pictures.quantities import gradient, pictured, shape_text, value
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.captions import caption
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import cells, fit_cells, number, plain

__all__ = ["table", "to_text"]

_ROWS = 60  # a longer graph shows the first and last 30 nodes


def to_text(x: Any, *more: Any) -> str:
    """Return the graph of `x`, one or several Values, as text: its nodes in tape order, then its local derivatives.

    >>> import minigrad as mg
    >>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    >>> print(to_text(a * b))
    Graph of v₂ = -6.0: 2 leaves, 1 operation.
    #  name  made by  data  grad
    0  a     leaf      2.0     —
    1  b     leaf     -3.0     —
    2  v₂    a · b    -6.0     —
    local derivatives
      ∂v₂/∂a = b = -3.0
      ∂v₂/∂b = a = 2.0
    """
    return table(to_trace(x, *more))


def table(trace: Trace, now: Moment | None = None) -> str:
    """Return the text form of a trace, or of a moment of it with its caption.

    Tensors with several elements are summarised on separate lines below their node.
    """
    count = len(trace.nodes)
    half = _ROWS // 2
    shown = list(range(count)) if count <= _ROWS else [*range(half), *range(count - half, count)]
    left_out = count - len(shown)
    scoped = any(trace.scopes)
    heads = ("#", "name", "made by", *(["in"] if scoped else []), *(["", "shape"] if trace.how else ["data", "grad"]))
    rows = [heads, *[_row(trace, index, scoped, now) for index in shown]]
    widths = [max(_width(row[column]) for row in rows) for column in range(len(heads))]
    parts = [[_line(row, widths)] for row in rows]
    for place, index in enumerate(shown, 1):
        if pictured(trace, index) and not trace.how:
            said = (("data", value(trace, index, number, now)), ("grad", gradient(trace, index, number, now)))
            parts[place] += [f"{' ' * widths[0]}  {caption} {text}" for caption, text in said]
    derivatives = [_derivatives(trace, index) for index in shown if now is None or now.is_computed(index)]
    if left_out:
        parts.insert(half + 1, [f"… {left_out:,} nodes left out …"])
        derivatives.insert(half, ["  …"])
    lines = [line for part in parts for line in part]
    below = [line for lines in derivatives for line in lines]
    notes = [*([trace.how] if trace.how else []), *[f"! {note.text}" for note in trace.notes]]
    if now is not None:
        chip, words, *formula = caption(now)
        notes = [f"{chip}: {words}", *filter(None, [" ".join(filter(None, formula))])]
    return "\n".join([trace.sentence(number), *notes, *lines, *(["local derivatives", *below] if below else [])])


def _row(trace: Trace, index: int, scoped: bool, now: Moment | None) -> tuple[str, ...]:
    node = trace.nodes[index]
    formula = trace.formula(index, near=scoped)
    made_by: str = node.kind if formula is None else plain(formula)
    name = "" if node.kind == "constant" else trace.title(index, near=scoped)
    if trace.how:
        tensor = trace.tensors.get(index)
        held = (value(trace, index, number), "") if tensor is None else ("", shape_text(*tensor[:2]))
    else:
        held = (
            ("", "")
            if pictured(trace, index)
            else (value(trace, index, number, now), gradient(trace, index, number, now))
        )
    first = f"! {held[0]}" if node.stale and held[0] else held[0]
    scope = [fit_cells(node.scope, 32)] if scoped else []
    return str(index), name, fit_cells(made_by, 48), *scope, first, held[1]


def _derivatives(trace: Trace, index: int) -> list[str]:
    """Return a line for each local derivative of a node, such as ``∂c/∂a = b = -3.0``."""
    lines = []
    for edge in trace.into[index]:
        if trace.edges[edge].flows and (rule := trace.local_text(edge, show=number)):
            way = f"∂{trace.title(index)}/∂{trace.title(trace.edges[edge].operand)}"
            lines.append(f"  {way} = {rule}")
    return lines


def _width(text: str) -> int:
    return sum(map(cells, text))


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    """Return a row with names left-aligned and values right-aligned."""
    padded = []
    for column, (text, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - _width(text))
        padded.append(text + space if 0 < column < len(row) - 2 else space + text)
    return "  ".join(padded).rstrip()
