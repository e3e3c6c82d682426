"""`minigrad doctor --table`: derived from requirements and their markers, and equal to the table of the book."""

import builtins
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

import pytest

from minigrad import cli
from minigrad.backends.devices import GPUS
from minigrad.cli import platforms
from platform_page import END, PAGE, START, replace_table

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TAICHI = next(one for one in PROJECT["dependencies"] if one.startswith("taichi"))
REQUIREMENTS = ["numpy>=2.1; sys_platform != 'emscripten'", TAICHI, "ray>=2.60; extra == 'ray'"]


def declared():
    """The requirements of pyproject.toml, in the form of a distribution's metadata."""
    extras = PROJECT["optional-dependencies"]
    return PROJECT["dependencies"] + [f"{one}; extra == '{extra}'" for extra in extras for one in extras[extra]]


def rows(requirements=REQUIREMENTS, requires_python=">=3.11"):
    """The cells of a table, by platform and version of Python."""
    lines = platforms.tabulate(requirements, requires_python).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(name, python): rest for name, python, *rest in cells}


def test_each_platform_has_the_packages_that_its_markers_select():
    table = rows()
    gpus = "`cuda`, `vulkan`"
    assert table["Linux x86-64", "3.11"] == ["yes", "yes", "yes", gpus, "fused, merged", "yes", "every test"]
    tested = "quick tests, on `numpy`"
    assert table["Linux x86-64", "3.14"] == ["yes", "yes", "–", "–", "replayed", "yes", tested]
    arm = "Linux ARM64"
    assert table[arm, "3.11 to 3.14"] == ["yes", "yes", "–", "–", "replayed", "yes", "no"]
    assert table["macOS, Apple silicon", "3.11 to 3.13"][2:4] == ["yes", "`metal`"]
    assert table["macOS, Intel", "3.11 to 3.14"] == ["yes", "yes", "–", "–", "replayed", "–", "no"]
    assert table["Windows x86-64", "3.11 to 3.13"][2:4] == ["yes", gpus]
    assert table["Linux, 32 bits", "3.11 to 3.13"][1:3] == ["yes, with the system's NumPy", "–"]
    assert table["web page (Pyodide)", "3.14"][:3] == ["yes", "yes, with Pyodide's NumPy", "–"]


def test_the_table_follows_the_markers():
    requirements = [
        re.sub("platform_machine == 'x86_64'", "platform_machine == 'aarch64'", one) for one in REQUIREMENTS
    ]
    table = rows(requirements)
    assert table["Linux x86-64", "3.11"][2] == "–"
    assert table["Linux ARM64", "3.11 to 3.13"][2] == "yes"
    assert rows(REQUIREMENTS[:2])["Linux x86-64", "3.11"][5] == "–"  # without Ray's extra


def test_an_unsupported_python_is_one_row_that_says_so():
    table = rows(requires_python="<3.13,>=3.12")
    assert table["Windows x86-64", "3.11"] == ["no: needs Python >=3.12", *["–"] * 6]
    assert table["Windows x86-64", "3.13 to 3.14"] == ["no: needs Python <3.13", *["–"] * 6]
    assert table["web page (Pyodide)", "3.14"][0] == "yes"  # `make lite` bundles the wheel


def test_devices_and_platforms_exist():
    assert {gpu for platform in platforms.PLATFORMS for gpu in platform.gpus} == set(GPUS)
    assert len({platform.name for platform in platforms.PLATFORMS}) == len(platforms.PLATFORMS) == 7


def test_the_page_has_the_table_of_the_declared_dependencies():
    table = platforms.tabulate(declared(), PROJECT["requires-python"])
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(START)[2].partition(END)[0] == table, "run make platforms"
    assert replace_table(text, table) == text
    with pytest.raises(
        ValueError, match=r"^platforms\.md must contain '<!-- made by make platforms -->' and '<!-- until"
    ):
        replace_table(text.replace(END, ""), table)


@pytest.mark.needs("an installed minigrad")
def test_the_command_prints_the_table_of_the_installed_distribution(capsys):
    table = platforms.tabulate(requires("seegrad"), metadata("seegrad")["Requires-Python"])
    assert cli.main(["doctor", "--table"]) == 0
    assert capsys.readouterr().out == table
    assert table.startswith("| platform | Python | Values, viewer | tensors on `numpy` | `cpu` kernels (Taichi) |")


@pytest.mark.needs("an installed minigrad")
def test_what_the_table_needs_is_reported(capsys, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(platforms, "requires", missing)
    assert cli.main(["doctor", "--table"]) == 2
    assert capsys.readouterr().err == "minigrad doctor: minigrad is not installed; in a clone, run: pip install .\n"
    monkeypatch.undo()
    load = builtins.__import__

    def refuse(name, *arguments):
        if name.startswith("packaging"):
            raise ModuleNotFoundError(name=name)
        return load(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert cli.main(["doctor", "--table"]) == 2
    assert capsys.readouterr().err == (
        "minigrad doctor: the table requires the package packaging; install it with: pip install packaging\n"
    )
