"""Plans of kernel calls on the device ``cpu``: the launches of a call, found by one look-up on its operands' layouts.

Most of a small call's time is Python that chooses kernels and computes their arguments. Both depend only on the kernel,
its attributes, and the shapes, strides and dtypes of its operands: the key of a call. When a call with the same key is
repeated, its launches are recorded, as `mg.jit` does for a whole step, and compiled to a function that allocates the
results and makes these launches. It also keeps its last small results, and returns one again once nobody else refers to
it: to allocate an array and to free it takes longer than most of these launches. A call that reads or writes elements
on the host has no plan, and while launches are observed, no plan is used.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import copysign
from typing import Any, cast

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
MAX_KEPT_RESULTS = 8  # maximum number of results that a plan keeps, for eight equal layers
MAX_KEPT_SIZE = 1 << 14  # maximum size in bytes of a result that is kept
MAX_KEPT_BYTES = 1 << 24  # maximum size of all results that the plans of a thread may keep

# Lines of a plan that set x{k} to a free result of those that it keeps, or to a new one, and p{k} to its address.
_REUSE = """    for x{k} in kept{k}:
        if references(x{k}) == {free[0]} and references(x{k}.base) == {free[1]}:
            break
    else:
        if len(kept{k}) == {limit}:
            kept{k}.clear()
        b{k} = allocate({size})
        x{k} = new(Array, {shape}, t{k}, b{k})
        x{k}.address = b{k}.address
        del b{k}
        kept{k}.append(x{k})
    p{k} = x{k}.address
"""


def _count_references() -> tuple[int, int]:
    """Return the reference counts in `_REUSE` of a result to which nothing else refers, and of its block.

    Python 3.14 passes local variables without counting a reference.
    """
    source = "def count(kept, references):\n    for x in kept:\n        return references(x), references(x.base)\n"
    count = compile_function("count", source)
    return cast(tuple[int, int], count([np.empty(1, np.uint8).view(CpuArray)], sys.getrefcount))


FREE = _count_references()


class _ThreadPlans(threading.local):
    """The plans of a thread, since the launches of a plan use the error slots of one thread."""

    def __init__(self) -> None:
        self.by_key: dict[Any, Any] = {}
        """The plan of a key; True if it was called once, None if it has no plan."""
        self.unrepeated: Counter[Kernel] = Counter()
        self.kept_bytes = 0
        """The size of all results that the plans may keep."""
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
        _thread_plans.by_key, _thread_plans.generation, _thread_plans.kept_bytes = {}, _generation, 0
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
    return result, _Plan(recording, inputs).compile(result)


class _Plan:
    """The source of a function of the addresses of a call's operands that repeats its launches."""

    def __init__(self, recording: LaunchRecording, inputs: Sequence[Any]) -> None:
        self._recording = recording
        self._addresses = [x.__array_interface__["data"][0] for x in inputs if x.__class__ is CpuArray]
        self._allocated: set[int] = set()
        self._whole_results: dict[int, Any] = {}  # by allocation, the first result that starts there
        self._results: dict[int, str] = {}  # the name of each result, by its id
        self._lines: list[str] = []
        self._namespace: dict[str, Any] = {
            "allocate": cpu_pool.allocate,
            "new": np.ndarray.__new__,
            "Array": CpuArray,
            "byte": np.dtype(np.uint8),
            "references": sys.getrefcount,
        }

    def compile(self, result: Any) -> Any:
        """Return the function; None if it cannot return `result`."""
        results = result if isinstance(result, tuple) else (result,)
        for x in results:
            region = self._recording.region_of(x.address) if getattr(x, "address", 0) else None
            if region is not None and region.owner.__class__ is int and region.start == x.address:
                self._whole_results.setdefault(region.owner, x)
        for k, launch in enumerate(self._recording.launches):
            self._namespace[f"k{k}"] = launch.kernel
            arguments = [self._argument(f"c{k}_{j}", x) for j, x in enumerate(launch.args)]
            self._lines.append(f"    k{k}.launch({', '.join(arguments)})\n")
        for k, check in enumerate(self._recording.checks):
            self._namespace[f"check{k}"], self._namespace["check_slot"] = check, check_slot
            self._lines.append(f"    check_slot(*check{k})\n")
        names = [self._result(x) for x in results]
        if None in names:
            return None
        returned = f"({', '.join(map(str, names))},)" if isinstance(result, tuple) else names[0]
        parameters = ", ".join(f"a{k}" for k in range(len(self._addresses)))
        source = f"def plan({parameters}):\n{''.join(self._lines)}    return {returned}\n"
        return compile_function("plan", source, self._namespace)

    def _block(self, k: int, size: int) -> str:
        """Return the name of the address of allocation `k`, which is allocated before its first use."""
        if k in self._allocated:
            return f"p{k}"
        self._allocated.add(k)
        x, kept_bytes = self._whole_results.get(k), _thread_plans.kept_bytes + MAX_KEPT_RESULTS * size
        if x is not None:
            self._results[id(x)], self._namespace[f"t{k}"] = f"x{k}", x.dtype
            if size <= MAX_KEPT_SIZE and kept_bytes <= MAX_KEPT_BYTES:
                self._namespace[f"kept{k}"], _thread_plans.kept_bytes = [], kept_bytes
                self._lines.append(_REUSE.format(k=k, size=size, shape=x.shape, free=FREE, limit=MAX_KEPT_RESULTS))
                return f"p{k}"
        self._lines.append(f"    b{k} = allocate({size})\n    p{k} = b{k}.address\n")
        if x is not None:
            self._lines.append(f"    x{k} = new(Array, {x.shape}, t{k}, b{k})\n    x{k}.address = p{k}\n")
        return f"p{k}"

    def _argument(self, name: str, x: Any) -> str:
        """Return the expression of a launch's argument."""
        if x.__class__ is not ArrayArgument:
            self._namespace[name] = x
            return name
        owner, start = x.region.owner, x.region.start + x.offset
        if owner == "fixed":
            self._namespace[f"m{x.region.start}"] = x.region.memory  # keep it alive
            address = str(start)
        elif owner.__class__ is int:
            address = self._block(owner, x.region.size)
            address = f"{address} + {x.offset}" if x.offset else address
        else:
            offset = start - self._addresses[owner[1]]
            address = f"a{owner[1]} + {offset}" if offset else f"a{owner[1]}"
        return f"({address}, {x.items}, {x.size})"

    def _result(self, x: Any) -> str | None:
        """Add lines that create a result and return its name; None if it is not in memory that the call allocates."""
        region = self._recording.region_of(x.__array_interface__["data"][0]) if x.__class__ is CpuArray else None
        if region is None or region.owner.__class__ is not int:
            return None
        block, offset, k = region.owner, x.__array_interface__["data"][0] - region.start, len(self._results)
        self._block(block, region.size)
        if id(x) not in self._results:  # a view
            owner = f"x{block}.base" if block in self._whole_results else f"b{block}"
            memory = f"new(Array, {region.size}, byte, {owner})"
            self._namespace[f"d{k}"], self._results[id(x)] = x.dtype, f"r{k}"
            self._lines.append(f"    r{k} = new(Array, {x.shape}, d{k}, {memory}, {offset}, {x.strides})\n")
        return self._results[id(x)]


set_call(call_planned)
