"""Mutation tests: hand-written mutants, each of which a test must kill.

`make mutants` applies them to a copy of the tree and runs, for each, the tests that should fail; `results.txt` records
which test did. A mutant is a plausible mistake: a wrong sign, a stale guard, an off-by-one offset, a swallowed
exception, a wrong message. Each package has at least one.

    make mutants ARGS="--only tanh"      only the mutants with this in their name or path
    make mutants ARGS=--whole            run all tests if the listed ones do not kill a mutant
    make mutants ARGS=--sane             only check that the listed tests pass without a mutant

A surviving mutant calls for a test, or for a better mutant. When the code that it changes is rewritten, write the
mutant again for the new code.
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
