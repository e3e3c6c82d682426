"""Wrong answers to the exercises of lesson 16, with the expected explanations."""

import math

import minigrad as mg


def along(f, p, v, last=lambda product, v, g: ((v * product).sum() / (v * v).sum()).item()):
    p = p.detach().requires_grad_()
    (g,) = mg.grad(f(p), p, create_graph=True)
    (product,) = mg.grad((g * v).sum(), p)
    return last(product, v, g)


def diagonal(f, p, v):
    h = mg.autograd.hessian(f, p)
    return sum((h[k, k] * v[k] * v[k]).item() for k in range(len(v))) / (v * v).sum().item()


def walk(f, x, steps, move=lambda g, c: g / abs(c)):
    for _ in range(steps):
        value = mg.Value(x)
        (g,) = mg.grad(f(value), value, create_graph=True)
        (c,) = mg.grad(g, value)
        x -= move(g.data, c)
    return x


def duals(**other):
    return {
        "div": lambda p, q: (p[0] / q[0], p[1] / q[0] - p[0] * q[1] / q[0] ** 2),
        "sin": lambda p: (math.sin(p[0]), math.cos(p[0]) * p[1]),
        "exp": lambda p: (math.exp(p[0]), math.exp(p[0]) * p[1]),
        **other,
    }


def modes(**other):
    right = {"pen": ("forward", 1), "camera": ("forward", 6), "loss": ("reverse", 1), "robot": ("reverse", 3)}
    return {**right, **other}


FUNCTIONS = ["16.2", "16.3"]  # whose answer is a function

MISTAKES = [
    ("16.1", [108, 342], "the answer should be a dict"),
    ("16.1", {"first": 108}, "second is missing from the dict"),
    ("16.1", {"first": 27, "second": 342}, "the derivative of x² − 1, which is 2x = 4, is missing"),
    ("16.1", {"first": 36, "second": 342}, "its square is missing"),
    ("16.1", {"first": 108, "second": 54}, "that is 6·(x² − 1)² alone. Differentiate 6x·(x² − 1)² as a product"),
    ("16.1", {"first": 108, "second": 288}, "times the derivative of (x² − 1)², alone"),
    ("16.1", {"first": 108, "second": 126}, "in the second part the inner derivative is missing"),
    ("16.1", {"first": 108, "second": 18}, "as if u = x² − 1 moved as fast as x"),
    ("16.1", {"first": 108, "second": 108}, "that is the first derivative. Differentiate it once more"),
    ("16.1", {"first": 108, "second": -342}, "wrong sign"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: (v * product).sum().item()), "Divide by v · v"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: (v * product).sum() / v.norm()), "over the length of v"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: product), "tensor has 2 elements. Is it Hv alone?"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: (g * v).sum().item()), "the directional derivative"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: product.norm() / v.norm()), "that is how long Hv is"),
    ("16.2", lambda *a: along(*a, lambda product, v, g: product.sum() / (v * v).sum()), "you add up Hv"),
    ("16.2", diagonal, "only the diagonal of H"),
    ("16.3", lambda f, x, steps: walk(f, x, steps, lambda g, c: g / c), "it has climbed"),
    ("16.3", lambda f, x, steps: walk(f, x, steps, lambda g, c: -g / abs(c)), "uphill: subtract the step"),
    ("16.3", lambda f, x, steps: walk(f, x, steps, lambda g, c: g), "plain descent at the rate 1"),
    ("16.3", lambda f, x, steps: walk(f, x, steps, lambda g, c: abs(c) / g), "upside down"),
    ("16.3", lambda f, x, steps: walk(f, x, steps, lambda g, c: abs(g / c)), "The derivative keeps its sign"),
    ("16.3", lambda f, x, steps: walk(f, x, steps - 1), "x has not changed"),
    ("16.3", lambda f, x, steps: walk(f, x, steps + 1), "one step too many"),
    ("16.3", lambda f, x, steps: [x, walk(f, x, steps)], "should be a scalar, and this is a list"),
    ("16.4", lambda p, q: p, "the answer should be a dict"),
    ("16.4", duals(div=lambda p, q: (p[0] / q[0], p[1] / q[1])), "no quotient of derivatives"),
    ("16.4", duals(div=lambda p, q: (p[0] / q[0], p[1] / q[0] + p[0] * q[1] / q[0] ** 2)), "has a minus sign"),
    ("16.4", duals(div=lambda p, q: (p[0] / q[0], p[1] / q[0])), "The second moves as well"),
    ("16.4", duals(div=lambda p, q: (p[0] / q[0], p[1] / q[0] - p[0] * q[1] / q[0])), "−a/b², with a square"),
    ("16.4", duals(div=lambda p, q: p[0] / q[0]), "should be 2 numbers (value, derivative), and this is a float"),
    ("16.4", duals(sin=lambda p: (math.sin(p[0]), math.cos(p[0]))), "Multiply it by the derivative of the operand"),
    ("16.4", duals(sin=lambda p: (math.sin(p[0]), -math.cos(p[0]) * p[1])), "cos, without a minus"),
    ("16.4", duals(sin=lambda p: (math.sin(p[0]), math.sin(p[1]))), "do not apply the function"),
    ("16.4", duals(exp=lambda p: (math.exp(p[0]), math.exp(p[0]))), "Multiply it by the derivative of the operand"),
    ("16.4", duals(exp=lambda p: (math.exp(p[0]), p[0] * math.exp(p[0] - 1) * p[1])), "that is the rule of powers"),
    ("16.5", ["forward"], "the answer should be a dict"),
    ("16.5", modes(pen="forward"), 'give a pair like ("forward", 7)'),
    ("16.5", modes(pen=("reverse", 2)), "a run for each result, 2. The other takes fewer"),
    ("16.5", modes(loss=("forward", 2410)), "a run for each input, 2410. The other takes fewer"),
    ("16.5", modes(camera=("forward", 10_000)), "that is what the other mode would take"),
    ("16.5", modes(robot=("reverse", 21)), "that is the number of elements"),
]  # fmt: skip
