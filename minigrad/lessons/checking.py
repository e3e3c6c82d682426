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
    "close",
    "compare",
    "compare_arrays",
    "compare_shaped",
    "entries",
    "exercise",
    "filled",
    "gradient",
    "numbers",
    "tensor_of",
    "true_or_false",
]


class Exercise(NamedTuple):
    """An exercise: `look` raises for an answer that is not right; `because` explains the right answer."""

    look: Callable[[Any], None]
    because: str


class Verdict(NamedTuple):
    """The result of a check, and its explanation."""

    state: Literal["right", "wrong", "not yet"]
    sentence: str


class Wrong(Exception):
    """Raised for a wrong answer; the message explains the mistake."""


class NotYet(Exception):
    """Raised for a blank answer."""


EXERCISES: dict[str, Exercise] = {}
"""All exercises by number, such as "01.1": lesson, dot, exercise."""


def exercise(number: str, because: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(look: Callable[[Any], None]) -> Callable[[Any], None]:
        EXERCISES[number] = Exercise(look, because)
        return look

    return register


Mistakes = Iterable[tuple[float, str]]  # (wrong value, explanation of the mistake)
ArrayMistakes = list[tuple[Any, str]]  # the same for arrays


def filled(answer: Any) -> None:
    if answer is None or answer is ...:
        raise NotYet("replace the ... with your answer.")
    items: Iterable[tuple[Any, Any]] = answer.items() if isinstance(answer, Mapping) else ()
    if blank := [str(key) for key, item in items if item is None or item is ...]:
        raise NotYet(f"still open: {', '.join(blank)}.")


def call(function: Any, *arguments: Any) -> Any:
    """Call the learner's function. Raises Wrong if it is not callable, NotYet if it returns nothing."""
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
    """As `call`, but a ShapeError is a wrong answer, reported with `hint`."""
    try:
        return call(function, *arguments)
    except ShapeError as error:
        raise Wrong(f"shapes that do not go together: {str(error).splitlines()[0]} {hint}".rstrip()) from error


def as_number(x: Any, what: str) -> float:
    if isinstance(x, Value):
        raise Wrong(f"{what} should be a float, and this is a Value: take its .data or its .grad.")
    if isinstance(x, bool) or not isinstance(x, Real):
        raise Wrong(f"{what} should be a number, and this is a {type(x).__name__}.")
    if math.isnan(x):
        raise Wrong(f"{what} is nan: somewhere inf was divided by inf, or 0 by 0.")
    return float(x)


def as_numbers(x: Any, names: Sequence[str], what: str) -> list[float]:
    """Convert a sequence with one number per name to floats."""
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != len(names):
        found = type(x).__name__ + (f" of {len(x)}" if isinstance(x, Sequence) else "")
        raise Wrong(f"{what} should be {len(names)} numbers ({', '.join(names)}), and this is a {found}.")
    return [as_number(item, name) for item, name in zip(x, names, strict=True)]


def close(x: float, y: float) -> bool:
    return math.isclose(x, y, rel_tol=1e-4, abs_tol=1e-6)


def compare(name: str, given: Any, right: float, mistakes: Mistakes = (), up: str = "") -> None:
    """Raise `Wrong` if `given` is not close to `right`, with the most specific explanation; `up` explains the sign."""
    number = as_number(given, name)
    if close(number, right):
        return
    for wrong, cause in mistakes:
        if close(number, wrong):
            raise Wrong(f"{name} = {number:g}: {cause}")
    if close(number, -right):
        raise Wrong(f"{name} = {number:g} has the right size but the wrong sign. {up}".rstrip())
    if right and number:
        way = "Is a factor missing" if abs(number) < abs(right) else "Is there a factor too many, or a division missing"
        raise Wrong(f"{name} = {number:g} is {number / right:.3g} times what it should be. {way}?")
    raise Wrong(f"{name} = {number:g}, but a nudge says {right:g}.")


def entries(answer: Any, *names: str, what: str = "") -> None:
    """Raise `Wrong` unless `answer` is a dict with the keys `names`; `what` describes a missing key."""
    if not isinstance(answer, Mapping):
        shown = ", ".join(f'"{name}": …' for name in names)
        raise Wrong(f"the answer should be a dict, {{{shown}}}, and this is a {type(answer).__name__}.")
    if missing := [name for name in names if name not in answer]:
        raise Wrong(f"{what}{', '.join(missing)} is missing from the dict.")


def gradient(answer: Any, right: Mapping[str, float], mistakes: Mapping[str, Mistakes]) -> None:
    """Compare a dict with the derivative of y with respect to each name in `right`."""
    entries(answer, *right, what="the slope by ")
    for name, slope in right.items():
        up = f"If {name} goes up, y goes {'up' if slope > 0 else 'down'}."
        compare(f"∂y/∂{name}", answer[name], slope, mistakes.get(name, ()), up)


def true_or_false(answer: Any, right: Mapping[str, tuple[bool, str]], yes: str, no: str) -> None:
    """Raise `Wrong` unless `answer` has the right bool for each name; `yes` and `no` state the correct answer."""
    for name, (flag, why) in right.items():
        if answer[name] not in (True, False):
            raise Wrong(f"{name} should be True or False, and this is {answer[name]!r}.")
        if bool(answer[name]) is not flag:
            raise Wrong(f"{name} {yes if flag else no}: {why}")


def numbers(seed: int, *shape: int) -> Any:
    """Return a pseudorandom NumPy array without symmetry; the same for each learner."""
    import numpy as np

    return np.random.default_rng(seed).integers(-12, 13, shape) / 4.0 + 0.125


def tensor_of(x: Any, requires_grad: bool = False) -> Any:
    """Convert an array or a list to a tensor: int64 for a list of ints, else float64."""
    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.core.dtypes import float64
    from minigrad.functional.creation import tensor

    listed = x.tolist() if hasattr(x, "tolist") else x
    if isinstance(listed, list) and listed and isinstance(listed[0], int):
        return tensor(listed)
    return tensor(listed, dtype=float64, requires_grad=requires_grad)


def as_array(x: Any, shape: Sequence[int], what: str) -> Any:
    """Convert a tensor, an array or nested lists of shape `shape` to a float64 NumPy array."""
    import numpy as np

    if isinstance(x, str) or not (hasattr(x, "shape") or isinstance(x, Sequence | Real)):
        raise Wrong(f"{what} should be a tensor of shape {tuple(shape)}, and this is a {type(x).__name__}.")
    x = x.detach().numpy() if hasattr(x, "detach") else x
    try:
        found = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise Wrong(f"{what} should be a tensor of shape {tuple(shape)}, and this is a {type(x).__name__}.") from None
    if found.shape != tuple(shape):
        raise Wrong(f"{what} should have the shape {tuple(shape)}, and this has {found.shape}.")
    if np.isnan(found).any():
        raise Wrong(f"{what} has nan in it: somewhere inf was divided by inf, or 0 by 0.")
    return found


def compare_arrays(name: str, given: Any, right: Any, mistakes: Iterable[tuple[Any, str]] = (), up: str = "") -> None:
    """As `compare`, for arrays of equal shape: `given` is converted by `as_array`; the others are NumPy arrays."""
    import numpy as np

    def alike(x: Any, y: Any) -> bool:
        return np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-4, atol=1e-6)

    found = as_array(given, np.shape(right), name)
    if alike(found, right):
        return
    for wrong, cause in mistakes:
        if alike(found, wrong):
            raise Wrong(f"{name}: {cause}")
    if alike(found, -right):
        raise Wrong(f"{name} has the right size but the wrong sign. {up}".rstrip())
    if found.any() and (scale := (found * right).sum() / (right * right).sum()) and alike(found, scale * right):
        raise Wrong(f"{name} is {scale:.3g} times what it should be. Is a factor missing, or one too many?")
    place = tuple(int(k) for k in np.unravel_index(np.abs(found - right).argmax(), found.shape))
    raise Wrong(
        f"{name} is not right, most of all at {list(place)}: {found[place]:.4g}, and it should be {right[place]:.4g}."
    )


def compare_shaped(name: str, given: Any, right: Any, mistakes: ArrayMistakes, up: str = "") -> None:
    """As `compare_arrays`, but `mistakes` may have other shapes."""
    import numpy as np

    found = given.detach().numpy() if hasattr(given, "detach") else given
    for wrong, cause in mistakes:
        other = np.shape(wrong) != np.shape(right) and np.shape(found) == np.shape(wrong)
        if other and np.allclose(found, wrong, rtol=1e-4, atol=1e-6):
            raise Wrong(f"{name} has the shape {np.shape(found)}, and it should be {np.shape(right)}: {cause}")
    compare_arrays(name, given, right, mistakes, up)
