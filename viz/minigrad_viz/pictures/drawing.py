"""Drawing: what `draw` returns. A notebook shows it as a picture, a terminal as text; it can be saved as either."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from minigrad.errors import ArgumentError, DTypeError, a_kind
from minigrad_viz.models import beginning
from minigrad_viz.pictures.graphviz import digraph
from minigrad_viz.pictures.html import figure, page, state_of
from minigrad_viz.pictures.svg import picture
from minigrad_viz.pictures.text import table
from minigrad_viz.trace import Trace, to_trace

if TYPE_CHECKING:
    import graphviz

__all__ = ["Drawing", "draw", "export", "to_json"]


class Drawing:
    """A picture of a graph as it was when it was drawn: later gradients do not change it."""

    def __init__(
        self, trace: Trace, state: Mapping[str, Any] | None = None, blocks: Collection[int] | None = None
    ) -> None:
        self.trace = trace
        self.state = state  # how a player of it begins
        self.blocks = blocks  # that are open in the picture, or None for as many as can be read

    def svg(self) -> str:
        """The picture alone, as SVG."""
        return picture(self.trace, self.blocks).svg

    def text(self) -> str:
        """The text form."""
        return table(self.trace)

    def html(self) -> str:
        """A page with the player, the picture, all numbers and the backward pass step by step, in one file."""
        return page(self.trace, self.state, self.blocks)

    def json(self) -> str:
        """The trace."""
        return self.trace.json()

    def graphviz(self) -> graphviz.Digraph:
        """A Digraph for Graphviz."""
        return digraph(self.trace)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path` what its suffix says: ``.svg``, ``.html``, ``.txt``, ``.json``, or ``.dot`` and ``.gv``.

        Raises ArgumentError for another suffix, DTypeError for what is no path.
        """
        writers: dict[str, Callable[[], str]] = {
            ".svg": self.svg,
            ".html": self.html,
            ".txt": self.text,
            ".json": self.json,
            ".dot": lambda: str(self.graphviz().source),
        }
        writers[".gv"] = writers[".dot"]
        if not isinstance(path, str | os.PathLike):
            raise DTypeError(f"save: {path!r} is {a_kind(path)}, not a path.\n  Write drawing.save('graph.svg').")
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix not in writers:
            raise ArgumentError(
                f"save: {os.fspath(path)!r} does not say what to write.\n  End it with {', '.join(writers)}."
            )
        content = writers[suffix]()
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(content)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": figure(self.trace, self.state, self.blocks), "text/plain": self.text()}


def draw(x: Any, *more: Any, expand: bool | Collection[str] | None = None) -> Drawing:
    """Draw the graph that ends in `x`, a Value, or in several: ``draw(y)``, ``draw(y, z)``, ``draw([y, z])``.

    Every node shows its name, its rule, its number and its gradient (a dash before ``backward``); an arrow shows the
    local derivative. Names are labels, or else your variables. Nothing in the graph is changed.

    Calls of modules are blocks, titled by name and type, also in a graph that nobody recorded. ``draw(model, x)`` draws
    what an `nn.Module` computes of `x`. `expand` says which blocks are open: all, with False none, or those named, as
    "blocks.0". Where the model raises, the drawing ends in the call that failed. What is wider than a page is drawn in
    rows: a small card mentions what comes from a row above.

    ``draw(step)`` draws what a step of `mg.jit` ran last: forward, backward and update, with the shapes of what kernel
    calls give. Compiled kernels are blocks, titled by what they compute; large steps have a block for each module.
    Memory that the step writes to is called as it was, with a prime.

    Raises DTypeError for what is neither a Value, a tensor nor a model, ArgumentError for a model without an input, and
    for a step that was not called yet.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> draw(a * a)
    Graph of v₁ = 9.0: 1 leaf, 1 operation.
    #  name  made by  data  grad
    0  a     leaf      3.0     —
    1  v₁    a · a     9.0     —
    local derivatives
      ∂v₁/∂a = a = 3.0
      ∂v₁/∂a = a = 3.0
    """
    trace = to_trace(x, *more)
    state = beginning(trace, expand)
    return Drawing(trace, state, None if expand is None or state is None else state["expanded"])


def export(x: Any, path: str | os.PathLike[str]) -> None:
    """Write the graph of `x`, a Value or a list of them, a drawing or a player, to a file: see `Drawing.save`.

    A page, ``.html``, holds the player and needs no network; that of a player begins as it stands. An address that ends
    in ``#step=5`` opens it at that step.
    Raises ValueError for a suffix that is not known.

    >>> import minigrad as mg
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "y.html")
    ...     export(mg.Value(3.0, "a").exp(), path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    Drawing(to_trace(x), state_of(x)).save(path)


def to_json(x: Any, *more: Any) -> str:
    """The trace of `x`, a Value or several, as JSON; what JSON has no number for is a string.

    >>> import minigrad as mg
    >>> to_json(mg.Value(float("nan"), "a"))[:13]
    '{"version":2,'
    """
    return to_trace(x, *more).json()
