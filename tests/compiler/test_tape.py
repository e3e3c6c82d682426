"""Tape: the numbers of the graph that it was made of, forward and backward, for one sample and for many."""

import math
import random

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import Value
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, GraphError, ShapeError
from minigrad.nn.scalar import MLP, cross_entropy
from needs import is_here
from strategies import (
    ATTRS,
    DIFFERENTIABLE,
    RELATIVE,
    ROUNDING,
    applied,
    points,
    random_expression,
)
from tiers import NIGHTLY

DEVICES = ["numpy", *(["cpu"] if is_here("taichi") else [])]
inf, nan = math.inf, math.nan


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def held_to_graph(output, tape, tolerance=ROUNDING):
    """Assert that a tape of one output has the graph's number and, for each leaf, its gradient."""
    output.zero_grad()
    output.backward()
    close(tape.forward(), output.data, tolerance)
    tape.backward()
    expected = {leaf: leaf.grad for leaf in tape.inputs if leaf.grad is not None}
    assert list(tape.gradients) == list(expected)
    close(list(tape.gradients.values()), list(expected.values()), tolerance)


def xor_loss(model, inputs=None):
    points = [(0.0, 0.0, -1.0), (0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, -1.0)]
    losses = [(model([x, y])[0] - target) ** 2 for x, y, target in points]
    return sum(losses) * 0.25


# --- the whole table, from its declarations ---


@pytest.fixture(scope="module", params=DEVICES)
def whole_table(request):
    """For each op its results at its sample points, and the gradients of operands: by the graph, and by one tape."""
    called = {op.name: [([Value(x) for x in point]) for point in points(op)] for op in DIFFERENTIABLE}
    outputs = [(op.name, applied(op)(*values)) for op in DIFFERENTIABLE for values in called[op.name]]
    tape = mg.Tape([y for _, y in outputs], device=request.param)
    found = tape.forward()
    weights = np.linspace(-1.0, 2.0, len(outputs))
    tape.backward(weights)
    gradients = tape.gradients
    table = {name: ([], []) for name in called}
    for (name, y), number, weight in zip(outputs, found, weights, strict=True):
        y.backward(float(weight))
        table[name][0].append((number, y.data))
    for name, points_of in called.items():
        for values in points_of:
            table[name][1].extend((gradients.get(x), x.grad) for x in values)
    return table


@merge_cases
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_operation_has_the_value_and_gradients_of_the_graph(op, whole_table):
    values, gradients = whole_table[op.name]
    assert values
    close(*zip(*values, strict=True), RELATIVE["float64"])
    assert [a is None for a, _ in gradients] == [b is None for _, b in gradients]
    numbers = [pair for pair in gradients if pair[0] is not None]
    close(*zip(*numbers, strict=True), RELATIVE["float64"])


@pytest.mark.slow
def test_operations_in_a_batch_have_the_numbers_of_their_samples(device):
    some = DIFFERENTIABLE[:: 1 if NIGHTLY else 12]  # to compile all of them takes a third of a minute
    places = {op.name: points(op, 3) for op in some}
    leaves = {op.name: [Value(x) for x in places[op.name][0]] for op in some}
    tape = mg.Tape([applied(op)(*leaves[op.name]) for op in some], device=device)
    columns = {
        leaf: [place[k] for place in places[name]]
        for name, operands in leaves.items()
        for k, leaf in enumerate(operands)
        if leaf in tape.inputs  # but conditions
    }
    found = tape.batch(columns)
    tape.backward([1.0] * len(leaves))
    sums, singly = tape.gradients, dict.fromkeys(tape.inputs, 0.0)
    for k, outputs in enumerate(found):
        close(outputs, tape.forward({leaf: column[k] for leaf, column in columns.items()}))
        tape.backward([1.0] * len(leaves))
        for leaf, gradient in tape.gradients.items():
            singly[leaf] += gradient
    close([sums.get(leaf, 0.0) for leaf in tape.inputs], list(singly.values()))


CORNERS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-300, 1e300, 800.0, -800.0, inf, -inf, nan)


def test_powers_quotients_and_choices_have_the_corners_of_the_graph(device):
    ops = [mg.ops.div, mg.ops.pow, mg.ops.maximum, mg.ops.minimum, mg.ops.relu, mg.ops.abs, mg.ops.sqrt, mg.ops.log]
    outputs = []
    for op in ops:
        for a in CORNERS:
            for b in CORNERS if len(op.inputs) == 2 else (0.0,):
                outputs.append(op(*[Value(x) for x in (a, b)[: len(op.inputs)]]))
    tape = mg.Tape(outputs, device=device)
    np.testing.assert_allclose(tape.forward(), [y.data for y in outputs], rtol=ROUNDING)
    tape.backward([1.0] * len(outputs))
    for y in outputs:
        y.backward()
    found = [tape.gradients.get(x) for x in tape.inputs]
    np.testing.assert_allclose(found, [x.grad for x in tape.inputs], rtol=ROUNDING)


# --- graphs ---


@pytest.mark.parametrize("seed", range(12 if NIGHTLY else 4))
def test_random_graphs_have_the_same_numbers(seed, device):
    generator = random.Random(seed)
    leaves = [Value(generator.uniform(-2.0, 2.0), name) for name in "abcd"]
    y = random_expression(generator, leaves, 60).tanh()
    held_to_graph(y, mg.Tape(y, device=device))


@pytest.mark.parametrize("seed", range(5 if NIGHTLY else 1))
def test_random_graphs_of_all_operations_have_the_same_numbers(seed, device):
    generator = random.Random(seed)
    pool = [Value(generator.uniform(0.3, 0.8)) for _ in range(6)]
    leaves = list(pool)
    for op in DIFFERENTIABLE * 3:
        operands = [0.5 + 0.3 * generator.choice(pool).tanh() for _ in op.inputs]
        operands = [float(x) > 0 if rule is None else x for x, rule in zip(operands, op.vjp, strict=True)]
        if op.name == "acosh":
            operands = [x + 1.5 for x in operands]
        pool.append(op(*operands, **ATTRS.get(op.name, {})).tanh())
    y = sum(pool[len(leaves) :])
    held_to_graph(y, mg.Tape(y, device=device))


def test_an_operand_that_is_used_twice_gets_both_products(device):
    a = Value(3.0, "a")
    y = a * a + a + a / a
    held_to_graph(y, mg.Tape(y, device=device))


def test_constants_and_attributes_differ_from_node_to_node(device):
    a = Value(0.75, "a")
    clamped = [mg.ops.clamp(a * k, min=low, max=high) for k, low, high in [(1, 0.8, None), (2, None, 1.0), (1, -1, 1)]]
    steep = [mg.ops.leaky_relu(a - k, negative_slope=slope) for k, slope in [(1.0, 0.1), (2.0, 0.3), (-1.0, 0.5)]]
    y = sum([*clamped, *steep]) * 3.0 + 2.0**a - 0.5 / a
    held_to_graph(y, mg.Tape(y, device=device))


def test_a_bound_of_nan_gives_nan_and_one_of_none_is_open(device):
    a, ends = Value(2.0), [(nan, None), (None, nan), (nan, 1.0), (1.0, nan), (1.0, None), (None, 1.0)]
    tape = mg.Tape([mg.ops.clamp(a, min=low, max=high) for low, high in ends], device=device)
    np.testing.assert_array_equal(tape.forward(), [nan, nan, nan, nan, 2.0, 1.0])


def test_a_leaf_as_an_output_and_an_output_given_twice_get_their_gradients(device):
    a, b = Value(2.0), Value(3.0)
    c = a * b
    tape = mg.Tape([a, c, c, c + b], device=device)
    assert tape.forward() == [2.0, 6.0, 6.0, 9.0]
    tape.backward([1.0, 10.0, 100.0, 1000.0])
    assert tape.gradients == {a: 3331.0, b: 3220.0}


def test_where_no_gradient_arrives_none_is_computed(device):
    a, b, c = Value(0.0, "a"), Value(2.0, "b"), mg.Value(5.0, "c")
    y = b * mg.ops.sqrt(a).detach() + b * c.detach() + mg.ops.where(mg.ops.sqrt(a), b, c)
    held_to_graph(y, mg.Tape(y, device=device))  # the slope of sqrt at 0 is inf, and 0 * inf is nan
    with mg.no_grad():
        z = a * b
    tape = mg.Tape(z, device=device)
    assert tape.forward() == 0.0
    with pytest.raises(GraphError, match=r"need no gradient: they were made by detach\(\), inside no_grad\(\)"):
        tape.backward()


@pytest.mark.parametrize("device", DEVICES[-1:])
def test_a_chain_of_100_000_operations_has_the_same_numbers(device):
    y = Value(0.5)
    for _ in range(50_000):
        y = y * 0.9999 + 0.001
    tape = mg.Tape(y, device=device)
    held_to_graph(y, tape)
    assert repr(tape).endswith("2 constants, 100,000 operations in 100,000 runs, on " + device + ")")


def test_a_long_sum_is_one_run(device):
    leaves = [Value(float(k)) for k in range(500)]
    y = sum(leaves)
    tape = mg.Tape(y, device=device)
    held_to_graph(y, tape)
    assert repr(tape).endswith(" 500 operations in 2 runs, on " + device + ")")  # the first adds to a constant, 0


def test_two_runs_have_equal_bits(device):
    model = MLP([2, 5, 1], seed=3)
    tape = mg.Tape(xor_loss(model), device=device)
    results = []
    for _ in range(2):
        tape.forward()
        tape.backward()
        results.append(str(tape) + repr(tape.gradients))
    assert results[0] == results[1]


# --- numbers in ---


def test_leaves_are_found_by_place_and_by_label(device):
    a, b = Value(2.0, "a"), Value(3.0)
    tape = mg.Tape(a * b, device=device)
    assert tape.inputs[0] is a
    assert tape.inputs["a"] is a
    assert tape.inputs[1:] == (b,)
    assert b in tape.inputs
    assert Value(2.0) not in tape.inputs  # == compares numbers, and this is no leaf


def test_numbers_are_given_by_value_by_label_or_in_order_and_stay(device):
    a, b = Value(2.0, "a"), Value(3.0, "b")
    tape = mg.Tape(a - b, device=device)
    assert tape.forward() == -1.0
    assert tape.forward({a: 5.0}) == 2.0
    assert tape.forward({"b": 4.0}) == 1.0
    assert tape.forward() == 1.0
    assert tape.forward([7.0, 1.0]) == 6.0
    assert tape.forward(np.array([1, 2])) == -1.0
    assert (a.data, b.data) == (2.0, 3.0)


def test_what_does_not_fit_is_refused_in_words_and_changes_nothing(device):
    a, b, other = Value(2.0, "a"), Value(3.0, "b"), Value(1.0, "c")
    c = a * b
    tape = mg.Tape(c + 1.0, device=device)
    refusals = [
        (lambda: tape.forward([1.0]), ShapeError, r"1 numbers were given, and the tape has 2 leaves \(tape.inputs\)"),
        (lambda: tape.forward({"q": 1.0}), ArgumentError, r"no leaf is called 'q'; there are 'a', 'b'"),
        (lambda: tape.forward({"a": 9.0, other: 1.0}), ArgumentError, r"Value\(1.0, label='c'\) is not on this tape"),
        (lambda: tape.forward({c: 1.0}), GraphError, r"was computed by mul, and only leaves have numbers to choose"),
        (lambda: tape.forward({0: 1.0}), DTypeError, r"0 is an int; a leaf is named by its Value or its label"),
        (lambda: tape.forward({"a": "x"}), DTypeError, r"'x' is a str, not a real number"),
        (lambda: tape.forward(3.0), DTypeError, r"3.0 is neither a mapping nor a sequence"),
        (lambda: tape.step(0.1), GraphError, r"step: there are no gradients yet"),
        (lambda: tape.gradients, GraphError, r"gradients: there are none yet"),
        (lambda: tape.backward([1.0, 2.0]), ShapeError, r"gradient has shape \(2,\); what was computed has shape \(\)"),
        (lambda: tape.backward("one"), DTypeError, r"backward: 'one' is no array of real numbers"),
    ]
    for call, error, words in refusals:
        with pytest.raises(error, match=words):
            call()
    assert tape.forward() == 7.0


def test_only_values_of_a_graph_make_a_tape():
    with pytest.raises(DTypeError, match=r"Tape: 3\.0 is a float, not a Value"):
        mg.Tape(3.0)
    with pytest.raises(DTypeError, match="is a Tensor, not a Value"):
        mg.Tape(mg.tensor([1.0]))
    with pytest.raises(ShapeError, match="there is no output"):
        mg.Tape([])
    with pytest.raises(ArgumentError, match=r"parameters: .* is not on this tape"):
        mg.Tape(Value(1.0) * 2.0, parameters=[Value(1.0)])
    with pytest.raises(DeviceError, match="there is no device 'tpu'"):
        mg.Tape(Value(1.0) * 2.0, device="tpu")


def test_labels_that_two_leaves_share_name_neither():
    tape = mg.Tape(Value(1.0, "a") * Value(2.0, "a"))
    with pytest.raises(ArgumentError, match=r"2 leaves are called 'a'\. Say which by the Value itself"):
        tape.forward({"a": 1.0})


def test_several_outputs_need_a_gradient_each(device):
    a = Value(2.0)
    tape = mg.Tape([a * 3.0, a * a], device=device)
    assert tape.forward() == [6.0, 4.0]
    with pytest.raises(GraphError, match=r"has 2 outputs, and each needs a gradient: tape.backward\(\[…\]\)"):
        tape.backward()
    tape.backward([1.0, 10.0])
    assert tape.gradients == {a: 43.0}


# --- training ---


def test_training_by_tape_is_training_on_the_graph_for_20_steps(device):
    by_hand, taped = MLP([2, 4, 1], seed=0), MLP([2, 4, 1], seed=0)
    tape = mg.Tape(xor_loss(taped), device=device)
    losses = []
    for _ in range(20):
        loss = xor_loss(by_hand)
        by_hand.zero_grad()
        loss.backward()
        for p in by_hand.parameters():
            p.data -= 0.2 * p.grad
        losses.append((tape.forward(), loss.data))
        tape.backward()
        tape.step(0.2)
    tape.write()
    close(*zip(*losses, strict=True))
    assert losses[-1][0] < losses[0][0]
    close([p.data for p in taped.parameters()], [p.data for p in by_hand.parameters()])
    close([p.grad for p in taped.parameters()], [p.grad for p in by_hand.parameters()])


def test_a_step_changes_parameters_alone_and_the_next_backward_knows(device):
    w, x = Value(3.0, "w"), Value(2.0, "x")
    tape = mg.Tape((w * x) ** 2.0, parameters=[w], device=device)
    tape.backward()
    assert tape.gradients == {w: 24.0, x: 36.0}
    tape.step(0.125)
    tape.backward()
    assert (tape.gradients, tape.forward()) == ({w: 0.0, x: 0.0}, 0.0)
    tape.write()
    assert (w.data, x.data) == (0.0, 2.0)


def test_a_batch_is_each_sample_by_itself(device):
    model = MLP([2, 4, 3], seed=1)
    x, y = Value(0.0, "x"), Value(0.0, "y")
    loss = cross_entropy(model([x, y]), 1)
    tape = mg.Tape(loss, parameters=model.parameters(), device=device)
    samples = np.random.default_rng(0).uniform(-1.0, 1.0, (150, 2))
    losses = tape.batch(samples, ["x", "y"])
    tape.backward()
    found, sums = tape.gradients, dict.fromkeys(tape.inputs, 0.0)
    singly = []
    for row in samples:
        singly.append(tape.forward({"x": row[0], "y": row[1]}))
        tape.backward()
        for leaf, total in tape.gradients.items():
            sums[leaf] += total
    close(losses, singly)
    close([found[leaf] for leaf in tape.inputs], [sums[leaf] for leaf in tape.inputs])


@pytest.mark.parametrize("count", [1, 2, 64, 65])
def test_batches_of_any_size_give_each_sample_its_number(count, device):
    w, x = Value(3.0, "w"), Value(1.0, "x")
    tape = mg.Tape([w * x, x * x], parameters=[w], device=device)
    column = np.arange(count) + 1.0
    assert tape.batch({x: column}).tolist() == [[3.0 * k, k * k] for k in column]
    tape.backward([[2.0, 0.0]] * count)
    assert tape.gradients == {w: 2.0 * column.sum(), x: 6.0 * count}
    tape.step(0.5)
    tape.backward([0.0, 1.0])  # of the samples again, with the new w
    assert tape.gradients == {w: 0.0, x: 2.0 * column.sum()}


def test_samples_that_do_not_fit_are_refused_in_words():
    w, x = Value(3.0, "w"), Value(1.0, "x")
    tape = mg.Tape(w * x, parameters=[w])
    for samples, error, words in [
        (np.ones((3, 2)), ShapeError, r"samples of shape \(3, 2\) have 2 columns, for 1 leaves \(x\)"),
        (np.ones(3), ShapeError, r"an array of shape \(3,\) was given, and \(samples, columns\) is asked for"),
        ({"w": [1.0], "x": [1.0, 2.0]}, ShapeError, r"columns of \[1, 2\] numbers were given"),
        ({}, ShapeError, r"columns of no numbers were given"),
        (np.ones((0, 1)), ShapeError, "there are no samples"),
        ([["a"]], DTypeError, r"batch: \[\['a'\]\] is no array of real numbers"),
    ]:
        with pytest.raises(error, match=words):
            tape.batch(samples)
    with pytest.raises(ShapeError, match="for 0 leaves: all are parameters"):
        mg.Tape(w * x).batch(np.ones((3, 1)))


# --- the graph ---


def test_write_gives_the_graph_numbers_and_gradients_and_nothing_is_stale(device):
    a, b = Value(2.0, "a"), Value(3.0, "b")
    c = a * b
    y = c.tanh()
    tape = mg.Tape(y, device=device)
    tape.forward({a: 0.25})
    tape.backward()
    assert (a.data, c.data, a.grad) == (2.0, 6.0, None)
    tape.write()
    assert (a.data, c.data, c.stale) == (0.25, 0.75, ())
    expected = 1.0 - math.tanh(0.75) ** 2
    close([y.data, y.grad, c.grad, a.grad, b.grad], [math.tanh(0.75), 1.0, expected, 3 * expected, 0.25 * expected])
    y.zero_grad()
    y.backward()
    close([a.grad, b.grad], [3 * expected, 0.25 * expected])


def test_after_a_step_what_was_computed_is_stale_as_on_the_graph(device):
    w = Value(3.0, "w")
    y = w * w
    tape = mg.Tape(y, device=device)
    tape.forward()
    tape.backward()
    tape.step(0.25)
    tape.write()
    assert (w.data, w.grad, y.data, y.stale) == (1.5, 6.0, 9.0, (w, w))


def test_after_a_batch_the_leaves_alone_are_written(device):
    w, x = Value(3.0, "w"), Value(2.0, "x")
    y = w * x
    tape = mg.Tape(y, parameters=[w], device=device)
    tape.batch({x: [1.0, 2.0]})
    tape.backward()
    tape.step(1.0)
    tape.write()
    assert (w.data, w.grad, x.data, y.data, y.grad, y.stale) == (0.0, 3.0, 2.0, 6.0, None, (w,))


def test_a_graph_that_was_changed_after_the_tape_was_made_is_told_of(device):
    a, b = Value(2.0, "a"), Value(3.0, "b")
    tape = mg.Tape(a * b, device=device)
    a.data = 5.0
    words = r"Value\(5.0, label='a'\) was given that number after the tape was made, which is a copy and still has 2.0"
    assert tape.batch({a: [1.0]}).tolist() == [3.0]
    for call in (tape.forward, lambda: tape.batch({b: [1.0]})):
        with pytest.raises(GraphError, match=words):
            call()
    assert tape.forward({a: 4.0}) == 12.0  # the reader says which
    assert tape.forward() == 12.0
    b.data = 10.0
    tape.read()
    assert tape.forward() == 50.0


# --- what a reader declares, and sees ---


@pytest.fixture
def declared():
    """Declare operations, which are gone afterwards."""
    names = []

    def declare(name, formula, rule, kernel):
        names.append(name)
        mg.kernel(name, "python")(kernel)
        return mg.Op(name, formula, vjp=(rule,), domain=(mg.Domain(-2.0, 2.0),))

    yield declare
    for name in names:
        mg.OPS.pop(name)


def test_operations_of_the_reader_are_computed_from_their_declaration(declared, device):
    cube = declared("cubed", "{a}^3", lambda g, a: g * (3.0 * a * a), lambda a: a * a * a)
    softish = declared("softish", r"\frac{a}{1 + e^{-{a}}}", lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),
                       lambda a: a / (1.0 + math.exp(-a)))  # fmt: skip
    a = Value(0.5)
    y = cube(a * 2.0) + softish(a) * cube(softish(a))
    held_to_graph(y, mg.Tape(y, device=device))


def test_what_cannot_be_said_in_numbers_is_refused_by_name_when_the_tape_is_made(declared):
    chosen = declared("chosen_by_if", "{a}", lambda g, a: g if a > 0 else 0.0, lambda a: a)
    with pytest.raises(DeviceError, match=r"chosen_by_if cannot be on a tape. A derivative rule of chosen_by_if is no"):
        mg.Tape(chosen(Value(1.0)))


@pytest.mark.needs("taichi")
def test_a_formula_that_taichi_cannot_compute_is_numpys(declared):
    gamma = declared("half_gamma", r"\Gamma({a})", lambda g, y: g * y, lambda a: math.gamma(a) / 2.0)
    y = gamma(Value(3.0)) * 2.0
    with pytest.raises(DeviceError, match=r'half_gamma cannot be on a tape.*\n.*mg.Tape\(…, device="numpy"\)'):
        mg.Tape(y, device="cpu")
    held_to_graph(y, mg.Tape(y, device="numpy"))


def test_printed_it_is_a_table_of_its_rows():
    a, b = Value(2.0, "a"), Value(-3.0, "b")
    tape = mg.Tape((a * b + 1.0).tanh(), device="numpy")
    tape.forward({b: -0.25})
    tape.backward()
    assert str(tape) == (
        "Tape(2 leaves, 1 constant, 3 operations in 3 runs, on numpy)\n"
        "row  name    op        reads     value       grad\n"
        "  0  a       leaf                    2  -0.196612\n"
        "  1  b       leaf                -0.25     1.5729\n"
        "  2          constant                1\n"
        "  3          mul       0 1        -0.5   0.786448\n"
        "  4          add       3 2         0.5   0.786448\n"
        "  5  output  tanh      4      0.462117          1"
    )


def test_a_long_table_is_cut_in_the_middle():
    tape = mg.Tape(sum(Value(float(k)) for k in range(100)), device="numpy")
    lines = str(tape).splitlines()
    assert len(lines) == 27
    assert lines[14].split() == ["…"] * 6
    assert lines[-1].split()[:3] == ["200", "output", "add"]
    assert lines[2].split() == ["0", "leaf", "0"]
    tape.batch({tape.inputs[0]: [5.0, 6.0]})
    tape.backward()
    assert str(tape).splitlines()[2].split() == ["0", "leaf", "0", "2"]  # of leaves, the sum over the samples


@pytest.mark.needs("taichi")
def test_the_text_that_runs_can_be_read():
    a = Value(2.0)
    assert "if kind == 1:  # tanh" in mg.Tape((a * 3.0).tanh(), device="cpu").source
    with pytest.raises(DeviceError, match="on numpy there is no text"):
        _ = mg.Tape(a * 3.0, device="numpy").source


def test_a_first_nan_is_told_of(device):
    a = Value(1.0)
    tape = mg.Tape((a - 2.0) * a.log(), device=device)
    tape.forward()
    with mg.detect_anomaly(), pytest.raises(GraphError, match="tape_forward made 2 NaN in 5 numbers, in the forward"):
        tape.forward([-1.0])
    steep = mg.Tape(Value(0.0).sqrt(), device=device)
    steep.forward()
    with mg.detect_anomaly(), pytest.raises(GraphError, match="tape_backward made 1 infinity in 2 numbers"):
        steep.backward()


def test_a_tap_hears_each_run(device):
    a = Value(2.0)
    tape = mg.Tape(a * a, device=device)
    heard = []
    with mg.tap(lambda call: heard.append((call.op, call.device))):
        tape.forward()
        tape.backward()
        tape.step(0.1)
    assert heard == [(name, device) for name in ("tape_forward", "tape_backward", "tape_step")]
    assert tape.gradients[a] == 4.0
