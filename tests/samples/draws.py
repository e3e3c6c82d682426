"""Random sampling, whose streams differ between libraries: `test_random` checks the values."""

from samples import sample


def drawn(F, name, *args):
    return getattr(F, name)(*args, generator=F.Generator().manual_seed(1))


SAMPLES = [
    sample("rand", lambda F: drawn(F, "rand", 2, 3), parity=False),
    sample("randn", lambda F: drawn(F, "randn", 2, 3), parity=False),
    sample("randint", lambda F: drawn(F, "randint", 5, (2, 3)), parity=False),
    sample("randperm", lambda F: drawn(F, "randperm", 5), parity=False),
    sample("multinomial", lambda F: drawn(F, "multinomial", F.ones(4), 2), parity=False),
]
