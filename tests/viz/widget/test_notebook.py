"""IPython display: Values are drawn, and ``%%trace`` shows the graph of a cell, or where it failed."""

import json

import pytest

import minigrad as mg
from minigrad_viz.trace.broken import failing_call, to_broken_trace
from minigrad_viz.widget import notebook
from needs import needs


@pytest.fixture
def shell(monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    shell.history_manager.enabled = False
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    monkeypatch.setattr(InteractiveShell, "_instance", shell)
    shell.run_cell("import minigrad as mg\n%load_ext minigrad_viz")

    def run(cell):
        with capture_output() as seen:
            result = shell.run_cell(cell)
        return seen, result

    shell.seen = run
    yield shell
    shell.run_cell("%unload_ext minigrad_viz")
    shell.history_manager.end_session()


def bundles(seen):
    return [output.data for output in seen.outputs]


def traced(seen):
    """Return the traces that a cell showed, as JSON in the figures."""
    found = []
    for bundle in bundles(seen):
        html = bundle["text/html"]
        found.append(json.loads(html.split('class="minigrad-trace">')[1].split("</script>")[0]))
    return found


def test_trace_plays_the_last_expression_with_the_lines_of_the_cell(shell):
    seen, result = shell.seen("%%trace\na = mg.Value(3.0, 'a')\nb = a * a\nb + 1.0")
    assert result.success
    (bundle,) = bundles(seen)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].startswith("Graph of v₃ = 10.0: 1 leaf, 2 operations, 1 constant.")
    (trace,) = traced(seen)
    assert trace["nodes"]["name"] == {"0": "a", "1": "b"}
    assert [line.split(": ")[1] for line in trace["nodes"]["line"].values()] == ["b = a * a", "b + 1.0"]


def test_trace_plays_what_the_cell_gave_names_to(shell):
    shell.seen("before = mg.Value(1.0) * 2")
    seen, _ = shell.seen("%%trace --static\na = mg.Value(3.0)\nb = a * a\nc = b + 1\nd = a.exp()\nw = [b]")
    (bundle,) = bundles(seen)
    assert "application/vnd.jupyter.widget-view+json" not in bundle
    assert bundle["text/plain"].startswith("Graph of c = 10.0, d = 20.0855:")


def test_trace_shows_what_it_is_asked_for(shell):
    seen, _ = shell.seen("%%trace b, d\na = mg.Value(3.0)\nb = a * a\nd = a.exp()\nb + 1")
    texts = [bundle["text/plain"] for bundle in bundles(seen)]
    assert texts[-1].startswith("Graph of b = 9.0, d = 20.0855:")


def test_a_last_expression_without_a_graph_is_displayed_as_usual(shell):
    seen, _ = shell.seen("%%trace\na = mg.Value(3.0)\nb = a * a\nb.backward()\na.grad")
    assert "6.0" in seen.stdout
    assert traced(seen)[0]["nodes"]["grad"] == {"0": 6.0, "1": 1.0}


def test_trace_of_nothing_and_of_an_unknown_option_say_so(shell):
    seen, result = shell.seen("%%trace\nx = 1")
    assert "no result of this cell has a graph" in str(result.error_in_exec) + seen.stderr + seen.stdout
    seen, result = shell.seen("%%trace --fast\nx = 1")
    assert "unrecognized option --fast" in str(result.error_in_exec) + seen.stderr + seen.stdout


BROKEN = """%%trace --static
a = mg.Value(3.0, 'a')
def scaled(x):
    twice = 2 * x
    return twice + "one"
b = a * a
scaled(b)
"""


def test_trace_of_a_cell_that_raises_shows_what_was_built_and_where_it_broke(shell):
    seen, result = shell.seen(BROKEN)
    assert isinstance(result.error_in_exec, mg.errors.DTypeError)
    (trace,) = traced(seen)
    nodes = trace["nodes"]
    assert nodes["kind"] == "locox"
    assert nodes["name"] == {"0": "a", "1": "b", "3": "twice", "4": "add"}
    assert nodes["value"][4] is None
    assert nodes["line"]["4"].endswith('5: return twice + "one"')
    assert trace["outputs"] == [4]
    assert (trace["edges"]["operand"][-1], trace["edges"]["result"][-1]) == (3, 4)
    (note,) = trace["notes"]
    assert (note["kind"], note["node"]) == ("error", 4)
    assert note["text"].startswith("DTypeError: add: 'one' is a str; expected a real scalar")
    assert "Traceback" in seen.stdout
    assert "twice + " in seen.stdout


def test_an_error_of_the_readers_own_shows_what_was_built(shell):
    seen, result = shell.seen("%%trace --static\na = mg.Value(3.0)\nb = a * a\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    (trace,) = traced(seen)
    (note,) = trace["notes"]
    assert (note["kind"], note["node"]) == ("error", None)
    assert note["text"].startswith("ZeroDivisionError: division by zero (at ")
    assert note["text"].endswith(":4: 1 / 0)")
    seen, result = shell.seen("%%trace\n1 / 0")
    assert bundles(seen) == []
    assert isinstance(result.error_in_exec, ZeroDivisionError)


def test_an_error_deep_in_functions_shows_what_they_had_computed(shell):
    cell = """%%trace --static
a = mg.Value(3.0)
def layer(x):
    hidden = x * a
    return [hidden][1]
def net(x):
    first = x + 1
    return layer(first)
net(a)"""
    seen, result = shell.seen(cell)
    assert isinstance(result.error_in_exec, IndexError)
    (trace,) = traced(seen)
    assert trace["nodes"]["name"] == {"0": "a", "2": "first", "3": "hidden"}
    assert trace["outputs"] == [3]
    assert trace["notes"][0]["text"].endswith(":5: return [hidden][1])")
    assert "notebook.py" not in seen.stdout  # the frames of the magic are hidden


def test_operands_of_a_broken_node_are_those_of_the_operation(shell):
    needs("numpy")
    start = "%%trace --static\nimport minigrad.functional as F\nu = mg.ones(2, 3, requires_grad=True).exp()\n"
    cases = {
        "u.view(4, 4)": ("view", [1]),
        "u.sum(7)": ("sum", [1]),
        "F.cross_entropy(u, mg.tensor([1, 2, 3]))": ("cross_entropy", [1, 2]),
        "F.linear(u, mg.ones(4, 2), mg.ones(4))": ("linear", [1, 2, 3]),
        "mg.cat([u, mg.ones(3, 2)], dim=1)": ("cat", [1, 2]),
        "u + mg.ones(4, 2)": ("add", [1, 2]),
        "mg.Value(2.0) * u": ("mul", [0]),
    }
    for last, (op, operands) in cases.items():
        seen, result = shell.seen(start + last)
        assert not result.success
        (trace,) = traced(seen)
        at = trace["nodes"]["kind"].index("x")
        assert (last, trace["nodes"]["name"][str(at)]) == (last, op)
        assert trace["nodes"]["line"][str(at)].endswith(f":4: {last}")
        ends = [a for a, b in zip(trace["edges"]["operand"], trace["edges"]["result"], strict=True) if b == at]
        assert (last, ends) == (last, operands)


def test_broken_node_lies_in_the_scope_in_which_it_was_called(shell):
    code = """%%trace --static
x = mg.Value(2.0, "x")
for turn in range(2):
    with mg.scope("layer"):
        x = x * 3
        with mg.scope("inner"):
            if turn:
                x + "one"
            x = x.exp()
"""
    seen, _ = shell.seen(code)
    (trace,) = traced(seen)
    blocks, where = trace["blocks"], trace["nodes"]["block"]
    broken = trace["outputs"][0]
    assert [blocks[where[broken]]["name"], blocks[where[broken]]["kind"]] == ["inner", "scope"]
    second = trace["edges"]["operand"][-1]
    assert blocks[where[broken]]["outer"] == where[second] != where[second - 2]  # the second entry of the loop


def test_broken_cell_with_values_and_tensors_shows_those_of_one_kind(shell):
    needs("numpy")
    seen, result = shell.seen("%%trace --static\ns = mg.Value(2.0) * 3\nt = mg.ones(2, requires_grad=True) * 2\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert traced(seen)[0]["nodes"]["name"]["2"] == "s"


def test_a_cell_that_awaits_is_refused_before_it_runs(shell):
    for cell in ("await x", "async with x:\n    pass", "[y async for y in x]"):
        seen, result = shell.seen(f"%%trace\nran = True\n{cell}")
        assert "a cell that uses await cannot be traced" in str(result.error_in_exec) + seen.stderr + seen.stdout
        assert "ran" not in shell.user_ns
    seen, result = shell.seen("%%trace --static\nasync def f():\n    await x\nmg.Value(2.0) * 3")
    assert result.success


def test_what_is_asked_for_has_to_be_there(shell):
    _, result = shell.seen("%%trace nothing\nmg.Value(2.0) * 3")
    assert isinstance(result.error_in_exec, NameError)


def raised(f):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        f()
    return caught.value


def test_failing_call_is_the_last_entry_into_minigrad():
    a = mg.Value(2.0, "a")
    call = failing_call(raised(lambda: a.max("x")))
    assert (call.op, call.operands) == ("maximum", [a, "x"])
    assert failing_call(raised(lambda: 1 / 0)) is None
    assert failing_call(raised(lambda: a.nothing)) is None


def test_failing_call_of_tensors_takes_lists_apart():
    needs("numpy")
    x, y = mg.zeros(2, 3, requires_grad=True), mg.zeros(2)
    call = failing_call(raised(lambda: mg.cat([x, y])))
    assert call.op == "cat"
    assert call.operands[0] is x
    assert call.operands[1] is y


def test_error_without_operands_and_without_results_has_no_picture():
    assert to_broken_trace(raised(lambda: mg.Value("x")), (), []) is None


def test_unload_takes_the_magic_away(shell):
    shell.run_cell("%unload_ext minigrad_viz")
    assert "trace" not in shell.magics_manager.magics["cell"]
    assert mg.Value not in shell.display_formatter.mimebundle_formatter.type_printers
    notebook.load(shell)


def test_a_tensor_with_a_graph_is_drawn_and_one_without_shows_its_numbers(shell):
    needs("numpy")
    shell.seen("x = mg.ones(2, requires_grad=True)")
    _, result = shell.seen("x * 2")
    formatted, _ = shell.display_formatter.format(result.result)
    assert formatted["text/html"].startswith('<figure class="minigrad"')
    formatted, _ = shell.display_formatter.format(mg.ones(2))
    assert formatted == {"text/plain": "tensor([1., 1.])"}


def test_trace_of_tensors_that_do_not_fit_shows_the_shapes(shell):
    needs("numpy")
    cell = "%%trace --static\nw = mg.ones(2, 3, requires_grad=True)\nh = w.exp()\nh @ h"
    seen, result = shell.seen(cell)
    assert isinstance(result.error_in_exec, mg.errors.ShapeError)
    (trace,) = traced(seen)
    assert trace["nodes"]["kind"] == "lox"
    assert trace["notes"][0]["text"].startswith(
        "ShapeError: matmul: mat1 and mat2 shapes cannot be multiplied ((2, 3) @ (2, 3)): the inner sizes"
    )
    assert [trace["edges"][column][-2:] for column in ("operand", "result", "slot")] == [[1, 1], [2, 2], [0, 1]]


@pytest.mark.slow
def test_a_notebook_keeps_the_widget_the_picture_and_the_text():
    import nbclient
    import nbformat

    cells = ["%load_ext minigrad_viz\nimport minigrad as mg", "%%trace\na = mg.Value(3.0)\na * a", "mg.Value(2.0) * 3"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (played,), (drawn,) = (cell["outputs"] for cell in book["cells"][1:])
    assert sorted(played["data"]) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert sorted(drawn["data"]) == ["text/html", "text/plain"]
    assert played["data"]["text/plain"].startswith("Graph of v₁ = 9.0: 1 leaf, 1 operation.")
