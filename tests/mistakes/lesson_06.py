"""Wrong answers to the exercises of lesson 6, with the expected explanations."""

STRIDES = {
    "x": (6, 1),
    "x.T": (1, 6),
    "x[1:3]": (6, 1),
    "x[::2]": (12, 1),
    "x.reshape(8, 3)": (3, 1),
    "x[0].expand(5, 6)": (0, 1),
}
OURS = {"shape": (2, 3, 4), "index": (0, 2, 1), "position": 9, "dim": 0, "shape of the sum": (3, 4)}


def gradient_before(gradient, shape, new=True, keepdim=True, mean=False):
    def reduced(x, dim, keepdim):
        return x.mean(dim, keepdim=keepdim) if mean else x.sum(dim, keepdim=keepdim)

    while new and gradient.ndim > len(shape):
        gradient = reduced(gradient, 0, False)
    for dim, size in reversed(list(enumerate(shape))):
        if size == 1:
            gradient = reduced(gradient, dim, keepdim)
    return gradient


def first_ones(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    return gradient


def across(gradient, shape):
    return gradient.sum(1) if shape == (3,) else gradient.sum(0, keepdim=True).reshape(shape)


def mean_squared_error(w, b, x, truth, dim=1, keepdim=False, bias=True):
    guess = (x * w).sum(dim, keepdim=keepdim)
    return ((guess + b if bias else guess) - truth) ** 2


FUNCTIONS = ["06.3", "06.4"]  # whose answer is a function

MISTAKES = [
    ("06.1", (6, 1), "should be the dict from the exercise, and this is a tuple"),
    ("06.1", {"x": (6, 1)}, "the stride of x.T, x[1:3], x[::2]"),
    ("06.1", STRIDES | {"x": (4, 6)}, "the strides of x = (4, 6): that is the shape"),
    ("06.1", STRIDES | {"x": (1, 4)}, "x is contiguous: row by row"),
    ("06.1", STRIDES | {"x": (7, 1)}, "the entry for dimension 0 is not right"),
    ("06.1", STRIDES | {"x": 6}, "should be a tuple such as (2, 3), and this is a int"),
    ("06.1", STRIDES | {"x.T": (6, 1)}, "To exchange rows and columns is to exchange the strides"),
    ("06.1", STRIDES | {"x.T": (4, 1)}, "The view moves no element"),
    ("06.1", STRIDES | {"x[1:3]": (2, 1)}, "the next row is as far away as before, 6"),
    ("06.1", STRIDES | {"x[::2]": (6, 1)}, "two rows of x further on"),
    ("06.1", STRIDES | {"x[::2]": (6, 2)}, "every other *row* is taken"),
    ("06.1", STRIDES | {"x.reshape(8, 3)": (6, 1)}, "A row has 3 elements now"),
    ("06.1", STRIDES | {"x[0].expand(5, 6)": (6, 1)}, "Here each row is the first one again"),
    ("06.1", STRIDES | {"x[0].expand(5, 6)": (1, 0)}, "Here the row is repeated, downwards"),
    ("06.1", STRIDES | {"x[0].expand(5, 6)": (0,)}, "(0,) has 1 entries, and there should be 2"),
    ("06.2", OURS | {"shape": [4, 3, 2]}, "the shape = (4, 3, 2): that is how mljs writes it"),
    ("06.2", OURS | {"index": (1, 2, 0)}, "the index = (1, 2, 0): that is how mljs writes it"),
    ("06.2", OURS | {"position": 10}, "in a tensor whose shape is (4, 3, 2) *here*"),
    ("06.2", OURS | {"position": 20}, "the index still has to be reversed"),
    ("06.2", OURS | {"position": 5}, "the shape still has to be reversed"),
    ("06.2", OURS | {"dim": 2}, "their 2 is not ours"),
    ("06.2", OURS | {"dim": -3}, "Count from 0 at the left"),
    ("06.2", OURS | {"shape of the sum": (4, 3)}, "Reverse it"),
    ("06.2", OURS | {"shape of the sum": (2, 3)}, "z is what goes away"),
    ("06.2", OURS | {"shape of the sum": (1, 3, 4)}, "is dropped, not kept"),
    ("06.3", lambda gradient, shape: gradient, "It is still that of the result: sum over what was repeated"),
    ("06.3", lambda gradient, shape: gradient_before(gradient, shape, mean=True), "that is a mean. What"),
    ("06.3", lambda gradient, shape: gradient_before(gradient, shape, keepdim=False), "again: keepdim=True"),
    ("06.3", lambda gradient, shape: gradient_before(gradient, shape, new=False), "It is still that of the result"),
    ("06.3", lambda gradient, shape: -gradient_before(gradient, shape), "has the right size but the wrong sign"),
    ("06.3", lambda gradient, shape: gradient.sum(), "All of it was summed. Sum over what was repeated"),
    ("06.3", first_ones, "that is one contribution alone. Add up all"),
    ("06.3", across, "summed over the wrong dimension"),
    ("06.3", lambda gradient, shape: "a sum", "should be a tensor of shape (3,), and this is a str"),
    ("06.4", lambda *args: mean_squared_error(*args, keepdim=True).mean(), "compares every guess with every truth"),
    ("06.4", lambda *args: mean_squared_error(*args).sum(), "that is the sum. The mean divides it"),
    ("06.4", lambda *args: mean_squared_error(*args), "should be a scalar, and this has the shape (3,)"),
    ("06.4", lambda *args: mean_squared_error(*args).mean() ** 0.5, "that is its root"),
    ("06.4", lambda *args: mean_squared_error(*args, bias=False).mean(), "the bias, b, is missing"),
    ("06.4", lambda *args: mean_squared_error(*args, dim=0).mean(), "sum(0) adds up the samples"),
    ("06.4", lambda *args: mean_squared_error(*args).mean().item(), "is right, but it has no gradient"),
    ("06.4", lambda w, b, x, t: mean_squared_error(w, b.detach(), x, t).mean(), "no gradient arrives at b"),
]  # fmt: skip
