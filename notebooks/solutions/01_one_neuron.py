"""Solutions to the exercises of lesson 1."""

from minigrad import lessons

# 1.1 · w·x + b is 0, where the sigmoid has slope 0.5 · (1 - 0.5) = 0.25; w·x passes on x = 0.5 to w, and w = 4 to x.
lessons.check("01.1", {"w": 0.25 * 0.5, "x": 0.25 * 4, "b": 0.25})


# 1.2 · A nudge to both sides.
def slope(f, x):
    h = 1e-5
    return (f(x + h) - f(x - h)) / (2 * h)


lessons.check("01.2", slope)


# 1.3 · As a grows, a / b grows by 1 / b of that. As b grows, it shrinks: by a lot while b is small, by little later.
def division(a, b):
    return a / b, 1 / b, -a / b**2


lessons.check("01.3", division)
