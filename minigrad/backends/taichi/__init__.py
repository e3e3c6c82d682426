"""The Taichi backend: ``cpu``, on memory shared with NumPy, and the GPUs ``cuda``, ``vulkan`` and ``metal``.

All devices share the kernel sources that the registry lists under `TAICHI`; each device registers them under its own
name. Taichi compiles for one device at a time. While this device is a GPU, NumPy kernels process ``cpu`` arrays.

Importing this package does not import Taichi: the first kernel launch does.

Each subpackage imports only the preceding ones: `runtime` manages the Taichi runtime, arrays, memory and launches;
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
from minigrad.backends.limits import size_error
from minigrad.backends.taichi import kernels
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import full, self_planned
from minigrad.backends.taichi.runtime import buffers, driver
from minigrad.backends.taichi.runtime.array import (
    CPU,
    TAICHI,
    CpuArray,
    TaichiArray,
    Target,
    copy_to_device,
    current_recorder,
    empty,
    set_target,
    share_numpy,
)
from minigrad.backends.taichi.runtime.launch_plans import allow_plans, call_planned
from minigrad.core.dispatch import (
    Kernel,
    get_kernels,
    operations,
    register_raw_types,
    register_runner,
    register_synchronizer,
)
from minigrad.core.dispatch import kernel as register
from minigrad.core.errors import DTypeError
from minigrad.core.storage import Allocator, register_device

__all__ = ["TAICHI"]

for _module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
    import_module(_module.name)  # each registers its kernels

_numpy_fallbacks: dict[Any, Kernel] = {}  # Taichi kernel -> its NumPy fallback on cpu while Taichi runs on a GPU


# --- the device that Taichi compiles for ---


def _retarget() -> None:
    """Retarget code generation and the ``cpu`` kernels to the current Taichi architecture."""
    arch = driver.arch()
    source.configure_loops(arch)
    if arch in driver.GPUS:
        narrow = arch in driver.NO_FLOAT64
        gpu = (
            buffers.ARRAYS[arch],
            buffers.POOLS[arch],
            buffers.copy_from_numpy,
            buffers.copy_to_numpy,
            buffers.GpuBlock,
            narrow,
        )
        set_target(Target(*gpu))
    else:
        set_target(CPU)
    for op in operations(TAICHI):
        taichi_kernel = get_kernels(op)[TAICHI]
        current_kernel = get_kernels(op)["cpu"]
        if arch == "cpu" and current_kernel is _numpy_fallbacks.get(taichi_kernel):
            register(op, "cpu")(taichi_kernel)
        elif arch != "cpu" and current_kernel is taichi_kernel:
            register(op, "cpu")(
                _numpy_fallbacks.setdefault(taichi_kernel, _make_numpy_fallback(get_kernels(op)["numpy"]))
            )


driver.on_change(_retarget)


def _make_numpy_fallback(numpy_kernel: Kernel) -> Kernel:
    """Adapt a NumPy kernel to ``cpu`` arrays."""

    def run_numpy(*inputs: Any, out: Any = None, **attrs: Any) -> Any:
        operands = tuple([x.view(np.ndarray) if isinstance(x, CpuArray) else x for x in inputs])
        out_view = tuple([x.view(np.ndarray) for x in out]) if isinstance(out, tuple) else out
        result = reference.run(
            numpy_kernel, operands, attrs, out_view.view(np.ndarray) if isinstance(out_view, np.ndarray) else out_view
        )
        if out is not None:
            return out
        return tuple(map(_to_cpu_array, result)) if isinstance(result, tuple) else _to_cpu_array(result)

    run_numpy.by = "numpy"  # type: ignore[attr-defined]
    return run_numpy


def _to_cpu_array(x: Any) -> Any:
    """Copy a NumPy result to a ``cpu`` array in pool memory; a view of an operand remains a view."""
    if not isinstance(x, np.ndarray):
        return x
    return CPU.from_numpy(x, _empty_on_cpu) if x.base is None else x.view(CpuArray)


def _empty_on_cpu(shape: tuple[int, ...], dtype: Any) -> Any:
    return empty(shape, dtype, CPU)


# --- kernel calls ---


def _register_runner(name: str) -> None:
    state, is_cpu = driver.state, name == "cpu"

    @register_runner(name)
    def run(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any], out: Any = None) -> Any:
        """Call `kernel`, writing the result to `out` if given."""
        if state.core is None or state.core.prog is not state.program:
            driver.start(name if name in driver.GPUS else None)
        if name != (state.arch or "cpu"):
            if name in driver.GPUS:
                driver.start(name)
            kernel = _numpy_fallbacks.get(kernel, kernel)
        if out is None:
            if attrs:
                _check_float64(name, attrs.get("dtype"))
            try:
                return call_planned(kernel, inputs, attrs) if is_cpu else kernel(*inputs, **attrs)
            except ValueError as error:  # raised by NumPy, which creates views
                if (shape_error := size_error(kernel, inputs, attrs, error)) is None:
                    raise
                raise shape_error from None
        if "out" in (getattr(kernel, "__kwdefaults__", None) or ()):
            return kernel(*inputs, **attrs, out=out)
        get_kernels("copy")[name](out, kernel(*inputs, **attrs), out=out)
        return out

    def run_raw(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        return run(kernel, inputs, attrs)

    register_raw_types(name, (_ARRAYS[name],), run_raw, nullcontext)


_ARRAYS: dict[str, type[TaichiArray]] = {"cpu": CpuArray, **buffers.ARRAYS}


def _check_float64(device: str, dtype: Any) -> None:
    """Raise DTypeError for float64 on a GPU that does not support it."""
    if device in driver.NO_FLOAT64 and getattr(dtype, "name", "") == "float64":
        raise DTypeError(
            f"float64: the device {device} does not support float64.\n"
            '  Use float32 instead, x.to(mg.float32), or another device, x.to("cpu").'
        )


# --- array allocation ---


def _cpu_allocator() -> Allocator:
    def fill_on_cpu(shape: tuple[int, ...], dtype: Any, value: Any) -> Any:
        if current_recorder() is not None and driver.arch() == "cpu":
            return full(shape, dtype, value)
        out = _empty_on_cpu(shape, dtype)
        out.view(np.ndarray).fill(value)
        return out

    return Allocator(
        _empty_on_cpu,
        fill_on_cpu,
        share_numpy,
        lambda array: CPU.from_numpy(array, _empty_on_cpu),
        CPU.to_numpy,
        CPU.block,
        CPU.pool,
    )


def _gpu_allocator(name: str) -> Allocator:
    def on_device(allocate: Any) -> Any:
        def start_and_allocate(first: Any, *args: Any) -> Any:
            driver.start(name)
            _check_float64(name, args[0] if args else first.dtype)
            return allocate(first, *args)

        return start_and_allocate

    upload = on_device(copy_to_device)
    return Allocator(
        on_device(empty),
        on_device(full),
        upload,
        upload,
        buffers.copy_to_numpy,
        buffers.GpuBlock,
        buffers.POOLS[name],
        lambda: driver.is_device_available(name),
    )


allow_plans({get_kernels(op)[TAICHI] for op in operations(TAICHI)} - self_planned)
for _name in _ARRAYS:
    for _op in operations(TAICHI):
        register(_op, _name)(get_kernels(_op)[TAICHI])
    register_device(_name, _ARRAYS[_name], _cpu_allocator() if _name == "cpu" else _gpu_allocator(_name))
    _register_runner(_name)
    if _name != "cpu":
        register_synchronizer(_name, driver.synchronize)
