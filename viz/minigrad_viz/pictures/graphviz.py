"""The graph for Graphviz, for those who have its ``dot`` and want PDF, or a layout other than ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.core.packages import check, explained
from minigrad_viz.pictures.palette import LIGHT
from minigrad_viz.pictures.quantities import gradient, shape_text, value
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import number, plain, shorten

if TYPE_CHECKING:
    import graphviz

__all__ = ["digraph", "to_graphviz"]

_INSTEAD = ", or use draw(…), which needs none"
_LOOKS = {
    "leaf": {"style": "rounded,filled", "fillcolor": "#e4eefa", "color": LIGHT["leaf"]},
    "op": {"style": "filled", "fillcolor": LIGHT["op"], "color": LIGHT["line"]},
    "constant": {"style": "rounded,dashed", "color": LIGHT["line"]},
    "broken": {"style": "filled", "fillcolor": LIGHT["wash"], "color": LIGHT["alarm"], "penwidth": "2.5"},
}


def to_graphviz(x: Any, *more: Any) -> graphviz.Digraph:
    """The graph of `x`, a Value or several, as a ``graphviz.Digraph``. Its ``render`` and ``pipe`` need ``dot``.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> to_graphviz(a * a).source.count("->")
    2
    """
    return digraph(to_trace(x, *more))


@explained("to_graphviz", _INSTEAD)
def digraph(trace: Trace, now: Moment | None = None) -> graphviz.Digraph:
    """The Digraph of a trace, or of a moment of it, with a cluster for each block."""
    import graphviz

    check("graphviz", "to_graphviz", _INSTEAD)
    picture = graphviz.Digraph("minigrad", comment="made by minigrad_viz")
    picture.attr(
        rankdir="LR",
        fontname="sans-serif",
        label=_text(trace.sentence(), *(note.text for note in trace.notes)),
    )
    picture.attr("node", shape="box", fontname="sans-serif", fontsize="11")
    picture.attr("edge", fontname="sans-serif", fontsize="9", fontcolor=LIGHT["backward"], color=LIGHT["line"])
    blocks = [picture, *(_cluster(trace, k) for k in range(1, len(trace.blocks)))]
    for index in range(len(trace.kinds)):
        tooltip, *lines = _said(trace, index, now)
        details = {"tooltip": _text(tooltip.replace("\\", "\\\\"))} if tooltip else {}  # which is read twice
        blocks[trace.block[index]].node(f"n{index}", _text(*lines), **details, **_looks(trace, index))
    for k in range(len(blocks) - 1, 0, -1):
        blocks[trace.blocks[k].outer].subgraph(blocks[k])
    for place, edge in enumerate(trace.edges):
        style = {} if edge.flows or trace.how else {"style": "dotted"}
        label = _text(trace.local_text(place)) if edge.local is not None else ""
        picture.edge(f"n{edge.operand}", f"n{edge.result}", label, **style)
    return picture


def _text(*lines: str) -> Any:
    """A label whose lines mean nothing to DOT: no backslash escapes, no HTML, and no entities of that."""
    import graphviz

    return graphviz.nohtml("\\n".join(line.replace("\\", "\\\\").replace("&", "&amp;") for line in lines))


def _cluster(trace: Trace, k: int) -> graphviz.Digraph:
    """The frame of a block. A run is a part of our own making, so it has none."""
    import graphviz

    block = trace.blocks[k]
    cluster = graphviz.Digraph(f"{'run' if block.kind == 'run' else 'cluster'}_{k}")
    count = f" ×{block.copies}" if block.copies else ""
    cluster.attr(label=_text(shorten(block.name, 60) + count), style="dotted", color=LIGHT["line"], fontsize="11")
    return cluster


def _looks(trace: Trace, index: int) -> dict[str, str]:
    looks = dict(_LOOKS[trace.nodes[index].kind])
    if index in trace.outputs:
        looks |= {"peripheries": "2", "color": LIGHT["output"]}
    if trace.alarming(index):
        looks |= {"penwidth": "2.5", "color": LIGHT["alarm"]}
    return looks


def _said(trace: Trace, index: int, now: Moment | None) -> tuple[str, ...]:
    """The tooltip of a node, and the lines in it."""
    if trace.kinds[index] == "c":
        return "", value(trace, index)
    formula = trace.formula(index)
    title = trace.title(index, 60)
    head = shorten(title if formula is None else f"{title} = {plain(formula)}", 120)
    tooltip = f"{trace.title(index, 200)}: {value(trace, index, number, now)}"
    if trace.how:
        return "", head, shape_text(*trace.tensors[index][:2])
    return tooltip, head, f"data {value(trace, index, now=now)}", f"grad {gradient(trace, index, now=now)}"
