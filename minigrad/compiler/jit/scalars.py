"""Scalars that each replay reads again: generator offsets, optimizer options and step counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.core.symbolic import Book, Traced, plain, replaced, traced
from minigrad.random.generator import draw_lock

__all__ = ["Draw", "Numbers", "is_number"]


class Draw:
    """A step's draws from one generator: the symbolic seed and offset, and the number of values drawn. Seed and offset
    are None if the step seeds the generator itself; `after` is then the generator's state after each replay."""

    __slots__ = ("_seed_read", "_start_read", "after", "count", "first", "generator", "place", "seed")

    def __init__(self, generator: Any, book: Book | None = None, first: int = 0) -> None:
        self.generator, self.first, self.count = generator, first, 0
        self.seed: Any = None
        self.place: Any = None
        self.after = (0, 0)
        if book is not None:
            self.seed = book.source(self._read_seed, "the seed of a generator")
            self.place = book.source(self._read_start, "the count of a generator", first)
        self._seed_read: int | None = None  # set by a replay that depends on it
        self._start_read: int | None = None

    def _read_seed(self) -> int:
        self._seed_read = found = self.generator._seed
        return found  # type: ignore[no-any-return]

    def _read_start(self) -> int:
        self._start_read = found = self.generator._drawn
        return found  # type: ignore[no-any-return]

    @property
    def seeded(self) -> bool:
        """Whether the step seeds the generator."""
        return self.place is None

    def settle(self) -> None:
        """Record the state of the generator after tracing."""
        self.after = self.generator._seed, self.count

    @staticmethod
    def reserve(draws: Sequence[Draw]) -> bool:
        """Advance the generators by the draws of a replay. Return False, without changes, if another thread has drawn
        since the replay read their state."""
        with draw_lock:
            for one in draws:
                of = one.generator
                if one._start_read not in (None, of._drawn) or one._seed_read not in (None, of._seed):
                    return False
            for one in draws:
                if one.place is None:
                    one.generator._seed, one.generator._drawn = one.after
                else:
                    one.generator._drawn += one.count
        return True


class Numbers:
    """Symbolic scalars of an optimizer: options of its groups, counts in its state. `settle` records their updates."""

    def __init__(self, book: Book, optimizer: Any) -> None:
        self.optimizer, self.steps = optimizer, 0
        self.updates: list[tuple[dict[str, Any], str, Any]] = []
        """Updates as (dict, key, symbolic value)."""
        self._put: list[tuple[dict[str, Any], str, Any, Any]] = []  # (dict, key, previous value, symbolic value)
        self._known = self._memories()
        for where, name, value in self._found():
            what = f"{name} of {optimizer.name}"
            if traced(value):  # the step stored one of its arguments there
                if optimizer.traceable:
                    self._put.append((where, name, None, None))
                else:
                    where[name] = replaced(value, Traced._known)
                    self.updates.append((where, name, where[name]))
                continue
            if not optimizer.traceable:
                book.condition(book.source(_reader(where, name), what).name, value, what)
                continue
            instead = (
                tuple([book.source(_reader(where, name, k), what) for k in range(len(value))])
                if isinstance(value, tuple)
                else book.source(_reader(where, name), what)
            )
            self._put.append((where, name, value, instead))
            where[name] = instead

    def _memories(self) -> dict[int, frozenset[str]]:
        return {id(p): frozenset(kept) for p, kept in tuple(self.optimizer.state.items()) if kept}

    def _found(self) -> list[tuple[dict[str, Any], str, Any]]:
        groups = [(group, name, value) for group in self.optimizer.param_groups for name, value in group.items()]
        states = tuple(self.optimizer.state.values())  # a copy, since another thread may step eagerly
        memories = [(kept, name, value) for kept in states for name, value in tuple(kept.items())]
        return [(where, name, value) for where, name, value in groups + memories if is_number(value)]

    def settle(self) -> str:
        """Restore the optimizer's scalars with their values after the step. Return why a replay would differ, or ""."""
        unstable = ""
        for where, name, before, instead in self._put:
            now = where[name]
            if now is instead:
                where[name] = before
            elif traced(now):
                self.updates.append((where, name, now))
                where[name] = plain(now)
            else:
                unstable = f"{name} of {self.optimizer.name} was set"
        for kept in tuple(self.optimizer.state.values()):  # state that the step computed from symbolic scalars
            kept.update({name: plain(x) for name, x in kept.items() if traced(x)})
        if self._memories() != self._known:
            unstable = f"{self.optimizer.name} created its state"
        return unstable


def is_number(value: Any) -> bool:
    """Whether an option is a Python scalar, or a tuple of them, that may be symbolic."""
    if isinstance(value, tuple):
        return all(is_number(x) for x in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reader(where: dict[str, Any], name: str, index: int | None = None) -> Callable[[], Any]:
    """Return a function that reads a scalar again. It raises LookupError if the value is no longer a scalar."""

    def read() -> Any:
        x = where[name] if index is None else where[name][index]
        if x.__class__ is not float and x.__class__ is not int and not is_number(x):
            raise LookupError(name)
        return x

    return read
