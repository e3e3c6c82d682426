"""A report is a callback of fit, can be called directly, and requires the goal."""

import math

import numpy as np
import pytest

import minigrad as mg
import sweep_jobs as jobs
from minigrad.core.errors import ArgumentError, DivergedError, DTypeError
from minigrad.distributed import Report
from needs import needs

needs("safetensors")


def test_a_report_is_a_callback_and_callable():
    report = Report("val_loss")
    jobs.net(0.1, 0, report)
    assert [sorted(row) for row in report.epochs] == [["loss", "lr", "val_loss"]] * 3
    report = Report()
    report(loss=mg.tensor(2.0), epoch=3)
    report(loss=np.float32(1.0))
    assert (report.epoch, report.epochs) == (4, [{"loss": 2.0}, {"loss": 1.0}])


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({"loss": 1.0}, ArgumentError, "the goal is val_loss, but train reported loss.\n  Write report(val_loss=…)"),
        ({}, ArgumentError, "the goal is val_loss, but train reported nothing"),
        ({"val_loss": "low"}, DTypeError, "report: expected val_loss to be a scalar, but got a str"),
        ({"val_loss": math.inf}, DivergedError, "report: val_loss is inf in epoch 2"),
        ({"val_loss": 1.0, "epoch": 1}, ArgumentError, "report: epoch should be greater than 1, but got epoch=1"),
    ],
)
def test_a_report_without_its_goal_raises(values, kind, message):
    report = Report("val_loss")
    report(val_loss=1.0)
    with pytest.raises(kind) as raised:
        report(**values)
    assert message in str(raised.value)
