"""Web servers that run for one test, on free ports of this machine."""

import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["START_TIMEOUT", "free_ports", "serving"]

START_TIMEOUT = 300  # seconds for a server or a kernel to start on a slow machine
STOP_TIMEOUT = 60  # seconds for a server to stop its own child processes


def free_ports(count: int) -> list[int]:
    """Return `count` ports of 127.0.0.1 that nothing listens on."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


@contextmanager
def serving(command: Sequence[str], url: str, env: Mapping[str, str], cwd: Path) -> Iterator[None]:
    """Run `command` until the block ends. The block begins when `url` responds; a server that stops before that fails
    the test with its output.
    """
    with tempfile.TemporaryFile() as output:
        server = subprocess.Popen(command, env=env, cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + START_TIMEOUT
            while not _responds(url):
                assert server.poll() is None, _text(output)
                assert time.monotonic() < deadline, f"{url} does not respond.\n{_text(output)}"
                time.sleep(0.1)
            yield
        except BaseException as error:
            error.add_note(_text(output)[-3000:])
            raise
        finally:
            server.terminate()
            server.wait(STOP_TIMEOUT)


def _responds(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


def _text(output: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    output.seek(0)
    return output.read().decode(errors="replace")
