"""The definition of a mutant."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """A mutation, named after the fault that it causes: it replaces `old` by `new` in the file at `path`.

    `path` is relative to the root of the repository, and `old` occurs in that file once. `tests` are the files below
    `tests/` that should fail, the most likely one first. A mutant that `hangs` is killed by a timeout.
    """

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    hangs: bool = False

    def mutate(self, source: str) -> str:
        """Return the mutated source of the file. Raises ValueError unless `old` occurs in it once."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} occurs {source.count(self.old)} times in {self.path}, expected 1."
            )
        return source.replace(self.old, self.new)
