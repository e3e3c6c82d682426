"""Arguments of a tape: outputs, device and values of leaves, validated and converted."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, ShapeError, a_kind
from minigrad.core.storage import check_device, get_default_device
from minigrad.core.value import Value

__all__ = ["Leaves", "array_of", "device_of", "number_of", "outputs_of", "samples_of"]

MOST = 24  # maximum number of labels listed in an error


class Leaves(tuple[Value, ...]):
    """The leaves of a graph, indexed by position or label: ``leaves[0]``, ``leaves["w"]``."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [leaf for leaf in self if leaf.label == key]
        if len(found) != 1:
            raise ArgumentError(_unknown(key, found, self))
        return found[0]

    def __contains__(self, key: object) -> bool:
        return any(leaf is key for leaf in self)  # == compares data


def _unknown(label: str, found: Sequence[Value], leaves: Sequence[Value]) -> str:
    if found:
        return f"Tape: {len(found)} leaves have the label {label!r}. Pass the Value itself."
    labels = [leaf.label for leaf in leaves if leaf.label is not None]
    names = ", ".join(map(repr, labels[:MOST])) + (", …" if len(labels) > MOST else "")
    return f"Tape: no leaf has the label {label!r}; {f'the labels are {names}' if labels else 'none has a label'}."


def outputs_of(outputs: Any) -> tuple[Value, ...]:
    """Return the outputs as a tuple. Raises DTypeError for one that is not a Value, ShapeError for none."""
    found = tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)
    if not found:
        raise ShapeError("Tape: expected at least one output; pass the Value to compute, or a list of them.")
    for x in found:
        if not isinstance(x, Value):
            raise DTypeError(
                f"Tape: expected the outputs to be Values, but got {x!r}, {a_kind(x)}.\n"
                "  Pass the Value to compute, or a list of them."
            )
    return found


def device_of(device: str | None) -> str:
    """Return "cpu" or "numpy". Raises DeviceError for another device."""
    if device is None:
        found = str(get_default_device())
        return found if found in ("cpu", "numpy") else str(check_device("cpu", "Tape"))
    found = str(check_device(device, "Tape"))
    if found not in ("cpu", "numpy"):
        raise DeviceError(
            f"Tape: {found} is not supported, since a tape computes nodes one at a time.\n"
            '  Use device="cpu" or "numpy".'
        )
    return found


def number_of(x: Any) -> float:
    """Return a float. Raises DTypeError unless `x` is a real number."""
    if not isinstance(x, Real) or isinstance(x, Value):
        raise DTypeError(f"forward: expected a real number, but got {x!r}, {a_kind(x)}.")
    return float(x)


def array_of(x: Any, asked: str) -> Any:
    """Return `x` as an array of float64. Raises DTypeError if it cannot be converted."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise DTypeError(f"{asked}: cannot convert {x!r} to an array of real numbers.") from None


def samples_of(x: Any, dims: int) -> Any:
    """Return `x` as an array of `dims` dimensions. Raises ShapeError for another number of dimensions."""
    found = array_of(x, "batch")
    if found.ndim != dims:
        wanted = "(samples, columns)" if dims == 2 else "(samples,)"
        raise ShapeError(f"batch: expected an array of shape {wanted}, but got shape {found.shape}.")
    return found
