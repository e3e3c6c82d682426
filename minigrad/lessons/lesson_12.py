"""The exercises of lesson 12, Normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from minigrad.lessons.checking import (
    ArrayMistakes,
    Mistakes,
    Wrong,
    as_number,
    call_on_shapes,
    check_keys,
    compare,
    compare_shaped,
    exercise,
    is_close,
    sample_array,
    to_tensor,
)

__all__: list[str] = []

_WORDS = (8, 20, 64)  # sentences, words, features
_PIECES = {
    (0,): "each feature of the first words, of the second words and so on",
    (1,): "each feature of a sentence",
    (2,): "each word",
    (0, 1): "each feature, in all words of all sentences",
    (0, 2): "all first words together, all second words together and so on",
    (1, 2): "each sentence as a whole",
    (0, 1, 2): "all the elements together",
}


def _dims(dims: Any, name: str) -> tuple[int, ...]:
    """Return the dimensions that the learner names, sorted and counted from 0."""
    floats = [as_number(dim, f"a dimension of {name}") for dim in (dims if isinstance(dims, Sequence) else [dims])]
    for dim in floats:
        if dim not in range(-3, 3):
            raise Wrong(f"{name}: there is no dimension {dim:g}. The tensor has three, 0, 1 and 2.")
    return tuple(sorted({int(dim) % 3 for dim in floats}))


@exercise("12.1", "a mean goes over its piece; the sizes of the other dimensions give the number of pieces.")
def _pieces(answer: Any) -> None:
    right = {"word": (2,), "feature": (0, 1), "sentence": (1, 2), "feature of a sentence": (1,)}
    check_keys(answer, *right)
    for name, pair in answer.items():
        if name not in right:
            raise Wrong(f"{name!r} is not a key of the answer. The keys are {', '.join(right)}.")
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise Wrong(f"{name}: give a pair, the dims and how many means there are, such as ((0, 2, 3), 4).")
        dims, right_dims = _dims(pair[0], name), right[name]
        stay = tuple(dim for dim in range(3) if dim not in right_dims)
        if dims == stay:
            raise Wrong(f"{name}: {dims} are the dimensions that stay. Name those that the mean goes over.")
        if dims not in _PIECES:
            raise Wrong(f"{name}: without any dimension there is nothing to take a mean of.")
        if dims != right_dims:
            raise Wrong(f"{name}: over {dims} each mean is of one piece: {_PIECES[dims]}.")
        elements = prod(_WORDS[dim] for dim in right_dims)
        mistakes: Mistakes = [(elements, "that is how many elements go into one mean. How many means are there?")]
        means = prod(_WORDS[dim] for dim in stay)
        if not is_close(as_number(pair[1], f"{name}, the means,"), means):
            sizes = " · ".join(str(_WORDS[dim]) for dim in stay)
            mistakes = [*mistakes, (pair[1], f"the dims are right. A mean for each index of the others: {sizes}.")]
        compare(f"{name}, the means,", pair[1], means, mistakes)


# --- a rule -----------------------------------------------------------------------------------------------------------


def _call_for_tensors(function: Callable[..., Any], names: Sequence[str], hint: str, *arguments: Any) -> Sequence[Any]:
    """Return as many tensors as there are names, from the learner's function."""
    result = call_on_shapes(function, *arguments, hint=hint)
    if not isinstance(result, tuple | list) or len(result) != len(names):
        description = f"{len(result)}" if isinstance(result, tuple | list) else f"a {type(result).__name__}"
        raise Wrong(
            f"return {len(names)} tensors, {', '.join(names)}, with commas between them; this is {description}."
        )
    return result


@exercise("12.2", "g passes the gain first; then mean and projection are subtracted, sample by sample.")
def _layer_norm(answer: Any) -> None:
    import numpy as np

    for (n, d), eps in (((4, 5), 0.5), ((3, 6), 1e-5)):
        x, g, gain = sample_array(1, n, d), sample_array(2, n, d), sample_array(3, d)
        c = x - x.mean(1, keepdims=True)
        s = np.sqrt((c * c).mean(1, keepdims=True) + eps)
        y, h = c / s, g * gain

        def rule(h: Any, y: Any, s: Any, axis: int = 1) -> Any:
            return (h - h.mean(axis, keepdims=True) - y * (h * y).mean(axis, keepdims=True)) / s

        bare = np.sqrt((c * c).mean(1, keepdims=True))
        column = x - x.mean(0)
        root = np.sqrt((column * column).mean(0) + eps)
        mean, along = h.mean(1, keepdims=True), (h * y).mean(1, keepdims=True)
        total, both = h.sum(1, keepdims=True), (h * y).sum(1, keepdims=True)
        by_x: ArrayMistakes = [
            (rule(g, y, s), "the gain is missing. g is the gradient of z; that of y is g * gain."),
            (rule(g, y, s) * gain, "g passes the gain first, before its mean is taken: begin with g * gain."),
            ((h - y * along) / s, "the mean of the gradient is not subtracted: x acts through the mean, too."),
            ((h - mean) / s, "y * mean(g * y) is not subtracted: x acts through the standard deviation, too."),
            (h / s, "that treats mean and standard deviation as constants. Both are computed from x."),
            (h - mean - y * along, "the division by the standard deviation is missing."),
            ((h - mean - y * along) * s, "multiplied by the standard deviation: it is divided by, as forward."),
            ((h - total - y * both) / s, "sums are subtracted. Each should be a mean over the D elements of a sample."),
            ((h - mean - x * (h * x).mean(1, keepdims=True)) / s, "the projection is on y, the normalised elements."),
            ((h - mean - c * (h * c).mean(1, keepdims=True)) / s, "the projection is on y: divide c by s first."),
            ((h - mean + y * along) / s, "the projection has the wrong sign: it is subtracted."),
            (rule(h, column / root, root, 0), "that is a batch norm's. A layer norm takes means over dim 1."),
            (rule(h, y, s, 0), "the means of the gradient are over the samples. Take them over dim 1, as forward."),
            (rule(h, c / bare, bare), "eps is missing under the root."),
        ]
        none = "that is not summed: every sample used the same {0}, so what arrives from all of them is added up."
        share = "that is the mean over the samples. What arrives along several paths is added up."
        along_d = "that is summed over dim 1, one element a sample. There is one {0} for each of the D: sum over dim 0."
        by_gain: ArrayMistakes = [
            (g * y, none.format("gain")),
            ((g * y).mean(0), share),
            ((g * y).sum(1), along_d.format("gain")),
            ((g * x).sum(0), "the gain multiplies y, not x: its local derivative is y."),
            ((g * c).sum(0), "the gain multiplies y, not the centred elements: its local derivative is y."),
            (g.sum(0), "that is what the bias gets. The gain multiplies y, so y is its local derivative."),
            ((h * y).sum(0), "the gain is in it. The derivative of y * gain with respect to the gain is y alone."),
        ]
        by_bias: ArrayMistakes = [
            (g, none.format("bias")),
            (g.mean(0), share),
            (g.sum(1), along_d.format("bias")),
            (h.sum(0), "the gain is in it. The bias is added after the gain, and its derivative is 1."),
        ]
        names = ("what x gets", "what the gain gets", "what the bias gets")
        gradients = _call_for_tensors(
            answer, names, "Is keepdim=True missing?", to_tensor(g), to_tensor(x), to_tensor(gain), eps
        )
        rights = (rule(h, y, s), (g * y).sum(0), g.sum(0))
        for name, gradient, right, mistakes in zip(names, gradients, rights, (by_x, by_gain, by_bias), strict=True):
            compare_shaped(name, gradient, right, mistakes)


# --- running statistics -----------------------------------------------------------------------------------------------


@exercise("12.3", "0.9 of what is missing stays missing with each batch; and a plain mean of k gives each a k-th part.")
def _memory(answer: Any) -> None:
    mistakes: dict[str, tuple[float, Mistakes]] = {
        "three": (
            2.168,
            [
                (5.832, "that is what is still missing. It began at 0: take that away from 8."),
                (1.52, "that is after two batches."),
                (2.7512, "that is after four batches."),
                (2.4, "0.8 is added by the first batch only. Each one closes a tenth of the gap that is left."),
                (7.992, "momentum is the weight of the new value here: 0.9 of the old one stays."),
                (8.0, "the running mean comes from 0, and takes only a tenth of each new value."),
            ],
        ),
        "enough": (
            44,
            [
                (43, "after 43 batches it is 7.914, not quite within 1 % of 8, which begins at 7.92."),
                (45, "one batch fewer does."),
                (2, "momentum is the weight of the new value here: 0.9 of the old one stays."),
                (10, "after ten batches 0.9¹⁰ = 35 % are still missing."),
                (100, "fewer will do: 0.9 to the power of 100 is much less than 1 %."),
                (22, "after 22 batches 10 % are still missing. It should be 1 %."),
            ],
        ),
        "third": (
            1 / 3,
            [
                (
                    0.1,
                    "with 0.1 the third batch has the weight 0.1. In a plain mean of three all weights are equal.",
                ),
                (0.5, "that is the momentum of the second batch, whose mean is half of the mean so far."),
                (2 / 3, "that is the weight of the old mean. Momentum is the weight of the new one."),
                (0.25, "that is the momentum of the fourth batch."),
                (3.0, "a weight is at most 1. Which fraction of the mean of three is the third?"),
            ],
        ),
    }
    check_keys(answer, *mistakes)
    for name, (right, known) in mistakes.items():
        value = as_number(answer[name], name)
        if name == "third" and abs(value - right) < 0.005:
            continue
        if name == "enough" and value != int(value):
            raise Wrong(f"{name} = {value:g}: give an integer. After how many is it within 1 % for the first time?")
        if name == "three" and abs(value - right) < 0.006:
            continue
        compare(name, value, right, known)


# --- in use -----------------------------------------------------------------------------------------------------------


@exercise("12.4", "k = gain / s scales each row of the weight, and the bias less the mean; the norm's bias is added.")
def _fold(answer: Any) -> None:
    import numpy as np

    from minigrad.nn import BatchNorm1d, Linear

    for n, d, eps in ((3, 2, 0.5), (3, 3, 1e-5)):
        w, b, mean, gain, bias = sample_array(1, n, d), *(sample_array(seed, n) for seed in (2, 3, 4, 5))
        variance = sample_array(6, n) ** 2 + 0.25
        linear, norm = Linear(d, n), BatchNorm1d(n, eps=eps).eval()
        linear.load_state_dict({"weight": to_tensor(w), "bias": to_tensor(b)})
        statistics = {"running_mean": mean, "running_var": variance, "weight": gain, "bias": bias}
        norm.load_state_dict({**norm.state_dict(), **{name: to_tensor(x) for name, x in statistics.items()}})
        k = gain / np.sqrt(variance + eps)
        square, bare, plain = gain / (variance + eps), gain / np.sqrt(variance), 1 / np.sqrt(variance + eps)
        root = "divide by the standard deviation, the root of running_var + eps."
        by_weight: ArrayMistakes = [
            (w, "that is linear.weight as it was. The norm multiplies its output."),
            ((w.T * k).T.T, "that is its transpose: a row for each output."),
            (w * square[:, None], root),
            (w * bare[:, None], "eps is missing under the root."),
            (w * plain[:, None], "the norm's gain, norm.weight, is missing."),
            (w * gain[:, None], "the division by the standard deviation is missing."),
            (w * gain[:, None] / k[:, None] * gain[:, None], "multiplied by the standard deviation. Divide by it."),
        ]
        if n == d:
            by_weight.append((w * k, "the columns are scaled. Each output has a row: make k a column, k.unsqueeze(1)."))
        by_bias: ArrayMistakes = [
            (b, "that is linear.bias as it was. It passes through the norm, too."),
            (bias, "that is norm.bias alone. What the linear layer adds and what the norm subtracts are missing."),
            (b + bias, "linear.bias passes through the norm as well: subtract the mean, and scale."),
            (b * k + bias, "the running mean is not subtracted."),
            ((b - mean) * k, "norm.bias is missing. It is added at the end."),
            (b - mean * k + bias, "linear.bias is scaled as well, since it comes before the norm."),
            ((b - mean) + bias, "what comes before the norm is scaled: multiply b - mean by gain / s."),
            (b * k - mean + bias, "the mean is subtracted before the scaling, so it is scaled, too."),
            ((b - mean + bias) * k, "norm.bias is added after the scaling, so it is not scaled."),
            ((b + mean) * k + bias, "the mean is subtracted, not added."),
            (-mean * k + bias, "linear.bias is missing."),
            ((b - mean) * square + bias, root),
            ((b - mean) * bare + bias, "eps is missing under the root."),
            ((b - mean) * plain + bias, "the norm's gain, norm.weight, is missing."),
        ]
        names = ("the weight", "the bias")
        gradients = _call_for_tensors(answer, names, "Is unsqueeze(1) missing, to make a column?", linear, norm)
        compare_shaped(names[0], gradients[0], w * k[:, None], by_weight)
        compare_shaped(names[1], gradients[1], (b - mean) * k + bias, by_bias)
