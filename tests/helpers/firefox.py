"""Firefox without a display, driven over WebDriver BiDi (w3c.github.io/webdriver-bidi), which it speaks itself."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from needs import firefox, needs

__all__ = ["Firefox"]

START_TIMEOUT = 120  # seconds
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disabled": True,  # only addresses of this machine are reached
    "toolkit.telemetry.enabled": False,
}


class Firefox:
    """A context manager with one tab, a new profile, and no network but this machine."""

    def __init__(self, profile: Path) -> None:
        needs("firefox", "websocket")
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [firefox(), "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._ids = itertools.count(1)

    def __enter__(self) -> Firefox:
        from websocket import create_connection

        assert self._process.stderr is not None
        log = []
        for line in self._process.stderr:
            log.append(line)
            if match := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                break
        else:
            raise AssertionError("Firefox did not start:\n" + "".join(log))
        self._socket = create_connection(f"{match[1]}/session", timeout=START_TIMEOUT, suppress_origin=True)
        self._send("session.new", capabilities={})
        self._tab = self._send("browsingContext.getTree")["contexts"][0]["context"]
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.communicate()

    def goto(self, address: str) -> None:
        self._send("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, function: str) -> Any:
        """Return what a JavaScript function, given as source, returns; its result travels as JSON."""
        call = f"async () => JSON.stringify(await ({function})())"
        result = self._send(
            "script.callFunction", functionDeclaration=call, target={"context": self._tab}, awaitPromise=True
        )
        assert result["type"] == "success", result["exceptionDetails"]["text"]
        return json.loads(result["result"].get("value", "null"))

    def wait_for(self, function: str, timeout: float) -> None:
        """Wait until a JavaScript function returns true."""
        deadline = time.monotonic() + timeout
        while not self.evaluate(function):
            assert time.monotonic() < deadline, f"Still false after {timeout} s: {function}"
            time.sleep(0.2)

    def _send(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := json.loads(self._socket.recv())).get("id") != number:
            pass  # an event
        assert message["type"] == "success", message
        return message["result"]
