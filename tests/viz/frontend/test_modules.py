"""The player's JavaScript: its unit tests and type checks in Node.js, and size limits."""

import subprocess

import pytest

from needs import FRONTEND, PACKAGES, needs

TESTS = sorted(FRONTEND.glob("tests/*.test.js"))


def run(*command: object) -> str:
    child = subprocess.run(
        [*map(str, command)], cwd=FRONTEND, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_player_in_node(path):
    needs("node")
    run("node", path)  # without `--test`, which would start another process


def test_types_of_the_player():
    needs("node", "npm packages")
    run("node", PACKAGES / "typescript" / "bin" / "tsc", "--project", FRONTEND)


def test_no_function_is_above_60_lines():
    needs("node", "npm packages")
    assert run("node", "limits.mjs") == ""
