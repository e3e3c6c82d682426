"""Build outputs: a small player that is up to date with its sources, and a wheel that contains it."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.data import catalogue
from minigrad_viz import tour
from minigrad_viz.pictures import frontend
from minigrad_viz.trace import to_trace
from needs import FRONTEND, needs

ROOT = Path(__file__).parents[3]


def test_player_does_not_grow():
    assert len(frontend.module().encode()) <= 140 * 1024


def test_player_is_built_from_its_sources(tmp_path):
    needs("node", "npm packages")
    built = tmp_path / "player.js"
    subprocess.run(["node", FRONTEND / "build.mjs", built], check=True, timeout=300)
    assert built.read_bytes() == frontend.BUNDLE.read_bytes(), "the sources have changed since: run make frontend"


def test_the_player_contains_no_script_end_tag():
    assert re.search(r"</script|<!--", frontend.script(), re.IGNORECASE) is None


def test_the_script_defines_one_global(tmp_path):
    needs("node")
    (tmp_path / "classic.cjs").write_text(
        "globalThis.document = { querySelectorAll: () => [] };"
        "const before = Object.keys(globalThis);\n" + frontend.script() + "\n"
        "console.log(Object.keys(globalThis).filter((name) => !before.includes(name)).join());"
        "console.log(Object.keys(minigrad).sort().join());",
        encoding="utf-8",
    )
    child = subprocess.run(["node", tmp_path / "classic.cjs"], capture_output=True, text=True, timeout=300, check=True)
    assert child.stdout.split() == ["minigrad", "default,mount,startAll"]


def keys_of(data):
    """Return all keys in some JSON except numeric ones."""
    if isinstance(data, dict):
        return {key for key in data if not key.isdigit()}.union(*map(keys_of, data.values()))
    return set().union(*map(keys_of, data)) if isinstance(data, list) else set()


def test_minification_keeps_trace_keys():
    a, w = mg.Value(2.0, "a"), mg.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=True)
    with mg.scope("layer"):
        y = (w @ w).relu().amax(dim=1).sum()
    traces = [tour(a * a, [(0, "A caption.")]).trace, to_trace(y), to_trace((a - 2.0).log())]
    keys = keys_of([json.loads(trace.json()) for trace in traces])
    assert {"mathml", "hist", "tours", "loops", "notes"} <= keys
    sources = "".join(path.read_text(encoding="utf-8") for path in FRONTEND.glob("src/*.js"))
    used_keys = [key for key in keys if re.search(rf"\b{key}\b", sources)]
    assert [key for key in used_keys if not re.search(rf"\b{key}\b", frontend.module())] == []


@pytest.mark.slow
def test_the_wheel_contains_the_player_data_and_lessons(tmp_path):
    child = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path, ROOT], capture_output=True, text=True, timeout=300
    )
    assert child.returncode == 0, child.stdout + child.stderr
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.read("minigrad_viz/static/player.js") == frontend.BUNDLE.read_bytes()
        data = {name.rpartition("/")[2]: archive.getinfo(name) for name in names if name.startswith("minigrad/data/")}
    assert "minigrad/core/value.py" in names
    lessons = {path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")} | {"lessons.mplstyle"}
    assert {name.rpartition("/")[2] for name in names if name.startswith("minigrad/lessons/notebooks/")} == lessons
    shipped = {file for one in catalogue.SHIPPED for file in one.files}
    assert {*shipped, "SOURCES.md"} <= set(data)
    assert sum(data[file].file_size for file in shipped) < 250_000
    assert not [name for name in names if name.startswith(("tests", "viz", "notebooks"))]
    with tarfile.open(sdist) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
    assert {"viz/frontend/src/player.js", "viz/minigrad_viz/static/player.js"} <= set(files)
    assert not [name for name in files if "node_modules" in name or name.startswith(".venv")]
