"""Scalars that each replay reads again: generator offsets, optimizer options and step counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.core.symbolic import SymbolicScalar, SymbolicTrace, concrete, map_symbolic, symbolic_scalars_in
from minigrad.random.generator import draw_lock

__all__ = ["GeneratorDraws", "OptimizerScalars", "is_scalar"]


class GeneratorDraws:
    """Random values that a step draws from one generator: the symbolic seed and offset, and the number of values. If
    the step seeds the generator itself, seed and offset are None, and `state_after` is the generator's state after each
    replay."""

    __slots__ = ("_seed_read", "_start_read", "count", "first_offset", "generator", "offset", "seed", "state_after")

    def __init__(self, generator: Any, book: SymbolicTrace | None = None, first: int = 0) -> None:
        self.generator, self.first_offset, self.count = generator, first, 0
        self.seed: Any = None
        self.offset: Any = None
        self.state_after = (0, 0)
        if book is not None:
            self.seed = book.add_input(self._read_seed, "the seed of a generator")
            self.offset = book.add_input(self._read_start, "the count of a generator", first)
        self._seed_read: int | None = None  # set by replays that read the seed
        self._start_read: int | None = None

    def _read_seed(self) -> int:
        self._seed_read = seed = self.generator._seed
        return seed  # type: ignore[no-any-return]

    def _read_start(self) -> int:
        self._start_read = start = self.generator._offset
        return start  # type: ignore[no-any-return]

    @property
    def is_seeded(self) -> bool:
        """Whether the step seeds the generator."""
        return self.offset is None

    def record_state(self) -> None:
        """Record the state of the generator after tracing."""
        self.state_after = self.generator._seed, self.count

    @staticmethod
    def reserve(draws: Sequence[GeneratorDraws]) -> bool:
        """Advance the generators by the draws of a replay. Return False, without changes, if another thread has drawn
        since the replay read their state."""
        with draw_lock:
            for draw in draws:
                generator = draw.generator
                if draw._start_read not in (None, generator._offset) or draw._seed_read not in (None, generator._seed):
                    return False
            for draw in draws:
                if draw.offset is None:
                    draw.generator._seed, draw.generator._offset = draw.state_after
                else:
                    draw.generator._offset += draw.count
        return True


class OptimizerScalars:
    """Symbolic scalars of an optimizer: options of its groups, counts in its state. `restore_scalars` records their
    updates."""

    def __init__(self, book: SymbolicTrace, optimizer: Any) -> None:
        self.optimizer, self.steps = optimizer, 0
        self.updates: list[tuple[dict[str, Any], str, Any]] = []
        """Updates as (dict, key, symbolic value)."""
        self._replaced: list[tuple[dict[str, Any], str, Any, Any]] = []  # (dict, key, previous value, symbolic value)
        self._state_keys_before = self._state_keys()
        for table, name, value in self._find_scalars():
            option = f"{name} of {optimizer.name}"
            if symbolic_scalars_in(value):  # the step stored one of its arguments there
                if optimizer.traceable:
                    self._replaced.append((table, name, None, None))
                else:
                    table[name] = map_symbolic(value, SymbolicScalar._guarded_value)
                    self.updates.append((table, name, table[name]))
                continue
            if not optimizer.traceable:
                book.add_guard(book.add_input(_scalar_reader(table, name), option).name, value, option)
                continue
            symbol = (
                tuple([book.add_input(_scalar_reader(table, name, k), option) for k in range(len(value))])
                if isinstance(value, tuple)
                else book.add_input(_scalar_reader(table, name), option)
            )
            self._replaced.append((table, name, value, symbol))
            table[name] = symbol

    def _state_keys(self) -> dict[int, frozenset[str]]:
        return {id(p): frozenset(state) for p, state in tuple(self.optimizer.state.items()) if state}

    def _find_scalars(self) -> list[tuple[dict[str, Any], str, Any]]:
        groups = [(group, name, value) for group in self.optimizer.param_groups for name, value in group.items()]
        states = tuple(self.optimizer.state.values())  # a copy, since another thread may step eagerly
        state_entries = [(state, name, value) for state in states for name, value in tuple(state.items())]
        return [(table, name, value) for table, name, value in groups + state_entries if is_scalar(value)]

    def restore_scalars(self) -> str:
        """Restore the optimizer's scalars to their values after the step. Return why a replay would differ, or ""."""
        instability = ""
        for table, name, before, symbol in self._replaced:
            current = table[name]
            if current is symbol:
                table[name] = before
            elif symbolic_scalars_in(current):
                self.updates.append((table, name, current))
                table[name] = concrete(current)
            else:
                instability = f"{name} of {self.optimizer.name} was set"
        for state in tuple(self.optimizer.state.values()):  # state that the step computed from symbolic scalars
            state.update({name: concrete(x) for name, x in state.items() if symbolic_scalars_in(x)})
        if self._state_keys() != self._state_keys_before:
            instability = f"{self.optimizer.name} created its state"
        return instability


def is_scalar(value: Any) -> bool:
    """Return whether an option is a Python scalar or a tuple of scalars, which may be symbolic."""
    if isinstance(value, tuple):
        return all(is_scalar(x) for x in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scalar_reader(table: dict[str, Any], name: str, index: int | None = None) -> Callable[[], Any]:
    """Return a function that reads a scalar again. It raises LookupError if the value is no longer a scalar."""

    def read() -> Any:
        x = table[name] if index is None else table[name][index]
        if x.__class__ is not float and x.__class__ is not int and not is_scalar(x):
            raise LookupError(name)
        return x

    return read
