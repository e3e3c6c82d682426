"""`step`, `play`, `tour`: players that step through a graph forward and backward in the notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explained, package
from minigrad_viz.trace import Trace, placed
from minigrad_viz.trace.positions import stops

if TYPE_CHECKING:
    from minigrad_viz.widget.widget import Player

__all__ = ["made", "play", "step", "tour"]

_INSTEAD = ", or use minigrad_viz.draw(…), which needs none"


@explained("players", _INSTEAD)
def made(trace: Trace, **state: Any) -> Player:
    """Return a player of `trace`, with traits `state`.

    Raises MissingPackageError if ipywidgets or anywidget is missing or incompatible.
    """
    for name in ("ipywidgets", "anywidget"):
        package(name, "players", _INSTEAD)
    from minigrad_viz.widget.widget import Player

    return Player(trace, **state)


def step(x: Any, *more: Any, **state: Any) -> Player:
    """Return a player of the graph that computes `x` (or several outputs), paused before the first operation.

    In a notebook → steps forward and ← back; the values of leaves can be changed. The backward pass shown is the
    player's own: it writes no ``grad`` and calls no hook. `state` are traits of the player, such as ``position=3`` or
    ``granularity="op"``. `Player.save` exports it as a film or a page.

    For a step of `mg.jit`, the player shows the kernel calls in execution order, forward only, with the values that are
    still in memory.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> player = step(a * a)
    >>> player, player.position, player.leaf_a, a.grad
    (Player(Graph of v₁ = 9.0: 1 leaf, 1 operation.), 0, 3.0, None)
    """
    return made(placed(x, *more)[0], **state)


def play(x: Any, *more: Any, speed: float = 1.0, **state: Any) -> Player:
    """Return a player as `step` does, which starts playing at `speed` (0.25 to 4). ``play(x).save("x.gif")`` exports a
    film.

    >>> import minigrad as mg
    >>> player = play(mg.Value(3.0, "a").exp(), speed=2)
    >>> player.playing, player.speed
    (True, 2.0)
    """
    return made(placed(x, *more)[0], playing=True, speed=speed, **state)


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
    trace, places = placed(x)
    return made(replace(trace, tours=stops(trace, places, captions)), **state)
