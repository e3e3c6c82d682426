"""``mg.cuda``: the functions that programs call to select and synchronise a device; no-ops without a GPU."""

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
__path__: list[str] = []  # a package without a folder: `pytorch.import_hooks` resolves its submodules


def is_available() -> bool:
    """Return whether tensors can be on the device "cuda"."""
    return storage.is_available("cuda")


def device_count() -> int:
    """Return the number of CUDA devices, 0 or 1."""
    return int(is_available())


def current_device() -> int:
    """Return the index of the device "cuda", always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Call `mg.manual_seed` if the device exists: one generator draws the same values for all devices."""
    if is_available():
        from minigrad.random import manual_seed

        manual_seed(seed)


manual_seed_all = manual_seed


def synchronize(device: object = None) -> None:
    """Wait until the device has finished all kernels: `mg.synchronize`."""
    dispatch.synchronize()


def empty_cache() -> None:
    """Release cached memory: `mg.empty_cache`."""
    if is_available():
        from minigrad.profiling.memory_report import empty_cache

        empty_cache()


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing("minigrad.cuda", name)
