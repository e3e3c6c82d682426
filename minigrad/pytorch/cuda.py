"""``mg.cuda``: functions to query and synchronise the CUDA device. Without a GPU they have no effect."""

from typing import Any

from minigrad.core import dispatch, storage

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]
__path__: list[str] = []  # It marks this module as a package, whose submodules `pytorch.import_hooks` resolves.


def is_available() -> bool:
    """Return whether the device "cuda" is available."""
    return storage.is_available("cuda")


def device_count() -> int:
    """Return the number of CUDA devices, 0 or 1."""
    return int(is_available())


def current_device() -> int:
    """Return the index of the device "cuda", always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the default generator, which is shared by all devices, if the device "cuda" is available."""
    if is_available():
        from minigrad.random import manual_seed

        manual_seed(seed)


manual_seed_all = manual_seed


def synchronize(device: object = None) -> None:
    """Wait for all kernels to finish, as `mg.synchronize` does."""
    dispatch.synchronize()


def empty_cache() -> None:
    """Release cached memory, as `mg.empty_cache` does."""
    if is_available():
        from minigrad.profiling.memory_report import empty_cache

        empty_cache()


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing("minigrad.cuda", name)
