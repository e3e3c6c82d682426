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


def loaded(name, path):
    """Load a module outside any package, under a unique name, so that it shadows none of the standard library."""
    spec = importlib.util.spec_from_file_location(f"book_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def imports():
    needs("sphinx")
    return loaded("imports", BOOK / "_ext" / "imports.py")


@pytest.fixture(scope="module")
def measured():
    needs("sphinx")
    return loaded("measured", BOOK / "_ext" / "measured.py")


@pytest.fixture(scope="module")
def architecture():
    return loaded("architecture", ROOT / "tests" / "project" / "test_architecture.py")


# --- the architecture diagram ---------------------------------------------------------------------------------------


def test_the_picture_has_every_room_and_every_arrow_once(imports, architecture):
    graph = imports.graph()
    drawn = imports.picture(graph)
    rooms = re.findall(r'data-room="([^"]+)"', drawn)
    assert len(set(rooms)) == len(rooms)
    assert {*architecture.PACKAGES} - {"__init__", "backends"} <= set(rooms)
    assert {f"backends.{name}" for name in architecture.BACKENDS} <= set(rooms)
    assert {"minigrad", "minigrad_viz"} <= set(rooms)
    assert re.findall(r'data-from="([^"]+)" data-to="([^"]+)"', drawn) == imports.placed(graph)[1]
    assert sorted(imports.placed(graph)[1]) == sorted(imports.arrows(graph))


def test_no_arrow_points_where_the_architecture_forbids(imports, architecture):
    floor = {room: level for level, room in enumerate(architecture.PACKAGES)}
    floor |= {f"backends.{name}": floor["backends"] + k / 100 for k, name in enumerate(architecture.BACKENDS)}
    floor["minigrad"], floor["minigrad_viz"] = floor.pop("__init__"), floor["cli"] - 0.5
    for room, others in imports.graph().items():
        for other in others:
            assert floor[room] > floor[other], f"{room} imports {other}"


def test_the_graph_is_what_the_architecture_test_reads(imports, architecture):
    graph, found = imports.graph(), {}
    for module, path in architecture.MODULES.items():
        others = {imports.room_of(architecture.MODULES[name]) for name in architecture.imports_of(module)}
        found.setdefault(imports.room_of(path), set()).update(others)
    for room, others in graph.items():
        assert found[room] & graph.keys() - {room, "minigrad"} == others - {"minigrad"}, room


def test_what_is_left_out_of_the_picture_follows_from_what_is_in_it(imports):
    graph = imports.graph()
    drawn = {room: {b for a, b in imports.arrows(graph) if a == room} for room in graph}

    def below(room):
        return drawn[room].union(*(below(other) for other in drawn[room]))

    assert all(graph[room] <= below(room) for room in graph)
    assert sum(map(len, drawn.values())) < sum(map(len, graph.values())) / 2


def test_arrows_go_down_and_boxes_stand_apart(imports):
    order, drawn, places = imports.placed(imports.graph())
    high = dict(zip(order, places.centers, strict=True))
    assert all(high[room][0] > high[other][0] for room, other in drawn)
    wide = {room: imports._wide(room) for room in order}
    rows = {}
    for room in order:
        rows.setdefault(high[room][0], []).append((high[room][1] - wide[room] / 2, high[room][1] + wide[room] / 2))
    for row in rows.values():
        row.sort()
        assert all(one[1] < other[0] for one, other in pairwise(row))


def test_colours_of_the_rooms_can_be_read(imports):
    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for names in (imports.LIGHT, imports.DARK):
        rules = dict(re.findall(r"--([\w-]+):(#\w{6})", imports._colours(names)))
        for kind in ("plain", "kernels", "top"):
            light, dark = sorted((luminance(rules[kind]), luminance(rules[f"on-{kind}"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_contributing_names_every_room_in_the_order_of_imports(imports):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| folder |")[0]
    rows = [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in text.splitlines() if line.startswith("| `")]
    rows = [[name.removeprefix("minigrad/").removesuffix(".py").strip("/") for name in row] for row in rows]
    floor = {"minigrad" if room == "__init__" else room: level for level, row in enumerate(rows) for room in row}
    graph = {room: others for room, others in imports.graph().items() if not room.startswith(("backends", "minigrad_"))}
    del floor["backends"]
    assert floor.keys() == graph.keys()
    for room, others in graph.items():
        up = {other for other in others & floor.keys() if floor[other] > floor[room]}
        assert not up, f"{room} imports {up}"


QUOTED = re.compile(r"\{result\}`([^`]+)`")

# --- figures ---------------------------------------------------------------------------------------------------------


def results():
    return (ROOT / "benchmarks" / "results.txt").read_text(encoding="utf-8")


def test_every_line_of_the_results_is_a_row_of_a_table(measured):
    found = measured.runs(results())
    lines = [
        line for line in results().splitlines() if " | " in line and not line.startswith(("#", "benchmarks print"))
    ]
    assert sum(len(run.rows) for run in found) == len(lines)
    for run in found:
        assert (ROOT / "benchmarks" / run.command.split()[0]).is_file()
        assert re.match(r"\d{4}-\d\d-\d\d, ", run.about[0]), f"{run.command}: the date and the machine are missing"


def test_a_result_is_said_to_be_held_where_it_is(measured):
    for run in measured.runs(results()):
        for what, figure, asked, held, _ in run.rows:
            if asked == "–":
                assert held == "–", what
                continue
            number, bar = (float(text.split()[0].replace(",", "")) for text in (figure, asked[len("at least") :]))
            assert held == ("held" if (number >= bar if asked.startswith("at least") else number <= bar) else "NOT"), (
                what
            )


def test_every_benchmark_that_was_run_is_on_the_page(measured):
    text = (BOOK / "performance.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^```\{measured\} (\S+)$", text, flags=re.MULTILINE))
    assert shown == {run.command.split()[0] for run in measured.runs(results())}


def test_benchmarks_print_the_lines_that_are_kept(measured, capsys):
    report = loaded("report", ROOT / "benchmarks" / "report.py")
    assert report.row("matmul, NumPy", "0.68", "0.8", at_least=True, more="results differ by 5e-07")
    assert not report.row("import minigrad", "0.028 s", "0.15")
    printed = capsys.readouterr().out
    rows = measured.runs(f"# bench.py\n# 2026-01-01, here\n{printed}")[0].rows
    assert rows == [
        ["matmul, NumPy", "0.68", "at least 0.8", "NOT", "results differ by 5e-07"],
        ["import minigrad", "0.028 s", "at most 0.15", "held", ""],
    ]


def test_a_line_of_another_form_is_refused(measured):
    with pytest.raises(ValueError, match=r"bench\.py: expected 'name \| result"):
        measured.runs("# bench.py\n# 2026-01-01\na step: 3 ms\n")


def shown(measured, **options):
    """Return the commands of the runs of bench_eager that a page shows with these options."""
    directive = object.__new__(measured.Measured)
    directive.arguments, directive.options = ["bench_eager.py"], options
    directive.state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=mock.Mock())))
    return [node.astext() for node in directive.run() if node.tagname == "paragraph"]


def test_a_page_that_asks_for_more_runs_than_there_are_is_refused(measured):
    assert shown(measured, last=1)
    for options in ({"last": 1000}, {"before": 1000}, {"last": 1, "before": 1}):
        with pytest.raises(
            measured.ExtensionError, match=r"results\.txt has only \d+ runs of 'bench_eager\.py' on cpu"
        ):
            shown(measured, **options)


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
    assert {key: measured.result(SAMPLE, key)[1] for key in figures} == figures


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
            measured.result(SAMPLE, key)


def test_every_result_that_a_page_quotes_is_in_the_file(measured):
    quoted = [(page.name, key) for page in PAGES for key in QUOTED.findall(page.read_text(encoding="utf-8"))]
    assert {"performance.md", "beside_others.md", "what_is_here.md", "distributed.md"} <= {name for name, _ in quoted}
    for _, key in quoted:
        measured.result(results(), key)


def test_the_table_of_the_readme_is_the_committed_run(measured):
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("--readme -->")[2].partition("<!-- until")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "µs" in line]
    run = [run for run in measured.runs(results()) if any("table of the README" in line for line in run.about)][-1]
    committed = {what: (figure, more) for what, figure, _, _, more in run.rows}
    names = [
        what.removesuffix(", relative to JAX's time") for what in committed if what.endswith(", relative to JAX's time")
    ]
    assert [row[0] for row in rows] == names
    for name, time, by_jax, by_torch in rows:
        assert f"minigrad jit {time}," in committed[f"{name}, relative to JAX's time"][1], name
        assert by_jax == committed[f"{name}, relative to JAX's time"][0], name
        assert by_torch == committed[f"{name}, relative to PyTorch's time"][0], name
        assert by_torch == measured.result(results(), f"bench_jit.py; {name}; PyTorch")[1], name


def test_every_theme_that_was_tried_is_on_the_page_with_the_campaigns_that_there_are(measured):
    needs("numpy")
    kept = measured.TORTURE.read_text(encoding="utf-8")
    text = (BOOK / "trust.md").read_text(encoding="utf-8")
    themes = re.findall(r"^# (\w+), \d{4}-\d\d-\d\d, ", kept, flags=re.MULTILINE)
    assert sorted(re.findall(r"^```\{tried\} (\w+)$", text, flags=re.MULTILINE)) == themes
    for theme, found in torture.campaigns().items():
        if theme in themes:
            rows = measured.campaigns(kept, theme)[1]
            assert [row[:2] for row in rows] == [[one.name, one.what] for one in found]
            assert all(int(row[4].replace(",", "")) == 0 for row in rows), f"{theme}: some cases fail"


# --- excerpts of files ------------------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```\{(include|literalinclude)\} (\S+)\n((?::.*\n)*)```", flags=re.MULTILINE)
TAKEN = [
    (page.relative_to(BOOK).as_posix(), *found.groups())
    for page in PAGES
    for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
]


def test_pages_take_from_files():
    assert len(TAKEN) >= 12


@pytest.mark.parametrize(("page", "kind", "path", "options"), TAKEN, ids=lambda x: str(x)[:40].replace("\n", " "))
def test_what_a_page_takes_from_a_file_is_there(page, kind, path, options):
    source = ((BOOK / page).parent / path).resolve()
    text = source.read_text(encoding="utf-8")
    given = dict(re.findall(r"^:([\w-]+): \"?(.*?)\"?$", options, flags=re.MULTILINE))
    if "pyobject" in given:
        defined = {
            f"{outer}.{node.name}" if outer else node.name
            for outer, body in [
                ("", ast.parse(text)),
                *((n.name, n) for n in ast.parse(text).body if hasattr(n, "name")),
            ]
            for node in body.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert given["pyobject"] in defined
    for option in ("start-after", "start-at"):
        if option in given:
            _, mark, text = text.partition(given[option])
            assert mark, f"{path} has no {given[option]!r}"
    if "end-before" in given:
        text, mark, _ = text.partition(given["end-before"])
        assert mark, f"{path} has no {given['end-before']!r}"
    assert len(text.strip()) > 100 or "start-at" in given


# --- statements on the lessons ----------------------------------------------------------------------------------------


def test_the_plan_for_a_course_says_how_many_cells_and_exercises_there_are():
    cells = [
        len(json.loads(path.read_text(encoding="utf-8"))["cells"]) for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")
    ]
    counts = Counter(number.partition(".")[0] for number in mg.lessons.EXERCISES)
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
        said = [int(number) for number in row.rstrip("| ").rpartition("|")[2].split("+")]
        assert said == [counts[number] for number in re.findall(r"lessons/(\d\d)_", row)], row


def test_the_playground_says_how_many_operations_it_takes():
    most = re.search(r"export const MOST = (\d+);", (BOOK / "playground" / "parser.js").read_text(encoding="utf-8"))[1]
    assert f"- Up to {most} operations, " in (BOOK / "playground.md").read_text(encoding="utf-8")


# --- the trace format -------------------------------------------------------------------------------------------------


def documented():
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


def test_the_page_of_the_trace_names_its_fields():
    needs("numpy")
    from minigrad_viz import to_json, tour
    from minigrad_viz.trace.wire import data

    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = mg.log(a * b)
    values = json.loads(to_json(y))
    x = mg.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    with mg.record(), mg.scope("layer"):
        z = mg.relu(x).sum()
        z.backward()
    tensors = json.loads(to_json(z))
    stops = data(tour(a * b, [("a", "here"), ("end", "there")]).trace, full=True)
    fields = documented()
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
    rooms = (site / "how" / "architecture.html").read_text(encoding="utf-8")
    assert rooms.count("data-room=") > 30
    assert 'role="img" aria-label="The subpackages of minigrad' in rooms
    figures = (site / "performance.html").read_text(encoding="utf-8")
    assert figures.count("<strong>no</strong>") >= 5
    assert figures.count('<span class="result">') >= 3
    assert figures.count('<table class="measured') >= 10
    operation = (site / "how" / "one_operation.html").read_text(encoding="utf-8")
    assert '<figure class="minigrad"' in operation
    assert "tanh_kernel" in operation
    assert "merged into" in operation
    assert "Traceback" not in operation
