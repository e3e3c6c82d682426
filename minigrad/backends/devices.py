"""The names of the supported devices. Whether a device is available is checked on its first use."""

__all__ = ["DEVICES", "GPUS", "NO_FLOAT64"]

GPUS = ("cuda", "vulkan", "metal")
NO_FLOAT64 = ("vulkan", "metal")  # devices without float64, or without some float64 functions
DEVICES = ("numpy", "cpu", *GPUS)
