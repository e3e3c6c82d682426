"""A block in which Ray runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from needs import needs


@contextmanager
def ray_runs() -> Iterator[Any]:
    """A block in which Ray runs with two processors, and its workers import what they train from beside the tests."""
    needs("ray", "Ray's processes")
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield ray
        ray.shutdown()
