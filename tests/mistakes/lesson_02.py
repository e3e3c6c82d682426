"""Wrong answers to the exercises of lesson 2, with the expected explanations."""

import math

import minigrad as mg


def in_order_by(visited_type, operands):
    def is_in_order(values):
        visited = visited_type()
        for value in values:
            if any(isinstance(x, mg.Value) and x not in visited for x in operands(value)):
                return False
            visited.add(value) if visited_type is set else visited.append(value)
        return True

    return is_in_order


def sine(*factors):
    """A product of the local slopes named, of three."""
    local = {"square": lambda x: 2 * math.sin(3 * x), "sine": lambda x: math.cos(3 * x), "inner": lambda x: 3.0}
    return lambda x: math.prod(local[name](x) for name in factors)


FUNCTIONS = ["02.2", "02.3"]  # whose answer is a function

MISTAKES = [
    ("02.1", {"a": 0.5, "b": 1.5, "c": 1.5, "d": -0.75}, "wrong sign. If c goes up, y goes down"),
    ("02.1", {"a": 2, "b": 6, "c": -6, "d": -0.75}, "its local slope, 1/d, is missing"),
    ("02.1", {"a": 0.5, "b": 0.25, "c": -1.5, "d": -0.75}, "the multiplication by a lies on the way"),
    ("02.1", {"a": 0.5, "b": 1.5, "c": -1.5, "d": -3}, "the square is missing"),
    ("02.2", lambda values: True, "you say True to [a + b, a, b], but it is not in order: the sum comes before"),
    ("02.2", lambda values: False, "you say False to [a, b, a + b], but it is in order: both operands come before"),
    ("02.2", in_order_by(set, lambda value: value.inputs[:1]), "b, the second operand, comes too late"),
    ("02.2", in_order_by(list, lambda value: value.inputs), "`==` compares numbers: use a set"),
    ("02.3", sine("square", "sine"), "the slope of the innermost step, 3·x, is missing"),
    ("02.3", sine("square", "inner"), "the slope of the sine, cos(3x), is missing"),
    ("02.3", sine("sine", "inner"), "the slope of the square, 2·sin(3x), is missing"),
    ("02.3", lambda x: 6 * math.sin(3 * x) * math.cos(x), "cos(3x), not cos(x)"),
    ("02.3", lambda x: -6 * math.sin(3 * x) * math.cos(3 * x), "wrong sign. The sine's slope is +cos"),
]  # fmt: skip
