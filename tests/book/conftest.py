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
        command = ["-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
        command += ["-b", "html", "book", str(folder / "html")]
        build = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
        unfinished_output = folder / "saying.txt"
        unfinished_output.write_text(f"{build.returncode}\n{build.stdout}{build.stderr}", encoding="utf-8")
        shutil.move(unfinished_output, output)
    code, _, warnings = output.read_text(encoding="utf-8").partition("\n")
    assert (code, warnings.strip()) == ("0", "")
    return folder / "html"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    """The address of the pages' server, as host:port."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site))
    ) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()
