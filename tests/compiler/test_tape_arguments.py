"""Arguments of a tape: leaves by position and by label, values, samples and outputs; and errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, GraphError, ShapeError


def test_leaves_are_indexed_by_position_and_label(device):
    a, b = Value(2.0, "a"), Value(3.0)
    tape = mg.Tape(a * b, device=device)
    assert tape.inputs[0] is a
    assert tape.inputs["a"] is a
    assert tape.inputs[1:] == (b,)
    assert b in tape.inputs
    assert Value(2.0) not in tape.inputs  # == compares data, but membership is by identity


def test_values_are_passed_by_leaf_label_or_order_and_stored(device):
    a, b = Value(2.0, "a"), Value(3.0, "b")
    tape = mg.Tape(a - b, device=device)
    assert tape.forward() == -1.0
    assert tape.forward({a: 5.0}) == 2.0
    assert tape.forward({"b": 4.0}) == 1.0
    assert tape.forward() == 1.0
    assert tape.forward([7.0, 1.0]) == 6.0
    assert tape.forward(np.array([1, 2])) == -1.0
    assert (a.data, b.data) == (2.0, 3.0)


def test_invalid_arguments_raise_and_change_nothing(device):
    a, b, other = Value(2.0, "a"), Value(3.0, "b"), Value(1.0, "c")
    c = a * b
    tape = mg.Tape(c + 1.0, device=device)
    refusals = [
        (lambda: tape.forward([1.0]), ShapeError, r"got 1 values for 2 leaves \(tape.inputs\)"),
        (lambda: tape.forward({"q": 1.0}), ArgumentError, r"no leaf has the label 'q'; the labels are 'a', 'b'"),
        (lambda: tape.forward({"a": 9.0, other: 1.0}), ArgumentError, r"Value\(1.0, label='c'\) is not on this tape"),
        (lambda: tape.forward({c: 1.0}), GraphError, r"was computed by mul, and only the values of leaves can be set"),
        (lambda: tape.forward({0: 1.0}), DTypeError, r"expected a leaf as a Value or a label, but got 0, an int"),
        (lambda: tape.forward({"a": "x"}), DTypeError, r"expected a real number, but got 'x', a str"),
        (
            lambda: tape.forward(3.0),
            DTypeError,
            r"expected a mapping or a sequence with one value per leaf, but got 3.0",
        ),
        (lambda: tape.step(0.1), GraphError, r"step: no gradients have been computed"),
        (lambda: tape.gradients, GraphError, r"gradients: no gradients have been computed"),
        (lambda: tape.backward([1.0, 2.0]), ShapeError, r"gradient has shape \(2,\), but the outputs have shape \(\)"),
        (lambda: tape.backward("one"), DTypeError, r"backward: cannot convert 'one' to an array of real numbers"),
    ]
    for call, error, words in refusals:
        with pytest.raises(error, match=words):
            call()
    assert tape.forward() == 7.0


def test_only_values_of_a_graph_make_a_tape():
    with pytest.raises(DTypeError, match=r"Tape: expected the outputs to be Values, but got 3\.0, a float"):
        mg.Tape(3.0)
    with pytest.raises(DTypeError, match=r"expected the outputs to be Values, but got tensor.*, a Tensor"):
        mg.Tape(mg.tensor([1.0]))
    with pytest.raises(ShapeError, match="expected at least one output"):
        mg.Tape([])
    with pytest.raises(ArgumentError, match=r"parameters: .* is not on this tape"):
        mg.Tape(Value(1.0) * 2.0, parameters=[Value(1.0)])
    with pytest.raises(DeviceError, match="device 'tpu' is not available"):
        mg.Tape(Value(1.0) * 2.0, device="tpu")


def test_the_default_device_is_the_first_that_is_available():
    y = Value(1.0) * 2.0
    assert mg.Tape(y).device == mg.device("cpu")
    mg.set_default_device("numpy")
    try:
        assert mg.Tape(y).device == "numpy"
    finally:
        mg.set_default_device(None)
    assert mg.Tape(y, device="python").device == "python"


def test_an_ambiguous_label_raises():
    tape = mg.Tape(Value(1.0, "a") * Value(2.0, "a"))
    with pytest.raises(ArgumentError, match=r"2 leaves have the label 'a'\. Pass the Value itself"):
        tape.forward({"a": 1.0})


def test_several_outputs_need_a_gradient_each(device):
    a = Value(2.0)
    tape = mg.Tape([a * 3.0, a * a], device=device)
    assert tape.forward() == [6.0, 4.0]
    with pytest.raises(GraphError, match=r"has 2 outputs; pass a gradient for each: tape.backward\(\[…\]\)"):
        tape.backward()
    tape.backward([1.0, 10.0])
    assert tape.gradients == {a: 43.0}


def test_invalid_samples_raise(device):
    w, x = Value(3.0, "w"), Value(1.0, "x")
    tape = mg.Tape(w * x, parameters=[w], device=device)
    for samples, error, words in [
        (np.ones((3, 2)), ShapeError, r"samples of shape \(3, 2\) have 2 columns for 1 leaves \(x\)"),
        (np.ones(3), ShapeError, r"expected an array of shape \(samples, columns\), but got shape \(3,\)"),
        ({"w": [1.0], "x": [1.0, 2.0]}, ShapeError, r"expected columns of equal length.* but got \[1, 2\]"),
        ({}, ShapeError, r"expected columns of equal length.* but got none"),
        ({"x": []}, ShapeError, "expected at least one sample, but got none"),
        ([], ShapeError, r"expected an array of shape \(samples, columns\), but got shape \(0,\)"),
        ([[1.0], [1.0, 2.0]], DTypeError, r"batch: cannot convert \[\[1.0\], \[1.0, 2.0\]\] to an array"),
        ([["a"]], DTypeError, r"batch: cannot convert \[\['a'\]\] to an array of real numbers"),
    ]:
        with pytest.raises(error, match=words):
            tape.batch(samples)
    with pytest.raises(ShapeError, match="for 0 leaves: all are parameters"):
        mg.Tape(w * x, device=device).batch(np.ones((3, 1)))
