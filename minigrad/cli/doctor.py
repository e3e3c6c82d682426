"""``minigrad doctor``: check packages and devices, and print how to install what is missing."""

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
from minigrad.cli.platforms import platform_table
from minigrad.cli.warm import CACHE_WARNING, warm
from minigrad.core.errors import printable
from minigrad.core.packages import PACKAGES, incompatibility

__all__ = ["Finding", "doctor"]

DEVICE_TIMEOUT = 120  # timeout in seconds for a device to start
DEVICE_TEST = "import minigrad as mg; print((mg.ones(1000, device={device!r}) * 2).sum().item())"
DRIVERS = {
    "cuda": "For an NVIDIA GPU install its driver.",
    "vulkan": "For other GPUs install a Vulkan driver (Debian: mesa-vulkan-drivers).",
    "metal": "It requires a Mac.",
}
EXTENSIONS = {"anywidget": "anywidget", "@jupyter-widgets/jupyterlab-manager": "ipywidgets"}


class Finding(NamedTuple):
    """Result of a check: its state ("ok", "no" or "missing"), the checked item, and advice for the user."""

    state: str
    item: str
    advice: str = ""


def doctor(options: argparse.Namespace) -> int:
    """Print a line per check. Return exit code 1 if a requirement of the lessons is missing, otherwise 0.

    With ``--table``, print what runs on which platform instead; with ``--warm``, compile the most common kernels.
    """
    if options.warm:
        return warm()
    if options.table:
        print(platform_table(), end="")
        return 0
    print(f"minigrad {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores\n")
    findings = []
    for finding in _run_checks():
        findings.append(finding)
        print(printable(f"  {finding.state:<8}{finding.item}"), flush=True)
        if finding.advice:
            print(printable(f"  {'':<8}{finding.advice}"))
    missing = [one for one in findings if one.state == "missing"]
    has_torch = any(one.state == "ok" and one.item.startswith("PyTorch") for one in findings)
    runnable = f"All lessons{'' if has_torch else ' except 18'} can run here."
    verdict = runnable if not missing else "Lessons require the missing packages."
    print(f"\n{verdict} To start: minigrad lab" if not missing else f"\n{verdict}")
    return 1 if missing else 0


def _run_checks() -> Iterator[Finding]:
    yield _check_package("numpy", "NumPy", "Without it there are Values but no tensors.")
    yield _check_taichi()
    if find_spec("numpy"):
        yield from _check_devices()
    yield _check_package("matplotlib", "matplotlib", "The lessons plot with it.", "seegrad[lab]")
    yield _check_package(
        "jupyterlab", "JupyterLab", "Or open the lessons in VS Code or Jupyter Notebook.", "seegrad[lab]"
    )
    for extension, package in EXTENSIONS.items():
        yield _check_extension(extension, package)
    yield _check_player()
    yield _check_picture_packages()
    yield _check_graphviz()
    yield _check_torch()


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _check_package(name: str, title: str, why: str, install: str = "") -> Finding:
    installed = _installed_version(name)
    if installed is not None and find_spec(name) is not None:
        mismatch = incompatibility(name, installed) if name in PACKAGES else ""
        return Finding("missing" if mismatch else "ok", f"{title} {installed}{mismatch and ', ' + mismatch}")
    return Finding("missing", title, f"{why} Install it with: pip install '{install or name}'")


def _check_taichi() -> Finding:
    installed = _installed_version("taichi")
    if installed is not None:
        mismatch = incompatibility("taichi", installed)
        return Finding("no" if mismatch else "ok", f"Taichi {installed}{mismatch and ', ' + mismatch}")
    advice = "NumPy runs the tensor kernels instead. "
    if sys.version_info >= (3, 14):
        advice += "Taichi does not support this version of Python; it supports 3.11 to 3.13."
    else:
        advice += "If a wheel exists for this platform: pip install taichi"
    return Finding("no", "Taichi", advice)


def _check_devices() -> Iterator[Finding]:
    """Check each device in a subprocess, since Taichi supports one architecture per process. Yield the results."""
    devices = ["numpy", *(DEVICES[1:] if _installed_version("taichi") else [])]
    if sys.platform != "darwin" and "metal" in devices:
        devices.remove("metal")
    with ThreadPoolExecutor() as pool:
        for device, error in zip(devices, pool.map(_test_device, devices), strict=True):
            if not error or error.startswith(CACHE_WARNING):
                yield Finding("ok", f"device {device}", error)
            else:
                yield Finding("no", f"device {device}: {error}", DRIVERS.get(device, ""))


def _test_device(device: str) -> str:
    """Return the reason that a device cannot run a kernel or cache compiled kernels, or "" if it can."""
    command = [sys.executable, "-c", DEVICE_TEST.format(device=device)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=DEVICE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"timed out after {DEVICE_TIMEOUT} s"
    if child.returncode == 0 and child.stdout.split()[-1:] == ["2000.0"]:
        return (
            CACHE_WARNING + child.stderr.partition(CACHE_WARNING)[2].partition("\n")[0]
            if CACHE_WARNING in child.stderr
            else ""
        )
    lines = [line for line in child.stderr.splitlines() if "Error" in line.split(":")[0]]
    return (
        lines[-1].partition(": ")[2].removeprefix(f"{device}: ")
        if lines
        else f"the process exited with code {child.returncode}"
    )


def _check_extension(name: str, package: str) -> Finding:
    """Check the JupyterLab extension of a widget package, which is installed apart from its Python module."""
    installed = _installed_version(package)
    folders = [Path(sys.prefix), Path(os.path.expanduser("~"), ".local"), Path("/usr/local"), Path("/usr")]
    is_installed = any((folder / "share" / "jupyter" / "labextensions" / name).is_dir() for folder in folders)
    if installed is not None and is_installed:
        return Finding("ok", f"{package} {installed}, with its JupyterLab extension")
    advice = f"Players and sliders remain static images. Install it with: pip install --force-reinstall {package}"
    item = f"the JupyterLab extension of {package}" if installed is not None else package
    return Finding("missing", item, advice)


def _check_player() -> Finding:
    from minigrad_viz.pictures import frontend

    try:
        size = len(frontend.module())
    except OSError:
        return Finding("missing", "the player's JavaScript module", "Reinstall minigrad; in a clone: make frontend")
    return Finding("ok", f"the player, {size / 1000:,.0f} kB")


def _check_picture_packages() -> Finding:
    """Check the packages that render drawings as PNG, PDF and video."""
    versions = {name: _installed_version(name) for name in ("typst", "av")}
    descriptions = [
        f"{name} {installed}{_version_mismatch(name, installed)}" for name, installed in versions.items() if installed
    ]
    if len(descriptions) == 2 and not any(
        _version_mismatch(name, installed or "") for name, installed in versions.items()
    ):
        return Finding("ok", f"images and videos, by {' and '.join(descriptions)}")
    advice = "Without them drawings are saved as SVG, TikZ and HTML. Install them with: pip install 'seegrad[pictures]'"
    return Finding(
        "no",
        f"typst and av, for PNG, PDF, GIF and MP4{(descriptions and ': ' + ', '.join(descriptions)) or ''}",
        advice,
    )


def _version_mismatch(name: str, installed: str) -> str:
    return f", {mismatch}" if (mismatch := incompatibility(name, installed)) else ""


def _check_graphviz() -> Finding:
    if shutil.which("dot"):
        return Finding("ok", "dot, from Graphviz")
    advice = "Only drawings by Graphviz require it (Debian: apt install graphviz; macOS: brew install graphviz)."
    return Finding("no", "dot, from Graphviz", advice)


def _check_torch() -> Finding:
    installed = _installed_version("torch")
    if installed is not None and find_spec("torch") is not None:
        return Finding("ok", f"PyTorch {installed}")
    return Finding("no", "PyTorch", "Only lesson 18 and drawings of PyTorch models require it. pip install torch")
