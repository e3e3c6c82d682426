"""Build a static JupyterLite site: the lessons in a web page, where Pyodide (CPython in WebAssembly) runs them.

    python book/lite/build.py OUTPUT
    python book/lite/build.py OUTPUT --distribution DISTRIBUTION

Without a distribution of Pyodide the page has no NumPy, and lessons 1 to 5 run. DISTRIBUTION is the archive of a
release (pyodide-VERSION.tar.bz2), as a file or at an address, or a folder with its files: then NumPy and matplotlib are
copied to the site. It can also be the address of such a folder, from which the pages load them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYODIDE = ROOT / "viz" / "frontend" / "node_modules" / "pyodide"
EXTENSIONS = Path(sys.prefix, "share", "jupyter", "labextensions")
KERNEL_WHEELS = EXTENSIONS / "@jupyterlite" / "pyodide-kernel-extension" / "static" / "pypi"
CORE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"

KERNEL = ("ipykernel", "piplite", "pyodide-kernel", "widgetsnbextension")
"""Packages of the kernel's extension, which bring replacements for modules that need sockets."""
DISTRIBUTION = ("numpy", "matplotlib")
"""Packages that only Pyodide's distribution has, as they contain compiled code."""
LESSONS = range(1, 18)  # lesson 18 needs PyTorch
LEFT_OUT = re.compile(
    r"minigrad/(lessons/notebooks|backends/taichi|cli)/|minigrad/__main__\.py$|minigrad_viz/trace/torch/"
    r"|\.pyi$|\.dist-info/RECORD$"
)
"""Files of the wheel that a page cannot use: it has no Taichi, PyTorch or shell, and the lessons lie beside it."""

STARTUP = """
import sys
import minigrad as mg
from minigrad import lessons
from minigrad_viz import Plot, draw, step

y = mg.Value(2.0, "a").tanh()
y.backward()
step(y), draw(y)._repr_mimebundle_(), Plot().line([0, 1], [0, 1])._repr_mimebundle_()
print(*(name.replace(".", "/") for name in sys.modules if name.startswith("minigrad")))
"""
"""Prints the modules of minigrad that every lesson imports."""


def read_metadata(wheel: Path) -> tuple[Message, list[str]]:
    """Return the metadata of a wheel, and the modules and packages at its top level."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        text = files.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    modules = {name.split("/")[0] for name in names if not re.search(r"\.(dist-info|data)/", name)}
    return HeaderParser().parsestr(text), sorted({re.sub(r"\.pyc?$", "", name) for name in modules})


def dependencies(metadata: Message, python: str) -> list[str]:
    """Return the names of the packages that a wheel requires in a page."""
    environment = {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": "wasm32",
        "platform_python_implementation": "CPython",
        "platform_system": "Emscripten",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "emscripten",
    }
    requirements = map(Requirement, metadata.get_all("Requires-Dist") or [])
    return [
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(environment)
    ]


def lock_entry(wheel: Path, python: str) -> dict[str, Any]:
    """Return the entry of a wheel in Pyodide's lock file."""
    metadata, modules = read_metadata(wheel)
    return {
        "name": metadata["Name"],
        "version": metadata["Version"],
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "depends": dependencies(metadata, python),
        "imports": modules,
        "unvendored_tests": False,
        "tool": {},
    }


def pinned_versions() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def download_wheel(name: str, version: str, python: str, folder: Path) -> Path:
    """Download a wheel without compiled code, unless `folder` has it."""
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        target = ["--platform=any", f"--python-version={python}", "--implementation=py", "--abi=none"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--only-binary=:all:", *target, f"--dest={folder}", f"{name}=={version}"], check=True)
    return next(folder.glob(pattern))


def build_own_wheel(folder: Path) -> Path:
    """Build minigrad's wheel without the files that a page cannot use."""
    with TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, f"--wheel-dir={temporary}", str(ROOT)], check=True)
        (full,) = Path(temporary).glob("*.whl")
        wheel = folder / full.name
        with zipfile.ZipFile(full) as files, zipfile.ZipFile(wheel, "w") as kept:
            for name in files.namelist():
                if not LEFT_OUT.search(name):
                    kept.writestr(zipfile.ZipInfo(name), files.read(name), zipfile.ZIP_DEFLATED, 9)
    return wheel


def collect_wheels(own: Path, lock: dict[str, Any], cache: Path) -> dict[str, Path]:
    """Return minigrad's wheel and those that the kernel and minigrad require, by name.

    Of a package in Pyodide's distribution, the version there is taken, otherwise the one in constraints.txt.
    """
    python, pinned = lock["info"]["python"], pinned_versions()
    wheels = {canonicalize_name(read_metadata(own)[0]["Name"]): own}
    for name in KERNEL:
        wheels[name] = max(KERNEL_WHEELS.glob(f"{name.replace('-', '_')}-*.whl"))
    missing = [
        "ipython",
        "micropip",
        *(x for wheel in wheels.values() for x in dependencies(read_metadata(wheel)[0], python)),
    ]
    while missing:
        name = missing.pop()
        if name not in wheels:
            version = lock["packages"][name]["version"] if name in lock["packages"] else pinned[name]
            wheels[name] = download_wheel(name, version, python, cache)
            missing += dependencies(read_metadata(wheels[name])[0], python)
    return wheels


def compile_archives(archives: list[Path], folder: Path) -> None:
    """Write wheels and zip files to `folder` with their modules compiled to bytecode."""
    with TemporaryDirectory() as temporary:
        for archive in archives:
            shutil.copy(archive, temporary)
        subprocess.run(
            ["node", HERE / "compile.mjs", PYODIDE, temporary, folder], check=True, stdout=subprocess.DEVNULL
        )


def collect_startup_modules(own: Path, folder: Path) -> Path:
    """Write a wheel with the modules of minigrad that every lesson imports, and return its path.

    Compiled, it is unpacked over minigrad's own wheel, whose modules stay readable source code.
    """
    command = [sys.executable, "-c", STARTUP]
    imported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    metadata, _ = read_metadata(own)
    wheel = folder / own.name.replace("-", "_bytecode-", 1)
    name, version = f"{metadata['Name']}-bytecode", metadata["Version"]
    with zipfile.ZipFile(own) as files, zipfile.ZipFile(wheel, "w") as startup:
        for path in (path for module in imported for path in (f"{module}.py", f"{module}/__init__.py")):
            if path in files.namelist():
                startup.writestr(path, files.read(path))
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        startup.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        startup.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return wheel


def move_into_caches(wheel: Path, python: str) -> None:
    """Rename the bytecode in a wheel, ``x.pyc``, so that Python finds it beside the source, ``__pycache__/x.….pyc``."""
    tag = f"cpython-{''.join(python.split('.')[:2])}"
    with zipfile.ZipFile(wheel) as files:
        contents = {name: files.read(name) for name in files.namelist()}
    with zipfile.ZipFile(wheel, "w") as renamed:
        for name, content in contents.items():
            name = re.sub(r"([^/]+)\.pyc$", rf"__pycache__/\1.{tag}.pyc", name)
            renamed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


@contextmanager
def open_distribution(distribution: str) -> Iterator[Path]:
    """Yield a folder with the files of a distribution that is a folder, or the archive of a release."""
    with TemporaryDirectory() as temporary:
        archive = Path(distribution)
        if is_remote(distribution):
            archive = Path(temporary, "pyodide.tar.bz2")
            urllib.request.urlretrieve(distribution, archive)
        if archive.is_dir():
            yield archive
        else:
            with tarfile.open(archive) as files:
                files.extractall(temporary, filter="data")
            yield next(Path(temporary).rglob(LOCK)).parent


def is_remote(distribution: str) -> bool:
    return distribution.startswith(("https://", "http://"))


def add_distribution(packages: dict[str, Any], available: dict[str, Any], distribution: str, folder: Path) -> None:
    """Add NumPy, matplotlib and what they require to the packages of a lock file.

    They are copied to `folder`, or, from the address of a folder, referred to; `available` are the packages there.
    """
    if is_remote(distribution) and not distribution.endswith(".tar.bz2"):
        for name, entry in required_packages(available, packages):
            packages[name] = entry | {"file_name": f"{distribution.rstrip('/')}/{entry['file_name']}"}
        return
    with open_distribution(distribution) as source:
        lock = json.loads((source / LOCK).read_text(encoding="utf-8"))
        for name, entry in required_packages(lock["packages"], packages):
            wheel = source / entry["file_name"]
            if hashlib.sha256(wheel.read_bytes()).hexdigest() != entry["sha256"]:
                raise SystemExit(f"{wheel}: its checksum differs from the lock file's")
            shutil.copy(wheel, folder)
            packages[name] = entry


def required_packages(available: dict[str, Any], present: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the entries of NumPy, matplotlib and their dependencies that are not present."""
    required: dict[str, dict[str, Any]] = {}
    names = list(DISTRIBUTION)
    while names:
        name = canonicalize_name(names.pop())
        if name not in present and name not in required:
            required[name] = available[name]
            names += available[name]["depends"]
    return list(required.items())


def build_pyodide(folder: Path, cache: Path, distribution: str) -> None:
    """Write Pyodide, the packages of a page and their lock file to a folder."""
    lock = json.loads((PYODIDE / LOCK).read_text(encoding="utf-8"))
    python = lock["info"]["python"]
    with TemporaryDirectory() as temporary:
        own = build_own_wheel(Path(temporary))
        wheels = collect_wheels(own, lock, cache)
        startup = collect_startup_modules(own, Path(temporary))
        shutil.copy(own, folder)
        others = [wheel for wheel in wheels.values() if wheel != own]
        compile_archives([PYODIDE / "python_stdlib.zip", startup, *others], folder)
        move_into_caches(folder / startup.name, python)
        wheels[f"{canonicalize_name(read_metadata(own)[0]['Name'])}-bytecode"] = startup
    for name in CORE_FILES:
        if not (folder / name).exists():
            shutil.copy(PYODIDE / name, folder)
    packages = {name: lock_entry(folder / wheel.name, python) for name, wheel in wheels.items()}
    if distribution:
        add_distribution(packages, lock["packages"], distribution, folder)
    (folder / LOCK).write_text(json.dumps(lock | {"packages": packages}), encoding="utf-8")


def copy_lessons(folder: Path) -> None:
    """Copy the lessons with the name of the page's kernel, so that no dialog asks for one."""
    for number in LESSONS:
        (lesson,) = (ROOT / "notebooks").glob(f"{number:02}_*.ipynb")
        notebook = json.loads(lesson.read_text(encoding="utf-8"))
        notebook["metadata"]["kernelspec"] = {"display_name": "Python", "language": "python", "name": "python"}
        (folder / lesson.name).write_text(json.dumps(notebook), encoding="utf-8")
    shutil.copy(ROOT / "notebooks" / "lessons.mplstyle", folder)


def add_prefetches(site: Path) -> None:
    """Let the notebook's page download Pyodide and its packages beside its own scripts, and not after them."""
    files = sorted(path.relative_to(site) for path in (site / "static" / "pyodide").iterdir())
    links = "".join(f'<link rel="prefetch" href="../{path.as_posix()}">' for path in files)
    page = site / "notebooks" / "index.html"
    head, end, body = page.read_text(encoding="utf-8").partition("</head>")
    page.write_text(head + links + end + body, encoding="utf-8")


def build_site(output: Path, cache: Path, distribution: str) -> None:
    """Build the site into a new folder `output`. `cache` keeps downloaded wheels."""
    if not PYODIDE.is_dir():
        raise SystemExit("Pyodide is not installed.\n  Run `make tools`, which needs npm and a network.")
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        source = Path(temporary)
        (source / "static" / "pyodide").mkdir(parents=True)
        (source / "lessons").mkdir()
        build_pyodide(source / "static" / "pyodide", cache, distribution)
        copy_lessons(source / "lessons")
        for name in ("jupyter-lite.json", "overrides.json"):
            shutil.copy(HERE / name, source)
        extensions = ("@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension", "anywidget")
        settings = {
            "apps": ["notebooks", "tree"],
            "contents": ["lessons"],
            "federated_extensions": [str(EXTENSIONS / name) for name in extensions],
            "ignore_sys_prefix": ["federated_extensions"],
            "no_sourcemaps": True,
            "output_dir": str(output.resolve()),
        }
        (source / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": settings}), encoding="utf-8")
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "jupyter", "lite", "build", "--lite-dir", source]
        subprocess.run(command, check=True, cwd=source, stdout=subprocess.DEVNULL)
    add_prefetches(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="the folder of the site")
    parser.add_argument("--distribution", default="", help="Pyodide's full distribution")
    parser.add_argument("--cache", type=Path, default=ROOT / ".venv" / "lite", help="a folder for downloaded wheels")
    options = parser.parse_args()
    build_site(options.output, options.cache, options.distribution)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file())
    print(f"{options.output}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
