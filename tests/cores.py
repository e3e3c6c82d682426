"""The same work on one core and on more: a child process for each, as Taichi counts cores once, when it starts."""

import os
import subprocess
import sys

from places import HERE

FOLDER = os.path.join(os.path.dirname(__file__), "backends")


def digest_on(cores: int, module: str) -> str:
    """What `digest()` of a module of tests/backends gives where Taichi has so many cores."""
    default = f"import minigrad; minigrad.set_default_device({HERE!r}); "
    done = subprocess.run(
        [sys.executable, "-c", f"{default}import minigrad.backends.taichi, {module}; print({module}.digest())"],
        env=os.environ | {"TI_CPU_MAX_NUM_THREADS": str(cores), "PYTHONPATH": os.pathsep.join([FOLDER, *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
