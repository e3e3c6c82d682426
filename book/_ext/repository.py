"""The web address of the repository that the book is built from, for the link on its home page.

It is known only where the book is built: from the environment of a CI service, or from the clone's remote. A build in a
clone of a local folder has no address, so the page has no link.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["find_repository", "web_address"]

# user@host:owner/repository, the short form of ssh addresses
SHORT_FORM = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/@:]+\.[^/@:]+):(?P<path>[^/].*)")


def find_repository(environment: Mapping[str, str], folder: Path) -> str:
    """Return the address of the repository in `folder` as an https or http URL, or "" if it has none.

    The first of these counts: REPOSITORY, a setting of the user, which may be empty for no link; GITHUB_SERVER_URL and
    GITHUB_REPOSITORY of GitHub Actions; CI_PROJECT_URL of GitLab CI; the remote "origin" of the clone. Raises
    ValueError if REPOSITORY is neither empty nor the address of a host.

    >>> find_repository({"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "ada/engine"}, Path())
    'https://github.com/ada/engine'
    """
    if (setting := environment.get("REPOSITORY")) is not None:
        if setting and not web_address(setting):
            raise ValueError(f"REPOSITORY is {setting!r}; expected an address such as https://host.org/owner/name.")
        return web_address(setting)
    server, name = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    addresses = [f"{server}/{name}" if server and name else "", environment.get("CI_PROJECT_URL", "")]
    return next((url for address in addresses if (url := web_address(address))), "") or web_address(_origin(folder))


def web_address(address: str) -> str:
    """Return the address of a Git repository as a URL for browsers, or "" for a local path or a name without a domain.

    User names, passwords, the ports of ssh and the ending ".git" are removed.

    >>> web_address("git@host.org:ada/engine.git"), web_address("https://ada:secret@host.org/ada/engine.git")
    ('https://host.org/ada/engine', 'https://host.org/ada/engine')
    >>> web_address("/srv/engine.git"), web_address("../engine"), web_address("C:/engine")
    ('', '', '')
    """
    address = address.strip()
    if (short := SHORT_FORM.fullmatch(address)) and "://" not in address:
        address = f"ssh://{short['host']}/{short['path']}"
    parts = urlsplit(address)
    host, path = parts.hostname or "", parts.path.strip("/").removesuffix(".git")
    if parts.scheme not in ("http", "https", "ssh") or not re.search(r"\.[a-z]", host) or not path:
        return ""
    if parts.scheme == "ssh":
        return f"https://{host}/{path}"
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}/{path}"


def _origin(folder: Path) -> str:
    """Return the URL of the remote "origin", or "" without Git, outside a clone, or without that remote."""
    command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
    try:
        process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
