"""Wrong answers to exercises, with the explanation that each must receive. A lesson has a module with its number."""

import importlib
import pkgutil
from typing import Any

_LESSONS = [importlib.import_module(module.name) for module in pkgutil.iter_modules(__path__, f"{__name__}.")]

MISTAKES: list[tuple[str, Any, str]] = [mistake for lesson in _LESSONS for mistake in lesson.MISTAKES]
"""The exercise, the answer, and a part of the explanation."""

FUNCTIONS: list[str] = [exercise for lesson in _LESSONS for exercise in lesson.FUNCTIONS]
"""The exercises whose answer is a function that the check calls."""
