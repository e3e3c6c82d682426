"""Guards: values that count as the same, and changes that a compiled expression of guards notices."""

import enum
import math
from array import array
from decimal import Decimal
from fractions import Fraction
from types import CellType

import numpy as np
import pytest

from minigrad.compiler.jit import guards

SAME = [
    (1, 1),
    (10**30, 10**30),
    ("a" * 50, "".join(["a"] * 50)),
    (math.nan, float("nan")),
    (1.5, 1.5),
    (1 + 0j, complex(1, 0)),
    (Fraction(1, 3), Fraction(2, 6)),
    (Decimal("1.5"), Decimal("1.5")),
    (np.float32(0.5), np.float32(0.5)),
    ((1, ("a", 0.5)), (1, ("a", 0.5))),
    (slice(1, 2), slice(1, 2)),
    ([].append, [].append),
]
DIFFERENT = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    (complex(0.0, -0.0), 0j),
    (Decimal("1.0"), Decimal("1.00")),
    (np.float32(0.0), np.float32(-0.0)),
    (np.float32(0.5), np.float64(0.5)),
    ((0.0,), (-0.0,)),
    (slice(0, 1), slice(False, 1)),
    ([1], [1]),
    ({}, {}),
]


@pytest.mark.parametrize(("now", "before"), SAME[:-1], ids=repr)
def test_equal_values_of_one_type_are_the_same(now, before):
    assert guards.is_same(now, before)
    assert guards.is_value(now)


@pytest.mark.parametrize(("now", "before"), DIFFERENT, ids=repr)
def test_equal_values_of_other_types_are_not_the_same(now, before):
    assert not guards.is_same(now, before)


def test_a_bound_method_is_the_same_only_of_the_same_object():
    items = []
    assert guards.is_same(items.append, items.append)
    assert not guards.is_same(items.append, [].append)
    assert not guards.is_value(items.append)


def test_enum_members_and_containers_are_not_values():
    assert not any(map(guards.is_value, [enum.Enum("E", "A").A, [1], {1}, {}, (1, [2]), object(), np.ones(1), int]))


class Slotted:
    __slots__ = ("x",)


def changes():
    """Return guards, a change that breaks each, and the reason that it then reports."""
    table, empty, values, long, pairs = {"a": 1}, [], [1, 2], list(range(9)), {"k": object()}
    of, slotted, raw, array_of_floats = CellType(2.0), Slotted(), np.zeros(2), array("d", [1.0])
    slotted.x = 1
    return [
        (guards.guard_entry(table, "a", "a"), lambda: table.update(a=2), "a changed from 1 to 2"),
        (guards.guard_entry(table, "b", "b"), lambda: table.update(b=2), "b was added"),
        (guards.guard_entry(pairs, "k", "k"), pairs.clear, "k was deleted"),
        (guards.guard_entries(empty, "empty"), lambda: empty.append(1), "empty changed"),
        (guards.guard_entries(values, "values"), lambda: values.reverse(), "values changed"),
        (guards.guard_entries(long, "long"), lambda: long.__setitem__(8, 9), "long changed"),
        (guards.guard_entries(pairs, "pairs"), lambda: pairs.update(k=1), "pairs changed"),
        (guards.guard_length(values, "values"), values.pop, "the number of values changed from 2 to 1"),
        (guards.guard_cell(of, "c"), lambda: setattr(of, "cell_contents", 3.0), "c changed from 2.0 to 3.0"),
        (guards.guard_attribute(slotted, "x", "x"), lambda: setattr(slotted, "x", None), "x changed from 1 to None"),
        (guards.guard_bytes(raw, "raw"), lambda: raw.fill(1), "the contents of raw changed"),
        (guards.guard_bytes(array_of_floats, "n"), lambda: array_of_floats.append(2.0), "the contents of n changed"),
        (guards.guard_absence(table, frozenset("xy"), "x"), lambda: table.update(y=1), "x appeared"),
        (guards.guard_identity(lambda: table.get("z"), "z"), lambda: table.update(z=1), "z changed from None to 1"),
        (guards.guard_result(lambda: str(values), "v"), lambda: values.append(5), "v changed"),
    ]


@pytest.mark.parametrize("k", range(len(changes())))
def test_a_guard_holds_until_what_it_reads_changes(k):
    guard, change, description = changes()[k]
    hold = guards.compile_guards([guard])
    assert (hold([]), guard.holds()) == (True, True)
    change()
    assert (hold([]), guard.holds(), guard.describe_failure()) == (False, False, description)


def test_an_equal_value_fails_the_expression_and_passes_the_guard():
    table = {"rate": float("0.1")}
    guard = guards.guard_entry(table, "rate", "rate")
    hold = guards.compile_guards([guard])
    table["rate"] = float("0.10")
    assert (hold([]), guard.holds()) == (False, True)


def test_an_expression_names_arguments_and_a_test_that_raises_fails():
    hold = guards.compile_guards([], [("tensors[0] is {0}", (sentinel := object(),))])
    assert (hold([sentinel]), hold([object()]), hold([])) == (True, False, False)
