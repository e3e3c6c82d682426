"""Embeddings: padding, max_norm, and gradients of rows that are looked up repeatedly."""

import numpy as np
import pytest

import minigrad as mg
from counted import numbers
from minigrad.core.errors import ArgumentError

F = mg.functional


def test_a_padding_index_counts_from_the_end_too():
    w = mg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    F.embedding(mg.tensor([0, 1, 2, 2]), w, padding_idx=-1).sum().backward()
    assert w.grad.tolist() == [[1.0], [1.0], [0.0]]


@pytest.mark.parity
@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, 0.5, float("inf")])
def test_rows_that_are_looked_up_are_shortened_in_place_as_in_pytorch(torch, p):
    found = []
    for library in (mg, torch):
        told = []
        for bag in (None, "sum", "mean", "max"):
            weight = library.tensor(numbers(6, 3) * 3).requires_grad_()
            look = library.nn.functional
            at = library.tensor([[0, 2, 2], [5, 0, 2]])
            if bag is None:
                y = look.embedding(at, weight, 5, 1.0, p, True)
            else:
                y = look.embedding_bag(at, weight, max_norm=1.0, norm_type=p, mode=bag, padding_idx=5)
            (y * library.arange(3)).sum().backward()
            told += [y.detach(), weight.detach(), weight.grad]
        found.append([np.asarray(x.tolist()) for x in told])
    for ours, its in zip(*found, strict=True):
        assert ours == pytest.approx(its, rel=1e-5)
    assert abs(found[0][1][1]).max() > 1, "a row that was not looked up must not change"


def test_the_gradient_of_a_row_is_divided_by_how_often_it_was_looked_up():
    """PyTorch's embedding_bag divides by the counts of other rows on the CPU, so compare with the definition."""
    at, counts = mg.tensor([[0, 2, 2], [5, 0, 2]]), mg.tensor([2.0, 1.0, 3.0, 1.0, 1.0, 1.0])
    for call in (
        lambda w, **more: F.embedding(at, w, **more),
        lambda w, **more: F.embedding_bag(at, w, mode="sum", **more),
        lambda w, **more: F.embedding_bag(at, w, mode="mean", padding_idx=0, **more),
    ):
        weight = mg.tensor(numbers(6, 3)).requires_grad_()
        (plain,) = mg.grad((call(weight) ** 2).sum(), weight)
        (scaled,) = mg.grad((call(weight, scale_grad_by_freq=True) ** 2).sum(), weight)
        assert np.array(scaled.tolist()) == pytest.approx(np.array((plain / counts[:, None]).tolist()), rel=1e-6)
    with pytest.raises(ArgumentError, match="max mode does not support scale_grad_by_freq; omit it"):
        F.embedding_bag(at, weight, mode="max", scale_grad_by_freq=True)


def test_a_recorded_step_shortens_the_rows_that_it_is_given():
    table = mg.tensor([[3.0, 4.0], [0.0, 0.5]], requires_grad=True)
    step = mg.jit(lambda at: F.embedding(at, table, max_norm=1.0).sum())
    for at, total in (([1, 1], 1.0), ([0, 1], 1.9), ([0, 0], 2.8), ([1, 0], 1.9)):
        with mg.no_grad():
            table.copy_(mg.tensor([[3.0, 4.0], [0.0, 0.5]]))
        assert step(mg.tensor(at)).item() == pytest.approx(total)
