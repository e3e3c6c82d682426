"""A jitted step whose closure, globals or modules change between calls acts like the plain function: tests/adversary.

Each kind of change alone, and random combinations: 2,000 of them with `make nightly`, 100 with `make test`.
"""

import pytest

import adversary
from adversary import kinds
from adversary._cases import case_of_kind, case_of_number
from needs import needs
from tiers import NIGHTLY

needs("numpy")

SEEDS = range(2 if NIGHTLY else 1)
KINDS = kinds()
HUNDREDS = [0, *[pytest.param(k, marks=pytest.mark.nightly) for k in range(1, 20)]]


def failures(cases, **options):
    """Return a report of the cases that fail."""
    outcomes = [(case, case.run(**options)) for case in cases]
    return "\n".join(
        [f"{case}: {outcome.verdict}: {outcome.explanation}" for case, outcome in outcomes if outcome.failed]
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_change_of_each_kind_is_seen(kind):
    assert failures([case_of_kind(kind, seed) for seed in SEEDS]) == ""


@pytest.mark.nightly
@pytest.mark.needs("the device cpu")
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_change_of_each_kind_is_seen_on_cpu(kind):
    assert failures([case_of_kind(kind, seed, "cpu") for seed in SEEDS]) == ""


@pytest.mark.parametrize("hundred", HUNDREDS)
def test_changes_of_several_kinds_at_once_are_seen(hundred):
    assert failures([case_of_number(hundred * 1_000_000 + k) for k in range(100)]) == ""


def test_refused_changes_run_eagerly_without_fullgraph():
    assert failures([case_of_kind(one) for one in KINDS if one.refused], fullgraph=False) == ""


@pytest.mark.needs("the device cpu")
def test_a_change_of_each_kind_alters_what_the_plain_function_does():
    unseen = [one for one in KINDS if not any(case_of_kind(one, seed).visible() for seed in range(2))]
    assert [str(one) for one in unseen] == [str(one) for one in KINDS if one.harmless]


def test_the_plain_function_raises_only_where_a_kind_says_so():
    raising = [one for one in KINDS if any(case_of_kind(one, seed).raising() for seed in range(2))]
    assert [str(one) for one in raising] == [str(one) for one in KINDS if one.raises]


def test_enough_kinds_exist():
    assert len(KINDS) >= 600
    assert all(len(kinds(family)) >= 10 for family in adversary.FAMILIES)
