"""Checks for the exercises of the lessons. A check explains what is wrong with an answer.

An exercise is a function that raises `Wrong` with an explanation for a wrong answer, and `NotYet` for a blank one. The
exercises of a lesson are defined in the module with the lesson's number. To add an exercise, define it in that module,
with an explanation of the right answer.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import Any

from minigrad.lessons.checking import EXERCISES, Exercise, NotYet, Verdict, Wrong, check_filled

__all__ = ["EXERCISES", "Exercise", "NotYet", "Verdict", "Wrong", "check", "judge"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)  # registers the exercises of each lesson


def check(exercise_id: str, answer: Any) -> None:
    """Check `answer` and print one line: right, wrong or not yet, with an explanation.

    Raises KeyError for an unknown exercise. Under nbgrader, which gives a point for each check that does not raise, it
    raises AssertionError for an answer that is not right. An exception in the learner's function propagates, with a
    note about the call.

    >>> check("01.1", ...)
    01.1 not yet: replace the ... with your answer.
    >>> check("01.1", {"w": 0.125, "x": 1.0, "b": -0.25})
    01.1 not right: ∂y/∂b = -0.25 has the right size but the wrong sign. If b goes up, y goes up.
    >>> check("01.1", {"w": 0.125, "x": 1.0, "b": 0.25})
    01.1 right: the sigmoid passes on a quarter of it; w gets that times x, x that times w, b the quarter itself.
    """
    verdict = judge(exercise_id, answer)
    print(f"{exercise_id} {'not right' if verdict.state == 'wrong' else verdict.state}: {verdict.message}")
    if verdict.state != "right" and "NBGRADER_EXECUTION" in os.environ:
        raise AssertionError(f"{exercise_id} is {'wrong' if verdict.state == 'wrong' else 'open'}")


def judge(exercise_id: str, answer: Any) -> Verdict:
    """Return the result of `check` as a `Verdict`, for tests and grading."""
    if exercise_id not in EXERCISES:
        raise KeyError(f"no exercise {exercise_id!r}; the exercises are {', '.join(sorted(EXERCISES))}")
    exercise = EXERCISES[exercise_id]
    try:
        check_filled(answer)
        exercise.check(answer)
    except NotYet as blank:
        return Verdict("not yet", str(blank))
    except Wrong as wrong:
        return Verdict("wrong", str(wrong))
    return Verdict("right", exercise.explanation)
