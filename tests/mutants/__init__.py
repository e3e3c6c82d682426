"""Mutants: faults that are planted by hand, one by one, to see that a test notices each.

`make mutants` plants them into a copy of the tree and runs, for each, the tests that should notice; `results.txt` has
which test did. A fault here is one that a tired person could make: a wrong sign, a stale guard, an offset off by one,
an exception swallowed, a wrong message. Each room of the house has at least one.

    make mutants ARGS="--only tanh"      only the mutants with this in their name or path
    make mutants ARGS=--whole            run all tests where those that are named notice nothing
    make mutants ARGS=--sane             only see that the named tests pass while nothing is planted

A mutant that survives asks for a test, or for a better mutant: when the code that it changes is rewritten, plant the
fault again in the new code.
"""

from __future__ import annotations

from mutants import backends, engine, jit, library, operations, viewer
from mutants._mutant import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *engine.MUTANTS,
    *operations.MUTANTS,
    *backends.MUTANTS,
    *jit.MUTANTS,
    *library.MUTANTS,
    *viewer.MUTANTS,
)
