"""Deliberate differences of programs from PyTorch, or errors of PyTorch, each with its reason."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DERIVATIVES", "LEFT_OUT", "REFUSALS", "Derivative", "Refusal", "decided"]


class Refusal(NamedTuple):
    """An error that only one library raises: fragments of the line and of both messages; and why."""

    line: str
    here: str
    there: str
    why: str


class Derivative(NamedTuple):
    """Derivatives that are not compared: a fragment of the line, the first order; and why."""

    line: str
    order: int
    why: str


LIES = "each library and device chooses the strides of results, so a view may be impossible in one of them"
SINGULAR = "rounding decides whether the remainder of a row is exactly 0"
REFUSALS = [
    Refusal("", "", "returns multiple views", "minigrad allows writes to each view of split, unbind and the like"),
    Refusal("", "", "refer to a single memory location", "minigrad copies overlapping operands before a write"),
    Refusal(
        "", "one number stands in several places", "", "PyTorch writes to overlapping windows in unspecified order"
    ),
    Refusal("view", "view size", "", LIES),
    Refusal("view", "", "view size", LIES),
    Refusal("", "", "view size is not compatible", LIES),
    Refusal("softmax", "floating-point tensor", "", "PyTorch accepts integers if the tensor is empty"),
    Refusal("masked_fill_", "", "without overflow", "a negative float is clamped to 0 before the cast to uint8"),
    Refusal("inverses", "is singular", "", SINGULAR),
    Refusal("inverses", "", "singular", SINGULAR),
    Refusal("hardtanh", "", "on an unsigned type", "a negative bound cannot affect unsigned elements"),
    Refusal("cat", "there is no dimension", "", "if all operands have shape (0,), PyTorch accepts any dimension"),
]
DERIVATIVES = [
    Derivative("binary_cross_entropy", 2, "PyTorch adds 1e-12 to a denominator"),
]
# Samples that are compared only separately: one library reports no gradient, the other a gradient of 0.
LEFT_OUT = ("adjoints: ", "indexing: x[False]")


def decided(line: str, here: Exception | None, there: Exception | None) -> bool:
    """Whether only one of the libraries may raise for a line."""
    for one in REFUSALS:
        says = (bool(one.here) == (here is not None), bool(one.there) == (there is not None))
        if all(says) and one.line in line and one.here in str(here or "") and one.there in str(there or ""):
            return True
    return False
