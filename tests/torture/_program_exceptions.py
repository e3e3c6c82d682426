"""Deliberate differences of programs from PyTorch, or errors of PyTorch, each with its reason."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "EXCLUDED_SAMPLES",
    "EXPECTED_ERRORS",
    "UNCOMPARED_DERIVATIVES",
    "ExpectedError",
    "UncomparedDerivative",
    "is_expected",
]


class ExpectedError(NamedTuple):
    """An error that only one library raises: fragments of the line and of both messages; and why."""

    line: str
    minigrad_message: str
    torch_message: str
    reason: str


class UncomparedDerivative(NamedTuple):
    """Derivatives that are not compared: a fragment of the line, the first order; and why."""

    line: str
    order: int
    reason: str


LAYOUT_REASON = "each library and device chooses the strides of results, so a view may be impossible in one of them"
SINGULAR_REASON = "rounding decides whether the remainder of a row is exactly 0"
EXPECTED_ERRORS = [
    ExpectedError(
        "", "", "returns multiple views", "minigrad allows writes to each view of split, unbind and the like"
    ),
    ExpectedError("", "", "refer to a single memory location", "minigrad copies overlapping operands before a write"),
    ExpectedError(
        "", "one number stands in several places", "", "PyTorch writes to overlapping windows in unspecified order"
    ),
    ExpectedError("view", "view size", "", LAYOUT_REASON),
    ExpectedError("view", "", "view size", LAYOUT_REASON),
    ExpectedError("", "", "view size is not compatible", LAYOUT_REASON),
    ExpectedError("softmax", "floating-point tensor", "", "PyTorch accepts integers if the tensor is empty"),
    ExpectedError("masked_fill_", "", "without overflow", "a negative float is clamped to 0 before the cast to uint8"),
    ExpectedError("inverses", "is singular", "", SINGULAR_REASON),
    ExpectedError("inverses", "", "singular", SINGULAR_REASON),
    ExpectedError("hardtanh", "", "on an unsigned type", "a negative bound cannot affect unsigned elements"),
    ExpectedError("cat", "there is no dimension", "", "if all operands have shape (0,), PyTorch accepts any dimension"),
]
UNCOMPARED_DERIVATIVES = [
    UncomparedDerivative("binary_cross_entropy", 2, "PyTorch adds 1e-12 to a denominator"),
]
# Samples that are compared only separately: one library reports no gradient, the other a gradient of 0.
EXCLUDED_SAMPLES = ("adjoints: ", "indexing: x[False]")


def is_expected(line: str, minigrad_error: Exception | None, torch_error: Exception | None) -> bool:
    """Whether only one of the libraries may raise for a line."""
    for one in EXPECTED_ERRORS:
        says = (
            bool(one.minigrad_message) == (minigrad_error is not None),
            bool(one.torch_message) == (torch_error is not None),
        )
        if (
            all(says)
            and one.line in line
            and one.minigrad_message in str(minigrad_error or "")
            and one.torch_message in str(torch_error or "")
        ):
            return True
    return False
