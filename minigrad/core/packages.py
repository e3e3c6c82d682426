"""Third-party packages: the supported versions, and the error for a package that is missing or incompatible."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from minigrad.core.errors import MissingPackageError

__all__ = [
    "PACKAGES",
    "VersionRange",
    "check_package",
    "explain_error",
    "explain_import_errors",
    "import_package",
    "incompatibility",
]


class VersionRange(NamedTuple):
    """The supported versions of a package, as in pyproject.toml."""

    oldest: str
    tested: str
    """The newest tested version."""
    first_incompatible: str = ""
    """The first incompatible version, if known."""
    alternative: str = ""
    """Text for error messages that suggests an alternative to installing the package."""
    extra: str = ""
    """The extra of minigrad that installs the package and its dependencies."""


PACKAGES = {
    "anywidget": VersionRange("0.9.9", "0.11.0"),
    "av": VersionRange("13.0", "18.1.0", extra="pictures"),
    "graphviz": VersionRange("0.20", "0.21"),
    "ipywidgets": VersionRange("7.7", "8.1.9"),
    "numpy": VersionRange("2.1", "2.4.6"),
    "ray": VersionRange("2.60", "2.60.0", extra="ray"),
    "safetensors": VersionRange("0.5", "0.8.0"),
    "taichi": VersionRange("1.7.4", "1.7.4", "1.8", ', or compute by NumPy: mg.set_default_device("numpy")'),
    "threadpoolctl": VersionRange("3", "3.8.0"),
    "tqdm": VersionRange("4.60", "4.70.1"),
    "typst": VersionRange("0.14.5", "0.15.2", extra="pictures"),
}
_OWN_PACKAGES = ("minigrad", "minigrad_viz")
# Names that minigrad uses outside kernels. Errors for missing names inside kernels are explained by `core.dispatch`.
_REQUIRED_NAMES = {
    "numpy": (
        "add allclose any arange array array_equal asanyarray asarray ascontiguousarray bincount broadcast_to "
        "concatenate copyto cos dtype empty errstate eye finfo float32 float64 from_dlpack frombuffer full "
        "generic histogram iinfo int32 int64 int8 isfinite isinf isnan ldexp linspace maximum "
        "may_share_memory median meshgrid minimum moveaxis ndarray nonzero ones power random repeat "
        "searchsorted seterr sin square stack take tri ufunc uint8 where zeros"
    )
}


def import_package(name: str, caller: str, alternative: str = "") -> Any:
    """Import and return the module `name`.

    Raises MissingPackageError if its package is missing, incompatible, or fails to import. The message starts with
    `caller`, and suggests `alternative` to installing the package.
    """
    with explain_import_errors(caller, alternative):
        root = name.partition(".")[0]
        import_module(root)
        check_package(root, caller, alternative)
        return import_module(name)


def check_package(name: str, caller: str = "minigrad", alternative: str = "") -> None:
    """Raise MissingPackageError if an imported package has an incompatible version or lacks a required name."""
    version = _version(name)
    if version and (problem := incompatibility(name, version)):
        raise _missing_package_error(
            caller, f"{name} {version} is installed, {problem}", name, alternative=alternative
        ) from None
    missing_names = [
        required_name
        for required_name in _REQUIRED_NAMES.get(name, "").split()
        if not hasattr(sys.modules[name], required_name)
    ]
    if missing_names:
        problem = f"{_name_with_version(name)} has no {missing_names[0]}, which minigrad uses"
        raise _missing_package_error(caller, problem, name, reinstall=True, alternative=alternative) from None


def incompatibility(name: str, version: str) -> str:
    """Return the reason why a version of a package is incompatible, or "" if it is compatible.

    >>> incompatibility("numpy", "2.1.3"), incompatibility("taichi", "1.8.0")
    ('', 'but minigrad requires taichi>=1.7.4,<1.8')
    """
    oldest, limit, parsed = PACKAGES[name].oldest, PACKAGES[name].first_incompatible, _parse_version(version)
    is_compatible = _parse_version(oldest) <= parsed and not (limit and parsed >= _parse_version(limit))
    return "" if is_compatible else f"but minigrad requires {_range(name)}"


@contextmanager
def explain_import_errors(caller: str = "minigrad", alternative: str = "") -> Iterator[None]:
    """Context manager that turns errors from missing or incompatible packages into MissingPackageError."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if (explanation := explain_error(error, caller, alternative)) is None:
            raise
        raise explanation from None


def explain_error(
    error: ImportError | AttributeError, caller: str = "minigrad", alternative: str = ""
) -> MissingPackageError | None:
    """Return a MissingPackageError if minigrad or a dependency raised `error` for a missing package or a name in it.

    Return None for any other error, for example an error in the user's own code.
    """
    if isinstance(error, MissingPackageError):
        return None
    owners = _owners(error)
    package_name, attribute = _requested_name(error)
    if package_name in PACKAGES:
        importer = next(
            (owner for owner in reversed(owners) if owner not in (package_name, "importlib", "_frozen_importlib")), ""
        )
        if importer not in PACKAGES and importer not in _OWN_PACKAGES:
            return None
        if not attribute:
            return _missing_package_error(
                caller, f"the package {package_name} is not installed", package_name, alternative=alternative
            )
        dependent = importer if importer in PACKAGES else "minigrad"
        return _missing_package_error(
            caller,
            f"{_name_with_version(package_name)} has no {attribute}, which {dependent} uses",
            package_name,
            reinstall=True,
            alternative=alternative,
        )
    broken_package = next((owner for owner in reversed(owners) if owner in PACKAGES), "")
    if not broken_package or isinstance(error, AttributeError):
        return None
    problem = f"{_name_with_version(broken_package)} cannot be imported: {_reason(error)}"
    return _missing_package_error(caller, problem, broken_package, reinstall=True, alternative=alternative)


def _owners(error: BaseException) -> list[str]:
    """Return the package of each frame in an error's traceback, outermost call first."""
    traceback, packages = error.__traceback__, []
    while traceback is not None:
        packages.append(_owner(traceback.tb_frame.f_globals.get("__name__")))
        traceback = traceback.tb_next
    return packages


def _requested_name(error: ImportError | AttributeError) -> tuple[str, str]:
    """Return the package and the name that is missing from it, or "" as the name if the package itself is missing."""
    if isinstance(error, AttributeError):
        name = error.obj.__name__ if isinstance(error.obj, ModuleType) else ""
        return _owner(name), f"{name.partition('.')[2]}.{error.name}".lstrip(".")
    name = error.name or ""
    if isinstance(error, ModuleNotFoundError):
        return _owner(name), name.partition(".")[2]
    return (_owner(name), match[1]) if (match := re.match("cannot import name '(.*?)'", error.msg)) else ("", "")


def _owner(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _reason(error: BaseException) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).rstrip(".")


def _missing_package_error(
    caller: str, problem: str, name: str, *, reinstall: bool = False, alternative: str = ""
) -> MissingPackageError:
    """Return a MissingPackageError. With `reinstall`, it suggests a tested version, as the installed one is broken.

    In a web page, which has no pip, it says that packages come with the site.
    """
    requirement = f"; minigrad requires {_range(name, True)}" if reinstall else ""
    command = f'pip install --force-reinstall "{_range(name, True)}"' if reinstall else f'pip install "{_range(name)}"'
    if extra := PACKAGES[name].extra:
        command = f"pip install 'seegrad[{extra}]'" + (f' "{_range(name, True)}"' if reinstall else "")
    advice = (
        f"In a cell of its own, run: import {name}\n  It fails if the site was built without the package."
        if sys.platform == "emscripten"
        else f"Run: {command}{alternative or PACKAGES[name].alternative}"
    )
    return MissingPackageError(f"{caller}: {problem}{requirement}.\n  {advice}")


def _range(name: str, tested: bool = False) -> str:
    oldest, newest, limit = PACKAGES[name][:3]
    if tested and oldest == newest:
        return f"{name}=={newest}"
    return f"{name}>={oldest}{',<=' + newest if tested else limit and ',<' + limit}"


def _name_with_version(name: str) -> str:
    return f"{name} {_version(name)}".rstrip()


def _version(name: str) -> str:
    """Return the version of a package, "" if unknown."""
    version = getattr(sys.modules.get(name), "__version__", None)
    if isinstance(version, tuple):  # Taichi uses a tuple
        return ".".join(map(str, version))
    if version is None:
        from importlib import metadata  # imported lazily: it takes a tenth of minigrad's import time

        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(name)
    return version or ""


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
