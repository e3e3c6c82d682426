"""A campaign whose cases fail in every way, for the tests of the runner."""

from __future__ import annotations

import os
import time

from torture import Campaign, Skip

__all__ = ["CAMPAIGNS"]


def case(case_number: int) -> str | None:
    match case_number:
        case 1:
            os.abort()
        case 3:
            time.sleep(60)
        case 4:
            raise Skip("a thing")
        case 5:
            raise KeyError("lost")
        case 6:
            return "wrong"
    return None


CAMPAIGNS = [Campaign("dying", "what the tests of the runner do", case, many=8, few=8, seconds=2.0)]
