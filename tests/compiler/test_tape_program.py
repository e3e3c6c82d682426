"""Results of a tape: the values and gradients of the graph, for each operation and for random graphs."""

import math
import random

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import Value
from minigrad.core.errors import DeviceError, GraphError
from minigrad.nn.scalar import MLP
from strategies import ATTRS, DIFFERENTIABLE, RELATIVE, ROUNDING, as_value_function, points, random_expression
from tape_checks import DEVICES, assert_close, assert_matches_graph, xor_loss
from tiers import NIGHTLY

inf, nan = math.inf, math.nan

# --- the full table of operations ---


@pytest.fixture(scope="module", params=DEVICES)
def full_table(request):
    """Return for each op its results at sample points and the gradients of operands, by the graph and by one tape."""
    called = {op.name: [([Value(x) for x in point]) for point in points(op)] for op in DIFFERENTIABLE}
    outputs = [(op.name, as_value_function(op)(*values)) for op in DIFFERENTIABLE for values in called[op.name]]
    tape = mg.Tape([y for _, y in outputs], device=request.param)
    results = tape.forward()
    weights = np.linspace(-1.0, 2.0, len(outputs))
    tape.backward(weights)
    gradients = tape.gradients
    table = {name: ([], []) for name in called}
    for (name, y), actual, weight in zip(outputs, results, weights, strict=True):
        y.backward(float(weight))
        table[name][0].append((actual, y.data))
    for name, points_of in called.items():
        for values in points_of:
            table[name][1].extend((gradients.get(x), x.grad) for x in values)
    return table


@merge_cases
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_operation_has_the_value_and_gradients_of_the_graph(op, full_table):
    values, gradients = full_table[op.name]
    assert values
    assert_close(*zip(*values, strict=True), RELATIVE["float64"])
    assert [a is None for a, _ in gradients] == [b is None for _, b in gradients]
    pairs = [pair for pair in gradients if pair[0] is not None]
    assert_close(*zip(*pairs, strict=True), RELATIVE["float64"])


@pytest.mark.slow
def test_operations_in_a_batch_match_single_samples(device):
    some = DIFFERENTIABLE[:: 1 if NIGHTLY else 12]  # compiling all of them takes 20 seconds
    points_by_op = {op.name: points(op, 3) for op in some}
    leaves = {op.name: [Value(x) for x in points_by_op[op.name][0]] for op in some}
    tape = mg.Tape([as_value_function(op)(*leaves[op.name]) for op in some], device=device)
    columns = {
        leaf: [point[k] for point in points_by_op[name]]
        for name, operands in leaves.items()
        for k, leaf in enumerate(operands)
        if leaf in tape.inputs  # excludes conditions
    }
    results = tape.batch(columns)
    tape.backward([1.0] * len(leaves))
    sums, singly = tape.gradients, dict.fromkeys(tape.inputs, 0.0)
    for k, outputs in enumerate(results):
        assert_close(outputs, tape.forward({leaf: column[k] for leaf, column in columns.items()}))
        tape.backward([1.0] * len(leaves))
        for leaf, gradient in tape.gradients.items():
            singly[leaf] += gradient
    assert_close([sums.get(leaf, 0.0) for leaf in tape.inputs], list(singly.values()))


CORNERS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-300, 1e300, 800.0, -800.0, inf, -inf, nan)


def test_special_values_of_powers_quotients_and_extremes_match_the_graph(device):
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
    gradients = [tape.gradients.get(x) for x in tape.inputs]
    np.testing.assert_allclose(gradients, [x.grad for x in tape.inputs], rtol=ROUNDING)


# --- graphs ---


@pytest.mark.parametrize("seed", range(12 if NIGHTLY else 4))
def test_random_graphs_have_the_same_values(seed, device):
    generator = random.Random(seed)
    leaves = [Value(generator.uniform(-2.0, 2.0), name) for name in "abcd"]
    y = random_expression(generator, leaves, 60).tanh()
    assert_matches_graph(y, mg.Tape(y, device=device))


@pytest.mark.parametrize("seed", range(5 if NIGHTLY else 1))
def test_random_graphs_of_all_operations_have_the_same_values(seed, device):
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
    assert_matches_graph(y, mg.Tape(y, device=device))


def test_an_operand_that_is_used_twice_gets_both_products(device):
    a = Value(3.0, "a")
    y = a * a + a + a / a
    assert_matches_graph(y, mg.Tape(y, device=device))


def test_constants_and_attributes_differ_from_node_to_node(device):
    a = Value(0.75, "a")
    clamped = [mg.ops.clamp(a * k, min=low, max=high) for k, low, high in [(1, 0.8, None), (2, None, 1.0), (1, -1, 1)]]
    steep = [mg.ops.leaky_relu(a - k, negative_slope=slope) for k, slope in [(1.0, 0.1), (2.0, 0.3), (-1.0, 0.5)]]
    y = sum([*clamped, *steep]) * 3.0 + 2.0**a - 0.5 / a
    assert_matches_graph(y, mg.Tape(y, device=device))


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


def test_gradients_that_are_not_needed_are_not_computed(device):
    a, b, c = Value(0.0, "a"), Value(2.0, "b"), mg.Value(5.0, "c")
    y = b * mg.ops.sqrt(a).detach() + b * c.detach() + mg.ops.where(mg.ops.sqrt(a), b, c)
    assert_matches_graph(y, mg.Tape(y, device=device))  # the derivative of sqrt at 0 is inf, and 0 * inf is nan
    with mg.no_grad():
        z = a * b
    tape = mg.Tape(z, device=device)
    assert tape.forward() == 0.0
    with pytest.raises(
        GraphError, match=r"do not require grad: they were computed with detach\(\), inside no_grad\(\)"
    ):
        tape.backward()


@pytest.mark.parametrize("device", DEVICES[-1:])
def test_a_chain_of_100_000_operations_has_the_same_value(device):
    y = Value(0.5)
    for _ in range(50_000):
        y = y * 0.9999 + 0.001
    tape = mg.Tape(y, device=device)
    assert_matches_graph(y, tape)
    assert repr(tape).endswith("2 constants, 100,000 operations in 100,000 runs, on " + device + ")")


def test_a_long_sum_is_one_run(device):
    leaves = [Value(float(k)) for k in range(500)]
    y = sum(leaves)
    tape = mg.Tape(y, device=device)
    assert_matches_graph(y, tape)
    runs = "" if device == "python" else " in 2 runs"  # the first adds to a constant, 0
    assert repr(tape).endswith(f" 500 operations{runs}, on {device})")


def test_two_runs_have_equal_bits(device):
    model = MLP([2, 5, 1], seed=3)
    tape = mg.Tape(xor_loss(model), device=device)
    results = []
    for _ in range(2):
        tape.forward()
        tape.backward()
        results.append(str(tape) + repr(tape.gradients))
    assert results[0] == results[1]


# --- bits ---


def assert_equal_bits(outputs, seeds):
    tape = mg.Tape(outputs, device="python")
    assert [x.hex() for x in tape.forward()] == [y.data.hex() for y in outputs]
    tape.backward(seeds)
    gradients = mg.autograd.grad(outputs, list(tape.inputs), seeds, allow_unused=True)
    expected = {x: float(g).hex() for x, g in zip(tape.inputs, gradients, strict=True) if g is not None}
    assert {x: g.hex() for x, g in tape.gradients.items()} == expected


@merge_cases
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_on_python_each_operation_equals_the_graph_to_the_bit(op):
    outputs = [as_value_function(op)(*[Value(x) for x in point]) for point in points(op)]
    assert_equal_bits(outputs, [0.1 + 0.3 * k for k in range(len(outputs))])


@pytest.mark.parametrize("seed", range(4))
def test_on_python_random_graphs_equal_the_graph_to_the_bit(seed):
    generator = random.Random(seed)
    leaves = [Value(generator.uniform(-2.0, 2.0), name) for name in "abcd"]
    y = random_expression(generator, leaves, 200).tanh()
    assert_equal_bits([y, y * leaves[0], leaves[1], y], [1.0, 0.3, -0.0, 0.1])


# --- custom operations ---


@pytest.fixture
def declared():
    """Declare operations, and remove them afterwards."""
    names = []

    def declare(name, formula, rule, kernel):
        names.append(name)
        mg.kernel(name, "python")(kernel)
        return mg.Op(name, formula, vjp=(rule,), domain=(mg.Domain(-2.0, 2.0),))

    yield declare
    for name in names:
        mg.OPS.pop(name)


def test_custom_operations_are_computed_from_their_declaration(declared, device):
    cube = declared("cubed", "{a}^3", lambda g, a: g * (3.0 * a * a), lambda a: a * a * a)
    softish = declared("softish", r"\frac{a}{1 + e^{-{a}}}", lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),
                       lambda a: a / (1.0 + math.exp(-a)))  # fmt: skip
    a = Value(0.5)
    y = cube(a * 2.0) + softish(a) * cube(softish(a))
    assert_matches_graph(y, mg.Tape(y, device=device))


def test_an_operation_without_a_scalar_formula_is_refused(declared):
    chosen = declared("chosen_by_if", "{a}", lambda g, a: g if a > 0 else 0.0, lambda a: a)
    with pytest.raises(
        DeviceError, match=r"chosen_by_if is not supported on a tape. A derivative rule of chosen_by_if is not a"
    ):
        mg.Tape(chosen(Value(1.0)), device="numpy")
    x = Value(1.0)
    tape = mg.Tape(chosen(x), device="python")  # evaluates the rule
    tape.backward()
    assert tape.gradients == {x: 1.0}


@pytest.mark.needs("taichi")
def test_a_formula_unsupported_by_taichi_runs_on_numpy(declared):
    gamma = declared("half_gamma", r"\Gamma({a})", lambda g, y: g * y, lambda a: math.gamma(a) / 2.0)
    y = gamma(Value(3.0)) * 2.0
    with pytest.raises(DeviceError, match=r'half_gamma is not supported on a tape.*\n.*mg.Tape\(…, device="numpy"\)'):
        mg.Tape(y, device="cpu")
    assert_matches_graph(y, mg.Tape(y, device="numpy"))
