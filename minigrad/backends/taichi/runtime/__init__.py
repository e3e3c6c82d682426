"""Taichi runtime: memory, arrays, and kernels that are compiled, launched and recorded."""
