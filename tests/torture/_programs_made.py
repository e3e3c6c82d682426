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
from samples import ints, numbers
from torture._programs_decided import LEFT_OUT
from torture._programs_run import SAMPLES, Leaf, Library, Line, Program, do, minigrad, tensors

__all__ = ["Maker", "program"]

SHAPES = ((), (1,), (3,), (4,), (2, 3), (3, 4), (3, 1), (1, 4), (2, 3, 4), (4, 4), (2, 1, 3), (0,), (0, 3), (2, 0))
LARGE = 1e4  # larger results are not used further
WIDE = 400  # elements
DRAWN = "draws: "  # samples that draw random numbers
ORDERED = ("sorting: ", "quantiles: ", "counting: ", "derived: ")  # samples whose results depend on ties
SAMPLED = 0.25  # fraction of the lines


class Maker:
    """A program under construction."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(f"program {number}")
        self.dtype = self.random.choice(("float64", "float64", "float32"))
        self.parity = self.random.random() < 0.9
        self.leaves: list[Leaf] = []
        self.lines: list[Line] = []
        self.made: dict[str, Any] = {}
        self.ended: set[str] = set()  # tensors that are not used further
        self._library: Library = minigrad("numpy")
        self._scope = self._library.scope()

    # --- tensors so far ---

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, *found: Any) -> Any:
        return self.random.choice(found)

    def here(self) -> dict[str, Any]:
        """Return the tensors that further lines may use."""
        return {name: x for name, x in tensors(self.made).items() if name not in self.ended}

    def pick(self, kinds: str = "f", fits: Any = lambda x: True) -> str:
        """Return the name of a tensor of one of the kinds (f, i, b), preferring recent ones, or of a new leaf."""
        found = [name for name, x in self.here().items() if kind_of(x) in kinds and fits(x)]
        if not found or self.chance(0.1):
            for shape in self.random.sample(SHAPES, len(SHAPES)):
                if fits(np.zeros(shape)):
                    return self.leaf(shape, self.random.choice(kinds))
        late = [name for name in found for _ in range(1 + (name in found[-4:]))]
        return self.random.choice(late) if late else self.leaf((3, 4), kinds[0])

    def of(self, name: str) -> Any:
        return tensors(self.made)[name]

    # --- adding lines ---

    def leaf(self, shape: tuple[int, ...], kind: str = "f", array: Any = None, below: int = 4) -> str:
        """Add a leaf with random elements or the elements of `array`, and return its name."""
        name, seed = f"x{len(self.leaves)}", self.random.randrange(1000)
        if array is not None:
            pass
        elif kind == "f":
            array = numbers(*shape, seed=seed).astype(self.dtype)
        elif kind == "b":
            array = numbers(*shape, seed=seed) > 0
        else:
            array = ints(*shape, below=below, seed=seed).astype(
                self.choice("int64", "int64", "int64", "int32", "uint8")
            )
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        leaf = Leaf(name, array, array.dtype.kind == "f" and self.chance(0.75))
        self.leaves.append(leaf)
        self.made[name] = self._library.tensor(array)
        if leaf.free:
            self.made[name].requires_grad_()
        return name

    def line(self, text: str, named: bool = True) -> str:
        """Add a line and run it; return the name of its result."""
        name = f"v{len(self.lines)}" if named else ""
        line = Line(name, text)
        self.lines.append(line)
        try:
            do(line, self.made, self._scope)
        except Exception:  # noqa: BLE001 -- errors are compared when the program runs
            return name
        for one, x in tensors(self.made).items():
            array = x.detach().numpy()
            if array.size > WIDE or not (np.abs(array.astype(float)) < LARGE).all():
                self.ended.add(one)
        return name

    def within(self, name: str, low: float, high: float) -> str:
        """Return the name of a tensor with values between `low` and `high`: the tensor itself, or a transformed one."""
        array = self.of(name).detach().numpy()
        if array.size == 0 or (low <= array.min() and array.max() <= high):
            return name
        return self.line(f"F.sigmoid({name}) * {high - low} + {low}")

    def fitted(self, array: Any, distinct: bool, arranged: bool) -> str:
        """Return the name of a tensor with the shape, kind and range of `array`: a new leaf, or an adapted one."""
        shape = np.shape(array)
        if array.dtype.kind != "f" or array.size == 0 or self.chance(0.4):
            array = array.astype(self.dtype) if array.dtype.kind == "f" else array
            layout = self.choice(*["contiguous"] * 3, "transposed", "sliced") if arranged else "contiguous"
            if layout == "contiguous" or not shape:
                return self.leaf(shape, array=array)
            name = self.leaf(shape, array=parity.base(array, layout))
            return self.line(f"L({layout!r}, {name})")
        name = self.pick("f", lambda x: np.prod(x.shape) > 0)
        x = self.of(name)
        if x.dtype.name != self.dtype:
            name = self.line(f"{name}.to(lib.{self.dtype})")
        if tuple(x.shape) != shape:
            places = self.leaf(shape, array=ints(array.size, below=x.numel(), seed=self.random.randrange(1000)))
            name = self.line(f"{name}.reshape(-1)[{places}].reshape({shape})")
        if name in self.here():
            name = self.within(name, float(array.min()), float(array.max()))
            if name in self.here() and (not distinct or len(np.unique(self.of(name).detach().numpy())) == array.size):
                return name
        return self.leaf(shape, array=array.astype(self.dtype))

    def sample(self) -> None:
        """Add a call of a sample, on tensors that fit."""
        key = self.random.choice(USABLE if self.parity else ALL)
        one = SAMPLES[key]
        if one.differs:  # deliberately, for some dtypes or layouts: use the sample's inputs
            names = [
                self.leaf(np.shape(x), array=x.astype(self.dtype) if x.dtype.kind == "f" else x) for x in one.inputs
            ]
            if self.dtype in one.differs:
                return
        else:
            arranged = "batch_norm" not in key  # PyTorch reads a non-contiguous weight as if it were contiguous
            names = [self.fitted(np.asarray(x), key.startswith(ORDERED), arranged) for x in one.inputs]
        if not one.kinked and not parity.differentiable(one):  # PyTorch may report a gradient of 0
            names = [f"{name}.detach()" for name in names]
        self.line(f"S({key!r}, {', '.join(names)})")

    def program(self) -> Program:
        here = self.here()
        held = [name for name, x in here.items() if x.requires_grad and x.grad_fn is not None]
        self.random.shuffle(held)
        orders = self.choice(0, 1, 1, 2, 2) if held else 0
        return Program(tuple(self.leaves), tuple(self.lines), tuple(held[:4]), orders, self.parity)


ALL = list(SAMPLES)
USABLE = [key for key, one in SAMPLES.items() if one.parity and not key.startswith((DRAWN, *LEFT_OUT))]


def kind_of(x: Any) -> str:
    """Return f for floating point, i for integers, b for bools."""
    return "b" if x.dtype is mg.bool else "f" if x.dtype.is_floating_point else "i"


def program(number: int) -> Program:
    """Return the program of a number."""
    from torture._programs_calls import CALLS

    maker = Maker(number)
    for _ in range(maker.choice(1, 2, 2, 3)):
        maker.leaf(maker.choice(*SHAPES[:11] * 2, *SHAPES[11:]), maker.choice(*"fffffib"))
    count = maker.choice(2, 4, 6, 8, 12)
    while len(maker.lines) < count and len(maker.leaves) < 12:
        if maker.chance(SAMPLED):
            maker.sample()
        else:
            maker.random.choices([call for call, _ in CALLS], [weight for _, weight in CALLS])[0](maker)
    return maker.program()
