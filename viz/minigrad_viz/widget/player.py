"""`step`, `play`, `tour`: a graph as a player in the notebook, which goes through it forward and backward."""

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

_INSTEAD = ", or look at minigrad_viz.draw(…), which needs none"


@explained("players", _INSTEAD)
def made(trace: Trace, **state: Any) -> Player:
    """A player of `trace`, whose traits are `state`.

    Raises MissingPackageError where ipywidgets or anywidget is missing, or of a version that does not work.
    """
    for name in ("ipywidgets", "anywidget"):
        package(name, "players", _INSTEAD)
    from minigrad_viz.widget.widget import Player

    return Player(trace, **state)


def step(x: Any, *more: Any, **state: Any) -> Player:
    """The graph that ends in `x`, or in several, as a player that waits before the first operation.

    In a notebook → goes one step on and ← one back; the numbers of leaves can be changed. The backward pass that is
    shown is one of its own: no ``grad`` is written and no hook is called. `state` are traits of the player, such as
    ``position=3`` or ``granularity="op"``. `Player.save` writes it as a film, or as a page.

    Of a step of `mg.jit` it goes through the kernel calls in the order in which they run, forward only, with those
    numbers that memory still holds.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> player = step(a * a)
    >>> player, player.position, player.leaf_a, a.grad
    (Player(Graph of v₁ = 9.0: 1 leaf, 1 operation.), 0, 3.0, None)
    """
    return made(placed(x, *more)[0], **state)


def play(x: Any, *more: Any, speed: float = 1.0, **state: Any) -> Player:
    """As `step`, and it starts by itself, at `speed` from 0.25 to 4. ``play(x).save("x.gif")`` makes a film.

    >>> import minigrad as mg
    >>> player = play(mg.Value(3.0, "a").exp(), speed=2)
    >>> player.playing, player.speed
    (True, 2.0)
    """
    return made(placed(x, *more)[0], playing=True, speed=speed, **state)


def tour(x: Any, captions: Sequence[tuple[Any, ...]], **state: Any) -> Player:
    """The graph of `x` as a player with a tour: the space bar goes from one stop to the next, each with its caption.

    Each of `captions` is (where, text), and `where` one of

    - a node of the graph or its name: the moment at which it is computed; with "backward", as in
      ``(("a", "backward"), "…")``, at which its gradient is complete,
    - two nodes, the ends of an edge: the moment at which the gradient goes over it,
    - "start", "seed", where the backward pass begins, "end", or the number of a position.

    In (where, text, look) a node, or a scope that is opened, is selected there.
    Raises ArgumentError for what is not in the graph; it says at which stop.

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
