"""``minigrad doctor``: what a machine has of what minigrad uses, and what to do about what is missing."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from minigrad import __version__
from minigrad.backends.devices import DEVICES
from minigrad.core.errors import printable
from minigrad.core.packages import PACKAGES, unfit

__all__ = ["Finding", "doctor"]

PATIENCE = 120  # seconds for a device to start
TRY = "import minigrad as mg; print((mg.ones(1000, device={device!r}) * 2).sum().item())"
STORED = "What is compiled cannot be stored in "
DRIVERS = {
    "cuda": "For an NVIDIA GPU install its driver.",
    "vulkan": "For other GPUs install a Vulkan driver (Debian: mesa-vulkan-drivers).",
    "metal": "It is the GPU of a Mac.",
}
EXTENSIONS = {"anywidget": "anywidget", "@jupyter-widgets/jupyterlab-manager": "ipywidgets"}


class Finding(NamedTuple):
    """What was found: whether it is there, "ok", "no" or "missing", what it is, and what to do about it."""

    state: str
    what: str
    advice: str = ""


def doctor(options: argparse.Namespace) -> int:
    """A line for each thing; the exit code is 1 if something is missing that lessons cannot do without."""
    print(f"minigrad {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores\n")
    found = []
    for finding in _findings():
        found.append(finding)
        print(printable(f"  {finding.state:<8}{finding.what}"), flush=True)
        if finding.advice:
            print(printable(f"  {'':<8}{finding.advice}"))
    missing = [one for one in found if one.state == "missing"]
    verdict = "Every lesson runs here." if not missing else "Lessons need what is missing."
    print(f"\n{verdict} To begin: minigrad lab" if not missing else f"\n{verdict}")
    return 1 if missing else 0


def _findings() -> Iterator[Finding]:
    yield _package("numpy", "NumPy", "Without it there are Values and no tensors.")
    yield _taichi()
    if find_spec("numpy"):
        yield from _devices()
    yield _package("matplotlib", "matplotlib", "The lessons draw with it.", "seegrad[lab]")
    yield _package("jupyterlab", "JupyterLab", "Or open the lessons in VS Code or Jupyter Notebook.", "seegrad[lab]")
    for extension, package in EXTENSIONS.items():
        yield _extension(extension, package)
    yield _player()
    yield _pictures()
    yield _dot()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _package(name: str, title: str, why: str, install: str = "") -> Finding:
    found = _version(name)
    if found is not None and find_spec(name) is not None:
        wrong = unfit(name, found) if name in PACKAGES else ""
        return Finding("missing" if wrong else "ok", f"{title} {found}{wrong and ', ' + wrong}")
    return Finding("missing", title, f"{why} Install it with: pip install '{install or name}'")


def _taichi() -> Finding:
    found = _version("taichi")
    if found is not None:
        wrong = unfit("taichi", found)
        return Finding("no" if wrong else "ok", f"Taichi {found}{wrong and ', ' + wrong}")
    advice = "Tensors are computed by NumPy. "
    if sys.version_info >= (3, 14):
        advice += "Taichi has no package for this Python; 3.11 to 3.13 have one."
    else:
        advice += "Where there is a package for this system: pip install taichi"
    return Finding("no", "Taichi", advice)


def _devices() -> Iterator[Finding]:
    """Each device is tried, in a process of its own, since Taichi starts for one architecture."""
    devices = ["numpy", *(DEVICES[1:] if _version("taichi") else [])]
    if sys.platform != "darwin" and "metal" in devices:
        devices.remove("metal")
    with ThreadPoolExecutor() as pool:
        for device, error in zip(devices, pool.map(_tried, devices), strict=True):
            if not error or error.startswith(STORED):
                yield Finding("ok", f"device {device}", error)
            else:
                yield Finding("no", f"device {device}: {error}", DRIVERS.get(device, ""))


def _tried(device: str) -> str:
    """Why a device does not compute here, or does not store what it compiles; "" if all is well."""
    command = [sys.executable, "-c", TRY.format(device=device)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"it gave no answer in {PATIENCE} s"
    if child.returncode == 0 and child.stdout.split()[-1:] == ["2000.0"]:
        return STORED + child.stderr.partition(STORED)[2].partition("\n")[0] if STORED in child.stderr else ""
    lines = [line for line in child.stderr.splitlines() if "Error" in line.split(":")[0]]
    return (
        lines[-1].partition(": ")[2].removeprefix(f"{device}: ")
        if lines
        else f"its process ended with code {child.returncode}"
    )


def _extension(name: str, package: str) -> Finding:
    """JupyterLab's half of a package of widgets, which lies beside what Python imports."""
    found = _version(package)
    folders = [Path(sys.prefix), Path(os.path.expanduser("~"), ".local"), Path("/usr/local"), Path("/usr")]
    there = any((folder / "share" / "jupyter" / "labextensions" / name).is_dir() for folder in folders)
    if found is not None and there:
        return Finding("ok", f"{package} {found}, with its part of JupyterLab")
    advice = f"Players and sliders stay pictures. Install it with: pip install --force-reinstall {package}"
    what = f"JupyterLab's part of {package}" if found is not None else package
    return Finding("missing", what, advice)


def _player() -> Finding:
    from minigrad_viz.pictures import frontend

    try:
        size = len(frontend.module())
    except OSError:
        return Finding("missing", "the player's module", "Install minigrad anew; in a clone: make frontend")
    return Finding("ok", f"the player, {size / 1000:,.0f} kB")


def _pictures() -> Finding:
    """What makes PNG, PDF and films of drawings."""
    found = {name: _version(name) for name in ("typst", "av")}
    said = [f"{name} {number}{_unfit(name, number)}" for name, number in found.items() if number]
    if len(said) == 2 and not any(_unfit(name, number or "") for name, number in found.items()):
        return Finding("ok", f"pictures and films, by {' and '.join(said)}")
    advice = (
        "Without them drawings are saved as SVG, TikZ and pages. Install them with: pip install 'seegrad[pictures]'"
    )
    return Finding("no", f"typst and av, for PNG, PDF, GIF and MP4{(said and ': ' + ', '.join(said)) or ''}", advice)


def _unfit(name: str, number: str) -> str:
    return f", {wrong}" if (wrong := unfit(name, number)) else ""


def _dot() -> Finding:
    if shutil.which("dot"):
        return Finding("ok", "dot, of Graphviz")
    advice = "Only drawings by Graphviz need it (Debian: apt install graphviz; macOS: brew install graphviz)."
    return Finding("no", "dot, of Graphviz", advice)
