"""The exercises of lesson 6, Tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minigrad.lessons.checking import Wrong, as_array, as_number, call, compare, compare_arrays, exercise, to_tensor

__all__: list[str] = []

_Causes = Iterable[tuple[tuple[int, ...], str]]  # a wrong tuple that has a known cause, and the cause


def _answers(answer: Any, names: Iterable[str], prefix: str) -> Mapping[str, Any]:
    """Return `answer`, checked to be a dict with an entry for each name."""
    if not isinstance(answer, Mapping):
        raise Wrong(f"the answer should be the dict from the exercise, and this is a {type(answer).__name__}.")
    if missing := [name for name in names if name not in answer]:
        raise Wrong(f"{prefix} {', '.join(missing)} is missing from the dict.")
    return answer


def _tuple(name: str, answer: Any, right: tuple[int, ...], causes: _Causes, count: str) -> None:
    """Raise `Wrong`, with the cause where it is known, if `answer` differs from the integers in `right`."""
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise Wrong(f"{name} should be a tuple such as (2, 3), and this is a {type(answer).__name__}.")
    entries = tuple(as_number(item, f"an entry of {name}") for item in answer)
    if entries == right:
        return
    shown = "(" + ", ".join(f"{item:g}" for item in entries) + ("," * (len(entries) == 1)) + ")"
    for wrong, cause in causes:
        if entries == wrong:
            raise Wrong(f"{name} = {shown}: {cause}")
    if len(entries) != len(right):
        raise Wrong(f"{name} = {shown} has {len(entries)} entries, and there should be {len(right)}: {count}.")
    index = next(k for k, (item, other) in enumerate(zip(entries, right, strict=True)) if item != other)
    raise Wrong(f"{name} = {shown}: the entry for dimension {index} is not right. The first index is dimension 0.")


_STRIDES: Mapping[str, tuple[tuple[int, ...], _Causes]] = {
    "x": (
        (6, 1),
        [
            ((4, 6), "that is the shape. A step down goes over one row, which has 6 elements; a step to the right, 1."),
            ((1, 4), "that list would go column by column. x is contiguous: row by row."),
            ((1, 6), "the right two numbers, in the wrong order. The first is for a step down, over a whole row."),
            ((4, 1), "a row has 6 elements, not 4, so a step down goes 6 further."),
        ],
    ),
    "x.T": (
        (1, 6),
        [
            ((6, 1), "those of x itself. To exchange rows and columns is to exchange the strides."),
            ((4, 1), "that is a contiguous table of 6 rows of 4, a copy. The view moves no element."),
            ((6, 4), "that is its shape."),
        ],
    ),
    "x[1:3]": (
        (6, 1),
        [
            ((2, 6), "that is its shape. Fewer rows, but the next one is as far away as before."),
            ((2, 1), "it has 2 rows now, but the next row is as far away as before, 6."),
            ((12, 1), "the rows 1 and 2 follow each other in x. Only the start is another one."),
        ],
    ),
    "x[::2]": (
        (12, 1),
        [
            ((6, 1), "those of x itself. But its next row is two rows of x further on."),
            ((6, 2), "every other *row* is taken, not every other column: the first index is the row."),
            ((3, 1), "fewer rows make the step down longer, not shorter: a row of x is skipped."),
            ((2, 1), "two *rows* further on, and a row has 6 elements."),
        ],
    ),
    "x.reshape(8, 3)": (
        (3, 1),
        [
            ((6, 1), "those of x itself. A row has 3 elements now, so the next begins 3 further."),
            ((8, 3), "that is its shape. How far is it from one row to the next?"),
            ((8, 1), "a row has 3 elements, and the next begins 3 further. 8 is how many rows there are."),
            ((1, 8), "it reads straight on, row by row: the last stride is 1."),
            ((1, 3), "the right two numbers, in the wrong order. The first is for a step down."),
        ],
    ),
    "x[0].expand(5, 6)": (
        (0, 1),
        [
            ((6, 1), "the next row would be the next one of x. Here each row is the first one again."),
            ((1, 0), "that repeats one element along each row. Here the row is repeated, downwards."),
            ((1, 1), "a step down should lead to the same elements again: how much further is that?"),
            ((1,), "that is x[0]. The expanded one has two dimensions, the new one on the left."),
        ],
    ),
}


@exercise("06.1", "a stride says how far in the list one step is; views change strides and start, and never the list.")
def _strides(answer: Any) -> None:
    answer = _answers(answer, _STRIDES, "the stride of")
    for name, (right, causes) in _STRIDES.items():
        _tuple(f"the strides of {name}", answer[name], right, causes, "one for each dimension")


@exercise("06.2", "shape, index and the order of the dimensions are reversed; the list, and each position, stay.")
def _from_the_other_side(answer: Any) -> None:
    names = ("shape", "index", "position", "dim", "shape of the sum")
    answer = _answers(answer, names, "the entry")
    same = "that is how mljs writes it. Rows are the last but one here, columns the last: reverse it."
    _tuple("the shape", answer["shape"], (2, 3, 4), [((4, 3, 2), same)], "the same dimensions, reversed")
    _tuple("the index", answer["index"], (0, 2, 1), [((1, 2, 0), same)], "one for each dimension")
    by = "the strides of (2, 3, 4) are (12, 4, 1), and the index is (0, 2, 1)."
    at = [
        (10.0, f"that is [1, 2, 0] in a tensor whose shape is (4, 3, 2) *here*. But {by}"),
        (20.0, f"the index still has to be reversed: {by}"),
        (5.0, f"the shape still has to be reversed: {by}"),
        (3.0, f"the indices themselves were added up. Each is multiplied by its stride: {by}"),
    ]
    compare("the position", answer["position"], 9.0, [*at, (-9.0, "a position is counted from 0 upwards.")])
    dims = [
        (2.0, "with three dimensions, reversed, their 2 is not ours. Theirs was the depth, the last that they write."),
        (1.0, "their middle dimension is our middle one; but the sum goes over z, the last that they write."),
        (-3.0, "counted from the right that is it. Count from 0 at the left."),
    ]
    compare("dim", answer["dim"], 0.0, dims)
    sums = [
        ((4, 3), "that is how mljs writes it. Reverse it."),
        ((1, 3, 4), "the dimension that is summed over is dropped, not kept."),
        ((2, 3), "that would be the sum over x. z is what goes away, and z was 2."),
        ((2, 4), "that would be the sum over y. z is what goes away, and z was 2."),
    ]
    _tuple("the shape of the sum", answer["shape of the sum"], (3, 4), sums, "one dimension less")


_BROADCAST = (
    ((3, 3), (3,)),
    ((3, 3), (3, 1)),
    ((2, 3), (1, 3)),
    ((2, 3), (2, 3)),
    ((2, 3), ()),
    ((4, 2, 3), (2, 1)),
    ((4, 2, 3), (1, 2, 1)),
)


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Return the sum of an array over what broadcasting from `shape` repeated."""
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    return gradient.sum(tuple(k for k, size in enumerate(shape) if size == 1), keepdims=True)


@exercise("06.3", "dimensions that are new are summed away, and those that were 1 are summed to 1 again.")
def _gradient_before(answer: Any) -> None:
    import numpy as np

    for broadcast_shape, shape in _BROADCAST:
        upstream = (np.arange(np.prod(broadcast_shape)) ** 2 % 11 - 3.0).reshape(broadcast_shape)
        right = _summed(upstream, shape)
        result = call(answer, to_tensor(upstream), shape)
        name = f"from {broadcast_shape} back to {shape}, the gradient"
        result_shape = tuple(getattr(result, "shape", shape))
        if result_shape != shape:
            raise Wrong(f"{name} has the shape {result_shape}. {_why_shape(result_shape, broadcast_shape, shape)}")
        mistakes = [(right * right.size / upstream.size, "that is a mean. What was repeated gets the sum.")]
        if broadcast_shape == (3, 3):  # where other sums have the right shape, too
            down = shape == (3,)
            one, other = (upstream[0], upstream.sum(1)) if down else (upstream[:, :1], upstream.sum(0)[:, None])
            mistakes.append((one, "that is one contribution alone. Add up all that read the same position."))
            mistakes.append((other, "summed over the wrong dimension. Which one was repeated?"))
        compare_arrays(name, result, right, mistakes, "The gradient of a copy is handed on as it is, sign and all.")


def _why_shape(result_shape: tuple[int, ...], broadcast_shape: tuple[int, ...], shape: tuple[int, ...]) -> str:
    if result_shape == broadcast_shape:
        return "It is still that of the result: sum over what was repeated."
    if result_shape == ():
        return "All of it was summed. Sum over what was repeated, and over nothing else."
    if len(result_shape) < len(shape):
        return "A dimension that had the size 1 should have it again: keepdim=True."
    if len(result_shape) > len(shape):
        return "Dimensions that broadcasting put in front are to go: sum(0), without keepdim, for each of them."
    return "A gradient has the shape of what it is the gradient of."


@exercise("06.4", "guess and truth have the same shape, (n,) or both (n, 1): n differences, and the mean of n squares.")
def _mean_squared_error(answer: Any) -> None:
    import numpy as np

    for n, k in ((3, 3), (4, 2), (5, 1)):
        x = (np.arange(n * k) ** 2 % 7 - 2.0).reshape(n, k)
        truth, w, b = np.arange(n) ** 2 * 0.5 - 1.0, np.arange(k) * 0.5 - 0.75, np.array([0.625])
        tensors = [to_tensor(w, requires_grad=True), to_tensor(b, requires_grad=True), to_tensor(x), to_tensor(truth)]
        result = call(answer, *tensors)
        name = f"for {n} samples with {k} feature{'s' * (k > 1)}, the loss"
        if getattr(result, "shape", ()) not in ((), (1,)):
            raise Wrong(f"{name} should be a scalar, and this has the shape {tuple(result.shape)}. Take the mean.")
        loss = float(as_array(result.reshape(()) if hasattr(result, "reshape") else result, (), name))
        off = x @ w + b - truth
        every = x @ w[:, None] + b - truth
        mistakes = [
            (float((every**2).mean()), "as before: (n, 1) minus (n,) compares every guess with every truth."),
            (float((every**2).sum()), "every guess with every truth, and their sum."),
            (float((every**2).sum() / n), "a value for each sample, but still (n, 1) minus (n,): look at the shape."),
            (float((off**2).sum()), "that is the sum. The mean divides it by the number of samples."),
            (float((off**2).mean() ** 0.5), "that is its root. The loss is the mean of the squares itself."),
            (float(off.mean() ** 2), "first square, then take the mean: differences of both signs would cancel."),
            (float(off.mean()), "the differences are to be squared."),
            (float(np.abs(off).mean()), "the differences are to be squared, not taken without their sign."),
            (float(((off - b) ** 2).mean()), "the bias, b, is missing."),
        ]
        if n == k:
            across = (x * w).sum(0) + b - truth
            mistakes.append((float((across**2).mean()), "sum(0) adds up the samples. A guess sums over the features."))
        compare(name, loss, float((off**2).mean()), mistakes)
        _has_gradients(result, tensors, (2 / n * (x.T @ off), 2 * off.mean(keepdims=True)), name)


def _has_gradients(loss: Any, tensors: Sequence[Any], right: Sequence[Any], name: str) -> None:
    """Run backward from `loss` and compare the gradients of w and b."""
    if not getattr(loss, "requires_grad", False):
        raise Wrong(f"{name} is right, but it has no gradient: compute it with tensors to the end, without .item().")
    loss.backward()
    for leaf, gradient, name_of_leaf in zip(tensors[:2], right, "wb", strict=True):
        if leaf.grad is None:
            raise Wrong(
                f"{name} is right, but no gradient arrives at {name_of_leaf}: was it detached, or made a float?"
            )
        compare_arrays(f"{name} is right, but the gradient of {name_of_leaf}", leaf.grad, gradient)
