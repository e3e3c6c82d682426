"""Pages generated from the code: the architecture diagram, the tables of measurements, and excerpts of files."""

import ast
import importlib.util
import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

import minigrad as mg
import minigrad.lessons
import torture
from needs import needs

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
PAGES = [*BOOK.glob("*.md"), *(BOOK / "how").glob("*.md")]


def load_module(name, path):
    """Load a module outside any package, under a unique name, so that it shadows none of the standard library."""
    spec = importlib.util.spec_from_file_location(f"book_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def imports():
    needs("sphinx")
    return load_module("imports", BOOK / "_ext" / "imports.py")


@pytest.fixture(scope="module")
def measured():
    needs("sphinx")
    return load_module("measured", BOOK / "_ext" / "measured.py")


@pytest.fixture(scope="module")
def architecture():
    return load_module("architecture", ROOT / "tests" / "project" / "test_architecture.py")


# --- the architecture diagram ---------------------------------------------------------------------------------------


def test_the_diagram_has_each_package_and_arrow_once(imports, architecture):
    graph = imports.import_graph()
    svg = imports.render_svg(graph)
    packages = re.findall(r'data-subpackage="([^"]+)"', svg)
    assert len(set(packages)) == len(packages)
    assert {*architecture.PACKAGES} - {"__init__", "backends"} <= set(packages)
    assert {f"backends.{name}" for name in architecture.BACKENDS} <= set(packages)
    assert {"minigrad", "minigrad_viz"} <= set(packages)
    assert re.findall(r'data-from="([^"]+)" data-to="([^"]+)"', svg) == imports.layout_graph(graph)[1]
    assert sorted(imports.layout_graph(graph)[1]) == sorted(imports.direct_imports(graph))


def test_no_arrow_violates_the_architecture(imports, architecture):
    levels = {name: level for level, name in enumerate(architecture.PACKAGES)}
    levels |= {f"backends.{name}": levels["backends"] + k / 100 for k, name in enumerate(architecture.BACKENDS)}
    levels["minigrad"], levels["minigrad_viz"] = levels.pop("__init__"), levels["cli"] - 0.5
    for name, others in imports.import_graph().items():
        for other in others:
            assert levels[name] > levels[other], f"{name} imports {other}"


def test_the_graph_equals_that_of_the_architecture_test(imports, architecture):
    graph, imported = imports.import_graph(), {}
    for module, path in architecture.MODULES.items():
        others = {imports.subpackage_of(architecture.MODULES[name]) for name in architecture.imports_of(module)}
        imported.setdefault(imports.subpackage_of(path), set()).update(others)
    for name, others in graph.items():
        assert imported[name] & graph.keys() - {name, "minigrad"} == others - {"minigrad"}, name


def test_omitted_arrows_are_implied_by_the_drawn_ones(imports):
    graph = imports.import_graph()
    drawn = {name: {b for a, b in imports.direct_imports(graph) if a == name} for name in graph}

    def descendants(name):
        return drawn[name].union(*(descendants(other) for other in drawn[name]))

    assert all(graph[name] <= descendants(name) for name in graph)
    assert sum(map(len, drawn.values())) < sum(map(len, graph.values())) / 2


def test_arrows_point_down_and_boxes_do_not_overlap(imports):
    order, drawn, layout = imports.layout_graph(imports.import_graph())
    centers = dict(zip(order, layout.centers, strict=True))
    assert all(centers[name][0] > centers[other][0] for name, other in drawn)
    widths = {name: imports._box_width(name) for name in order}
    rows = {}
    for name in order:
        rows.setdefault(centers[name][0], []).append(
            (centers[name][1] - widths[name] / 2, centers[name][1] + widths[name] / 2)
        )
    for row in rows.values():
        row.sort()
        assert all(one[1] < other[0] for one, other in pairwise(row))


def test_colours_have_enough_contrast(imports):
    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for names in (imports.LIGHT, imports.DARK):
        rules = dict(re.findall(r"--([\w-]+):(#\w{6})", imports._color_rules(names)))
        for kind in ("plain", "kernels", "top"):
            light, dark = sorted((luminance(rules[kind]), luminance(rules[f"on-{kind}"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_contributing_lists_the_packages_in_import_order(imports):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| folder |")[0]
    rows = [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in text.splitlines() if line.startswith("| `")]
    rows = [[name.removeprefix("minigrad/").removesuffix(".py").strip("/") for name in row] for row in rows]
    levels = {"minigrad" if name == "__init__" else name: level for level, row in enumerate(rows) for name in row}
    graph = {
        name: others
        for name, others in imports.import_graph().items()
        if not name.startswith(("backends", "minigrad_"))
    }
    del levels["backends"]
    assert levels.keys() == graph.keys()
    for name, others in graph.items():
        upward = {other for other in others & levels.keys() if levels[other] > levels[name]}
        assert not upward, f"{name} imports {upward}"


QUOTED = re.compile(r"\{result\}`([^`]+)`")

# --- figures ---------------------------------------------------------------------------------------------------------


def results():
    return (ROOT / "benchmarks" / "results.txt").read_text(encoding="utf-8")


def test_every_line_of_the_results_is_a_row_of_a_table(measured):
    runs = measured.parse_runs(results())
    lines = [
        line for line in results().splitlines() if " | " in line and not line.startswith(("#", "benchmarks print"))
    ]
    assert sum(len(run.rows) for run in runs) == len(lines)
    for run in runs:
        assert (ROOT / "benchmarks" / run.command.split()[0]).is_file()
        assert re.match(r"\d{4}-\d\d-\d\d, ", run.notes[0]), f"{run.command}: the date and the machine are missing"


def test_results_are_marked_held_or_not(measured):
    for run in measured.parse_runs(results()):
        for label, figure, limit, verdict, _ in run.rows:
            if limit == "–":
                assert verdict == "–", label
                continue
            measured_value, bar = (
                float(text.split()[0].replace(",", "")) for text in (figure, limit[len("at least") :])
            )
            assert verdict == (
                "held" if (measured_value >= bar if limit.startswith("at least") else measured_value <= bar) else "NOT"
            ), label


def test_every_benchmark_that_was_run_is_on_the_page(measured):
    text = (BOOK / "performance.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^```\{measured\} (\S+)$", text, flags=re.MULTILINE))
    assert shown == {run.command.split()[0] for run in measured.parse_runs(results())}


def test_benchmarks_print_lines_in_the_stored_format(measured, capsys):
    report = load_module("report", ROOT / "benchmarks" / "report.py")
    assert report.row("matmul, NumPy", "0.68", "0.8", at_least=True, comment="results differ by 5e-07")
    assert not report.row("import minigrad", "0.028 s", "0.15")
    printed = capsys.readouterr().out
    rows = measured.parse_runs(f"# bench.py\n# 2026-01-01, here\n{printed}")[0].rows
    assert rows == [
        ["matmul, NumPy", "0.68", "at least 0.8", "NOT", "results differ by 5e-07"],
        ["import minigrad", "0.028 s", "at most 0.15", "held", ""],
    ]


def test_a_line_of_another_form_is_refused(measured):
    with pytest.raises(ValueError, match=r"bench\.py: expected 'name \| result"):
        measured.parse_runs("# bench.py\n# 2026-01-01\na step: 3 ms\n")


def shown_commands(measured, **options):
    """Return the commands of the runs of bench_eager that a page shows with these options."""
    directive = object.__new__(measured.MeasuredDirective)
    directive.arguments, directive.options = ["bench_eager.py"], options
    directive.state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=mock.Mock())))
    return [node.astext() for node in directive.run() if node.tagname == "paragraph"]


def test_a_page_that_requests_too_many_runs_raises(measured):
    assert shown_commands(measured, last=1)
    for options in ({"last": 1000}, {"before": 1000}, {"last": 1, "before": 1}):
        with pytest.raises(
            measured.ExtensionError, match=r"results\.txt has only \d+ runs of 'bench_eager\.py' on cpu"
        ):
            shown_commands(measured, **options)


SAMPLE = """# b.py
# 2026-01-01, here
GPT, by JAX's time | 0.59 | – | –
GPT, by PyTorch's time | 1.85 | – | –
MLP, by PyTorch's time | 3,461 | – | –

# b.py --device cuda
# 2026-01-02, there
GPT, by PyTorch's time | 2.33 | – | –

# b.py --only GPT
# 2026-01-03, here
GPT, by JAX's time | 0.50 | – | –
GPT, by PyTorch's time | 0.85 | – | –
"""


def test_a_result_is_the_only_matching_row_of_the_newest_run_on_a_device(measured):
    figures = {
        "b.py; GPT; PyTorch": "0.85",
        "b.py; GPT; PyTorch; < 1": "0.85",
        "b.py; cuda; GPT; > 2": "2.33",
        "b.py; MLP; > 3000": "3,461",
    }
    assert {key: measured.find_result(SAMPLE, key)[1] for key in figures} == figures


def test_a_result_that_is_missing_ambiguous_or_contradicted_is_refused(measured):
    messages = {
        "b.py; LSTM": r"no row for 'b\.py; LSTM'",
        "c.py; GPT": "no row for",
        "b.py; cuda; MLP": "no row for",
        "b.py; GPT": r"ambiguous; it matches: GPT, by JAX's time; GPT, by PyTorch's time",
        "b.py; GPT; PyTorch; > 1": r"claims > 1, but the newest run has 0\.85",
    }
    for key, message in messages.items():
        with pytest.raises(measured.ExtensionError, match=message):
            measured.find_result(SAMPLE, key)


def test_every_result_that_a_page_quotes_is_in_the_file(measured):
    quoted = [(page.name, key) for page in PAGES for key in QUOTED.findall(page.read_text(encoding="utf-8"))]
    assert {"performance.md", "beside_others.md", "what_is_here.md", "distributed.md"} <= {name for name, _ in quoted}
    for _, key in quoted:
        measured.find_result(results(), key)


RATIO = re.compile(
    r"\b\d+(?:\.\d+)? times (?:as|the|faster|slower|PyTorch|JAX|NumPy)|\b\d\.\d+ of (?:PyTorch|JAX|NumPy)"
)


def test_pages_quote_ratios_from_the_results_only():
    """A measured ratio that is typed into a page contradicts the others after the next run."""
    assert RATIO.search("takes 1.3 times as long")
    assert not RATIO.search("takes {result}`bench.py; GPT` times as long, and runs 3 times")
    typed = [
        f"{page.name}: {match.group()}" for page in PAGES for match in RATIO.finditer(page.read_text(encoding="utf-8"))
    ]
    assert typed == []


def test_the_table_of_the_readme_is_the_committed_run(measured):
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("--readme -->")[2].partition("<!-- until")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "µs" in line]
    run = [run for run in measured.parse_runs(results()) if any("table of the README" in line for line in run.notes)][
        -1
    ]
    committed = {measurement: (figure, ratio) for measurement, figure, _, _, ratio in run.rows}
    names = [
        measurement.removesuffix(", relative to JAX's time")
        for measurement in committed
        if measurement.endswith(", relative to JAX's time")
    ]
    assert [row[0] for row in rows] == names
    for name, time, by_jax, by_torch in rows:
        assert f"minigrad jit {time}," in committed[f"{name}, relative to JAX's time"][1], name
        assert by_jax == committed[f"{name}, relative to JAX's time"][0], name
        assert by_torch == committed[f"{name}, relative to PyTorch's time"][0], name
        assert by_torch == measured.find_result(results(), f"bench_jit.py; {name}; PyTorch")[1], name


def test_every_theme_that_was_tried_is_on_the_page_with_the_campaigns_that_there_are(measured):
    needs("numpy")
    results_text = measured.TORTURE.read_text(encoding="utf-8")
    text = (BOOK / "trust.md").read_text(encoding="utf-8")
    themes = re.findall(r"^# (\w+), \d{4}-\d\d-\d\d, ", results_text, flags=re.MULTILINE)
    assert sorted(re.findall(r"^```\{campaign\} (\w+)$", text, flags=re.MULTILINE)) == themes
    for theme, theme_campaigns in torture.campaigns().items():
        if theme in themes:
            rows = measured.parse_campaigns(results_text, theme)[1]
            assert [row[:2] for row in rows] == [[one.name, one.description] for one in theme_campaigns]
            assert all(int(row[4].replace(",", "")) == 0 for row in rows), f"{theme}: some cases fail"


# --- excerpts of files ------------------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```\{(include|literalinclude)\} (\S+)\n((?::.*\n)*)```", flags=re.MULTILINE)
EXCERPTS = [
    (page.relative_to(BOOK).as_posix(), *block.groups())
    for page in PAGES
    for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
]


def test_pages_include_excerpts():
    assert len(EXCERPTS) >= 12


@pytest.mark.parametrize(("page", "kind", "path", "options"), EXCERPTS, ids=lambda x: str(x)[:40].replace("\n", " "))
def test_included_excerpts_exist(page, kind, path, options):
    source = ((BOOK / page).parent / path).resolve()
    text = source.read_text(encoding="utf-8")
    directive_options = dict(re.findall(r"^:([\w-]+): \"?(.*?)\"?$", options, flags=re.MULTILINE))
    if "pyobject" in directive_options:
        defined = {
            f"{outer}.{node.name}" if outer else node.name
            for outer, body in [
                ("", ast.parse(text)),
                *((n.name, n) for n in ast.parse(text).body if hasattr(n, "name")),
            ]
            for node in body.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert directive_options["pyobject"] in defined
    for option in ("start-after", "start-at"):
        if option in directive_options:
            _, mark, text = text.partition(directive_options[option])
            assert mark, f"{path} has no {directive_options[option]!r}"
    if "end-before" in directive_options:
        text, mark, _ = text.partition(directive_options["end-before"])
        assert mark, f"{path} has no {directive_options['end-before']!r}"
    assert len(text.strip()) > 100 or "start-at" in directive_options


# --- statements on the lessons ----------------------------------------------------------------------------------------


def test_the_course_plan_states_the_counts_of_cells_and_exercises():
    cells = [
        len(json.loads(path.read_text(encoding="utf-8"))["cells"]) for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")
    ]
    counts = Counter(name.partition(".")[0] for name in mg.lessons.EXERCISES)
    few, many = (
        ("no", "one", "two", "three", "four", "five", "six", "seven")[k]
        for k in (min(counts.values()), max(counts.values()))
    )
    text = (BOOK / "teaching.md").read_text(encoding="utf-8")
    assert f"A lesson has {min(cells)} to {max(cells)} cells and {few} to {many} exercises." in text
    assert f"and {few} to {many} exercises" in (BOOK / "index.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if "](lessons/" in line and line.startswith("| ")]
    assert len(rows) == 12
    for row in rows:
        stated = [int(name) for name in row.rstrip("| ").rpartition("|")[2].split("+")]
        assert stated == [counts[name] for name in re.findall(r"lessons/(\d\d)_", row)], row


def test_the_playground_states_its_limit_of_operations():
    limit = re.search(
        r"export const MAX_OPERATIONS = (\d+);", (BOOK / "playground" / "parser.js").read_text(encoding="utf-8")
    )[1]
    assert f"- Up to {limit} operations, " in (BOOK / "playground.md").read_text(encoding="utf-8")


# --- the trace format -------------------------------------------------------------------------------------------------


def documented_fields():
    """Return the documented fields of the trace, by the heading of their table."""
    tables, rows, section = {}, None, ""
    for line in (BOOK / "how" / "trace_format.md").read_text(encoding="utf-8").splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if line.startswith("| field"):
            rows = tables[f"{section}: {line.split('|')[2].strip()}"] = []
        elif rows is not None and line.startswith("| `"):
            rows.append(line.split("`")[1])
        elif not line.startswith("|"):
            rows = None
    return {name: set(fields) for name, fields in tables.items()}


def test_the_trace_page_documents_all_fields():
    needs("numpy")
    from minigrad_viz import to_json, tour
    from minigrad_viz.trace.wire import to_data

    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = mg.log(a * b)
    values = json.loads(to_json(y))
    x = mg.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    with mg.record(), mg.scope("layer"):
        z = mg.relu(x).sum()
        z.backward()
    tensors = json.loads(to_json(z))
    stops = to_data(tour(a * b, [("a", "here"), ("end", "there")]).trace, full=True)
    fields = documented_fields()
    double = mg.jit(lambda x: x * 2.0)
    double(mg.ones(2))
    recorded = json.loads(to_json(double))
    assert fields["Top level: meaning"] == set(tensors) | {"tours"} | set(values) | set(recorded)
    assert set(recorded) - set(tensors) == {"how"}
    model = json.loads(to_json(mg.nn.scalar.Layer(1, 1)([2.0])))
    assert fields["nodes: column"] == set(model["nodes"])
    assert set(values["nodes"]) == set(tensors["nodes"]) == set(model["nodes"]) - {"short"}
    assert sorted(model["nodes"]["short"].values()) == ["b", "w[0]"]
    assert fields["edges: column"] == set(values["edges"])
    assert fields["passes: meaning"] == set(tensors["passes"][0])
    assert fields["ops and formulas: operation"] == set(values["ops"][0])
    assert set(tensors["blocks"][1]) | {"count", "about"} == fields["blocks, arrays and programs: block"]
    assert set(tensors["arrays"][0]) | {"step"} == fields["blocks, arrays and programs: array"]
    assert set(tensors["programs"][0]) == fields["blocks, arrays and programs: program"]
    assert set(values["notes"][0]) <= fields["notes and tours: note"] == {"kind", "node", "text", "nodes", "edges"}
    assert set().union(*stops["tours"]) <= fields["notes and tours: stop of a tour"] == {"at", "text", "select"}


# --- the built pages --------------------------------------------------------------------------------------------------


def test_the_pages_show_what_was_made(site):
    page = (site / "how" / "architecture.html").read_text(encoding="utf-8")
    assert page.count("data-subpackage=") > 30
    assert 'role="img" aria-label="The subpackages of minigrad' in page
    figures = (site / "performance.html").read_text(encoding="utf-8")
    assert figures.count("<strong>no</strong>") >= 5
    assert figures.count('<span class="result">') >= 3
    assert figures.count('<table class="measured') >= 10
    operation = (site / "how" / "one_operation.html").read_text(encoding="utf-8")
    assert '<figure class="minigrad"' in operation
    assert "tanh_kernel" in operation
    assert "merged into" in operation
    assert "Traceback" not in operation
