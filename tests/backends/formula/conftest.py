"""Fixture for custom operations."""

from collections.abc import Callable

import pytest

import minigrad as mg


@pytest.fixture
def declare():
    """Declare ops for one test, from a formula and the number of operands."""
    names = []

    def one(formula: str, arity: int = 1, rule: Callable[..., object] = lambda g: g, **options: object) -> mg.Op:
        names.append(f"test_formula_{len(names)}")
        return mg.Op(names[-1], formula, vjp=(rule,) * arity, **options)

    yield one
    for name in names:
        del mg.OPS[name]
