"""The lessons on an emulated older processor: NumPy without SIMD, another OpenBLAS kernel, one thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs, needs_of_lesson

needs("nbval")


ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


def older_machine():
    """Return the environment of an older machine."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return env | threads | {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched)}


@pytest.mark.nightly
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_prints_the_same_on_an_older_processor(lesson):
    needs_of_lesson(lesson.stem)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--nbval"]
    command += ["--nbval-sanitize-with", "notebooks/sanitize.cfg", str(lesson)]
    child = subprocess.run(
        command, cwd=ROOT, env=older_machine(), capture_output=True, text=True, timeout=900, check=False
    )
    assert child.returncode == 0, child.stdout[-5000:] + child.stderr[-2000:]


@pytest.mark.slow
def test_the_older_processor_has_no_dispatched_features():
    code = "import numpy._core._multiarray_umath as m; print(any(m.__cpu_features__[x] for x in m.__cpu_dispatch__))"
    child = subprocess.run(
        [sys.executable, "-c", code], env=older_machine(), capture_output=True, text=True, check=True
    )
    assert child.stdout == "False\n"
