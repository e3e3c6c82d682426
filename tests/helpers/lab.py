"""A JupyterLab server for one test, isolated from the user's settings."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from needs import needs

START_TIMEOUT = 300  # seconds for a server or a kernel to start on a slow machine
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',  # renders cells outside the viewport
}

# Jupyter runs in the page as `jupyterapp`.
RUN_ALL_CELLS = """() => {
    window.ended = null;
    window.jupyterapp.commands.execute('notebook:run-all-cells').then((done) => { window.ended = done; });
}"""
# Errors, messages on stderr, and widgets that are empty or not shown.
FIND_FAULTS = """() => {
    const found = [];
    for (const cell of window.jupyterapp.shell.currentWidget.content.widgets) {
        if (cell.model.type !== 'code') continue;
        const says = (what) => found.push(what + ': ' + cell.model.sharedModel.getSource().slice(0, 200));
        for (const output of cell.model.outputs.toJSON()) {
            if (output.output_type === 'error') says(output.ename + ' ' + output.evalue);
            if (output.name === 'stderr') says('stderr ' + output.text);
        }
        for (const view of cell.node.querySelectorAll('[data-mime-type="application/vnd.jupyter.widget-view+json"]')) {
            const {width, height} = view.getBoundingClientRect();
            if (!view.querySelector('.jupyter-widgets, .minigrad, figure, svg, canvas') || height < 8 || width < 8)
                says('an empty widget');
        }
        if (/Error displaying widget|Loading widget/.test(cell.node.textContent)) says('a widget that is not shown');
    }
    return found;
}"""


class Lab:
    """A context manager that runs the server on a folder of notebooks."""

    def __init__(self, folder: Path) -> None:
        needs("chromium", "playwright")
        needs("jupyterlab")
        self._folder, config = folder, folder / ".jupyter"
        for name, content in SETTINGS.items():
            settings = config / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            settings.parent.mkdir(parents=True)
            settings.write_text(content, encoding="utf-8")
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self._env = os.environ | {f"JUPYTER_{x}_DIR": str(config / x.lower()) for x in ("CONFIG", "DATA", "RUNTIME")}
        self._env |= {"JUPYTERLAB_SETTINGS_DIR": str(config / "settings"), "IPYTHONDIR": str(config / "ipython")}
        self._command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
        self._command += ["--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
        self._command += ["--LabApp.expose_app_in_browser=True", "--log-level=ERROR"]

    def __enter__(self) -> "Lab":
        options: Any = {"env": self._env, "cwd": self._folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self._server = subprocess.Popen(self._command, **options)
        deadline = time.monotonic() + START_TIMEOUT
        while not self._is_ready():
            assert self._server.poll() is None, self._server.stderr.read().decode()
            assert time.monotonic() < deadline, "The server does not respond."
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.communicate()

    def _is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.address}/api", timeout=5).close()
        except OSError:
            return False
        return True

    def open_notebook(self, watched: Any, name: str, **size: int) -> Any:
        """Open a notebook in a page and wait until its kernel is idle."""
        page = watched(**{"width": 1400, "height": 1000, **size}, servers=(self.address,), expects_errors=None)
        page.goto(f"http://{self.address}/lab/workspaces/test/tree/{name}?reset")
        idle = page.locator("#jp-main-statusbar").get_by_text(re.compile(r"Python 3.*\| Idle"))
        idle.wait_for(timeout=START_TIMEOUT * 1000)
        return page
