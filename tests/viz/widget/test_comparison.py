"""`compare`: accepted and rejected arguments, and how its result is shown and saved."""

import subprocess
import sys

import pytest

import minigrad as mg
from minigrad_viz import Comparison, compare, draw, to_trace
from minigrad_viz.pictures.compare import figure
from needs import needs


def run(w):
    w, x = mg.Value(w, "w"), mg.Value(3.0, "x")
    y = (w * x).relu()
    y.backward()
    return y


def network(w):
    with mg.record():
        x = mg.tensor([[1.0, 2.0]], requires_grad=True)
        return x @ mg.tensor([[w], [1.0]], requires_grad=True)


def test_values_tensors_lists_traces_and_drawings_are_compared():
    first, second = run(2.0), run(2.5)
    for a, b in (
        (first, second),
        ([first], (second,)),
        (to_trace(first), to_trace(second)),
        (draw(first), draw(second)),
        (first, draw(second)),
    ):
        comparison = compare(a, b)
        assert isinstance(comparison, Comparison)
        assert not comparison.agrees
        assert comparison.differences.nodes == [0, 1, 2, 3]
    assert compare(network(1.0), network(1.0)).agrees
    assert not compare(network(1.0), network(1.5)).agrees
    assert compare([network(1.0), network(2.0)], [network(1.0), network(2.0)]).agrees


def test_players_are_compared():
    needs("ipywidgets")
    needs("anywidget")
    from minigrad_viz import step

    assert not compare(step(run(2.0)), step(run(2.5))).agrees


def test_drawing_is_a_snapshot_to_compare_with():
    w, x = mg.Value(2.0, "w"), mg.Value(3.0, "x")
    before = draw(w * x)
    w.data = 2.5
    comparison = compare(before, w * x)
    assert comparison.text().splitlines()[1] == (
        "! The first value that differs, in tape order, is an input: w: 2.0 | 2.5 (≠ 20%)."
    )


def test_a_value_may_be_compared_with_a_tensor():
    def tensor(w):
        with mg.record():
            w, x = mg.tensor(w, requires_grad=True), mg.tensor(3.0, requires_grad=True)
            y = (w * x).relu()
            y.backward()
            return y

    assert compare(run(2.0), tensor(2.0)).agrees
    assert compare(run(2.0), tensor(2.5)).differences.first_value == 0


def test_names_are_the_callers_variables():
    a, b = mg.Value(2.0), mg.Value(3.0)
    y = a * b
    assert "y     a · b" in str(compare(y, y))


def test_tolerances_are_forwarded():
    assert compare(run(2.0), run(2.5), rtol=0.3).agrees
    assert compare(run(2.0), run(2.5), rtol=0.0, atol=2.0).agrees
    assert not compare(run(2.0), run(2.5), rtol=0.0, atol=1.0).agrees


def test_different_graphs_are_rejected_with_a_reason():
    a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    with pytest.raises(mg.errors.ArgumentError, match=r"node 2: v₂ = a · b in the first, v₂ = a \+ b in the second"):
        compare([a * b], [a + b])


@pytest.mark.parametrize("argument", [3, "y", [1.0], None])
def test_objects_without_a_graph_are_rejected(argument):
    with pytest.raises(mg.errors.DTypeError, match=r"compare: .* which has no graph"):
        compare(run(2.0), argument)
    with pytest.raises(mg.errors.DTypeError, match=r"compare: .* which has no graph"):
        compare(argument, run(2.0))


def test_captured_step_is_rejected():
    step = mg.jit(lambda x: x * 2.0)
    step(mg.ones(2))
    step(mg.ones(2))
    with pytest.raises(mg.errors.ArgumentError, match="a captured step saves no values"):
        compare(draw(step), draw(step))


def test_comparison_is_a_picture_in_a_notebook_and_text_in_a_terminal():
    comparison = compare(run(2.0), run(2.5))
    bundle = comparison._repr_mimebundle_()
    assert bundle == {"text/html": figure(comparison.differences), "text/plain": comparison.text()}
    assert repr(comparison) == comparison.text()


def test_suffix_selects_the_saved_format(tmp_path):
    comparison = compare(run(2.0), run(2.5))
    for name, text in (("a.svg", comparison.svg()), ("a.html", comparison.html()), ("a.txt", comparison.text())):
        comparison.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    comparison.save(tmp_path / "b.svg", theme="dark")
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == comparison.svg("dark") != comparison.svg()
    with pytest.raises(mg.errors.ArgumentError, match=r"Use one of \.svg, \.html, \.txt"):
        comparison.save(tmp_path / "a.png")
    with pytest.raises(mg.errors.ArgumentError, match=r"theme must be .* but got 'sepia'"):
        comparison.svg("sepia")


def test_values_are_compared_without_numpy():
    code = (
        "import sys, minigrad as mg; from minigrad_viz import compare; "
        "a = mg.Value(2.0, 'a'); b = compare(a * a, a * a); b.svg(); b.text(); b.html(); "
        "assert b.agrees and 'numpy' not in sys.modules, 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
