"""The first cases of each campaign that tries to break something: all of them are run by `make torture`."""

import pytest

pytest.importorskip("numpy")

from torture import _dying, campaigns
from torture import _running as running

ALL = [pytest.param(one, id=one.name) for theme in campaigns().values() for one in theme]


@pytest.mark.slow
@pytest.mark.parametrize("campaign", ALL)
def test_campaign(campaign):
    found = running.outcome(campaign, range(campaign.few))
    assert found.failures == []
    if found.skipped == found.tried:
        pytest.skip("needs what this machine does not have")


def test_names_and_numbers():
    every = [one for theme in campaigns().values() for one in theme]
    assert len({one.name for one in every}) == len(every)
    for one in every:
        assert 0 < one.few <= one.many, one.name
        assert one.what[:1] == one.what[:1].lower(), one.name
        assert not one.what.endswith("."), one.name
        assert "|" not in one.what, one.name


def test_deaths_hangs_and_errors_are_told_by_the_case():
    (dying,) = _dying.CAMPAIGNS
    found = running.outcome(dying, range(8))
    assert (found.tried, found.skipped) == (8, 1)
    assert found.failures[0].startswith("case 1: the process ended with -6: ")
    assert found.failures[1:] == [
        "case 3: took more than 2 s",
        "case 5: KeyError: 'lost'",
        "case 6: wrong",
    ]
