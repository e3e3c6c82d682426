"""Generators of random numbers: a seed and a count of the numbers used so far."""

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
from minigrad.core.storage import check_device, device, host, memory
from minigrad.core.tensor import Tensor, wrap

__all__ = [
    "FAR",
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


FAR = 2**32  # places between the draws of one row and the next
draw_lock = threading.Lock()  # held while the state of a generator is read or changed


class Generator:
    """Where random numbers come from: a seed, and how many have been drawn. Threads may share one.

    >>> Generator(7).initial_seed() == Generator().manual_seed(7).initial_seed()
    True
    """

    def __init__(self, seed: int = 0, device: str | None = None) -> None:
        self.device = check_device(device, "Generator")
        self._rows = 0, 0
        self.manual_seed(seed)

    def manual_seed(self, seed: Any) -> Generator:
        """Begin the numbers of `seed`, from -2**63 up to 2**64; a negative one counts from 2**64. Returns itself."""
        if not isinstance(seed, int) or not -(2**63) <= seed < 2**64:
            raise DTypeError(f"manual_seed: {seed!r} is not an int from -2**63 up to 2**64.")
        with draw_lock:
            self._seed, self._drawn = seed % 2**64, 0
        for listener in modes.generator_seeded:
            listener.generator_seeded(self)
        return self

    def seed(self) -> int:
        """Begin with a seed that nobody can guess, and return it."""
        self._asked("seed")
        return self.manual_seed(secrets.randbits(64)).initial_seed()

    def initial_seed(self) -> int:
        """The seed that its numbers began with."""
        self._asked("initial_seed")
        return self._seed

    def _asked(self, what: str) -> None:
        for listener in modes.generator_state_read:
            listener.generator_state_read(what)

    def draw(self, count: int, shared: bool = False) -> tuple[int, int]:
        """Use up `count` numbers: the key of the stream and the place of the first, as the ops of random numbers ask.

        >>> generator = Generator(5)
        >>> generator.draw(3), generator.draw(1)
        ((5, 0), (5, 3))
        """
        with draw_lock:
            seed, first = self._seed, self._drawn + (0 if shared else self._rows[0] * FAR)
            self._drawn += count
        found = seed, first
        for listener in modes.elements_drawn:
            found = listener.elements_drawn(self, first, count)
        return found

    def next_key(self, shared: bool = False) -> int:
        """A key of 64 bits, another each time, also for each of `rows` if not `shared`: a stream of its own."""
        key, place = self.draw(1, shared)
        return cast(int, symbolic.apply(_key_at, key, place))

    def rows(self, first: int = 0, count: int = 0) -> None:
        """Draw from now on for `count` rows, from `first` on, of a batch whose others are elsewhere; 0, 0 for none.

        `dropout` drops of them what it would drop in the whole batch. Other draws share no number with another row's.
        """
        self._rows = first, count

    def key_for(self, numbers: int) -> tuple[int, int]:
        """A key for `numbers` numbers, and where they begin in its stream: within `rows` it is the whole batch's."""
        first, count = self._rows
        shared = bool(count) and not numbers % count
        return self.next_key(shared), first * (numbers // count) if shared else 0

    def get_state(self) -> Tensor:
        """Its state as 16 numbers of type uint8, on "cpu": the seed, then how many were drawn, lowest byte first."""
        self._asked("get_state")
        with draw_lock:
            state = np.array([self._seed, self._drawn], "<u8")
        return wrap(memory(device("cpu")).copied(state.view(np.uint8)))

    def set_state(self, new_state: Any) -> Generator:
        """Go on from a state that `get_state` returned. Raises DTypeError for anything else. Returns itself."""
        if not isinstance(new_state, Tensor) or (new_state.dtype.name, new_state.shape) != ("uint8", (16,)):
            raise DTypeError("set_state: this is not a state; give what get_state() returned: 16 numbers of uint8.")
        seed, drawn = np.frombuffer(host(new_state._array).tobytes(), "<u8").tolist()
        with draw_lock:
            self._seed, self._drawn = seed, drawn
        return self

    def __repr__(self) -> str:
        return f"<Generator: seed {self._seed}, {self._drawn} drawn>"


def _key_at(key: int, place: int) -> int:
    """The key of 64 bits at a place of the stream of keys."""
    low, high, *_ = philox((place & 0xFFFFFFFF, place >> 32, KEYS, 0), key)
    return int(high << 32 | low)


default_generator = Generator(secrets.randbits(64))
"""Where numbers come from unless a generator is given. Its seed is another in each process, until `manual_seed`."""


def manual_seed(seed: int) -> Generator:
    """Begin the default generator's numbers of `seed`, so that a program draws the same numbers each time.

    >>> import minigrad as mg
    >>> _ = mg.manual_seed(0); a = mg.rand(3)
    >>> _ = mg.manual_seed(0); bool((mg.rand(3) == a).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Begin the default generator with a seed that nobody can guess, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator began with."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go on from a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """A block after which the default generator goes on as if the block had drawn nothing."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


# --- new tensors ---
