"""The first cases of each stress-test campaign; `make nightly` runs all cases."""

import gc

import numpy as np
import pytest

from minigrad.core.dispatch import get_kernels
from needs import needs
from torture import _failing, _program_generator, _programs_run, calls, campaigns, programs
from torture import _runner as running

CAMPAIGNS = [one for theme in campaigns().values() for one in theme]


def parts_of(campaign):
    """Return the number of parts into which the cases of a campaign are split: more if a case may take long."""
    limit = 60 if campaign.seconds >= 300 else 12
    return limit if callable(campaign.many) else min(campaign.many, limit)


def in_parts(campaigns):
    """Parametrise by a campaign and a part of its cases."""
    cases = [(one, part) for one in campaigns for part in range(parts_of(one))]
    return pytest.mark.parametrize(("campaign", "part"), cases, ids=[f"{one.name} {part}" for one, part in cases])


DAILY = ["names of numpy", "pt", "safetensors", "trace", "wrong calls, numpy"]


@pytest.mark.parametrize(
    "campaign",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in DAILY else [pytest.mark.nightly])
        for one in CAMPAIGNS
        if one.few
    ],
)
def test_first_cases(campaign):
    assert_cases_pass(campaign, range(campaign.few))


@pytest.mark.nightly
@in_parts([one for one in CAMPAIGNS if one.seconds < 600])
def test_all_cases(campaign, part):
    assert_cases_pass(campaign, cases_of(campaign, part))


@pytest.mark.nightly(whole=True)  # a case takes minutes: too long for a slice
@in_parts([one for one in CAMPAIGNS if one.seconds >= 600])
def test_all_long_cases(campaign, part):
    assert_cases_pass(campaign, cases_of(campaign, part))


def cases_of(campaign, part):
    count, parts = campaign.count(), parts_of(campaign)
    return range(count * part // parts, count * (part + 1) // parts)


def assert_cases_pass(campaign, cases):
    needs(*campaign.needs)
    result = running.run_campaign(campaign, cases)
    assert result.failures == []
    if result.skipped == result.ran:
        needs("a larger machine")


def test_campaigns_have_unique_names_and_consistent_counts():
    every = [one for theme in campaigns().values() for one in theme]
    assert len({one.name for one in every}) == len(every)
    for one in every:
        assert 0 <= one.few <= one.count(), one.name
        assert one.description[:1] == one.description[:1].lower(), one.name
        assert not one.description.endswith("."), one.name
        assert "|" not in one.description, one.name


def test_crashes_hangs_and_errors_are_reported_by_case():
    (dying,) = _failing.CAMPAIGNS
    result = running.run_campaign(dying, range(8))
    assert (result.ran, result.skipped) == (8, 1)
    assert result.failures[0].startswith("case 1: the process exited with -6: ")
    assert result.failures[1:] == [
        "case 3: took more than 2 s",
        "case 5: KeyError: 'lost'",
        "case 6: wrong",
    ]


TAKES_LONG = "import time\ndef slow():\n    time.sleep(0.06)\n    x + 'y'"


@pytest.fixture(scope="module")
def frozen():
    """Collect what the cases left behind: each case makes the collector skip all existing objects."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as tests/conftest.py does: collections traverse all unfrozen objects


@pytest.mark.parametrize(
    ("call", "error", "text", "problem"),
    [
        ("x + 'y'", "DTypeError", "add: a str [...] Python scalar", None),
        ("x + 1", "DTypeError", "add", "it raised no error"),
        (
            "x + 'y'",
            "ShapeError",
            "add",
            "it raised DTypeError: add: a str is not supported; expected a tensor or a Python scalar. ",
        ),
        (
            "x + 'y'",
            "DTypeError",
            "scalar [...] add",
            "its message is 'add: a str is not supported; expected a tensor or a Python scalar. ",
        ),
        (
            "x + 'y'",
            "DTypeError",
            "",
            "its message is 'add: a str is not supported; expected a tensor or a Python scalar. ",
        ),
        ("with mg.no_grad(): x.add_(0)\nx + 'y'", "DTypeError", "add", "`x` changed"),
        ("kept.append(1); x + 'y'", "DTypeError", "add", "`kept` changed"),
        ("x.grad = mg.ones(2); x + 'y'", "DTypeError", "add", "`x` changed"),
        ("mg.rand(1); x + 'y'", "DTypeError", "add", "the stream of random numbers changed"),
        ("(folder / 'a').touch(); x + 'y'", "DTypeError", "add", "the files changed"),
        ("hidden.extend([mg.ones(2)]); x + 'y'", "DTypeError", "add", "3 tensors are leaked"),
        ("slow()", "DTypeError", "add", "the error takes "),
        ("np.linalg.inv(np.zeros((2, 2)))", "LinAlgError", "ingular", "the traceback shows numpy.linalg.LinAlgError"),
        ("np.stack([])", "ValueError", "array", "the traceback ends in numpy."),
        ("minigrad('ops', 'none-such')", "Exit2", "no operation has 'none-such'", None),
    ],
)
def test_a_wrong_call_is_checked_for_its_error_time_and_side_effects(frozen, call, error, text, problem):
    setup = f"x, kept, hidden = mg.ones(2, requires_grad=True), [], __import__('collections').deque()\n{TAKES_LONG}"
    message = calls.check_call(calls.WrongCall("here", setup, call, error, text))
    assert message is None if problem is None else str(message).startswith(problem)


def test_the_catalogue_has_wrong_calls_of_all_kinds():
    catalogue = calls.catalogue()
    assert len(catalogue) >= 200
    assert len({(one.setup, one.call) for one in catalogue}) == len(catalogue)
    assert all(one.error and one.message for one in catalogue)


def program_of(*lines, orders=1):
    """Return a program on an array of ten elements whose last result is differentiated."""
    named = tuple(_programs_run.Line(f"v{k}", text) for k, text in enumerate(lines))
    leaves = (_programs_run.Leaf("x0", np.array([0.1] * 10), True), _programs_run.Leaf("x1", np.array([2.0]), False))
    return _programs_run.Program(leaves, named, (named[-1].name,), orders, parity=False)


def test_a_wrong_kernel_is_reported_with_the_smallest_program(monkeypatch):
    needs("taichi")
    program = program_of("x0 + x1", "x0.tanh()", "v1 * v0", "v2[1:]")
    assert programs._smallest(program, programs._compare_libraries) is None
    monkeypatch.setitem(get_kernels("tanh"), "numpy", lambda a: np.tanh(a) + 1e-9)
    message = programs._smallest(program, programs._compare_libraries)
    assert message.startswith("v1 = [0.0996679956")
    assert message.splitlines()[2:] == ["        v1 = x0.tanh()"]


def test_differences_due_to_rounding_are_no_failure():
    for text, decided in (("F.floor(x0.sum())", True), ("x0.sum()", False)):
        program = program_of(text, orders=0)
        actual = _programs_run.describe(_programs_run.run_program(program, _programs_run.minigrad_library("numpy")))
        spread = _programs_run.rounding_spread(program, actual)
        assert (spread is None) is decided


@pytest.mark.parametrize("seed", [0, 1])
def test_a_program_depends_on_its_seed_alone(seed):
    first, again = (str(_program_generator.program(seed)) for _ in range(2))
    assert first == again
