"""Wrong answers to the exercises of lesson 9, with the expected explanations."""

import minigrad as mg


def adam(p, g, memory, lr, corrected=True):
    memory["t"] = t = memory.get("t", 0) + 1
    memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * g
    memory["s"] = 0.999 * memory.get("s", 0) + 0.001 * g * g
    if not corrected:
        return p - lr * memory["m"] / (memory["s"].sqrt() + 1e-8)
    return p - lr * memory["m"] / (1 - 0.9**t) / ((memory["s"] / (1 - 0.999**t)).sqrt() + 1e-8)


def heavy(p, g, memory, lr, beta, ahead=lambda g, m, beta: m, store=lambda g, m: m, share=1.0):
    """Apply momentum, stepping along `ahead` and storing the result of `store`."""
    m = beta * memory.get("m", 0) + share * g
    memory["m"] = store(g, m)
    return p - lr * ahead(share * g, m, beta)


def nesterov(p, g, memory, lr, beta, **other):
    return heavy(p, g, memory, lr, beta, lambda g, m, beta: g + beta * m, **other)


def fit(f, p, steps, anew=False, zero="before", loss_once=False):
    optimizer, loss = mg.optim.SGD([p], lr=0.125, momentum=0.5), f(p) if loss_once else None
    for _ in range(steps):
        if anew:
            optimizer = mg.optim.SGD([p], lr=0.125, momentum=0.5)
        if zero == "before":
            optimizer.zero_grad()
        (loss or f(p)).backward()
        if zero == "between":
            optimizer.zero_grad()
        optimizer.step()
    return p


FUNCTIONS = ["09.2", "09.4", "09.5"]  # whose answer is a function

MISTAKES = [
    ("09.1", [0.2, 0.25, 0.125], "the answer should be a dict"),
    ("09.1", {"a": 0.2, "b": 0.25}, "c is missing from the dict"),
    ("09.1", {"a": 0.4, "b": 0.25, "c": 0.125}, "the derivative of 5x² is 10x"),
    ("09.1", {"a": 0.1, "b": 0.25, "c": 0.125}, "one step lands in the minimum. The bound is twice as far"),
    ("09.1", {"a": 0.2, "b": 2 / 3, "c": 0.125}, "that is the bound along x"),
    ("09.1", {"a": 0.2, "b": 2 / 11, "c": 0.125}, "is the best rate, where both shrink equally"),
    ("09.1", {"a": 0.2, "b": 0.25, "c": 0.2}, "the curvature along x alone"),
    ("09.1", {"a": 0.2, "b": 0.25, "c": 0.25}, "so the curvature there is 16"),
    ("09.1", {"a": 0.2, "b": 0.25, "c": 0.5}, "that is the bound along (1, −1)"),
    ("09.1", {"a": -0.2, "b": 0.25, "c": 0.125}, "wrong sign"),
    ("09.2", lambda p, g, memory, lr, beta: p - lr * g, "that is SGD"),
    ("09.2", heavy, "that is momentum as before"),
    ("09.2", lambda p, g, memory, lr, beta: nesterov(p, g, {}, lr, beta), "the memory is empty at each step"),
    ("09.2", lambda p, g, memory, lr, beta: nesterov(p, g, memory, -lr, beta), "uphill: subtract the step"),
    ("09.2", lambda *args: nesterov(*args, store=lambda g, m: g + 0.5 * m), "holds the look-ahead"),
    ("09.2", lambda *args: nesterov(*args, share=0.5), "added with the factor 1 − β, as in Adam"),
    ("09.2", lambda *args: heavy(*args, lambda g, m, beta: m + beta * m), "you step along m + β·m"),
    ("09.2", lambda *args: heavy(*args, lambda g, m, beta: beta * m), "you step along β·m"),
    ("09.2", lambda p, g, memory, lr, beta: (p, memory), "p after step 1 should be a tensor of shape (2,)"),
    ("09.3", {"first": 0.1, "tenth": 6.53, "beta2": 0.99}, "by how much m is too small"),
    ("09.3", {"first": 100.0, "tenth": 6.53, "beta2": 0.99}, "the step is divided by its root"),
    ("09.3", {"first": 0.001**0.5 / 0.1, "tenth": 6.53, "beta2": 0.99}, "the other way round"),
    ("09.3", {"first": 3.16, "tenth": 3.1623, "beta2": 0.99}, "that is the first again"),
    ("09.3", {"first": 3.16, "tenth": 6.53, "beta2": 0.9}, "1 − β₂ has to be 0.1²"),
    ("09.3", {"first": 3.16, "tenth": 6.53, "beta2": 0.01}, "that is 1 − β₂"),
    ("09.3", {"first": 3.16, "tenth": 6.53, "beta2": 0.999}, "beta2 = 0.999 is 1.01 times what it should be"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g + decay * p, memory, lr), "gone into the gradient"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g, memory, lr), "nothing is pulled to 0"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g, memory, lr) - decay * p, "Multiply it by the rate, too"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g, memory, lr) * (1 - lr * decay), "Compute both from the old p"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g, memory, lr) + lr * decay * p, "driven away from 0"),
    ("09.4", lambda p, g, m, lr, decay: adam(p, g, m, lr, corrected=False) - lr * decay * p, "without its correction"),
    ("09.4", lambda p, g, memory, lr, decay: adam(p, g, {}, lr) - lr * decay * p, "Pass on the one"),
    ("09.4", lambda p, g, memory, lr, decay: p - lr * g - lr * decay * p, "that is SGD with a pull"),
    ("09.5", lambda f, p, steps: fit(f, p, steps, anew=True, zero="between"), "p has not changed"),
    ("09.5", lambda f, p, steps: fit(f, p, steps, anew=True), "is re-created at each step, and loses its state"),
    ("09.5", lambda f, p, steps: fit(f, p, steps, zero="never"), "gradients add up from step to step"),
    ("09.5", lambda f, p, steps: fit(f, p, steps, anew=True, zero="never"), "gradients add up: fix both"),
    ("09.5", lambda f, p, steps: fit(f, p, steps + 1), "one step too many"),
    ("09.5", lambda f, p, steps: fit(f, p, steps).tolist()[:1], "should have the shape (2,)"),
]  # fmt: skip
