"""Two small random number generators on Python ints, for demonstration. Tensors use the generator of `random`.

Each generator updates a state, so that the k-th number requires all previous numbers, while the generator of `random`
computes it from k. An instance is an infinite iterator of integers.

>>> from itertools import islice
>>> list(islice(ParkMiller(1), 3))
[16807, 282475249, 1622650073]
"""

from __future__ import annotations

from minigrad.core.errors import ArgumentError

__all__ = ["ParkMiller", "Xoroshiro64Star"]

WORD = 0xFFFFFFFF  # 32 bits
PRIME = 2**31 - 1


class ParkMiller:
    """Lehmer's generator z = a z mod (2³¹ − 1), whose period contains every integer from 1 to 2³¹ − 2 once.

    It dates from 1951; the constants are those of Park, Miller 1988, "Random number generators: good ones are hard to
    find": a is 16807, or 48271 as they recommended in 1993. With seed 1 the 10,000th number is 1043618065. Each number
    is a multiple of the previous one, so small numbers follow small ones, and pairs lie on lines, as a plot shows.

    `seed` is in [1, 2³¹ − 2]. Raises ArgumentError otherwise, since 0 is a fixed point.
    """

    def __init__(self, seed: int = 1, multiplier: int = 16807) -> None:
        if not 1 <= seed < PRIME:
            raise ArgumentError(f"ParkMiller: expected a seed in [1, {PRIME - 1}], but got {seed}.")
        self.state, self.multiplier = seed, multiplier

    def __iter__(self) -> ParkMiller:
        return self

    def __next__(self) -> int:
        """Return the next integer, in [1, 2³¹ − 2]."""
        self.state = self.multiplier * self.state % PRIME
        return self.state

    def random(self) -> float:
        """Return the next integer divided by 2³¹ − 1, in (0, 1)."""
        return next(self) / PRIME


class Xoroshiro64Star:
    """xoroshiro64*, which updates two 32-bit words by xor, rotation and shift, and returns a multiple of the first.

    Blackman, Vigna 2021, "Scrambled linear pseudorandom number generators", with the constants of the reference
    implementation, xoroshiro64star.c. The period, 2⁶⁴ − 1, contains all states except 0. The lowest output bits are
    the weakest, so floats use the others.

    `seed` is the two words. Raises ArgumentError if both are 0, which is a fixed point, or one has more than 32 bits.

    >>> generator = Xoroshiro64Star((1, 2))
    >>> next(generator), next(generator)
    (2654435771, 327208753)
    """

    def __init__(self, seed: tuple[int, int] = (1, 2)) -> None:
        if not all(0 <= word <= WORD for word in seed) or not any(seed):
            raise ArgumentError(f"Xoroshiro64Star: expected a seed of two 32-bit words, not both 0, but got {seed}.")
        self.state = seed

    def __iter__(self) -> Xoroshiro64Star:
        return self

    def __next__(self) -> int:
        """Return the next integer, in [0, 2³² − 1]."""
        a, b = self.state
        b ^= a
        self.state = _rotate_left(a, 26) ^ b ^ (b << 9 & WORD), _rotate_left(b, 13)
        return a * 0x9E3779BB & WORD

    def random(self) -> float:
        """Return the upper 24 bits of the next integer as a float in [0, 1), exact in float32."""
        return (next(self) >> 8) * 2.0**-24


def _rotate_left(word: int, count: int) -> int:
    """Rotate a 32-bit word left."""
    return (word << count | word >> (32 - count)) & WORD
