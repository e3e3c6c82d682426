"""Replay of a step as launches of compiled kernels, without the calls that led to them.

One run of a `Program` is recorded: the kernels that it launches, with their scalar arguments and addresses. The step's
temporaries are placed in one block, the arena, where temporaries with disjoint lifetimes share memory. A replay takes
the arena and blocks for the results, and launches the kernels.
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

LINE = 64  # bytes, the alignment of arrays in the arena


def recorded(
    program: Program, book: Book, arguments: Sequence[Any], numbers: Mapping[str, Any]
) -> tuple[list[Any], Launched | None, str]:
    """Run `program` and return its results, and its launches; or None, and why they cannot be recorded."""
    device = next((node.device for node in program.nodes), "")
    recording = recordings(device)
    why = f"kernels on {device or 'no device'} have no launches to record"
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
        found.refuse("a result lies in memory that the recording does not track")
    memories = _memories(program, given)
    for k, part in enumerate(places):
        if part is not None and part.what.__class__ is tuple:  # a view of the argument, not of its contiguous copy
            arrays[k] = program.results[k](memories)
    if found.refused:
        return arrays, None, found.refused
    return arrays, Launched(program, (device, recording), found, arguments, arrays, places), ""


def _unfit(program: Program, recording: Any, device: str, arguments: Sequence[Any]) -> str:
    """Return why a program cannot be recorded, "" if it can."""
    for array in arguments:
        if place_of(array) != device:
            return f"it also takes tensors on {place_of(array)}"
    for node in program.nodes:
        if node.device != device:
            return f"it also computes on {node.device}"
        if node.op not in (FULL, CONSTANT) and not recording.ours(node.op, device):
            return f"the kernel of {node.op} is user-defined"
        if any(view.buffer.kind == ARGUMENT for view in node.outs):
            return "it writes to an argument"
    return ""


def planned(sizes: Sequence[int], uses: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the offsets of memory regions that are live between two launches, both included; and the total bytes.

    First fit, largest first: each region gets the lowest offset without overlap with a region that is live too.

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
    """A recorded run: launches, and the addresses they use. `program` computes the same, call by call."""

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
        self._blocks = self._device != "cpu"  # whether kernels also take the blocks that contain their addresses
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
        """Blocks of memory outside of the arena, by address."""
        self._given_back(arrays, places)
        self._plan()
        self.numbers = list({id(x): x for one in self.launches for x in one.args if type(x) is Traced}.values())
        self._begins = [span_of(x)[0] - start_of(x) for x in arguments]
        self._launch = self._launcher([(one.kernel, list(one.args)) for one in self.launches])
        self.groups: list[Any] = []
        self.why = "not merged: it has not run often enough to be worth compiling"
        """Why the launches are not merged."""

    def _given_back(self, arrays: list[Any], places: list[Any]) -> None:
        """Find the memory regions of the results, and how to construct each result."""
        self._pieces: list[Any] = []
        self._reads = False  # whether a result lies in other memory
        self._results: list[Any] = []  # (region, array in it), or a function that finds the array elsewhere
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
        """The offset of each temporary in the arena."""

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the CPU."""
        return not self._blocks

    @property
    def source(self) -> str:
        """The source of the kernels that are launched, without duplicates."""
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
            f"Replayed as {how}, {f'merged into {joined}' if self.groups else self.why}.\n"
            f"Memory: {self.bytes:,} bytes of temporaries, {given:,} bytes of results."
        )

    def join(self, most: int) -> None:
        """Fuse and merge the launches into as few kernels as possible, and compile these now.

        Elementwise launches are fused first; then the remaining launches are merged, if they are at most `most`. If
        Taichi cannot compile the kernels, the launches stay as they are.
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
            (self.launches, self.begins, self.bytes), self.why = before, f"not merged: {str(error).splitlines()[0]}"
            return
        calls = [(one.kernel, list(one.args)) for one in self.launches]
        if groups:
            calls = []
            for group in groups:
                arrays = [_Text(self._pointer(seen.of, seen.start, 1, 1)) for seen in group.arrays]
                calls.append((group.kernel, [*arrays, *group.tables, *group.numbers]))
        else:
            self.why = f"not merged: more than {most} launches take too long to compile as one kernel"
        self.groups, self._launch = groups, self._launcher(calls)

    def _launcher(self, calls: list[tuple[Any, list[Any]]]) -> Any:
        """Compile a function of the addresses of arena, results and arguments, and of scalars, that makes all launches.

        On a GPU it also takes the blocks that contain these addresses."""
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
        """Return the memory region that contains an address during a replay, and the byte offset in it."""
        part, offset = place.part, place.offset
        if part.what == "fixed":
            return ("fixed", part.start), offset
        if part in self.begins:
            return ("arena", 0), self.begins[part] + offset
        if part in self._pieces:
            return ("result", self._pieces.index(part)), offset
        return ("argument", part.what[1]), self._begins[part.what[1]] + offset

    def _pointer(self, of: tuple[str, int], offset: int, items: int, size: int) -> str:
        """Return an expression for an array argument of a kernel, in the variables of `_launcher`."""
        what, k = of
        address = k + offset if what == "fixed" else f"{_NAMES[what].format(k)} + {offset}"
        return f"({address}, {items}, {size}{f', {_BLOCKS[what].format(k)}' if self._blocks else ''})"

    def last(self, k: int) -> Any:
        """Return result `k` of the last run; None if it lies in other memory."""
        at = self._results[k]
        given = self._givers[at[0]].last if type(at) is tuple else None
        return None if given is None else given.arrays[at[1]]

    def fitted(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Return the arguments in the layout of the launches; None if the program has to run instead."""
        if not self._recording.launchable(self._device):
            return None
        if self._blocks and not all(self._recording.known(*check) for check in self._checks):
            return None
        found = []
        for x, layout, lines in zip(arguments, self._layouts, self._lines, strict=True):
            if x.address and lines and not self._blocks and x.address not in self._starts:  # it is the start of a block
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
        """Return the results, computed from `arguments`; `numbers` are the current values of `self.numbers`."""
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
    """Return kernels to compile, with a tqdm progress bar in a terminal or a notebook if tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return kernels
    return tqdm(kernels, desc="mg.jit: compiling", unit=" kernels", leave=False, disable=None, dynamic_ncols=True)  # type: ignore[no-any-return]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'es' * (n != 1)}"


class _Text(str):
    """An expression for an argument of a launch."""


_NAMES = {"arena": "a", "result": "e[{}]", "argument": "x[{}]"}
_BLOCKS = {"arena": "b[0]", "result": "b[1][{}]", "argument": "b[2][{}]", "fixed": "b{}"}


def _maker(array: Any, offset: int) -> Callable[[Any], Any]:
    """Return a function that constructs an array with this layout at a byte offset into a block."""
    kind, shape, dtype, strides = type(array), array.shape, array.dtype, array.strides
    whole = bool(array.address)

    def make(block: Any) -> Any:
        made: Any = np.ndarray.__new__(kind, shape, dtype, block, offset, strides)
        if whole:
            made.address = block.address
        return made

    return make


class _Given:
    """A block of memory, and the result arrays in it."""

    __slots__ = ("address", "alone", "arrays", "block")
    alone: list[int]  # the reference counts without other references

    def __init__(self, block: Any, makers: list[Callable[[Any], Any]]) -> None:
        self.block, self.address, self.arrays = block, block.address, [make(block) for make in makers]

    def counts(self) -> list[int]:
        """Return the reference counts of the block and its arrays, including those held here."""
        return [getrefcount(self.block), *map(getrefcount, self.arrays)]


class _Giver:
    """Provider of the result arrays in a memory region. It returns the last ones again if nothing else references them:
    to take a block, pass it to Taichi and release it takes four microseconds."""

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
