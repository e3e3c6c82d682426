"""Where programs differ from PyTorch on purpose, or PyTorch is wrong: a reason a line."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DERIVATIVES", "LEFT_OUT", "REFUSALS", "Derivative", "Refusal", "decided"]


class Refusal(NamedTuple):
    """What one refuses and the other does not: words of the line, and of what we and PyTorch say; and why."""

    line: str
    here: str
    there: str
    why: str


class Derivative(NamedTuple):
    """Derivatives that are not compared: words of a line, from which order on; and why."""

    line: str
    order: int
    why: str


LIES = "how a result lies in memory is each library's own, and each device's: what a view needs may not be so"
SINGULAR = "whether what is left of a row is 0 or what was rounded off is chance"
REFUSALS = [
    Refusal("", "", "returns multiple views", "of split, unbind and the like each view may be written to here"),
    Refusal("", "", "refer to a single memory location", "a write is as if its operands were copied before"),
    Refusal("", "one number stands in several places", "", "PyTorch writes over windows, in some order"),
    Refusal("", "refers to a single memory location", "", "PyTorch writes over windows, in some order"),
    Refusal("view", "cannot be seen as", "", LIES),
    Refusal("view", "", "cannot be seen as", LIES),
    Refusal("", "", "view size is not compatible", LIES),
    Refusal("softmax", "floating-point tensor", "", "PyTorch takes whole numbers where there are none"),
    Refusal("masked_fill_", "", "without overflow", "a fraction below 0 is cut to 0 before it is a byte"),
    Refusal("inverses", "is singular", "", SINGULAR),
    Refusal("inverses", "", "singular", SINGULAR),
    Refusal("hardtanh", "", "on an unsigned type", "no byte is below a bound below 0, so nothing is wrong"),
    Refusal("cat", "dimension out of range", "", "where all operands are of shape (0,) PyTorch takes any dimension"),
]
DERIVATIVES = [
    Derivative("binary_cross_entropy", 2, "PyTorch adds 1e-12 to a denominator"),
]
# Samples that are compared by themselves alone: one library says that there is no gradient, the other that it is 0.
LEFT_OUT = ("adjoints: ", "indexing: x[False]")


def decided(line: str, here: Exception | None, there: Exception | None) -> bool:
    """Whether it was decided that one refuses a line and the other does not."""
    for one in REFUSALS:
        says = (bool(one.here) == (here is not None), bool(one.there) == (there is not None))
        if all(says) and one.line in line and one.here in str(here or "") and one.there in str(there or ""):
            return True
    return False
