"""Import Ray, and start, connect to, and shut down its runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.core.packages import import_package

__all__ = ["actor_options", "import_ray", "ray_session"]

RAY_RESOURCE_OPTIONS = {
    "CPU": "num_cpus",
    "GPU": "num_gpus",
    "memory": "memory",
}  # Ray's keyword arguments for an actor


def import_ray(caller: str = "distributed.fit") -> Any:
    """Import and return Ray. Raises MissingPackageError if it is not installed, or its version is not supported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    return import_package("ray", caller)


@contextmanager
def ray_session(
    workers: int, resources: Mapping[str, float], logs: bool, caller: str = "distributed.fit"
) -> Iterator[Any]:
    """Context manager that yields the initialised Ray module. It uses an existing session, the cluster at RAY_ADDRESS,
    or a local cluster for `workers` processes; a new session is shut down on exit. `logs` prints workers' output."""
    ray_module = import_ray(caller)
    if ray_module.is_initialized():
        yield ray_module
        return
    level = "warning" if logs else "error"
    options: dict[str, Any] = {"log_to_driver": logs, "logging_level": level, "include_dashboard": False}
    if os.environ.get("RAY_ADDRESS"):
        del options["include_dashboard"]
        options["address"] = os.environ["RAY_ADDRESS"]
    else:  # workers share cores if there are fewer cores than workers
        cpus = max(os.cpu_count() or 1, int(-(-workers * resources.get("CPU", 1) // 1)))
        options |= {"address": "local", "num_cpus": cpus}
    ray_module.init(**options)
    try:
        yield ray_module
    finally:
        ray_module.shutdown()


def actor_options(resources: Mapping[str, float], caller: str = "distributed.fit") -> dict[str, Any]:
    """Return Ray's actor options that reserve `resources`. Raises ArgumentError for amounts that are not positive."""
    for name, amount in resources.items():
        value: Any = amount
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ArgumentError(
                f"{caller}: resources[{name!r}] should be a positive amount per worker, but got {amount!r}.\n"
                '  Write, for example, resources={"GPU": 1}.'
            )
    options: dict[str, Any] = {"num_cpus": 1}
    options |= {
        RAY_RESOURCE_OPTIONS[name]: amount for name, amount in resources.items() if name in RAY_RESOURCE_OPTIONS
    }
    custom_resources = {name: amount for name, amount in resources.items() if name not in RAY_RESOURCE_OPTIONS}
    return {**options, "resources": custom_resources} if custom_resources else options
