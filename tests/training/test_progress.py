"""The progress bar of a training run."""

import re
import sys

import pytest

from minigrad import nn
from minigrad.core.errors import MissingPackageError
from minigrad.data import DataLoader
from minigrad.functional import cross_entropy
from minigrad.optim import SGD
from minigrad.training import fit
from needs import needs
from training_setup import Interrupt, random_dataset

needs("safetensors")


def displayed_lines(capsys, **options):
    """Return the lines that a terminal finally shows: a carriage return overwrites a line."""
    model = nn.Linear(6, 3)
    loader = DataLoader(random_dataset(8, 1), batch_size=4)
    fit(model, loader, SGD(model.parameters(), 0.1), cross_entropy, epochs=2, validate=loader, **options)
    return [re.split(r"\r", line)[-1] for line in "".join(capsys.readouterr()).splitlines(keepends=True)]


def test_the_bar_shows_epoch_steps_and_metrics_on_one_line(capsys):
    *_, line = displayed_lines(capsys)
    assert re.fullmatch(r"epoch 2/2: 100%\|█+\| \d\d:\d\d<\d\d:\d\d, loss=[\d.]+, val_loss=[\d.]+\n", line)


def test_a_resumed_run_reports_its_checkpoint_and_position(capsys, tmp_path):
    displayed_lines(capsys, checkpoint=tmp_path / "c")
    output = "".join(displayed_lines(capsys, checkpoint=tmp_path / "c"))
    assert f"resuming from {tmp_path / 'c'}, after 2 epochs and 4 steps\n" in output
    assert "100%|" in output


def test_an_interrupted_run_reports_how_to_resume(capsys, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        displayed_lines(capsys, checkpoint=tmp_path / "c", callbacks=[Interrupt("on_step", 3)])
    output = "".join(capsys.readouterr())
    assert f"interrupted: run the same call again to resume from {tmp_path / 'c'}\n" in output


def test_without_progress_nothing_is_shown(capsys):
    assert displayed_lines(capsys, progress=False) == []


def test_without_tqdm_the_error_gives_advice(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingPackageError, match=re.escape('pip install "tqdm>=4.60", or fit(…, progress=False)')):
        displayed_lines(capsys)
