"""Metrics are means over samples, of the validation data if given."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ShapeError
from minigrad.data import DataLoader
from minigrad.functional import cross_entropy
from minigrad.optim import SGD
from minigrad.training import Metric, accuracy, evaluate, fit, perplexity
from needs import needs
from training_setup import TrainingSetup, random_dataset

needs("safetensors")


def test_means_are_over_samples_for_any_batch_size():
    model = TrainingSetup().model.eval()
    data = random_dataset(11, 3)
    x, y = data.tensors
    metrics = {"loss": cross_entropy, "accuracy": accuracy, "perplexity": perplexity}
    result = evaluate(model, DataLoader(data, batch_size=4), metrics)
    output = model(x)
    assert result["loss"] == pytest.approx(cross_entropy(output, y).item(), rel=1e-6)
    assert result["accuracy"] == pytest.approx((output.argmax(1) == y).float().mean().item(), rel=1e-6)
    assert result["perplexity"] == pytest.approx(np.exp(cross_entropy(output, y).item()), rel=1e-6)
    assert perplexity(output, y) == pytest.approx(result["perplexity"], rel=1e-6)
    assert Metric(lambda *_: 1e6, perplexity.then)(output, y) == float("inf")


def test_accuracy_requires_classes_along_the_second_dimension():
    scores = mg.tensor([[[0.0, 2.0], [1.0, 1.0]]])  # one sequence, two classes, two time steps
    assert accuracy(scores, mg.tensor([[1, 1]])) == 0.5
    with pytest.raises(ShapeError, match=re.escape("of class indices, but got shapes (2, 3) and (2, 3)")):
        accuracy(mg.zeros(2, 3), mg.zeros(2, 3))


def test_without_validation_metrics_are_of_the_training_batches():
    model = nn.Linear(6, 3)
    loader = DataLoader(random_dataset(9, 1), batch_size=3)
    history = fit(
        model,
        loader,
        SGD(model.parameters(), 0.0),
        cross_entropy,
        epochs=1,
        metrics={"accuracy": accuracy},
        progress=False,
    )
    assert history.names == ["loss", "accuracy", "lr"]
    assert history["accuracy"] == [pytest.approx(evaluate(model, loader, {"a": accuracy})["a"])]


def test_validation_runs_without_gradients_in_eval_mode_and_restores_all_modes():
    setting = TrainingSetup()
    setting.model[1].eval()  # a frozen norm
    modes = []

    def metric(output, target):
        modes.append((setting.model.training, setting.model[3].training, output.requires_grad, mg.is_grad_enabled()))
        return 0.0

    during = []
    fit(setting.model, setting.loader, setting.optimizer, cross_entropy, epochs=1, validate=[random_dataset(3,
        0).tensors], metrics={"m": metric}, progress=False,
        callbacks=[lambda run: during.append([module.training for module in run.model.modules()])])  # fmt: skip
    assert modes == [(False, False, False, False)]
    assert during == [[True, True, False, True, True, True]] * 6
    assert [module.training for module in setting.model.modules()] == [True, True, False, True, True, True]
