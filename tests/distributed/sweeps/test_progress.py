"""Progress of a sweep on a terminal and on other streams."""

import io

from minigrad.distributed.sweeps import Shown
from needs import needs
from sweeps import ended

needs("safetensors")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_table_is_drawn_in_place_and_fits(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "18")
    made = ended(tmp_path, [0.5 + k for k in range(30)])
    stream = Terminal()
    shown = Shown(stream)
    shown(made)
    first = stream.getvalue()
    assert first.startswith("\x1b[J30 of 30 trials\ntrial  state")
    lines = first.splitlines()
    assert len(lines) <= 18
    assert lines[-1] == "… and 18 more"
    assert lines[1].split() == ["trial", "state", "lr", "val_loss", "epoch"]
    assert all(len(one.removeprefix("\x1b[J")) < 40 for one in lines)
    shown(made)  # too soon for a redraw
    assert stream.getvalue() == first
    shown(made, last=True)
    assert stream.getvalue()[len(first) :].startswith(f"\x1b[{len(lines)}F\x1b[J30 of 30 trials\n")
    assert stream.getvalue().count("\n") == len(lines) + 32


def test_where_there_is_no_terminal_each_trial_is_a_line_when_it_has_ended(tmp_path):
    made = ended(tmp_path, [0.5, 0.25], ["done", "running"])
    stream = io.StringIO()
    shown = Shown(stream)
    shown(made)
    shown(made)
    assert stream.getvalue() == "trial 1 done after 2 epochs: lr=0.1, val_loss 0.5 at epoch 2\n"
    made.trials[1].state, made.trials[1].error = "failed", "LookupError: \x1b[31m"
    shown(made)
    assert stream.getvalue().endswith("at epoch 2: LookupError: \\x1b[31m\n")
    assert "\x1b" not in stream.getvalue()
