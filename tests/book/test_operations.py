"""The pages of operations: each has its formula, its derivatives, a graph, and a link to its declaration."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from urllib.parse import urldefrag

import bs4
import pytest

import minigrad as mg
from minigrad import ops
from needs import needs

FAMILIES = {family.__name__.rpartition(".")[2]: family for family in ops._FAMILIES}
HOME = {name: family for family, module in FAMILIES.items() for name in module.__all__ if name in mg.OPS}
A = r"\(a\)"


@cache
def page(path: Path):
    return bs4.BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def section(site, name):
    return page(site / "operations" / f"{HOME[name]}.html").find("section", id=name.replace("_", "-"))


def cell_texts(cells):
    return [" ".join(cell.get_text(" ", strip=True).split()) for cell in cells]


def derivatives(site, name):
    """Return the rows of the operation's table: operand, scalar derivative, and the operand's gradient."""
    return [cell_texts(row.find_all("td")) for row in section(site, name).select("table.derivatives tbody tr")]


def test_every_operation_has_a_section_with_a_formula(site):
    for name in mg.OPS:
        content = section(site, name)
        assert content is not None, name
        assert content.select("div.math"), name


def test_each_derivative_is_listed_as_a_formula(site):
    for name, op in mg.OPS.items():
        differentiable = [x for x, rule in zip(op.inputs, op.vjp, strict=True) if rule is not None]
        rows = derivatives(site, name)
        assert [row[0] for row in rows] == [rf"\({x}\)" for x in differentiable], name
        assert all(cell.startswith(r"\(") for row in rows for cell in row), name
        assert bool(differentiable) != ("It has no" in section(site, name).get_text()), name


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "tanh",
            [[A, r"\(\frac{\partial y}{\partial a} = 1 - y \cdot y\)", r"\(g \cdot \left(1 - y \cdot y\right)\)"]],
        ),
        (
            "mul",
            [
                [A, r"\(\frac{\partial y}{\partial a} = b\)", r"\(g \cdot b\)"],
                [r"\(b\)", r"\(\frac{\partial y}{\partial b} = a\)", r"\(g \cdot a\)"],
            ],
        ),
        ("matmul", [[A, r"\(g b^{\top}\)"], [r"\(b\)", r"\(a^{\top} g\)"]]),
        ("softmax", [[A, r"\(y \cdot \left(g - \operatorname{sum}\left(g \cdot y\right)\right)\)"]]),
    ],
)
def test_a_derivative_is_printed_from_its_rule(site, name, rows):
    assert derivatives(site, name) == rows


def test_derivatives_not_printed_from_a_rule_are_marked(site):
    assert "or guards corner cases" in section(site, "pow").get_text()
    assert "or guards corner cases" in section(site, "norm").get_text()
    assert "or guards corner cases" not in section(site, "tanh").get_text()
    assert "Stated in the declaration" in section(site, "matmul").get_text()
    assert "Too long to show" in section(site, "cholesky").get_text()


def test_differentiable_operations_have_a_graph_or_a_reason(site):
    without_graph = []
    for name, op in mg.OPS.items():
        figures = section(site, name).select("figure.minigrad")
        if op.differentiable and not figures:
            without_graph.append(name)
            assert "No graph is drawn: " in section(site, name).get_text()
        for figure in figures:
            assert figure.img["alt"].startswith("Graph of ")
            assert f'"name":"{name}"' in figure.script.string
            assert len(figure.script.string) < 16_000
    assert without_graph == ["move", "pick"]


def test_links_lead_to_the_line_that_declares_the_operation(site):
    for name in mg.OPS:
        link = section(site, name).select_one("dt a:has(.viewcode-link)")
        assert link is not None, name
        target, anchor = urldefrag(link["href"])
        block = page((site / "operations" / target).resolve()).find(id=anchor)
        assert block is not None, link["href"]
        assert re.search(rf"^{name}(: Op)? =", block.get_text(), re.MULTILINE), name


def test_the_table_has_a_row_for_each_operation(site):
    rows = [
        cell_texts(row.find_all("td"))
        for row in page(site / "operations" / "index.html").select("table.operations tbody tr")
    ]
    assert sorted(row[0] for row in rows) == sorted(mg.OPS)
    rows_by_name = {row[0]: row[1:] for row in rows}
    assert rows_by_name["tanh"] == [r"\(\tanh\left(a\right)\)", "a", "all", "elementwise"]
    assert rows_by_name["matmul"] == [r"\(a b\)", "a, b", "tensors", "linalg"]
    assert rows_by_name["lt"][1] == "–"


def test_players_start_in_the_viewport_and_the_table_is_searchable(site, watched):
    opened = watched(width=1200, height=800)
    opened.goto((site / "operations" / "elementwise.html").as_uri())
    players, figures = (opened.locator(name) for name in (".minigrad-player", "figure.minigrad"))
    assert players.count() < figures.count() / 2
    assert all(figures.nth(k).locator("img").count() == 1 for k in range(figures.count()))
    last = figures.last
    last.scroll_into_view_if_needed()
    last.locator(".minigrad-player").wait_for()
    opened.goto((site / "operations" / "index.html").as_uri())
    opened.get_by_role("searchbox", name="Filter").fill("sigm")
    assert opened.locator("table.operations tbody tr:visible").all_inner_texts()[0].split()[0] == "sigmoid"
    assert opened.locator("output").inner_text() == f"1 of {len(mg.OPS)}"


def test_a_remark_keeps_names_and_omits_tool_comments():
    needs("sphinx")
    facts, pages = import_module("op_facts"), import_module("ops")
    assert facts._as_sentence("leaky_relu whose slope is learned") == "leaky_relu whose slope is learned."
    assert facts._as_sentence("lines.") == "Lines."
    assert facts.declaration_comment(FAMILIES["activation"], mg.OPS["prelu"]) == "leaky_relu with a learned slope."
    assert pages._to_markdown("1. <b> &amp; {py}`a < b` $x$") == r"1\. \<b\> \&amp\; \{py\}`a < b` \$x\$"


def test_only_tool_comments_are_omitted():
    facts = import_module("op_facts")
    comments = ["noqa: E501", "type: ignore[arg-type]", "types are kept", "no quarter", "typewriter"]
    assert [text for text in comments if not facts._TOOL_COMMENT.match(text)] == [
        "types are kept",
        "no quarter",
        "typewriter",
    ]
