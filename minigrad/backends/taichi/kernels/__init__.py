"""The kernels of operations: each file registers those of a family."""
