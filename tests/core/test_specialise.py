"""Compilation of generated source in `minigrad.core.specialise`."""

import gc
import weakref

import pytest

from minigrad.core.specialise import compile_function


def test_the_function_is_not_one_of_its_globals():
    names = {"times": 3}
    triple = compile_function("triple", "def triple(x):\n    return times * x\n", names)
    assert triple(2) == 6
    assert triple.__globals__ is names
    assert "triple" not in names


def test_the_function_is_freed_without_the_cycle_collector():
    class Held:
        pass

    reference = Held()
    is_freed = weakref.ref(reference)
    gc.disable()
    try:
        function = compile_function("read", "def read():\n    return held\n", {"held": reference})
        del reference, function
        assert is_freed() is None
    finally:
        gc.enable()


def test_annotations_are_evaluated_and_errors_name_the_file():
    function = compile_function("f", "def f(x: 1 + 1):\n    return 1 / x\n", file="<divide>")
    assert function.__annotations__ == {"x": 2}
    with pytest.raises(ZeroDivisionError) as caught:
        function(0)
    assert caught.traceback[-1].frame.code.raw.co_filename == "<divide>"
