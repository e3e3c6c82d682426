"""What can go wrong, as one tree; every error is also the built-in that a Python user would expect:

    MinigradError
    ├── GraphError *      RuntimeError            a graph asked for what it cannot give: an overwritten value, say
    ├── ShapeError *      ValueError, IndexError  shapes, sizes or indices that do not fit together
    ├── DTypeError *      TypeError               a thing of a type that cannot take part
    ├── ArgumentError *   ValueError              an option that is not there, out of range, or at odds with another
    ├── DivisionError *   ZeroDivisionError       integers divided by 0; floats give inf or nan
    ├── LinAlgError *     RuntimeError            a matrix without an inverse, or without the factors asked for
    ├── CaptureError *    RuntimeError            a step that `mg.jit` cannot record: it reads a value, say
    ├── DeviceError *     RuntimeError            no kernel for this operation on this device
    ├── OutOfMemoryError *  MemoryError           more bytes than a device has
    ├── TidiedError *     RuntimeError            a tensor whose memory `mg.tidy` gave back
    ├── FileFormatError *  ValueError             a file that is damaged, or not what it was taken for
    ├── MissingFileError  FileNotFoundError       a file that the reader has to put in its place
    ├── DivergedError     ArithmeticError         a training whose loss is no number any more
    ├── WorkerError *     RuntimeError            a process elsewhere that does not come, or does not come back
    ├── MissingPackageError  ImportError          a package that something needs: not there, too old or new, or changed
    ├── DeclarationError  ValueError              an operation declared in contradiction with itself
    └── GradcheckError *  AssertionError          a derivative that disagrees with its finite difference

Those with a star are RuntimeErrors too. PyTorch raises RuntimeError for most of these mistakes, so that ``except
RuntimeError`` in code written for PyTorch catches them here as well:

>>> isinstance(ShapeError("add: shapes (2,) and (3,) do not broadcast"), RuntimeError)
True

A message says what was asked, what was given, why that cannot be, and what to write instead; and, where it helps, the
line of the reader's code that it is about.

Which class: what something *is* (a list, a tensor of ints, 1.5 for a size) is a DTypeError; what would fit another
shape (dimensions, sizes, counts, indices) a ShapeError; every other value of an argument (reduction="avg", p=2, eps=-1,
one of two that go together, both of two that exclude each other) an ArgumentError.
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
    "a_kind",
    "caller",
    "caller_line",
    "check_flag",
    "check_function",
    "printable",
    "source_line",
]


# Commands of terminals, what turns the direction of the text around it, and halves of letters, which cannot be sent.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text`, which may hold names out of files, as Python would write it in quotes where a terminal would obey it.

    >>> print(printable("names\\x1b[31m of\\nothers"))
    names\\x1b[31m of
    others
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)


class MinigradError(Exception):
    """The root of every error that minigrad raises on purpose. Its text is `printable`."""

    def __str__(self) -> str:
        return printable(super().__str__())


class GraphError(MinigradError, RuntimeError):
    """A graph was asked for what it cannot give."""


class ShapeError(MinigradError, ValueError, IndexError, RuntimeError):
    """Shapes, sizes or indices that do not fit together; in PyTorch a RuntimeError, IndexError or ValueError."""


class DTypeError(MinigradError, TypeError, RuntimeError):
    """Something of a type that cannot take part in a computation; in PyTorch a TypeError or RuntimeError."""


class ArgumentError(MinigradError, ValueError, RuntimeError):
    """An argument with a value that the function does not know, or that does not go with the others.

    In PyTorch a ValueError or RuntimeError.
    """


class DivisionError(MinigradError, ZeroDivisionError, RuntimeError):
    """Integers divided by 0; in PyTorch a RuntimeError."""


class LinAlgError(MinigradError, RuntimeError):
    """A matrix is singular, or not positive definite, where that is asked for; ``torch.linalg.LinAlgError``."""


class CaptureError(MinigradError, RuntimeError):
    """A step cannot be recorded, to be run again without Python."""


class DeviceError(MinigradError, RuntimeError):
    """No kernel for an operation on a device."""


class OutOfMemoryError(MinigradError, MemoryError, RuntimeError):
    """More memory was asked for than a device has; in PyTorch a RuntimeError."""


class TidiedError(MinigradError, RuntimeError):
    """A tensor was asked for numbers that `mg.tidy` gave back."""


class FileFormatError(MinigradError, ValueError, RuntimeError):
    """A file that is damaged, or not of the format that it was read as; in PyTorch most often a RuntimeError."""


class MissingFileError(MinigradError, FileNotFoundError):
    """A file that is not where it was looked for, and that nobody but the reader can put there."""


class DivergedError(MinigradError, ArithmeticError):
    """A training whose loss is nan or infinite."""


class WorkerError(MinigradError, RuntimeError):
    """A process elsewhere that computes a part of a training does not come, or does not come back."""


class MissingPackageError(MinigradError, ImportError):
    """A package that is needed for what was asked is not installed, or is another than works; see `packages`."""


class DeclarationError(MinigradError, ValueError):
    """An operation whose declaration contradicts itself."""


class GradcheckError(MinigradError, AssertionError, RuntimeError):
    """A derivative that disagrees with its finite difference; in PyTorch a RuntimeError."""


def a_kind(x: object) -> str:
    """What `x` is, with its article, as messages say it: "a str", "an int"; PyTorch's types by their modules."""
    name, home = type(x).__name__, type(x).__module__
    name = f"{home}.{name}" if home.startswith("torch") else name
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_flag(x: object, asked: str) -> None:
    """Raise DTypeError unless `x` is True or False, or a 1 or 0 that stands for it."""
    if x not in (True, False):
        raise DTypeError(f"{asked}: {x!r} is neither True nor False.")


def check_function(x: object, asked: str) -> None:
    """Raise DTypeError unless `x` can be called."""
    if not callable(x):
        raise DTypeError(f"{asked}: {x!r:.100} is {a_kind(x)}, not a function.")


_HOUSE = ("minigrad", "minigrad_viz")  # the viewer calls models: a reader's line is where that was asked for


def caller() -> tuple[str, int]:
    """The file and line outside minigrad, and its viewer, that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _HOUSE:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def source_line(file: str, line: int) -> str:
    """A line of source as ``file:number: text``."""
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def caller_line() -> str:
    """The line outside minigrad that is being run, as ``file:number: text``."""
    return source_line(*caller())
