"""Wrong answers to the exercises of lesson 1, with the expected explanations."""

import minigrad as mg

H = 1e-5


def back(program, values, add=True, forward=False, swapped=False):
    slopes = {"add": lambda x, y: (1, 1), "mul": lambda x, y: (x, y) if swapped else (y, x), "neg": lambda x: (-1,)}
    gradients = [0.0] * (len(values) - 1) + [1.0]
    rows = range(len(values) - len(program), len(values))
    for row in rows if forward else reversed(rows):
        op, *reads = program[row - len(values)]
        for read, slope in zip(reads, slopes[op](*[values[k] for k in reads]), strict=True):
            gradients[read] = (gradients[read] if add else 0.0) + gradients[row] * slope
    return gradients


FUNCTIONS = ["01.2", "01.3"]  # whose answer is a function

MISTAKES = [
    ("01.1", {"w": 0.5, "x": 1.0, "b": 0.25}, "passes on only a quarter"),
    ("01.1", {"w": 1.0, "x": 0.125, "b": 0.25}, "w and x have changed places"),
    ("01.1", {"w": 0.125, "x": -1.0, "b": 0.25}, "∂y/∂x = -1 has the right size but the wrong sign. If x goes up, y"),
    ("01.1", {"w": 0.125, "x": 1.0, "b": 0.0}, "b is added, so w·x + b moves exactly as far"),
    ("01.1", {"w": 0.125, "x": 1.0}, "the slope by b is missing from the dict"),
    ("01.1", [0.125, 1.0, 0.25], 'should be a dict, {"w": …, "x": …, "b": …}, and this is a list'),
    ("01.1", {"w": "0.125", "x": 1.0, "b": 0.25}, "∂y/∂w should be a number, and this is a str"),
    ("01.1", {"w": mg.Value(0.125), "x": 1.0, "b": 0.25}, "take its .data or its .grad"),
    ("01.1", {"w": 0.03125, "x": 1.0, "b": 0.25}, "is 0.25 times what it should be. Is a factor missing?"),
    ("01.2", lambda f, x: f(x + H) - f(x - H), "Divide it by how far x moved"),
    ("01.2", lambda f, x: (f(x + H) - f(x - H)) / H, "twice too much. From x - h to x + h it is 2h"),
    ("01.2", lambda f, x: (f(x + H) - f(x)) / (2 * H), "divide by h, not by 2 * h"),
    ("01.2", lambda f, x: (f(x - H) - f(x + H)) / (2 * H), "wrong sign"),
    ("01.2", lambda f, x: (f(x + 1e-17) - f(x)) / 1e-17, "x + h is rounded back to x"),
    ("01.2", lambda f, x: (f(x + 0.1) - f(x)) / 0.1, "Take a smaller step"),
    ("01.2", lambda f, x: f(x), "that is f(x) itself"),
    ("01.2", 6.0, "this is a float, not a function"),
    ("01.3", lambda a, b: (a / b, 1 / b, a / b**2), "wrong sign. A larger divisor makes a positive quotient smaller"),
    ("01.3", lambda a, b: (a / b, 1 / b, -a / b), "b² is below the line"),
    ("01.3", lambda a, b: (a / b, 1 / b, -1 / b**2), "the factor a is missing"),
    ("01.3", lambda a, b: (a / b, -a / b**2, 1 / b), "the two slopes have changed places"),
    ("01.3", lambda a, b: (a / b, b, -a / b**2), "that would be the slope of a·b"),
    ("01.3", lambda a, b: a / b, "should be 3 numbers (a / b, the slope by a, the slope by b), and this is a float"),
]  # fmt: skip
