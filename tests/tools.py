"""What tests need besides Python. Where it is missing they are skipped, and one line says all of it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FRONTEND = Path(__file__).parents[1] / "viz" / "frontend"
PACKAGES = FRONTEND / "node_modules"

# Each tool: how to see that it is there, and how to get it.
_TOOLS = {
    "node": (lambda: shutil.which("node") is not None, "apt-get install nodejs npm"),
    "npm packages": (lambda: (PACKAGES / "esbuild").is_dir() and (PACKAGES / "typescript").is_dir(), "make frontend"),
    "dot": (lambda: shutil.which("dot") is not None, "apt-get install graphviz"),
    "chromium": (lambda: chromium() is not None, "apt-get install chromium"),
    "vulkan": (
        lambda: find_library("vulkan") is not None and any(Path("/usr/share/vulkan/icd.d").glob("lvp*")),
        "apt-get install libvulkan1 mesa-vulkan-drivers",
    ),
    "jupyterlab": (lambda: importlib.util.find_spec("jupyterlab") is not None, "pip install 'minigrad[lab]'"),
    "playwright": (lambda: importlib.util.find_spec("playwright") is not None, "pip install playwright"),
}


@cache
def chromium() -> str | None:
    """The browser's program, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@cache
def lacking() -> dict[str, str]:
    """The tools that are missing here, and how to get them."""
    return {name: advice for name, (is_there, advice) in _TOOLS.items() if not is_there()}


def need(*names: str) -> None:
    """Skip the test that is running where one of these tools is missing; in CI, where none may be, fail."""
    if not lacking().keys() & set(names):
        return
    missing = ", ".join(f"{name} ({advice})" for name, advice in lacking().items())
    if os.environ.get("CI_SKIPS_NOTHING"):
        pytest.fail(f"missing here: {missing}")
    pytest.skip(f"not checked in full here, for want of {missing}")


_RAY = """
import os
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
assert ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()
"""


@cache
def _ray_fails() -> str:
    """Why Ray does not start a process here, which takes ports and shared memory; "" where it does."""
    try:
        done = subprocess.run([sys.executable, "-c", _RAY], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return "no process came in 180 s"
    return (done.stderr.strip() or "it died").splitlines()[-1] if done.returncode else ""


def need_ray() -> None:
    """Skip the test that is running where Ray is not installed, or not able to start."""
    pytest.importorskip("ray", reason="needs the extra 'ray': make test EXTRAS=dev,ray")
    if _ray_fails():
        pytest.skip(f"Ray does not start here: {_ray_fails()}")


@contextmanager
def ray_runs() -> Iterator[Any]:
    """A block in which Ray runs with two processors, and its workers find what they train beside the tests."""
    need_ray()
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield ray
        ray.shutdown()
