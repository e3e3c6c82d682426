"""Plans of kernel calls on the device ``cpu``: the launches of a call, found by one look-up on its operands' layouts.

Most of a small call's time is Python that chooses kernels and computes their arguments. Both depend only on the kernel,
its attributes, and the shapes, strides and dtypes of its operands: the key of a call. When a call with the same key is
repeated, its launches are recorded, as `mg.jit` does for a whole step, and compiled to a function that allocates the
results and makes these launches. A call that reads or writes elements on the host has no plan, and while launches are
observed, no plan is used.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import copysign
from typing import Any

import numpy as np

from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import (
    CACHE_LINE,
    CpuArray,
    cpu_pool,
    owned_bytes,
    set_call,
)
from minigrad.backends.taichi.runtime.deferred_checks import check_slot
from minigrad.backends.taichi.runtime.kernel import is_observed
from minigrad.backends.taichi.runtime.launch_recording import ArrayArgument, LaunchRecording, record_launches
from minigrad.core.dispatch import Kernel
from minigrad.core.specialise import compile_function

__all__ = ["allow_plans", "call_planned"]

MAX_PLANS = 4096  # keys per thread, before all are dropped
MAX_LAUNCHES = 16  # a call with more launches has no plan: it takes long anyway
MAX_UNREPEATED = 256  # keys of a kernel without a repetition, after which it has no more plans


class _ThreadPlans(threading.local):
    """The plans of a thread, since the launches of a plan use the error slots of one thread."""

    def __init__(self) -> None:
        self.by_key: dict[Any, Any] = {}
        """The plan of a key; True if it was called once, None if it has no plan."""
        self.unrepeated: Counter[Kernel] = Counter()
        self.generation = _generation


_generation = 0  # number of changes of architecture, after which plans are invalid
_thread_plans = _ThreadPlans()
_kernels: set[Kernel] = set()  # kernels that may have plans


def _invalidate_plans() -> None:
    global _generation
    _generation += 1


driver.on_change(_invalidate_plans)


def allow_plans(kernels: Iterable[Kernel]) -> None:
    """Allow plans for `kernels`, whose effects are their launches only."""
    _kernels.update(kernels)


def call_planned(kernel: Kernel, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Return ``kernel(*inputs, **attrs)``, by a plan if there is one. The operands are on ``cpu``, as is Taichi."""
    if kernel not in _kernels or is_observed():
        return kernel(*inputs, **attrs)
    key: list[Any] = [kernel]
    addresses: list[int] = []
    for x in inputs:
        if x.__class__ is CpuArray:
            if x.address:
                addresses.append(x.address)
                key += x.shape, x.dtype
            else:
                address = x.__array_interface__["data"][0]
                addresses.append(address)
                key += x.shape, x.strides, x.dtype, address % CACHE_LINE, owned_bytes(x)
        else:
            key += x.__class__, x, x.__class__ is float and copysign(1.0, x)
    for x in attrs.values():
        key += x.__class__, x, x.__class__ is float and copysign(1.0, x)
    if _thread_plans.generation != _generation or len(_thread_plans.by_key) > MAX_PLANS:
        _thread_plans.by_key, _thread_plans.generation = {}, _generation
    plans, found = _thread_plans.by_key, tuple(key)
    try:
        plan = plans.get(found, False)
    except TypeError:  # an attribute is not hashable
        return kernel(*inputs, **attrs)
    if plan is None:
        return kernel(*inputs, **attrs)
    if plan.__class__ is not bool:
        return plan(*addresses)
    if not plan:
        plans[found] = True
        _thread_plans.unrepeated[kernel] += 1
        if _thread_plans.unrepeated[kernel] > MAX_UNREPEATED:
            _kernels.discard(kernel)
        return kernel(*inputs, **attrs)
    _thread_plans.unrepeated[kernel] = 0
    plans[found] = None  # unless a plan is made below
    result, plans[found] = _record_call(kernel, inputs, attrs)
    return result


def _record_call(kernel: Kernel, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Call `kernel` and record its launches. Return its result, and a function that repeats the call, or None."""
    arrays = [x for x in inputs if x.__class__ is CpuArray]
    bounds = [np.lib.array_utils.byte_bounds(x) for x in arrays]
    regions = [(("argument", k), start, end - start, None) for k, (start, end) in enumerate(bounds) if end > start]
    with record_launches("cpu", regions) as recording:
        result = kernel(*inputs, **attrs)
    if not recording.launches and all(x.size for x in arrays):
        _kernels.discard(kernel)  # it returns a view, or the host computes it
    if recording.refusal or not 0 < len(recording.launches) <= MAX_LAUNCHES:
        return result, None
    return result, _compile_plan(recording, [x.__array_interface__["data"][0] for x in arrays], result)


def _compile_plan(recording: LaunchRecording, addresses: list[int], result: Any) -> Any:
    """Compile a function of the operands' addresses that repeats the launches; None if it cannot return `result`."""
    results = result if isinstance(result, tuple) else (result,)
    namespace: dict[str, Any] = {
        "allocate": cpu_pool.allocate,
        "new": np.ndarray.__new__,
        "Array": CpuArray,
        "byte": np.dtype(np.uint8),
    }
    sizes: dict[int, int] = {}  # of the allocations, in bytes
    lines = ""
    for k, launch in enumerate(recording.launches):
        namespace[f"k{k}"], expressions = launch.kernel, []
        for j, x in enumerate(launch.args):
            if x.__class__ is not ArrayArgument:
                namespace[f"c{k}_{j}"] = x
                expressions.append(f"c{k}_{j}")
                continue
            owner, start = x.region.owner, x.region.start + x.offset
            if owner == "fixed":
                namespace[f"m{x.region.start}"] = x.region.memory  # keep it alive
                address = str(start)
            elif owner.__class__ is int:
                sizes[owner] = x.region.size
                address = f"p{owner} + {x.offset}" if x.offset else f"p{owner}"
            else:
                address = f"a{owner[1]} + {start - addresses[owner[1]]}"
            expressions.append(f"({address}, {x.items}, {x.size})")
        lines += f"    k{k}.launch({', '.join(expressions)})\n"
    for k, check in enumerate(recording.checks):
        namespace[f"check{k}"], namespace["check_slot"] = check, check_slot
        lines += f"    check_slot(*check{k})\n"
    for k, x in enumerate(results):
        region = recording.region_of(x.__array_interface__["data"][0]) if x.__class__ is CpuArray else None
        if region is None or region.owner.__class__ is not int:
            return None
        k_block, offset = region.owner, x.__array_interface__["data"][0] - region.start
        namespace[f"d{k}"] = x.dtype
        sizes[k_block] = region.size
        if x.address:
            lines += f"    r{k} = new(Array, {x.shape}, d{k}, b{k_block})\n    r{k}.address = p{k_block}\n"
        else:
            memory = f"new(Array, {region.size}, byte, b{k_block})"
            lines += f"    r{k} = new(Array, {x.shape}, d{k}, {memory}, {offset}, {x.strides})\n"
    head = "".join(f"    b{k} = allocate({size})\n    p{k} = b{k}.address\n" for k, size in sorted(sizes.items()))
    names = ", ".join(f"r{k}" for k in range(len(results)))
    end = f"    return ({names},)\n" if isinstance(result, tuple) else f"    return {names}\n"
    parameters = ", ".join(f"a{k}" for k in range(len(addresses)))
    return compile_function("plan", f"def plan({parameters}):\n{head}{lines}{end}", namespace)


set_call(call_planned)
