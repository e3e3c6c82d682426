"""Modules that apply one function of `minigrad.functional`, with the settings that they were made with."""

from __future__ import annotations

from typing import Any, ClassVar

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.nn.module import Module

__all__ = ["Applied", "AppliedToInput"]


class Applied(Module):
    """A function of the inputs of `forward`, with settings: attributes that go to its parameters of the same names.

    A subclass names the function, and its ``__init__`` has the settings with their defaults:

    >>> import minigrad as mg
    >>> class Shrink(AppliedToInput, of="softshrink"):
    ...     def __init__(self, lambd: float = 0.5) -> None:
    ...         super().__init__(lambd=lambd)
    >>> Shrink(), Shrink(1.0)(mg.tensor([3.0, 0.5]))
    (Shrink(lambd=0.5), tensor([2., 0.]))
    """

    applies: ClassVar[str]
    """The name of the function in `minigrad.functional`, where it is looked up at each call."""
    _settings: tuple[str, ...]
    _shown: ClassVar[tuple[str, ...] | None] = None  # the settings that its repr has: all of them, if None

    def __init_subclass__(cls, of: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            cls.applies = of

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, x in settings.items():
            setattr(self, name, x)

    def _keywords(self) -> dict[str, Any]:
        """The settings as they are now, by name."""
        return {name: getattr(self, name) for name in self._settings}

    def extra_repr(self) -> str:
        """The settings; `inplace` only where it is on."""
        shown = self._settings if self._shown is None else self._shown
        return ", ".join(f"{name}={x!r}" for name in shown if (x := getattr(self, name)) or name != "inplace")


class AppliedToInput(Applied):
    """A function of one input."""

    def forward(self, input: Tensor) -> Any:
        """The function of the input."""
        return getattr(F, self.applies)(input, **self._keywords())
