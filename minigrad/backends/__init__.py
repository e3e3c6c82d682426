"""Kernels, a module a device. Each imports the registry and its own array library, and nothing else of minigrad."""
