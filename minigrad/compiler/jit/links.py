"""Links: one object that a step reaches, and what it reads from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

from minigrad.compiler.jit.guards import Guard, entry

__all__ = ["Link", "Object", "from_table", "of_class", "table_of"]


class Link:
    """A guard, and the object that is behind it, if that can change."""

    __slots__ = ("guard", "path", "to")

    def __init__(self, guard: Guard | None, to: Any, path: str) -> None:
        self.guard, self.to, self.path = guard, to, path


class Object:
    """One object that a step reaches, and what it reaches from there."""

    __slots__ = ("absent", "code", "links", "named", "names", "path", "refused", "tables", "x")

    def __init__(self, x: Any, path: str) -> None:
        self.x, self.path = x, path
        self.links: list[Link] = []
        """What is read with it."""
        self.named: dict[str, Link] = {}
        """Attributes that are read where the step has the name."""
        self.tables: list[tuple[Callable[[str], Guard], Iterable[str]]] = []
        """How such attributes are guarded, and which there are."""
        self.code: CodeType | None = None
        """Of a function; links count only where it was entered."""
        self.names: frozenset[str] = frozenset()
        """Names of attributes that it reads itself."""
        self.absent: Mapping[str, Any] | None = None
        """Where a step may find that an attribute is not there."""
        self.refused = ""
        """Why it cannot be guarded."""

    def own(self, *guards: Guard) -> None:
        """Guards that have nothing behind them."""
        self.links += [Link(guard, None, "") for guard in guards]


def from_table(table: Mapping[str, Any], path: str) -> Callable[[str], Guard]:
    """How an attribute is guarded that is kept in a table."""
    return lambda name: entry(table, name, f"{path}.{name}")


def of_class(x: Any, what: str) -> Guard:
    return Guard("type({0}) is {1}", (x, type(x)), lambda: type(x), type(x), f"the class of {what}")


def table_of(x: Any, what: str) -> Guard:
    """That an object has the same `__dict__`, with as many attributes."""
    table = x.__dict__
    return Guard(
        f"{{0}}.__dict__ is {{1}} and len({{1}}) == {len(table)}",
        (x, table),
        lambda: (id(x.__dict__), len(x.__dict__)),
        (id(table), len(table)),
        what,
        "changed",
    )
