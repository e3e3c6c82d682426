"""Import Ray, and start, connect to, and shut down its runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.core.packages import package

__all__ = ["options_of_actor", "ray", "running"]

NAMES = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}  # Ray's keyword arguments for an actor


def ray(what: str = "distributed.fit") -> Any:
    """Import `ray`. Raises MissingPackageError if it is not installed, or its version is not supported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    return package("ray", what)


@contextmanager
def running(workers: int, resources: Mapping[str, float], logs: bool, what: str = "distributed.fit") -> Iterator[Any]:
    """Context manager that yields a running Ray: the one already initialised, the cluster at RAY_ADDRESS, or a local
    one for `workers` processes, shut down on exit. The workers' output is printed if `logs`."""
    found = ray(what)
    if found.is_initialized():
        yield found
        return
    level = "warning" if logs else "error"
    options: dict[str, Any] = {"log_to_driver": logs, "logging_level": level, "include_dashboard": False}
    if os.environ.get("RAY_ADDRESS"):
        del options["include_dashboard"]
        options["address"] = os.environ["RAY_ADDRESS"]
    else:  # more workers than cores share the cores
        cpus = max(os.cpu_count() or 1, int(-(-workers * resources.get("CPU", 1) // 1)))
        options |= {"address": "local", "num_cpus": cpus}
    found.init(**options)
    try:
        yield found
    finally:
        found.shutdown()


def options_of_actor(resources: Mapping[str, float], what: str = "distributed.fit") -> dict[str, Any]:
    """Return Ray's actor options that reserve `resources`. Raises ArgumentError for amounts that are not positive."""
    for name, amount in resources.items():
        given: Any = amount
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise ArgumentError(
                f"{what}: resources[{name!r}] should be a positive amount per worker, but got {amount!r}.\n"
                '  Write, for example, resources={"GPU": 1}.'
            )
    options: dict[str, Any] = {"num_cpus": 1}
    options |= {NAMES[name]: amount for name, amount in resources.items() if name in NAMES}
    others = {name: amount for name, amount in resources.items() if name not in NAMES}
    return {**options, "resources": others} if others else options
