"""What a tape is given: outputs, a device, numbers for leaves; checked, in the form that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, ShapeError, a_kind
from minigrad.core.storage import check_device, get_default_device
from minigrad.core.value import Value

__all__ = ["Leaves", "array_of", "device_of", "number_of", "outputs_of", "samples_of"]

MOST = 24  # labels that are named in an error


class Leaves(tuple[Value, ...]):
    """The leaves of a graph, by place and by label: ``leaves[0]``, ``leaves["w"]``."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [leaf for leaf in self if leaf.label == key]
        if len(found) != 1:
            raise ArgumentError(_unknown(key, found, self))
        return found[0]

    def __contains__(self, key: object) -> bool:
        return any(leaf is key for leaf in self)  # == compares numbers


def _unknown(label: str, found: Sequence[Value], leaves: Sequence[Value]) -> str:
    if found:
        return f"Tape: {len(found)} leaves are called {label!r}. Say which by the Value itself."
    labels = [leaf.label for leaf in leaves if leaf.label is not None]
    names = ", ".join(map(repr, labels[:MOST])) + (", …" if len(labels) > MOST else "")
    return f"Tape: no leaf is called {label!r}; {f'there are {names}' if labels else 'none has a label'}."


def outputs_of(outputs: Any) -> tuple[Value, ...]:
    """The outputs, one or several. Raises DTypeError for what is no Value, ShapeError for none."""
    found = tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)
    if not found:
        raise ShapeError("Tape: there is no output; give the Value to compute, or a list of them.")
    for x in found:
        if not isinstance(x, Value):
            raise DTypeError(
                f"Tape: {x!r} is {a_kind(x)}, not a Value.\n"
                "  A tape is of a graph of Values: give the Value that was computed, or a list of them."
            )
    return found


def device_of(device: str | None) -> str:
    """ "cpu" or "numpy". Raises DeviceError for another."""
    if device is None:
        found = str(get_default_device())
        return found if found in ("cpu", "numpy") else str(check_device("cpu", "Tape"))
    found = str(check_device(device, "Tape"))
    if found not in ("cpu", "numpy"):
        raise DeviceError(
            f"Tape: nodes are computed one after the other, which is no work for {found}.\n"
            '  Choose device="cpu", or "numpy".'
        )
    return found


def number_of(x: Any) -> float:
    """A float. Raises DTypeError for what is no real number."""
    if not isinstance(x, Real) or isinstance(x, Value):
        raise DTypeError(f"forward: {x!r} is {a_kind(x)}, not a real number.")
    return float(x)


def array_of(x: Any, asked: str) -> Any:
    """An array of float64. Raises DTypeError for what is none."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise DTypeError(f"{asked}: {x!r} is no array of real numbers.") from None


def samples_of(x: Any, dims: int) -> Any:
    """An array of so many dimensions. Raises ShapeError for others."""
    found = array_of(x, "batch")
    if found.ndim != dims:
        wanted = "(samples, columns)" if dims == 2 else "(samples,)"
        raise ShapeError(f"batch: an array of shape {found.shape} was given, and {wanted} is asked for.")
    return found
