"""The lessons on an emulated older processor: NumPy without SIMD, another OpenBLAS kernel, one thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs

needs("nbval")


ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


def elsewhere():
    """Return the environment of an older machine."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    there = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return env | threads | {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(there)}


@pytest.mark.nightly
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_says_the_same_on_another_processor(lesson):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--nbval"]
    command += ["--nbval-sanitize-with", "notebooks/sanitize.cfg", str(lesson)]
    done = subprocess.run(command, cwd=ROOT, env=elsewhere(), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_the_other_processor_is_another():
    code = "import numpy._core._multiarray_umath as m; print(any(m.__cpu_features__[x] for x in m.__cpu_dispatch__))"
    done = subprocess.run([sys.executable, "-c", code], env=elsewhere(), capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
