"""The lessons as notebooks: both files agree, headings nest, and the structure is complete. nbval tests the outputs."""

import ast
import html
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from cases import merge_cases
from minigrad import lessons
from needs import LESSONS as REQUIREMENTS
from needs import needs

needs("jupytext")


NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def cells(path, kind):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def prose(path):
    return "\n\n".join(cell.source for cell in cells(path, "markdown"))


def lines_of_code(cell):
    return [line for line in cell.source.splitlines() if line.strip() and not line.strip().startswith("#")]


def check_stored(folder):
    command = [sys.executable, str(folder / "build.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_every_lesson_has_exercises():
    assert [path.stem[:2] for path in LESSONS] == sorted({exercise[:2] for exercise in lessons.EXERCISES})


def test_stored_lessons_are_normalised_and_match_their_scripts():
    result = check_stored(NOTEBOOKS)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_nondeterministic_output_is_not_stored():
    sanitise = runpy.run_path(str(NOTEBOOKS / "build.py"))["sanitise"]
    assert sanitise("<object at 0x7f3a0b1c2d4e>, not 0x1f") == "<object at ADDRESS>, not 0x1f"
    assert sanitise("9/9 [00:01<00:00, 12.5it/s]: 0.31 s") == "9/9 [CLOCK, RATE]: TIME"


def test_the_check_lists_all_problems(tmp_path):
    for name in ("build.py", "sanitize.cfg"):
        (tmp_path / name).write_bytes((NOTEBOOKS / name).read_bytes())
    first, second, third = LESSONS[:3]
    for path in (first, second, third):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    script = first.with_suffix(".py")
    (tmp_path / script.name).write_text(script.read_text(encoding="utf-8") + "\n# %%\n1 + 1\n", encoding="utf-8")
    unnormalised = second.read_text(encoding="utf-8").replace('"execution_count": 1,', '"execution_count": 7,')
    (tmp_path / second.name).write_text(unnormalised, encoding="utf-8")
    (tmp_path / second.with_suffix(".py").name).write_bytes(second.with_suffix(".py").read_bytes())

    result = check_stored(tmp_path)

    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"{first.name} and {script.name} differ",
        f"{second.name} is not normalised",
        f"{third.with_suffix('.py').name} is missing",
        "To fix this, run: make notebooks",
    ]


@merge_cases
@lesson
def test_headings_begin_at_one_and_skip_no_level(path):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(path), re.MULTILINE)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(level <= previous + 1 for previous, level in pairwise(levels))


@merge_cases
@lesson
def test_a_lesson_has_all_sections_in_order(path):
    headings = "\n".join(re.findall(r"^## (.*)$", prose(path), re.MULTILINE))
    steps = ["question", "uess", "Build it", "Draw it", "Step it", "Compare with the library", "Break it", "Exercises"]
    positions = [headings.find(step) for step in steps]
    assert -1 not in positions
    assert positions == sorted(positions)


@merge_cases
@lesson
def test_a_lesson_has_three_to_six_open_exercises(path):
    exercises = sorted(exercise for exercise in lessons.EXERCISES if exercise.startswith(path.stem[:2]))
    assert 3 <= len(exercises) <= 6
    checks = [cell for cell in cells(path, "code") if "lessons.check(" in cell.source]
    checked = [re.search(r'check\("(.*?)"', cell.source).group(1) for cell in checks]
    assert checked == exercises
    assert len(re.findall(r"^### Exercise", prose(path), re.MULTILINE)) == len(exercises)
    for cell, exercise in zip(checks, checked, strict=True):
        assert len(lines_of_code(cell)) == 1, "the answer must be in the cell before, as nbgrader requires"
        assert cell.outputs[0].text.startswith(f"{exercise} not yet: ")


@merge_cases
@lesson
def test_stored_cells_have_run_without_error(path):
    for cell in cells(path, "code"):
        assert cell.execution_count is not None
        assert not [output for output in cell.outputs if output.output_type == "error"]
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]


@merge_cases
@lesson
def test_a_cell_has_at_most_one_stream_output(path):
    for cell in cells(path, "code"):
        assert [output.output_type for output in cell.outputs].count("stream") <= 1, cell.source


@merge_cases
@lesson
def test_no_cell_that_builds_is_longer_than_fifteen_lines(path):
    for cell in cells(path, "code"):
        assert len(lines_of_code(cell)) <= 15, cell.source


def test_lesson_one_states_the_line_count_of_value():
    value = next(cell for cell in cells(LESSONS[0], "code") if cell.source.startswith("class Value"))
    assert f"in {len(lines_of_code(value))} lines" in prose(LESSONS[0])


@merge_cases
@lesson
def test_every_picture_is_explained_in_the_text(path):
    notebook = nbformat.read(path, as_version=4).cells
    for position, cell in enumerate(notebook):
        kinds = {kind for output in cell.get("outputs", ()) for kind in output.get("data", ())}
        if kinds & {"image/png", "image/svg+xml", "text/html"}:
            text = " ".join(other.source for other in notebook[max(0, position - 2) : position + 2])
            assert "You should" in text or "you should" in text, cell.source


@merge_cases
@lesson
def test_every_picture_has_a_unique_alt_text(path):
    alt_texts = []
    for output in [output for cell in cells(path, "code") for output in cell.outputs]:
        if "image/png" in output.get("data", {}):
            alt_texts.append(output.metadata["image/png"]["alt"])
        plot = re.search(r'minigrad-plot".*? alt="(.*?)"', output.get("data", {}).get("text/html", ""))
        alt_texts += [html.unescape(plot[1])] if plot else []
    assert len(set(alt_texts)) == len(alt_texts)
    for alt in alt_texts:
        assert 50 < len(alt) <= 320
        assert alt[-1] in ".?!)"
        assert not set("\\$*`[]") & set(alt)


@merge_cases
@lesson
def test_a_lesson_imports_only_dependencies_of_minigrad(path):
    """So the lesson is the same whatever else is installed, and CI runs it once."""
    tree = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    dependencies = {"IPython", "ipywidgets", "matplotlib", "minigrad", "minigrad_viz", "numpy", "taichi", "tqdm"}
    dependencies |= set(REQUIREMENTS.get(path.stem[:2], ()))
    assert {name.partition(".")[0] for name in names} <= dependencies | sys.stdlib_module_names


def test_a_lesson_with_a_requirement_says_how_to_install_it():
    for number, packages in REQUIREMENTS.items():
        (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
        first = cells(path, "code")[0].source
        for package in packages:
            assert f"import {package}" in first
            assert f"pip install {package}" in first


@merge_cases
@lesson
def test_links_lead_to_lessons_that_exist(path):
    targets = re.findall(r"\]\(([^)#]+)\)", prose(path))
    assert targets
    assert not [target for target in targets if not (NOTEBOOKS / target).is_file()]


@merge_cases
@lesson
def test_a_lesson_links_to_its_neighbours(path):
    position = LESSONS.index(path)
    neighbours = LESSONS[max(0, position - 1) : position] + LESSONS[position + 1 : position + 2]
    assert not [other.name for other in neighbours if f"({other.name})" not in prose(path)]
