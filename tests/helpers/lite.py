"""The JupyterLite site, served from this machine as a host of static files serves it: compressed and cacheable."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

from needs import needs

__all__ = ["COMMAND_TIMEOUT", "NOTEBOOK_IS_READY", "Site", "add_package", "build", "lock_entry", "write_wheel"]

ROOT = Path(__file__).parents[2]
LOCK = "pyodide-lock.json"
COMMAND_TIMEOUT = 300  # seconds
ALREADY_COMPRESSED = {".bz2", ".whl", ".zip", ".png", ".woff", ".woff2", ".gz"}
NOTEBOOK_IS_READY = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.sessionContext?.session?.kernel?.status === 'idle' && panel.content.widgets.length > 0;
}"""


def build(folder: Path) -> Path:
    """Build the site without packages of Pyodide's distribution, and return its folder."""
    needs("node", "pyodide", "jupyterlite_core", "jupyterlite_pyodide_kernel", "ipywidgets", "anywidget")
    command = [sys.executable, "book/lite/build.py", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=COMMAND_TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@cache
def _read(path: Path) -> tuple[bytes, bool]:
    """Return what is sent for a file, and whether it is compressed."""
    content = path.read_bytes()
    is_compressed = path.suffix not in ALREADY_COMPRESSED
    return (gzip.compress(content, 6, mtime=0) if is_compressed else content), is_compressed


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, sent: list[tuple[str, int]], **options: Any) -> None:
        self._sent = sent
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        content, is_compressed = _read(path) if path.is_file() else (b"", False)
        self.send_response(200 if path.is_file() else 404)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        if is_compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)
        self._sent.append((self.path.partition("?")[0], len(content)))

    def log_message(self, *_: object) -> None:
        pass


class Site:
    """A context manager that serves a folder. `sent` lists the path and the number of bytes of each response."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[tuple[str, int]] = []
        handler = partial(_Handler, directory=str(folder), sent=self.sent)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Site:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lesson(self, name: str) -> str:
        """Return the address of a lesson's live page."""
        return f"http://{self.address}/notebooks/index.html?path={name}.ipynb"


def write_wheel(folder: Path, name: str, source: str = "", requirements: Iterable[str] = ()) -> Path:
    """Write a wheel with one module, and return its path."""
    wheel = folder / f"{name}-2.4.6-py3-none-any.whl"
    metadata = [f"Name: {name}", "Version: 2.4.6", *(f"Requires-Dist: {text}" for text in requirements), "", ""]
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr(f"{name}/__init__.py", source)
        files.writestr(f"{name}-2.4.6.dist-info/METADATA", "\n".join(metadata))
        files.writestr(
            f"{name}-2.4.6.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        files.writestr(f"{name}-2.4.6.dist-info/RECORD", "")
    return wheel


def add_package(folder: Path, name: str, source: str) -> None:
    """Add a package to the Pyodide of a built site."""
    wheel, lock = write_wheel(folder, name, source), json.loads((folder / LOCK).read_text(encoding="utf-8"))
    lock["packages"][name] = lock_entry(name, wheel)
    (folder / LOCK).write_text(json.dumps(lock), encoding="utf-8")


def lock_entry(name: str, wheel: Path, depends: Iterable[str] = ()) -> dict[str, Any]:
    """Return the entry that a lock file of Pyodide has for the wheel."""
    return {
        "name": name,
        "version": "2.4.6",
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "depends": [*depends],
        "imports": [name],
        "unvendored_tests": False,
        "tool": {},
    }
