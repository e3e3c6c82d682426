"""Solutions to the exercises of lesson 10."""

import minigrad as mg
from minigrad import lessons

F = mg.nn.functional

# 10.1 · Sizes by the formula; parameters are filters · (channels · k · k + 1), whatever the size of the picture.
found = {
    "rows after the first filters": (32 + 2 * 2 - 5) // 1 + 1,
    "rows after the pooling": (32 - 2) // 2 + 1,
    "rows after the second filters": (16 - 3) // 2 + 1,
    "question mark": 32 * 7 * 7,
    "parameters of the first filters": 16 * (3 * 5 * 5 + 1),
    "parameters of the second filters": 32 * (16 * 3 * 3 + 1),
    "parameters of the linear layer": 32 * 7 * 7 * 10 + 10,
}
lessons.check("10.1", found)


# 10.2 · Pad first; then the window of position (i, j) begins at (i * stride, j * stride).
def correlate_with(x, w, stride, padding):
    x = F.pad(x, (padding,) * 4)
    (height, width), (rows, columns) = x.shape, w.shape
    y = mg.zeros((height - rows) // stride + 1, (width - columns) // stride + 1, dtype=x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(rows):
                for b in range(columns):
                    y[i, j] += w[a, b] * x[i * stride + a, j * stride + b]
    return y


lessons.check("10.2", correlate_with)


# 10.3 · From weight a there is a path to each y[i], by the pixel i * stride + a.
def filter_rule(g, x, k, stride):
    return [sum(g[i].item() * x[i * stride + a].item() for i in range(len(g))) for a in range(k)]


lessons.check("10.3", filter_rule)


# 10.4 · Each window hands its gradient to its winner, and contributions add up.
def overlapping_rule(g, x, k):
    to_x = mg.zeros_like(x)
    for i in range(len(g)):
        winner = i + x[i : i + k].argmax().item()
        to_x[winner] += g[i]
    return to_x


lessons.check("10.4", overlapping_rule)
