"""A history prints as a table of the metrics of its epochs."""

import pytest

from minigrad import training
from needs import needs

needs("safetensors")


def test_a_history_prints_as_a_table_with_an_elided_middle():
    history = training.History()
    assert repr(history) == "History: no completed epoch, 0 steps"
    history.epochs = [{"loss": 1 / k, "val_loss": 2.0 * k} for k in range(1, 31)]
    history.epochs[0]["note"] = 0.5
    history.stopped = "over"
    lines = repr(history).splitlines()
    assert lines[:2] == ["epoch     loss  val_loss  note", "    1        1         2   0.5"]
    assert (lines[11], lines[-2:]) == ("    …        …         …     …", ["   30  0.03333        60      ", "over"])
    assert (history["loss"][1], history["note"], len(history)) == (0.5, [0.5], 30)
    with pytest.raises(KeyError, match="history has no metric 'accuracy'; it has loss, val_loss, note"):
        history["accuracy"]
