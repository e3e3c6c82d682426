"""Solutions to the exercises of lesson 6."""

from minigrad import lessons

# 6.1 · What does one step in each dimension mean in the list? Rows of x are 6 long.
strides = {
    "x": (6, 1),
    "x.T": (1, 6),
    "x[1:3]": (6, 1),
    "x[::2]": (12, 1),
    "x.reshape(8, 3)": (3, 1),
    "x[0].expand(5, 6)": (0, 1),
}
lessons.check("06.1", strides)

# 6.2 · Reverse everything but the list. The strides of (2, 3, 4) are (12, 4, 1): 0 · 12 + 2 · 4 + 1 · 1 = 9.
ours = {"shape": (2, 3, 4), "index": (0, 2, 1), "position": 9, "dim": 0, "shape of the sum": (3, 4)}
lessons.check("06.2", ours)


# 6.3 · First the dimensions that broadcasting put in front, then those that were 1.
def gradient_before(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim, keepdim=True)
    return gradient


lessons.check("06.3", gradient_before)


# 6.4 · Without keepdim the guesses are a list of n, as the truth is.
def mean_squared_error(w, b, x, truth):
    guess = (x * w).sum(1) + b
    return ((guess - truth) ** 2).mean()


lessons.check("06.4", mean_squared_error)
