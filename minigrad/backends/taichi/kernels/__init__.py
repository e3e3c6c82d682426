"""Taichi kernels; each module registers one family of operations."""
