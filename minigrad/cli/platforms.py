"""``minigrad doctor --table``: what runs on which platform and Python, derived from the distribution's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires
from itertools import groupby
from typing import NamedTuple

from minigrad.backends.devices import GPUS
from minigrad.cli.errors import CommandError

__all__ = ["PLATFORMS", "PYTHONS", "Platform", "platform_table", "tabulate"]

DISTRIBUTION = "seegrad"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
HEAD = (
    "platform",
    "Python",
    "Values, viewer",
    "tensors on `numpy`",
    "`cpu` kernels (Taichi)",
    "GPU devices (Taichi)",
    "`mg.jit`",
    "several processes (Ray)",
    "tested",
)
NOT_TESTED = "no"
GPUS_OF_APPLE = ("metal",)
OTHER_GPUS = tuple(name for name in GPUS if name not in GPUS_OF_APPLE)


class Platform(NamedTuple):
    """A platform: its name, its environment markers, and what no metadata of minigrad says about it."""

    name: str
    sys_platform: str
    platform_machine: str
    gpus: tuple[str, ...] = ()
    """Devices of `minigrad.backends.devices.GPUS` for which Taichi's wheel has a driver."""
    without_wheels: tuple[str, ...] = ()
    """Dependencies that publish no wheel for the platform."""
    tested: tuple[tuple[str, str], ...] = ()
    """What is tested there, by version of Python."""
    pythons: tuple[str, ...] = PYTHONS
    is_bundled: bool = False
    """Whether `make lite` bundles the packages, which does not check Requires-Python."""


PLATFORMS = (
    Platform(
        "Linux x86-64",
        "linux",
        "x86_64",
        OTHER_GPUS,
        tested=(
            ("3.11", "every test"),
            ("3.12", "quick tests"),
            ("3.13", "quick tests"),
            ("3.14", "quick tests, on `numpy`"),
        ),
    ),
    Platform("Linux ARM64", "linux", "aarch64"),
    Platform("Linux, 32 bits", "linux", "i686", without_wheels=("numpy", "ray"), tested=(("3.14", "quick tests"),)),
    Platform("macOS, Apple silicon", "darwin", "arm64", GPUS_OF_APPLE),
    Platform("macOS, Intel", "darwin", "x86_64", without_wheels=("ray",)),
    Platform("Windows x86-64", "win32", "AMD64", OTHER_GPUS),
    Platform(
        "web page (Pyodide)",
        "emscripten",
        "wasm32",
        without_wheels=("ray",),
        tested=(("3.14", "lessons 1 to 5, in Chromium and Firefox"),),
        pythons=("3.14",),
        is_bundled=True,
    ),
)


def platform_table() -> str:
    """Return the table as Markdown. Raises CommandError without the package "packaging" or an installed minigrad."""
    try:
        return tabulate(requires(DISTRIBUTION) or [], metadata(DISTRIBUTION)["Requires-Python"] or "")
    except PackageNotFoundError:
        raise CommandError("minigrad doctor: minigrad is not installed; in a clone, run: pip install .") from None


def tabulate(requirements: Iterable[str], requires_python: str) -> str:
    """Return the table for the requirements of a distribution and the versions of Python that it supports.

    Raises CommandError without the package "packaging", which evaluates the markers of the requirements.

    >>> rows = tabulate(["numpy", "taichi; platform_machine == 'x86_64'"], ">=3.11").splitlines()
    >>> rows[3]
    '| Linux x86-64 | 3.12 to 3.13 | yes | yes | yes | `cuda`, `vulkan` | fused, merged | – | quick tests |'
    """
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    requirements = list(requirements)
    for platform in PLATFORMS:
        rows = [(python, _cells(platform, python, requirements, requires_python)) for python in platform.pythons]
        for cells, group in groupby(rows, key=lambda row: row[1]):
            pythons = [python for python, _ in group]
            span = pythons[0] if len(pythons) == 1 else f"{pythons[0]} to {pythons[-1]}"
            lines.append(_line([platform.name, span, *cells]))
    return "\n".join(lines) + "\n"


def _cells(platform: Platform, python: str, requirements: Sequence[str], requires_python: str) -> list[str]:
    """Return the cells of a row after the names of the platform and of Python."""
    try:
        from packaging.specifiers import SpecifierSet
    except ModuleNotFoundError:
        advice = "install it with: pip install packaging"
        raise CommandError(f"minigrad doctor: the table requires the package packaging; {advice}") from None
    violated = sorted(str(bound) for bound in SpecifierSet(requires_python) if python not in bound)
    if violated and not platform.is_bundled:
        return [f"no: needs Python {', '.join(violated)}", *["–"] * (len(HEAD) - 3)]
    installed = _installed(platform, python, requirements, "")
    taichi = "taichi" in installed
    numpy = "yes" if "numpy" in installed else "yes, with Pyodide's NumPy"
    if "numpy" in platform.without_wheels:
        numpy = "yes, with the system's NumPy"
    has_ray = "ray" in _installed(platform, python, requirements, "ray") and "ray" not in platform.without_wheels
    return [
        "yes",
        numpy,
        "yes" if taichi else "–",
        ", ".join(f"`{gpu}`" for gpu in platform.gpus) if taichi and platform.gpus else "–",
        "fused, merged" if taichi else "replayed",
        "yes" if has_ray else "–",
        dict(platform.tested).get(python, NOT_TESTED),
    ]


def _installed(platform: Platform, python: str, requirements: Sequence[str], extra: str) -> set[str]:
    """Return the names of the packages that pip installs on a platform with an extra, or with none if `extra` is ""."""
    from packaging.requirements import Requirement

    environment = {
        "sys_platform": platform.sys_platform,
        "platform_machine": platform.platform_machine,
        "platform_system": {"win32": "Windows"}.get(platform.sys_platform, platform.sys_platform.capitalize()),
        "os_name": "nt" if platform.sys_platform == "win32" else "posix",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": extra,
    }
    parsed = [Requirement(text) for text in requirements]
    return {one.name for one in parsed if one.marker is None or one.marker.evaluate(environment)}


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
