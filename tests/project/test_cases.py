"""Merged cases: all run, the report names each failing case with its error, and a skip remains a skip."""

import inspect

import pytest

import minigrad as mg
from cases import merge_cases, refuses_float64, run_cases
from needs import NEEDS, Requirement


@pytest.fixture
def merged(monkeypatch):
    monkeypatch.setattr("cases.SEPARATE", False)
    return merge_cases


def test_the_report_names_each_failing_case_with_its_error(merged):
    calls = []

    @merged
    @pytest.mark.parametrize("b", [1, pytest.param(2, id="two")])
    @pytest.mark.parametrize(("name", "a"), [("x", 1), ("y", 0)])
    def test(fixture, name, a, b):
        calls.append((fixture, name, a, b))
        assert a, f"{name} is 0"
        if b == 2:
            pytest.fail("a two")

    with pytest.raises(AssertionError) as error:
        test(fixture="given")
    assert calls == [("given", "x", 1, 1), ("given", "y", 0, 1), ("given", "x", 1, 2), ("given", "y", 0, 2)]
    first, *report = str(error.value).splitlines()
    line = test.__wrapped__.__code__.co_firstlineno + 5
    assert first == "3 of 4 cases fail; MINIGRAD_SEPARATE_CASES=1 makes tests of merged cases:"
    assert [text for text in report if not text.startswith("    ")] == [
        f"y-0-1: test_cases.py:{line}: AssertionError: y is 0",
        f"x-1-two: test_cases.py:{line + 2}: Failed: a two",
        f"y-0-two: test_cases.py:{line}: AssertionError: y is 0",
    ]
    assert str(error.value.__cause__).startswith("y is 0")


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (None, ["len", "case1", "0.5", "None"]),
        (["a", "b", "c", "d"], ["a", "b", "c", "d"]),
        (lambda x: "half" if x == 0.5 else None, ["len", "case1", "half", "None"]),
    ],
    ids=["none", "a list", "a function"],
)
def test_cases_have_the_names_that_pytest_gives_them(merged, ids, names):
    @merged
    @pytest.mark.parametrize("case", [len, (1, 2), 0.5, None], ids=ids)
    def test(case):
        raise ValueError

    with pytest.raises(AssertionError) as error:
        test()
    assert [line.partition(":")[0] for line in str(error.value).splitlines()[1:]] == names


def test_other_marks_and_fixtures_are_kept(merged):
    @pytest.mark.parametrize("parameter", [1, 2])
    @merged
    @pytest.mark.slow
    @pytest.mark.parametrize("a", [1])
    def test(tmp_path, parameter, a):
        """Not run."""

    assert [mark.name for mark in test.pytestmark] == ["slow", "parametrize"]
    assert test.pytestmark[-1].args == ("parameter", [1, 2])
    assert list(inspect.signature(test).parameters) == ["tmp_path", "parameter"]


def test_cases_are_merged_by_an_argument(merged):
    calls = []

    @merged(by="name")
    @pytest.mark.parametrize(("name", "a"), [("x", 1), ("y", 2), ("x", 3)])
    def test(fixture, name, a):
        calls.append((fixture, name, a))
        assert name == "y"

    assert [(mark.name, mark.args) for mark in test.pytestmark] == [("parametrize", ("name", ["x", "y"]))]
    assert list(inspect.signature(test).parameters) == ["fixture", "name"]
    test(fixture=0, name="y")
    with pytest.raises(AssertionError, match="2 of 2 cases fail"):
        test(fixture=0, name="x")
    assert calls == [(0, "y", 2), (0, "x", 1), (0, "x", 3)]


def test_every_case_is_in_a_group_if_a_mark_recreates_its_values(merged):
    calls = []

    @merged(by="first")
    @pytest.mark.parametrize("first", range(1000, 3000, 1000))
    @pytest.mark.parametrize("offset", range(2))
    def test(first, offset):
        calls.append(first + offset)

    for first in test.pytestmark[0].args[1]:
        test(first=first)
    assert calls == [1000, 1001, 2000, 2001]


def test_a_skipped_case_skips_the_test_when_no_case_fails(merged):
    @merged
    @pytest.mark.parametrize("a", [0, 1, 2])
    def test(a, fails):
        if a == 1:
            pytest.skip("no ones here")
        assert a != fails

    with pytest.raises(pytest.skip.Exception, match="1 of 3 cases, the first being 1: no ones here"):
        test(fails=None)
    with pytest.raises(AssertionError, match="1 of 3 cases fail"):
        test(fails=2)


def test_a_gpu_that_refuses_float64_skips_the_case():
    device = mg.get_default_device()
    assert refuses_float64(mg.errors.DTypeError(f"float64: the device {device} does not support float64.\n  Use it."))
    assert not refuses_float64(mg.errors.DTypeError("float64: the device of another does not support float64."))
    assert not refuses_float64(ValueError(f"float64: the device {device} does not support float64."))


def test_a_case_without_float64_skips_with_the_standard_message():
    def check(case):
        raise mg.errors.DTypeError(f"float64: the device {mg.get_default_device()} does not support float64.")

    with pytest.raises(
        pytest.skip.Exception, match="1 of 1 cases, the first being a: needs float64: a device that has it"
    ):
        run_cases(check, [("a", None)])


def test_a_missing_package_of_one_case_hides_no_failure_of_another(monkeypatch):
    monkeypatch.setitem(NEEDS, "nopackage", Requirement(lambda: False, "make nopackage"))

    def check(case):
        if case == 1:
            import nopackage  # noqa: F401
        assert case < 2

    with pytest.raises(pytest.skip.Exception, match="1 of 2 cases, the first being b: needs nopackage: make nopackage"):
        run_cases(check, [("a", 0), ("b", 1)])
    with pytest.raises(AssertionError, match="1 of 3 cases fail") as error:
        run_cases(check, [("a", 0), ("b", 1), ("c", 2)])
    assert "\nc: " in str(error.value)
    assert "nopackage" not in str(error.value)


def test_unmergeable_parametrisations_raise(merged):
    def test(a):
        """Not run."""

    with pytest.raises(TypeError, match="test has no parametrize mark below the decorator"):
        merged(test)
    with pytest.raises(TypeError, match="a case with its own marks cannot be merged"):
        merged(pytest.mark.parametrize("a", [pytest.param(1, marks=pytest.mark.slow)])(test))()
    with pytest.raises(TypeError, match=r"\['indirect'\] of parametrize cannot be merged"):
        merged(pytest.mark.parametrize("a", [1], indirect=True)(test))()


def test_separate_cases_are_not_merged(monkeypatch):
    monkeypatch.setattr("cases.SEPARATE", True)

    @pytest.mark.parametrize("a", [1])
    def test(a):
        """Not run."""

    assert merge_cases(test) is test
