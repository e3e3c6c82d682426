"""Fixtures for the book: it is built once for all tests, or MINIGRAD_BOOK names an existing build."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from needs import needs

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))
BUILD_TIMEOUT = 1500  # seconds that a worker waits for the build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if {"page", "watched"} & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.browser)


def build_book(
    doctrees: Path, folder: Path, settings: tuple[str, ...] = (), pages: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Build the book, or only some pages, into a folder, without the environment of a CI service."""
    names = ("MINIGRAD_LITE", "REPOSITORY", "GITHUB_SERVER_URL", "CI_PROJECT_URL")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-d", str(doctrees), *settings]
    command += ["-b", "html", "book", str(folder), *pages]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages. Warnings are errors. One worker process builds; the others wait."""
    if build := os.environ.get("MINIGRAD_BOOK"):
        return Path(build)
    needs("npm packages")
    needs("myst_nb")
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "book"
    output = folder / "said.txt"
    try:
        folder.mkdir()
    except FileExistsError:
        for _ in range(BUILD_TIMEOUT):
            if output.exists():
                break
            time.sleep(1)
    else:
        build = build_book(folder / "doctrees", folder / "html")
        unfinished_output = folder / "saying.txt"
        unfinished_output.write_text(f"{build.returncode}\n{build.stdout}{build.stderr}", encoding="utf-8")
        shutil.move(unfinished_output, output)
    code, _, warnings = output.read_text(encoding="utf-8").partition("\n")
    assert (code, warnings.strip()) == ("0", "")
    return folder / "html"


LIVE_PAGES = ("index.md", "lessons/01_one_neuron.ipynb", "lessons/18_inside_a_pytorch_model.ipynb")
LIVE_NOTEBOOK = """<!doctype html><html lang="en"><title>Notebook</title><main><h1>Notebook</h1><p></p></main>
<script>document.querySelector("p").textContent = new URLSearchParams(location.search).get("path")</script></html>"""


@pytest.fixture(scope="session")
def live_site(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home page and two lessons, in a folder with a stub of the JupyterLite site, and with a repository."""
    folder = tmp_path_factory.mktemp("live")
    stub = folder / "lite" / "notebooks" / "index.html"
    stub.parent.mkdir(parents=True)
    stub.write_text(LIVE_NOTEBOOK, encoding="utf-8")
    shutil.copy(site / "searchindex.js", folder)  # Sphinx warns when it cannot complete the index
    doctrees = site.parent / "doctrees"
    build = build_book(
        doctrees if doctrees.is_dir() else folder / ".doctrees",
        folder,
        settings=("-D", "repository=https://example.org/ada/minigrad"),
        pages=tuple(f"book/{page}" for page in LIVE_PAGES),
    )
    assert (build.returncode, build.stdout + build.stderr) == (0, "")
    return folder


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    """The address of the pages' server, as host:port."""
    yield from serve(site)


@pytest.fixture(scope="session")
def live_server(live_site: Path) -> Iterator[str]:
    """The address of the server of `live_site`, as host:port."""
    yield from serve(live_site)


def serve(folder: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()
