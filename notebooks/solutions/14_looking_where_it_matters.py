"""Solutions to the exercises of lesson 14."""

import math

import minigrad as mg
from minigrad import lessons

# 14.1 · The weights are ⅜, ⅛ above and below. The rises: ½ · 4 − ½ · 6 to the right, ¾ · 8 − ¼ · 2 downwards.
sampled = {"value": 5.75, "by the 6": 0.125, "by x": -1.0, "by y": 5.5}
lessons.check("14.1", sampled)

# 14.2 · Ask where the right, (1, 0), the bottom, (0, 1), and the middle, (0, 0), of the result should look.
theta = {
    "twice as large": [[0.5, 0, 0], [0, 0.5, 0]],
    "to the right": [[1, 0, -0.5], [0, 1, 0]],
    "quarter turn": [[0, -1, 0], [1, 0, 0]],
    "left half": [[0.5, 0, -0.5], [0, 1, 0]],
}
lessons.check("14.2", theta)


# 14.3 · Bilinear, with one direction less.
def sample_line(line, x):
    left = math.floor(x)
    u = x - left
    by_line = [0.0] * len(line)
    by_line[left], by_line[left + 1] = 1 - u, u
    return (1 - u) * line[left] + u * line[left + 1], by_line, line[left + 1] - line[left]


lessons.check("14.3", sample_line)


# 14.4 · x'' = A (B x + t) + s = A B x + (A t + s). With a third row, 0 0 1, it is a single matrix product.
def both(first, second):
    return first @ mg.cat([second, mg.tensor([[0.0, 0.0, 1.0]])])


lessons.check("14.4", both)
