"""The registry, (operation, device) -> kernel on raw arrays, and `dispatch`, the one way in.

Every computation passes `dispatch`: forward, backward, an optimizer's update. So one tap there sees everything
that happens: a profiler, a recorder, a compiler. A kernel gets raw operands (floats on the device ``python``)
and knows nothing of graphs; a graph knows nothing of kernels but their names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from minigrad.core.effects import Effects, listen, unheard
from minigrad.core.errors import DeviceError, DTypeError, OutOfMemoryError
from minigrad.core.modes import modes
from minigrad.core.packages import changed
from minigrad.core.symbolic import plain

__all__ = [
    "PYTHON",
    "Call",
    "apply_raw",
    "dispatch",
    "kernel",
    "kernels_of",
    "on_raw_numbers",
    "operations",
    "raw_numbers",
    "runner",
    "synchronize",
    "tap",
    "tapped",
    "untapped",
    "waits",
]

PYTHON = "python"  # the device of Values, whose kernels compute on floats

Kernel = Callable[..., Any]
Tap = Callable[["Call"], None]

_registry: dict[str, dict[str, Kernel]] = {}  # operation -> device -> kernel
_runners: dict[str, Callable[..., Any]] = {}  # device -> how its kernels are called, where not simply so
_waits: dict[str, Callable[[], None]] = {}  # device -> what waits until it has done what it was told
_raw: dict[type, tuple[str, Callable[..., Any]]] = {}  # type of raw numbers -> their device, and how to call kernels
_around: list[Callable[[], AbstractContextManager[Any]]] = []  # what surrounds a pass on raw numbers


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


class _Here(threading.local):
    """What this thread is doing."""

    raw: bool = False  # inside `on_raw_numbers`


_here = _Here()


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


def waits(device: str, wait: Callable[[], None]) -> None:
    """Say that `device` computes by itself, and that `wait` returns when it has done all that it was told."""
    _waits[device] = wait


def synchronize() -> None:
    """Wait until every device has done what it was told: kernels of a GPU run while Python goes on.

    >>> synchronize()
    """
    for wait in set(_waits.values()):
        wait()


def raw_numbers(
    device: str, types: Iterable[type], run: Callable[..., Any], around: Callable[[], AbstractContextManager[Any]]
) -> None:
    """Say that numbers of `types` are raw numbers of `device`, to which ops apply inside `on_raw_numbers`.

    There run(kernel, inputs, attrs) calls a kernel, and `around` makes a block for a whole pass.
    """
    _raw.update(dict.fromkeys(types, (device, run)))
    _around.append(around)


class on_raw_numbers:
    """A block in which ops apply to raw numbers too: a backward pass whose arithmetic nobody listens to."""

    __slots__ = ("_around", "_before")

    def __enter__(self) -> None:
        self._before = _here.raw
        self._around = [block() for block in _around]
        for block in self._around:
            block.__enter__()
        _here.raw = True

    def __exit__(self, *raised: Any) -> None:
        _here.raw = self._before
        for block in reversed(self._around):
            block.__exit__(*raised)


def apply_raw(op: str, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """`op` of raw numbers, inside `on_raw_numbers`; NotImplemented where none of `inputs` is of a registered type."""
    if _here.raw:
        for x in inputs:
            if x.__class__ in _raw:
                device, run = _raw[x.__class__]
                return run(_registry[op][device], inputs, attrs)
    return NotImplemented


def kernels_of(op: str) -> Mapping[str, Kernel]:
    """The kernels of `op` by device, as they are now and will be when one is registered."""
    return _registry.setdefault(op, {})


def operations(device: str) -> list[str]:
    """The operations that have a kernel on `device`."""
    return [op for op, kernels in tuple(_registry.items()) if device in kernels]  # a copy: threads register


def dispatch(
    op: str, device: str, inputs: tuple[Any, ...], attrs: Mapping[str, Any] | None = None, out: Any = None
) -> Any:
    """Run the kernel of `op` on `device` over raw `inputs`, and return its raw result.

    `attrs` are the static attributes. `out`, a tuple where there are several outputs, makes a mutation explicit: the
    kernel writes there, and `out` comes back.
    Raises DeviceError if there is no such kernel, or if `out` is given on ``python``, whose floats cannot be written;
    DTypeError for an int among `inputs` that is too large for the type of the arrays.
    """
    try:
        function = _registry[op][device]
    except KeyError:
        raise DeviceError(_missing(op, device)) from None
    run = _runners.get(device)
    if run is None and out is not None:
        raise DeviceError(f"{op}: out= was given on the device {device!r}, whose numbers cannot be written in place.")
    listeners = modes.kernel_called
    start, given, operands = 0.0, attrs or {}, inputs
    if listeners:
        start, given, operands = time.perf_counter(), plain(given), plain(inputs)
    if run is not None:
        try:
            result = run(function, operands, given, out)
        except OverflowError as error:
            raise DTypeError(_too_large(op, inputs, error)) from None
        except MemoryError as error:
            raise OutOfMemoryError(f"{op}: {error}") from None
        except (AttributeError, ImportError) as error:
            if (said := changed(error, op)) is None:
                raise
            raise said from None
    else:
        result = function(*inputs, **attrs) if attrs else function(*inputs)
    if not listeners:
        return result
    if device in _waits:
        _waits[device]()
    call = Call(op, device, inputs, attrs or {}, out, result, time.perf_counter() - start)
    with untapped():  # a listener may compute, and must not hear itself
        for listener in listeners:
            listener.kernel_called(call)
    return result


def _too_large(op: str, inputs: tuple[Any, ...], error: OverflowError) -> str:
    types = " and ".join(sorted({str(x.dtype) for x in inputs if hasattr(x, "dtype")}))
    return (
        f"{op}: one of the numbers does not fit into the others' type, {types}: {error}.\n"
        "  Convert the tensor to a wider type first, x.to(mg.int64) or x.to(mg.float64)."
    )


def _missing(op: str, device: str) -> str:
    devices = ", ".join(_registry.get(op, ())) or "no device"
    return (
        f"{op}: no kernel on the device {device!r}; it has one on {devices}.\n  Add one: @mg.kernel({op!r}, {device!r})"
    )


class _Tap(Effects):
    """Calls a function with every kernel call."""

    def __init__(self, listener: Tap) -> None:
        self._listener = listener

    def kernel_called(self, call: Call) -> None:
        self._listener(call)


def tap(listener: Tap) -> AbstractContextManager[None]:
    """Tell `listener` of every kernel call that this thread makes inside the block.

    >>> seen = []
    >>> with tap(lambda call: seen.append((call.op, call.inputs, call.result))):
    ...     dispatch("add", "python", (2.0, 3.0))
    5.0
    >>> seen
    [('add', (2.0, 3.0), 5.0)]
    """
    return listen(_Tap(listener))


def untapped() -> AbstractContextManager[None]:
    """A block in which no tap hears what this thread computes."""
    return unheard("kernel_called")


def tapped() -> bool:
    """Whether a tap listens to this thread."""
    return bool(modes.kernel_called)
