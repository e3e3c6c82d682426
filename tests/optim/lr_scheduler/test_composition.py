"""Chains and sequences of schedulers set PyTorch's rates."""

import pytest

import minigrad as mg
from needs import needs
from scheduler_cases import COMBINED, assert_close, decay, record_rates

needs("numpy")


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch's SequentialLR triggers its own warning
@pytest.mark.parametrize("make", COMBINED.values(), ids=COMBINED)
def test_joined_schedulers_set_pytorch_s_rates(torch, make):
    assert_close(record_rates(mg, make), record_rates(torch, make))


def test_a_chain_can_be_any_part_of_a_sequence():
    def first(s, o):
        return s.SequentialLR(o, [chain(s, o), s.ExponentialLR(o, 0.5)], [3])

    def second(s, o):
        return s.SequentialLR(o, [s.ExponentialLR(o, 0.5), chain(s, o)], [3])

    def chain(s, o):
        return s.ChainedScheduler([s.LinearLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9)])

    alone = [row[0] for row in record_rates(mg, chain, steps=6)]
    assert alone[:3] == pytest.approx([0.01, 0.0325 * 0.9, 0.055 * 0.81])
    assert [row[0] for row in record_rates(mg, first, steps=6)] == pytest.approx([*alone[:3], 0.1, 0.05, 0.025])
    assert [row[0] for row in record_rates(mg, second, steps=7)] == pytest.approx([0.1, 0.05, 0.025, *alone[:4]])


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_sequences_of_all_kinds_set_pytorch_s_rates(torch):
    makes = [
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.1), s.MultiplicativeLR(o, decay), s.LambdaLR(o, decay)], [2, 5]
        ),
        lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1), s.CyclicLR(o, 0.1, 0.3, 3), s.PolynomialLR(o, 6)], [2, 9]),
        lambda s, o: s.SequentialLR(o, [s.MultiStepLR(o, [1, 2]), s.OneCycleLR(o, 0.5, 60)], [4]),
        lambda s, o: s.SequentialLR(
            o, [s.SequentialLR(o, [s.LinearLR(o, 0.1), s.ExponentialLR(o, 0.9)], [2]), s.StepLR(o, 2)], [5]
        ),
        lambda s, o: s.ChainedScheduler(
            [s.SequentialLR(o, [s.LinearLR(o, 0.1), s.ExponentialLR(o, 0.9)], [2]), s.StepLR(o, 3)]
        ),
    ]
    for make in makes:
        assert_close(record_rates(mg, make, steps=40), record_rates(torch, make, steps=40))
