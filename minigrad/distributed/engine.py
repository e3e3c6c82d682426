"""Ray: loaded, started, or joined where it runs, and ended where it was started here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.core.packages import package

__all__ = ["options_of_actor", "ray", "running"]

NAMES = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}  # of resources, and what Ray calls them for an actor


def ray(what: str = "distributed.fit") -> Any:
    """The package. Raises MissingPackageError where it is not installed, or of a version that does not work."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it tells a server about this machine
    return package("ray", what)


@contextmanager
def running(workers: int, resources: Mapping[str, float], logs: bool, what: str = "distributed.fit") -> Iterator[Any]:
    """A block in which Ray runs: as it does already, as the cluster of RAY_ADDRESS, or started here for so many workers
    and ended with the block. What workers print is shown if `logs`."""
    found = ray(what)
    if found.is_initialized():
        yield found
        return
    level = "warning" if logs else "error"
    options: dict[str, Any] = {"log_to_driver": logs, "logging_level": level, "include_dashboard": False}
    if os.environ.get("RAY_ADDRESS"):
        del options["include_dashboard"]
        options["address"] = os.environ["RAY_ADDRESS"]
    else:  # on few cores workers take turns, as processes do
        cpus = max(os.cpu_count() or 1, int(-(-workers * resources.get("CPU", 1) // 1)))
        options |= {"address": "local", "num_cpus": cpus}
    found.init(**options)
    try:
        yield found
    finally:
        found.shutdown()


def options_of_actor(resources: Mapping[str, float], what: str = "distributed.fit") -> dict[str, Any]:
    """What Ray is to keep free for each worker, as it takes it. Raises ArgumentError for what is no number above 0."""
    for name, amount in resources.items():
        given: Any = amount
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise ArgumentError(
                f"{what}: resources[{name!r}] is {amount!r}, and it is how much of it each worker has: "
                'resources={"GPU": 1}, say.'
            )
    options: dict[str, Any] = {"num_cpus": 1}
    options |= {NAMES[name]: amount for name, amount in resources.items() if name in NAMES}
    others = {name: amount for name, amount in resources.items() if name not in NAMES}
    return {**options, "resources": others} if others else options
