"""Solutions to the exercises of lesson 2."""

import minigrad as mg
from minigrad import lessons

# 2.1 · With n = a·m and m = b - c: the upstream gradients are 1/d = 1/4 at n, and a/d = 6/4 at m.
a, b, c, d = 6, 5, 3, 4
by_n = 1 / d
by_m = by_n * a
lessons.check("02.1", {"a": by_n * (b - c), "b": by_m * 1, "c": by_m * -1, "d": -a * (b - c) / d**2})


# 2.2 · A set keeps Values apart by what they are, not by their number.
def is_in_order(values):
    seen = set()
    for value in values:
        for operand in value.inputs:
            if isinstance(operand, mg.Value) and operand not in seen:
                return False
        seen.add(value)
    return True


lessons.check("02.2", is_in_order)


# 2.3 · The three local slopes, multiplied: of the square, of the sine, of 3·x.
def slope(x):
    return 2 * mg.sin(3 * x) * mg.cos(3 * x) * 3


lessons.check("02.3", slope)
