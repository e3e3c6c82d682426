"""Fixture for custom operations."""

from collections.abc import Callable

import pytest

import minigrad as mg


@pytest.fixture
def declare():
    """Declare ops for one test, from a formula and the number of operands."""
    made = []

    def one(formula: str, arity: int = 1, rule: Callable[..., object] = lambda g: g, **options: object) -> mg.Op:
        made.append(f"test_formula_{len(made)}")
        return mg.Op(made[-1], formula, vjp=(rule,) * arity, **options)

    yield one
    for name in made:
        del mg.OPS[name]
