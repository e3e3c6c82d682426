"""The Taichi backend: ``cpu``, on memory shared with NumPy, and the GPUs ``cuda``, ``vulkan`` and ``metal``.

All devices share the kernel sources that the registry lists under `DEVICE`; each device registers them under its own
name. Taichi compiles for one device at a time. While that is a GPU, NumPy kernels serve ``cpu`` arrays.

Importing this package does not import Taichi: the first kernel launch does.

Each subpackage imports only those before it: `runtime` manages the Taichi runtime, arrays, memory and launches;
`codegen` generates kernel source, and fuses and merges captured launches; `kernels` registers each operation.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from minigrad.backends import numpy as reference
from minigrad.backends.limits import beyond
from minigrad.backends.taichi import kernels
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import filled
from minigrad.backends.taichi.runtime import buffers, driver
from minigrad.backends.taichi.runtime.array import (
    CPU,
    DEVICE,
    CpuArray,
    TaichiArray,
    Target,
    empty,
    like,
    recorder,
    set_target,
    shared,
)
from minigrad.core.dispatch import Kernel, kernels_of, operations, raw_numbers, runner, waits
from minigrad.core.dispatch import kernel as register
from minigrad.core.errors import DTypeError
from minigrad.core.storage import Allocator, add_memory

__all__ = ["DEVICE"]

for _module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
    import_module(_module.name)  # each registers its kernels

_beside: dict[Any, Kernel] = {}  # Taichi kernel -> its NumPy fallback on cpu while Taichi runs on a GPU


# --- the device that Taichi compiles for ---


def _aim() -> None:
    """Retarget code generation and the ``cpu`` kernels to the current Taichi architecture."""
    arch = driver.arch()
    source.cut_for(arch)
    if arch in driver.GPUS:
        narrow = arch in driver.NARROW
        gpu = buffers.ARRAYS[arch], buffers.POOLS[arch], buffers.copied, buffers.downloaded, buffers.GpuBlock, narrow
        set_target(Target(*gpu))
    else:
        set_target(CPU)
    for op in operations(DEVICE):
        ours = kernels_of(op)[DEVICE]
        known = kernels_of(op)["cpu"]
        if arch == "cpu" and known is _beside.get(ours):
            register(op, "cpu")(ours)
        elif arch != "cpu" and known is ours:
            register(op, "cpu")(_beside.setdefault(ours, _by_numpy(kernels_of(op)["numpy"])))


driver.on_change(_aim)


def _by_numpy(plain: Kernel) -> Kernel:
    """Adapt a NumPy kernel to ``cpu`` arrays."""

    def by_numpy(*inputs: Any, out: Any = None, **attrs: Any) -> Any:
        given = tuple([x.view(np.ndarray) if isinstance(x, CpuArray) else x for x in inputs])
        seen = tuple([x.view(np.ndarray) for x in out]) if isinstance(out, tuple) else out
        result = reference.run(plain, given, attrs, seen.view(np.ndarray) if isinstance(seen, np.ndarray) else seen)
        if out is not None:
            return out
        return tuple(map(_ours, result)) if isinstance(result, tuple) else _ours(result)

    by_numpy.by = "numpy"  # type: ignore[attr-defined]
    return by_numpy


def _ours(x: Any) -> Any:
    """Copy a NumPy result to a ``cpu`` array in pool memory; return a view of an operand as a view."""
    if not isinstance(x, np.ndarray):
        return x
    return CPU.below(x, _empty_below) if x.base is None else x.view(CpuArray)


def _empty_below(shape: tuple[int, ...], dtype: Any) -> Any:
    return empty(shape, dtype, CPU)


# --- kernel calls ---


def _run_on(name: str) -> None:
    @runner(name)
    def run(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any], out: Any = None) -> Any:
        """Call `kernel`, writing the result to `out` if given."""
        if not driver.is_current():
            driver.start(name if name in driver.GPUS else None)
        if name != driver.arch():
            if name in driver.GPUS:
                driver.start(name)
            kernel = _beside.get(kernel, kernel)
        if out is None:
            if attrs:
                _check_type(name, attrs.get("dtype"))
            try:
                return kernel(*inputs, **attrs)
            except ValueError as error:  # from NumPy, which creates the views
                if (said := beyond(kernel, inputs, attrs, error)) is None:
                    raise
                raise said from None
        if "out" in (getattr(kernel, "__kwdefaults__", None) or ()):
            return kernel(*inputs, **attrs, out=out)
        kernels_of("copy")[name](out, kernel(*inputs, **attrs), out=out)
        return out

    def run_raw(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        return run(kernel, inputs, attrs)

    raw_numbers(name, (_ARRAYS[name],), run_raw, nullcontext)


_ARRAYS: dict[str, type[TaichiArray]] = {"cpu": CpuArray, **buffers.ARRAYS}


def _check_type(device: str, dtype: Any) -> None:
    """Raise DTypeError for float64 on a GPU that does not support it."""
    if device in driver.NARROW and getattr(dtype, "name", "") == "float64":
        raise DTypeError(
            f"float64: the device {device} does not support float64.\n"
            '  Use float32 instead, x.to(mg.float32), or another device, x.to("cpu").'
        )


# --- array allocation ---


def _on_cpu() -> Allocator:
    def filled_below(shape: tuple[int, ...], dtype: Any, value: Any) -> Any:
        if recorder() is not None and driver.arch() == "cpu":
            return filled(shape, dtype, value)
        out = _empty_below(shape, dtype)
        out.view(np.ndarray).fill(value)
        return out

    return Allocator(
        _empty_below,
        filled_below,
        shared,
        lambda array: CPU.below(array, _empty_below),
        CPU.seen,
        CPU.block,
        CPU.pool,
    )


def _on_gpu(name: str) -> Allocator:
    def there(make: Any) -> Any:
        def made(first: Any, *args: Any) -> Any:
            driver.start(name)
            _check_type(name, args[0] if args else first.dtype)
            return make(first, *args)

        return made

    copied = there(like)
    return Allocator(
        there(empty),
        there(filled),
        copied,
        copied,
        buffers.downloaded,
        buffers.GpuBlock,
        buffers.POOLS[name],
        lambda: driver.is_there(name),
    )


for _name in _ARRAYS:
    for _op in operations(DEVICE):
        register(_op, _name)(kernels_of(_op)[DEVICE])
    add_memory(_name, _ARRAYS[_name], _on_cpu() if _name == "cpu" else _on_gpu(_name))
    _run_on(_name)
    if _name != "cpu":
        waits(_name, driver.synchronize)
