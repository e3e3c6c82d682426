"""Modules that apply one function of `minigrad.functional`, with options set at construction."""

from __future__ import annotations

from typing import Any, ClassVar

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.nn.module import Module

__all__ = ["FunctionModule", "UnaryFunctionModule"]


class FunctionModule(Module):
    """Base class of modules that apply a function, with settings stored as attributes and passed by keyword.

    A subclass names the function, and its ``__init__`` declares the settings and their defaults:

    >>> import minigrad as mg
    >>> class Shrink(UnaryFunctionModule, of="softshrink"):
    ...     def __init__(self, lambd: float = 0.5) -> None:
    ...         super().__init__(lambd=lambd)
    >>> Shrink(), Shrink(1.0)(mg.tensor([3.0, 0.5]))
    (Shrink(lambd=0.5), tensor([2., 0.]))
    """

    applies: ClassVar[str]
    """Name of the function in `minigrad.functional`. It is looked up at each call."""
    _settings: tuple[str, ...]
    _repr_settings: ClassVar[tuple[str, ...] | None] = None  # names of the settings in `extra_repr`; None for all

    def __init_subclass__(cls, of: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            cls.applies = of

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, x in settings.items():
            setattr(self, name, x)

    def _kwargs(self) -> dict[str, Any]:
        """Return the current settings as keyword arguments."""
        return {name: getattr(self, name) for name in self._settings}

    def extra_repr(self) -> str:
        """Format the settings. `inplace` is included only if it is True."""
        names = self._settings if self._repr_settings is None else self._repr_settings
        return ", ".join(f"{name}={x!r}" for name in names if (x := getattr(self, name)) or name != "inplace")


class UnaryFunctionModule(FunctionModule):
    """Base class of modules that apply a function of one input."""

    def forward(self, input: Tensor) -> Any:
        """Apply the function to `input`."""
        return getattr(F, self.applies)(input, **self._kwargs())
