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

__all__ = ["PACKAGES", "Range", "changed", "check", "explained", "package", "unfit"]


class Range(NamedTuple):
    """The supported versions of a package, as in pyproject.toml."""

    oldest: str
    tested: str
    """The newest tested version."""
    below: str = ""
    """The first incompatible version, if known."""
    instead: str = ""
    """What the user can do instead."""
    extra: str = ""
    """The extra of minigrad that installs the package and its dependencies."""


PACKAGES = {
    "anywidget": Range("0.9.9", "0.11.0"),
    "av": Range("13.0", "18.1.0", extra="pictures"),
    "graphviz": Range("0.20", "0.21"),
    "ipywidgets": Range("7.7", "8.1.9"),
    "numpy": Range("2.1", "2.4.6"),
    "ray": Range("2.60", "2.60.0", extra="ray"),
    "safetensors": Range("0.5", "0.8.0"),
    "taichi": Range("1.7.4", "1.7.4", "1.8", ', or compute by NumPy: mg.set_default_device("numpy")'),
    "threadpoolctl": Range("3", "3.8.0"),
    "tqdm": Range("4.60", "4.70.1"),
    "typst": Range("0.14.5", "0.15.2", extra="pictures"),
}
_OURS = ("minigrad", "minigrad_viz")
# Names that minigrad uses outside kernels; `core.dispatch` attributes errors inside kernels.
_ASKED = {
    "numpy": (
        "add allclose any arange array asanyarray asarray ascontiguousarray bincount broadcast_to "
        "concatenate copyto cos dtype empty errstate eye finfo float32 float64 from_dlpack frombuffer full "
        "generic histogram iinfo int32 int64 int8 isfinite isinf isnan ldexp linspace maximum may_share_memory "
        "median minimum moveaxis ndarray nonzero ones power random repeat searchsorted seterr sin square "
        "stack take tri ufunc uint8 where zeros"
    )
}


def package(name: str, who: str, instead: str = "") -> Any:
    """Import and return the module `name` on behalf of `who`; `instead` is an alternative to installing its package.

    Raises MissingPackageError if the package is missing, incompatible, or fails to import.
    """
    with explained(who, instead):
        root = name.partition(".")[0]
        import_module(root)
        check(root, who, instead)
        return import_module(name)


def check(name: str, who: str = "minigrad", instead: str = "") -> None:
    """Raise MissingPackageError if an imported package has an incompatible version or lacks a required name."""
    version = _version(name)
    if version and (wrong := unfit(name, version)):
        raise _missing(who, f"{name} {version} is installed, {wrong}", name, instead=instead) from None
    lost = [one for one in _ASKED.get(name, "").split() if not hasattr(sys.modules[name], one)]
    if lost:
        wrong = f"{_named(name)} has no {lost[0]}, which minigrad uses"
        raise _missing(who, wrong, name, again=True, instead=instead) from None


def unfit(name: str, version: str) -> str:
    """Return why a version of a package is incompatible, "" if it is compatible.

    >>> unfit("numpy", "2.1.3"), unfit("taichi", "1.8.0")
    ('', 'but minigrad requires taichi>=1.7.4,<1.8')
    """
    oldest, below, found = PACKAGES[name].oldest, PACKAGES[name].below, _numbers(version)
    fits = _numbers(oldest) <= found and not (below and found >= _numbers(below))
    return "" if fits else f"but minigrad requires {_range(name)}"


@contextmanager
def explained(who: str = "minigrad", instead: str = "") -> Iterator[None]:
    """Context manager that turns errors from missing or incompatible packages into MissingPackageError."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if (said := changed(error, who, instead)) is None:
            raise
        raise said from None


def changed(
    error: ImportError | AttributeError, who: str = "minigrad", instead: str = ""
) -> MissingPackageError | None:
    """Return the MissingPackageError for `error` if minigrad or a dependency lacks a package or a name in it.

    Return None for any other error, for example one in the user's own code.
    """
    if isinstance(error, MissingPackageError):
        return None
    owners = _owners(error)
    asked, what = _asked(error)
    if asked in PACKAGES:
        by = next((owner for owner in reversed(owners) if owner not in (asked, "importlib", "_frozen_importlib")), "")
        if by not in PACKAGES and by not in _OURS:
            return None
        if not what:
            return _missing(who, f"the package {asked} is not installed", asked, instead=instead)
        uses = by if by in PACKAGES else "minigrad"
        return _missing(who, f"{_named(asked)} has no {what}, which {uses} uses", asked, again=True, instead=instead)
    broken = next((owner for owner in reversed(owners) if owner in PACKAGES), "")
    if not broken or isinstance(error, AttributeError):
        return None
    wrong = f"{_named(broken)} cannot be imported: {_reason(error)}"
    return _missing(who, wrong, broken, again=True, instead=instead)


def _owners(error: BaseException) -> list[str]:
    """Return the packages in the traceback of an error, outermost call first."""
    at, found = error.__traceback__, []
    while at is not None:
        found.append(_owner(at.tb_frame.f_globals.get("__name__")))
        at = at.tb_next
    return found


def _asked(error: ImportError | AttributeError) -> tuple[str, str]:
    """Return the package and the requested name in it, "" if the package itself is missing."""
    if isinstance(error, AttributeError):
        name = error.obj.__name__ if isinstance(error.obj, ModuleType) else ""
        return _owner(name), f"{name.partition('.')[2]}.{error.name}".lstrip(".")
    name = error.name or ""
    if isinstance(error, ModuleNotFoundError):
        return _owner(name), name.partition(".")[2]
    return (_owner(name), found[1]) if (found := re.match("cannot import name '(.*?)'", error.msg)) else ("", "")


def _owner(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _reason(error: BaseException) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).rstrip(".")


def _missing(who: str, wrong: str, name: str, *, again: bool = False, instead: str = "") -> MissingPackageError:
    """Return the error; `again` if a supported version is broken and the newest tested one is to be reinstalled."""
    known = f"; minigrad requires {_range(name, True)}" if again else ""
    extra = PACKAGES[name].extra
    command = f'pip install --force-reinstall "{_range(name, True)}"' if again else f'pip install "{_range(name)}"'
    if extra:
        command = f"pip install 'seegrad[{extra}]'" + (f' "{_range(name, True)}"' if again else "")
    return MissingPackageError(f"{who}: {wrong}{known}.\n  Run: {command}{instead or PACKAGES[name].instead}")


def _range(name: str, tested: bool = False) -> str:
    oldest, newest, below = PACKAGES[name][:3]
    if tested and oldest == newest:
        return f"{name}=={newest}"
    return f"{name}>={oldest}{',<=' + newest if tested else below and ',<' + below}"


def _named(name: str) -> str:
    return f"{name} {_version(name)}".rstrip()


def _version(name: str) -> str:
    """Return the version of a package, "" if unknown."""
    found = getattr(sys.modules.get(name), "__version__", None)
    if isinstance(found, tuple):  # Taichi uses a tuple
        return ".".join(map(str, found))
    if found is None:
        from importlib import metadata  # takes a tenth of minigrad's import time

        with suppress(metadata.PackageNotFoundError):
            found = metadata.version(name)
    return found or ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
