"""The exception hierarchy. Every error also derives from the built-in exception that a Python user would expect:

    MinigradError
    ├── GraphError *      RuntimeError            an invalid use of the graph, such as a modified saved tensor
    ├── ShapeError *      ValueError, IndexError  incompatible shapes, sizes or indices
    ├── DTypeError *      TypeError               an unsupported type or dtype
    ├── ArgumentError *   ValueError              an invalid argument value, or arguments that conflict
    ├── DivisionError *   ZeroDivisionError       integer division by zero; floats give inf or nan
    ├── LinAlgError *     RuntimeError            a singular matrix, or one that cannot be factorised
    ├── CaptureError *    RuntimeError            a function that `mg.jit` cannot capture
    ├── DeviceError *     RuntimeError            no kernel for an operation on a device
    ├── OutOfMemoryError *  MemoryError           out of device memory
    ├── TidiedError *     RuntimeError            a tensor whose memory `mg.tidy` released
    ├── FileFormatError *  ValueError             a file that is corrupt, or in another format
    ├── MissingFileError  FileNotFoundError       a file that the user must provide
    ├── DivergedError     ArithmeticError         a loss that is nan or infinite
    ├── WorkerError *     RuntimeError            a worker process that did not start or respond
    ├── MissingPackageError  ImportError          a missing or incompatible package
    ├── DeclarationError  ValueError              an inconsistent declaration of an operation
    └── GradcheckError *  AssertionError          a gradient that differs from finite differences

Classes with a star are also RuntimeErrors. PyTorch raises RuntimeError for most of these mistakes, so ``except
RuntimeError`` in code written for PyTorch also catches them here:

>>> isinstance(ShapeError("add: shapes (2,) and (3,) cannot be broadcast together"), RuntimeError)
True

A message contains the name of the function, the argument it received, why the argument is invalid, and what to write
instead. Where useful, it also contains the line of the user's code.

The class is chosen as follows. A wrong type (a list, an integer tensor, 1.5 for a size) raises DTypeError; a value that
would be valid for another shape (dimensions, sizes, counts, indices) raises ShapeError; any other invalid value
(reduction="avg", p=2, eps=-1, a missing or conflicting argument) raises ArgumentError.
"""

import linecache
import re
import sys

__all__ = [
    "ArgumentError",
    "CaptureError",
    "DTypeError",
    "DeclarationError",
    "DeviceError",
    "DivergedError",
    "DivisionError",
    "FileFormatError",
    "GradcheckError",
    "GraphError",
    "LinAlgError",
    "MinigradError",
    "MissingFileError",
    "MissingPackageError",
    "OutOfMemoryError",
    "ShapeError",
    "TidiedError",
    "WorkerError",
    "check_callable",
    "check_flag",
    "describe_type",
    "printable",
    "source_line",
    "user_frame",
    "user_source_line",
]


# Terminal control characters, bidirectional overrides, and lone surrogates, which cannot be encoded.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text`, which may contain names from files, with its control characters escaped.

    >>> print(printable("names\\x1b[31m of\\nothers"))
    names\\x1b[31m of
    others
    """
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


class MinigradError(Exception):
    """Base class of all exceptions that minigrad raises. The message is `printable`."""

    def __str__(self) -> str:
        return printable(super().__str__())


class GraphError(MinigradError, RuntimeError):
    """Raised for an invalid use of the graph."""


class ShapeError(MinigradError, ValueError, IndexError, RuntimeError):
    """Raised for incompatible shapes, sizes or indices. PyTorch raises RuntimeError, IndexError or ValueError."""


class DTypeError(MinigradError, TypeError, RuntimeError):
    """Raised for an unsupported type or dtype. PyTorch raises TypeError or RuntimeError."""


class ArgumentError(MinigradError, ValueError, RuntimeError):
    """Raised for an argument with an invalid value, or one that conflicts with another argument.

    PyTorch raises ValueError or RuntimeError.
    """


class DivisionError(MinigradError, ZeroDivisionError, RuntimeError):
    """Raised for an integer division by zero. PyTorch raises RuntimeError."""


class LinAlgError(MinigradError, RuntimeError):
    """Raised for a singular or not positive-definite matrix, like ``torch.linalg.LinAlgError``."""


class CaptureError(MinigradError, RuntimeError):
    """Raised if `mg.jit` cannot capture a function for replay without Python."""


class DeviceError(MinigradError, RuntimeError):
    """Raised if an operation has no kernel for a device."""


class OutOfMemoryError(MinigradError, MemoryError, RuntimeError):
    """Raised if a device is out of memory. PyTorch raises RuntimeError."""


class TidiedError(MinigradError, RuntimeError):
    """Raised on access to a tensor whose memory `mg.tidy` released."""


class FileFormatError(MinigradError, ValueError, RuntimeError):
    """Raised for a file that is corrupt or in another format. PyTorch usually raises RuntimeError."""


class MissingFileError(MinigradError, FileNotFoundError):
    """Raised for a missing file that the user must provide."""


class DivergedError(MinigradError, ArithmeticError):
    """Raised if the loss of a training run is nan or infinite."""


class WorkerError(MinigradError, RuntimeError):
    """Raised if a worker process of distributed training does not start or respond."""


class MissingPackageError(MinigradError, ImportError):
    """Raised if a required package is missing or incompatible; see `packages`."""


class DeclarationError(MinigradError, ValueError):
    """Raised for an inconsistent declaration of an operation."""


class GradcheckError(MinigradError, AssertionError, RuntimeError):
    """Raised if a gradient differs from its finite difference. PyTorch raises RuntimeError."""


def describe_type(x: object) -> str:
    """Return the name of the type of `x` with an article, such as "a str" or "an int", for error messages."""
    name, module = type(x).__name__, type(x).__module__
    name = f"{module}.{name}" if module.startswith("torch") else name
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_flag(x: object, func_name: str) -> None:
    """Raise DTypeError unless `x` is True, False, 1 or 0."""
    if x not in (True, False):
        raise DTypeError(f"{func_name}: expected True or False, but got {x!r}.")


def check_callable(x: object, func_name: str) -> None:
    """Raise DTypeError unless `x` is callable."""
    if not callable(x):
        raise DTypeError(f"{func_name}: {x!r:.100} is {describe_type(x)}; expected a callable.")


_OWN_PACKAGES = ("minigrad", "minigrad_viz")  # the viewer calls models too, so its frames are skipped as well


def user_frame() -> tuple[str, int]:
    """Return the file and line of the innermost frame outside minigrad and its viewer."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN_PACKAGES:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def source_line(file: str, line: int) -> str:
    """Return a line of source as ``file:line: code``."""
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def user_source_line() -> str:
    """Return the current line of the user's code as ``file:line: code``."""
    return source_line(*user_frame())
