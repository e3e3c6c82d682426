"""Tape: training with it, batches, what it writes to the graph, and how it is printed."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import DeviceError, GraphError
from minigrad.nn.scalar import MLP, cross_entropy
from tape_checks import ARRAY_DEVICES, as_list, assert_close, xor_loss

inf, nan = math.inf, math.nan


# --- training ---


def test_training_with_a_tape_matches_the_graph(device):
    on_graph, taped = MLP([2, 4, 1], seed=0), MLP([2, 4, 1], seed=0)
    tape = mg.Tape(xor_loss(taped), device=device)
    losses = []
    for _ in range(20):
        loss = xor_loss(on_graph)
        on_graph.zero_grad()
        loss.backward()
        for p in on_graph.parameters():
            p.data -= 0.2 * p.grad
        losses.append((tape.forward(), loss.data))
        tape.backward()
        tape.step(0.2)
    tape.write()
    assert_close(*zip(*losses, strict=True))
    assert losses[-1][0] < losses[0][0]
    assert_close([p.data for p in taped.parameters()], [p.data for p in on_graph.parameters()])
    assert_close([p.grad for p in taped.parameters()], [p.grad for p in on_graph.parameters()])


def test_a_step_changes_only_parameters_before_the_next_backward(device):
    w, x = Value(3.0, "w"), Value(2.0, "x")
    tape = mg.Tape((w * x) ** 2.0, parameters=[w], device=device)
    tape.backward()
    assert tape.gradients == {w: 24.0, x: 36.0}
    tape.step(0.125)
    tape.backward()
    assert (tape.gradients, tape.forward()) == ({w: 0.0, x: 0.0}, 0.0)
    tape.write()
    assert (w.data, x.data) == (0.0, 2.0)


def test_a_batch_equals_single_samples(device):
    model = MLP([2, 4, 3], seed=1)
    x, y = Value(0.0, "x"), Value(0.0, "y")
    loss = cross_entropy(model([x, y]), 1)
    tape = mg.Tape(loss, parameters=model.parameters(), device=device)
    samples = np.random.default_rng(0).uniform(-1.0, 1.0, (150, 2))
    losses = tape.batch(samples, ["x", "y"])
    tape.backward()
    gradients, sums = tape.gradients, dict.fromkeys(tape.inputs, 0.0)
    singly = []
    for row in samples:
        singly.append(tape.forward({"x": row[0], "y": row[1]}))
        tape.backward()
        for leaf, total in tape.gradients.items():
            sums[leaf] += total
    assert_close(losses, singly)
    assert_close([gradients[leaf] for leaf in tape.inputs], [sums[leaf] for leaf in tape.inputs])


@pytest.mark.parametrize("count", [1, 2, 64, 65])
def test_batches_of_any_size_give_one_value_per_sample(count, device):
    w, x = Value(3.0, "w"), Value(1.0, "x")
    tape = mg.Tape([w * x, x * x], parameters=[w], device=device)
    column = np.arange(count) + 1.0
    assert as_list(tape.batch({x: column})) == [[3.0 * k, k * k] for k in column]
    tape.backward([[2.0, 0.0]] * count)
    assert tape.gradients == {w: 2.0 * column.sum(), x: 6.0 * count}
    tape.step(0.5)
    tape.backward([0.0, 1.0])  # for the samples again, with the new w
    assert tape.gradients == {w: 0.0, x: 2.0 * column.sum()}


def test_on_python_a_batch_returns_lists():
    w, x, z = Value(3.0, "w"), Value(1.0, "x"), Value(2.0, "z")
    tape = mg.Tape(w * x + z, parameters=[w], device="python")
    assert tape.batch([[1.0, 0.5], (2, 1)]) == [3.5, 7.0]
    tape.backward([1.0, 10.0])
    assert tape.gradients == {w: 21.0, x: 33.0, z: 11.0}
    pair = mg.Tape([w * x, x], parameters=[w], device="python")
    assert pair.batch({"x": range(3)}) == [[0.0, 0.0], [3.0, 1.0], [6.0, 2.0]]
    for gradient, expected in [(1.0, 3.0), ([1.0, 0.0], 3.0), ([[1.0, 0.0], [0.0, 0.0], [2.0, 5.0]], 4.0)]:
        pair.backward(gradient)
        assert pair.gradients[w] == expected


NO_PACKAGES = """
import sys
sys.path.insert(0, {root!r})
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *more: None if name in ("numpy", "taichi") else find(name, *more)
sys.modules["numpy"] = sys.modules["taichi"] = None
import minigrad as mg
model = mg.nn.scalar.MLP([2, 3, 1], seed=0)
x, y = mg.Value(0.5, "x"), mg.Value(-1.0, "y")
loss = (model([x, y])[0] - 1.0) ** 2
loss.backward()
tape = mg.Tape(loss, parameters=model.parameters())
print(tape.device, tape.forward() == loss.data)
tape.backward()
print(all(tape.gradients[leaf] == leaf.grad for leaf in tape.inputs))
tape.step(0.5)
print(tape.forward() < loss.data, len(tape.batch([[0.0, 1.0], [1.0, 0.0]])))
tape.write()
try:
    mg.Tape(loss, device="numpy")
except mg.errors.MissingPackageError as error:
    print(error)
"""


def test_without_numpy_a_tape_runs_on_python():
    code = NO_PACKAGES.format(root=str(Path(mg.__file__).parents[1]))
    child = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert child.stdout.splitlines() == [
        "python True",
        "True",
        "True 2",
        "Tape: the package numpy is not installed.",
        '  Run: pip install "numpy>=2.1", or compute without it: mg.Tape(…, device="python")',
    ], child.stderr


# --- the graph ---


def test_write_updates_values_and_gradients_of_the_graph(device):
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
    assert_close(
        [y.data, y.grad, c.grad, a.grad, b.grad], [math.tanh(0.75), 1.0, expected, 3 * expected, 0.25 * expected]
    )
    y.zero_grad()
    y.backward()
    assert_close([a.grad, b.grad], [3 * expected, 0.25 * expected])


def test_after_a_step_computed_nodes_are_stale(device):
    w = Value(3.0, "w")
    y = w * w
    tape = mg.Tape(y, device=device)
    tape.forward()
    tape.backward()
    tape.step(0.25)
    tape.write()
    assert (w.data, w.grad, y.data, y.stale) == (1.5, 6.0, 9.0, (w, w))


def test_after_a_batch_only_leaves_are_written(device):
    w, x = Value(3.0, "w"), Value(2.0, "x")
    y = w * x
    tape = mg.Tape(y, parameters=[w], device=device)
    tape.batch({x: [1.0, 2.0]})
    tape.backward()
    tape.step(1.0)
    tape.write()
    assert (w.data, w.grad, x.data, y.data, y.grad, y.stale) == (0.0, 3.0, 2.0, 6.0, None, (w,))


def test_a_graph_modified_after_the_copy_raises(device):
    a, b = Value(2.0, "a"), Value(3.0, "b")
    tape = mg.Tape(a * b, device=device)
    a.data = 5.0
    words = r"Value\(5.0, label='a'\) was modified after the tape copied the graph; the tape still has 2.0"
    assert as_list(tape.batch({a: [1.0]})) == [3.0]
    for call in (tape.forward, lambda: tape.batch({b: [1.0]})):
        with pytest.raises(GraphError, match=words):
            call()
    assert tape.forward({a: 4.0}) == 12.0  # an explicit value
    assert tape.forward() == 12.0
    b.data = 10.0
    tape.read()
    assert tape.forward() == 50.0


# --- printing and inspection ---


def test_str_is_a_table_of_rows():
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


def test_on_python_the_table_lists_the_operations_in_the_order_of_the_graph():
    a, b = Value(2.0, "a"), Value(-3.0, "b")
    tape = mg.Tape((a * b + 1.0) * a, device="python")
    tape.backward()
    assert str(tape).splitlines() == [
        "Tape(2 leaves, 1 constant, 3 operations, on python)",
        "row  name    op        reads  value  grad",
        "  0  a       leaf                 2   -11",
        "  1  b       leaf                -3     4",
        "  2          constant             1",
        "  3          mul       0 1       -6     2",
        "  4          add       3 2       -5     2",
        "  5  output  mul       4 0      -10     1",
    ]


def test_a_long_table_is_cut_in_the_middle():
    tape = mg.Tape(sum(Value(float(k)) for k in range(100)), device="numpy")
    lines = str(tape).splitlines()
    assert len(lines) == 27
    assert lines[14].split() == ["…"] * 6
    assert lines[-1].split()[:3] == ["200", "output", "add"]
    assert lines[2].split() == ["0", "leaf", "0"]
    tape.batch({tape.inputs[0]: [5.0, 6.0]})
    tape.backward()
    assert str(tape).splitlines()[2].split() == ["0", "leaf", "0", "2"]  # for leaves, the sum over the samples


@pytest.mark.needs("taichi")
def test_source_of_the_kernels():
    a = Value(2.0)
    assert "if kind == 1:  # tanh" in mg.Tape((a * 3.0).tanh(), device="cpu").source
    for device in ("numpy", "python"):
        with pytest.raises(DeviceError, match=f"{device} has no kernel source; it runs the operations' rules"):
            _ = mg.Tape(a * 3.0, device=device).source


@pytest.mark.parametrize("device", ARRAY_DEVICES)
def test_anomaly_detection_reports_nan(device):
    a = Value(1.0)
    tape = mg.Tape((a - 2.0) * a.log(), device=device)
    tape.forward()
    with (
        mg.detect_anomaly(),
        pytest.raises(GraphError, match="tape_forward returned 2 NaN in 5 elements, in the forward"),
    ):
        tape.forward([-1.0])
    steep = mg.Tape(Value(0.0).sqrt(), device=device)
    steep.forward()
    with mg.detect_anomaly(), pytest.raises(GraphError, match="tape_backward returned 1 infinity in 2 elements"):
        steep.backward()


def test_anomaly_detection_names_the_operation_on_python():
    a = Value(1.0)
    tape = mg.Tape((a - 2.0) * a.log(), device="python")
    with mg.detect_anomaly(), pytest.raises(GraphError, match="log returned 1 NaN in 1 element, in the forward"):
        tape.forward([-1.0])


def test_a_tap_receives_each_operation_on_python():
    a = Value(2.0)
    tape, calls = mg.Tape(a * a + 1.0, device="python"), []
    with mg.tap(lambda call: calls.append((call.op, call.inputs, call.result))):
        assert tape.forward() == 5.0
    assert calls == [("mul", (2.0, 2.0), 4.0), ("add", (4.0, 1.0), 5.0)]


@pytest.mark.parametrize("device", ARRAY_DEVICES)
def test_a_tap_receives_each_run(device):
    a = Value(2.0)
    tape = mg.Tape(a * a, device=device)
    calls = []
    with mg.tap(lambda call: calls.append((call.op, call.device))):
        tape.forward()
        tape.backward()
        tape.step(0.1)
    assert calls == [(name, device) for name in ("tape_forward", "tape_backward", "tape_step")]
    assert tape.gradients[a] == 4.0


def test_a_graph_may_be_compiled_after_a_backward_pass():
    w, x = mg.Value(3.0), mg.Value(2.0)
    y = (w * x + w).relu() * x
    y.backward()
    tape = mg.Tape(y, device="python")
    tape.forward()
    tape.backward()
    assert (tape.gradients[w], tape.gradients[x]) == (w.grad, x.grad) == (6.0, 15.0)
