"""What can go wrong, as one tree. Every error is also the built-in that a Python user would expect.

    MinigradError
    ├── GraphError        RuntimeError            a graph asked for what it cannot give: an overwritten value, say
    ├── ShapeError        ValueError, IndexError  shapes, sizes or indices that do not fit together
    ├── DTypeError        TypeError               a thing of a type that cannot take part
    ├── DivisionError     ZeroDivisionError       whole numbers divided by 0; fractions give inf or nan
    ├── DeviceError       RuntimeError            no kernel for this operation on this device
    ├── DeclarationError  ValueError              an operation or a layer declared in contradiction with itself
    └── GradcheckError    AssertionError          a derivative that disagrees with its finite difference

A message says what was asked, what was given, why that cannot be, and what to write instead.
"""

__all__ = [
    "DTypeError",
    "DeclarationError",
    "DeviceError",
    "DivisionError",
    "GradcheckError",
    "GraphError",
    "MinigradError",
    "ShapeError",
]


class MinigradError(Exception):
    """The root of every error that minigrad raises on purpose."""


class GraphError(MinigradError, RuntimeError):
    """A graph was asked for what it cannot give."""


class ShapeError(MinigradError, ValueError, IndexError):
    """Shapes, dimensions or sizes that do not fit together."""


class DTypeError(MinigradError, TypeError):
    """Something of a type that cannot take part in a computation."""


class DivisionError(MinigradError, ZeroDivisionError):
    """Whole numbers divided by 0."""


class DeviceError(MinigradError, RuntimeError):
    """No kernel for an operation on a device."""


class DeclarationError(MinigradError, ValueError):
    """An operation whose declaration contradicts itself."""


class GradcheckError(MinigradError, AssertionError):
    """A derivative that disagrees with its finite difference."""
