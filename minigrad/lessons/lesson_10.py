"""The exercises of lesson 10, Convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minigrad.lessons.checking import (
    ArrayMistakes,
    Wrong,
    as_number,
    call_on_shapes,
    compare_arrays,
    exercise,
    is_close,
    to_tensor,
)

__all__: list[str] = []

_FLOOR = "The formula is ⌊(n + 2p - k) / s⌋ + 1."

# For each value of the answer: the right one, wrong ones with a known cause, and a hint for all others.
_COUNTS: dict[str, tuple[int, tuple[tuple[float, str], ...], str]] = {
    "rows after the first filters": (
        32,
        (
            (28, "that is without the padding of 2, which is on both sides."),
            (30, "the padding is on both sides: n + 2p."),
            (31, "the number of positions is one more than that: count the first, too."),
            (33, "that is (n + 2p - k) + 2. Add 1 only."),
        ),
        _FLOOR,
    ),
    "rows after the pooling": (
        16,
        (
            (31, "the windows of a pooling do not overlap: its stride is 2, too."),
            (15, "the number of positions is one more than that: count the first, too."),
        ),
        "MaxPool2d(2) has windows of 2 with a stride of 2.",
    ),
    "rows after the second filters": (
        7,
        (
            (8, "the last window would end one row beyond the map: round down."),
            (7.5, "there is no half position: round down."),
            (6, "the number of positions is one more than that: count the first, too."),
            (14, "that is with a stride of 1, and it is 2."),
            (15, "these are the positions with a padding. There is no padding here."),
        ),
        _FLOOR,
    ),
    "question mark": (
        1568,
        (
            (49, "that is one map. There are 32 of them."),
            (32, "that is the number of maps. Each has 7 × 7 elements."),
            (224, "that is 32 maps of 7 rows. Each row has 7 elements."),
            (2048, "that is with maps of 8 × 8: round the size down to 7."),
            (512, "that is with 32 maps of 4 × 4. There is no second pooling: the maps are 7 × 7."),
        ),
        "Flatten makes a list of all the elements of all the maps.",
    ),
    "parameters of the first filters": (
        1216,
        (
            (1200, "the biases are missing, one for each filter."),
            (400, "a filter has a table for each of the 3 channels; and a bias."),
            (416, "a filter has a table for each of the 3 channels."),
            (1203, "there is a bias for each filter, 16, and not for each channel."),
            (1201, "there is a bias for each filter, 16 of them."),
            (76, "that is one filter. There are 16."),
            (75, "that is one filter, without its bias. There are 16."),
            (1248, "a filter has one bias, and not one for each of its tables."),
            (1200 * 32 * 32, "all positions share the same weights: the size of the picture does not count."),
            (1216 * 32 * 32, "all positions share the same weights: the size of the picture does not count."),
        ),
        "Each of the 16 filters has 3 tables of 5 × 5, and a bias.",
    ),
    "parameters of the second filters": (
        4640,
        (
            (4608, "the biases are missing, one for each filter."),
            (288, "a filter has a table for each of the 16 channels that come in; and a bias."),
            (320, "a filter has a table for each of the 16 channels that come in."),
            (4624, "there is a bias for each filter, 32, and not for each channel."),
            (145, "that is one filter. There are 32."),
            (144, "that is one filter, without its bias. There are 32."),
        ),
        "Each of the 32 filters has 16 tables of 3 × 3, and a bias.",
    ),
    "parameters of the linear layer": (
        15690,
        (
            (15680, "the biases are missing, one for each score."),
            (15681, "there is a bias for each score, 10 of them."),
            (20490, "that is with maps of 8 × 8: round the size down to 7."),
            (330, "Flatten keeps all positions of the maps, so the layer has weights for each of them."),
            (500, "that is with one map. There are 32 of them."),
        ),
        "It has a weight for each pair of an input and a score, and a bias for each score.",
    ),
}


@exercise(
    "10.1",
    "sizes by ⌊(n + 2p - k) / s⌋ + 1; parameters by filters · (channels · k · k + 1), whatever the size.",
)
def _counts(answer: Any) -> None:
    if not isinstance(answer, Mapping):
        raise Wrong(f"the answer should be the dict of the exercise, and this is a {type(answer).__name__}.")
    for name, (right, mistakes, hint) in _COUNTS.items():
        if name not in answer:
            raise Wrong(f"“{name}” is missing from the dict.")
        value = as_number(answer[name], f"“{name}”")
        if is_close(value, right):
            continue
        for wrong, cause in mistakes:
            if is_close(value, wrong):
                raise Wrong(f"{name} = {value:g}: {cause}")
        raise Wrong(f"{name} = {value:g} is too {'large' if value > right else 'small'}. {hint}")


def _distinct_values(seed: int, *shape: int) -> Any:
    """Return a NumPy array of distinct values without any symmetry, the same for each learner."""
    import numpy as np

    count = int(np.prod(shape))
    return ((np.random.default_rng(seed).permutation(count) - count // 3) / 4.0 + 0.125).reshape(shape)


def _call_on_tensors(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the learner's function returns for tensors in place of arrays."""
    operands = [to_tensor(x) if hasattr(x, "tolist") else x for x in arguments]
    return _plain(call_on_shapes(function, *operands))


def _plain(result: Any) -> Any:
    """Return nested lists of floats for nested lists that may contain tensors of one element."""
    if isinstance(result, list | tuple):
        return [_plain(x) for x in result]
    return result.detach().numpy() if hasattr(result, "detach") else result


def _output_size(n: int, k: int, stride: int, padding: int = 0) -> int:
    return (n + 2 * padding - k) // stride + 1


def _correlation(x: Any, w: Any, stride: int, step: int | None = None) -> Any:
    """Correlate a padded picture at positions `stride` apart; windows may begin `step` apart."""
    import numpy as np

    rows, columns = w.shape
    output_shape = [_output_size(n, k, stride) for n, k in zip(x.shape, w.shape, strict=True)]
    y, step = np.zeros(output_shape), stride if step is None else step
    for i in range(output_shape[0]):
        for j in range(output_shape[1]):
            y[i, j] = (w * x[i * step : i * step + rows, j * step : j * step + columns]).sum()
    return y


@exercise(
    "10.2", "windows begin stride apart on the padded picture, and there are ⌊(n + 2p - k) / s⌋ + 1 of them each way."
)
def _loops(answer: Any) -> None:
    import numpy as np

    x, w = _distinct_values(1, 6, 8), _distinct_values(2, 3, 2)
    for stride, padding in ((1, 0), (2, 0), (1, 1), (2, 1), (3, 2)):
        padded = np.pad(x, padding)
        right, turned = _correlation(padded, w, stride), w[::-1, ::-1]
        name = f"with stride {stride} and padding {padding}, the map"
        result = _call_on_tensors(answer, x, w, stride, padding)
        shape = _shape(result)
        wrong_maps: ArrayMistakes = [
            (_correlation(x, w, stride), "the padding is missing. Put zeros around x first, on all four sides."),
            (_correlation(padded, w, 1), "the filter moves by one pixel. It should move by `stride`."),
            (
                _correlation(np.pad(x, ((padding, 0), (padding, 0))), w, stride),
                "there are zeros above and on the left only. Padding is on all four sides.",
            ),
            (np.pad(right, padding), "the map is padded. It is the picture that should be."),
        ]
        for other, cause in wrong_maps:
            if shape == other.shape != right.shape:
                raise Wrong(f"{name} has the shape {shape}, and it should be {right.shape}: {cause}")
        if len(shape) == 2 and shape != right.shape:
            raise Wrong(f"{name} has the shape {shape}, and it should be {right.shape}. {_FLOOR}")
        mistakes: ArrayMistakes = [
            (
                _correlation(padded, w, stride, step=1),
                "position (i, j) is at row i and column j. With a stride its window begins at i * stride, j * stride.",
            ),
            (_correlation(padded, turned, stride), "the filter is turned. Correlate as the lesson does, with a plus."),
            (_correlation(padded, w[::-1], stride), "the rows of the filter are upside down."),
            (_correlation(padded, w[:, ::-1], stride), "the columns of the filter are back to front."),
            (right / w.size, "that is a mean over the window. Add up, and do not divide."),
        ]
        compare_arrays(name, result, right, mistakes)


def _shape(result: Any) -> tuple[int, ...]:
    import numpy as np

    try:
        return tuple(np.shape(result))
    except ValueError:  # rows of different lengths
        return ()


@exercise("10.3", "from weight a there is a path to each y[i], with derivative x[i s + a]: g times a slice of x.")
def _filter(answer: Any) -> None:
    import numpy as np

    for length, k, stride in ((6, 2, 1), (9, 3, 2), (8, 3, 2)):
        output_size = _output_size(length, k, stride)
        x, g = _distinct_values(3, length), _distinct_values(4, output_size)

        def summed(step: int, x: Any = x, g: Any = g, k: int = k) -> Any:
            return np.array([(g * x[a : a + step * (len(g) - 1) + 1 : step]).sum() for a in range(k)])

        right, local_sums = summed(stride), np.array([x[a::stride][:output_size].sum() for a in range(k)])
        mistakes: ArrayMistakes = [
            (summed(1), "the stride is missing: y[i] sees x[i * stride + a]."),
            (right[::-1], "they are back to front. Weight a meets the pixel i * stride + a, with a plus."),
            (
                local_sums,
                "that is the sum of the derivatives, and g is missing. A contribution is upstream times local.",
            ),
            (g[0] * x[:k], "that is the contribution of the first position. Add up those of all positions."),
            (
                g[-1] * x[(output_size - 1) * stride :][:k],
                "that is the contribution of the last position alone. Add (+=).",
            ),
            (right / output_size, "that is a mean over the positions. What arrives along several paths is added up."),
            (
                np.full(k, right.sum()),
                "every weight gets the same, the sum of all. Each should get what its own pixels contribute.",
            ),
        ]
        name = f"for a line of {length}, k = {k} and stride {stride}, what the filter gets"
        result = _call_on_tensors(answer, g, x, k, stride)
        shape = _shape(result)
        if shape == (length,) != (k,):
            raise Wrong(f"{name} should have {k} elements, and this has {length}, as for x. Which rule was asked for?")
        if shape == (output_size,) != (k,):
            raise Wrong(f"{name} should have {k} elements, not {output_size}, one for each position. Sum over these.")
        if shape == () and not isinstance(result, str | Mapping):
            raise Wrong(f"{name} should have {k} elements, one for each weight.")
        compare_arrays(name, result, right, mistakes, "If a weight goes up, y goes up by the pixel.")


def _pooled(g: Any, x: Any, k: int, add: bool = True, last: bool = False, begin: bool = True) -> Any:
    """Return the gradient of a line under overlapping max pooling, optionally with one of three mistakes."""
    import numpy as np

    gradient = np.zeros(len(x))
    for i, share in enumerate(g):
        window = x[i : i + k]
        winner = k - 1 - int(window[::-1].argmax()) if last else int(window.argmax())
        index = i * begin + winner
        gradient[index] = (gradient[index] if add else 0.0) + share
    return gradient


@exercise("10.4", "each window hands its g to its winner; an element that wins several windows gets the sum.")
def _winners(answer: Any) -> None:
    import numpy as np

    lines = [_distinct_values(5, 7), np.array([1.0, 4.0, 2.0, -3.0, 0.5, 3.0]), np.array([2.0, 2.0, 0.0, 1.0, 1.0])]
    for line, k in ((lines[0], 3), (lines[1], 3), (lines[1], 2), (lines[2], 2)):
        g = _distinct_values(6, len(line) - k + 1)
        windows = [slice(i, i + k) for i in range(len(g))]
        everyone, shared, ones = np.zeros(len(line)), np.zeros(len(line)), np.ones(len(g))
        for share, window in zip(g, windows, strict=True):
            everyone[window] += share
            shared[window] += share / k
        best = np.zeros(len(line))
        best[line.argmax()] = g.sum()
        first = np.append(g, np.zeros(k - 1))
        right = _pooled(g, line, k)
        mistakes: ArrayMistakes = [
            (_pooled(g, line, k, add=False), "an element that wins twice keeps the last contribution only. Add (+=)."),
            (_pooled(g, line, k, begin=False), "argmax counts from the beginning of the window. Add i to it."),
            (everyone, "each element of a window gets g. Only the largest moves the result."),
            (shared, "each element of a window gets a part. That is the rule of a mean; here the winner takes all."),
            (best, "the largest element of the full line gets everything. Each window has its own winner."),
            (first, "the first element of each window gets g, and not the largest."),
            (
                _pooled(ones, line, k),
                "that is how often each element wins. Multiply by g: the winner of window i gets g[i].",
            ),
            (right * line, "the winner's derivative is 1, however large it is: do not multiply by x."),
            (_pooled(g, line, k, last=True), "of equal elements the last gets g. It should be the first."),
        ]
        name = f"for x = {line.tolist()} and k = {k}, what x gets"
        result = _call_on_tensors(answer, g, line, k)
        if _shape(result) == (len(g),):
            raise Wrong(f"{name} should have {len(line)} elements, as x has; this has {len(g)}, as many as windows.")
        compare_arrays(name, result, right, mistakes)
