"""Programs of `tests/torch_code`, written for PyTorch, as modules of either library; only their imports change."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

PROGRAM_FOLDER = Path(__file__).parents[1] / "torch_code"

__all__ = ["PROGRAMS", "Program", "load_program", "make_deterministic"]


class Program(NamedTuple):
    """A file of `torch_code`, the function in it that creates the model, and the arrays on which the model trains."""

    file: str
    make: str
    arrays: Callable[[Any], tuple[Any, ...]]

    @property
    def name(self) -> str:
        return self.file + self.make.removeprefix("make").replace("_", " ")


def floats(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.standard_normal(shape, dtype=np.float32)


def classes(high: int, *shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.integers(0, high, shape)


def masks(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: (rng.random(shape) > 0.6).astype(np.float32)


def random_images(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.random(shape, dtype=np.float32)


def program(file: str, *arrays: Callable[[Any], Any], make: str = "make") -> Program:
    return Program(file, make, lambda rng: tuple(array(rng) for array in arrays))


PROGRAMS = [
    program("lenet", floats(8, 1, 16, 16), classes(10, 8)),
    program("resnet", floats(6, 3, 16, 16), classes(10, 6)),
    program("resnet", floats(6, 3, 16, 16), classes(10, 6), make="make_with_projections"),
    program("unet", floats(2, 1, 16, 12), masks(2, 1, 16, 12)),
    program("unet", floats(2, 1, 14, 18), masks(2, 1, 14, 18), make="make_bilinear"),
    program("lstm_lm", classes(11, 80)),
    program("lstm_lm", classes(11, 80), make="make_gru"),
    program("lstm_lm", classes(11, 80), make="make_rnn"),
    program("gpt", classes(13, 4, 12), classes(13, 4, 12)),
    program("gpt", classes(13, 4, 12), classes(13, 4, 12), make="make_with_mask"),
    program("vae", random_images(6, 1, 8, 8)),
    program("dcgan", floats(5, 1, 16, 16), floats(5, 6, 1, 1)),
]


def load_program(file: str, library: str) -> ModuleType:
    """Return the program as a module that imports `library` instead of torch."""
    path = PROGRAM_FOLDER / f"{file}.py"
    source = path.read_text(encoding="utf-8")
    if library != "torch":
        source = re.sub(r"^import torch$", f"import {library} as torch", source, flags=re.MULTILINE)
        source = re.sub(r"^(import|from) torch\b", rf"\1 {library}", source, flags=re.MULTILINE)
    module = ModuleType(f"{library}_{file}")
    exec(compile(source, str(path), "exec"), module.__dict__)  # tracebacks then show the file, whose lines match
    return module


def make_deterministic(monkeypatch: Any, library: str, device: Any) -> None:
    """Replace the random functions of `library` by draws from one new NumPy generator."""
    lib, rng = import_module(library), np.random.default_rng(7)

    def randn(*shape: Any, device: Any = device, **_: Any) -> Any:
        size = shape[0] if shape and isinstance(shape[0], tuple | list) else shape
        return lib.tensor(rng.standard_normal(tuple(size), dtype=np.float32), device=device)

    def multinomial(probs: Any, num_samples: int) -> Any:
        assert num_samples == 1
        scores = np.log(probs.cpu().numpy() + 1e-30) + rng.gumbel(size=tuple(probs.shape))
        return lib.tensor(scores.argmax(-1, keepdims=True), device=probs.device)

    monkeypatch.setattr(lib, "randn", randn)
    monkeypatch.setattr(lib, "randn_like", lambda x: randn(*x.shape, device=x.device))
    monkeypatch.setattr(lib, "multinomial", multinomial)
