"""The commit-msg hook: which messages it rejects, and why."""

import subprocess
import sys
from pathlib import Path

import pytest

import commit_message
from commit_message import problems

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "message",
    [
        "Fix stale gradient in jitted optimizer.step\n",
        "Pass the device to every allocator\n",
        "Speed up launches\n\nA context costs 4 µs.\n",
        "# a comment of git's\nSeed each worker\n",
        "Merge branch 'player' of a very long name that nobody would want to shorten by hand\n",
    ],
)
def test_a_good_message_passes(message):
    assert problems(message, changed_lines=len(message) if "\n\n" in message else 20) == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "The subject is empty."),
        ("Fix " + "x" * 60, "The subject has 64 characters; at most 60 are allowed."),
        ("Fixed a leak", "'Fixed'; begin with an imperative verb"),
        ("Fixes a leak", "'Fixes'; begin with an imperative verb"),
        ("fix a leak", "'fix'; begin with an imperative verb"),
        ("Fix a leak.", "The subject ends with a full stop."),
        ("Fix a leak\nof memory", "The line after the subject is not empty."),
    ],
)
def test_a_bad_message_is_rejected_with_the_reason(message, reason):
    (problem,) = problems(message, changed_lines=1)
    assert reason in problem


def test_a_large_change_needs_a_body():
    assert problems("Fix a leak", changed_lines=21) == ["21 lines change and there is no body; say why."]
    assert problems("Fix a leak\n\nIt kept a cycle.", changed_lines=21) == []


def test_the_hook_fails_a_commit(tmp_path):
    path = tmp_path / "message"
    path.write_text("Fixed it.\n", encoding="utf-8")
    run = subprocess.run([sys.executable, commit_message.__file__, str(path)], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "begin with an imperative verb" in run.stderr


def test_pre_commit_installs_it():
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "default_install_hook_types: [pre-commit, commit-msg]" in config
    assert "entry: .venv/bin/python tests/helpers/commit_message.py" in config
