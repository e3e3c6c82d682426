"""Compilation of generated source in `minigrad.core.specialise`."""

import gc
import weakref

import pytest

from minigrad.core.specialise import compile_function


def test_the_function_has_the_names_it_is_given_and_is_none_of_them():
    names = {"times": 3}
    triple = compile_function("triple", "def triple(x):\n    return times * x\n", names)
    assert triple(2) == 6
    assert triple.__globals__ is names
    assert "triple" not in names


def test_it_is_freed_at_once():
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    gc.disable()
    try:
        function = compile_function("read", "def read():\n    return held\n", {"held": held})
        del held, function
        assert gone() is None
    finally:
        gc.enable()


def test_annotations_are_as_they_are_and_errors_name_the_file():
    function = compile_function("f", "def f(x: 1 + 1):\n    return 1 / x\n", file="<divide>")
    assert function.__annotations__ == {"x": 2}
    with pytest.raises(ZeroDivisionError) as caught:
        function(0)
    assert caught.traceback[-1].frame.code.raw.co_filename == "<divide>"
