"""Graphs as text tables, for terminals, diffs and front ends without images."""

from __future__ import annotations

from typing import Any

from minigrad_viz.pictures.node_text import format_gradient, format_shape, format_value, has_heatmap
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.captions import caption_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import char_columns, fit_columns, format_float, formula_text

__all__ = ["table", "to_text"]

_MAX_ROWS = 60  # maximum number of nodes shown; of a longer graph, only the first and last 30 are


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


def table(trace: Trace, moment: Moment | None = None) -> str:
    """Return a trace as a text table. If `moment` is given, show the state at that moment, with its caption.

    Tensors with several elements are summarised on separate lines below their node.
    """
    count = len(trace.nodes)
    half = _MAX_ROWS // 2
    indices = list(range(count)) if count <= _MAX_ROWS else [*range(half), *range(count - half, count)]
    omitted = count - len(indices)
    has_scopes = any(trace.scopes)
    headers = (
        "#",
        "name",
        "made by",
        *(["in"] if has_scopes else []),
        *(["", "shape"] if trace.execution else ["data", "grad"]),
    )
    rows = [headers, *[_table_row(trace, index, has_scopes, moment) for index in indices]]
    widths = [max(_column_width(row[column]) for row in rows) for column in range(len(headers))]
    parts = [[_format_row(row, widths)] for row in rows]
    for row_index, index in enumerate(indices, 1):
        if has_heatmap(trace, index) and not trace.execution:
            quantities = (
                ("data", format_value(trace, index, format_float, moment)),
                ("grad", format_gradient(trace, index, format_float, moment)),
            )
            parts[row_index] += [f"{' ' * widths[0]}  {caption} {text}" for caption, text in quantities]
    derivatives = [_derivative_lines(trace, index) for index in indices if moment is None or moment.is_computed(index)]
    if omitted:
        parts.insert(half + 1, [f"… {omitted:,} nodes left out …"])
        derivatives.insert(half, ["  …"])
    lines = [line for part in parts for line in part]
    derivative_lines = [line for lines in derivatives for line in lines]
    notes = [*([trace.execution] if trace.execution else []), *[f"! {note.text}" for note in trace.notes]]
    if moment is not None:
        chip, words, *formula = caption_of(moment)
        notes = [f"{chip}: {words}", *filter(None, [" ".join(filter(None, formula))])]
    return "\n".join(
        [
            trace.sentence(format_float),
            *notes,
            *lines,
            *(["local derivatives", *derivative_lines] if derivative_lines else []),
        ]
    )


def _table_row(trace: Trace, index: int, has_scopes: bool, moment: Moment | None) -> tuple[str, ...]:
    node = trace.nodes[index]
    formula = trace.formula(index, in_block=has_scopes)
    made_by: str = node.kind if formula is None else formula_text(formula)
    name = "" if node.kind == "constant" else trace.title(index, in_block=has_scopes)
    if trace.execution:
        tensor = trace.tensors.get(index)
        value_cells = (
            (format_value(trace, index, format_float), "") if tensor is None else ("", format_shape(*tensor[:2]))
        )
    else:
        value_cells = (
            ("", "")
            if has_heatmap(trace, index)
            else (format_value(trace, index, format_float, moment), format_gradient(trace, index, format_float, moment))
        )
    value_cell = f"! {value_cells[0]}" if node.stale and value_cells[0] else value_cells[0]
    scope = [fit_columns(node.scope, 32)] if has_scopes else []
    return str(index), name, fit_columns(made_by, 48), *scope, value_cell, value_cells[1]


def _derivative_lines(trace: Trace, index: int) -> list[str]:
    """Return a line for each local derivative of a node, such as ``∂c/∂a = b = -3.0``."""
    lines = []
    for edge in trace.into[index]:
        if trace.edges[edge].flows and (rule := trace.local_text(edge, formatter=format_float)):
            derivative = f"∂{trace.title(index)}/∂{trace.title(trace.edges[edge].operand)}"
            lines.append(f"  {derivative} = {rule}")
    return lines


def _column_width(text: str) -> int:
    return sum(map(char_columns, text))


def _format_row(row: tuple[str, ...], widths: list[int]) -> str:
    """Return a row with names left-aligned and values right-aligned."""
    padded = []
    for column, (text, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - _column_width(text))
        padded.append(text + space if 0 < column < len(row) - 2 else space + text)
    return "  ".join(padded).rstrip()
