"""The registry, (operation, device) -> kernel on raw arrays, and `dispatch`, the one way in.

Every computation passes `dispatch`: forward, backward, an optimizer's update. So one tap there sees everything
that happens: a profiler, a recorder, a compiler. A kernel gets raw operands (floats on the device ``python``)
and knows nothing of graphs; a graph knows nothing of kernels but their names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from minigrad.errors import DeviceError

__all__ = ["Call", "detour", "dispatch", "kernel", "kernels_of", "runner", "tap", "tapped", "untapped"]

Kernel = Callable[..., Any]
Tap = Callable[["Call"], None]

_registry: dict[str, dict[str, Kernel]] = {}  # operation -> device -> kernel
_runners: dict[str, Callable[..., Any]] = {}  # device -> how its kernels are called, where not simply so


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call, as a tap sees it: what was computed, from what, where to, and how long it took in seconds."""

    op: str
    device: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    out: Any
    result: Any
    seconds: float


class _Detour:
    """Counts the reasons, over all threads, why a `Value` may not compute inline: a tap, a scope, `no_grad`, …

    While there are none nobody is looking, and a `Value` may do its float arithmetic without a dispatch. One number for
    all threads is quick to read; which thread has which reason is known where it matters, behind the detour.
    """

    __slots__ = ("_lock", "reasons")

    def __init__(self) -> None:
        self.reasons = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.reasons += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.reasons -= 1


class _Taps(threading.local):
    active: tuple[Tap, ...] = ()


detour = _Detour()
_taps = _Taps()


def kernel(op: str, device: str) -> Callable[[Kernel], Kernel]:
    """Register the decorated function as the kernel of `op` on `device`, in place of an earlier one.

    It is called with the raw operands and the attributes as keywords, and returns the raw result: a tuple, outputs
    first, where the operation has several outputs or auxiliary results. How it is asked to write in place is its
    device's business; see `runner`.

    >>> @kernel("twice", "python")
    ... def twice(a: float) -> float:
    ...     return 2 * a
    >>> dispatch("twice", "python", (3.0,))
    6.0
    """

    def register(function: Kernel) -> Kernel:
        _registry.setdefault(op, {})[device] = function
        return function

    return register


def runner(device: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the way to call kernels of `device`: run(kernel, inputs, attrs, out).

    A device with mutable numbers has one. It writes into `out` where that is given, and returns it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _runners[device] = function
        return function

    return register


def kernels_of(op: str) -> Mapping[str, Kernel]:
    """The kernels of `op` by device, as they are now and will be when one is registered."""
    return _registry.setdefault(op, {})


def dispatch(
    op: str, device: str, inputs: tuple[Any, ...], attrs: Mapping[str, Any] | None = None, out: Any = None
) -> Any:
    """Run the kernel of `op` on `device` over raw `inputs`, and return its raw result.

    `attrs` are the static attributes. `out` makes a mutation explicit: the kernel writes there, and `out` comes back.
    Raises DeviceError if there is no such kernel, or if `out` is given on ``python``, whose floats cannot be written.
    """
    try:
        function = _registry[op][device]
    except KeyError:
        raise DeviceError(_missing(op, device)) from None
    run = _runners.get(device)
    if run is None and out is not None:
        raise DeviceError(f"{op}: out= was given on the device {device!r}, whose numbers cannot be written in place.")
    listeners = _taps.active
    start = time.perf_counter() if listeners else 0.0
    if run is not None:
        result = run(function, inputs, attrs or {}, out)
    else:
        result = function(*inputs, **attrs) if attrs else function(*inputs)
    if not listeners:
        return result
    call = Call(op, device, inputs, attrs or {}, out, result, time.perf_counter() - start)
    with untapped():  # a listener may compute, and must not hear itself
        for listener in listeners:
            listener(call)
    return result


def _missing(op: str, device: str) -> str:
    devices = ", ".join(_registry.get(op, ())) or "no device"
    return (
        f"{op}: no kernel on the device {device!r}; it has one on {devices}.\n  Add one: @mg.kernel({op!r}, {device!r})"
    )


@contextmanager
def tap(listener: Tap) -> Iterator[None]:
    """Tell `listener` of every kernel call that this thread makes inside the block.

    >>> seen = []
    >>> with tap(lambda call: seen.append((call.op, call.inputs, call.result))):
    ...     dispatch("add", "python", (2.0, 3.0))
    5.0
    >>> seen
    [('add', (2.0, 3.0), 5.0)]
    """
    with detour, _tapped_by((*_taps.active, listener)):
        yield


def untapped() -> AbstractContextManager[None]:
    """A block in which no tap hears what this thread computes."""
    return _tapped_by(())


@contextmanager
def _tapped_by(taps: tuple[Tap, ...]) -> Iterator[None]:
    before = _taps.active
    _taps.active = taps
    try:
        yield
    finally:
        _taps.active = before


def tapped() -> bool:
    """Whether a tap listens to this thread."""
    return bool(_taps.active)
