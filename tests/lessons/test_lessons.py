"""The exercise checks: every solution passes, and a wrong answer receives an explanation."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from cases import merge_cases, run_cases
from minigrad import lessons
from minigrad.data import iris
from mistakes import FUNCTIONS, MISTAKES
from needs import needs_of_lesson

SOLUTIONS = sorted((Path(__file__).parents[2] / "notebooks" / "solutions").glob("[0-9]*.py"))


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.stem)
def test_every_solution_passes_its_checks(solution, capsys):
    needs_of_lesson(solution.stem)
    runpy.run_path(str(solution))
    lines = capsys.readouterr().out.splitlines()
    exercises = sorted(exercise for exercise in lessons.EXERCISES if exercise.startswith(solution.stem[:2]))
    assert [line.split(": ")[0] for line in lines if line.startswith(solution.stem[:2])] == [
        f"{k} right" for k in exercises
    ]


def test_there_is_a_solution_for_every_exercise():
    assert {exercise[:2] for exercise in lessons.EXERCISES} == {solution.stem[:2] for solution in SOLUTIONS}


# --- known mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", sorted({mistake[0][:2] for mistake in MISTAKES}))
def test_a_wrong_answer_receives_an_explanation(lesson, capsys):
    needs_of_lesson(lesson)

    def check(mistake):
        exercise, answer, sentence = mistake
        lessons.check(exercise, answer)
        line = capsys.readouterr().out
        assert line.startswith(f"{exercise} not right: ")
        assert sentence in line
        assert line.count("\n") == 1

    run_cases(check, [(f"{m[0]}-{i}", m) for i, m in enumerate(MISTAKES) if m[0].startswith(lesson)])


@merge_cases
@pytest.mark.parametrize("exercise", sorted(lessons.EXERCISES))
def test_each_check_has_at_least_two_known_mistakes(exercise):
    assert sum(mistake[0] == exercise for mistake in MISTAKES) >= 2


# --- blanks and errors ------------------------------------------------------------------------------------------------


@merge_cases
@pytest.mark.parametrize("blank", [None, ...], ids=["None", "dots"])
@pytest.mark.parametrize("exercise", sorted(lessons.EXERCISES))
def test_a_blank_answer_is_not_yet_wrong(exercise, blank, capsys):
    lessons.check(exercise, blank)
    assert capsys.readouterr().out == f"{exercise} not yet: replace the ... with your answer.\n"


@merge_cases
@pytest.mark.parametrize("exercise", FUNCTIONS)
@pytest.mark.parametrize("blank", [lambda *_: None, lambda *_: ...], ids=["None", "dots"])
def test_a_function_without_a_body_is_not_yet_wrong(exercise, blank):
    needs_of_lesson(exercise)
    assert lessons.judge(exercise, blank).message.startswith("the function gives nothing back so far")


def test_a_half_filled_dict_lists_the_open_entries():
    assert lessons.judge("01.1", {"w": 0.125, "x": ..., "b": None}) == ("not yet", "still open: x, b.")


def test_an_unknown_exercise_lists_the_existing_ones():
    with pytest.raises(KeyError, match=re.escape("no exercise '9.9'; the exercises are 01.1, 01.2")):
        lessons.check("9.9", 1)


def test_an_error_in_the_answer_names_the_call():
    with pytest.raises(ZeroDivisionError) as caught:
        lessons.check("01.3", lambda a, b: (a / 0, 0, 0))
    assert caught.value.__notes__ == ["This happened when the check called your function with 6.0, 4.0."]


@pytest.mark.parametrize("exercise", ["18.3", "18.4"])
def test_a_check_that_needs_pytorch_says_how_to_install_it(exercise, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"^The checks of lesson 18 need PyTorch\. Install it"):
        lessons.check(exercise, lambda *_: 1)


def test_every_exercise_explains_its_answer():
    assert all(exercise.explanation.endswith(".") for exercise in lessons.EXERCISES.values())


def test_the_test_flowers_are_ten_of_each_species():
    assert sorted(iris().test_y) == [0] * 10 + [1] * 10 + [2] * 10
