"""Watch: which functions are entered while a step is traced, and which calls cannot be guarded."""

import functools
import gc
import os
import random
import site
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from minigrad.compiler.jit.watch import EntryWatch, is_user_code, names_in, origin


def helper():
    return len([1])


def test_entered_functions_are_recorded_and_user_functions_reported():
    names = []

    def step():
        names.append("runs")
        return functools.reduce(lambda a, b: a + b, [helper(), 2])

    with EntryWatch(lambda frame: names.append(frame.f_code.co_name)) as watch:
        step()
    assert names == ["step", "runs", "helper", "<lambda>"]
    assert {"helper", "append", "reduce", "functools"} <= watch.names
    assert {code.co_name for code in watch.entered.values()} >= {"step", "helper", "<lambda>"}
    assert watch.impure == []


def test_names_include_attributes_globals_and_identifier_strings():
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
def test_impure_calls_are_named_by_the_user_s_call(name):
    with EntryWatch(lambda frame: None) as watch:
        IMPURE[name]() if "lambda" in repr(IMPURE[name]) else (lambda: IMPURE[name]())()
    assert name.rpartition(".")[2] in watch.impure[0]
    assert "test_watch.py:" in watch.impure[0]


def test_reads_of_the_environment_are_recorded():
    with EntryWatch(lambda frame: None) as watch:
        os.environ.get("HOME")
    assert watch.reads_environment


def test_the_previous_profile_function_is_restored():
    events = []

    def profile(frame, event, of):
        events.append(event)

    sys.setprofile(profile)
    try:
        with EntryWatch(lambda frame: None):
            assert sys.getprofile() is not profile
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def test_origin_of_code():
    files = [os.__file__, pytest.__file__, str(Path(pytest.__file__).parents[1] / "other" / "rooms.py"), __file__]
    assert list(map(origin, files)) == ["standard", "standard", "installed", "user"]
    assert origin(np.__file__) == "engine"
    for folder in (*site.getsitepackages(), site.getusersitepackages()):  # Debian has several
        assert [origin(os.path.join(folder, name, "a.py")) for name in ("rooms", "tqdm")] == ["installed", "standard"]
    assert is_user_code(helper.__code__, globals())
    assert not is_user_code(os.getenv.__code__, vars(os))
    compiled = compile("1", "<string>", "exec")
    assert [is_user_code(compiled, space) for space in (globals(), {}, {"__name__": "x"})] == [True, False, False]


def test_garbage_collection_callbacks_are_ignored():
    def collected(phase, info):
        time.perf_counter()

    gc.callbacks.append(collected)
    try:
        with EntryWatch(lambda frame: None) as watch:
            gc.collect()
    finally:
        gc.callbacks.remove(collected)
    assert watch.impure == []
