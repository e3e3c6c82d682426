"""`draw` and the `Drawing` that it returns: a figure in a notebook, text in a terminal, a file in several formats."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from minigrad.core.errors import ArgumentError
from minigrad_viz.pictures.file_writers import FileWriter, check_positive, check_theme, is_positive_int, save
from minigrad_viz.pictures.graphviz import digraph
from minigrad_viz.pictures.html import figure, page, player_state
from minigrad_viz.pictures.moments import render_moment
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.pictures.rendering import render_pdf, render_png
from minigrad_viz.pictures.text import table
from minigrad_viz.pictures.tikz import render_tikz
from minigrad_viz.trace import Trace, to_trace, trace_with_indices
from minigrad_viz.trace.history import Moment, Timeline
from minigrad_viz.trace.models import initial_state
from minigrad_viz.trace.positions import position_of

if TYPE_CHECKING:
    import graphviz

__all__ = ["Drawing", "draw", "export", "to_json"]

_PAPER_CSS = ".mg .page{fill:#ffffff;stroke:none}.mg .ground{fill:#ffffff}"


class Drawing:
    """A snapshot of a graph, for display and export. Gradients computed later do not change it."""

    def __init__(
        self,
        trace: Trace,
        state: Mapping[str, Any] | None = None,
        blocks: Collection[int] | None = None,
        now: Moment | None = None,
    ) -> None:
        self.trace = trace
        self.state = state  # initial state of a player
        self.blocks = blocks  # open blocks; if None, as many blocks are opened as the drawing can show legibly
        self.now = now  # moment to show; None for the final state

    def svg(self, theme: Theme | None = None) -> str:
        """Return the drawing as SVG. It follows the user's light or dark theme unless `theme` is given."""
        return render_moment(self.trace, self.blocks, self.now, check_theme(theme)).svg

    def png(self, theme: Theme | None = None, scale: float | None = None, width: int | None = None) -> bytes:
        """Return the drawing as PNG. Its size is `scale` (default: 2) times that of the SVG, or `width` pixels wide."""
        picture = render_moment(self.trace, self.blocks, self.now, check_theme(theme) or "light")
        if width is not None and scale is not None:
            raise ArgumentError(
                "save: got both scale and width, and either one sets the size.\n  Pass only one of them."
            )
        if width is not None and not is_positive_int(width):
            raise ArgumentError(
                f"save: width must be a positive integer, in pixels, but got {width!r}.\n  Write width=1200."
            )
        zoom = check_positive(2 if scale is None else scale, "scale") if width is None else width / picture.width
        return render_png(picture.svg, (max(1, round(picture.width * zoom)), max(1, round(picture.height * zoom))))

    def pdf(self, theme: Theme | None = None) -> bytes:
        """Return the drawing as PDF for print, without a border, and with selectable text."""
        css = _PAPER_CSS if check_theme(theme) != "dark" else ".mg .page{stroke:none}"
        return render_pdf(
            render_moment(self.trace, self.blocks, self.now, theme or "light", css), self.trace.sentence()
        )

    def tex(self, theme: Theme | None = None) -> str:
        """Return the drawing as a LaTeX document that uses TikZ."""
        return render_tikz(self.trace, self.blocks, self.now, check_theme(theme))

    def text(self) -> str:
        """Return the drawing as a text table."""
        return table(self.trace, self.now)

    def html(self, theme: Theme | None = None) -> str:
        """Return a self-contained HTML page with the player and tables of all values and backward steps."""
        return page(self.trace, self.state, self.blocks, self.now, check_theme(theme))

    def json(self) -> str:
        """Return the trace as JSON."""
        return self.trace.json()

    def graphviz(self) -> graphviz.Digraph:
        """Return a ``graphviz.Digraph``."""
        return digraph(self.trace, self.now)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        theme: Theme | None = None,
        scale: float | None = None,
        width: int | None = None,
    ) -> None:
        r"""Save the drawing to `path`, in the format of its suffix.

        The suffixes are ``.svg``, ``.png``, ``.pdf``, ``.tex`` (TikZ), ``.html``, ``.txt``, ``.json``, and ``.dot`` or
        ``.gv`` (Graphviz).

        `theme` is "light" or "dark"; by default SVG and HTML follow the user's theme and the other formats are light. A
        PNG is `scale` times the size of the SVG (default: 2) or `width` pixels wide. PNG and PDF need the extra
        ``pictures``.

        Raises ArgumentError for an unsupported suffix or an option that the format does not support, DTypeError if
        `path` is not a path, MissingFileError if its directory does not exist, MissingPackageError without the extra.

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
    """Draw the graph of `x`, a Value, or of several Values: ``draw(y)``, ``draw(y, z)``, ``draw([y, z])``.

    Each node shows its name, formula, value and gradient (a dash before ``backward``); an edge shows its local
    derivative. A node is named by its label, or else by its module or variable. The graph is not modified.

    For tensors, only leaves and small constants are stored after ``backward``; the other values are recomputed from
    them. A note reports a leaf that was modified since then, or a large constant that was freed; `mg.record` saves
    every value.

    Module calls are blocks, titled by name and type, even without `mg.record`. ``draw(model, x)`` draws the forward
    pass of an `nn.Module` on `x`. `expand` selects the open blocks: True for all, False for none, or a list of names
    such as "blocks.0". If the model raises an error, the drawing ends with the call that failed. A drawing wider
    than a page wraps into rows, in which small cards refer to nodes in earlier rows.

    `x` may also be a PyTorch tensor, several of them, or a PyTorch model with its input; the model's buffers and the
    random state are restored. Within `record`, values, modules and source lines of PyTorch are saved too.

    ``draw(step)`` draws the last run of a step compiled by `mg.jit`: forward, backward and update, with the output
    shapes of kernel calls. Compiled kernels are blocks, titled by their results; large steps have a block for each
    module. A value that the step overwrites keeps its name, with a prime.

    With `step` the drawing shows a moment, as in the player: ``draw(y, step=5)`` shows the state after 5 steps. `step`
    may also be "start", "seed" (the start of the backward pass), "end", a node (when it is computed), or
    ``(a, "backward")`` (when the gradient of `a` is complete), as in a `tour`.

    Raises DTypeError unless `x` is a Value, a tensor or a model, ArgumentError for a model without an input, for a step
    of `mg.jit` that has not been called, and for a moment that does not exist.

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
    trace, indices = trace_with_indices(x, *more)
    state = initial_state(trace, expand) or {}
    blocks = None if expand is None else state.get("expanded")
    moment = None if step is None else _moment_at(trace, indices, step)
    if moment is not None:
        state["position"] = moment.position
    return Drawing(trace, state or None, blocks, moment)


def _moment_at(trace: Trace, indices: Mapping[Any, int], step: Any) -> Moment:
    if trace.execution:
        raise ArgumentError("draw: a captured step has no moments because it saves no values.\n  Omit step=.")
    return Timeline(trace).at(position_of(trace, indices, step, "draw"))


def export(x: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Save the graph of `x`, a Value, a list of Values, a drawing or a player, to a file.

    `Drawing.save` describes the formats and options.

    An ``.html`` page contains the player and works offline. The page of a player opens in the player's current state,
    and a URL that ends in ``#step=5`` opens at that step. Raises ArgumentError for an unsupported suffix.

    >>> import minigrad as mg
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "y.html")
    ...     export(mg.Value(3.0, "a").exp(), path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    (x if isinstance(x, Drawing) else Drawing(to_trace(x), player_state(x))).save(path, **options)


def to_json(x: Any, *more: Any) -> str:
    """Return the trace of one or several Values as JSON, in which NaN and infinities are strings.

    >>> import minigrad as mg
    >>> to_json(mg.Value(float("nan"), "a"))[:13]
    '{"version":2,'
    """
    return to_trace(x, *more).json()
