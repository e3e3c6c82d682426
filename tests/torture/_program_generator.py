"""Generate a program from a number: each call is drawn at random to fit the results of earlier calls.

The program runs on `numpy` while it is generated, which determines the shapes. A result that is not finite, or very
large, is compared but not used further.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import minigrad as mg
import parity
from samples import distinct_floats, distinct_ints
from torture._program_exceptions import EXCLUDED_SAMPLES
from torture._programs_run import SAMPLES, Leaf, Library, Line, Program, minigrad_library, run_line, tensors

__all__ = ["ProgramGenerator", "program"]

SHAPES = ((), (1,), (3,), (4,), (2, 3), (3, 4), (3, 1), (1, 4), (2, 3, 4), (4, 4), (2, 1, 3), (0,), (0, 3), (2, 0))
MAX_VALUE = 1e4  # larger results are not used further
MAX_ELEMENTS = 400  # elements
RANDOM_SAMPLES = "draws: "  # samples that draw random numbers
ORDER_DEPENDENT = ("sorting: ", "quantiles: ", "counting: ", "derived: ")  # samples whose results depend on ties
SAMPLE_FRACTION = 0.25  # fraction of the lines


class ProgramGenerator:
    """A program under construction."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"program {seed}")
        self.dtype = self.random.choice(("float64", "float64", "float32"))
        self.parity = self.random.random() < 0.9
        self.leaves: list[Leaf] = []
        self.lines: list[Line] = []
        self.results: dict[str, Any] = {}
        self.unusable: set[str] = set()  # tensors that are not used further
        self._library: Library = minigrad_library("numpy")
        self._scope = self._library.scope()

    # --- tensors so far ---

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    def usable(self) -> dict[str, Any]:
        """Return the tensors that further lines may use."""
        return {name: x for name, x in tensors(self.results).items() if name not in self.unusable}

    def pick(self, kinds: str = "f", fits: Any = lambda x: True) -> str:
        """Return the name of a tensor of one of the kinds (f, i, b), preferring recent ones, or of a new leaf."""
        names = [name for name, x in self.usable().items() if kind_of(x) in kinds and fits(x)]
        if not names or self.chance(0.1):
            for shape in self.random.sample(SHAPES, len(SHAPES)):
                if fits(np.zeros(shape)):
                    return self.leaf(shape, self.random.choice(kinds))
        weighted = [name for name in names for _ in range(1 + (name in names[-4:]))]
        return self.random.choice(weighted) if weighted else self.leaf((3, 4), kinds[0])

    def tensor_of(self, name: str) -> Any:
        return tensors(self.results)[name]

    # --- adding lines ---

    def leaf(self, shape: tuple[int, ...], kind: str = "f", array: Any = None, high: int = 4) -> str:
        """Add a leaf with random elements or the elements of `array`, and return its name."""
        name, seed = f"x{len(self.leaves)}", self.random.randrange(1000)
        if array is not None:
            pass
        elif kind == "f":
            array = distinct_floats(*shape, seed=seed).astype(self.dtype)
        elif kind == "b":
            array = distinct_floats(*shape, seed=seed) > 0
        else:
            array = distinct_ints(*shape, high=high, seed=seed).astype(
                self.choice("int64", "int64", "int64", "int32", "uint8")
            )
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        leaf = Leaf(name, array, array.dtype.kind == "f" and self.chance(0.75))
        self.leaves.append(leaf)
        self.results[name] = self._library.tensor(array)
        if leaf.requires_grad:
            self.results[name].requires_grad_()
        return name

    def line(self, text: str, named: bool = True) -> str:
        """Add a line and run it; return the name of its result."""
        name = f"v{len(self.lines)}" if named else ""
        line = Line(name, text)
        self.lines.append(line)
        try:
            run_line(line, self.results, self._scope)
        except Exception:  # noqa: BLE001 -- errors are compared when the program runs
            return name
        for one, x in tensors(self.results).items():
            array = x.detach().numpy()
            if array.size > MAX_ELEMENTS or not (np.abs(array.astype(float)) < MAX_VALUE).all():
                self.unusable.add(one)
        return name

    def within(self, name: str, low: float, high: float) -> str:
        """Return the name of a tensor with values between `low` and `high`: the tensor itself, or a transformed one."""
        array = self.tensor_of(name).detach().numpy()
        if array.size == 0 or (low <= array.min() and array.max() <= high):
            return name
        return self.line(f"F.sigmoid({name}) * {high - low} + {low}")

    def adapted(self, array: Any, distinct: bool, arranged: bool) -> str:
        """Return the name of a tensor with the shape, kind and range of `array`: a new leaf, or an adapted one."""
        shape = np.shape(array)
        if array.dtype.kind != "f" or array.size == 0 or self.chance(0.4):
            array = array.astype(self.dtype) if array.dtype.kind == "f" else array
            layout = self.choice(*["contiguous"] * 3, "transposed", "sliced") if arranged else "contiguous"
            if layout == "contiguous" or not shape:
                return self.leaf(shape, array=array)
            name = self.leaf(shape, array=parity.base_array(array, layout))
            return self.line(f"L({layout!r}, {name})")
        name = self.pick("f", lambda x: np.prod(x.shape) > 0)
        x = self.tensor_of(name)
        if x.dtype.name != self.dtype:
            name = self.line(f"{name}.to(lib.{self.dtype})")
        if tuple(x.shape) != shape:
            indices = self.leaf(
                shape, array=distinct_ints(array.size, high=x.numel(), seed=self.random.randrange(1000))
            )
            name = self.line(f"{name}.reshape(-1)[{indices}].reshape({shape})")
        if name in self.usable():
            name = self.within(name, float(array.min()), float(array.max()))
            if name in self.usable() and (
                not distinct or len(np.unique(self.tensor_of(name).detach().numpy())) == array.size
            ):
                return name
        return self.leaf(shape, array=array.astype(self.dtype))

    def sample(self) -> None:
        """Add a call of a sample, on tensors that fit."""
        key = self.random.choice(COMPARABLE if self.parity else SAMPLE_NAMES)
        one = SAMPLES[key]
        if one.differs:  # deliberately, for some dtypes or layouts: use the sample's inputs
            names = [
                self.leaf(np.shape(x), array=x.astype(self.dtype) if x.dtype.kind == "f" else x) for x in one.inputs
            ]
            if self.dtype in one.differs:
                return
        else:
            arranged = "batch_norm" not in key  # PyTorch reads a non-contiguous weight as if it were contiguous
            names = [self.adapted(np.asarray(x), key.startswith(ORDER_DEPENDENT), arranged) for x in one.inputs]
        if not one.kinked and not parity.is_differentiable(one):  # PyTorch may report a gradient of 0
            names = [f"{name}.detach()" for name in names]
        self.line(f"S({key!r}, {', '.join(names)})")

    def program(self) -> Program:
        usable = self.usable()
        outputs = [name for name, x in usable.items() if x.requires_grad and x.grad_fn is not None]
        self.random.shuffle(outputs)
        orders = self.choice(0, 1, 1, 2, 2) if outputs else 0
        return Program(tuple(self.leaves), tuple(self.lines), tuple(outputs[:4]), orders, self.parity)


SAMPLE_NAMES = list(SAMPLES)
COMPARABLE = [
    key for key, one in SAMPLES.items() if one.parity and not key.startswith((RANDOM_SAMPLES, *EXCLUDED_SAMPLES))
]


def kind_of(x: Any) -> str:
    """Return f for floating point, i for integers, b for bools."""
    return "b" if x.dtype is mg.bool else "f" if x.dtype.is_floating_point else "i"


def program(seed: int) -> Program:
    """Return the program of a number."""
    from torture._programs_calls import CALLS

    maker = ProgramGenerator(seed)
    for _ in range(maker.choice(1, 2, 2, 3)):
        maker.leaf(maker.choice(*SHAPES[:11] * 2, *SHAPES[11:]), maker.choice(*"fffffib"))
    count = maker.choice(2, 4, 6, 8, 12)
    while len(maker.lines) < count and len(maker.leaves) < 12:
        if maker.chance(SAMPLE_FRACTION):
            maker.sample()
        else:
            maker.random.choices([call for call, _ in CALLS], [weight for _, weight in CALLS])[0](maker)
    return maker.program()
