"""Early stopping ends training without improvement, and restores the best weights."""

import re

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError
from minigrad.optim import SGD
from minigrad.training import EarlyStop, fit
from needs import needs

needs("safetensors")


def scripted_metric(*scores):
    """Create a metric that returns these scores in order."""
    waiting = list(scores)
    return lambda output, target: waiting.pop(0)


def run_with_scores(scores, early_stop, epochs=6, **options):
    """Train one weight, by 1 per epoch, with `scores` as the validation metric."""
    model = nn.Linear(1, 1, bias=False)
    with mg.no_grad():
        model.weight.fill_(0.0)
    batch = mg.ones(1, 1), mg.ones(1, 1)
    history = fit(model, [batch], SGD(model.parameters(), 1.0), lambda a, b: -a.sum(), epochs=epochs, validate=[batch],
                  metrics={"score": scripted_metric(*scores)}, early_stop=early_stop, progress=False,
                  **options)  # fmt: skip
    return model.weight.item(), len(history), history.stopped


def test_training_stops_without_improvement_and_restores_the_best_weights():
    rule = EarlyStop(2, "val_score", "max")
    message = "stopped after 2 epochs without improvement of val_score: restored the weights of epoch 2"
    assert run_with_scores([1.0, 3.0, 2.0, 3.0, 9.0, 9.0], rule) == (2.0, 4, message)
    assert run_with_scores([1.0, 3.0, 2.9, 2.8], rule._replace(mode="min")) == (
        1.0, 3, "stopped after 2 epochs without improvement of val_score: restored the weights of epoch 1"
    )  # fmt: skip
    assert run_with_scores([1.0, 1.5, 2.0, 2.5], rule._replace(min_delta=1.0), 4)[:2] == (1.0, 3)
    assert run_with_scores([1.0, float("nan"), 2.0, 1.0], rule, 4) == (
        3.0, 4, "all epochs are over: restored the weights of epoch 3"
    )  # fmt: skip


def test_a_patience_alone_monitors_the_validation_loss():
    assert run_with_scores([0.0] * 3, 1, 3)[:2] == (3.0, 3)
    with pytest.raises(
        ArgumentError, match=re.escape("monitors 'accuracy', but the metrics are loss, val_loss, val_score")
    ):
        run_with_scores([0.0], EarlyStop(1, "accuracy"))
    for wrong in (0, EarlyStop(1, mode="least")):
        with pytest.raises(ArgumentError, match="requires patience >= 1 and mode 'min' or 'max'"):
            run_with_scores([0.0], wrong)


def test_a_training_that_stopped_early_stays_stopped_when_it_is_resumed(tmp_path):
    rule = EarlyStop(1, "val_score", "max")
    first = run_with_scores([1.0, 3.0, 2.0], rule, checkpoint=tmp_path / "c")
    assert first[:2] == (2.0, 3)
    assert run_with_scores([], rule, checkpoint=tmp_path / "c") == first
    assert run_with_scores([4.0], rule._replace(patience=2), 4, checkpoint=tmp_path / "c")[:2] == (4.0, 4)
