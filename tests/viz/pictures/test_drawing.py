"""Display in notebooks and terminals and export to files, which are deterministic."""

import base64
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, MissingFileError
from minigrad_viz import Drawing, draw, export, to_html, to_svg, to_text
from minigrad_viz.pictures.palette import DARK, LIGHT
from needs import needs

ROOT = Path(__file__).parents[3]


def run_python(code: str, **environment: str) -> str:
    """Run `code` in a new Python process and return its output."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "viz")])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


ALL_FORMATS_PROGRAM = """
import minigrad as mg, minigrad_viz as v
w = [mg.Value(0.1 * n) for n in range(7)]
y = sum((w[n] * w[n + 1]).tanh() for n in range(6)) / w[3].detach()
y.backward()
z = mg.Value(2.0, "z")
for _ in range(300):
    z = (z * y).sin()
for n in range(9):
    with mg.scope("layer"), mg.scope(f"neuron{n}"):
        z = (z * y).sin()
with mg.record(), mg.scope("net"):
    t = (mg.arange(12.0).reshape(3, 4).requires_grad_() * 2.0).tanh().sum()
t.backward()
for x in (y, z, t):
    d = v.draw(x)
    print(d.svg(), d.html(), d.text(), d.json(), d.graphviz().source, d._repr_mimebundle_())
"""


def test_output_is_the_same_bytes_under_another_hash_seed():
    assert run_python(ALL_FORMATS_PROGRAM, PYTHONHASHSEED="1") == run_python(ALL_FORMATS_PROGRAM, PYTHONHASHSEED="2")


def test_import_loads_neither_numpy_nor_graphviz_nor_widgets_nor_ipython():
    heavy = "{'numpy', 'graphviz', 'ipywidgets', 'IPython', 'anywidget', 'taichi'}"
    assert run_python(f"import sys, minigrad_viz; print({heavy} & set(sys.modules))") == "set()\n"


def test_long_chain_is_drawn_far_below_its_depth_in_stack():
    code = """
import sys, minigrad as mg, minigrad_viz as v
y = mg.Value(1.0, "x")
for _ in range(5000):
    y = (y + 1.0).tanh()
v.draw(mg.Value(1.0) * 2.0)._repr_mimebundle_()
sys.setrecursionlimit(100)
d = v.draw(y)
print(len(d._repr_mimebundle_()), len(d.html()) > 0, len(d.json()) > 0)
"""
    assert run_python(code) == "2 True True\n"


class FigureParser(HTMLParser):
    """Collects the elements of a fragment, with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.contents.append(data)


def test_mime_bundle_has_the_drawing_as_image_and_the_trace_as_data():
    a = mg.Value(3.0, "a<b>'\"")
    drawing = draw(a * a)
    bundle = drawing._repr_mimebundle_()
    assert sorted(bundle) == ["text/html", "text/plain"]
    assert bundle["text/plain"] == to_text(a * a)
    figure = FigureParser(bundle["text/html"])
    assert [tag for tag, _ in figure.elements] == ["figure", "img", "script"]
    image = figure.elements[1][1]
    assert image["alt"] == "Graph of v₁ = 9.0: 1 leaf, 1 operation."
    kind, encoded = (image["src"] or "").split(",")
    assert kind == "data:image/svg+xml;base64"
    assert ET.fromstring(base64.b64decode(encoded)).get("class") == "mg"
    assert figure.elements[2][1]["type"] == "application/json"
    assert json.loads(figure.contents[0])["nodes"]["name"]["0"] == "a<b>'\""


def test_wide_drawing_is_an_overview_that_explains_how_to_zoom():
    y = mg.Value(1.0, "x")
    for _ in range(30):
        y = (y + 1.0).tanh()
    assert "<figcaption>An overview: to zoom in, open the page" in draw(y)._repr_mimebundle_()["text/html"]
    assert "<figcaption>" not in draw(mg.Value(1.0, "x") + 1.0)._repr_mimebundle_()["text/html"]


def test_drawing_is_a_snapshot_of_gradients():
    a = mg.Value(3.0, "a")
    y = a * a
    drawing = draw(y)
    y.backward()
    assert repr(drawing).splitlines()[2] == "0  a     leaf      3.0     —"


def test_every_format_accepts_a_drawing():
    drawing = draw(mg.Value(3.0, "a") * 2.0)
    assert to_svg(drawing) == drawing.svg()


@pytest.mark.parametrize("suffix", ["svg", "html", "txt", "json", "tex", "dot", "gv"])
def test_save_writes_the_format_of_the_suffix(tmp_path, suffix):
    drawing = draw(mg.Value(3.0, "α") * 2.0)
    drawing.save(tmp_path / f"graph.{suffix}")
    written = (tmp_path / f"graph.{suffix}").read_text(encoding="utf-8")
    dot = str(drawing.graphviz().source)
    assert written == {"txt": drawing.text(), "dot": dot, "gv": dot}.get(suffix) or getattr(drawing, suffix)()


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_save_writes_png_pdf_and_tikz(tmp_path, suffix):
    needs("typst")
    drawing = draw(mg.Value(3.0, "α") * 2.0)
    drawing.save(tmp_path / f"graph.{suffix.upper()}")
    written = (tmp_path / f"graph.{suffix.upper()}").read_bytes()
    assert written == getattr(drawing, suffix)()
    assert written.startswith({"png": b"\x89PNG", "pdf": b"%PDF-1."}[suffix])


def test_save_rejects_an_unsupported_suffix(tmp_path):
    for name in ("graph.bmp", "graph", ".png"):
        with pytest.raises(ArgumentError) as raised:
            draw(mg.Value(3.0)).save(tmp_path / name)
        assert str(raised.value) == (
            f"save: {str(tmp_path / name)!r} has no supported suffix.\n"
            "  Use one of .svg, .png, .pdf, .tex, .html, .txt, .json, .dot, .gv."
        )
    assert list(tmp_path.iterdir()) == []


def test_save_rejects_options_that_the_format_does_not_support(tmp_path):
    drawing = draw(mg.Value(3.0))
    with pytest.raises(ArgumentError, match=r"^save: \.svg files have no option 'scale'\.\n  It applies to \.png\.$"):
        drawing.save(tmp_path / "graph.svg", scale=2)
    with pytest.raises(
        ArgumentError, match=r"^save: \.txt files have no option 'theme'\.\n  It applies to \.svg, \.png, "
    ):
        drawing.save(tmp_path / "graph.txt", theme="dark")


def test_save_reports_a_missing_directory(tmp_path):
    with pytest.raises(MissingFileError) as raised:
        draw(mg.Value(3.0)).save(tmp_path / "figures" / "graph.svg")
    folder = str(tmp_path / "figures")
    assert str(raised.value) == (
        f"save: directory {folder!r} of 'graph.svg' does not exist.\n  Create it first: os.makedirs({folder!r})."
    )


@pytest.mark.parametrize(("theme", "palette", "other"), [("light", LIGHT, DARK), ("dark", DARK, LIGHT)])
def test_theme_of_a_page_overrides_the_users_theme(theme, palette, other):
    page = draw(mg.Value(3.0, "a") * 2.0).html(theme)
    before = page[: page.index("<script")]
    assert f'<html lang="en" data-theme={theme}>' in page
    assert "prefers-color-scheme" not in before
    assert (palette["page"] in before, other["page"] in before) == (True, False)


def test_export_preserves_the_step_and_options_of_a_drawing(tmp_path):
    a = mg.Value(3.0, "a")
    drawing = draw(a * a, step=3)
    export(drawing, tmp_path / "step.svg", theme="dark")
    assert (tmp_path / "step.svg").read_text(encoding="utf-8") == drawing.svg("dark")
    export(a * a, tmp_path / "graph.svg", theme="light")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == draw(a * a).svg("light")


def test_page_makes_no_requests():
    a = mg.Value(3.0, "a")
    page = to_html(a * a)
    links = re.findall(r"https?://[^\s\"'<)]+", page)
    names = ("2000/svg", "1998/Math/MathML", "1999/xhtml")  # XML namespaces, which are not fetched
    assert set(links) <= {f"http://www.w3.org/{name}" for name in names}
    assert not re.search(r"\s(?:src|href)=|url\(|@import", page)


def test_page_shows_each_step_of_the_chain_rule():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    text = re.sub(r"<[^>]+>", "", to_html(a * b + a))
    assert "1.0 × (−3.0) = −3.0" in text
    assert "Σ 2 of 2 −2.0" in text


def test_page_shows_the_backward_pass_of_each_output():
    a = mg.Value(2.0, "a")
    y, z = a * 3.0, a * 5.0
    page = to_html([y, z])
    assert re.findall(r"<h2>Backward from (\w+):", page) == ["y", "z"]
    assert "1.0 × 3.0 = <b>3.0</b>" in page
    assert "1.0 × 5.0 = <b>5.0</b>" in page


def test_long_tables_of_a_page_show_their_first_and_last_rows():
    y = mg.Value(1.0, "x")
    for _ in range(600):
        y = -y
    page = to_html(y)
    nodes, steps = page.split("<h2>")[1:]
    assert "… 201 nodes left out …" in nodes
    assert "… 200 steps left out …" in steps
    shown = [*range(200), *range(401, 601)]
    assert [int(n) for n in re.findall(r"<tr class='\w+'><td class='r dim'>(\d+)<", nodes)] == shown
    assert [int(n) for n in re.findall(r"<tr><td class='r dim'>(\d+)<", steps)] == [*range(1, 201), *range(401, 601)]


def test_zoom_buttons_resize_the_drawing():
    page = to_html(mg.Value(3.0, "a") * 2.0)
    width = int(re.search(r'<svg [^>]*?width="(\d+)"', page)[1])
    for key, size in (("half", round(width / 2)), ("full", width), ("twice", 2 * width)):
        assert f"#{key}:checked~.view svg{{width:{size}px}}" in page
        assert f'id="{key}"' in page
        assert f'for="{key}"' in page
    assert "#fit:checked~.view svg{width:100%}" in page


def test_page_is_written_to_its_path(tmp_path):
    a = mg.Value(3.0, "a")
    text = to_html(a * a, path=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == text.encode()


def test_graphviz_source_has_each_edge_and_its_derivative():
    a = mg.Value(3.0, "a")
    lines = draw(a * a).graphviz().source.splitlines()
    assert lines.count('\tn0 -> n1 [label="a = 3.0"]') == 2
    assert any(line.startswith('\tn1 [label="v₁ = a · a\\ndata 9.0\\ngrad —"') for line in lines)


def test_graphviz_draws_edges_without_gradients_dotted():
    source = draw(mg.Value(3.0, "a") * 2.0).graphviz().source
    assert [line for line in source.splitlines() if "->" in line] == [
        "\tn0 -> n2 [label=2.0]",
        '\tn1 -> n2 [label="" style=dotted]',
    ]


def test_graphviz_marks_non_finite_values():
    source = draw(mg.log(mg.Value(0.0, "a"))).graphviz().source
    marked = [line.split()[0] for line in source.splitlines() if "penwidth=2.5" in line]
    assert marked == ["n1"]


# --- IPython ---


@pytest.fixture
def shell():
    needs("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    yield shell
    InteractiveShell.clear_instance()


def test_extension_draws_a_value_named_after_the_users_variables(shell):
    shell.run_cell("import minigrad as mg\nw = mg.Value(2.0)\ny = w * w", store_history=False)
    shell.extension_manager.load_extension("minigrad_viz")
    try:
        data, _ = shell.display_formatter.format(shell.user_ns["y"])
        assert data["text/plain"].startswith("Graph of y = 4.0: 1 leaf, 1 operation.\n")
        assert data["text/html"].startswith('<figure class="minigrad"')
    finally:
        shell.extension_manager.unload_extension("minigrad_viz")
    data, _ = shell.display_formatter.format(shell.user_ns["y"])
    assert data == {"text/plain": "Value(4.0)"}


def test_unloading_restores_the_previous_printer(shell):
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(mg.Value, lambda value: {"text/plain": "mine"})
    shell.extension_manager.load_extension("minigrad_viz")
    shell.extension_manager.unload_extension("minigrad_viz")
    assert shell.display_formatter.format(mg.Value(1.0))[0]["text/plain"] == "mine"


def test_drawing_is_displayed_by_its_mime_bundle(shell):
    data, _ = shell.display_formatter.format(draw(mg.Value(1.0, "x")))
    assert isinstance(draw(mg.Value(1.0)), Drawing)
    assert sorted(data) == ["text/html", "text/plain"]


def test_save_rejects_a_non_path(tmp_path):
    drawing = draw(mg.Value(1.0) * 2)
    with pytest.raises(mg.errors.DTypeError, match=r"save: 3 is an int, not a path\."):
        drawing.save(3)
    with pytest.raises(mg.errors.ArgumentError, match="has no supported suffix"):
        drawing.save(tmp_path / "x.doc")
