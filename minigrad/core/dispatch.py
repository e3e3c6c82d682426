"""The registry of kernels by operation and device, and `dispatch`, the single entry point that calls them.

Every computation goes through `dispatch`: forward passes, backward passes and optimizer updates. A tap therefore lets a
profiler, recorder or compiler observe all of them. A kernel receives raw operands (floats on the device ``python``) and
is independent of the graph; the graph refers to kernels by name only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from minigrad.core.effects import Effects, disable_effects, listen
from minigrad.core.errors import DeviceError, DTypeError, OutOfMemoryError
from minigrad.core.modes import modes
from minigrad.core.packages import explain_error
from minigrad.core.symbolic import concrete

__all__ = [
    "PYTHON",
    "Call",
    "accept_raw_values",
    "apply_raw",
    "disable_taps",
    "dispatch",
    "get_kernels",
    "is_tapped",
    "kernel",
    "operations",
    "register_raw_types",
    "register_runner",
    "register_synchronizer",
    "synchronize",
    "tap",
]

PYTHON = "python"  # device of Values; its kernels compute on Python floats

Kernel = Callable[..., Any]
Tap = Callable[["Call"], None]

_registry: dict[str, dict[str, Kernel]] = {}  # operation -> device -> kernel
_runners: dict[str, Callable[..., Any]] = {}  # device -> function through which its kernels are called
_synchronizers: dict[str, Callable[[], None]] = {}  # device -> function that waits for its kernels
_raw_types: dict[type, tuple[str, Callable[..., Any]]] = {}  # raw type -> (device, function that calls kernels)
_pass_contexts: list[Callable[[], AbstractContextManager[Any]]] = []  # create context managers for backward passes


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call as passed to a tap: the op, operands, `out`, the result, and the duration in seconds."""

    op: str
    device: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    out: Any
    result: Any
    seconds: float


class _ThreadState(threading.local):
    """Per-thread state."""

    accepts_raw: bool = False  # true inside `accept_raw_values`


_thread_state = _ThreadState()


def kernel(op: str, device: str) -> Callable[[Kernel], Kernel]:
    """Register the decorated function as the kernel of `op` on `device`, replacing an earlier one.

    The kernel receives the raw operands, and the attributes as keyword arguments. It returns the raw result or, if the
    op has several outputs or auxiliary results, a tuple that starts with the outputs. How it writes to ``out`` depends
    on the device; see `register_runner`.

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


def register_runner(device: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function, ``run(kernel, inputs, attrs, out)``, to call the kernels of `device`.

    Devices with mutable arrays need such a function. If `out` is given, it writes the result there and returns `out`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _runners[device] = function
        return function

    return register


def register_synchronizer(device: str, wait: Callable[[], None]) -> None:
    """Register `wait`, which blocks until all kernels of the asynchronous `device` have finished."""
    _synchronizers[device] = wait


def synchronize() -> None:
    """Wait until all kernels on all devices have finished; GPU kernels run asynchronously.

    >>> synchronize()
    """
    for wait in set(_synchronizers.values()):
        wait()


def register_raw_types(
    device: str, types: Iterable[type], run: Callable[..., Any], pass_context: Callable[[], AbstractContextManager[Any]]
) -> None:
    """Register `types` as raw values of `device`, which ops accept inside `accept_raw_values`.

    There, ``run(kernel, inputs, attrs)`` calls a kernel. `pass_context` creates a context manager that is entered for
    each backward pass.
    """
    _raw_types.update(dict.fromkeys(types, (device, run)))
    _pass_contexts.append(pass_context)


class accept_raw_values:
    """Context manager in which ops also accept raw values, for a backward pass without taps."""

    __slots__ = ("_contexts", "_old_value")

    def __enter__(self) -> None:
        self._old_value = _thread_state.accepts_raw
        self._contexts = [block() for block in _pass_contexts]
        for block in self._contexts:
            block.__enter__()
        _thread_state.accepts_raw = True

    def __exit__(self, *raised: Any) -> None:
        _thread_state.accepts_raw = self._old_value
        for block in reversed(self._contexts):
            block.__exit__(*raised)


def apply_raw(op: str, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """Apply `op` to raw values.

    Return NotImplemented outside `accept_raw_values`, or if no input has a registered type.
    """
    if _thread_state.accepts_raw:
        for x in inputs:
            if x.__class__ in _raw_types:
                device, run = _raw_types[x.__class__]
                return run(_registry[op][device], inputs, attrs)
    return NotImplemented


def get_kernels(op: str) -> Mapping[str, Kernel]:
    """Return a mapping from device to kernel of `op`. It is a live view, which includes later registrations."""
    return _registry.setdefault(op, {})


def operations(device: str) -> list[str]:
    """Return the operations with a kernel for `device`."""
    return [op for op, kernels in tuple(_registry.items()) if device in kernels]  # copied: threads may add kernels


def dispatch(
    op: str, device: str, inputs: tuple[Any, ...], attrs: Mapping[str, Any] | None = None, out: Any = None
) -> Any:
    """Run the kernel of `op` on `device` with raw `inputs`, and return its raw result.

    `attrs` are the static attributes. If `out` is given (a tuple for several outputs), the kernel writes its result to
    `out`, which is returned. Raises DeviceError if the device has no kernel for `op`, or if `out` is given on
    ``python``, whose floats are immutable; DTypeError for an int in `inputs` that overflows the arrays' dtype.
    """
    try:
        function = _registry[op][device]
    except KeyError:
        raise DeviceError(_missing_kernel_message(op, device)) from None
    run = _runners.get(device)
    if run is None and out is not None:
        raise DeviceError(f"{op}: out= is not supported on the device {device!r}, whose values are immutable.")
    listeners = modes.kernel_called
    start, call_attrs, operands = 0.0, attrs or {}, inputs
    if listeners:
        start, call_attrs, operands = time.perf_counter(), concrete(call_attrs), concrete(inputs)
    if run is not None:
        try:
            result = run(function, operands, call_attrs, out)
        except OverflowError as error:
            raise DTypeError(_overflow_message(op, inputs, error)) from None
        except MemoryError as error:
            raise OutOfMemoryError(f"{op}: {error}") from None
        except (AttributeError, ImportError) as error:
            if (explanation := explain_error(error, op)) is None:
                raise
            raise explanation from None
    else:
        result = function(*inputs, **attrs) if attrs else function(*inputs)
    if not listeners:
        return result
    if device in _synchronizers:
        _synchronizers[device]()
    call = Call(op, device, inputs, attrs or {}, out, result, time.perf_counter() - start)
    with disable_taps():  # a listener may call kernels, which are not reported to it
        for listener in listeners:
            listener.kernel_called(call)
    return result


def _overflow_message(op: str, inputs: tuple[Any, ...], error: OverflowError) -> str:
    types = " and ".join(sorted({str(x.dtype) for x in inputs if hasattr(x, "dtype")}))
    return (
        f"{op}: value cannot be converted to type {types} without overflow: {error}.\n"
        "  Convert the tensor to a wider dtype first, x.to(mg.int64) or x.to(mg.float64)."
    )


def _missing_kernel_message(op: str, device: str) -> str:
    devices = ", ".join(_registry.get(op, ())) or "no device"
    return (
        f"{op}: no kernel for device {device!r}; it has one for {devices}.\n  Add one: @mg.kernel({op!r}, {device!r})"
    )


class _Tap(Effects):
    """Listener that calls a function for every kernel call."""

    def __init__(self, listener: Tap) -> None:
        self._listener = listener

    def kernel_called(self, call: Call) -> None:
        self._listener(call)


def tap(listener: Tap) -> AbstractContextManager[None]:
    """Context manager that calls `listener` for every kernel call of this thread.

    >>> seen = []
    >>> with tap(lambda call: seen.append((call.op, call.inputs, call.result))):
    ...     dispatch("add", "python", (2.0, 3.0))
    5.0
    >>> seen
    [('add', (2.0, 3.0), 5.0)]
    """
    return listen(_Tap(listener))


def disable_taps() -> AbstractContextManager[None]:
    """Return a context manager that disables the taps of this thread."""
    return disable_effects("kernel_called")


def is_tapped() -> bool:
    """Return whether this thread has an active tap."""
    return bool(modes.kernel_called)
