"""Ray, started once for each module of this folder: some of its tests have a cluster of their own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import needs


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray with two processors, whose workers import what they train from beside the tests."""
    needs("ray")
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        try:
            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        except Exception:
            needs("Ray's processes")  # skips where they do not start in a child either
            raise
        yield ray
        ray.shutdown()
