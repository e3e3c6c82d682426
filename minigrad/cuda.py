"""What programs ask before they choose a device."""

from minigrad.storage import is_there

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be on the device "cuda"."""
    return is_there("cuda")


def device_count() -> int:
    """How many such devices there are."""
    return int(is_available())
