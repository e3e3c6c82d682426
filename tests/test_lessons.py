"""The exercise checks: every solution passes, and a wrong answer hears what is wrong with it."""

import math
import re
import runpy
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import lessons
from minigrad.data import iris

SOLUTIONS = sorted((Path(__file__).parents[1] / "notebooks" / "solutions").glob("[0-9]*.py"))
H = 1e-5


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.stem)
def test_every_solution_passes_its_three_checks(solution, capsys):
    runpy.run_path(str(solution))
    lines = capsys.readouterr().out.splitlines()
    number = solution.stem[:2]
    assert [line.split(": ")[0] for line in lines] == [f"{number}.{k} right" for k in (1, 2, 3)]


def test_there_is_a_solution_for_every_exercise():
    assert {exercise[:2] for exercise in lessons.EXERCISES} == {solution.stem[:2] for solution in SOLUTIONS}


# --- planted mistakes -------------------------------------------------------------------------------------------------


def overwrite(seen, value):
    return ([event.contribution for event in seen if event.target is value] or [0.0])[-1]


def add_equals(seen, value):
    return sum(event.contribution for event in seen if event.target == value)


def add_all(seen, value):
    return sum(event.contribution for event in seen)


def add_totals(seen, value):
    return sum(event.total for event in seen if event.target is value)


def none_for_no_events(seen, value):
    found = [event.contribution for event in seen if event.target is value]
    return sum(found) if found else None


def descent(sign=-1.0, forget=True, move=True, extra=0):
    def descend(start, steps):
        x = mg.Value(start)
        for _ in range(steps + extra):
            if forget:
                x.grad = None
            (x * x - 4 * x).backward()
            if move:
                x.data += sign * 0.25 * x.grad
        return x.data

    return descend


def in_order_by(seen_type, operands):
    def is_in_order(values):
        seen = seen_type()
        for value in values:
            if any(isinstance(x, mg.Value) and x not in seen for x in operands(value)):
                return False
            seen.add(value) if seen_type is set else seen.append(value)
        return True

    return is_in_order


def plain_softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def ieee_softmax(scores):
    powers = [mg.exp(score) for score in scores]
    return [mg.ops.div(power, sum(powers)) for power in powers]


def sine(*factors):
    """A product of the local slopes named, of three."""
    local = {"square": lambda x: 2 * math.sin(3 * x), "sine": lambda x: math.cos(3 * x), "inner": lambda x: 3.0}
    return lambda x: math.prod(local[name](x) for name in factors)


def always(k):
    return lambda x: [float(i == k) for i in range(3)]


def run_program(program, leaves, copy=True, **other):
    compute = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "neg": lambda x: -x, "max": max, **other}
    values = list(leaves) if copy else leaves
    for op, *reads in program:
        values.append(compute[op](*[values[row] for row in reads]))
    return values


def back(program, values, add=True, forward=False, swapped=False):
    slopes = {"add": lambda x, y: (1, 1), "mul": lambda x, y: (x, y) if swapped else (y, x), "neg": lambda x: (-1,)}
    gradients = [0.0] * (len(values) - 1) + [1.0]
    rows = range(len(values) - len(program), len(values))
    for row in rows if forward else reversed(rows):
        op, *reads = program[row - len(values)]
        for read, slope in zip(reads, slopes[op](*[values[k] for k in reads]), strict=True):
            gradients[read] = (gradients[read] if add else 0.0) + gradients[row] * slope
    return gradients


MISTAKES = [
    ("01.1", {"w": 0.5, "x": 1.0, "b": 0.25}, "passes on only a quarter"),
    ("01.1", {"w": 1.0, "x": 0.125, "b": 0.25}, "w and x have changed places"),
    ("01.1", {"w": 0.125, "x": -1.0, "b": 0.25}, "∂y/∂x = -1 has the right size but the wrong sign. If x goes up, y"),
    ("01.1", {"w": 0.125, "x": 1.0, "b": 0.0}, "b is added, so w·x + b moves exactly as far"),
    ("01.1", {"w": 0.125, "x": 1.0}, "the slope by b is missing from the dict"),
    ("01.1", [0.125, 1.0, 0.25], 'should be a dict, {"w": …, "x": …, "b": …}, and this is a list'),
    ("01.1", {"w": "0.125", "x": 1.0, "b": 0.25}, "∂y/∂w should be a number, and this is a str"),
    ("01.1", {"w": mg.Value(0.125), "x": 1.0, "b": 0.25}, "take its .data or its .grad"),
    ("01.1", {"w": 0.03125, "x": 1.0, "b": 0.25}, "is 0.25 times what it should be. Is a factor missing?"),
    ("01.2", lambda f, x: f(x + H) - f(x - H), "Divide it by how far x moved"),
    ("01.2", lambda f, x: (f(x + H) - f(x - H)) / H, "twice too much. From x - h to x + h it is 2h"),
    ("01.2", lambda f, x: (f(x + H) - f(x)) / (2 * H), "divide by h, not by 2 * h"),
    ("01.2", lambda f, x: (f(x - H) - f(x + H)) / (2 * H), "wrong sign"),
    ("01.2", lambda f, x: (f(x + 1e-17) - f(x)) / 1e-17, "x + h is rounded back to x"),
    ("01.2", lambda f, x: (f(x + 0.1) - f(x)) / 0.1, "Take a smaller step"),
    ("01.2", lambda f, x: f(x), "that is f(x) itself"),
    ("01.2", 6.0, "this is a float, not a function"),
    ("01.3", lambda a, b: (a / b, 1 / b, a / b**2), "wrong sign. A larger divisor makes a positive quotient smaller"),
    ("01.3", lambda a, b: (a / b, 1 / b, -a / b), "b² is below the line"),
    ("01.3", lambda a, b: (a / b, 1 / b, -1 / b**2), "the factor a is missing"),
    ("01.3", lambda a, b: (a / b, -a / b**2, 1 / b), "the two slopes have changed places"),
    ("01.3", lambda a, b: (a / b, b, -a / b**2), "that would be the slope of a·b"),
    ("01.3", lambda a, b: a / b, "should be 3 numbers (a / b, the slope by a, the slope by b), and this is a float"),
    ("02.1", {"a": 0.5, "b": 1.5, "c": 1.5, "d": -0.75}, "wrong sign. If c goes up, y goes down"),
    ("02.1", {"a": 2, "b": 6, "c": -6, "d": -0.75}, "its local slope, 1/d, is missing"),
    ("02.1", {"a": 0.5, "b": 0.25, "c": -1.5, "d": -0.75}, "the multiplication by a lies on the way"),
    ("02.1", {"a": 0.5, "b": 1.5, "c": -1.5, "d": -3}, "the square is missing"),
    ("02.2", lambda values: True, "you say True to [a + b, a, b], but it is not in order: the sum comes before"),
    ("02.2", lambda values: False, "you say False to [a, b, a + b], but it is in order: both operands come before"),
    ("02.2", in_order_by(set, lambda value: value.inputs[:1]), "b, the second operand, comes too late"),
    ("02.2", in_order_by(list, lambda value: value.inputs), "`==` compares numbers: use a set"),
    ("02.3", sine("square", "sine"), "the slope of the innermost step, 3·x, is missing"),
    ("02.3", sine("square", "inner"), "the slope of the sine, cos(3x), is missing"),
    ("02.3", sine("sine", "inner"), "the slope of the square, 2·sin(3x), is missing"),
    ("02.3", lambda x: 6 * math.sin(3 * x) * math.cos(x), "cos(3x), not cos(x)"),
    ("02.3", lambda x: -6 * math.sin(3 * x) * math.cos(3 * x), "wrong sign. The sine's slope is +cos"),
    ("03.1", {"a": 12, "b": 9}, "a is used three times"),
    ("03.1", {"a": 6, "b": 9}, "along all three paths: 6 + 6 + 1"),
    ("03.1", {"a": 36, "b": 9}, "not multiplied: 6 + 6 + 1"),
    ("03.1", {"a": 13, "b": 3}, "its slope is a·a"),
    ("03.2", overwrite, "Add (+=), do not overwrite (=)"),
    ("03.2", add_equals, "`==` compares numbers"),
    ("03.2", add_all, "Take those that reach `value`"),
    ("03.2", add_totals, "`total` is a running sum already"),
    ("03.2", none_for_no_events, "Start your sum at 0.0"),
    ("03.3", descent(forget=False), "the gradients of earlier steps are still in there"),
    ("03.3", descent(sign=+1.0), "uphill. Subtract the gradient"),
    ("03.3", descent(move=False), "x has not moved"),
    ("03.3", descent(extra=1), "one step too many"),
    ("03.3", lambda start, steps: mg.Value(1.0), "take its .data"),
    ("04.1", plain_softmax, "Subtract the largest score from all of them first"),
    ("04.1", ieee_softmax, "softmax of [1e+03, 0]: such scores make exp too large"),
    ("04.1", lambda scores: [math.exp(score) for score in scores], "add up to 2, not 1. Divide each by their sum"),
    ("04.1", lambda scores: [-0.5, 1.5], "no probability is negative"),
    ("04.1", lambda scores: [1 / len(scores)] * len(scores), "the first probability = 0.5: the scores have no say"),
    ("04.1", lambda scores: [score / sum(scores) for score in scores], "softmax of [0, 0]: you divide by 0"),
    ("04.1", lambda scores: max(scores), "should be 2 numbers (p0, p1), and this is a float"),
    ("04.2", lambda p, target: list(p), "take 1 off there"),
    ("04.2", lambda p, target: [(k == target) - q for k, q in enumerate(p)], "for the right class lowers the loss"),
    ("04.2", lambda p, target: [q - 1 if k == target else 0.0 for k, q in enumerate(p)], "under the logarithm"),
    ("04.2", lambda p, target: p[target] - 1, "should be 3 numbers"),
    ("04.3", always(1), "10 of 30 test flowers are right, and it never answers setosa, virginica"),
    ("04.3", mg.nn.scalar.MLP([4, 8, 3], seed=0), "takes 4 inputs to 3 scores. Make it 2 (petals)"),
    ("04.3", lambda x: [x[0], 1.0, -x[0]], "test flowers are right"),
    ("04.3", 0.97, "this is a float, not a model"),
    ("05.1", [("mul", 0, 1), ("add", 2, 0)], "It still has to be multiplied by a·b"),
    ("05.1", [("mul", 0, 1), ("add", 2, 1), ("mul", 3, 2)], "to a·b you add b. Add a, which is row 0"),
    ("05.1", [("mul", 0, 1), ("add", 2, 0), ("mul", 3, 3)], "the sum is multiplied by itself"),
    ("05.1", [("mul", 0, 1), ("add", 2, 0), ("mul", 0, 1), ("mul", 3, 4)], "by 4 instructions. Three are enough"),
    ("05.1", [("mul", 0, 1), ("add", 3, 0), ("mul", 3, 2)], "reads row 3, but writes row 3: there are only"),
    ("05.1", [("mul", "a", "b")], "names 'a', which is no row"),
    ("05.1", [("times", 0, 1)], "has the operation 'times'. There are add, mul, neg, max"),
    ("05.1", [(["mul"], 0, 1)], "has the operation ['mul']. There are"),
    ("05.1", [("mul", 0)], "reads 1 rows; mul reads 2"),
    ("05.1", "mul 0 1", "a program is a list of instructions, and this is a str"),
    ("05.2", lambda program, leaves: run_program(program, leaves)[-1], "Give back the list of all rows"),
    ("05.2", lambda program, leaves: run_program(program, leaves)[len(leaves) :], "the leaves are missing"),
    ("05.2", lambda program, leaves: run_program(program, leaves, copy=False), "changes the list of leaves"),
    ("05.2", lambda program, leaves: run_program(program, leaves, neg=lambda x: x), "wrong sign"),
    ("05.3", lambda program, values: back(program, values, add=False), "keeps only one of two contributions. Add"),
    ("05.3", lambda program, values: back(program, values, forward=True), "Begin with the last row"),
    ("05.3", lambda program, values: back(program, values, swapped=True), "the slope by one factor is the other"),
    ("05.3", lambda program, values: [0.0] * len(values), "The last row begins with 1"),
    ("05.3", lambda program, values: back(program, values)[:2], "Give those of all rows"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "answer", "sentence"), MISTAKES, ids=[f"{m[0]}-{i}" for i, m in enumerate(MISTAKES)]
)
def test_a_wrong_answer_hears_what_is_wrong(exercise, answer, sentence, capsys):
    lessons.check(exercise, answer)
    line = capsys.readouterr().out
    assert line.startswith(f"{exercise} not right: ")
    assert sentence in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("exercise", sorted(lessons.EXERCISES))
def test_each_check_is_tried_with_at_least_two_mistakes(exercise):
    assert sum(mistake[0] == exercise for mistake in MISTAKES) >= 2


# --- blanks and accidents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", [None, ...], ids=["None", "dots"])
@pytest.mark.parametrize("exercise", sorted(lessons.EXERCISES))
def test_a_blank_answer_is_not_yet_wrong(exercise, blank, capsys):
    lessons.check(exercise, blank)
    assert capsys.readouterr().out == f"{exercise} not yet: replace the ... with your answer.\n"


@pytest.mark.parametrize("exercise", ["01.2", "01.3", "02.2", "02.3", "03.2", "03.3", "04.1", "04.2", "05.2", "05.3"])
@pytest.mark.parametrize("blank", [lambda *_: None, lambda *_: ...], ids=["None", "dots"])
def test_a_function_without_a_body_is_not_yet_wrong(exercise, blank):
    assert lessons.judge(exercise, blank).sentence.startswith("the function gives nothing back so far")


def test_a_half_filled_dict_says_what_is_open():
    assert lessons.judge("01.1", {"w": 0.125, "x": ..., "b": None}) == ("not yet", "still open: x, b.")


def test_an_unknown_exercise_says_which_there_are():
    with pytest.raises(KeyError, match=re.escape("there is no exercise '9.9'; there are 01.1, 01.2")):
        lessons.check("9.9", 1)


def test_an_error_in_the_answer_comes_through_with_the_call_that_made_it():
    with pytest.raises(ZeroDivisionError) as caught:
        lessons.check("01.3", lambda a, b: (a / 0, 0, 0))
    assert caught.value.__notes__ == ["This happened when the check called your function with 6.0, 4.0."]


def test_every_exercise_says_why_the_right_answer_is_right():
    assert all(exercise.because.endswith(".") for exercise in lessons.EXERCISES.values())


def test_the_test_flowers_are_ten_of_each_species():
    assert sorted(iris().test_y) == [0] * 10 + [1] * 10 + [2] * 10
