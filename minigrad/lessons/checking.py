"""Helpers for the checks of exercises: call the learner's function, compare answers, and explain mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple

from minigrad.core.errors import ShapeError
from minigrad.core.value import Value

__all__ = [
    "EXERCISES",
    "ArrayMistakes",
    "Exercise",
    "Mistakes",
    "NotYet",
    "Verdict",
    "Wrong",
    "as_array",
    "as_number",
    "as_numbers",
    "call",
    "call_on_shapes",
    "check_filled",
    "check_keys",
    "compare",
    "compare_arrays",
    "compare_flags",
    "compare_gradient",
    "compare_shaped",
    "exercise",
    "is_close",
    "sample_array",
    "to_tensor",
]


class Exercise(NamedTuple):
    """An exercise. `check` raises an exception unless the answer is right; `explanation` explains the right answer."""

    check: Callable[[Any], None]
    explanation: str


class Verdict(NamedTuple):
    """The result of a check, and its explanation."""

    state: Literal["right", "wrong", "not yet"]
    message: str


class Wrong(Exception):
    """Raised for a wrong answer; the message explains the mistake."""


class NotYet(Exception):
    """Raised for a blank answer."""


EXERCISES: dict[str, Exercise] = {}
"""Maps exercise numbers to exercises. The number of exercise 1 in lesson 01 is "01.1"."""


def exercise(number: str, explanation: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(check: Callable[[Any], None]) -> Callable[[Any], None]:
        EXERCISES[number] = Exercise(check, explanation)
        return check

    return register


Mistakes = Iterable[tuple[float, str]]  # (wrong value, explanation of the mistake)
ArrayMistakes = list[tuple[Any, str]]  # the same for arrays


def check_filled(answer: Any) -> None:
    if answer is None or answer is ...:
        raise NotYet("replace the ... with your answer.")
    items: Iterable[tuple[Any, Any]] = answer.items() if isinstance(answer, Mapping) else ()
    if blank := [str(key) for key, item in items if item is None or item is ...]:
        raise NotYet(f"still open: {', '.join(blank)}.")


def call(function: Any, *arguments: Any) -> Any:
    """Call the learner's function. Raises Wrong if it is not callable, NotYet if it returns None or `...`."""
    if not callable(function):
        raise Wrong(f"this is a {type(function).__name__}, not a function. Give the function itself, do not call it.")
    try:
        result = function(*arguments)
    except Exception as error:
        shown = ", ".join("a function" if callable(argument) else repr(argument) for argument in arguments)
        error.add_note(f"This happened when the check called your function with {shown}.")
        raise
    if result is None or result is ...:
        raise NotYet("the function gives nothing back so far. Write its body and end it with return.")
    return result


def call_on_shapes(function: Any, *arguments: Any, hint: str = "") -> Any:
    """Call the learner's function with `call`. If it raises a ShapeError, raise Wrong with `hint`."""
    try:
        return call(function, *arguments)
    except ShapeError as error:
        raise Wrong(f"shapes that do not go together: {str(error).splitlines()[0]} {hint}".rstrip()) from error


def as_number(x: Any, name: str) -> float:
    if isinstance(x, Value):
        raise Wrong(f"{name} should be a float, and this is a Value: take its .data or its .grad.")
    if isinstance(x, bool) or not isinstance(x, Real):
        raise Wrong(f"{name} should be a number, and this is a {type(x).__name__}.")
    if math.isnan(x):
        raise Wrong(f"{name} is nan: somewhere inf was divided by inf, or 0 by 0.")
    return float(x)


def as_numbers(x: Any, names: Sequence[str], name: str) -> list[float]:
    """Convert a sequence of numbers, one for each of `names`, to floats."""
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != len(names):
        type_name = type(x).__name__ + (f" of {len(x)}" if isinstance(x, Sequence) else "")
        raise Wrong(f"{name} should be {len(names)} numbers ({', '.join(names)}), and this is a {type_name}.")
    return [as_number(item, item_name) for item, item_name in zip(x, names, strict=True)]


def is_close(x: float, y: float) -> bool:
    return math.isclose(x, y, rel_tol=1e-4, abs_tol=1e-6)


def compare(name: str, answer: Any, expected: float, mistakes: Mistakes = (), sign_hint: str = "") -> None:
    """Raise `Wrong`, with the most specific explanation, if `answer` is not close to `expected`.

    `sign_hint` is added to the explanation of a wrong sign.
    """
    value = as_number(answer, name)
    if is_close(value, expected):
        return
    for wrong, cause in mistakes:
        if is_close(value, wrong):
            raise Wrong(f"{name} = {value:g}: {cause}")
    if is_close(value, -expected):
        raise Wrong(f"{name} = {value:g} has the right size but the wrong sign. {sign_hint}".rstrip())
    if expected and value:
        hint = (
            "Is a factor missing" if abs(value) < abs(expected) else "Is there a factor too many, or a division missing"
        )
        raise Wrong(f"{name} = {value:g} is {value / expected:.3g} times what it should be. {hint}?")
    raise Wrong(f"{name} = {value:g}, but a nudge says {expected:g}.")


def check_keys(answer: Any, *names: str, prefix: str = "") -> None:
    """Raise `Wrong` unless `answer` is a dict with the keys `names`. The message lists missing keys after `prefix`."""
    if not isinstance(answer, Mapping):
        shown = ", ".join(f'"{name}": …' for name in names)
        raise Wrong(f"the answer should be a dict, {{{shown}}}, and this is a {type(answer).__name__}.")
    if missing := [name for name in names if name not in answer]:
        raise Wrong(f"{prefix}{', '.join(missing)} is missing from the dict.")


def compare_gradient(answer: Any, expected: Mapping[str, float], mistakes: Mapping[str, Mistakes]) -> None:
    """Raise `Wrong` unless the dict `answer` contains the expected derivative of y with respect to each name."""
    check_keys(answer, *expected, prefix="the slope by ")
    for name, derivative in expected.items():
        sign_hint = f"If {name} goes up, y goes {'up' if derivative > 0 else 'down'}."
        compare(f"∂y/∂{name}", answer[name], derivative, mistakes.get(name, ()), sign_hint)


def compare_flags(answer: Any, expected: Mapping[str, tuple[bool, str]], if_true: str, if_false: str) -> None:
    """Raise `Wrong` unless `answer` maps each name to the expected bool.

    The message states the correct answer with `if_true` or `if_false`.
    """
    for name, (flag, why) in expected.items():
        if answer[name] not in (True, False):
            raise Wrong(f"{name} should be True or False, and this is {answer[name]!r}.")
        if bool(answer[name]) is not flag:
            raise Wrong(f"{name} {if_true if flag else if_false}: {why}")


def sample_array(seed: int, *shape: int) -> Any:
    """Return a pseudorandom NumPy array without symmetries, which is the same for every learner."""
    import numpy as np

    return np.random.default_rng(seed).integers(-12, 13, shape) / 4.0 + 0.125


def to_tensor(x: Any, requires_grad: bool = False) -> Any:
    """Convert an array or a list to a tensor: int64 for a list of ints, else float64."""
    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.core.dtypes import float64
    from minigrad.functional.creation import tensor

    nested_list = x.tolist() if hasattr(x, "tolist") else x
    if isinstance(nested_list, list) and nested_list and isinstance(nested_list[0], int):
        return tensor(nested_list)
    return tensor(nested_list, dtype=float64, requires_grad=requires_grad)


def as_array(x: Any, shape: Sequence[int], name: str) -> Any:
    """Convert a tensor, an array or nested lists of shape `shape` to a float64 NumPy array."""
    import numpy as np

    if isinstance(x, str) or not (hasattr(x, "shape") or isinstance(x, Sequence | Real)):
        raise Wrong(f"{name} should be a tensor of shape {tuple(shape)}, and this is a {type(x).__name__}.")
    x = x.detach().numpy() if hasattr(x, "detach") else x
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise Wrong(f"{name} should be a tensor of shape {tuple(shape)}, and this is a {type(x).__name__}.") from None
    if array.shape != tuple(shape):
        raise Wrong(f"{name} should have the shape {tuple(shape)}, and this has {array.shape}.")
    if np.isnan(array).any():
        raise Wrong(f"{name} has nan in it: somewhere inf was divided by inf, or 0 by 0.")
    return array


def compare_arrays(
    name: str, answer: Any, expected: Any, mistakes: Iterable[tuple[Any, str]] = (), sign_hint: str = ""
) -> None:
    """Raise `Wrong` unless `answer` is close to the array `expected`, like `compare` for numbers.

    `answer` is converted by `as_array`. `expected` and the wrong values in `mistakes` are NumPy arrays.
    """
    import numpy as np

    def arrays_close(x: Any, y: Any) -> bool:
        return np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-4, atol=1e-6)

    array = as_array(answer, np.shape(expected), name)
    if arrays_close(array, expected):
        return
    for wrong, cause in mistakes:
        if arrays_close(array, wrong):
            raise Wrong(f"{name}: {cause}")
    if arrays_close(array, -expected):
        raise Wrong(f"{name} has the right size but the wrong sign. {sign_hint}".rstrip())
    if (
        array.any()
        and (scale := (array * expected).sum() / (expected * expected).sum())
        and arrays_close(array, scale * expected)
    ):
        raise Wrong(f"{name} is {scale:.3g} times what it should be. Is a factor missing, or one too many?")
    worst_index = tuple(int(k) for k in np.unravel_index(np.abs(array - expected).argmax(), array.shape))
    raise Wrong(
        f"{name} is not right, most of all at {list(worst_index)}: {array[worst_index]:.4g}, and it should be "
        f"{expected[worst_index]:.4g}."
    )


def compare_shaped(name: str, answer: Any, expected: Any, mistakes: ArrayMistakes, sign_hint: str = "") -> None:
    """Compare arrays like `compare_arrays`, but allow wrong values in `mistakes` with other shapes."""
    import numpy as np

    array = answer.detach().numpy() if hasattr(answer, "detach") else answer
    for wrong, cause in mistakes:
        has_wrong_shape = np.shape(wrong) != np.shape(expected) and np.shape(array) == np.shape(wrong)
        if has_wrong_shape and np.allclose(array, wrong, rtol=1e-4, atol=1e-6):
            raise Wrong(f"{name} has the shape {np.shape(array)}, and it should be {np.shape(expected)}: {cause}")
    compare_arrays(name, answer, expected, mistakes, sign_hint)
