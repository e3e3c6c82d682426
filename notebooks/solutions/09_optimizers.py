"""Solutions to the exercises of lesson 9."""

import minigrad as mg
from minigrad import lessons

# 9.1 · The derivative of 5x² is 10x. Of two curvatures the larger one counts. The gradient of c at (1, 1) is (16, 16).
bound = {"a": 2 / 10, "b": 2 / 8, "c": 2 / 16}
lessons.check("09.1", bound)


# 9.2 · Add g to the memory; the same g again would turn it into beta * m + g.
def nesterov(p, g, memory, lr, beta=0.9):
    memory["m"] = beta * memory.get("m", 0) + g
    return p - lr * (beta * memory["m"] + g)


lessons.check("09.2", nesterov)

# 9.3 · m is too small by 1 - beta1**t, s by 1 - beta2**t; the first step is right if 1 - beta2 is the square of 0.1.
without = {
    "first": (1 - 0.9) / (1 - 0.999) ** 0.5,
    "tenth": (1 - 0.9**10) / (1 - 0.999**10) ** 0.5,
    "beta2": 1 - 0.1**2,
}
lessons.check("09.3", without)


# 9.4 · Adam's step, from the gradient alone, and the pull, from the old p.
def adam(p, g, memory, lr, beta1=0.9, beta2=0.999):
    memory["t"] = t = memory.get("t", 0) + 1
    memory["m"] = beta1 * memory.get("m", 0) + (1 - beta1) * g
    memory["s"] = beta2 * memory.get("s", 0) + (1 - beta2) * g * g
    mean, square = memory["m"] / (1 - beta1**t), memory["s"] / (1 - beta2**t)
    return p - lr * mean / (square.sqrt() + 1e-8)


def adamw(p, g, memory, lr, decay):
    return adam(p, g, memory, lr) - lr * decay * p


lessons.check("09.4", adamw)


# 9.5 · One optimizer for all steps; and zero_grad, backward, step, in this order.
def fit(f, p, steps):
    optimizer = mg.optim.SGD([p], lr=0.125, momentum=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        f(p).backward()
        optimizer.step()
    return p


lessons.check("09.5", fit)
