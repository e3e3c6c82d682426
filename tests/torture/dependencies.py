"""Run the tests in fresh environments: the oldest and newest packages, no Taichi, no NumPy; and with names removed.

An environment is created in a temporary folder, by an interpreter of this machine, with packages from pip's index.
constraints.txt pins all packages but minigrad's own dependencies, unless an old package requires older ones.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from minigrad.core.packages import PACKAGES
from torture import Campaign, Skip

__all__ = ["CAMPAIGNS"]

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
KINDS = ("no numpy", "oldest", "newest", "no taichi")
TOOLS = ("hypothesis", "ipykernel", "jupytext", "matplotlib", "nbclient", "pytest", "pytest-xdist", "ruff")
SECONDS = 3600
# The tests that pass without NumPy: Values, their networks, their pictures and the errors of everything else.
VALUES = [
    *(
        "tests/core/test_value.py",
        "tests/core/test_graph.py",
        "tests/autograd/test_gradcheck.py",
        "tests/core/test_dispatch.py",
    ),
    *("tests/core/test_packages.py", "tests/ops", "tests/nn/test_scalar.py"),
    *("tests/backends/test_python.py", "tests/backends/formula/test_formula.py"),
    *("tests/viz/pictures/test_text.py", "tests/viz/pictures/test_svg.py", "tests/viz/layout", "tests/viz/trace"),
    "tests/viz/frontend/test_engine.py",
    *("minigrad/core/value.py", "minigrad/core/op.py", "minigrad/nn/scalar.py", "minigrad/core/packages.py"),
]


def interpreter(version: str) -> str:
    """Return a Python of that version that can create environments. Raises Skip if there is none."""
    code = f"import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != ({version.replace('.', ', ')}))"
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (sys.executable, shutil.which(f"python{version}"), *map(str, installed)):
        if candidate and not subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode:
            return candidate
    raise Skip(f"needs Python {version}")


def requirements(kind: str) -> tuple[list[str], list[str]]:
    """Return pip's requirements and constraints. Extras, such as the 0.4 GB of Ray, are omitted."""
    packages = {name: one for name, one in PACKAGES.items() if not one.extra}
    pinned = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line]
    if kind == "oldest":
        tools = [line for line in pinned if line.partition("==")[0] in TOOLS]
        return [f"{name}=={one.oldest}" for name, one in packages.items()] + list(TOOLS), tools
    left_out = {"no numpy": ("numpy", "taichi", "matplotlib"), "no taichi": ("taichi",), "newest": ()}[kind]
    ranges = [
        f"{name}>={one.oldest}{one.first_incompatible and ',<' + one.first_incompatible}"
        for name, one in packages.items()
    ]
    requested = [one for one in (*ranges, *TOOLS) if re.split("[>=]", one)[0] not in left_out]
    return requested, [] if kind == "newest" else pinned


def create_environment(folder: Path, python: str, kind: str) -> str:
    """Return the interpreter of a new environment with this minigrad. Raises Skip if pip reaches no packages."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True)
    interpreter = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    requested, pinned = requirements(kind)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pinned), encoding="utf-8")
    pip = [interpreter, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    for arguments in (["--constraint", str(constraints), *requested], ["--no-deps", "--editable", str(ROOT)]):
        child = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)
        if child.returncode:
            errors = [line for line in child.stderr.splitlines() if line.startswith("ERROR")]
            if any("from versions: none" in line or "Connection" in line for line in errors):
                raise Skip("needs packages that pip can reach")
            raise AssertionError(f"pip cannot install it: {errors[-3:] or child.stderr[-500:]}")
    return interpreter


def check_environment(case_number: int) -> str | None:
    """Run the quick tests in an environment; without NumPy those of Values. The first four cases cover all kinds."""
    kind, round_ = case_number % len(KINDS), case_number // len(KINDS)
    version, kind = PYTHONS[(kind + round_) % len(PYTHONS)], KINDS[kind]
    python = interpreter(version)
    with tempfile.TemporaryDirectory() as folder:
        python_path = create_environment(Path(folder) / "venv", python, kind)
        paths = VALUES if kind == "no numpy" else ["tests", "minigrad", "viz/minigrad_viz"]
        options = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not browser", "--numprocesses", "2"]
        if kind == "oldest":  # ipywidgets 7 warns about its own code
            options += ["-W", "ignore::DeprecationWarning"]
        environ = {key: text for key, text in os.environ.items() if key not in ("PYTHONPATH", "MINIGRAD_DEVICE")}
        child = subprocess.run(
            [python_path, "-m", "pytest", *options, "--dist", "loadscope", *paths],
            cwd=ROOT,
            env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    last = child.stdout.strip().splitlines()[-1:] or [child.stderr.strip()[-300:]]
    print(f"Python {version}, {kind}: {last[0]}")
    if child.returncode or not re.search(r"\b[1-9]\d+ passed", last[0]):
        failed = [line for line in child.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return f"Python {version}, {kind}: {last[0]}: {' | '.join(failed[:20]) or child.stdout[-1500:]}"
    return None


@functools.cache
def numpy_names() -> list[str]:
    """Return the names of NumPy that minigrad uses, as "linalg.inv", from its source."""
    names = set()
    for path in [*(ROOT / "minigrad").rglob("*.py"), *(ROOT / "viz" / "minigrad_viz").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and re.fullmatch(r"np(\.\w+)+", text := ast.unparse(node)):
                names.add(text.removeprefix("np."))
    # Which NumPy needs itself.
    return sorted(names - {"ndarray.__new__", "min", "linalg", "random", "lib", "lib.stride_tricks"})


USES = """
import io, sys
import numpy
*within, name = sys.argv[1].split(".")
place = numpy
for part in within:
    place = getattr(place, part)
if isinstance(place, numpy.ufunc):
    sys.exit("a method of one function")
import numpy.linalg, numpy.random, numpy.lib.stride_tricks
delattr(place, name)
numpy.__version__ = "9.0.0"
import minigrad as mg
mg.set_default_device("numpy")
mg.manual_seed(0)
x, labels = mg.randn(6, 1, 8, 8), mg.tensor([0, 1, 2, 0, 1, 2])
model = mg.nn.Sequential(mg.nn.Conv2d(1, 2, 3), mg.nn.GELU(), mg.nn.Flatten(), mg.nn.Linear(72, 3))
optimizer = mg.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    mg.nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()
y = mg.tensor([[3.0, 1.0], [1.0, 2.0]])
print(mg.linalg.inv(y), y.sort(), y.cumsum(0), y.std(), y[y > 1], mg.cat([y, y]), y.tolist(), y.numpy(), mg.eye(2))
mg.save(model.state_dict(), io.BytesIO())
"""


def without_name(case_number: int) -> str | None:
    """Remove one name that minigrad uses from NumPy."""
    name = numpy_names()[case_number]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "viz")])}
    child = subprocess.run(
        [sys.executable, "-c", USES, name], env=environment, capture_output=True, text=True, check=False
    )
    if not child.returncode or child.stderr == "a method of one function\n":
        return None
    message_pattern = (
        r"^minigrad.core.errors.MissingPackageError: [\w ]+: numpy 9.0.0 has no .*;.*\n  Run: pip install --force.*$"
    )
    if child.stderr.count("Traceback") == 1 and re.search(message_pattern, child.stderr, re.M):
        return None
    return f"{name}: {child.stderr.strip().splitlines()[-1]}"


CAMPAIGNS = [
    Campaign(
        "environments",
        "the tests with the oldest and the newest packages, without Taichi, without NumPy, on Python 3.11 to 3.13",
        check_environment,
        many=len(PYTHONS) * len(KINDS),
        few=0,
        seconds=SECONDS,
    ),
    Campaign(
        "names of numpy",
        "a NumPy without one of the names that minigrad uses: the error on first use",
        without_name,
        many=lambda: len(numpy_names()),
        few=4,
    ),
]
