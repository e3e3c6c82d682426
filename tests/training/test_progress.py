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
from trained import Interrupted, numbers

needs("safetensors")


def shown(capsys, **options):
    """Return the lines that a terminal finally shows: a carriage return overwrites a line."""
    model = nn.Linear(6, 3)
    loader = DataLoader(numbers(8, 1), batch_size=4)
    fit(model, loader, SGD(model.parameters(), 0.1), cross_entropy, epochs=2, validate=loader, **options)
    return [re.split(r"\r", line)[-1] for line in "".join(capsys.readouterr()).splitlines(keepends=True)]


def test_a_terminal_shows_one_line_with_the_epoch_the_steps_and_the_numbers(capsys):
    *_, line = shown(capsys)
    assert re.fullmatch(r"epoch 2/2: 100%\|█+\| \d\d:\d\d<\d\d:\d\d, loss=[\d.]+, val_loss=[\d.]+\n", line)


def test_a_training_that_goes_on_says_from_where_and_begins_its_bar_there(capsys, tmp_path):
    shown(capsys, checkpoint=tmp_path / "c")
    said = "".join(shown(capsys, checkpoint=tmp_path / "c"))
    assert f"resuming from {tmp_path / 'c'}, after 2 epochs and 4 steps\n" in said
    assert "100%|" in said


def test_an_interrupted_training_says_how_to_go_on(capsys, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        shown(capsys, checkpoint=tmp_path / "c", callbacks=[Interrupted("on_step", 3)])
    said = "".join(capsys.readouterr())
    assert f"interrupted: run the same call again to resume from {tmp_path / 'c'}\n" in said


def test_without_progress_nothing_is_shown(capsys):
    assert shown(capsys, progress=False) == []


def test_without_tqdm_the_error_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingPackageError, match=re.escape('pip install "tqdm>=4.60", or fit(…, progress=False)')):
        shown(capsys)
