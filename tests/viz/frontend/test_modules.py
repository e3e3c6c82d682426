"""The player's JavaScript: its own tests and its types, which run in node, and the limits of the house."""

import subprocess

import pytest

from needs import FRONTEND, PACKAGES, needs

TESTS = sorted(FRONTEND.glob("tests/*.test.js"))


def run(*command: object) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=FRONTEND, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_player_in_node(path):
    needs("node")
    run("node", path)  # its tests decide how it ends: `node --test` starts another node for them


def test_types_of_the_player():
    needs("node", "npm packages")
    run("node", PACKAGES / "typescript" / "bin" / "tsc", "--project", FRONTEND)


def test_no_function_is_above_60_lines():
    needs("node", "npm packages")
    assert run("node", "limits.mjs") == ""
