"""Profiling: kernel times, memory, and the source of kernels."""

from minigrad.profiling.memory_report import DeviceMemory, MemoryReport, empty_cache, memory, set_pool_limit
from minigrad.profiling.profiler import KernelCall, Profile, profile
from minigrad.profiling.source import Source, kernel_source
from minigrad.profiling.tidying import keep, tidy

__all__ = [
    "DeviceMemory",
    "KernelCall",
    "MemoryReport",
    "Profile",
    "Source",
    "empty_cache",
    "keep",
    "kernel_source",
    "memory",
    "profile",
    "set_pool_limit",
    "tidy",
]
