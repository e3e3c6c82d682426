"""Watch: which functions are entered while a step is traced, and which calls cannot be guarded."""

import functools
import gc
import os
import random
import sys
import time
import uuid
from pathlib import Path

import pytest

from minigrad.compiler.jit.watch import EntryWatch, is_user_code, names_in, origin


def helper():
    return len([1])


def test_functions_that_run_are_noted_and_those_of_the_user_are_reported_before_they_run():
    found = []

    def step():
        found.append("runs")
        return functools.reduce(lambda a, b: a + b, [helper(), 2])

    with EntryWatch(lambda frame: found.append(frame.f_code.co_name)) as watch:
        step()
    assert found == ["step", "runs", "helper", "<lambda>"]
    assert {"helper", "append", "reduce", "functools"} <= watch.names
    assert {code.co_name for code in watch.entered.values()} >= {"step", "helper", "<lambda>"}
    assert watch.impure == []


def test_names_are_those_of_attributes_and_globals_and_strings_that_could_be_such():
    def function(x):
        return [helper.attribute for _ in getattr(x, "named")], "not a name", ("a", "pair")  # noqa: B009

    assert names_in(function.__code__) == {"helper", "attribute", "getattr", "named", "a", "pair"}


IMPURE = {
    "time.time": time.time,
    "time.perf_counter": time.perf_counter,
    "random.choice": lambda: random.choice([1, 2]),
    "uuid.uuid4": uuid.uuid4,
    "os.path.exists": lambda: os.path.exists("."),
    "open": lambda: open(os.devnull).close(),
}


@pytest.mark.parametrize("name", IMPURE)
def test_what_returns_something_else_each_time_is_named_by_what_the_user_called(name):
    with EntryWatch(lambda frame: None) as watch:
        IMPURE[name]() if "lambda" in repr(IMPURE[name]) else (lambda: IMPURE[name]())()
    assert name.rpartition(".")[2] in watch.impure[0]
    assert "test_watch.py:" in watch.impure[0]


def test_the_environment_is_noted_where_it_is_read():
    with EntryWatch(lambda frame: None) as watch:
        os.environ.get("HOME")
    assert watch.reads_environment


def test_another_profile_function_is_set_again():
    seen = []

    def profile(frame, event, of):
        seen.append(event)

    sys.setprofile(profile)
    try:
        with EntryWatch(lambda frame: None):
            assert sys.getprofile() is not profile
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def test_whose_code_it_is():
    files = [os.__file__, pytest.__file__, str(Path(pytest.__file__).parents[1] / "other" / "rooms.py"), __file__]
    assert list(map(origin, files)) == ["standard", "standard", "installed", "user"]
    assert is_user_code(helper.__code__, globals())
    assert not is_user_code(os.getenv.__code__, vars(os))
    compiled = compile("1", "<string>", "exec")
    assert [is_user_code(compiled, space) for space in (globals(), {}, {"__name__": "x"})] == [True, False, False]


def test_what_runs_when_memory_is_collected_is_no_part_of_a_step():
    def collected(phase, info):
        time.perf_counter()

    gc.callbacks.append(collected)
    try:
        with EntryWatch(lambda frame: None) as watch:
            gc.collect()
    finally:
        gc.callbacks.remove(collected)
    assert watch.impure == []
