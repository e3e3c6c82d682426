"""Differences: which nodes of two runs differ, and where the first difference originates."""

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.trace.differences import differences

F = mg.functional


def compared(first, second, **tolerances):
    return differences(to_trace(first, namespaces=[{}]), to_trace(second, namespaces=[{}]), **tolerances)


def chain(backward=True, **changes):
    """y = (a + b)(c + d) + ef - g."""
    values = {name: float(k) for k, name in enumerate("abcdefg", 2)} | changes
    a, b, c, d, e, f, g = (mg.Value(x, name) for name, x in values.items())
    y = (a + b) * (c + d) + e * f - g
    if backward:
        y.backward()
    return y


def names_of_nodes(result, nodes):
    return [result.common.title(node) for node in nodes]


# --- Values ---


@pytest.mark.parametrize("backward", [True, False])
def test_equal_runs_agree(backward):
    result = compared(chain(backward), chain(backward))
    assert (result.nodes, result.edges, result.findings()) == ([], {}, [])
    assert result.headline() == "No difference: 13 values and 13 gradients agree within rtol 1e−9 and atol 1e−12."


@pytest.mark.parametrize("backward", [True, False])
def test_changed_leaf_is_the_first_value_and_gradients_follow(backward):
    result = compared(chain(backward), chain(backward, c=4.5))
    assert names_of_nodes(result, result.values) == ["c", "v₅", "v₆", "v₁₀", "v₁₂"]
    assert names_of_nodes(result, result.grads) == ["a", "b", "v₂"]
    assert (result.first_value, result.first_operation, result.first_gradient) == (3, None, None)
    assert result.values[3].amount == 0.5
    assert result.headline() == ("8 of 13 nodes differ: 5 values and 3 gradients, beyond rtol 1e−9 and atol 1e−12.")
    assert result.findings() == [
        "The first value that differs, in tape order, is an input: c: 4.0 | 4.5 (≠ 11%).",
        "Each gradient that differs follows from values or gradients before it that differ.",
    ]


def test_differing_edges_are_those_with_other_contributions_or_derivatives():
    result = compared(chain(), chain(c=4.5))
    trace = result.common
    assert {(trace.title(trace.operand[edge]), trace.title(trace.result[edge])) for edge in result.edges} == {
        ("a", "v₂"),
        ("b", "v₂"),
        ("v₂", "v₆"),
    }


def test_changed_constant_is_an_input():
    a = mg.Value(2.0, "a")
    result = compared(a * 3.0, a * 4.0)
    assert result.findings()[0] == "The first value that differs, in tape order, is an input: 3.0: 3.0 | 4.0 (≠ 25%)."


def squares(*factors):
    """Return custom square ops whose gradients have one wrong factor each."""
    ops = []
    for k, factor in enumerate(factors):
        ops.append(mg.Op(f"square{k}", "{a}^2", vjp=(twice(factor),)))
        mg.kernel(f"square{k}", "python")(lambda a: a * a)
    return ops


def twice(factor):
    return lambda g, a: factor * (g * (2.0 * a))


@pytest.fixture
def own_ops():
    yield squares
    for name in [name for name in mg.OPS if name.startswith("square") and name[6:].isdigit()]:
        mg.OPS.pop(name)


def run_with(op):
    x, w = mg.Value(3.0, "x"), mg.Value(0.5, "w")
    y = op(w * x).tanh() + w
    y.backward()
    return y


def test_a_gradient_rule_of_the_wrong_sign_is_found_at_its_node(own_ops):
    right, wrong = own_ops(1.0, -1.0)
    result = compared(run_with(right), run_with(wrong))
    assert result.values == {}
    assert names_of_nodes(result, result.grads) == ["w", "x", "v₂"]
    assert names_of_nodes(result, [result.first_gradient]) == ["v₂"]
    (finding,) = result.findings()
    assert finding == (
        "The first gradient, in backward order, that differs although everything it is computed from agrees: "
        "v₂: 0.130395 | −0.130395 (≠ 200%, the opposite sign). "
        "Look at the gradient rule of square0 (first run) or square1 (second run), which computed v₃."
    )


def test_wrong_rule_nearest_the_output_is_found_first(own_ops):
    right, wrong = own_ops(1.0, 2.0)

    def run(inner, outer):
        y = outer(inner(mg.Value(1.5, "x")).tanh())
        y.backward()
        return y

    result = compared(run(right, right), run(wrong, wrong))
    assert names_of_nodes(result, [result.first_gradient]) == ["v₂"]
    assert "2 times the first" in result.findings()[0]
    assert names_of_nodes(result, [compared(run(right, right), run(wrong, right)).first_gradient]) == ["x"]


def test_wrong_operation_is_found_after_a_differing_input(own_ops):
    def run(x, off):
        a, b = mg.Value(x, "a"), mg.Value(2.0, "b")
        c = b * 3.0
        c._data += off
        return (a.exp() + c) * b

    result = compared(run(1.0, 0.0), run(1.5, 0.25))
    assert names_of_nodes(result, [result.first_value, result.first_operation]) == ["a", "v₄"]
    assert result.findings()[1] == "The first that differs although its operands agree: v₄ = b · 3: 6.0 | 6.25 (≠ 4%)."


def test_extra_pass_starts_at_the_output_and_stale_gradient_does_not():
    twice = chain()
    twice.backward()
    result = compared(chain(), twice)
    assert result.first_gradient == 12
    assert result.findings()[0].endswith("The backward pass started there, with another gradient or more than once.")

    def run(left):
        w = mg.Value(2.0, "w")
        if left:
            (w * 5.0).backward()
        y = w * w
        y.backward()
        return y

    result = compared(run(False), run(True))
    assert names_of_nodes(result, result.grads) == ["w"]
    (finding,) = result.findings()
    assert finding == (
        "The first gradient, in backward order, that differs although everything it is computed from agrees: "
        "w: 4.0 | 9.0 (≠ 56%). "
        "One backward pass gives it the same gradient in both: something else was added. Is a zero_grad() missing?"
    )


def test_leaf_with_a_gradient_in_one_run_only_differs():
    def run(needs):
        with mg.record():
            w, x = mg.tensor(2.0, requires_grad=needs), mg.tensor(3.0, requires_grad=True)
            w.label = "w"
            return w * x

    result = compared(run(True), run(False))
    assert names_of_nodes(result, result.grads) == ["w"]
    assert result.findings()[0].endswith(
        "agrees: w: only in the first run. In the second run no gradient arrives there: look for requires_grad, "
        "detach() and no_grad()."
    )


def test_gradients_of_one_run_only_are_compared_by_passes():
    result = compared(chain(backward=True), chain(backward=False))
    assert (result.nodes, len(result.gradients)) == ([], 13)


@pytest.mark.parametrize(("tolerances", "differ"), [({}, 5), ({"rtol": 0.2}, 0), ({"atol": 0.6, "rtol": 0.0}, 3)])
def test_tolerances_decide_what_differs(tolerances, differ):
    result = compared(chain(), chain(c=4.5), **tolerances)
    assert len(result.values) == differ


def test_invalid_tolerances_are_rejected():
    for tolerances in ({"rtol": -1.0}, {"atol": float("nan")}):
        with pytest.raises(mg.errors.ArgumentError, match=r"(rtol|atol)=(-1\.0|nan) is not a tolerance"):
            compared(chain(), chain(), **tolerances)


def test_nan_in_both_runs_agrees_and_in_one_is_located():
    def run(x):
        x = mg.Value(x, "x")
        return x.log() * 2.0

    assert compared(run(-1.0), run(-2.0)).values.keys() == {0}
    result = compared(run(1.0), run(-1.0))
    assert [result.values[node].ratio for node in (0,)] == [2.0]
    assert str(result.values[1].ratio) == "nan"


def test_names_come_from_the_first_run_or_else_the_second():
    a = mg.Value(2.0)
    first = to_trace(a * 3.0, namespaces=[{}])
    second = to_trace(a * 3.0, namespaces=[{"weight": a}])
    assert differences(first, second).common.names[0] == "weight"
    assert differences(second, first).common.names[0] == "weight"


# --- tensors ---


class Cube(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3.0 * x * x


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, g):
        return -Cube.backward(ctx, g)


def network_run(function, record=True, off=0.0, dtype=None):
    mg.manual_seed(0)
    x, w = mg.randn(4, 3), mg.randn(3, 2)
    if dtype is not None:
        x, w = x.to(dtype), w.to(dtype)
    w = w.detach().requires_grad_()
    with mg.no_grad():
        w[0, 0] += off
    w.label = "w"

    def run():
        h = function(x @ w)
        loss = (h * h).mean()
        loss.backward()
        return loss

    if not record:
        return run()
    with mg.record():
        return run()


def test_a_function_with_a_sign_error_is_found_against_the_right_one():
    result = compared(network_run(Cube.apply), network_run(WrongCube.apply))
    assert result.values == {}
    assert names_of_nodes(result, result.grads) == ["w", "v₂"]
    assert names_of_nodes(result, [result.first_gradient]) == ["v₂"]
    gap = result.grads[result.first_gradient]
    assert (gap.cells, gap.size, gap.ratio, gap.factor) == (8, 8, 2.0, -1.0)
    assert result.findings()[0].endswith(
        "(≠ 200%, the opposite sign). Look at the gradient rule of Cube (first run) or WrongCube (second run), which "
        "computed v₃."
    )


def test_tensors_agree_and_differ_element_by_element():
    assert compared(network_run(Cube.apply), network_run(Cube.apply)).nodes == []
    result = compared(network_run(Cube.apply), network_run(Cube.apply, off=0.5))
    assert names_of_nodes(result, [result.first_value]) == ["w"]
    assert (result.values[result.first_value].cells, result.values[result.first_value].size) == (1, 6)
    assert result.values[result.first_value].amount == pytest.approx(0.5, abs=1e-6)
    assert result.findings()[0].startswith(
        "The first value that differs, in tape order, is an input: w: 1 of 6 elements, by 0.5 at most"
    )


def test_rounding_of_float32_agrees_and_that_of_float64_against_it_too():
    result = compared(network_run(F.tanh, dtype=mg.float32), network_run(F.tanh, dtype=mg.float64))
    assert result.nodes == []
    assert result.headline().endswith("agree within rtol 1e−5 and atol 1e−8.")
    assert len(compared(network_run(F.tanh), network_run(F.tanh, off=1e-7), rtol=0.0, atol=0.0).nodes) > 1


def test_graphs_freed_by_backward_are_recomputed():
    result = compared(network_run(Cube.apply, record=False), network_run(WrongCube.apply, record=False))
    assert (names_of_nodes(result, result.grads), names_of_nodes(result, [result.first_gradient])) == (
        ["w", "v₂"],
        ["v₂"],
    )
    assert result.unknown == set()


def test_unknown_values_are_not_compared():
    def run(sign):
        w = mg.ones(2, 2, requires_grad=True)
        w.label = "w"
        h = mg.ones(3, 2000, 2) @ w  # its operand is not saved
        loss = (h * h).mean() * sign
        loss.backward()
        return loss

    result = compared(run(1.0), run(-1.0))
    assert names_of_nodes(result, result.grads) == ["w"]
    assert result.first_operation is None  # the loss differs, and so does the sign; the mean is unknown
    sentences = result.findings()
    assert any(
        finding.startswith("The first gradient that differs, in backward order: w: 4 of 4 elements")
        and finding.endswith("The gradients before it were not saved.")
        for finding in sentences
    )
    assert sentences[-1] == (
        "4 values could not be compared (not saved by both runs): build both inside `with mg.record():`."
    )


def test_integers_must_be_equal():
    def run(index):
        with mg.record():
            x = mg.tensor([1.0, 2.0], requires_grad=True)
            return x[mg.tensor([0, index])]

    result = compared(run(1), run(0))
    assert [gap.size for gap in result.values.values()] != []
    assert result.first_value is not None


def test_differing_attributes_are_reported_with_the_value():
    def run(negative_slope):
        x = mg.Value(-2.0, "x")
        return mg.leaky_relu(x, negative_slope=negative_slope)

    assert compared(run(0.1), run(0.2)).findings()[0] == (
        "The first value that differs, in tape order: v₁ = leakyrelu(x): −0.2 | −0.4 (≠ 50%, 2 times the first). "
        "It was called with negative_slope = 0.1 | 0.2."
    )


def test_graph_without_gradients_does_not_mention_them():
    x = mg.tensor([1.0, 2.0])
    assert compared(x, mg.tensor([1.0, 2.0])).findings() == []
