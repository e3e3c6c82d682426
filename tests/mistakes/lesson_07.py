"""Wrong answers to the exercises of lesson 7, with the expected explanations."""

import minigrad as mg

FUNCTIONS = ["07.1", "07.2", "07.3", "07.4"]  # whose answer is a function


def layer(to_x=None, to_w=None, to_b=None):
    """Return the right rule of a layer with some of its three parts replaced."""
    return lambda g, x, w: (
        to_x(g, x, w) if to_x else g @ w,
        to_w(g, x, w) if to_w else g.T @ x,
        to_b(g) if to_b else g.sum(0),
    )


MISTAKES = [
    ("07.1", lambda g, a: g / a.numel(), "a gradient has the shape of its operand"),
    ("07.1", lambda g, a: g, "Divide it among the elements of a"),
    ("07.1", lambda g, a: g.expand(a.shape), "that is the rule of the sum"),
    ("07.1", lambda g, a: g.expand(a.shape) / len(a), "divided by the number of rows"),
    ("07.1", lambda g, a: -g.expand(a.shape) / a.numel(), "the right size but the wrong sign. If an element goes up"),
    ("07.1", lambda g, a: mg.ones_like(a) / a.numel(), "the local derivative, and g is missing"),
    ("07.1", lambda g, a: g * a / a.numel(), "no a in it"),
    ("07.1", lambda g, a: 2 * g.expand(a.shape) / a.numel(), "2 times what it should be"),
    ("07.1", lambda g, a: (g,), "Divide it among the elements of a"),
    ("07.1", lambda g, a: g.expand(len(a)), "should have the shape (4, 3), and this has (4,)"),
    ("07.1", "g / n", "not a function"),
    ("07.2", layer(to_x=lambda g, x, w: g @ w.T), "Is a transpose missing, or on the wrong side?"),
    ("07.2", layer(to_x=lambda g, x, w: (g @ w).T), "that is its transpose. Row i"),
    ("07.2", layer(to_w=lambda g, x, w: x.T @ g), "that is the rule for x @ w"),
    ("07.2", layer(to_w=lambda g, x, w: g.T @ x / 4), "do not divide by the number of samples"),
    ("07.2", layer(to_b=lambda g: g), "a sum over the rows is missing"),
    ("07.2", layer(to_b=lambda g: g.mean(0)), "added up, not averaged"),
    ("07.2", layer(to_b=lambda g: g.sum(1)), "sum over the columns"),
    ("07.2", layer(to_b=lambda g: g.sum(0, keepdim=True)), "without keepdim"),
    ("07.2", layer(to_x=lambda g, x, w: -(g @ w)), "what x gets has the right size but the wrong sign"),
    ("07.2", lambda g, x, w: (g @ w, g.T @ x), "return three tensors"),
    ("07.2", lambda g, x, w: g @ w, "return three tensors"),
    ("07.3", lambda g, x: g * x.sum(), "The sum depends on x, too"),
    ("07.3", lambda g, x: (g * x).sum(), "give it to each x"),
    ("07.3", lambda g, x: (g * x).sum() * mg.ones_like(x), "x is also the other factor"),
    ("07.3", lambda g, x: g * x.sum() + g * x, "sum g * x before you add it"),
    ("07.3", lambda g, x: g * x.sum() - (g * x).sum(), "along the second path is subtracted"),
    ("07.3", lambda g, x: 2 * g * x, "that is the rule of x * x"),
    ("07.3", lambda g, x: x.sum() + x, "that is a derivative, and g is missing"),
    ("07.3", lambda g, x: 2 * g * x.sum(), "do not bring the same"),
    ("07.4", lambda g, a: g, "Each element is in the mean of its row, too"),
    ("07.4", lambda g, a: g + g.mean(1, keepdim=True), "has a minus sign"),
    ("07.4", lambda g, a: g - g.mean(), "that is the mean over all"),
    ("07.4", lambda g, a: g - g.mean(0), "the mean over each column"),
    ("07.4", lambda g, a: g - g.sum(1, keepdim=True), "subtract the mean of g, not its sum"),
    ("07.4", lambda g, a: g - g.mean(1), "Is keepdim=True missing?"),
    ("07.4", lambda g, a: g - g / a.shape[1], "sum g over the row"),
    ("07.4", lambda g, a: g - a.mean(1, keepdim=True), "the mean of g that goes back"),
]  # fmt: skip
