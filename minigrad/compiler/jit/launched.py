"""A step as the launches of compiled kernels that it comes down to, without the calls that led to them.

One run of a `Program` is recorded: which kernels it launches, with which numbers, on which places in memory. What was
taken from the pool for the step's own use gets places in one piece, the arena, so planned that what is not needed at
the same time shares them. Running the step again is to take the arena and what is given back, and to launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from minigrad.backends.arrays import joining, recordings
from minigrad.compiler.jit.nodes import ARGUMENT, CONSTANT, FULL, root_of, span_of, start_of
from minigrad.compiler.jit.program import Program
from minigrad.core.errors import DeviceError
from minigrad.core.specialise import compile_function
from minigrad.core.storage import memory, place_of
from minigrad.core.symbolic import Book, Traced

__all__ = ["LINE", "Launched", "planned", "recorded"]

LINE = 64  # bytes, a multiple of which each place in the arena begins at


def recorded(
    program: Program, book: Book, arguments: Sequence[Any], numbers: Mapping[str, Any]
) -> tuple[list[Any], Launched | None, str]:
    """The arrays that `program` gives; it as launches; or None, and why it cannot be run as such."""
    device = next((node.device for node in program.nodes), "")
    recording = recordings(device)
    why = f"what is on {device or 'no device'} is not launched"
    if recording is not None:
        why = _unfit(program, recording, device, arguments)
    if why:
        return program.run(arguments, numbers), None, why
    roots = {id(x.flat) for x in program.fixed.values()}
    given, arguments = arguments, [x if id(root_of(x)) in roots else recording.in_lines(x) for x in arguments]
    traced = {x.name: x for x in program.numbers}
    for name, x in traced.items():
        x.value = numbers[name]
    spans = [span_of(x) for x in arguments]
    parts: list[Any] = [
        ("fixed", start_of(x.flat), x.flat.nbytes, x.flat) for x in program.fixed.values() if x.flat.nbytes
    ]
    parts += [(("argument", k), start, end - start, None) for k, (start, end) in enumerate(spans) if end > start]
    with recording.recorded(device, parts) as found:
        arrays = program.run(arguments, {**numbers, **traced}, found.begin)
    places = [found.part_of(start_of(x)) for x in arrays]
    if None in places:
        found.refuse("what it gives back is in memory that nobody else knows")
    memories = _memories(program, given)
    for k, part in enumerate(places):
        if part is not None and part.what.__class__ is tuple:  # a view of an argument, not of what was made of that
            arrays[k] = program.results[k](memories)
    if found.refused:
        return arrays, None, found.refused
    return arrays, Launched(program, (device, recording), found, arguments, arrays, places), ""


def _unfit(program: Program, recording: Any, device: str, arguments: Sequence[Any]) -> str:
    """Why a program is not to be recorded, "" if it is."""
    for array in arguments:
        if place_of(array) != device:
            return f"it is given tensors on {place_of(array)} too"
    for node in program.nodes:
        if node.device != device:
            return f"it computes on {node.device} too"
        if node.op not in (FULL, CONSTANT) and not recording.ours(node.op, device):
            return f"the kernel of {node.op} is a reader's own"
        if any(view.buffer.kind == ARGUMENT for view in node.outs):
            return "it writes to an argument"
    return ""


def planned(sizes: Sequence[int], uses: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Where pieces of memory begin that are in use from one launch to another, both included; and the bytes of all.

    Each gets the first place where nothing is that is in use at the same time; large ones choose first.

    >>> planned([64, 64, 64], [(0, 1), (1, 2), (2, 3)])
    ([0, 64, 0], 128)
    """
    begins, end = [0] * len(sizes), 0
    put: list[int] = []
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        first, last = uses[k]
        busy = sorted((begins[j], sizes[j]) for j in put if uses[j][0] <= last and first <= uses[j][1])
        at = 0
        for begin, size in busy:
            if begin - at >= sizes[k]:
                break
            at = max(at, begin + size)
        begins[k] = at
        put.append(k)
        end = max(end, at + sizes[k])
    return begins, end


class Launched:
    """A recorded run: launches, and where in memory they compute. `program` computes the same, call by call."""

    def __init__(
        self,
        program: Program,
        where: tuple[str, Any],
        found: Any,
        arguments: Sequence[Any],
        arrays: list[Any],
        places: list[Any],
    ) -> None:
        self._device, recording = where
        self._blocks = self._device != "cpu"  # whether kernels get the blocks that addresses are in
        self.launches, self._checks, self._recording = found.launches, found.checks, recording
        self._layouts = [recording.layout_of(x) for x in arguments]
        self._roots = {id(x.flat) for x in program.fixed.values()}
        self._starts = {start_of(x.flat) for x in program.fixed.values()}
        self._lines = [layout == (0, True) for layout in self._layouts]
        self._program, self._pool = program, memory(self._device).pool
        self._held = {
            x.part.start: recording.block_of(x.part.holds)
            for one in self.launches
            for x in one.args
            if x.__class__ is recording.Place and x.part.what == "fixed"
        }
        """What is in memory that stays, by where that begins."""
        self._given_back(arrays, places)
        self._plan()
        self.numbers = list({id(x): x for one in self.launches for x in one.args if type(x) is Traced}.values())
        self._begins = [span_of(x)[0] - start_of(x) for x in arguments]
        self._launch = self._launcher([(one.kernel, list(one.args)) for one in self.launches])
        self.groups: list[Any] = []
        self.why = "one by one: it has not run often enough to be worth compiling"
        """Why they are not joined."""

    def _given_back(self, arrays: list[Any], places: list[Any]) -> None:
        """Which pieces are given back, and what makes the results of them."""
        self._pieces: list[Any] = []
        self._reads = False  # whether something is given back that lies elsewhere
        self._results: list[Any] = []  # which piece, and which array on it; or what finds it elsewhere
        makers: list[list[Callable[[Any], Any]]] = []
        for k, (array, part) in enumerate(zip(arrays, places, strict=True)):
            if part.what.__class__ is not int:
                self._reads = True
                self._results.append(self._program.results[k])
                continue
            if part not in self._pieces:
                self._pieces.append(part)
                makers.append([])
            piece = self._pieces.index(part)
            self._results.append((piece, len(makers[piece])))
            makers[piece].append(_maker(array, start_of(array) - part.start))
        self._givers = [_Giver(self._pool, part.size, some) for part, some in zip(self._pieces, makers, strict=True)]

    def _plan(self) -> None:
        uses: dict[Any, tuple[int, int]] = {}
        for k, launch in enumerate(self.launches):
            for x in launch.args:
                if x.__class__ is self._recording.Place and x.part.what.__class__ is int and x.part not in self._pieces:
                    uses[x.part] = (uses.get(x.part, (k, k))[0], k)
        parts = list(uses)
        begins, self.bytes = planned([x.size for x in parts], list(uses.values()))
        self._arena: Any = None
        self.begins = dict(zip(parts, begins, strict=True))
        """Where each piece of the step's own lies in the arena."""

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the processor."""
        return not self._blocks

    @property
    def source(self) -> str:
        """The texts of the kernels that are launched, each once."""
        kernels = [one.kernel for one in self.groups or self.launches]
        return "\n\n".join(dict.fromkeys(kernel.text for kernel in kernels))

    def __str__(self) -> str:
        joined = ", ".join(
            f"{one.kernel.name} of {_count(one.count, 'launch')}, {len(one.arrays)} arrays" for one in self.groups
        )
        fused = [len(one.calls) for one in self.launches if len(one.calls) > 1]
        how = _count(sum(len(one.calls) for one in self.launches), "launch")
        if fused:
            how += f", {sum(fused)} of which are fused into {len(fused)}"
        given = sum(part.size for part in self._pieces)
        return (
            f"Run as {how}, {f'joined into {joined}' if self.groups else self.why}.\n"
            f"Memory: {self.bytes:,} bytes of its own, {given:,} in what is given back."
        )

    def join(self, most: int) -> None:
        """From now on launch as few kernels as can be, each of which does what many did. They are compiled now.

        First what computes number by number is fused; then what is left is joined, if it is no more than `most`. Where
        Taichi cannot compile them, it stays as it is.
        """
        compiler, before = joining(self._device), (self.launches, self.begins, self.bytes)
        self.launches = compiler.fused(
            self.launches, lambda part: part.what.__class__ is int and part not in self._pieces
        )
        self._plan()
        groups = compiler.grouped(self.launches, self._where, self._blocks) if len(self.launches) <= most else []
        kernels = groups or [one for one in self.launches if len(one.calls) > 1]
        try:
            for one in _shown(kernels):
                one.kernel.prepare()
        except DeviceError as error:
            (self.launches, self.begins, self.bytes), self.why = before, f"one by one: {str(error).splitlines()[0]}"
            return
        calls = [(one.kernel, list(one.args)) for one in self.launches]
        if groups:
            calls = []
            for group in groups:
                arrays = [_Text(self._pointer(seen.of, seen.start, 1, 1)) for seen in group.arrays]
                calls.append((group.kernel, [*arrays, *group.tables, *group.numbers]))
        else:
            self.why = f"one by one: more than {most} take too long to compile as one"
        self.groups, self._launch = groups, self._launcher(calls)

    def _launcher(self, calls: list[tuple[Any, list[Any]]]) -> Any:
        """A function of the arena's address, those of what is given back, of arguments, and numbers: all launches. On a
        GPU it gets the blocks of these too, in which the addresses are."""
        names = {id(x): f"n[{k}]" for k, x in enumerate(self.numbers)}
        space: dict[str, Any] = {f"b{start}": block for start, block in self._held.items()}
        lines = ""
        for k, (kernel, args) in enumerate(calls):
            space[f"k{k}"] = kernel
            texts = []
            for j, x in enumerate(args):
                if type(x) is Traced:
                    texts.append(names[id(x)])
                elif type(x) is _Text:
                    texts.append(x)
                elif x.__class__ is self._recording.Place:
                    texts.append(self._pointer(*self._where(x), x.items, x.size))
                else:
                    space[f"c{k}_{j}"] = x
                    texts.append(f"c{k}_{j}")
            lines += f"    k{k}.launch({', '.join(texts)})\n"
        return compile_function("launch", f"def launch(a, e, x, n, b):\n{lines}    return None\n", space)

    def _where(self, place: Any) -> tuple[Any, int]:
        """The piece of memory that a place is in when the step runs, and how many bytes into it."""
        part, offset = place.part, place.offset
        if part.what == "fixed":
            return ("fixed", part.start), offset
        if part in self.begins:
            return ("arena", 0), self.begins[part] + offset
        if part in self._pieces:
            return ("given back", self._pieces.index(part)), offset
        return ("argument", part.what[1]), self._begins[part.what[1]] + offset

    def _pointer(self, of: tuple[str, int], offset: int, items: int, size: int) -> str:
        """An expression of what a kernel gets of an array, in the names of `_launcher`."""
        what, k = of
        address = k + offset if what == "fixed" else f"{_NAMES[what].format(k)} + {offset}"
        return f"({address}, {items}, {size}{f', {_BLOCKS[what].format(k)}' if self._blocks else ''})"

    def last(self, k: int) -> Any:
        """The array that the last run gave back as number `k`; None where it lies elsewhere."""
        at = self._results[k]
        given = self._givers[at[0]].last if type(at) is tuple else None
        return None if given is None else given.arrays[at[1]]

    def fitted(self, arguments: Sequence[Any]) -> list[Any] | None:
        """The arguments as the launches take them; None where the program has to compute the step of these."""
        if not self._recording.launchable(self._device):
            return None
        if self._blocks and not all(self._recording.known(*check) for check in self._checks):
            return None
        found = []
        for x, layout, lines in zip(arguments, self._layouts, self._lines, strict=True):
            if x.address and lines and not self._blocks and x.address not in self._starts:  # it begins a block
                found.append(x)
                continue
            if id(root_of(x)) in self._roots:
                return None
            if not x.address and not self._blocks:
                x = self._recording.in_lines(x)
            if self._recording.layout_of(x) != layout:
                return None
            found.append(x)
        return found

    def run(self, arguments: Sequence[Any], fitted: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
        """The arrays that are wanted, computed again from `arguments`; `numbers` are what `self.numbers` are now."""
        arena = self._arena
        if arena is None:
            arena = self._arena = self._pool.take(self.bytes)
        given = [giver.give() for giver in self._givers]
        places = [x.address or start_of(x) for x in fitted]
        more = None
        if self._blocks:
            more = arena, [x.block for x in given], list(map(self._recording.block_of, fitted))
        self._launch(arena.address, [x.address for x in given], places, numbers, more)
        for check in self._checks:
            self._recording.settle(*check)
        if not self._reads:
            return [given[piece].arrays[k] for piece, k in self._results]
        memories = _memories(self._program, arguments)
        return [given[x[0]].arrays[x[1]] if type(x) is tuple else x(memories) for x in self._results]


def _memories(program: Program, arguments: Sequence[Any]) -> dict[int, Any]:
    return dict(enumerate(map(program.around, arguments)))


def _shown(kernels: Sequence[Any]) -> Iterable[Any]:
    """Kernels that are compiled in turn, with tqdm's bar in a terminal or a notebook, if there is one."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return kernels
    return tqdm(kernels, desc="mg.jit compiles", unit=" kernels", leave=False, disable=None, dynamic_ncols=True)  # type: ignore[no-any-return]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'es' * (n != 1)}"


class _Text(str):
    """An argument of a launch as an expression."""


_NAMES = {"arena": "a", "given back": "e[{}]", "argument": "x[{}]"}
_BLOCKS = {"arena": "b[0]", "given back": "b[1][{}]", "argument": "b[2][{}]", "fixed": "b{}"}


def _maker(array: Any, offset: int) -> Callable[[Any], Any]:
    """What makes such an array, so many bytes into a block."""
    kind, shape, dtype, strides = type(array), array.shape, array.dtype, array.strides
    whole = bool(array.address)

    def make(block: Any) -> Any:
        made: Any = np.ndarray.__new__(kind, shape, dtype, block, offset, strides)
        if whole:
            made.address = block.address
        return made

    return make


class _Given:
    """A block, and the arrays on it that are given back."""

    __slots__ = ("address", "alone", "arrays", "block")
    alone: list[int]  # the counts when nobody else has them

    def __init__(self, block: Any, makers: list[Callable[[Any], Any]]) -> None:
        self.block, self.address, self.arrays = block, block.address, [make(block) for make in makers]

    def counts(self) -> list[int]:
        """How many names each of them has, here included."""
        return [getrefcount(self.block), *map(getrefcount, self.arrays)]


class _Giver:
    """Gives the arrays of a piece of memory: the last ones again, if nobody has them, a view or a tensor of them any
    more. To take a block, tell Taichi of it and give it back takes four microseconds."""

    __slots__ = ("_makers", "_pool", "_size", "last")

    def __init__(self, pool: Any, size: int, makers: list[Callable[[Any], Any]]) -> None:
        self._pool, self._size, self._makers = pool, size, makers
        self.last: _Given | None = None

    def give(self) -> _Given:
        one = self.last
        if one is None or one.counts() != one.alone:
            one = self.last = _Given(self._pool.take(self._size), self._makers)
            one.alone = one.counts()
        return one
