"""`step`, `play`, `tour`: players that step through a graph forward and backward in the notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explain_import_errors, import_package
from minigrad_viz.trace import Trace, trace_with_indices
from minigrad_viz.trace.positions import make_stops

if TYPE_CHECKING:
    from minigrad_viz.widget.widget import Player

__all__ = ["make_player", "play", "step", "tour"]

ALTERNATIVE = ", or use minigrad_viz.draw(…), which needs none"


@explain_import_errors("players", ALTERNATIVE)
def make_player(trace: Trace, **state: Any) -> Player:
    """Return a player of `trace` with the traits in `state`.

    Raises MissingPackageError if ipywidgets or anywidget is missing or incompatible.
    """
    for package_name in ("ipywidgets", "anywidget"):
        import_package(package_name, "players", ALTERNATIVE)
    from minigrad_viz.widget.widget import Player

    return Player(trace, **state)


def step(x: Any, *inputs: Any, **state: Any) -> Player:
    """Return a player of the graph that computes `x` (or several outputs), paused before the first operation.

    In a notebook, → steps forward and ← steps back; the values of leaves can be changed. The player runs its own
    backward pass, which writes no ``grad`` and calls no hook. `state` are traits of the player, such as ``position=3``
    or ``granularity="op"``. `Player.save` exports it as a film or a page.

    For a PyTorch tensor, or a PyTorch model with its inputs, values and gradients are those that PyTorch computes, and
    the player shows the pass of ``loss.backward()`` if that was called. Compute the tensor within `record`.

    For a step of `mg.jit`, the player shows the kernel calls in execution order, forward only, with the values that are
    still in memory.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> player = step(a * a)
    >>> player, player.position, player.leaf_a, a.grad
    (Player(Graph of v₁ = 9.0: 1 leaf, 1 operation.), 0, 3.0, None)
    """
    return make_player(trace_with_indices(x, *inputs)[0], **state)


def play(x: Any, *inputs: Any, speed: float = 1.0, **state: Any) -> Player:
    """Return a player like `step`, which starts playing at `speed` (0.25 to 4). ``play(x).save("x.gif")`` exports a
    film. PyTorch tensors and models are accepted as well.

    >>> import minigrad as mg
    >>> player = play(mg.Value(3.0, "a").exp(), speed=2)
    >>> player.playing, player.speed
    (True, 2.0)
    """
    return make_player(trace_with_indices(x, *inputs)[0], playing=True, speed=speed, **state)


def tour(x: Any, captions: Sequence[tuple[Any, ...]], **state: Any) -> Player:
    """Return a player of the graph of `x` with a tour: the space bar moves to the next stop, each with its caption.

    Each of `captions` is (where, text), and `where` one of

    - a node of the graph or its name: the position at which it is computed; with "backward", as in
      ``(("a", "backward"), "…")``, at which its gradient is complete,
    - two nodes, the ends of an edge: the position at which the gradient flows over it,
    - "start", "seed" (the start of the backward pass), "end", or an integer position.

    In (where, text, look) the node, or the scope that is opened, is selected there. Raises ArgumentError, with the
    number of the stop, for anything that is not in the graph.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> y = a * a
    >>> seen = tour(y, [(y, "a times a"), ((a, y), "one path back"), (("a", "backward"), "two paths, added", a)])
    >>> for stop in seen.trace.tours:
    ...     print(*stop)
    1 a times a None
    3 one path back None
    4 two paths, added n0
    """
    trace, indices = trace_with_indices(x)
    return make_player(replace(trace, tours=make_stops(trace, indices, captions)), **state)
