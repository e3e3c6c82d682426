"""Solutions to the exercises of lesson 16."""

import math

import minigrad as mg
from minigrad import lessons

# 16.1 · The derivative is 3u² · 2x with u = x² − 1, so 6x · u²: a product. At x = 2, u is 3.
derivative = {"first": 6 * 2 * 3**2, "second": 6 * 3**2 + 6 * 2 * (2 * 3 * 2 * 2)}
lessons.check("16.1", derivative)


# 16.2 · The gradient of g · v is Hv.
def bend(f, p, v):
    p = p.detach().requires_grad_()
    (g,) = mg.grad(f(p), p, create_graph=True)
    (product,) = mg.grad((g * v).sum(), p)
    return ((v * product).sum() / (v * v).sum()).item()


lessons.check("16.2", bend)


# 16.3 · A graph for the derivative, its derivative, and a step with the sign of the first derivative.
def downhill(f, x, steps):
    for _ in range(steps):
        value = mg.Value(x)
        (g,) = mg.grad(f(value), value, create_graph=True)
        (c,) = mg.grad(g, value)
        x -= g.data / abs(c)
    return x


lessons.check("16.3", downhill)


# 16.4 · Each local derivative, times the derivative of its operand.
def div(p, q):
    (a, da), (b, db) = p, q
    return a / b, da / b - a * db / b**2


def sin(p):
    a, da = p
    return math.sin(a), math.cos(a) * da


def exp(p):
    a, da = p
    return math.exp(a), math.exp(a) * da


lessons.check("16.4", {"div": div, "sin": sin, "exp": exp})

# 16.5 · A run for each input forward, for each result in reverse.
cheaper = {"pen": ("forward", 1), "camera": ("forward", 6), "loss": ("reverse", 1), "robot": ("reverse", 3)}
lessons.check("16.5", cheaper)
