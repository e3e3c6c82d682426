"""The devices that tapes run on."""

import pytest

from tape_checks import DEVICES


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param
