"""Wrong answers to the exercises of lesson 10, with the expected explanations."""

import minigrad as mg

FUNCTIONS = ["10.2", "10.3", "10.4"]  # whose answer is a function

RIGHT = {
    "rows after the first filters": 32,
    "rows after the pooling": 16,
    "rows after the second filters": 7,
    "question mark": 1568,
    "parameters of the first filters": 1216,
    "parameters of the second filters": 4640,
    "parameters of the linear layer": 15690,
}


def loops(x, w, stride, padding, step=None, turn=False, sides=4, up=0):
    x = mg.functional.pad(x, (padding, padding, padding, padding) if sides == 4 else (padding, 0, padding, 0))
    w = w.flip(0, 1) if turn else w
    step = step or stride
    (height, width), (rows, columns) = x.shape, w.shape
    y = mg.zeros((height - rows) // stride + 1 + up, (width - columns) // stride + 1 + up, dtype=x.dtype)
    for i in range(y.shape[0] - up):
        for j in range(y.shape[1] - up):
            y[i, j] = (w * x[i * step : i * step + rows, j * step : j * step + columns]).sum()
    return y


def line(g, x, k, stride):
    return mg.stack([(g * x[a : a + stride * (len(g) - 1) + 1 : stride]).sum() for a in range(k)])


def pooled(g, x, k, add=True, begin=1, last=False):
    gradients = [0.0] * len(x)
    for i in range(len(g)):
        window = x[i : i + k].tolist()
        winner = k - 1 - window[::-1].index(max(window)) if last else window.index(max(window))
        gradients[begin * i + winner] = (gradients[begin * i + winner] if add else 0.0) + g[i].item()
    return gradients


def everyone(g, x, k, share=1.0):
    return mg.stack([share * sum(g[i] for i in range(max(0, n - k + 1), min(n + 1, len(g)))) for n in range(len(x))])


MISTAKES = [
    ("10.1", RIGHT | {"rows after the first filters": 28}, "without the padding of 2"),
    ("10.1", RIGHT | {"rows after the first filters": 31}, "count the first, too"),
    ("10.1", RIGHT | {"rows after the pooling": 31}, "do not overlap: its stride is 2, too"),
    ("10.1", RIGHT | {"rows after the second filters": 8}, "round down"),
    ("10.1", RIGHT | {"rows after the second filters": 7.5}, "there is no half position"),
    ("10.1", RIGHT | {"question mark": 2048}, "with maps of 8 × 8"),
    ("10.1", RIGHT | {"question mark": 49}, "There are 32 of them"),
    ("10.1", RIGHT | {"parameters of the first filters": 1200}, "the biases are missing"),
    ("10.1", RIGHT | {"parameters of the first filters": 416}, "a table for each of the 3 channels"),
    ("10.1", RIGHT | {"parameters of the first filters": 1200 * 1024}, "all positions share the same weights"),
    ("10.1", RIGHT | {"parameters of the second filters": 320}, "the 16 channels that come in"),
    ("10.1", RIGHT | {"parameters of the linear layer": 330}, "Flatten keeps all positions"),
    ("10.1", RIGHT | {"parameters of the linear layer": 99}, "is too small. It has a weight for each pair"),
    ("10.1", {k: v for k, v in RIGHT.items() if k != "question mark"}, "“question mark” is missing from the dict"),
    ("10.1", [32, 16, 7], "should be the dict of the exercise"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, stride, 0), "the padding is missing"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, 1, padding), "It should move by `stride`"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, stride, padding, step=1), "begins at i * stride, j * stride"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, stride, padding, turn=True), "the filter is turned"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, stride, padding, sides=2), "above and on the left only"),
    ("10.2", lambda x, w, stride, padding: loops(x, w, stride, padding, up=1), "and it should be (4, 7). The formula"),
    ("10.2", lambda x, w, stride, padding: -loops(x, w, stride, padding), "the right size but the wrong sign"),
    ("10.2", lambda x, w, stride, padding: w @ x, "shapes that do not go together"),
    ("10.3", lambda g, x, k, stride: line(g, x, k, 1), "the stride is missing"),
    ("10.3", lambda g, x, k, stride: line(g, x, k, stride).flip(0), "they are back to front"),
    ("10.3", lambda g, x, k, stride: line(mg.ones_like(g), x, k, stride), "and g is missing"),
    ("10.3", lambda g, x, k, stride: line(g, x, k, stride) / len(g), "a mean over the positions"),
    ("10.3", lambda g, x, k, stride: g[0] * x[:k], "that is the contribution of the first position"),
    ("10.3", lambda g, x, k, stride: line(g, x, k, stride).sum(), "should have 2 elements, one for each weight"),
    ("10.3", lambda g, x, k, stride: x, "as for x. Which rule was asked for?"),
    ("10.3", lambda g, x, k, stride: g * x[: len(g)], "one for each position. Sum over these"),
    ("10.4", lambda g, x, k: pooled(g, x, k, add=False), "keeps the last contribution only. Add (+=)"),
    ("10.4", lambda g, x, k: pooled(g, x, k, begin=0), "argmax counts from the beginning of the window"),
    ("10.4", lambda g, x, k: pooled(g, x, k, last=True), "of equal elements the last gets g"),
    ("10.4", everyone, "Only the largest moves the result"),
    ("10.4", lambda g, x, k: everyone(g, x, k, 1 / k), "That is the rule of a mean"),
    ("10.4", lambda g, x, k: pooled(mg.ones_like(g), x, k), "how often each element wins"),
    ("10.4", lambda g, x, k: (x == x.max()) * g.sum(), "Each window has its own winner"),
    ("10.4", lambda g, x, k: g, "as many as windows"),
]  # fmt: skip
