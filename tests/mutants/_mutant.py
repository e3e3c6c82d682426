"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """A planted fault, named by what goes wrong: in the file at `path`, `new` stands in place of `old`.

    `path` counts from the root of the repository, and `old` occurs in that file once. `tests` are the files below
    `tests/` that should notice, the most likely one first. A fault that `hangs` is noticed by never coming to an end.
    """

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    hangs: bool = False

    def planted(self, text: str) -> str:
        """Return the text of the file with the fault in it. Raises ValueError unless `old` occurs in it once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.path} has {self.old!r} {text.count(self.old)} times, not once.")
        return text.replace(self.old, self.new)
