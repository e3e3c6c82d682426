"""The graph for Graphviz, for those who have its ``dot`` and want PDF, or a layout other than ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import minigrad as mg
from minigrad_viz.notation import number, plain, pretty, shorten
from minigrad_viz.palette import LIGHT
from minigrad_viz.trace import Trace, to_trace

if TYPE_CHECKING:
    import graphviz

__all__ = ["digraph", "to_graphviz"]

_LOOKS = {
    "leaf": {"style": "rounded,filled", "fillcolor": "#e4eefa", "color": LIGHT["leaf"]},
    "op": {"style": "filled", "fillcolor": LIGHT["op"], "color": LIGHT["line"]},
    "constant": {"style": "rounded,dashed", "color": LIGHT["line"]},
    "broken": {"style": "dashed", "color": LIGHT["line"]},
}


def to_graphviz(x: Any, *more: mg.Value) -> graphviz.Digraph:
    """The graph of `x`, a Value or several, as a ``graphviz.Digraph``. Its ``render`` and ``pipe`` need ``dot``.

    >>> a = mg.Value(3.0, "a")
    >>> to_graphviz(a * a).source.count("->")
    2
    """
    return digraph(to_trace(x, *more))


def digraph(trace: Trace) -> graphviz.Digraph:
    """The Digraph of a trace."""
    import graphviz

    def text(*lines: str) -> Any:
        """A label whose lines mean nothing to DOT: no backslash escapes, no HTML."""
        return graphviz.nohtml("\\n".join(line.replace("\\", "\\\\") for line in lines))

    picture = graphviz.Digraph("minigrad", comment="made by minigrad_viz")
    picture.attr(
        rankdir="LR",
        fontname="sans-serif",
        label=text(trace.sentence(), *(note.text for note in trace.notes)),
    )
    picture.attr("node", shape="box", fontname="sans-serif", fontsize="11")
    picture.attr("edge", fontname="sans-serif", fontsize="9", fontcolor=LIGHT["backward"], color=LIGHT["line"])
    for index, node in enumerate(trace.nodes):
        looks = dict(_LOOKS[node.kind])
        if index in trace.outputs:
            looks |= {"peripheries": "2", "color": LIGHT["output"]}
        if trace.alarming(index):
            looks |= {"penwidth": "2.5", "color": LIGHT["alarm"]}
        if node.kind == "constant":
            picture.node(f"n{index}", text(pretty(node.value)), **looks)
            continue
        formula = trace.formula(index)
        head = trace.title(index, 60) if formula is None else f"{trace.title(index, 60)} = {plain(formula)}"
        lines = (shorten(head, 120), f"data {pretty(node.value)}", f"grad {trace.gradient(index)}")
        picture.node(
            f"n{index}",
            text(*lines),
            tooltip=text(f"{trace.title(index, 200)}: {number(node.value)}"),
            **looks,
        )
    for place, edge in enumerate(trace.edges):
        style = {} if edge.flows else {"style": "dotted"}
        label = text(trace.local_text(place)) if edge.local is not None else ""
        picture.edge(f"n{edge.operand}", f"n{edge.result}", label, **style)
    return picture
