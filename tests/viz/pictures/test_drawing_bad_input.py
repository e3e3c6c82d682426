"""Invalid and hostile input gives a correct drawing or a clear error."""

import copy
import json
import math
import pickle
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError, GraphError
from minigrad_viz import draw, explain, export, step, to_graphviz, to_html, to_json, to_svg, to_text, tour
from needs import needs
from player import run_job

ALL = {"draw": draw, "step": step, "to_graphviz": to_graphviz, "to_html": to_html, "to_json": to_json, "to_svg": to_svg}
ALL |= {"to_text": to_text, "tour": lambda x: tour(x, []), "export": lambda x: export(x, "never-written.svg")}

HOSTILE = [
    "</script><script>globalThis.ran=1</script>",
    "<img src=x onerror='globalThis.ran=1'>",
    "\"onload=\"globalThis.ran=1",
    "'><svg onload=globalThis.ran=1>",
    "]]><script>globalThis.ran=1</script><!--",
    "&lt;b&gt;&amp;",
    "${globalThis.ran=1}`",
    "👩‍👩‍👧 😀",
    "שלום עולם",
    "\u202eevil",
    "a\nb\tc\x00d\x1b[31m",
    "\\N\\n\\\"",
    "{a} %s \ue000\ue008",
    "__proto__",
    "x" * 10_000,
]  # fmt: skip


def hostile():
    """Return a graph with hostile labels and a hostile scope."""
    y = mg.Value(1.0, "first")
    for label in HOSTILE:
        y = y * 0.5 + mg.Value(1.0, label)
    with mg.scope("<script>globalThis.ran=1</script>"):
        return y.tanh()


# --- what is not a node ----------------------------------------------------------------------------------------------


class ForeignTensor:
    """An object that resembles a tensor of another library."""

    requires_grad, grad_fn, data, grad = True, None, 1.0, None


@merge_cases
@pytest.mark.parametrize("call", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    ("x", "description"),
    [
        ("loss", "'loss' is a str"),
        (None, "None is a NoneType"),
        (3.0, "3.0 is a float"),
        (1, "1 is an int"),
        ([mg.Value(1.0), "b"], "'b' is a str"),
        ([mg.Value(1.0), None], "None is a NoneType"),
        ([[mg.Value(1.0)]], r"\[Value\(1.0\)\] is a list"),
        ({"y": mg.Value(1.0)}, "is a dict"),
        (ForeignTensor(), "is a ForeignTensor"),
        (mg, "is a module"),
    ],
)
def test_non_nodes_are_rejected_with_advice(call, x, description):
    with pytest.raises(
        DTypeError, match=rf"draw: .*{description}.*, not a Value or a tensor.\n  Draw the result of a computation"
    ):
        call(x)


def test_foreign_arrays_and_lists_without_a_graph_are_rejected():
    import numpy as np

    with pytest.raises(DTypeError, match=r"array\(\[1., 1.\]\) is a ndarray|is an ndarray"):
        draw(np.ones(2))
    with pytest.raises(DTypeError, match="the list is empty"):
        draw([])
    with pytest.raises(DTypeError, match="the list mixes Values and tensors"):
        draw([mg.Value(1.0), mg.ones(2)])


@pytest.mark.parity
def test_a_list_of_tensors_of_both_libraries_is_rejected():
    import torch

    with pytest.raises(DTypeError, match="is a Tensor, not a Value or a tensor"):
        draw([mg.ones(2), torch.ones(2, requires_grad=True)])


# --- another process -------------------------------------------------------------------------------------------------


def test_value_of_another_process_is_drawn():
    program = """
import pickle, sys, minigrad as mg
with mg.scope("there"):
    a = mg.Value(3.0, "a")
(a * a).backward()
sys.stdout.buffer.write(pickle.dumps(a))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    a = pickle.loads(done.stdout)
    text = to_text(a * a + 1.0)
    assert text.splitlines()[2].split() == ["0", "a", "leaf", "there", "3.0", "6.0"]
    assert json.loads(to_json(a * a))["nodes"]["value"] == [3.0, 9.0]
    assert to_svg(a * a).startswith("<svg")


def test_pickling_a_computed_node_raises_with_advice():
    a = mg.Value(3.0, "a")
    for carry in (pickle.dumps, copy.deepcopy):
        with pytest.raises(GraphError, match=r"computed by mul and is not a leaf.*\n.*detach\(\)"):
            carry(a * a)
        assert carry((a * a).detach()) is not None
    needs("numpy")
    with pytest.raises(GraphError, match=r"detach\(\)"):
        pickle.dumps(mg.ones(2, requires_grad=True) * 2)


# --- labels ----------------------------------------------------------------------------------------------------------


class MarkupParser(HTMLParser):
    """Collects the elements of a page, and the attributes that could execute code."""

    def __init__(self):
        super().__init__()
        self.tags, self.handlers = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [
            name for name, value in attrs if name.startswith("on") or (value or "").startswith("javascript:")
        ]


def test_labels_are_escaped_in_every_format():
    y = hostile()
    text = to_text(y)
    assert not any(letter < " " and letter != "\n" for letter in text)
    assert max(map(len, text.splitlines())) < 600
    svg = to_svg(y)
    inside = ElementTree.fromstring(svg)
    assert not [part for part in inside.iter() if part.tag.endswith(("script", "img", "foreignObject"))]
    assert not [name for part in inside.iter() for name in part.attrib if name.startswith("on")]
    for page, scripts in ((to_html(y), 2), (draw(y)._repr_mimebundle_()["text/html"], 1)):
        parser = MarkupParser()
        parser.feed(page)
        assert parser.handlers == []
        assert parser.tags.count("script") == scripts
        assert parser.tags.count("img") == (scripts == 1)
    assert json.loads(to_json(y))["nodes"]["name"]["3"] == HOSTILE[0]  # JSON is data; whoever displays it escapes it


def test_traits_of_leaves_are_short_identifiers():
    leaves = step(hostile()).leaves
    assert len(leaves) == 1 + len(HOSTILE)
    assert {name for name in leaves if not name.isidentifier() or len(name) > 60} == set()
    assert leaves["leaf_proto"][0] == "__proto__"


def test_labels_are_not_interpreted_by_graphviz():
    source = to_graphviz(hostile()).source
    assert "label=<" not in source  # an HTML-like label
    assert len(source) < 100_000
    needs("dot")
    drawn = subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=True)
    assert drawn.stderr == b""
    assert not [part for part in ElementTree.fromstring(drawn.stdout).iter() if part.tag.endswith("script")]


def test_graphviz_shows_labels_verbatim():
    name = r"&lt;b&gt; &amp;amp; &colon; \N\n\G \\ end"
    needs("dot")
    source = to_graphviz(mg.Value(2.0, name).exp()).source
    drawn = subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=True)
    parts = list(ElementTree.fromstring(drawn.stdout).iter())
    assert name in [part.text for part in parts]
    assert f"{name}: 2.0" in [part.get("{http://www.w3.org/1999/xlink}title") for part in parts]


def test_line_breaks_in_labels_are_escaped():
    for end in "\n\r\v\f\x85\u2028\u2029":
        assert len(to_text(mg.Value(1.0, f"one{end}two")).splitlines()) == 3
        assert "one two" in to_svg(mg.Value(1.0, f"one{end}two"))


def test_class_names_that_contain_markup_are_escaped():
    needs("numpy")
    from minigrad_viz import watch

    called = "<b>\x1b[2J&'x"
    double = {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, g: g * 2)}
    y = type(called, (mg.autograd.Function,), double).apply(mg.ones(2, requires_grad=True)).sum()
    with mg.scope("a scope"):
        y = y * 2
    for text in (to_svg(y), to_text(y), to_html(y)):
        assert "b___2J__x(" in text
        assert "_b___2J__x(" not in text
    ElementTree.fromstring(to_svg(y))
    model = type(called, (mg.nn.Sequential,), {})(type(called, (mg.nn.ReLU,), {})())
    watcher = watch(model)
    assert "<b>\ufffd[2J&'x: no step yet" in [part.text for part in ElementTree.fromstring(watcher.svg()).iter()]
    assert "\x1b" not in repr(watcher) + watcher._repr_mimebundle_()["text/html"]


def test_captions_of_a_tour_are_single_encodable_lines(tmp_path):
    player = tour(mg.Value(1.0, "a").exp(), [("start", "half \ud83d\nof a letter\x00")])
    export(player, tmp_path / "y.html")
    assert json.loads(player.trace_text)["tours"] == [{"at": 0, "text": "half \ufffd of a letter\ufffd"}]


def test_player_parses_labels():
    (result,) = run_job(graphs=[{"trace": json.loads(to_json(hostile())), "runs": [[[0, 1.0]]]}])["graphs"]
    assert result["runs"][0]["value"][0] == 1.0


# --- values ----------------------------------------------------------------------------------------------------------


def test_nan_and_infinities_are_drawn_and_reported():
    n, i = mg.Value(math.nan, "n"), mg.Value(math.inf, "i")
    z = n * 2 + i - i
    assert "n is the first NaN" in to_text(z)
    data = json.loads(to_json(z))
    assert data["nodes"]["value"][0] == "NaN"
    assert "Infinity" in data["nodes"]["value"]
    assert step(z).leaves == {}  # NaN and infinities in JSON cannot be linked
    for call in (to_svg, to_html, to_graphviz):
        assert call(z)
    assert str(explain(n, of=z)).startswith("n = NaN, a leaf")


def test_missing_gradient_is_a_dash_not_zero():
    a = mg.Value(2.0, "a")
    y = a * 3
    assert to_text(y).splitlines()[2].split() == ["0", "a", "leaf", "2.0", "—"]
    assert json.loads(to_json(y))["nodes"]["state"] == "nbn"
    with mg.no_grad():
        z = a * 3
    assert "leaf" in to_text(z)
    assert json.loads(to_json(z))["passes"][0]["edge"] == []


# --- tensors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), ()])
def test_empty_and_zero_dimensional_tensors_are_drawn(shape):
    needs("numpy")
    with mg.record():
        x = mg.zeros(*shape, requires_grad=True)
        y = (x * 2 + 1).sum()
        y.backward()
    text = to_text(y)
    assert ("empty" in text) == (0 in shape)
    for call in (to_svg, to_html, to_json, to_graphviz, step):
        assert call(y)
    assert str(explain(x, of=y))


def test_freed_graph_is_recomputed_except_after_a_freed_large_constant():
    needs("numpy")
    x = mg.ones(100, 100, requires_grad=True)
    y = (x * 2).exp().sum()
    y.backward()
    for text in (to_text(y), to_html(y), str(explain(x, of=y))):
        assert "was freed" not in text
    assert len(step(y).trace.passes[0].edge) == 3
    y = (x * mg.ones(100, 100)).exp().sum()
    y.backward()
    for text in (to_text(y), to_html(y), str(explain(x, of=y))):
        assert "cannot be recomputed: operand b of mul was freed" in text
        assert "mg.record()" in text
    data = json.loads(to_json(y))
    assert sorted(data["nodes"]["kind"]) == list("clooo")
    assert len(data["edges"]["operand"]) == 4
    assert step(y).trace.passes == []


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_graph_of_a_hundred_thousand_nodes_is_drawn_in_every_format():
    a = mg.Value(1.0, "a")
    y = a
    for _ in range(50_000):
        y = y * a + a
    drawing = draw(y)
    assert len(drawing.trace.kinds) == 100_001
    assert "nodes left out" in drawing.text()
    assert len(drawing.svg()) < 1_000_000
    assert len(drawing._repr_mimebundle_()["text/html"]) < 2_000_000
    player = step(drawing)
    assert len(player.trace_packed) < 8_000_000
    lines = str(explain("a", of=drawing)).splitlines()
    assert lines[1] == "∂y/∂a, the gradient of a, adds up 100,001 contributions:"
    assert lines[7] == "  … 99,991 contributions left out …"
    assert len(lines) == 14
