"""Random tensors with PyTorch's functions, from a counter-based generator that is identical on every device.

A generator consists of a seed and a counter, and the k-th random number is a function of seed and k. So ``rand(6)``
returns the same elements as ``rand(2)`` followed by ``rand(4)``, and the state is two integers.

That function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"). It maps
the seed, a 64-bit key, and a 128-bit counter to four 32-bit words. Number k is word k mod 4 for the counter whose lower
half is ⌊k / 4⌋; the upper half identifies the distribution, so that distributions have separate streams. A float32 is
the upper 24 bits of a word times 2⁻²⁴. A float64 uses 53 bits of two words, the lower word first; a normal sample uses
two uniform samples (Box, Muller 1958); an integer is 64 bits modulo the size of the range:
>>> from minigrad.backends.numpy.random import philox
>>> words = philox((0, 0, 0, 0), 7)  # the counter's four words, lowest first
>>> [(word >> 8) * 2.0**-24 for word in words] == rand(4, generator=Generator(7)).tolist()
True

`minigrad.random.generators` has two textbook generators: Park and Miller's, and xoroshiro64*.

`sizes`, `size`, `dtype`, `device` and `requires_grad` are as in `creation`; `generator` None is the default generator.
Samples are not differentiable with respect to the parameters of a distribution. The distributions match PyTorch's; the
samples do not.
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
