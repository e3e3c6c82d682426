"""What is built: a wheel that carries the player, also from the sdist, and a player that is small."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from minigrad_viz import frontend

ROOT = Path(__file__).parents[2]


def test_player_is_at_most_120_kilobytes():
    assert len(frontend.module().encode()) <= 120_000


def test_module_is_read_from_the_wheel_where_it_is_built(tmp_path, monkeypatch):
    built = tmp_path / "player.js"
    built.write_text("export { };\n", encoding="utf-8")
    monkeypatch.setattr(frontend, "BUILT", built)
    assert frontend.module() == "export { };\n"


def test_module_is_made_again_when_a_source_changes(tmp_path, monkeypatch):
    text = "export const {0} = 1; export const mount = {0}, startAll = 2; export const render = 3;\n"
    source = tmp_path / "widget.js"
    (tmp_path / "page.js").touch()
    monkeypatch.setattr(frontend, "SOURCES", tmp_path)
    for name in ("first", "second"):
        source.write_text(text.format(name), encoding="utf-8")
        assert f"const {name}=1" in frontend.module().replace(" ", "").replace("const", "const ")


@pytest.mark.slow
def test_wheel_carries_the_player_and_the_sdist_can_build_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path, ROOT], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.read("minigrad_viz/static/player.js").decode() == frontend.build()
    assert "minigrad/value.py" in names
    assert not [name for name in names if name.startswith(("tests", "viz", "hatch_build"))]
    with tarfile.open(sdist) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
    assert {"hatch_build.py", "viz/frontend/src/player.js", "viz/minigrad_viz/bundle.py"} <= set(files)
    assert not [name for name in files if "node_modules" in name or name.startswith(".venv")]
