"""Ray, started once per test module, as some modules start their own cluster."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import needs


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Start Ray with two CPUs; workers import the training functions from the tests' folder."""
    needs("ray")
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        try:
            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        except Exception:
            needs("Ray's processes")  # skips if they cannot start in a subprocess either
            raise
        yield ray
        ray.shutdown()
