"""Random numbers by counting: the key that a generator gives out next follows from its seed and how many it gave."""

from __future__ import annotations

__all__ = ["Generator", "default_generator", "manual_seed"]


class Generator:
    """Gives out keys. Whoever draws random numbers by one of them draws the same each time."""

    def __init__(self, seed: int = 0) -> None:
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Begin the keys of `seed`, taken modulo 2**64."""
        self.seed, self.counter = int(seed) % 2**64, 0
        return self

    def next_key(self) -> int:
        """A key below 2**128 that was not given out since the seed was set."""
        self.counter += 1
        return self.seed << 64 | self.counter


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the generator that functions use."""
    return default_generator.manual_seed(seed)
