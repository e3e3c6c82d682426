"""A plan maps trial numbers to hyperparameters."""

import pytest

from minigrad.distributed.sweeps.plan import SearchAxis
from needs import needs
from sweeps import make_plan

needs("safetensors")


def test_each_sample_covers_the_grid_and_more_samples_extend_it():
    options = {"grid": {"width": [8, 16], "act": ["relu", "tanh"]}, "random": {"lr": {"from": 1e-4, "to": 1.0}}}
    few, many = make_plan(samples=2, **options), make_plan(samples=5, **options)
    assert (len(few), len(many)) == (8, 20)
    assert [few.values(k) for k in range(1, 9)] == [many.values(k) for k in range(1, 9)]
    first = [few.values(k) for k in range(1, 5)]
    assert [(x["width"], x["act"]) for x in first] == [(8, "relu"), (8, "tanh"), (16, "relu"), (16, "tanh")]
    assert len({x["lr"] for x in first}) == 1
    assert few.values(5)["lr"] != first[0]["lr"]


def test_draws_are_log_uniform_or_uniform_and_depend_on_the_seed():
    logs = SearchAxis("lr", low=1e-4, high=1e-1, log=True)
    drawn = [logs.draw(0, k) for k in range(3000)]
    assert all(1e-4 <= x <= 1e-1 for x in drawn)
    assert all(x == float(f"{x:.4g}") for x in drawn)
    fractions = [sum(10.0**-k <= x < 10.0 ** (1 - k) for x in drawn) / 3000 for k in (4, 3, 2)]
    assert fractions == pytest.approx([1 / 3] * 3, abs=0.03)
    whole = [SearchAxis("n", low=3, high=6).draw(1, k) for k in range(3000)]
    assert [whole.count(x) / 3000 for x in (3, 4, 5, 6)] == pytest.approx([0.25] * 4, abs=0.03)
    assert logs.draw(0, 0) != logs.draw(1, 0)
    assert logs.draw(0, 0) != SearchAxis("eps", low=1e-4, high=1e-1, log=True).draw(0, 0)
    assert {SearchAxis("w", low=16, high=128, log=True).draw(0, k) for k in range(3000)} >= {16, 64, 128}
