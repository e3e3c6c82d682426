"""IPython display: Values are drawn, and ``%%trace`` shows the graph of a cell, or where it failed."""

import json

import pytest

import minigrad as mg
from minigrad_viz.trace.failed_call import failing_call, trace_failure
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
        with capture_output() as captured:
            result = shell.run_cell(cell)
        return captured, result

    shell.run_captured = run
    yield shell
    shell.run_cell("%unload_ext minigrad_viz")
    shell.history_manager.end_session()


def mime_bundles(captured):
    return [output.data for output in captured.outputs]


def shown_traces(captured):
    """Return the traces that a cell showed, as JSON in the figures."""
    traces = []
    for bundle in mime_bundles(captured):
        html = bundle["text/html"]
        traces.append(json.loads(html.split('class="minigrad-trace">')[1].split("</script>")[0]))
    return traces


def test_trace_plays_the_last_expression_with_the_lines_of_the_cell(shell):
    captured, result = shell.run_captured("%%trace\na = mg.Value(3.0, 'a')\nb = a * a\nb + 1.0")
    assert result.success
    (bundle,) = mime_bundles(captured)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].startswith("Graph of v₃ = 10.0: 1 leaf, 2 operations, 1 constant.")
    (trace,) = shown_traces(captured)
    assert trace["nodes"]["name"] == {"0": "a", "1": "b"}
    assert [line.split(": ")[1] for line in trace["nodes"]["line"].values()] == ["b = a * a", "b + 1.0"]


def test_trace_plays_the_variables_of_the_cell(shell):
    shell.run_captured("before = mg.Value(1.0) * 2")
    captured, _ = shell.run_captured("%%trace --static\na = mg.Value(3.0)\nb = a * a\nc = b + 1\nd = a.exp()\nw = [b]")
    (bundle,) = mime_bundles(captured)
    assert "application/vnd.jupyter.widget-view+json" not in bundle
    assert bundle["text/plain"].startswith("Graph of c = 10.0, d = 20.0855:")


def test_trace_shows_the_named_results(shell):
    captured, _ = shell.run_captured("%%trace b, d\na = mg.Value(3.0)\nb = a * a\nd = a.exp()\nb + 1")
    descriptions = [bundle["text/plain"] for bundle in mime_bundles(captured)]
    assert descriptions[-1].startswith("Graph of b = 9.0, d = 20.0855:")


def test_a_last_expression_without_a_graph_is_displayed_as_usual(shell):
    captured, _ = shell.run_captured("%%trace\na = mg.Value(3.0)\nb = a * a\nb.backward()\na.grad")
    assert "6.0" in captured.stdout
    assert shown_traces(captured)[0]["nodes"]["grad"] == {"0": 6.0, "1": 1.0}


def test_trace_without_a_graph_or_with_an_unknown_option_is_rejected(shell):
    captured, result = shell.run_captured("%%trace\nx = 1")
    assert "no result of this cell has a graph" in str(result.error_in_exec) + captured.stderr + captured.stdout
    captured, result = shell.run_captured("%%trace --fast\nx = 1")
    assert "unrecognized option --fast" in str(result.error_in_exec) + captured.stderr + captured.stdout


BROKEN = """%%trace --static
a = mg.Value(3.0, 'a')
def scaled(x):
    twice = 2 * x
    return twice + "one"
b = a * a
scaled(b)
"""


def test_trace_of_a_failed_cell_shows_the_graph_and_the_failed_call(shell):
    captured, result = shell.run_captured(BROKEN)
    assert isinstance(result.error_in_exec, mg.errors.DTypeError)
    (trace,) = shown_traces(captured)
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
    assert "Traceback" in captured.stdout
    assert "twice + " in captured.stdout


def test_user_error_shows_the_graph_so_far(shell):
    captured, result = shell.run_captured("%%trace --static\na = mg.Value(3.0)\nb = a * a\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    (trace,) = shown_traces(captured)
    (note,) = trace["notes"]
    assert (note["kind"], note["node"]) == ("error", None)
    assert note["text"].startswith("ZeroDivisionError: division by zero (at ")
    assert note["text"].endswith(":4: 1 / 0)")
    captured, result = shell.run_captured("%%trace\n1 / 0")
    assert mime_bundles(captured) == []
    assert isinstance(result.error_in_exec, ZeroDivisionError)


def test_error_in_nested_functions_shows_their_results(shell):
    cell = """%%trace --static
a = mg.Value(3.0)
def layer(x):
    hidden = x * a
    return [hidden][1]
def net(x):
    first = x + 1
    return layer(first)
net(a)"""
    captured, result = shell.run_captured(cell)
    assert isinstance(result.error_in_exec, IndexError)
    (trace,) = shown_traces(captured)
    assert trace["nodes"]["name"] == {"0": "a", "2": "first", "3": "hidden"}
    assert trace["outputs"] == [3]
    assert trace["notes"][0]["text"].endswith(":5: return [hidden][1])")
    assert "notebook.py" not in captured.stdout  # the frames of the magic are hidden


def test_failed_node_has_the_operands_of_its_operation(shell):
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
        captured, result = shell.run_captured(start + last)
        assert not result.success
        (trace,) = shown_traces(captured)
        at = trace["nodes"]["kind"].index("x")
        assert (last, trace["nodes"]["name"][str(at)]) == (last, op)
        assert trace["nodes"]["line"][str(at)].endswith(f":4: {last}")
        ends = [a for a, b in zip(trace["edges"]["operand"], trace["edges"]["result"], strict=True) if b == at]
        assert (last, ends) == (last, operands)


def test_failed_node_is_in_the_scope_of_its_call(shell):
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
    captured, _ = shell.run_captured(code)
    (trace,) = shown_traces(captured)
    blocks, block_of = trace["blocks"], trace["nodes"]["block"]
    broken = trace["outputs"][0]
    assert [blocks[block_of[broken]]["name"], blocks[block_of[broken]]["kind"]] == ["inner", "scope"]
    second = trace["edges"]["operand"][-1]
    assert blocks[block_of[broken]]["outer"] == block_of[second] != block_of[second - 2]  # the second entry of the loop


def test_failed_cell_with_values_and_tensors_shows_one_kind(shell):
    needs("numpy")
    captured, result = shell.run_captured(
        "%%trace --static\ns = mg.Value(2.0) * 3\nt = mg.ones(2, requires_grad=True) * 2\n1 / 0"
    )
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert shown_traces(captured)[0]["nodes"]["name"]["2"] == "s"


def test_cell_with_await_is_rejected_before_it_runs(shell):
    for cell in ("await x", "async with x:\n    pass", "[y async for y in x]"):
        captured, result = shell.run_captured(f"%%trace\nran = True\n{cell}")
        assert (
            "a cell that uses await cannot be traced" in str(result.error_in_exec) + captured.stderr + captured.stdout
        )
        assert "ran" not in shell.user_ns
    captured, result = shell.run_captured("%%trace --static\nasync def f():\n    await x\nmg.Value(2.0) * 3")
    assert result.success


def test_unknown_name_raises(shell):
    _, result = shell.run_captured("%%trace nothing\nmg.Value(2.0) * 3")
    assert isinstance(result.error_in_exec, NameError)


def caught(f):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        f()
    return caught.value


def test_failing_call_is_the_last_entry_into_minigrad():
    a = mg.Value(2.0, "a")
    call = failing_call(caught(lambda: a.max("x")))
    assert (call.op, call.operands) == ("maximum", [a, "x"])
    assert failing_call(caught(lambda: 1 / 0)) is None
    assert failing_call(caught(lambda: a.nothing)) is None


def test_failing_call_of_tensors_flattens_lists():
    needs("numpy")
    x, y = mg.zeros(2, 3, requires_grad=True), mg.zeros(2)
    call = failing_call(caught(lambda: mg.cat([x, y])))
    assert call.op == "cat"
    assert call.operands[0] is x
    assert call.operands[1] is y


def test_error_without_operands_and_without_results_has_no_picture():
    assert trace_failure(caught(lambda: mg.Value("x")), (), []) is None


def test_unload_removes_the_magic(shell):
    shell.run_cell("%unload_ext minigrad_viz")
    assert "trace" not in shell.magics_manager.magics["cell"]
    assert mg.Value not in shell.display_formatter.mimebundle_formatter.type_printers
    notebook.load(shell)


def test_tensor_with_a_graph_is_drawn_and_one_without_shows_its_values(shell):
    needs("numpy")
    shell.run_captured("x = mg.ones(2, requires_grad=True)")
    _, result = shell.run_captured("x * 2")
    formatted, _ = shell.display_formatter.format(result.result)
    assert formatted["text/html"].startswith('<figure class="minigrad"')
    formatted, _ = shell.display_formatter.format(mg.ones(2))
    assert formatted == {"text/plain": "tensor([1., 1.])"}


def test_trace_of_mismatched_tensors_shows_the_shapes(shell):
    needs("numpy")
    cell = "%%trace --static\nw = mg.ones(2, 3, requires_grad=True)\nh = w.exp()\nh @ h"
    captured, result = shell.run_captured(cell)
    assert isinstance(result.error_in_exec, mg.errors.ShapeError)
    (trace,) = shown_traces(captured)
    assert trace["nodes"]["kind"] == "lox"
    assert trace["notes"][0]["text"].startswith(
        "ShapeError: matmul: mat1 and mat2 shapes cannot be multiplied ((2, 3) @ (2, 3)): the inner sizes"
    )
    assert [trace["edges"][column][-2:] for column in ("operand", "result", "slot")] == [[1, 1], [2, 2], [0, 1]]


@pytest.mark.slow
def test_notebook_stores_widget_picture_and_text():
    import nbclient
    import nbformat

    cells = ["%load_ext minigrad_viz\nimport minigrad as mg", "%%trace\na = mg.Value(3.0)\na * a", "mg.Value(2.0) * 3"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (played,), (drawn,) = (cell["outputs"] for cell in book["cells"][1:])
    assert sorted(played["data"]) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert sorted(drawn["data"]) == ["text/html", "text/plain"]
    assert played["data"]["text/plain"].startswith("Graph of v₁ = 9.0: 1 leaf, 1 operation.")


def test_trace_plays_a_pytorch_cell(torch, shell):
    shell.run_captured("import torch\nw = torch.tensor([2.0, -1.0], requires_grad=True)")
    captured, result = shell.run_captured("%%trace\ny = w * 3\nloss = y.sum()\nloss.backward()")
    assert result.success
    (trace,) = shown_traces(captured)
    assert set(trace["nodes"]["name"].values()) == {"w", "y", "loss"}
    assert [line.split(": ")[1] for line in trace["nodes"]["line"].values()] == ["y = w * 3", "loss = y.sum()"]
    assert len(trace["passes"][0]["edge"]) == 2


def test_trace_of_a_pytorch_error_shows_the_call(torch, shell):
    shell.run_captured("import torch\nw = torch.ones(2, 3)")
    captured, result = shell.run_captured("%%trace\ny = w * 2\nz = y @ w")
    assert isinstance(result.error_in_exec, RuntimeError)
    (trace,) = shown_traces(captured)
    assert trace["nodes"]["kind"][-1] == "x"
    assert trace["notes"][0]["text"].startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert trace["sentence"].startswith("Graph of matmul, which raised an error")
