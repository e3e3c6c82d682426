"""The devices that tapes run on."""

import pytest

from taped import DEVICES


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param
