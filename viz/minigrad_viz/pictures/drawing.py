"""Drawing: what `draw` returns. A notebook shows it as a picture, a terminal as text; it is saved as what one asks."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from minigrad.core.errors import ArgumentError
from minigrad_viz.pictures.graphviz import digraph
from minigrad_viz.pictures.html import figure, page, state_of
from minigrad_viz.pictures.moments import drawn
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.pictures.rendering import pdf, png
from minigrad_viz.pictures.saving import FileWriter, is_whole, number_of, save, theme_of
from minigrad_viz.pictures.text import table
from minigrad_viz.pictures.tikz import tikz
from minigrad_viz.trace import Trace, placed, to_trace
from minigrad_viz.trace.history import Moment, Timeline
from minigrad_viz.trace.models import beginning
from minigrad_viz.trace.positions import position_of

if TYPE_CHECKING:
    import graphviz

__all__ = ["Drawing", "draw", "export", "to_json"]

_PAPER = ".mg .page{fill:#ffffff;stroke:none}.mg .ground{fill:#ffffff}"


class Drawing:
    """A picture of a graph as it was when it was drawn: later gradients do not change it."""

    def __init__(
        self,
        trace: Trace,
        state: Mapping[str, Any] | None = None,
        blocks: Collection[int] | None = None,
        now: Moment | None = None,
    ) -> None:
        self.trace = trace
        self.state = state  # how a player of it begins
        self.blocks = blocks  # that are open in the picture, or None for as many as can be read
        self.now = now  # the moment that it shows, or None for the graph as it is

    def svg(self, theme: Theme | None = None) -> str:
        """The picture alone, as SVG; it follows the user's theme, light or dark, unless one is given."""
        return drawn(self.trace, self.blocks, self.now, theme_of(theme)).svg

    def png(self, theme: Theme | None = None, scale: float | None = None, width: int | None = None) -> bytes:
        """The picture as PNG, `scale` times as large as the SVG, 2 if not given, or `width` pixels wide."""
        picture = drawn(self.trace, self.blocks, self.now, theme_of(theme) or "light")
        if width is not None and scale is not None:
            raise ArgumentError("save: both scale and width say how large the picture is.\n  Give one of them.")
        if width is not None and not is_whole(width):
            raise ArgumentError(f"save: width = {width!r} is no number of pixels.\n  Write width=1200.")
        zoom = number_of(2 if scale is None else scale, "scale") if width is None else width / picture.width
        return png(picture.svg, (max(1, round(picture.width * zoom)), max(1, round(picture.height * zoom))))

    def pdf(self, theme: Theme | None = None) -> bytes:
        """The picture as PDF for print: on white paper, without a border, and text stays text."""
        more = _PAPER if theme_of(theme) != "dark" else ".mg .page{stroke:none}"
        return pdf(drawn(self.trace, self.blocks, self.now, theme or "light", more), self.trace.sentence())

    def tex(self, theme: Theme | None = None) -> str:
        """The picture in TikZ, as a LaTeX document."""
        return tikz(self.trace, self.blocks, self.now, theme_of(theme))

    def text(self) -> str:
        """The text form."""
        return table(self.trace, self.now)

    def html(self, theme: Theme | None = None) -> str:
        """A page with the player, the picture, all numbers and the backward pass step by step, in one file."""
        return page(self.trace, self.state, self.blocks, self.now, theme_of(theme))

    def json(self) -> str:
        """The trace."""
        return self.trace.json()

    def graphviz(self) -> graphviz.Digraph:
        """A Digraph for Graphviz."""
        return digraph(self.trace, self.now)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        theme: Theme | None = None,
        scale: float | None = None,
        width: int | None = None,
    ) -> None:
        r"""Write to `path` what its suffix says: a picture, ``.svg``, ``.png``, ``.pdf``, or ``.tex``, in TikZ; a page,
        ``.html``; ``.txt``, ``.json``, or ``.dot`` and ``.gv`` for Graphviz.

        `theme` is "light" or "dark"; without it, SVG and pages follow the user's theme and the rest is light. A PNG
        is `scale` times as large as the SVG, 2 if not given, or `width` pixels wide. PNG and PDF need the extra
        ``pictures``.

        Raises ArgumentError for another suffix and for an option that files of that suffix do not have, DTypeError for
        what is no path, MissingFileError if its folder does not exist, MissingPackageError without the extra.

        >>> import minigrad as mg
        >>> import pathlib, tempfile
        >>> a = mg.Value(3.0, "a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "square.tex")
        ...     draw(a * a).save(path, theme="light")
        ...     path.read_text(encoding="utf-8").count(r"\mgcard{")
        2
        """
        dot = FileWriter(lambda: str(self.graphviz().source))
        writers = {
            ".svg": FileWriter(self.svg, ("theme",)),
            ".png": FileWriter(self.png, ("theme", "scale", "width")),
            ".pdf": FileWriter(self.pdf, ("theme",)),
            ".tex": FileWriter(self.tex, ("theme",)),
            ".html": FileWriter(self.html, ("theme",)),
            ".txt": FileWriter(self.text),
            ".json": FileWriter(self.json),
            ".dot": dot,
            ".gv": dot,
        }
        save(path, writers, "drawing.save('graph.svg')", theme=theme, scale=scale, width=width)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": figure(self.trace, self.state, self.blocks, self.now), "text/plain": self.text()}


def draw(x: Any, *more: Any, expand: bool | Collection[str] | None = None, step: Any = None) -> Drawing:
    """Draw the graph that ends in `x`, a Value, or in several: ``draw(y)``, ``draw(y, z)``, ``draw([y, z])``.

    Every node shows its name, its rule, its number and its gradient (a dash before ``backward``); an arrow shows the
    local derivative. Names are labels, or else your modules and variables. Nothing in the graph is changed.

    Of tensors only the leaves and small constants outlive ``backward``, and the rest is computed again from these. A
    note says if a leaf was written since, or if a large constant is missing; `mg.record` keeps everything.

    Calls of modules are blocks, titled by name and type, also in a graph that nobody recorded. ``draw(model, x)`` draws
    what an `nn.Module` computes of `x`. `expand` says which blocks are open: all, with False none, or those named, as
    "blocks.0". Where the model raises, the drawing ends in the call that failed. What is wider than a page is drawn in
    rows: a small card mentions what comes from a row above.

    ``draw(step)`` draws what a step of `mg.jit` ran last: forward, backward and update, with the shapes of what kernel
    calls give. Compiled kernels are blocks, titled by what they compute; large steps have a block for each module.
    Memory that the step writes to is called as it was, with a prime.

    With `step` the drawing shows a moment, as the player does: ``draw(y, step=5)`` what is known after 5 steps and what
    happens there. It may also be "start", "seed", where the backward pass begins, "end", a node, which is computed, or
    ``(a, "backward")``, whose gradient is complete, as in a `tour`.

    Raises DTypeError for what is neither a Value, a tensor nor a model, ArgumentError for a model without an input, for
    a step of `mg.jit` that was not called yet, and for a moment that the graph does not have.

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
    trace, places = placed(x, *more)
    state = beginning(trace, expand) or {}
    blocks = None if expand is None else state.get("expanded")
    now = None if step is None else _moment(trace, places, step)
    if now is not None:
        state["position"] = now.position
    return Drawing(trace, state or None, blocks, now)


def _moment(trace: Trace, places: Mapping[Any, int], step: Any) -> Moment:
    if trace.how:
        raise ArgumentError("draw: a recorded step has no moments, for it keeps no numbers.\n  Leave step= out.")
    return Timeline(trace).at(position_of(trace, places, step, "draw"))


def export(x: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write the graph of `x`, a Value or a list of them, a drawing or a player, to a file: see `Drawing.save`, also
    for the options.

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
    (x if isinstance(x, Drawing) else Drawing(to_trace(x), state_of(x))).save(path, **options)


def to_json(x: Any, *more: Any) -> str:
    """The trace of `x`, a Value or several, as JSON; what JSON has no number for is a string.

    >>> import minigrad as mg
    >>> to_json(mg.Value(float("nan"), "a"))[:13]
    '{"version":2,'
    """
    return to_trace(x, *more).json()
