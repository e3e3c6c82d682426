"""Requirements of tests besides Python and minigrad: one table, one skip message, and a summary at the end of a run.

``@pytest.mark.needs("dot")`` skips a test without Graphviz. ``needs("torch")`` in a module, fixture or test skips at
that point. A test that imports a package of the table is skipped if the package is not installed. The checks import
nothing heavy. This file is also the pytest plugin that enforces the message: a test that is skipped with another
message fails, and the end of a run lists what was missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from functools import cache, partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = [
    "FRONTEND",
    "LESSONS",
    "NEEDS",
    "PACKAGES",
    "SkipPolicy",
    "chromium",
    "firefox",
    "is_available",
    "missing_lookups",
    "missing_package",
    "needs",
    "needs_of_lesson",
    "reason",
]

TESTS = Path(__file__).parents[1]
VIEWER = TESTS.parent / "viz" / "minigrad_viz"
FRONTEND = TESTS.parent / "viz" / "frontend"
PACKAGES = FRONTEND / "node_modules"
SKIP_MESSAGE = re.compile(r"needs ([^:]+): (.+)", re.DOTALL)


class Requirement(NamedTuple):
    """How to check for a requirement, how to get it, and whether it depends on the machine or device."""

    is_available: Callable[[], bool]
    how_to_get: str
    is_machine_specific: bool = False


@cache
def chromium() -> str | None:
    """Return the path of the browser's executable, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@cache
def firefox() -> str | None:
    """Return the path of the browser's executable, or None."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


def _installed(*packages: str) -> bool:
    specs = [find_spec(package) for package in packages]
    return all(spec is not None and spec.origin is not None for spec in specs)  # None for a folder of that name


def _is_installed() -> bool:
    """Whether minigrad itself is installed, not only on the path."""
    return next(iter(metadata.distributions(name="seegrad")), None) is not None


def _program(name: str) -> bool:
    return shutil.which(name) is not None


def _default_device() -> str:
    import minigrad as mg

    return mg.get_default_device()


def _on_gpu(narrow: bool = False) -> bool:
    """Whether the default device is a GPU; if `narrow`, one without float64."""
    from minigrad.backends.devices import GPUS, NO_FLOAT64

    return _default_device() in (NO_FLOAT64 if narrow else GPUS)


def _fuses_products() -> bool:
    from minigrad.backends.taichi.runtime import muladd

    return muladd.FUSED


def _has_free_cores() -> bool:
    from minigrad.backends.taichi.codegen import barrier

    return barrier.can_use_barriers()


_START_RAY = """
import os
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
assert ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()
"""


def _ray_starts() -> bool:
    """Start Ray once in a child process: it needs ports and shared memory, which not every machine grants."""
    try:
        child = subprocess.run([sys.executable, "-c", _START_RAY], capture_output=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return False
    return child.returncode == 0


EXTRAS = {
    "": "numpy taichi safetensors anywidget ipywidgets IPython graphviz threadpoolctl tqdm",
    "dev": (
        "hypothesis ipykernel jupytext nbclient nbformat nbgrader nbval playwright jupyterlab matplotlib PIL pypdf yaml"
    ),
    "dev,parity": "torch expecttest mpmath autograd micrograd",
    "dev,book": "sphinx myst_nb bs4",
    "dev,lite": "jupyterlite_core jupyterlite_pyodide_kernel websocket",
    "dev,ray": "ray",
    "dev,pictures": "av typst",
    "dev,places": "jupyterhub marimo",
}
NEEDS = {
    package: Requirement(
        partial(_installed, package), f"make test EXTRAS={extras}" if extras else "pip install seegrad"
    )
    for extras, packages in EXTRAS.items()
    for package in packages.split()
} | {
    "an installed minigrad": Requirement(_is_installed, "pip install --editable .", is_machine_specific=True),
    "dot": Requirement(lambda: shutil.which("dot") is not None, "apt-get install graphviz"),
    "chromium": Requirement(lambda: chromium() is not None, "apt-get install chromium"),
    "firefox": Requirement(lambda: firefox() is not None, "apt-get install firefox-esr"),
    "node": Requirement(lambda: shutil.which("node") is not None, "apt-get install nodejs npm"),
    "npm packages": Requirement(
        lambda: (PACKAGES / "esbuild").is_dir() and (PACKAGES / "typescript").is_dir(),
        "apt-get install nodejs npm && make tools",
    ),
    "pyodide": Requirement(lambda: (PACKAGES / "pyodide").is_dir(), "apt-get install nodejs npm && make tools"),
    "configurable-http-proxy": Requirement(
        lambda: (PACKAGES / ".bin" / "configurable-http-proxy").exists(), "apt-get install nodejs npm && make tools"
    ),
    **{
        engine: Requirement(
            partial(_program, engine), "a machine with TeX (texlive-pictures)", is_machine_specific=True
        )
        for engine in ("pdflatex", "lualatex")
    },
    "vulkan": Requirement(
        lambda: find_library("vulkan") is not None and any(Path("/usr/share/vulkan/icd.d").glob("lvp*")),
        "apt-get install libvulkan1 mesa-vulkan-drivers",
    ),
    "Ray's processes": Requirement(
        _ray_starts, "a machine that grants Ray ports and shared memory", is_machine_specific=True
    ),
    "fcntl": Requirement(partial(_installed, "fcntl"), "a POSIX system", is_machine_specific=True),
    "POSIX": Requirement(lambda: os.name == "posix", "a POSIX system", is_machine_specific=True),
    "debootstrap": Requirement(
        lambda: shutil.which("debootstrap") is not None and os.geteuid() == 0,
        "apt-get install debootstrap, as root",
        is_machine_specific=True,
    ),
    "fork": Requirement(lambda: hasattr(os, "fork"), "a POSIX system", is_machine_specific=True),
    "Linux": Requirement(lambda: sys.platform.startswith("linux"), "a Linux system", is_machine_specific=True),
    "fused multiply-add": Requirement(_fuses_products, "a Linux system on x86-64", is_machine_specific=True),
    "free cores": Requirement(_has_free_cores, "a machine with several free cores", is_machine_specific=True),
    "the device cpu": Requirement(
        lambda: _default_device() == "cpu", "MINIGRAD_DEVICE=cpu make test", is_machine_specific=True
    ),
    "compiled kernels": Requirement(
        lambda: _default_device() != "numpy", "MINIGRAD_DEVICE=cpu make test", is_machine_specific=True
    ),
    "NumPy-accessible memory": Requirement(
        lambda: _default_device() in ("cpu", "numpy"), "MINIGRAD_DEVICE=cpu make test", is_machine_specific=True
    ),
    "a GPU": Requirement(_on_gpu, "MINIGRAD_DEVICE=cuda make test, with a GPU", is_machine_specific=True),
    "a larger machine": Requirement(
        lambda: False, "a machine with more memory, or more versions of Python", is_machine_specific=True
    ),
    "a machine without CUDA": Requirement(lambda: not _has_cuda(), "a machine without a GPU", is_machine_specific=True),
    "float64": Requirement(lambda: not _on_gpu(narrow=True), "a device that has it", is_machine_specific=True),
}


LESSONS = {"18": ("torch",)}
"""Requirements of a lesson beyond the dependencies of minigrad, by its number."""


def _has_cuda() -> bool:
    import minigrad as mg

    return mg.cuda.is_available()


@cache
def _is_available(name: str) -> bool:
    return NEEDS[name].is_available()


missing_lookups: set[str] = set()  # names of the table, until a consumer clears the set


def is_available(name: str) -> bool:
    """Whether this machine has the requirement of this name."""
    if not _is_available(name):
        missing_lookups.add(name)
    return _is_available(name)


def needs(*names: str) -> None:
    """Skip the running test, or the module being collected, unless all these requirements are met.

    Raises KeyError for a name that is not in the table.
    """
    for name in names:
        if not is_available(name):
            pytest.skip(reason(name), allow_module_level=True)


def needs_of_lesson(name: str) -> None:
    """Skip the running test unless the requirements are met of the lesson, exercise or file whose name begins with a
    lesson's number.
    """
    needs(*LESSONS.get(name[:2], ()))


def reason(name: str) -> str:
    """Return the standard skip message."""
    return f"needs {name}: {NEEDS[name].how_to_get}"


def missing_package(error: BaseException | None, path: Path | None = None) -> str | None:
    """Return the package of the table that a test helper, or the file at `path`, failed to import; else None."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package, failing_file = error.name.partition(".")[0], Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    is_from_tests = failing_file == path or TESTS in failing_file.parents
    return package if is_from_tests and package in NEEDS and not is_available(package) else None


class SkipPolicy:
    """Enforces the standard skip message, and lists the missing requirements at the end of a run."""

    def __init__(self) -> None:
        self.tests: Counter[str] = Counter()
        self.files: Counter[str] = Counter()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore modules that import PyTorch where it is missing: they cannot be imported for their examples."""
        needs_torch = collection_path.parent == VIEWER / "trace" / "torch" and collection_path.suffix == ".py"
        return True if needs_torch and not is_available("torch") else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("needs"):
            needs(*mark.args)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
        return _enforce_message((yield), call.excinfo and call.excinfo.value, item.path)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[Any]:
        report = yield
        error = report.call.excinfo and report.call.excinfo.value
        while error is not None and not isinstance(error, ModuleNotFoundError):
            error = error.__cause__  # pytest wraps errors raised during the import of a module
        report = _enforce_message(report, error, collector.path)
        if report.skipped:  # pytest-xdist drops duplicate reports: name the file, not this module
            report.longrepr = (str(collector.path), 0, report.longrepr[2])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.tests[_missing_requirement(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.files[_missing_requirement(report)] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for name, _ in (self.tests + self.files).most_common():
            skipped = [
                f"{count[name]:,} {unit if count[name] > 1 else unit[:-1]}"
                for count, unit in ((self.tests, "tests"), (self.files, "files"))
                if count[name]
            ]
            terminalreporter.write_line(f"{' and '.join(skipped)} skipped: {name} is missing. {_install_hint(name)}")


def _missing_requirement(report: Any) -> str:
    match = SKIP_MESSAGE.search(report.longrepr[2])
    assert match, report.longrepr
    return match[1]


def _install_hint(name: str) -> str:
    how_to_get = NEEDS[name].how_to_get
    return f"They run on {how_to_get}." if how_to_get.startswith("a ") else f"To run them: {how_to_get}"


def _enforce_message(report: Any, error: BaseException | None, path: Path) -> Any:
    """Return the report, with a failed import of a missing package as a skip and an invalid skip as a failure."""
    package = missing_package(error, path)
    if package and report.failed:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {reason(package)}")
    if not report.skipped or hasattr(report, "wasxfail"):
        return report
    _, _, message = report.longrepr
    match = SKIP_MESSAGE.search(message)
    if match is None or match[1] not in NEEDS:
        report.outcome = "failed"
        report.longrepr = f"skipped with a non-standard message ({message}): use needs() of tests/helpers/needs.py"
    elif os.environ.get("CI_SKIPS_NOTHING") and not NEEDS[match[1]].is_machine_specific:
        report.outcome = "failed"
        report.longrepr = f"no requirement may be missing in this run: {match[0]}"
    return report
