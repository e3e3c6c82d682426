"""A JupyterLab server for one test, isolated from the user's settings."""

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from needs import needs
from web_server import START_TIMEOUT, free_ports, serving

__all__ = ["FIND_FAULTS", "IDLE", "RUN_ALL_CELLS", "SETTINGS", "Lab"]

IDLE = re.compile(r"Python 3.*\| Idle")  # text of the status bar when the kernel is idle
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',  # renders cells outside the viewport
}
# Scripts for a page in which Jupyter is `jupyterapp`: start its server with --LabApp.expose_app_in_browser=True.
RUN_ALL_CELLS = """() => {
    window.ended = null;
    window.jupyterapp.commands.execute('notebook:run-all-cells').then((done) => { window.ended = done; });
}"""
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
        if (/Error displaying widget|javascript error|Loading widget/.test(cell.node.textContent))
            says('a widget that is not shown');
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
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self._env = os.environ | {f"JUPYTER_{x}_DIR": str(config / x.lower()) for x in ("CONFIG", "DATA", "RUNTIME")}
        self._env |= {"JUPYTERLAB_SETTINGS_DIR": str(config / "settings"), "IPYTHONDIR": str(config / "ipython")}
        self._command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
        self._command += ["--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
        self._command += ["--LabApp.expose_app_in_browser=True", "--log-level=ERROR"]

    def __enter__(self) -> "Lab":
        self._running = ExitStack()
        url = f"http://{self.address}/api"
        self._running.enter_context(serving(self._command, url, self._env, self._folder))
        return self

    def __exit__(self, *error: Any) -> None:
        self._running.__exit__(*error)

    def open_notebook(self, watched: Any, name: str, **size: int) -> Any:
        """Open a notebook in a page and wait until its kernel is idle."""
        page = watched(**{"width": 1400, "height": 1000, **size}, servers=(self.address,), expects_errors=None)
        page.goto(f"http://{self.address}/lab/workspaces/test/tree/{name}?reset")
        page.locator("#jp-main-statusbar").get_by_text(IDLE).wait_for(timeout=START_TIMEOUT * 1000)
        return page
