"""Plateaus reduce the rate when PyTorch's do, and resume from a saved state."""

import copy
import math

import pytest

import minigrad as mg
from needs import needs
from scheduler_cases import STEPS, assert_close, optimizer_of

needs("numpy")

PLATEAUS = [
    {"patience": 3},
    {"patience": 0, "cooldown": 4, "factor": 0.5},
    {"mode": "max", "patience": 2, "threshold": 0.1, "min_lr": [0.01, 0.001]},
    {"patience": 2, "threshold": 0.05, "threshold_mode": "abs"},
    {"mode": "max", "patience": 2, "threshold": 0.05, "threshold_mode": "abs", "eps": 0.005},
]


@pytest.mark.parity
@pytest.mark.parametrize("options", PLATEAUS, ids=str)
def test_plateaus_reduce_the_rate_as_in_pytorch(torch, options):
    results = []
    for library in (mg, torch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for k in range(STEPS):
            scheduler.step(math.cos(k / 3.0) / (1 + k % 17))
            rates.append([*(group["lr"] for group in optimizer.param_groups), *scheduler.get_last_lr()])
        results.append(rates)
    assert_close(*results)
    assert results[0][0] != results[0][-1]


def test_a_saved_plateau_resumes_as_if_uninterrupted():
    results = []
    for interrupted in (False, True):
        optimizer = optimizer_of(mg)
        scheduler = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, cooldown=3)
        for k in range(40):
            if interrupted and k == 17:
                saved = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
                optimizer = optimizer_of(mg)
                scheduler = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9)
                optimizer.load_state_dict(saved[0])
                scheduler.load_state_dict(saved[1])
            scheduler.step(mg.tensor(1.0 + k % 5))
        results.append((scheduler.get_last_lr(), scheduler.state_dict()))
    assert results[0] == results[1]
    assert results[0][0][0] < 0.1
