"""Anomaly mode: report the first operation that returns a NaN or an infinity, with its pass and source line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minigrad.core.dispatch import Call
from minigrad.core.effects import Effects, listen
from minigrad.core.errors import GraphError, user_source_line
from minigrad.core.grad_mode import copy_overwritten, record_lines
from minigrad.core.modes import modes
from minigrad.core.storage import to_numpy

__all__ = ["detect_anomaly"]


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """Context manager that raises GraphError if an operation creates a NaN, or an infinity from finite operands.

    The error names the operation, the pass, and the source line; in the backward pass, the line of the operation that
    was differentiated. NaNs and infinities that are only propagated are not reported. Every result is checked, which
    makes the computation several times slower.

    >>> import minigrad as mg
    >>> with detect_anomaly():
    ...     mg.tensor([1.0, 0.0]).log()
    Traceback (most recent call last):
    ...
    minigrad.core.errors.GraphError: anomaly: log returned 1 infinity in 2 elements, in the forward pass
      at ...
    """
    with record_lines(), copy_overwritten(), listen(_Anomalies()):
        yield


class _Anomalies(Effects):
    """Listener that raises at the first kernel call that creates a NaN or an infinity."""

    def kernel_called(self, call: Call) -> None:
        input_counts = [_count(x) for x in (*call.inputs, *call.attrs.values())]
        for result in call.result if isinstance(call.result, tuple) else (call.result,):
            nans, infinities = _count(result)
            if nans and not any(n for n, _ in input_counts):
                raise GraphError(_message(call, "NaN", nans, result))
            if infinities and not any(n or i for n, i in input_counts):
                raise GraphError(_message(call, "infinity" if infinities == 1 else "infinities", infinities, result))


def _count(x: Any) -> tuple[int, int]:
    """Return the number of NaN elements and the number of infinite elements of `x`."""
    if isinstance(x, float):
        return int(math.isnan(x)), int(math.isinf(x))
    if getattr(getattr(x, "dtype", None), "kind", "") != "f":
        return 0, 0
    x = to_numpy(x)
    nans = int((x != x).sum())
    return nans, int((abs(x) == math.inf).sum())


def _message(call: Call, kind: str, count: int, result: Any) -> str:
    size = getattr(result, "size", 1)
    message = f"anomaly: {call.op} returned {count} {kind} in {size} element{'s' * (size != 1)}, in the "
    node = modes.passing
    if node is None:
        return f"{message}forward pass\n  at {user_source_line()}"
    name, line = "" if node._op is None else node._op.name, node._get_extra("line", "an unrecorded line")
    return f"{message}backward pass, in the derivative of {name}, which was computed\n  at {line}"
