"""Counter-based random number generators: a seed and the number of random numbers drawn."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from minigrad.backends.numpy.random import KEYS, philox
from minigrad.core import symbolic
from minigrad.core.errors import DTypeError
from minigrad.core.modes import modes
from minigrad.core.storage import check_device, device, get_allocator, to_numpy
from minigrad.core.tensor import Tensor, wrap

__all__ = [
    "ROW_OFFSET",
    "Generator",
    "default_generator",
    "draw_lock",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


ROW_OFFSET = 2**32  # Offset between the streams of consecutive rows.
draw_lock = threading.Lock()  # Protects the state of all generators.


class Generator:
    """A thread-safe random number generator, which consists of a seed and a counter.

    >>> Generator(7).initial_seed() == Generator().manual_seed(7).initial_seed()
    True
    """

    def __init__(self, seed: int = 0, device: str | None = None) -> None:
        self.device = check_device(device, "Generator")
        self._row_range = 0, 0
        self.manual_seed(seed)

    def manual_seed(self, seed: Any) -> Generator:
        """Set the seed, in [-2**63, 2**64), and return the generator. Negative seeds are taken modulo 2**64."""
        if not isinstance(seed, int) or not -(2**63) <= seed < 2**64:
            raise DTypeError(f"manual_seed: expected an int in [-2**63, 2**64), but got {seed!r}.")
        with draw_lock:
            self._seed, self._offset = seed % 2**64, 0
        for listener in modes.generator_seeded:
            listener.generator_seeded(self)
        return self

    def seed(self) -> int:
        """Set the seed to a nondeterministic value, and return it."""
        self._report_state_read("seed")
        return self.manual_seed(secrets.randbits(64)).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed."""
        self._report_state_read("initial_seed")
        return self._seed

    def _report_state_read(self, attribute: str) -> None:
        for listener in modes.generator_state_read:
            listener.generator_state_read(attribute)

    def draw(self, count: int, shared: bool = False) -> tuple[int, int]:
        """Advance by `count` random numbers, and return the key of the stream and the offset of the first number.

        >>> generator = Generator(5)
        >>> generator.draw(3), generator.draw(1)
        ((5, 0), (5, 3))
        """
        with draw_lock:
            seed, first_index = self._seed, self._offset + (0 if shared else self._row_range[0] * ROW_OFFSET)
            self._offset += count
        key_and_offset = seed, first_index
        for listener in modes.elements_drawn:
            key_and_offset = listener.elements_drawn(self, first_index, count)
        return key_and_offset

    def next_key(self, shared: bool = False) -> int:
        """Return a new 64-bit key for an independent stream. Rows of `rows` have distinct keys unless `shared`."""
        key, offset = self.draw(1, shared)
        return cast(int, symbolic.apply(_derive_key, key, offset))

    def rows(self, first_row: int = 0, count: int = 0) -> None:
        """Draw numbers only for the `count` rows of a distributed batch that start at `first_row`; 0, 0 undoes this.

        `dropout` then drops the same elements as in the full batch. Other draws use separate streams per row.
        """
        self._row_range = first_row, count

    def key_for(self, numel: int) -> tuple[int, int]:
        """Return a new key for `numel` elements, and the offset of the first element in the full batch of `rows`."""
        first_row, row_count = self._row_range
        shared = bool(row_count) and not numel % row_count
        return self.next_key(shared), first_row * (numel // row_count) if shared else 0

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor of shape (16,) on "cpu": the seed and the counter, little-endian."""
        self._report_state_read("get_state")
        with draw_lock:
            state = np.array([self._seed, self._offset], "<u8")
        return wrap(get_allocator(device("cpu")).copy(state.view(np.uint8)))

    def set_state(self, new_state: Any) -> Generator:
        """Restore a state returned by `get_state`, and return the generator. Raises DTypeError for any other object."""
        if not isinstance(new_state, Tensor) or (new_state.dtype.name, new_state.shape) != ("uint8", (16,)):
            raise DTypeError("set_state: RNG state must be a uint8 tensor of shape (16,), as returned by get_state().")
        seed, offset = np.frombuffer(to_numpy(new_state._array).tobytes(), "<u8").tolist()
        with draw_lock:
            self._seed, self._offset = seed, offset
        return self

    def __repr__(self) -> str:
        return f"<Generator: seed {self._seed}, {self._offset} drawn>"


def _derive_key(key: int, offset: int) -> int:
    """Return the 64-bit key at position `offset` of the key stream of `key`."""
    low, high, *_ = philox((offset & 0xFFFFFFFF, offset >> 32, KEYS, 0), key)
    return int(high << 32 | low)


default_generator = Generator(secrets.randbits(64))
"""The default generator. Its seed is nondeterministic until `manual_seed` is called."""


def manual_seed(seed: int) -> Generator:
    """Set the seed of the default generator, for reproducible results.

    >>> import minigrad as mg
    >>> _ = mg.manual_seed(0); a = mg.rand(3)
    >>> _ = mg.manual_seed(0); bool((mg.rand(3) == a).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Set the seed of the default generator to a nondeterministic value, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state of the default generator returned by `get_rng_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """Context manager that restores the state of the default generator on exit."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
