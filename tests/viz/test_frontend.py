"""The player's JavaScript: its own tests and its types, which run in node, and the limits of the house."""

import subprocess

import pytest

from minigrad_viz.bundle import tokens
from tools import FRONTEND, PACKAGES, need

SOURCES = sorted(FRONTEND.glob("src/*.js"))
TESTS = sorted(FRONTEND.glob("tests/*.test.js"))


def run(*command: object) -> None:
    done = subprocess.run(
        [*map(str, command)], cwd=FRONTEND, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_player_in_node(path):
    need("node")
    run("node", "--test", path)


def test_types_of_the_player():
    need("node", "npm packages")
    run("node", PACKAGES / "typescript" / "bin" / "tsc", "--project", FRONTEND)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_function_is_above_60_lines(path):
    opened, long, before = [], {}, ""
    for token in tokens(path.read_text(encoding="utf-8"), path.name):
        if token.kind == "sign" and token.text in "([{":
            opened.append((token.line, token.text == "{" and before in (")", "=>")))
        elif token.kind == "sign" and token.text in ")]}":
            first, body = opened.pop()
            if body and token.line - first >= 60:
                long[first] = token.line
        before = token.text
    assert long == {}
