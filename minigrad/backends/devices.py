"""The names of the supported devices. Whether a device is available is checked on its first use."""

__all__ = ["DEVICES", "GPUS", "NARROW"]

GPUS = ("cuda", "vulkan", "metal")
NARROW = ("vulkan", "metal")  # lack float64, or some of its functions
DEVICES = ("numpy", "cpu", *GPUS)
