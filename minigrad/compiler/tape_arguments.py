"""Arguments of a tape: outputs, device and values of leaves, validated and converted."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import Any

from minigrad.core.dispatch import PYTHON
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, ShapeError, describe_type
from minigrad.core.packages import explain_import_errors
from minigrad.core.storage import check_device, get_default_device
from minigrad.core.value import Value

__all__ = [
    "Leaves",
    "check_float",
    "check_outputs",
    "check_samples_shape",
    "check_tape_device",
    "conversion_error",
    "shape_of",
]

MAX_LISTED_LABELS = 24  # maximum number of labels listed in an error


class Leaves(tuple[Value, ...]):
    """The leaves of a graph, indexed by position or label: ``leaves[0]``, ``leaves["w"]``."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        matches = [leaf for leaf in self if leaf.label == key]
        if len(matches) != 1:
            raise ArgumentError(_describe_unknown_label(key, matches, self))
        return matches[0]

    def __contains__(self, key: object) -> bool:
        return any(leaf is key for leaf in self)  # == compares data


def _describe_unknown_label(label: str, matches: Sequence[Value], leaves: Sequence[Value]) -> str:
    if matches:
        return f"Tape: {len(matches)} leaves have the label {label!r}. Pass the Value itself."
    labels = [leaf.label for leaf in leaves if leaf.label is not None]
    names = ", ".join(map(repr, labels[:MAX_LISTED_LABELS])) + (", …" if len(labels) > MAX_LISTED_LABELS else "")
    return f"Tape: no leaf has the label {label!r}; {f'the labels are {names}' if labels else 'none has a label'}."


def check_outputs(outputs: Any) -> tuple[Value, ...]:
    """Return the outputs as a tuple. Raises DTypeError if an output is not a Value, ShapeError if it is empty."""
    values = tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)
    if not values:
        raise ShapeError("Tape: expected at least one output; pass the Value to compute, or a list of them.")
    for x in values:
        if not isinstance(x, Value):
            raise DTypeError(
                f"Tape: expected the outputs to be Values, but got {x!r}, {describe_type(x)}.\n"
                "  Pass the Value to compute, or a list of them."
            )
    return values


def check_tape_device(device: str | None) -> str:
    """Return the device of a tape, "cpu", "numpy" or "python". Raises DeviceError for another device.

    The default is the default device of tensors if a tape can run there; without NumPy it is "python". Raises
    MissingPackageError for a device whose package is not installed.
    """
    if device == PYTHON or (device is None and find_spec("numpy") is None):
        return PYTHON
    with explain_import_errors("Tape", ', or compute without it: mg.Tape(…, device="python")'):
        import_module("minigrad.backends.arrays")  # registers the devices
    if device is None:
        device_name = str(get_default_device())
        return device_name if device_name in ("cpu", "numpy") else str(check_device("cpu", "Tape"))
    device_name = str(check_device(device, "Tape"))
    if device_name not in ("cpu", "numpy"):
        raise DeviceError(
            f"Tape: {device_name} is not supported, since a tape computes nodes one at a time.\n"
            '  Use device="cpu", "numpy" or "python".'
        )
    return device_name


def check_float(x: Any) -> float:
    """Return `x` as a float. Raises DTypeError unless `x` is a real number."""
    if not isinstance(x, Real) or isinstance(x, Value):
        raise DTypeError(f"forward: expected a real number, but got {x!r}, {describe_type(x)}.")
    return float(x)


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array or of nested lists. Raises ValueError if the lists have different lengths.

    >>> shape_of([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), shape_of(1.0)
    ((3, 2), ())
    """
    if not isinstance(x, list):
        return tuple(getattr(x, "shape", ()))
    shapes = {shape_of(item) for item in x} or {()}
    if len(shapes) > 1:
        raise ValueError("the lists have different lengths")
    return (len(x), *shapes.pop())


def conversion_error(x: Any, caller: str) -> DTypeError:
    """Return the error for `x`, which cannot be converted to floats."""
    return DTypeError(f"{caller}: cannot convert {x!r} to an array of real numbers.")


def check_samples_shape(samples: Any, dims: int) -> tuple[int, ...]:
    """Return the shape of `samples`. Raises ShapeError unless it has `dims` dimensions."""
    shape = shape_of(samples)
    if len(shape) != dims:
        expected_shape = "(samples, columns)" if dims == 2 else "(samples,)"
        raise ShapeError(f"batch: expected an array of shape {expected_shape}, but got shape {shape}.")
    return shape
