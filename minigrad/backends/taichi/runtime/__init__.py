"""Taichi as it runs: memory, arrays, and kernels that are compiled, launched and recorded."""
