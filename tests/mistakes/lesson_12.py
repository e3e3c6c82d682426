"""Wrong answers to the exercises of lesson 12, with the expected explanations."""

RIGHT = {
    "word": ((2,), 160),
    "feature": ((0, 1), 64),
    "sentence": ((1, 2), 8),
    "feature of a sentence": ((1,), 512),
}


def rule(g, x, gain, eps, dim=1, late=False, mean=1, along=1, on=lambda y, c: y, s_power=1):
    """Return the gradients of x, gain and bias, or wrong ones with the given mistakes."""
    c = x - x.mean(dim, keepdim=True)
    s = (x.var(dim, correction=0, keepdim=True) + eps).sqrt()
    y = c / s
    h, p = g if late else g * gain, on(y, c)
    to_x = (h - mean * h.mean(dim, keepdim=True) - along * p * (h * p).mean(dim, keepdim=True)) / s**s_power
    return to_x * gain if late else to_x, (g * y).sum(0), g.sum(0)


def no_gain(g, x, gain, eps):
    return rule(g, x, gain / gain, eps)


def parts(gain=lambda g, y, x: (g * y).sum(0), bias=lambda g: g.sum(0)):
    """Return the right rule except for the gradient of the gain or the bias."""

    def answer(g, x, weight, eps):
        y = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + eps).sqrt()
        return rule(g, x, weight, eps)[0], gain(g, y, x), bias(g)

    return answer


def folded(weight=lambda w, k: w * k.unsqueeze(1), bias=lambda b, mean, k, shift: (b - mean) * k + shift, scale=None):
    def answer(linear, norm):
        s = (norm.running_var + norm.eps).sqrt()
        k = norm.weight / s if scale is None else scale(norm, s)
        return weight(linear.weight, k), bias(linear.bias, norm.running_mean, k, norm.bias)

    return answer


def memory(**other):
    return {"three": 2.168, "enough": 44, "third": 1 / 3, **other}


FUNCTIONS = ["12.2", "12.4"]  # whose answer is a function

MISTAKES = [
    ("12.1", [2, 1], "the answer should be a dict"),
    ("12.1", {"word": ((2,), 160)}, "feature, sentence, feature of a sentence is missing"),
    ("12.1", {**RIGHT, "word": 2}, "give a pair, the dims and how many means"),
    ("12.1", {**RIGHT, "word": ((0, 1), 160)}, "word: (0, 1) are the dimensions that stay"),
    ("12.1", {**RIGHT, "word": ((1, 2), 8)}, "each mean is of one piece: each sentence as a whole"),
    ("12.1", {**RIGHT, "feature": (0, 64)}, "each feature of the first words, of the second words and so on"),
    ("12.1", {**RIGHT, "feature": ((0, 1), 160)}, "that is how many elements go into one mean"),
    ("12.1", {**RIGHT, "feature of a sentence": ((-2,), 64)}, "A mean for each index of the others: 8 · 64"),
    ("12.1", {**RIGHT, "sentence": ((2, 3), 8)}, "there is no dimension 3"),
    ("12.1", {**RIGHT, "sentence": ((), 8)}, "without any dimension"),
    ("12.2", no_gain, "that of y is g * gain"),
    ("12.2", lambda *args: rule(*args, late=True), "g passes the gain first"),
    ("12.2", lambda *args: rule(*args, mean=0), "the mean of the gradient is not subtracted"),
    ("12.2", lambda *args: rule(*args, along=0), "x acts through the standard deviation, too"),
    ("12.2", lambda *args: rule(*args, along=0, mean=0), "treats mean and standard deviation as constants"),
    ("12.2", lambda *args: rule(*args, along=-1), "the projection has the wrong sign"),
    ("12.2", lambda *args: rule(*args, s_power=0), "the division by the standard deviation is missing"),
    ("12.2", lambda *args: rule(*args, s_power=-1), "it is divided by, as forward"),
    ("12.2", lambda *args: rule(*args, on=lambda y, c: c), "divide c by s first"),
    ("12.2", lambda *args: rule(*args, dim=0), "that is a batch norm's"),
    ("12.2", lambda g, x, gain, eps: rule(g, x, gain, 0.0), "eps is missing under the root"),
    ("12.2", lambda *args: rule(*args)[0], "return 3 tensors"),
    ("12.2", lambda g, x, gain, eps: (g - x.mean(1), g, g), "shapes that do not go together"),
    ("12.2", parts(gain=lambda g, y, x: g * y), "what the gain gets has the shape (4, 5), and it should be (5,)"),
    ("12.2", parts(gain=lambda g, y, x: (g * x).sum(0)), "the gain multiplies y, not x"),
    ("12.2", parts(gain=lambda g, y, x: g.sum(0)), "that is what the bias gets"),
    ("12.2", parts(gain=lambda g, y, x: (g * y).sum(1)), "There is one gain for each of the D"),
    ("12.2", parts(bias=lambda g: g.mean(0)), "that is the mean over the samples"),
    ("12.2", parts(bias=lambda g: g), "every sample used the same bias"),
    ("12.3", [2.168, 44, 1 / 3], "the answer should be a dict"),
    ("12.3", memory(three=5.832), "that is what is still missing"),
    ("12.3", memory(three=2.4), "a tenth of the gap that is left"),
    ("12.3", memory(three=7.992), "momentum is the weight of the new value here"),
    ("12.3", memory(enough=43), "after 43 batches it is 7.914"),
    ("12.3", memory(enough=43.7), "give an integer"),
    ("12.3", memory(enough=10), "35 % are still missing"),
    ("12.3", memory(third=0.1), "the third batch has the weight 0.1"),
    ("12.3", memory(third=2 / 3), "that is the weight of the old"),
    ("12.3", memory(third=0.5), "that is the momentum of the second batch"),
    ("12.4", folded(weight=lambda w, k: w), "that is linear.weight as it was"),
    ("12.4", folded(weight=lambda w, k: w * k), "shapes that do not go together"),
    ("12.4", folded(weight=lambda w, k: w * k.unsqueeze(1) if len(w) > w.shape[1] else w * k), "columns are scaled"),
    ("12.4", folded(weight=lambda w, k: w.T * k), "that is its transpose"),
    ("12.4", folded(scale=lambda norm, s: norm.weight / s**2), "the root of running_var + eps"),
    ("12.4", folded(scale=lambda norm, s: norm.weight / norm.running_var.sqrt()), "eps is missing under the root"),
    ("12.4", folded(scale=lambda norm, s: 1 / s), "the norm's gain, norm.weight, is missing"),
    ("12.4", folded(scale=lambda norm, s: norm.weight), "the division by the standard deviation is missing"),
    ("12.4", folded(scale=lambda norm, s: norm.weight * s), "Divide by it"),
    ("12.4", folded(bias=lambda b, mean, k, shift: b), "linear.bias as it was"),
    ("12.4", folded(bias=lambda b, mean, k, shift: b * k + shift), "the running mean is not subtracted"),
    ("12.4", folded(bias=lambda b, mean, k, shift: (b - mean) * k), "norm.bias is missing"),
    ("12.4", folded(bias=lambda b, mean, k, shift: b - mean * k + shift), "linear.bias is scaled as well"),
    ("12.4", folded(bias=lambda b, mean, k, shift: (b - mean + shift) * k), "added after the scaling"),
    ("12.4", folded(bias=lambda b, mean, k, shift: (b + mean) * k + shift), "the mean is subtracted, not added"),
    ("12.4", lambda linear, norm: linear, "return 2 tensors"),
]  # fmt: skip
