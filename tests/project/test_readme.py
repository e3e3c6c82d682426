"""The README: its code prints the output shown, its pictures are up to date, and its commands exist."""

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pictures():
    return runpy.run_path(str(ROOT / "book" / "pictures.py"))


def test_the_code_prints_what_its_comment_says(pictures, capsys):
    pictures["run_readme"]()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "79.0 9.0 7.0 -1.0"
    assert f"# {printed[0]}" in README
    assert printed[1:4] == ["1.0 x 1.0 = 1.0", "1.0 x -1.0 = -1.0", "1.0 x 1.0 = 1.0"]
    assert printed[4:] == ["[[0.0, 0.0], [1.0, 3.0]]", "[[6.0, 0.0], [0.0, 18.0]]"]
    assert all(f"# {line}" in README for line in printed[4:])


def test_the_picture_is_the_one_that_the_code_draws(pictures):
    for name, svg in pictures["run_readme"]()[1].items():
        stored = (ROOT / "book" / "images" / name).read_text(encoding="utf-8")
        assert stored == svg, "the picture has changed: inspect it, then run make pictures"
        assert f"](book/images/{name})" in README


def test_the_player_is_shown_in_light_and_dark_with_small_files(pictures):
    shown = set(re.findall(r'"book/images/(player_\w+\.(?:png|gif))"', README))
    names = [*(f"{name}_{{}}.png" for name in pictures["SCREENSHOTS"]), "steps_{}.gif"]
    assert shown == {"player_" + name.format(scheme) for name in names for scheme in ("light", "dark")}
    for name in shown:
        assert (ROOT / "book" / "images" / name).stat().st_size < (300_000 if name.endswith("gif") else 150_000)


def test_its_sections_are_in_order():
    headings = re.findall(r"^## (.+)$", README, flags=re.MULTILINE)
    assert headings == ["Try it", "What it does", "How it compares", "Where next"]
    film, code, commands = (README.index(mark) for mark in ("player_steps_light.gif", "```python", "```\nmake tour"))
    assert film < code < commands
    assert README[commands:].splitlines()[2].startswith("make test ")
    assert len(README.splitlines()) <= 120
    lines = [line for line in README[code:].split("```")[1].splitlines()[1:] if line.strip()]
    assert len(lines) == 10


def test_each_command_it_names_is_a_target_of_the_makefile():
    commands = set(re.findall(r"\bmake ([a-z]+)\b", README))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {"tour", "test", "lab", "bench"} <= commands
    assert commands <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ROADMAP.md"])
def test_links_between_files_resolve(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / link).exists(), link


def test_no_page_names_the_distribution_of_another_project():
    """`minigrad` on the package index is another project (book/decisions/004_name_of_the_distribution.md)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "seegrad"
    assert f"pip install '{project['name']}[lab]'" in README
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    pattern = re.compile(r"(?:pip|uv|conda) (?:install|add)[^\n|`]*?['\" ]minigrad\b(?!_)|['\"]minigrad\[[a-z]+\]")
    matches = []
    for name in files:
        if name.endswith((".py", ".md", ".ipynb", ".toml", ".txt", ".cfg", ".js", ".html", "Makefile", "run")):
            text = (ROOT / name).read_text(encoding="utf-8")
            matches += [f"{name}: {match.group()}" for match in pattern.finditer(text)]
    assert matches == []


def test_documented_environment_variables_are_read():
    """Those of ``make test``, such as `MINIGRAD_DEVICE`, are excluded: the tests read them."""
    pages = [ROOT / "README.md", *ROOT.glob("book/**/*.md"), *ROOT.glob("notebooks/*.py"), *ROOT.glob("examples/*.py")]
    documented = set()
    for page in (page for page in pages if page.is_file()):
        for line in page.read_text(encoding="utf-8").splitlines():
            documented |= set(re.findall(r"MINIGRAD_\w+", line)) if "make test" not in line else set()
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("minigrad/**/*.py"))
    assert {name for name in documented if f'"{name}"' not in code} == set()
