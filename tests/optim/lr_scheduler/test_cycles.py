"""Cyclic rates: restarts at fractional epochs, and the end of a single cycle."""

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from needs import needs
from scheduler_cases import assert_close, optimizer_of

needs("numpy")


@pytest.mark.parity
def test_restarts_accept_fractional_epochs(torch):
    results = []
    for library in (mg, torch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=3, T_mult=2)
        rates = []
        for k in range(40):
            optimizer.step()
            scheduler.step(k / 4)
            rates.append(scheduler.get_last_lr())
        results.append(rates)
    assert_close(*results)


def test_one_cycle_raises_after_its_last_step():
    optimizer = optimizer_of(mg)
    scheduler = mg.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    with pytest.raises(ArgumentError, match="tried to step 4 times, but total_steps is 3"):
        scheduler.step()
