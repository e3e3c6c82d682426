"""A trial reports its final state."""

import pytest

import minigrad as mg
import sweep_jobs as jobs
from minigrad.distributed.sweeps.trial import TrialJob, run_trial
from needs import needs

needs("safetensors")


@pytest.mark.parametrize(
    ("outcome", "end", "error"),
    [
        ("well", "done", ""),
        ("raise", "failed", "LookupError: no such thing"),
        ("nan", "diverged", "report: val_loss is nan in epoch 2."),
        ("other", "mistake", "sweep: the goal is val_loss, but train reported loss."),
        ("silent", "silent", ""),
    ],
)
def test_a_trial_reports_its_outcome_and_stores_its_output(outcome, end, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = mg.get_rng_state()
    sent = []
    device, folder = str(mg.get_default_device()), str(tmp_path)
    job = TrialJob(jobs.mixed, ("report",), {}, "val_loss", 3, device, "float32", 1, folder, folder)
    run_trial(job, 7, {"outcome": outcome}, sent.append)
    mg.set_rng_state(state)
    assert (sent[-1]["end"], sent[-1]["error"].partition("\n")[0]) == (end, error)
    goals = {"well": [1.0, 0.5], "raise": [1.0], "nan": [1.0]}
    assert [one["goal"] for one in sent[:-1]] == goals.get(outcome, [])
    printed = (tmp_path / "0007" / "output.txt").read_text(encoding="utf-8")
    assert printed.startswith(f"this is {outcome}\n")
    assert ("Traceback" in printed) is (end in ("failed", "mistake"))
