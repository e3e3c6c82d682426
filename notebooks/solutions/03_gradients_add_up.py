"""Solutions to the exercises of lesson 3."""

import minigrad as mg
from minigrad import lessons

# 3.1 · a is a factor twice (the rest of the product is a·b = 6 each time) and stands alone once.
lessons.check("03.1", {"a": 6 + 6 + 1, "b": 3 * 3})


# 3.2 · The sum of what arrives.
def gradient_of(events, value):
    total = 0.0
    for event in events:
        if event.target is value:
            total += event.contribution
    return total


lessons.check("03.2", gradient_of)


# 3.3 · Compute, forget, go backward, step.
def descend(start, steps):
    x = mg.Value(start)
    for _ in range(steps):
        loss = x * x - 4 * x
        x.grad = None
        loss.backward()
        x.data -= 0.25 * x.grad
    return x.data


lessons.check("03.3", descend)
