"""Progress of a sweep on a terminal and on other streams."""

import io

from minigrad.distributed.sweeps import ProgressTable
from needs import needs
from sweeps import finished_sweep

needs("safetensors")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_fitting_table_in_place(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "18")
    sweep = finished_sweep(tmp_path, [0.5 + k for k in range(30)])
    stream = Terminal()
    shown = ProgressTable(stream)
    shown(sweep)
    first = stream.getvalue()
    assert first.startswith("\x1b[J30 of 30 trials\ntrial  state")
    lines = first.splitlines()
    assert len(lines) <= 18
    assert lines[-1] == "… and 18 more"
    assert lines[1].split() == ["trial", "state", "lr", "val_loss", "epoch"]
    assert all(len(one.removeprefix("\x1b[J")) < 40 for one in lines)
    shown(sweep)  # too soon for a redraw
    assert stream.getvalue() == first
    shown(sweep, last=True)
    assert stream.getvalue()[len(first) :].startswith(f"\x1b[{len(lines)}F\x1b[J30 of 30 trials\n")
    assert stream.getvalue().count("\n") == len(lines) + 32


def test_other_streams_get_a_line_per_finished_trial(tmp_path):
    sweep = finished_sweep(tmp_path, [0.5, 0.25], ["done", "running"])
    stream = io.StringIO()
    shown = ProgressTable(stream)
    shown(sweep)
    shown(sweep)
    assert stream.getvalue() == "trial 1 done after 2 epochs: lr=0.1, val_loss 0.5 at epoch 2\n"
    sweep.trials[1].state, sweep.trials[1].error = "failed", "LookupError: \x1b[31m"
    shown(sweep)
    assert stream.getvalue().endswith("at epoch 2: LookupError: \\x1b[31m\n")
    assert "\x1b" not in stream.getvalue()
