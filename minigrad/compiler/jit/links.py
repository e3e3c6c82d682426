"""Links between the objects that a step can read, with the guards of these links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

from minigrad.compiler.jit.guards import Guard, guard_entry

__all__ = ["Link", "ReachableObject", "entry_guard_factory", "guard_class", "guard_dict"]


class Link:
    """Reference to an object, `target`, with the guard that detects a change of the reference, if there is one."""

    __slots__ = ("guard", "path", "target")

    def __init__(self, guard: Guard | None, to: Any, path: str) -> None:
        self.guard, self.target, self.path = guard, to, path


class ReachableObject:
    """Object that a step can read, with links to the objects that it references."""

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
        """Pairs of a function that creates the guard of an attribute, and the names of the attributes."""
        self.code: CodeType | None = None
        """The code of a function, whose links count as read only if the function was entered."""
        self.names: frozenset[str] = frozenset()
        """Attribute names that the object itself reads."""
        self.absence_table: Mapping[str, Any] | None = None
        """Attribute table in which a step may detect that a name is missing."""
        self.unguardable_reason = ""
        """The reason that the object cannot be guarded."""

    def add_guards(self, *guards: Guard) -> None:
        """Add guards that are not associated with another object."""
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
