"""Export to TikZ: it compiles, and user names are escaped."""

import re
import subprocess

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad_viz import draw
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.pictures.tex import format_formula
from minigrad_viz.trace.notation import make_formula, product_formula
from needs import needs

HOSTILE = [
    r"\input{/etc/passwd}",
    r"100% & more_#1$^~{}",
    "\\",
    "}}{{",
    "w_1",
    "w₁₂",
    "α′",
    "Łódź é ñ",
    "重み 👩‍👩‍👧‍👦",
    "a — b … c",
    "x<y>z|\"q'",
    "",
    " ",
    "$",
    "\\end{document}",
    "x" * 300,
    "two\nlines",
    "w[0, 1]",
    "blocks.0.weight",
]


def tex(x, **options):
    return draw(x, **options).tex()


def neuron():
    w, x, b = mg.Value(-2.0, "w_1"), mg.Value(3.0, "x"), mg.Value(6.0, "b")
    z = w * x + b
    z.label = "z"
    y = z.sigmoid()
    y.label = "y"
    y.backward()
    return y


def has_balanced_braces(source):
    """Return whether unescaped braces are balanced."""
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", re.sub(r"(?<!\\)%.*", "", source)):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.fixture
def compile_document(tmp_path):
    """Compile a document with the available engine and return its number of pages and their size in points."""

    def run(source, engine="pdflatex", warn=True):
        needs(engine)
        (tmp_path / "y.tex").write_text(source, encoding="utf-8")
        command = [engine, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "y.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        log = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, log[-3000:]
        assert not warn or not re.findall("Overfull|(?:LaTeX|Package) .*Warning", log)
        return int(re.search(r"Output written on y\.pdf \((\d+) page", log)[1])

    return run


def test_document_needs_only_amsmath_and_tikz():
    source = tex(neuron())
    assert re.findall(r"\\usepackage(?:\[.*?\])?\{(.*?)\}", source) == ["amsmath", "tikz"]
    assert source.startswith("% A graph drawn by minigrad_viz")


def test_nodes_edges_values_and_gradients_are_in_math_mode():
    source = tex(neuron())
    cards = re.findall(
        r"\\mgcard\{(n\d)\}\{(\w+)\}\{[\d.,]+\}\{[\d.]+pt\}\{(.*?)\}\{(\$.*?\$)\}\{(\$.*?\$)\}\n", source
    )
    assert cards == [
        ("n0", "leaf", "$w_{1}$", "$-2.0$", "$0.75$"),
        ("n1", "leaf", "$x$", "$3.0$", "$-0.5$"),
        ("n2", "op", r"$v_{2} = w_{1} \cdot x$", "$-6.0$", "$0.25$"),
        ("n3", "leaf", "$b$", "$6.0$", "$0.25$"),
        ("n4", "op", "$z = v_{2} + b$", "$0.0$", "$0.25$"),
        ("n5", "output", r"$y = \sigma\mathopen{}\left(z\right)$", "$0.5$", "$1.0$"),
    ]
    edges = re.findall(r"\\draw\[edge, (\w+), line width=([\d.]+)pt, opacity=([\d.]+)\]", source)
    assert edges == [
        ("mgpositive", "3.75", "1.00"),
        ("mgnegative", "3.2", "0.92"),
        ("mgpositive", "2.48", "0.81"),
        ("mgpositive", "2.48", "0.81"),
        ("mgpositive", "2.48", "0.81"),
    ]
    labels = re.findall(r"\\node\[local\] at \([\d.,]+\) \{(.*)\};", source)
    assert labels == ["$x = 3.0$", "$w_{1} = -2.0$", "$1.0$", "$1.0$", "$0.25$"]


def test_step_shows_computed_values_and_active_marks():
    source = draw(neuron(), step=6).tex()
    assert "{leaf}" in source
    assert "{---}" in source
    assert r"\node[pill] at" in source
    assert r"{$0.25 \times 1.0 = 0.25$};" in source
    assert source.count("edge, done") == 1
    assert draw(neuron(), step=0).tex().count("}{pale}{") == 3


def test_themes_differ_in_colours_and_dark_has_a_background():
    light, dark = (draw(neuron()).tex(theme=theme) for theme in ("light", "dark"))
    assert f"\\definecolor{{mgleaf}}{{HTML}}{{{LIGHT['leaf'][1:].upper()}}}" in light
    assert f"\\definecolor{{mgleaf}}{{HTML}}{{{DARK['leaf'][1:].upper()}}}" in dark
    assert ("\\fill[mgpage] (-18" in light, "\\fill[mgpage] (-18" in dark) == (False, True)
    assert "\\definecolor{mgpage}{HTML}{FFFFFF}" in light


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_name_is_escaped(label):
    a = mg.Value(2.0, label)
    source = tex(a * a)
    assert has_balanced_braces(source)
    assert source.count("\\begin{") == tex(mg.Value(2.0, "a") * 3.0).count("\\begin{")
    assert source.count("\\end{document}") == 1
    assert "\\input" not in source
    body = source[source.index("\\begin{tikzpicture}") :]
    assert not re.search(r"(?<!\\)[#&]", body)
    assert all(c.isascii() or c in "éñó" for c in body)


def test_hostile_names_compile(compile_document):
    y = mg.Value(1.0, "y")
    for label in HOSTILE:
        with mg.scope(label or "empty"):
            y = y + mg.Value(2.0, label)
    assert compile_document(draw(y, expand=True).tex()) == 1


@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
@pytest.mark.parametrize("step", [None, 0, 6])
def test_drawing_compiles_to_one_page(compile_document, engine, step):
    assert compile_document(draw(neuron(), step=step).tex(), engine) == 1


def test_formula_of_every_operation_compiles(compile_document):
    needs("numpy")
    import minigrad.functional  # noqa: F401  # whose operations are in the table then

    rules = []
    for op in mg.OPS.values():
        rules.append(format_formula(make_formula(op, op.inputs)))
        slots = range(0 if op.variadic else len(op.inputs))
        formulas = [product_formula(op, slot, "y", op.inputs, {}) for slot in slots]
        rules += [format_formula(rule) for rule in formulas if rule is not None]
    page = tex(mg.Value(2.0, "a"))
    begin, end = page.index("\\begin{tikzpicture}"), page.index("\\end{document}")
    lines = "".join(f"${rule}$\n\n" for rule in rules)
    assert len(rules) > 300
    assert compile_document(f"{page[:begin]}{lines}{page[end:]}", warn=False) >= 1


def test_tensors_blocks_and_alarms_compile(compile_document):
    needs("numpy")
    with mg.record(), mg.scope("layer_1"):
        x = mg.tensor([[1.0, float("nan")], [2.0, -3.0]], requires_grad=True)
        y = (x * 2.0).sum()
    y.backward()
    source = draw(y).tex()
    assert r"\text{layer" not in source
    assert r"\textbf{layer\_1}" in source
    assert source.count("\\begin{scope}") >= 2
    assert "alarm" in source
    assert compile_document(source) == 1
