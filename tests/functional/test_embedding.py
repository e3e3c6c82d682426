"""Embeddings: padding, max_norm, and gradients of rows that are looked up repeatedly."""

import numpy as np
import pytest

import minigrad as mg
from arrays import arange
from minigrad.core.errors import ArgumentError

F = mg.functional


def test_negative_padding_idx():
    w = mg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    F.embedding(mg.tensor([0, 1, 2, 2]), w, padding_idx=-1).sum().backward()
    assert w.grad.tolist() == [[1.0], [1.0], [0.0]]


@pytest.mark.parity
@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, 0.5, float("inf")])
def test_max_norm_scales_rows_in_place_as_in_pytorch(torch, p):
    results = []
    for library in (mg, torch):
        outputs = []
        for mode in (None, "sum", "mean", "max"):
            weight = library.tensor(arange(6, 3) * 3).requires_grad_()
            functional = library.nn.functional
            idx = library.tensor([[0, 2, 2], [5, 0, 2]])
            if mode is None:
                y = functional.embedding(idx, weight, 5, 1.0, p, True)
            else:
                y = functional.embedding_bag(idx, weight, max_norm=1.0, norm_type=p, mode=mode, padding_idx=5)
            (y * library.arange(3)).sum().backward()
            outputs += [y.detach(), weight.detach(), weight.grad]
        results.append([np.asarray(x.tolist()) for x in outputs])
    for actual, expected in zip(*results, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5)
    assert abs(results[0][1][1]).max() > 1, "a row that was not looked up must not change"


def test_scale_grad_by_freq_divides_by_the_count_of_each_row():
    """PyTorch's embedding_bag divides by the counts of other rows on the CPU, so compare with the definition."""
    idx, counts = mg.tensor([[0, 2, 2], [5, 0, 2]]), mg.tensor([2.0, 1.0, 3.0, 1.0, 1.0, 1.0])
    for call in (
        lambda w, **options: F.embedding(idx, w, **options),
        lambda w, **options: F.embedding_bag(idx, w, mode="sum", **options),
        lambda w, **options: F.embedding_bag(idx, w, mode="mean", padding_idx=0, **options),
    ):
        weight = mg.tensor(arange(6, 3)).requires_grad_()
        (plain,) = mg.grad((call(weight) ** 2).sum(), weight)
        (scaled,) = mg.grad((call(weight, scale_grad_by_freq=True) ** 2).sum(), weight)
        assert np.array(scaled.tolist()) == pytest.approx(np.array((plain / counts[:, None]).tolist()), rel=1e-6)
    with pytest.raises(ArgumentError, match="max mode does not support scale_grad_by_freq; omit it"):
        F.embedding_bag(idx, weight, mode="max", scale_grad_by_freq=True)


def test_jitted_step_applies_max_norm():
    table = mg.tensor([[3.0, 4.0], [0.0, 0.5]], requires_grad=True)
    step = mg.jit(lambda at: F.embedding(at, table, max_norm=1.0).sum())
    for at, total in (([1, 1], 1.0), ([0, 1], 1.9), ([0, 0], 2.8), ([1, 0], 1.9)):
        with mg.no_grad():
            table.copy_(mg.tensor([[3.0, 4.0], [0.0, 0.5]]))
        assert step(mg.tensor(at)).item() == pytest.approx(total)
