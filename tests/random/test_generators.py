"""The demonstration generators return their published sequences."""

from itertools import islice

import pytest

from minigrad.core.errors import ArgumentError
from minigrad.random.generators import ParkMiller, Xoroshiro64Star


def test_park_and_miller_s_10000th_number_is_the_published_one():
    """Park, Miller 1988, section 3; for 48271 that of C++'s minstd_rand in its standard, [rand.predef]."""
    assert next(islice(ParkMiller(1), 9_999, None)) == 1043618065
    assert next(islice(ParkMiller(1, multiplier=48271), 9_999, None)) == 399268537


def test_xoroshiro64star_matches_its_reference():
    """From the words 1 and 2: the output of Blackman and Vigna's xoroshiro64star.c, as in the tests of rand_xoshiro."""
    expected = [
        2654435771, 327208753, 4063491769, 4259754937, 261922412, 168123673, 552743735, 1672597395, 1031040050,
        2755315674,
    ]  # fmt: skip
    assert list(islice(Xoroshiro64Star((1, 2)), 10)) == expected


@pytest.mark.parametrize("make", [lambda: ParkMiller(7), lambda: Xoroshiro64Star((7, 7))], ids=range(2))
def test_a_seed_gives_reproducible_uniform_samples(make):
    first, second = make(), make()
    values = [first.random() for _ in range(10_000)]
    assert values == [second.random() for _ in range(10_000)]
    assert 0 <= min(values) < 0.001
    assert 0.999 < max(values) < 1
    assert sum(values) / 10_000 == pytest.approx(0.5, abs=0.01)  # three standard deviations: 0.0087


def test_park_and_miller_s_generator_has_full_period():
    """The period is p - 1: 16807 is a primitive root, by Fermat's theorem and the table of 1988."""
    p = 2**31 - 1
    assert pow(16807, p - 1, p) == 1
    assert all(pow(16807, (p - 1) // q, p) != 1 for q in (2, 3, 7, 11, 31, 151, 331))  # the prime factors of p - 1


@pytest.mark.parametrize(
    ("generator", "seed"), [(ParkMiller, 0), (ParkMiller, 2**31 - 1), (Xoroshiro64Star, (0, 0))], ids=range(3)
)
def test_a_fixed_point_seed_raises(generator, seed):
    with pytest.raises(ArgumentError, match="expected a seed"):
        generator(seed)
