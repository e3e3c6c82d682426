"""What programs ask before they choose a device."""

from minigrad.storage import DEVICES

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be on the device "cuda"."""
    return "cuda" in DEVICES


def device_count() -> int:
    """How many such devices there are."""
    return int(is_available())
