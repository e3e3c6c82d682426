"""Differences: which nodes of two runs differ, and where the first difference originates."""

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.trace.differences import differences

F = mg.functional


def compared(first, second, **tolerances):
    return differences(to_trace(first, namespaces=[{}]), to_trace(second, namespaces=[{}]), **tolerances)


def chain(backward=True, **numbers):
    """y = (a + b)(c + d) + ef - g."""
    given = {name: float(k) for k, name in enumerate("abcdefg", 2)} | numbers
    a, b, c, d, e, f, g = (mg.Value(x, name) for name, x in given.items())
    y = (a + b) * (c + d) + e * f - g
    if backward:
        y.backward()
    return y


def named(found, nodes):
    return [found.common.title(node) for node in nodes]


# --- Values ---


@pytest.mark.parametrize("backward", [True, False])
def test_equal_runs_agree(backward):
    found = compared(chain(backward), chain(backward))
    assert (found.nodes, found.edges, found.findings()) == ([], {}, [])
    assert found.headline() == "No difference: 13 values and 13 gradients agree within rtol 1e−9 and atol 1e−12."


@pytest.mark.parametrize("backward", [True, False])
def test_one_leaf_that_was_changed_is_the_first_value_and_gradients_only_follow(backward):
    found = compared(chain(backward), chain(backward, c=4.5))
    assert named(found, found.values) == ["c", "v₅", "v₆", "v₁₀", "v₁₂"]
    assert named(found, found.grads) == ["a", "b", "v₂"]
    assert (found.first_value, found.first_operation, found.first_gradient) == (3, None, None)
    assert found.values[3].amount == 0.5
    assert found.headline() == ("8 of 13 nodes differ: 5 values and 3 gradients, beyond rtol 1e−9 and atol 1e−12.")
    assert found.findings() == [
        "The first value that differs, in tape order, is an input: c: 4.0 | 4.5 (≠ 11%).",
        "Each gradient that differs follows from values or gradients before it that differ.",
    ]


def test_the_contributions_and_local_derivatives_that_differ_are_those_of_the_edges():
    found = compared(chain(), chain(c=4.5))
    trace = found.common
    assert {(trace.title(trace.operand[edge]), trace.title(trace.result[edge])) for edge in found.edges} == {
        ("a", "v₂"),
        ("b", "v₂"),
        ("v₂", "v₆"),
    }


def test_a_constant_that_was_changed_is_an_input_too():
    a = mg.Value(2.0, "a")
    found = compared(a * 3.0, a * 4.0)
    assert found.findings()[0] == "The first value that differs, in tape order, is an input: 3.0: 3.0 | 4.0 (≠ 25%)."


def squares(*factors):
    """Return custom square ops whose gradients have one wrong factor each."""
    made = []
    for k, factor in enumerate(factors):
        made.append(mg.Op(f"square{k}", "{a}^2", vjp=(twice(factor),)))
        mg.kernel(f"square{k}", "python")(lambda a: a * a)
    return made


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
    found = compared(run_with(right), run_with(wrong))
    assert found.values == {}
    assert named(found, found.grads) == ["w", "x", "v₂"]
    assert named(found, [found.first_gradient]) == ["v₂"]
    (said,) = found.findings()
    assert said == (
        "The first gradient, in backward order, that differs although everything it is computed from agrees: "
        "v₂: 0.130395 | −0.130395 (≠ 200%, the opposite sign). "
        "Look at the gradient rule of square0 (first run) or square1 (second run), which computed v₃."
    )


def test_of_two_wrong_rules_the_one_nearer_the_output_is_found_first_and_then_the_other(own_ops):
    right, wrong = own_ops(1.0, 2.0)

    def run(inner, outer):
        y = outer(inner(mg.Value(1.5, "x")).tanh())
        y.backward()
        return y

    found = compared(run(right, right), run(wrong, wrong))
    assert named(found, [found.first_gradient]) == ["v₂"]
    assert "2 times the first" in found.findings()[0]
    assert named(found, [compared(run(right, right), run(wrong, right)).first_gradient]) == ["x"]


def test_an_operation_whose_value_is_wrong_though_its_operands_agree_is_found_behind_an_input(own_ops):
    def run(x, off):
        a, b = mg.Value(x, "a"), mg.Value(2.0, "b")
        c = b * 3.0
        c._data += off
        return (a.exp() + c) * b

    found = compared(run(1.0, 0.0), run(1.5, 0.25))
    assert named(found, [found.first_value, found.first_operation]) == ["a", "v₄"]
    assert found.findings()[1] == "The first that differs although its operands agree: v₄ = b · 3: 6.0 | 6.25 (≠ 4%)."


def test_a_pass_too_many_began_at_the_output_and_a_gradient_that_was_left_over_did_not():
    twice = chain()
    twice.backward()
    found = compared(chain(), twice)
    assert found.first_gradient == 12
    assert found.findings()[0].endswith("The backward pass started there, with another gradient or more than once.")

    def run(left):
        w = mg.Value(2.0, "w")
        if left:
            (w * 5.0).backward()
        y = w * w
        y.backward()
        return y

    found = compared(run(False), run(True))
    assert named(found, found.grads) == ["w"]
    (said,) = found.findings()
    assert said == (
        "The first gradient, in backward order, that differs although everything it is computed from agrees: "
        "w: 4.0 | 9.0 (≠ 56%). "
        "One backward pass gives it the same gradient in both: something else was added. Is a zero_grad() missing?"
    )


def test_a_leaf_that_gets_a_gradient_in_one_run_alone_differs_there():
    def run(needs):
        with mg.record():
            w, x = mg.tensor(2.0, requires_grad=needs), mg.tensor(3.0, requires_grad=True)
            w.label = "w"
            return w * x

    found = compared(run(True), run(False))
    assert named(found, found.grads) == ["w"]
    assert found.findings()[0].endswith(
        "agrees: w: only in the first run. In the second run no gradient arrives there: look for requires_grad, "
        "detach() and no_grad()."
    )


def test_gradients_of_one_run_alone_are_compared_by_passes():
    found = compared(chain(backward=True), chain(backward=False))
    assert (found.nodes, len(found.gradients)) == ([], 13)


@pytest.mark.parametrize(("given", "differ"), [({}, 5), ({"rtol": 0.2}, 0), ({"atol": 0.6, "rtol": 0.0}, 3)])
def test_tolerances_say_what_differs(given, differ):
    found = compared(chain(), chain(c=4.5), **given)
    assert len(found.values) == differ


def test_tolerances_that_are_none_are_refused():
    for given in ({"rtol": -1.0}, {"atol": float("nan")}):
        with pytest.raises(mg.errors.ArgumentError, match=r"(rtol|atol)=(-1\.0|nan) is not a tolerance"):
            compared(chain(), chain(), **given)


def test_not_a_number_in_both_runs_agrees_and_in_one_is_found_where_it_begins():
    def run(x):
        x = mg.Value(x, "x")
        return x.log() * 2.0

    assert compared(run(-1.0), run(-2.0)).values.keys() == {0}
    found = compared(run(1.0), run(-1.0))
    assert [found.values[node].ratio for node in (0,)] == [2.0]
    assert str(found.values[1].ratio) == "nan"


def test_names_are_those_of_the_first_run_or_else_of_the_second():
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


def net(function, record=True, off=0.0, dtype=None):
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
    found = compared(net(Cube.apply), net(WrongCube.apply))
    assert found.values == {}
    assert named(found, found.grads) == ["w", "v₂"]
    assert named(found, [found.first_gradient]) == ["v₂"]
    gap = found.grads[found.first_gradient]
    assert (gap.cells, gap.size, gap.ratio, gap.factor) == (8, 8, 2.0, -1.0)
    assert found.findings()[0].endswith(
        "(≠ 200%, the opposite sign). Look at the gradient rule of Cube (first run) or WrongCube (second run), which "
        "computed v₃."
    )


def test_tensors_agree_and_differ_element_by_element():
    assert compared(net(Cube.apply), net(Cube.apply)).nodes == []
    found = compared(net(Cube.apply), net(Cube.apply, off=0.5))
    assert named(found, [found.first_value]) == ["w"]
    assert (found.values[found.first_value].cells, found.values[found.first_value].size) == (1, 6)
    assert found.values[found.first_value].amount == pytest.approx(0.5, abs=1e-6)
    assert found.findings()[0].startswith(
        "The first value that differs, in tape order, is an input: w: 1 of 6 elements, by 0.5 at most"
    )


def test_rounding_of_float32_agrees_and_that_of_float64_against_it_too():
    found = compared(net(F.tanh, dtype=mg.float32), net(F.tanh, dtype=mg.float64))
    assert found.nodes == []
    assert found.headline().endswith("agree within rtol 1e−5 and atol 1e−8.")
    assert len(compared(net(F.tanh), net(F.tanh, off=1e-7), rtol=0.0, atol=0.0).nodes) > 1


def test_graphs_that_backward_freed_are_computed_again():
    found = compared(net(Cube.apply, record=False), net(WrongCube.apply, record=False))
    assert (named(found, found.grads), named(found, [found.first_gradient])) == (["w", "v₂"], ["v₂"])
    assert found.unknown == set()


def test_what_cannot_be_computed_again_is_not_compared_and_nothing_is_claimed_of_it():
    def run(sign):
        w = mg.ones(2, 2, requires_grad=True)
        w.label = "w"
        h = mg.ones(3, 2000, 2) @ w  # its operand is not saved
        loss = (h * h).mean() * sign
        loss.backward()
        return loss

    found = compared(run(1.0), run(-1.0))
    assert named(found, found.grads) == ["w"]
    assert found.first_operation is None  # the loss differs, and so does the sign; the mean is unknown
    sentences = found.findings()
    assert any(
        said.startswith("The first gradient that differs, in backward order: w: 4 of 4 elements")
        and said.endswith("The gradients before it were not saved.")
        for said in sentences
    )
    assert sentences[-1] == (
        "4 values could not be compared (not saved by both runs): build both inside `with mg.record():`."
    )


def test_integers_have_to_be_equal():
    def run(number):
        with mg.record():
            x = mg.tensor([1.0, 2.0], requires_grad=True)
            return x[mg.tensor([0, number])]

    found = compared(run(1), run(0))
    assert [gap.size for gap in found.values.values()] != []
    assert found.first_value is not None


def test_attributes_that_differ_are_said_where_the_value_does():
    def run(slope):
        x = mg.Value(-2.0, "x")
        return mg.leaky_relu(x, negative_slope=slope)

    assert compared(run(0.1), run(0.2)).findings()[0] == (
        "The first value that differs, in tape order: v₁ = leakyrelu(x): −0.2 | −0.4 (≠ 50%, 2 times the first). "
        "It was called with negative_slope = 0.1 | 0.2."
    )


def test_a_graph_without_gradients_says_nothing_of_them():
    x = mg.tensor([1.0, 2.0])
    assert compared(x, mg.tensor([1.0, 2.0])).findings() == []
