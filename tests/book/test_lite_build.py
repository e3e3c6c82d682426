"""How the JupyterLite site is put together."""

import hashlib
import importlib.util
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from lite import Site, lock_entry, write_wheel
from needs import needs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lite():
    needs("jupyterlite_core")
    spec = importlib.util.spec_from_file_location("lite_build", ROOT / "book" / "lite" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def distribution(tmp_path):
    """A folder with a distribution of Pyodide that has three packages."""
    folder = tmp_path / "distribution"
    folder.mkdir()
    wheels = {name: write_wheel(folder, name) for name in ("numpy", "matplotlib", "cycler", "scipy")}
    depends = {"matplotlib": ["numpy", "Cycler"]}
    packages = {name: lock_entry(name, wheel, depends.get(name, ())) for name, wheel in wheels.items()}
    (folder / "pyodide-lock.json").write_text(json.dumps({"packages": packages}))
    return folder


def test_a_lock_entry_has_what_a_wheel_requires_in_a_page(lite, tmp_path):
    requirements = [
        "numpy>=2; sys_platform != 'emscripten'",
        "Some_Thing",
        "x; extra == 'dev'",
        "y; python_version < '3.14'",
    ]
    wheel = write_wheel(tmp_path, "whatever", "", requirements)
    assert lite.lock_entry(wheel, "3.14.2") == lock_entry("whatever", wheel, ["some-thing"])


def test_a_local_distribution_is_copied_with_what_it_requires(lite, distribution, tmp_path):
    packages = {"cycler": {"file_name": "already there"}}
    (tmp_path / "site").mkdir()
    lite.add_distribution(packages, {}, str(distribution), tmp_path / "site")
    assert sorted(packages) == ["cycler", "matplotlib", "numpy"]
    assert packages["cycler"] == {"file_name": "already there"}
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        "matplotlib-2.4.6-py3-none-any.whl",
        "numpy-2.4.6-py3-none-any.whl",
    ]


def test_an_archive_is_downloaded_and_extracted(lite, distribution, tmp_path):
    (tmp_path / "server").mkdir()
    with tarfile.open(tmp_path / "server" / "pyodide-314.0.7.tar.bz2", "w:bz2") as files:
        files.add(distribution, "pyodide")
    (tmp_path / "site").mkdir()
    packages = {}
    with Site(tmp_path / "server") as server:
        address = f"http://{server.address}/pyodide-314.0.7.tar.bz2"
        lite.add_distribution(packages, {}, address, tmp_path / "site")
    wheels = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "site").iterdir()}
    assert wheels == {entry["file_name"]: entry["sha256"] for entry in packages.values()}
    assert sorted(packages) == ["cycler", "matplotlib", "numpy"]


def test_the_address_of_a_folder_is_referred_to(lite, distribution, tmp_path):
    packages, available = {}, json.loads((distribution / "pyodide-lock.json").read_text())["packages"]
    lite.add_distribution(packages, available, "https://example.org/pyodide/", tmp_path)
    assert packages["numpy"]["file_name"] == "https://example.org/pyodide/numpy-2.4.6-py3-none-any.whl"
    assert sorted(packages) == ["cycler", "matplotlib", "numpy"]
    assert not list(tmp_path.glob("*.whl"))


def test_a_damaged_distribution_is_reported(lite, distribution, tmp_path):
    (distribution / "cycler-2.4.6-py3-none-any.whl").write_bytes(b"damaged")
    with pytest.raises(
        SystemExit, match=r"cycler-2\.4\.6-py3-none-any\.whl: its checksum differs from the lock file's"
    ):
        lite.add_distribution({}, {}, str(distribution), tmp_path)


def test_versions_are_those_of_the_constraints(lite):
    assert lite.pinned_versions()["anywidget"] == "0.11.0"
    assert lite.pinned_versions()["ipython-pygments-lexers"]


def test_bytecode_lies_beside_the_source_of_its_module(lite, tmp_path):
    wheel = tmp_path / "a_bytecode-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("a/__init__.pyc", b"one")
        files.writestr("a/b/module.pyc", b"two")
        files.writestr("a_bytecode-1.0.dist-info/METADATA", "Name: a-bytecode\n")
    lite.move_into_caches(wheel, "3.14.2")
    with zipfile.ZipFile(wheel) as files:
        assert {name: files.read(name) for name in files.namelist()} == {
            "a/__pycache__/__init__.cpython-314.pyc": b"one",
            "a/b/__pycache__/module.cpython-314.pyc": b"two",
            "a_bytecode-1.0.dist-info/METADATA": b"Name: a-bytecode\n",
        }


def test_the_startup_modules_are_those_that_the_player_imports(lite, tmp_path):
    own = tmp_path / "seegrad-0.1.0-py3-none-any.whl"
    names = [
        "minigrad/__init__.py",
        "minigrad/core/value.py",
        "minigrad_viz/widget/player.py",
        "minigrad/core/tensor.py",
    ]
    with zipfile.ZipFile(own, "w") as files:
        for name in names:
            files.writestr(name, "")
        files.writestr("seegrad-0.1.0.dist-info/METADATA", "Name: seegrad\nVersion: 0.1.0\n")
    wheel = lite.collect_startup_modules(own, tmp_path)
    assert wheel.name == "seegrad_bytecode-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as files:
        assert sorted(name for name in files.namelist() if name.endswith(".py")) == sorted(names[:3])  # no tensors
