"""Random tensors, from generators that count: PyTorch's functions, with numbers that are the same on every device.

A generator is a seed and a count of the numbers used so far, and number k of a seed is a function of k. So
``rand(6)`` draws what ``rand(2)`` and then ``rand(4)`` do, and a state is two numbers.

That function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"). It
makes of the seed, a key of 64 bits, and of a counter of 128, four words of 32 bits. Number k is word k mod 4 of the
counter whose lower half is ⌊k / 4⌋; the upper half says which kind of number is drawn, so that no two kinds share any.
A float32 is the upper 24 bits of a word times 2⁻²⁴; a float64 takes two words, the lower first, and 53 bits; a normal
number takes two even ones (Box, Muller 1958); a whole number is 64 bits modulo how many there are:

>>> from minigrad.backends.numpy.random import philox
>>> words = philox((0, 0, 0, 0), 7)  # of the counter's four words the lowest comes first
>>> [(word >> 8) * 2.0**-24 for word in words] == rand(4, generator=Generator(7)).tolist()
True

`minigrad.random.generators` has two of another kind, to look at: Park and Miller's, and xoroshiro64*.

`sizes`, `size`, `dtype`, `device` and `requires_grad` are as in `creation`; `generator` is the default one for None. No
gradient flows into parameters of a distribution. The distributions are PyTorch's, the elements drawn are not.
"""

from minigrad.random.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from minigrad.random.tensors import (
    bernoulli,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]
