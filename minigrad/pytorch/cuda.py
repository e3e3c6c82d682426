"""What programs ask before they choose a device, and what they tell it. Where there is none, telling does nothing."""

from typing import Any

from minigrad.core import dispatch
from minigrad.core.storage import is_there

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]
__path__: list[str] = []  # no folder: what is imported from here and is not here, `pytorch.modules` answers for


def is_available() -> bool:
    """Whether tensors can be on the device "cuda"."""
    return is_there("cuda")


def device_count() -> int:
    """How many such devices there are."""
    return int(is_available())


def current_device() -> int:
    """The number of the device "cuda", of which there is one: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """`mg.manual_seed`, if the device is there: one generator draws the same numbers for all devices."""
    if is_available():
        from minigrad.random import manual_seed

        manual_seed(seed)


manual_seed_all = manual_seed


def synchronize(device: object = None) -> None:
    """Wait until the device has computed all it was given: `mg.synchronize`."""
    dispatch.synchronize()


def empty_cache() -> None:
    """Give back the memory that is kept for later: `mg.empty_cache`."""
    if is_available():
        from minigrad.profiling.memory_report import empty_cache

        empty_cache()


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.modules import absent

    return absent("minigrad.cuda", name)
