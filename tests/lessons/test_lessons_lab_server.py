"""The server of `minigrad lab`: it accepts only local connections with its token."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from lab import STARTS
from needs import needs

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    """Jupyter's record of the server that the command started, with separate settings and no browser."""
    needs("jupyterlab")
    own = {f"JUPYTER_{x}_DIR": str(tmp_path / x.lower()) for x in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **own, "IPYTHONDIR": str(tmp_path / "ipython")}
    environment.pop("JUPYTER_TOKEN", None)
    config = tmp_path / "config" / "jupyter_server_config.json"
    config.parent.mkdir()
    # A test opens no browser, and its user may be root.
    config.write_text(json.dumps({"ServerApp": {"open_browser": False, "allow_root": True}}), encoding="utf-8")
    command = [sys.executable, "-m", "minigrad", "lab", "lessons"]
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, **how)
    try:
        late = time.monotonic() + STARTS
        while not (found := list((tmp_path / "runtime").glob("jpserver-*.json"))) or not found[0].read_text():
            assert process.poll() is None
            assert time.monotonic() < late, "The server did not start."
            time.sleep(0.2)
        yield json.loads(found[0].read_text(encoding="utf-8"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def answer(address, token=""):
    """Return the status of a response, and the URL after redirects."""
    asked = urllib.request.Request(address, headers={"Authorization": f"token {token}"} if token else {})
    late = time.monotonic() + STARTS
    while True:
        try:
            with urllib.request.urlopen(asked, timeout=20) as found:
                return found.status, found.url
        except urllib.error.HTTPError as refused:
            return refused.code, refused.url
        except OSError:  # not listening yet
            assert time.monotonic() < late
            time.sleep(0.2)


def listening(port):
    """Return the addresses, IPv4 and IPv6, on which a process listens at this port."""
    found = set()
    for file, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        with open(file, encoding="ascii") as rows:
            for row in list(rows)[1:]:
                local, state = row.split()[1], row.split()[3]
                address, at = local.split(":")
                if state == "0A" and int(at, 16) == port:
                    words = [bytes.fromhex(address[k : k + 8])[::-1] for k in range(0, len(address), 8)]
                    found.add(socket.inet_ntop(family, b"".join(words)))
    return found


@pytest.mark.nightly
def test_the_server_listens_to_this_machine_alone_and_wants_its_token(server):
    assert server["hostname"] == "localhost"
    assert os.path.basename(server["root_dir"]) == "lessons"
    assert len(server["token"]) >= 32
    contents = f"{server['url']}api/contents"
    assert answer(contents)[0] == 403
    assert answer(contents, server["token"][::-1])[0] == 403
    assert answer(contents, server["token"]) == (200, contents)
    status, place = answer(f"{server['url']}lab")
    assert (status, "/login?next=" in place) == (200, True)
    if os.path.exists("/proc/net/tcp"):
        assert listening(server["port"]) <= {"127.0.0.1", "::1"}
        assert listening(server["port"])
