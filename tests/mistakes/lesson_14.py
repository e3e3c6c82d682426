"""Wrong answers to the exercises of lesson 14, with the expected explanations."""

import math

import minigrad as mg

FUNCTIONS = ["14.3", "14.4"]  # whose answer is a function

SAMPLED = {"value": 5.75, "by the 6": 0.125, "by x": -1.0, "by y": 5.5}
THETA = {
    "twice as large": [[0.5, 0, 0], [0, 0.5, 0]],
    "to the right": [[1, 0, -0.5], [0, 1, 0]],
    "quarter turn": [[0, -1, 0], [1, 0, 0]],
    "left half": [[0.5, 0, -0.5], [0, 1, 0]],
}


def line(value=None, by_line=None, by_x=None):
    """Return the right sampler with some of its three results replaced by functions of a, b and u."""

    def sample(table, x):
        left = math.floor(x)
        (a, b), u = table[left : left + 2], x - left
        two = by_line(a, b, u) if by_line else (1 - u, u)
        derivatives = [0.0] * left + list(two) + [0.0] * (len(table) - left - 2)
        return value(a, b, u) if value else (1 - u) * a + u * b, derivatives, by_x(a, b, u) if by_x else b - a

    return sample


def short(values, x):
    value, _, by_x = line()(values, x)
    return value, [1 - x % 1, x % 1], by_x


def parts(first, second):
    return first[:, :2], first[:, 2:], second[:, :2], second[:, 2:]


def after(shift):
    """Return the right product with another shift, a function of the four parts."""

    def both(first, second):
        a, s, b, t = parts(first, second)
        return mg.cat([a @ b, shift(a, s, b, t)], 1)

    return both


def exchanged(first, second):
    a, s, b, t = parts(first, second)
    return mg.cat([b @ a, b @ s + t], 1)


def square(first, second):
    row = mg.tensor([[0.0, 0.0, 1.0]])
    return mg.cat([first, row]) @ mg.cat([second, row])


MISTAKES = [
    ("14.1", {**SAMPLED, "value": 4.75}, "x and y are exchanged"),
    ("14.1", {**SAMPLED, "value": 5.25}, "u and 1 − u are exchanged"),
    ("14.1", {**SAMPLED, "value": 5.5}, "that is the plain mean of the four"),
    ("14.1", {**SAMPLED, "value": 10}, "that is the nearest pixel"),
    ("14.1", {**SAMPLED, "by the 6": 0.375}, "that is the weight of the 2"),
    ("14.1", {**SAMPLED, "by the 6": 0.75}, "that is what the 6 contributes to the value"),
    ("14.1", {**SAMPLED, "by x": 4}, "The rise of the lower pair, −6"),
    ("14.1", {**SAMPLED, "by x": -2}, "the sum of the two rises"),
    ("14.1", {**SAMPLED, "by x": 1}, "the right size but the wrong sign. A little to the right, the picture is darker"),
    ("14.1", {**SAMPLED, "by x": 5.5, "by y": -1}, "that is the derivative downwards. By x, pair left with right"),
    ("14.1", {**SAMPLED, "by y": 0.5}, "mixed the wrong way round"),
    ("14.1", {**SAMPLED, "by y": 3}, "and u is ¼"),
    ("14.1", {"value": 5.75, "by x": -1, "by y": 5.5}, "by the 6 is missing from the dict"),
    ("14.1", 5.75, "the answer should be a dict"),
    ("14.2", {**THETA, "twice as large": [[2, 0, 0], [0, 2, 0]]}, "the picture comes out half as large"),
    ("14.2", {**THETA, "twice as large": [[0.5, 0, 0], [0, 1, 0]]}, "it is scaled across only"),
    ("14.2", {**THETA, "to the right": [[1, 0, 0.5], [0, 1, 0]]}, "Look to the left"),
    ("14.2", {**THETA, "to the right": [[1, 0, -0.25], [0, 1, 0]]}, "from −1 to 1 the width is 2"),
    ("14.2", {**THETA, "to the right": [[1, 0, 0], [0, 1, -0.5]]}, "that is a shift downwards"),
    ("14.2", {**THETA, "to the right": [[1, 0, 2], [0, 1, 0]]}, "that is in pixels"),
    ("14.2", {**THETA, "quarter turn": [[0, 1, 0], [-1, 0, 0]]}, "that picture turns to the right"),
    ("14.2", {**THETA, "quarter turn": [[0, 1, 0], [1, 0, 0]]}, "that is a mirror: rows become columns"),
    ("14.2", {**THETA, "left half": [[0.5, 0, 0.5], [0, 1, 0]]}, "that is the right half"),
    ("14.2", {**THETA, "left half": [[0.5, 0, 0], [0, 1, 0]]}, "that is the middle half"),
    ("14.2", {**THETA, "left half": [[2, 0, 1], [0, 1, 0]]}, "that is the inverse map"),
    ("14.2", {**THETA, "left half": [[0.5, -0.5], [1, 0]]}, "should have the shape (2, 3), and this has (2, 2)"),
    ("14.2", {"quarter turn": THETA["quarter turn"]}, "is missing from the dict"),
    ("14.3", line(value=lambda a, b, u: u * a + (1 - u) * b), "u and 1 − u are exchanged. The nearer"),
    ("14.3", line(value=lambda a, b, u: a if u < 0.5 else b), "that is the nearest element"),
    ("14.3", line(value=lambda a, b, u: (a + b) / 2), "that is the mean of the two"),
    ("14.3", short, "two derivatives by the line. Return one for each element of it"),
    ("14.3", line(by_line=lambda a, b, u: (u, 1 - u)), "the nearer neighbour has the larger derivative"),
    ("14.3", line(by_line=lambda a, b, u: ((1 - u) * a, u * b)), "Its derivative is the weight alone"),
    ("14.3", line(by_line=lambda a, b, u: (1.0, 1.0)), "the neighbours are mixed"),
    ("14.3", line(by_x=lambda a, b, u: a - b), "the wrong sign. It is the right element minus the left one"),
    ("14.3", line(by_x=lambda a, b, u: 0.0), "that is the derivative of rounding"),
    ("14.3", line(by_x=lambda a, b, u: u * (b - a)), "a straight line has one derivative"),
    ("14.3", lambda values, x: line()(values, x)[0], "return three things"),
    ("14.3", lambda values, x: line()(values, x)[:2], "this is 2 things"),
    ("14.4", exchanged, "the two are exchanged"),
    ("14.4", after(lambda a, s, b, t: s + t), "first applies to the shift of second, too"),
    ("14.4", after(lambda a, s, b, t: s), "the shift of second is lost"),
    ("14.4", after(lambda a, s, b, t: a @ t), "the shift of first is lost."),
    ("14.4", after(lambda a, s, b, t: b @ s + t), "that of the other order"),
    ("14.4", square, "that is 3 × 3. Leave out the last row"),
    ("14.4", lambda first, second: first @ second, "shapes that do not match"),
    ("14.4", lambda first, second: first * second, "that is elementwise"),
    ("14.4", lambda first, second: first + second, "One map after the other is a product"),
]  # fmt: skip
