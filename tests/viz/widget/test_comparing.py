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


def net(w):
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
        found = compare(a, b)
        assert isinstance(found, Comparison)
        assert not found.agrees
        assert found.differences.nodes == [0, 1, 2, 3]
    assert compare(net(1.0), net(1.0)).agrees
    assert not compare(net(1.0), net(1.5)).agrees
    assert compare([net(1.0), net(2.0)], [net(1.0), net(2.0)]).agrees


def test_players_are_compared():
    needs("ipywidgets")
    needs("anywidget")
    from minigrad_viz import step

    assert not compare(step(run(2.0)), step(run(2.5))).agrees


def test_a_drawing_keeps_a_moment_to_compare_with_what_follows():
    w, x = mg.Value(2.0, "w"), mg.Value(3.0, "x")
    before = draw(w * x)
    w.data = 2.5
    found = compare(before, w * x)
    assert found.text().splitlines()[1] == (
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


def test_tolerances_are_passed_on():
    assert compare(run(2.0), run(2.5), rtol=0.3).agrees
    assert compare(run(2.0), run(2.5), rtol=0.0, atol=2.0).agrees
    assert not compare(run(2.0), run(2.5), rtol=0.0, atol=1.0).agrees


def test_what_is_not_one_graph_is_refused_in_words():
    a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    with pytest.raises(mg.errors.ArgumentError, match=r"node 2: v₂ = a · b in the first, v₂ = a \+ b in the second"):
        compare([a * b], [a + b])


@pytest.mark.parametrize("given", [3, "y", [1.0], None])
def test_what_has_no_graph_is_refused(given):
    with pytest.raises(mg.errors.DTypeError, match=r"compare: .* which has no graph"):
        compare(run(2.0), given)
    with pytest.raises(mg.errors.DTypeError, match=r"compare: .* which has no graph"):
        compare(given, run(2.0))


def test_a_recorded_step_is_refused():
    step = mg.jit(lambda x: x * 2.0)
    step(mg.ones(2))
    step(mg.ones(2))
    with pytest.raises(mg.errors.ArgumentError, match="a captured step saves no values"):
        compare(draw(step), draw(step))


def test_it_is_a_picture_in_a_notebook_and_text_in_a_terminal():
    found = compare(run(2.0), run(2.5))
    bundle = found._repr_mimebundle_()
    assert bundle == {"text/html": figure(found.differences), "text/plain": found.text()}
    assert repr(found) == found.text()


def test_it_is_saved_as_what_its_suffix_says(tmp_path):
    found = compare(run(2.0), run(2.5))
    for name, text in (("a.svg", found.svg()), ("a.html", found.html()), ("a.txt", found.text())):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    found.save(tmp_path / "b.svg", theme="dark")
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == found.svg("dark") != found.svg()
    with pytest.raises(mg.errors.ArgumentError, match=r"Use one of \.svg, \.html, \.txt"):
        found.save(tmp_path / "a.png")
    with pytest.raises(mg.errors.ArgumentError, match=r"theme must be .* but got 'sepia'"):
        found.svg("sepia")


def test_values_are_compared_without_numpy():
    code = (
        "import sys, minigrad as mg; from minigrad_viz import compare; "
        "a = mg.Value(2.0, 'a'); b = compare(a * a, a * a); b.svg(); b.text(); b.html(); "
        "assert b.agrees and 'numpy' not in sys.modules, 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
