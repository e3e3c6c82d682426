"""The error on first use of a package that is missing, incompatible or broken."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from minigrad.core import packages
from minigrad.core.packages import PACKAGES, explain_error, incompatibility
from needs import needs

ROOT = Path(__file__).parents[2]
BROKEN = """
import importlib.machinery, sys, types
def stub(name, version=None, **more):
    found = sys.modules[name] = types.ModuleType(name)
    found.__spec__ = importlib.machinery.ModuleSpec(name, None)
    found.__dict__.update(more if version is None else {"__version__": version, **more})
    return found
def missing(*names):
    sys.modules.update(dict.fromkeys(names))
class Fails:
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            raise ImportError(f"lib{name}.so: not found")
def fails(name):
    found = Fails()
    found.name = name
    sys.meta_path.insert(0, found)
"""
TENSOR = "import minigrad as mg; mg.ones(2) + 1"
NUMPY = "import minigrad as mg; mg.set_default_device('numpy'); mg.ones(2)"
PLAYER = "import minigrad as mg, minigrad_viz; minigrad_viz.step(mg.Value(2.0) * 3)"
DRAWN = "import minigrad as mg, minigrad_viz; minigrad_viz.to_graphviz(mg.Value(2.0) * 3)"
DRAW = "import minigrad as mg, minigrad_viz; minigrad_viz.draw(mg.Value(2.0) * 3)."
SAVED = "import io, minigrad as mg; mg.save({'a': mg.ones(1, device='numpy')}, io.BytesIO())"
FITTED = "from minigrad.training.progress import ProgressBar; ProgressBar(True, 'epoch 1', 0, 3)"
RAY = "from minigrad.distributed.ray_runtime import import_ray; import_ray()"
BY_NUMPY = ', or compute by NumPy: mg.set_default_device("numpy")'
PICTURE = ", or use minigrad_viz.draw(…), which needs none"
TAICHI = f'pip install "taichi>=1.7.4,<1.8"{BY_NUMPY}'
TAICHI_AGAIN = f'pip install --force-reinstall "taichi==1.7.4"{BY_NUMPY}'
NUMPY_AGAIN = 'pip install --force-reinstall "numpy>=2.1,<=2.4.6"'
CASES = {
    "taichi too new": (
        "stub('taichi', (1, 8, 0))",
        TENSOR,
        "kernels of Taichi: taichi 1.8.0 is installed, but minigrad requires taichi>=1.7.4,<1.8",
        TAICHI,
    ),
    "taichi too old": (
        "stub('taichi', (1, 6, 0))",
        TENSOR,
        "kernels of Taichi: taichi 1.6.0 is installed, but minigrad requires taichi>=1.7.4,<1.8",
        TAICHI,
    ),
    "taichi changed": (
        "stub('taichi', (1, 7, 4))",
        TENSOR,
        "add: taichi 1.7.4 has no lang, which minigrad uses; minigrad requires taichi==1.7.4",
        TAICHI_AGAIN,
    ),
    "taichi changed inside": (
        "import taichi; del taichi.lang.impl.get_runtime",
        TENSOR,
        "add: taichi 1.7.4 has no lang.impl.get_runtime, which minigrad uses; minigrad requires taichi==1.7.4",
        TAICHI_AGAIN,
    ),
    "taichi damaged": (
        "fails('taichi._lib')",
        TENSOR,
        (
            "kernels of Taichi: taichi 1.7.4 cannot be imported: libtaichi._lib.so: not found; "
            "minigrad requires taichi==1.7.4"
        ),
        TAICHI_AGAIN,
    ),
    "numpy too old": (
        "import numpy; numpy.__version__ = '1.26.4'",
        NUMPY,
        "minigrad: numpy 1.26.4 is installed, but minigrad requires numpy>=2.1",
        'pip install "numpy>=2.1"',
    ),
    "numpy too old, a module of ours first": (
        "import numpy; numpy.__version__ = '2.0.2'",
        "import minigrad.functional",
        "minigrad: numpy 2.0.2 is installed, but minigrad requires numpy>=2.1",
        'pip install "numpy>=2.1"',
    ),
    "numpy changed, a kernel": (
        "import numpy; numpy.__version__ = '3.0.0'; del numpy.tanh",
        "import minigrad as mg; mg.set_default_device('numpy'); mg.ones(2).tanh()",
        "minigrad: numpy 3.0.0 has no tanh, which minigrad uses; minigrad requires numpy>=2.1,<=2.4.6",
        NUMPY_AGAIN,
    ),
    "numpy changed, inside a kernel": (
        "import numpy; numpy.__version__ = '3.0.0'; del numpy.argsort",
        "import minigrad as mg; mg.set_default_device('numpy'); mg.ones(2).argsort()",
        "sort: numpy 3.0.0 has no argsort, which minigrad uses; minigrad requires numpy>=2.1,<=2.4.6",
        NUMPY_AGAIN,
    ),
    "numpy changed under taichi": (
        (
            "import numpy; numpy.__version__ = '3.0.0'\n"
            "exec('def __getattr__(name): import numpy; return numpy.bool8', stub('taichi', (1, 7, 4)).__dict__)"
        ),
        TENSOR,
        "add: numpy 3.0.0 has no bool8, which taichi uses; minigrad requires numpy>=2.1,<=2.4.6",
        NUMPY_AGAIN,
    ),
    "numpy damaged": (
        "fails('numpy._core')",
        NUMPY,
        (
            "minigrad: numpy {numpy} cannot be imported: libnumpy._core.so: not found; "
            "minigrad requires numpy>=2.1,<=2.4.6"
        ),
        NUMPY_AGAIN,
    ),
    "threadpoolctl old": (
        "stub('threadpoolctl', '2.9')",
        NUMPY + "; x = mg.ones(16, 1, 100, 100); mg.functional.conv2d(x, x[:1, :, :3, :3])",
        "BLAS threads: threadpoolctl 2.9 is installed, but minigrad requires threadpoolctl>=3",
        'pip install "threadpoolctl>=3"',
    ),
    "anywidget missing": (
        "missing('anywidget')",
        PLAYER,
        "players: the package anywidget is not installed",
        f'pip install "anywidget>=0.9.9"{PICTURE}',
    ),
    "anywidget too old": (
        "stub('anywidget', '0.8.1')",
        PLAYER,
        "players: anywidget 0.8.1 is installed, but minigrad requires anywidget>=0.9.9",
        f'pip install "anywidget>=0.9.9"{PICTURE}',
    ),
    "ipywidgets too old": (
        "stub('ipywidgets', '7.6.5')",
        PLAYER,
        "players: ipywidgets 7.6.5 is installed, but minigrad requires ipywidgets>=7.7",
        f'pip install "ipywidgets>=7.7"{PICTURE}',
    ),
    "anywidget changed": (
        "stub('anywidget', '1.0.0')",
        PLAYER,
        "players: anywidget 1.0.0 has no AnyWidget, which minigrad uses; minigrad requires anywidget>=0.9.9,<=0.11.0",
        f'pip install --force-reinstall "anywidget>=0.9.9,<=0.11.0"{PICTURE}',
    ),
    "a package of theirs missing": (
        "fails('psygnal')",
        PLAYER,
        (
            "players: anywidget {anywidget} cannot be imported: libpsygnal.so: not found; "
            "minigrad requires anywidget>=0.9.9,<=0.11.0"
        ),
        f'pip install --force-reinstall "anywidget>=0.9.9,<=0.11.0"{PICTURE}',
    ),
    "graphviz missing": (
        "missing('graphviz')",
        DRAWN,
        "to_graphviz: the package graphviz is not installed",
        'pip install "graphviz>=0.20", or use draw(…), which needs none',
    ),
    "graphviz changed": (
        "stub('graphviz', '1.0')",
        DRAWN,
        "to_graphviz: graphviz 1.0 has no Digraph, which minigrad uses; minigrad requires graphviz>=0.20,<=0.21",
        'pip install --force-reinstall "graphviz>=0.20,<=0.21", or use draw(…), which needs none',
    ),
    "safetensors changed": (
        "stub('safetensors', '1.0', __path__=[])",
        SAVED,
        (
            "save and load: safetensors 1.0 has no numpy, which minigrad uses; "
            "minigrad requires safetensors>=0.5,<=0.8.0"
        ),
        'pip install --force-reinstall "safetensors>=0.5,<=0.8.0"',
    ),
    "ray missing": (
        "missing('ray')",
        RAY,
        "distributed.fit: the package ray is not installed",
        "pip install 'seegrad[ray]'",
    ),
    "ray too old": (
        "stub('ray', '2.9.3')",
        RAY,
        "distributed.fit: ray 2.9.3 is installed, but minigrad requires ray>=2.60",
        "pip install 'seegrad[ray]'",
    ),
    "ray without its Tune": (
        "stub('ray', '2.60.0', __path__=[])",
        "from minigrad.core.packages import import_package; import_package('ray.tune', 'sweep')",
        "sweep: ray 2.60.0 has no tune, which minigrad uses; minigrad requires ray>=2.60,<=2.60.0",
        "pip install 'seegrad[ray]' \"ray>=2.60,<=2.60.0\"",
    ),
    "typst missing": (
        "missing('typst')",
        DRAW + "save('y.png')",
        "save: the package typst is not installed",
        "pip install 'seegrad[pictures]', or save as SVG, which needs none",
    ),
    "typst too old": (
        "stub('typst', '0.13.0')",
        DRAW + "save('y.pdf')",
        "save: typst 0.13.0 is installed, but minigrad requires typst>=0.14.5",
        "pip install 'seegrad[pictures]', or save as SVG, which needs none",
    ),
    "av missing": (
        "missing('av')",
        "import minigrad as mg, minigrad_viz; minigrad_viz.play(mg.Value(2.0) * 3).save('y.mp4')",
        "save: the package av is not installed",
        "pip install 'seegrad[pictures]', or save as SVG, which needs none",
    ),
    "av changed": (
        "stub('av', '19.0')",
        "import minigrad as mg, minigrad_viz; minigrad_viz.play(mg.Value(2.0) * 3).save('y.gif')",
        "save: av 19.0 has no CodecContext, which minigrad uses; minigrad requires av>=13.0,<=18.1.0",
        "pip install 'seegrad[pictures]' \"av>=13.0,<=18.1.0\", or save as SVG, which needs none",
    ),
    "tqdm too old": (
        "stub('tqdm', '4.50.0', __path__=[]); stub('tqdm.auto')",
        FITTED,
        "fit, its progress: tqdm 4.50.0 is installed, but minigrad requires tqdm>=4.60",
        'pip install "tqdm>=4.60", or fit(…, progress=False)',
    ),
}


def ended(code: str) -> str:
    """Return the stderr of a program that fails."""
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert child.returncode == 1, child.stdout
    return child.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_error_names_the_package_the_versions_and_the_command(case):
    needs("numpy")
    initial, use, message, command = CASES[case]
    for name in re.findall(r"import (taichi|numpy)|fails\('(taichi)|stub\('(safetensors|av)", initial):
        needs("".join(name))
    outputs = ended(BROKEN + initial + "\n" + use)
    assert outputs.count("Traceback") == 1, outputs  # no chained traceback of the package
    message = message.format(**{name: metadata.version(name) for name in PACKAGES if f"{{{name}}}" in message})
    assert outputs.endswith(f"minigrad.core.errors.MissingPackageError: {message}.\n  Run: {command}\n"), outputs


def test_in_a_page_the_error_says_that_packages_come_with_the_site():
    outputs = ended(f"{BROKEN}missing('graphviz')\nsys.platform = 'emscripten'\n{DRAWN}")
    assert outputs.endswith(
        "MissingPackageError: to_graphviz: the package graphviz is not installed.\n"
        "  In a cell of its own, run: import graphviz\n  It fails if the site was built without the package.\n"
    ), outputs


def test_version_ranges_match_pyproject_and_constraints():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {item.extra for item in PACKAGES.values() if item.extra}
    requested = [
        *project["dependencies"],
        *(one for extra in extras for one in project["optional-dependencies"][extra]),
    ]
    ranges = {}
    for one in requested:
        name, oldest, newest = re.match(r"(\w+)(?:\[\w+\])?>=([\d.]+)(?:,<([\d.]+))?(?:;|$)", one).groups("")
        ranges[name] = oldest, newest
    assert ranges == {name: (one.oldest, one.first_incompatible) for name, one in PACKAGES.items()}
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name}=={re.escape(one.tested)}$", constraints, re.M) for name, one in PACKAGES.items())


def test_the_required_names_of_numpy_are_those_used_outside_kernels():
    requested = set()
    for path in [*(ROOT / "minigrad").rglob("*.py"), *(ROOT / "viz" / "minigrad_viz").rglob("*.py")]:
        outputs = re.search(
            r"minigrad/(lessons|backends/(numpy|taichi)/(?!__init__))", path.relative_to(ROOT).as_posix()
        )
        for node in [] if outputs else ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
                requested.add(node.attr)
    assert sorted(requested) == packages._REQUIRED_NAMES["numpy"].split()


@pytest.mark.parametrize("name", PACKAGES)
def test_the_installed_packages_are_compatible(name):
    needs(name)
    packages.check_package(name)


@pytest.mark.parametrize(
    ("name", "version", "fits"),
    [
        ("numpy", "2.1.0rc1", True),
        ("numpy", "2.0.2", False),
        ("numpy", "10.0", True),
        ("numpy", "2.5.0.dev0+git20261124", True),
        ("taichi", "1.7.4", True),
        ("taichi", "1.7.3", False),
        ("taichi", "1.8", False),
        ("taichi", "1.10.0", False),
        ("graphviz", "0.20", True),
        ("graphviz", "0.9", False),
    ],
)
def test_versions_are_compared_by_components(name, version, fits):
    assert (incompatibility(name, version) == "") is fits


READERS = """
import numpy as np
import minigrad as mg
mg.set_default_device("numpy")
@mg.kernel("tanh", "numpy")
def tanh(a):
    return np.tangent(a)
mg.ones(2).tanh()
"""


def test_an_attribute_error_in_a_custom_kernel_is_unchanged():
    needs("numpy")
    assert ended(READERS).endswith("AttributeError: module 'numpy' has no attribute 'tangent'\n")


def test_unrelated_errors_are_unchanged():
    for error in (AttributeError("x"), ImportError("y"), ModuleNotFoundError("z", name="json.nothing")):
        assert explain_error(error) is None


def test_the_cli_prints_the_error_without_a_traceback(tmp_path):
    code = BROKEN + "stub('tqdm', '4.50.0')\nfrom minigrad.cli import main\nsys.exit(main(['tour']))"
    child = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stderr.splitlines()) == (
        2,
        [
            "minigrad tour: tqdm 4.50.0 is installed, but minigrad requires tqdm>=4.60.",
            '  Run: pip install "tqdm>=4.60"',
        ],
    )
