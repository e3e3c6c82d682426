"""Random sampling, whose streams differ between libraries: `test_random` checks the values."""

from samples import sample


def sampled(F, name, *args):
    return getattr(F, name)(*args, generator=F.Generator().manual_seed(1))


SAMPLES = [
    sample("rand", lambda F: sampled(F, "rand", 2, 3), parity=False),
    sample("randn", lambda F: sampled(F, "randn", 2, 3), parity=False),
    sample("randint", lambda F: sampled(F, "randint", 5, (2, 3)), parity=False),
    sample("randperm", lambda F: sampled(F, "randperm", 5), parity=False),
    sample("multinomial", lambda F: sampled(F, "multinomial", F.ones(4), 2), parity=False),
]
