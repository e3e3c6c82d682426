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

from needs import needs
from web_server import START_TIMEOUT

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    """Jupyter's record of the server that the command started, with separate settings and no browser."""
    needs("jupyterlab")
    settings = {f"JUPYTER_{x}_DIR": str(tmp_path / x.lower()) for x in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **settings, "IPYTHONDIR": str(tmp_path / "ipython")}
    environment.pop("JUPYTER_TOKEN", None)
    config = tmp_path / "config" / "jupyter_server_config.json"
    config.parent.mkdir()
    # A test opens no browser, and its user may be root.
    config.write_text(json.dumps({"ServerApp": {"open_browser": False, "allow_root": True}}), encoding="utf-8")
    command = [sys.executable, "-m", "minigrad", "lab", "lessons"]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, **options)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while not (records := list((tmp_path / "runtime").glob("jpserver-*.json"))) or not records[0].read_text():
            assert process.poll() is None
            assert time.monotonic() < deadline, "The server did not start."
            time.sleep(0.2)
        yield json.loads(records[0].read_text(encoding="utf-8"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def response_of(address, token=""):
    """Return the status of a response, and the URL after redirects."""
    request = urllib.request.Request(address, headers={"Authorization": f"token {token}"} if token else {})
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, response.url
        except urllib.error.HTTPError as refused:
            return refused.code, refused.url
        except OSError:  # not listening yet
            assert time.monotonic() < deadline
            time.sleep(0.2)


def listening_addresses(port):
    """Return the addresses, IPv4 and IPv6, on which a process listens at this port."""
    addresses = set()
    for file, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        with open(file, encoding="ascii") as rows:
            for row in list(rows)[1:]:
                local, state = row.split()[1], row.split()[3]
                address, port_hex = local.split(":")
                if state == "0A" and int(port_hex, 16) == port:
                    bytes_ = [bytes.fromhex(address[k : k + 8])[::-1] for k in range(0, len(address), 8)]
                    addresses.add(socket.inet_ntop(family, b"".join(bytes_)))
    return addresses


@pytest.mark.nightly
def test_the_server_is_local_and_requires_its_token(server):
    assert server["hostname"] == "localhost"
    assert os.path.basename(server["root_dir"]) == "lessons"
    assert len(server["token"]) >= 32
    contents = f"{server['url']}api/contents"
    assert response_of(contents)[0] == 403
    assert response_of(contents, server["token"][::-1])[0] == 403
    assert response_of(contents, server["token"]) == (200, contents)
    status, url = response_of(f"{server['url']}lab")
    assert (status, "/login?next=" in url) == (200, True)
    if os.path.exists("/proc/net/tcp"):
        assert listening_addresses(server["port"]) <= {"127.0.0.1", "::1"}
        assert listening_addresses(server["port"])
