"""Links: the objects that a step reaches, and what the step reads from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

from minigrad.compiler.jit.guards import Guard, guard_entry

__all__ = ["Link", "ReachableObject", "entry_guard_factory", "guard_class", "guard_dict"]


class Link:
    """A guard, and the object that it leads to, if that object is mutable."""

    __slots__ = ("guard", "path", "target")

    def __init__(self, guard: Guard | None, to: Any, path: str) -> None:
        self.guard, self.target, self.path = guard, to, path


class ReachableObject:
    """An object that a step reaches, with its outgoing links."""

    __slots__ = (
        "absence_table",
        "code",
        "links",
        "named_links",
        "names",
        "object",
        "path",
        "tables",
        "unguardable_reason",
    )

    def __init__(self, x: Any, path: str) -> None:
        self.object, self.path = x, path
        self.links: list[Link] = []
        """Links that always count as read."""
        self.named_links: dict[str, Link] = {}
        """Links to attributes, which count as read if the step's code contains their name."""
        self.tables: list[tuple[Callable[[str], Guard], Iterable[str]]] = []
        """Functions that create guards for attributes, and the names of those attributes."""
        self.code: CodeType | None = None
        """The code of a function, whose links count as read only if the function was entered."""
        self.names: frozenset[str] = frozenset()
        """Attribute names that the object itself reads."""
        self.absence_table: Mapping[str, Any] | None = None
        """A table whose missing names a step may observe."""
        self.unguardable_reason = ""
        """The reason that the object cannot be guarded."""

    def add_guards(self, *guards: Guard) -> None:
        """Add guards that do not lead to an object."""
        self.links += [Link(guard, None, "") for guard in guards]


def entry_guard_factory(table: Mapping[str, Any], path: str) -> Callable[[str], Guard]:
    """Return a function that guards an attribute stored in a table."""
    return lambda name: guard_entry(table, name, f"{path}.{name}")


def guard_class(x: Any, name: str) -> Guard:
    return Guard("type({0}) is {1}", (x, type(x)), lambda: type(x), type(x), f"the class of {name}")


def guard_dict(x: Any, name: str) -> Guard:
    """Guard the identity and the length of an object's `__dict__`."""
    table = x.__dict__
    return Guard(
        f"{{0}}.__dict__ is {{1}} and len({{1}}) == {len(table)}",
        (x, table),
        lambda: (id(x.__dict__), len(x.__dict__)),
        (id(table), len(table)),
        name,
        "changed",
    )
