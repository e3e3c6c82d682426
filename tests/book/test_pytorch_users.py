"""The page for PyTorch users: its code prints what it states, its picture and its list of operations are up to date."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book" / "pytorch_users.md"


@pytest.fixture(scope="module")
def run(torch):
    """The variables of the page's code, the files that it saves, and what it prints."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names, files = runpy.run_path(str(ROOT / "book" / "pictures.py"))["run_pytorch_users"]()
    return names, files, printed.getvalue()


def test_the_code_prints_what_its_comments_say(run):
    comments = re.findall(r"^# (.+)$", PAGE.read_text(encoding="utf-8").partition("## What does it warn")[2], re.M)
    assert len(comments) == 2
    assert all(line in run[2].splitlines() for line in comments)


def test_the_picture_is_the_one_that_the_code_draws(run):
    stored = (ROOT / "book" / "images" / "pytorch_model.svg").read_text(encoding="utf-8")
    assert run[1]["pytorch_model.svg"] == stored, "the picture has changed: inspect it, then run make pictures"


def test_the_page_lists_the_operations_that_the_player_recomputes(torch):
    import torch_what_if

    content = PAGE.read_text(encoding="utf-8").partition(torch_what_if.BEGIN)[2].partition(torch_what_if.END)[0]
    assert content == torch_what_if.markdown(), "the list is outdated: run tests/helpers/torch_what_if.py"
    assert len(torch_what_if.names()[0]) >= 60


def test_the_player_finds_its_own_values_for_the_operations_of_the_list(torch):
    import json

    import torch_what_if
    from minigrad_viz import to_trace
    from player import run_job

    names = torch_what_if.operations()
    traces = [to_trace(torch_what_if.call(name)) for name in names]
    jobs = [{"trace": json.loads(trace.json()), "runs": [], "tangents": []} for trace in traces]
    for name, trace, result in zip(names, traces, run_job(graphs=jobs)["graphs"], strict=True):
        assert (result["why"][trace.outputs[0]] is None) == torch_what_if.is_recomputed(name), name
