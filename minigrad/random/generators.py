"""Two small generators of random numbers to look at, on plain ints. Tensors are drawn from a third, by `random`.

Each is a state and a rule for the next: number k can be had only by way of those before it, where the generator of
`random` makes number k from k. An instance is an iterator of whole numbers that never ends.

>>> from itertools import islice
>>> list(islice(ParkMiller(1), 3))
[16807, 282475249, 1622650073]
"""

from __future__ import annotations

from minigrad.core.errors import ArgumentError

__all__ = ["ParkMiller", "Xoroshiro64Star"]

WORD = 0xFFFFFFFF  # of 32 bits
PRIME = 2**31 - 1


class ParkMiller:
    """z = a z mod (2³¹ − 1): from 1 to 2³¹ − 2 it visits each number once, then begins again.

    Lehmer's rule of 1951 with the numbers of Park, Miller 1988, "Random number generators: good ones are hard to find":
    a is 16807, or 48271 as they recommended in 1993. From seed 1 the 10,000th number is 1043618065. The next number is
    a multiple of this one, so a small one is followed by a small one, and pairs lie on lines: see it in a picture.

    `seed` is from 1 to 2³¹ − 2; else ArgumentError, since 0 would stay 0.
    """

    def __init__(self, seed: int = 1, multiplier: int = 16807) -> None:
        if not 1 <= seed < PRIME:
            raise ArgumentError(f"ParkMiller: the seed is from 1 to {PRIME - 1}, not {seed}: 0 would only give 0.")
        self.state, self.multiplier = seed, multiplier

    def __iter__(self) -> ParkMiller:
        return self

    def __next__(self) -> int:
        """The next number, from 1 to 2³¹ − 2."""
        self.state = self.multiplier * self.state % PRIME
        return self.state

    def random(self) -> float:
        """The next number as a fraction of 2³¹ − 1, between 0 and 1 and neither."""
        return next(self) / PRIME


class Xoroshiro64Star:
    """xoroshiro64*: two words of 32 bits, mixed by exclusive or, rotation and shift; a multiple of the first comes out.

    Blackman, Vigna 2021, "Scrambled linear pseudorandom number generators", with the multiplier and distances of their
    reference, xoroshiro64star.c. It visits each of the 2⁶⁴ − 1 states that are not 0. The lowest bits of what comes
    out are the weakest, so fractions are made of the others.

    `seed` is the two words; ArgumentError where both are 0, which would stay 0, or one has more than 32 bits.

    >>> generator = Xoroshiro64Star((1, 2))
    >>> next(generator), next(generator)
    (2654435771, 327208753)
    """

    def __init__(self, seed: tuple[int, int] = (1, 2)) -> None:
        if not all(0 <= word <= WORD for word in seed) or not any(seed):
            raise ArgumentError(f"Xoroshiro64Star: the seed is two words of 32 bits, not both 0; this is {seed}.")
        self.state = seed

    def __iter__(self) -> Xoroshiro64Star:
        return self

    def __next__(self) -> int:
        """The next number, from 0 to 2³² − 1."""
        a, b = self.state
        b ^= a
        self.state = _rotated(a, 26) ^ b ^ (b << 9 & WORD), _rotated(b, 13)
        return a * 0x9E3779BB & WORD

    def random(self) -> float:
        """The upper 24 bits of the next number as a fraction, from 0 up to, and without, 1: a float32 holds it."""
        return (next(self) >> 8) * 2.0**-24


def _rotated(word: int, by: int) -> int:
    """What is pushed out of 32 bits on the left comes in on the right."""
    return (word << by | word >> (32 - by)) & WORD
