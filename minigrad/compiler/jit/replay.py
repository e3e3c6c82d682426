"""Replay of a step as launches of compiled kernels, without the calls that led to them.

One run of a `Program` is recorded: the kernels that it launches, with their scalar arguments and addresses. The step's
temporaries are placed in one block, the arena, where temporaries with disjoint lifetimes share memory. A replay
allocates the arena and blocks for the results, and launches the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from minigrad.backends.arrays import capture_module, merge_module
from minigrad.compiler.jit.nodes import ARGUMENT, CONSTANT, FULL, address_of, address_range, memory_owner
from minigrad.compiler.jit.program import Program
from minigrad.core.errors import DeviceError
from minigrad.core.specialise import compile_function
from minigrad.core.storage import device_of, get_allocator
from minigrad.core.symbolic import SymbolicScalar, SymbolicTrace

__all__ = ["ALIGNMENT", "LaunchReplay", "plan_arena", "record_launches"]

ALIGNMENT = 64  # alignment in bytes of arrays in the arena


def record_launches(
    program: Program, book: SymbolicTrace, arguments: Sequence[Any], scalars: Mapping[str, Any]
) -> tuple[list[Any], LaunchReplay | None, str]:
    """Run `program` and record its launches. Return its results, a `LaunchReplay` or None, and the reason for None."""
    device = next((node.device for node in program.nodes), "")
    recording = capture_module(device)
    reason = f"kernels on {device or 'no device'} have no launches to record"
    if recording is not None:
        reason = _unrecordable_reason(program, recording, device, arguments)
    if reason:
        return program.run(arguments, scalars), None, reason
    roots = {id(x.flat) for x in program.fixed.values()}
    original_arguments = arguments
    arguments = [x if id(memory_owner(x)) in roots else recording.align(x) for x in arguments]
    symbols = {x.name: x for x in program.symbols}
    for name, x in symbols.items():
        x.value = scalars[name]
    spans = [address_range(x) for x in arguments]
    regions_before: list[Any] = [
        ("fixed", address_of(x.flat), x.flat.nbytes, x.flat) for x in program.fixed.values() if x.flat.nbytes
    ]
    regions_before += [
        (("argument", k), start, end - start, None) for k, (start, end) in enumerate(spans) if end > start
    ]
    with recording.record_launches(device, regions_before) as launch_recording:
        arrays = program.run(arguments, {**scalars, **symbols}, launch_recording.begin_call)
    regions = [launch_recording.region_of(address_of(x)) for x in arrays]
    if None in regions:
        launch_recording.refuse("a result lies in memory that the recording does not track")
    memories = _argument_extents(program, original_arguments)
    for k, region in enumerate(regions):
        if region is not None and region.owner.__class__ is tuple:  # a view of the argument, not of its contiguous copy
            arrays[k] = program.results[k](memories)
    if launch_recording.refusal:
        return arrays, None, launch_recording.refusal
    return arrays, LaunchReplay(program, (device, recording), launch_recording, arguments, arrays, regions), ""


def _unrecordable_reason(program: Program, recording: Any, device: str, arguments: Sequence[Any]) -> str:
    """Return why a program cannot be recorded, or "" if it can."""
    for array in arguments:
        if device_of(array) != device:
            return f"it also takes tensors on {device_of(array)}"
    for node in program.nodes:
        if node.device != device:
            return f"it also computes on {node.device}"
        if node.op not in (FULL, CONSTANT) and not recording.is_builtin(node.op, device):
            return f"the kernel of {node.op} is user-defined"
        if any(view.buffer.kind == ARGUMENT for view in node.outs):
            return "it writes to an argument"
    return ""


def plan_arena(sizes: Sequence[int], uses: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the offset of each region, and the total size in bytes. `uses` are its first and last launch, inclusive.

    Regions are placed by first fit, largest first, at the lowest offset that overlaps no region live at the same time.

    >>> plan_arena([64, 64, 64], [(0, 1), (1, 2), (2, 3)])
    ([0, 64, 0], 128)
    """
    offsets, end = [0] * len(sizes), 0
    placed: list[int] = []
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        first, last = uses[k]
        occupied = sorted((offsets[j], sizes[j]) for j in placed if uses[j][0] <= last and first <= uses[j][1])
        offset = 0
        for begin, size in occupied:
            if begin - offset >= sizes[k]:
                break
            offset = max(offset, begin + size)
        offsets[k] = offset
        placed.append(k)
        end = max(end, offset + sizes[k])
    return offsets, end


class LaunchReplay:
    """Recorded launches of a program and the addresses they use. `program` computes the same results call by call."""

    def __init__(
        self,
        program: Program,
        target: tuple[str, Any],
        launch_recording: Any,
        arguments: Sequence[Any],
        results: list[Any],
        regions: list[Any],
    ) -> None:
        self._device, recording = target
        self._takes_blocks = self._device != "cpu"  # whether launches also receive the blocks of their addresses
        self.launches, self._checks, self._recording = launch_recording.launches, launch_recording.checks, recording
        self._layouts = [recording.layout_of(x) for x in arguments]
        self._fixed_roots = {id(x.flat) for x in program.fixed.values()}
        self._fixed_addresses = {address_of(x.flat) for x in program.fixed.values()}
        self._is_aligned = [layout == (0, True) for layout in self._layouts]
        self._program, self._pool = program, get_allocator(self._device).pool
        self._fixed_blocks = {
            x.region.start: recording.block_of(x.region.memory)
            for one in self.launches
            for x in one.args
            if x.__class__ is recording.ArrayArgument and x.region.owner == "fixed"
        }
        """Blocks of memory outside of the arena, by address."""
        self._plan_results(results, regions)
        self._plan_arena()
        self.symbols = list({id(x): x for one in self.launches for x in one.args if type(x) is SymbolicScalar}.values())
        self._argument_offsets = [address_range(x)[0] - address_of(x) for x in arguments]
        self._launch = self._compile_launcher([(one.kernel, list(one.args)) for one in self.launches])
        self.groups: list[Any] = []
        self.unmerged_reason = "not merged: it has not run often enough to be worth compiling"
        """Reason that the launches are not merged."""

    def _plan_results(self, arrays: list[Any], regions: list[Any]) -> None:
        """Determine the memory region of each result, and how to construct the result."""
        self._result_regions: list[Any] = []
        self._has_external_results = False  # whether a result is in memory that a replay does not allocate
        self._results: list[Any] = []  # (region index, array index), or a function that returns the array
        constructors: list[list[Callable[[Any], Any]]] = []
        for k, (array, part) in enumerate(zip(arrays, regions, strict=True)):
            if part.owner.__class__ is not int:
                self._has_external_results = True
                self._results.append(self._program.results[k])
                continue
            if part not in self._result_regions:
                self._result_regions.append(part)
                constructors.append([])
            index = self._result_regions.index(part)
            self._results.append((index, len(constructors[index])))
            constructors[index].append(_array_constructor(array, address_of(array) - part.start))
        self._result_providers = [
            _ResultProvider(self._pool, part.size, region_constructors)
            for part, region_constructors in zip(self._result_regions, constructors, strict=True)
        ]

    def _plan_arena(self) -> None:
        uses: dict[Any, tuple[int, int]] = {}
        for k, launch in enumerate(self.launches):
            for x in launch.args:
                if (
                    x.__class__ is self._recording.ArrayArgument
                    and x.region.owner.__class__ is int
                    and x.region not in self._result_regions
                ):
                    uses[x.region] = (uses.get(x.region, (k, k))[0], k)
        parts = list(uses)
        offsets, self.arena_bytes = plan_arena([x.size for x in parts], list(uses.values()))
        self._arena: Any = None
        self.arena_offsets = dict(zip(parts, offsets, strict=True))
        """The offset of each temporary in the arena."""

    @property
    def on_cpu(self) -> bool:
        """Whether the launches run on the CPU."""
        return not self._takes_blocks

    @property
    def source(self) -> str:
        """The source code of the launched kernels, without duplicates."""
        kernels = [one.kernel for one in self.groups or self.launches]
        return "\n\n".join(dict.fromkeys(kernel.source for kernel in kernels))

    def __str__(self) -> str:
        merged = ", ".join(
            f"{one.kernel.name} of {_count(one.count, 'launch')}, {len(one.arrays)} arrays" for one in self.groups
        )
        fused = [len(one.calls) for one in self.launches if len(one.calls) > 1]
        description = _count(sum(len(one.calls) for one in self.launches), "launch")
        if fused:
            description += f", {sum(fused)} of which are fused into {len(fused)}"
        result_bytes = sum(part.size for part in self._result_regions)
        return (
            f"Replayed as {description}, {f'merged into {merged}' if self.groups else self.unmerged_reason}.\n"
            f"Memory: {self.arena_bytes:,} bytes of temporaries, {result_bytes:,} bytes of results."
        )

    def merge_launches(self, max_launches: int) -> None:
        """Fuse and merge the launches into as few kernels as possible, and compile these now.

        Elementwise launches are fused first; then the remaining launches are merged, if they are at most
        `max_launches`. If Taichi cannot compile the kernels, the launches stay as they are.
        """
        compiler, before = merge_module(self._device), (self.launches, self.arena_offsets, self.arena_bytes)
        self.launches = compiler.fuse_launches(
            self.launches, lambda part: part.owner.__class__ is int and part not in self._result_regions
        )
        self._plan_arena()
        groups = (
            compiler.merge_launches(self.launches, self._locate, self._takes_blocks)
            if len(self.launches) <= max_launches
            else []
        )
        kernels = groups or [one for one in self.launches if len(one.calls) > 1]
        try:
            for one in _with_progress(kernels):
                one.kernel.prepare()
        except DeviceError as error:
            self.launches, self.arena_offsets, self.arena_bytes = before
            self.unmerged_reason = f"not merged: {str(error).splitlines()[0]}"
            return
        calls = [(one.kernel, list(one.args)) for one in self.launches]
        if groups:
            calls = []
            for group in groups:
                arrays = [_Expression(self._pointer_expression(x.memory, x.start, 1, 1)) for x in group.arrays]
                calls.append((group.kernel, [*arrays, *group.tables, *group.scalars]))
        else:
            self.unmerged_reason = (
                f"not merged: more than {max_launches} launches take too long to compile as one kernel"
            )
        self.groups, self._launch = groups, self._compile_launcher(calls)

    def _compile_launcher(self, calls: list[tuple[Any, list[Any]]]) -> Any:
        """Compile a function that makes all launches, given addresses of the arena, results and arguments, and the
        scalars.

        On a GPU the function also takes the blocks that contain these addresses."""
        names = {id(x): f"n[{k}]" for k, x in enumerate(self.symbols)}
        namespace: dict[str, Any] = {f"b{start}": block for start, block in self._fixed_blocks.items()}
        lines = ""
        for k, (kernel, args) in enumerate(calls):
            namespace[f"k{k}"] = kernel
            expressions = []
            for j, x in enumerate(args):
                if type(x) is SymbolicScalar:
                    expressions.append(names[id(x)])
                elif type(x) is _Expression:
                    expressions.append(x)
                elif x.__class__ is self._recording.ArrayArgument:
                    expressions.append(self._pointer_expression(*self._locate(x), x.items, x.size))
                else:
                    namespace[f"c{k}_{j}"] = x
                    expressions.append(f"c{k}_{j}")
            lines += f"    k{k}.launch({', '.join(expressions)})\n"
        return compile_function("launch", f"def launch(a, e, x, n, b):\n{lines}    return None\n", namespace)

    def _locate(self, address: Any) -> tuple[Any, int]:
        """Return the memory region that contains an address during a replay, and the byte offset in it."""
        part, offset = address.region, address.offset
        if part.owner == "fixed":
            return ("fixed", part.start), offset
        if part in self.arena_offsets:
            return ("arena", 0), self.arena_offsets[part] + offset
        if part in self._result_regions:
            return ("result", self._result_regions.index(part)), offset
        return ("argument", part.owner[1]), self._argument_offsets[part.owner[1]] + offset

    def _pointer_expression(self, location: tuple[str, int], offset: int, items: int, size: int) -> str:
        """Return an expression for an array argument of a kernel, in the variables of `_compile_launcher`."""
        kind, k = location
        address = k + offset if kind == "fixed" else f"{_ADDRESS_EXPRESSIONS[kind].format(k)} + {offset}"
        return f"({address}, {items}, {size}{f', {_BLOCK_EXPRESSIONS[kind].format(k)}' if self._takes_blocks else ''})"

    def last_result(self, k: int) -> Any:
        """Return result `k` of the last run; None if a replay does not allocate its memory."""
        slot = self._results[k]
        provided = self._result_providers[slot[0]].last if type(slot) is tuple else None
        return None if provided is None else provided.arrays[slot[1]]

    def fit_arguments(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Return the arguments in the layout that the launches require; None if the program must run instead."""
        if not self._recording.can_launch(self._device):
            return None
        if self._takes_blocks and not all(self._recording.is_current_slot(*check) for check in self._checks):
            return None
        fitted_arguments = []
        for x, layout, lines in zip(arguments, self._layouts, self._is_aligned, strict=True):
            if (
                x.address and lines and not self._takes_blocks and x.address not in self._fixed_addresses
            ):  # the argument starts a block
                fitted_arguments.append(x)
                continue
            if id(memory_owner(x)) in self._fixed_roots:
                return None
            if not x.address and not self._takes_blocks:
                x = self._recording.align(x)
            if self._recording.layout_of(x) != layout:
                return None
            fitted_arguments.append(x)
        return fitted_arguments

    def run(self, arguments: Sequence[Any], fitted: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """Launch the kernels and return the results. `fitted` are the arguments after `fit_arguments`, and `scalars`
        the current values of `self.symbols`."""
        arena = self._arena
        if arena is None:
            arena = self._arena = self._pool.allocate(self.arena_bytes)
        provided = [provider.provide() for provider in self._result_providers]
        addresses = [x.address or address_of(x) for x in fitted]
        blocks = None
        if self._takes_blocks:
            blocks = arena, [x.block for x in provided], list(map(self._recording.block_of, fitted))
        self._launch(arena.address, [x.address for x in provided], addresses, scalars, blocks)
        for check in self._checks:
            self._recording.check_slot(*check)
        if not self._has_external_results:
            return [provided[region].arrays[k] for region, k in self._results]
        memories = _argument_extents(self._program, arguments)
        return [provided[x[0]].arrays[x[1]] if type(x) is tuple else x(memories) for x in self._results]


def _argument_extents(program: Program, arguments: Sequence[Any]) -> dict[int, Any]:
    return dict(enumerate(map(program.extent_of, arguments)))


def _with_progress(kernels: Sequence[Any]) -> Iterable[Any]:
    """Return kernels to compile, with a tqdm progress bar in a terminal or a notebook if tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return kernels
    return tqdm(kernels, desc="mg.jit: compiling", unit=" kernels", leave=False, disable=None, dynamic_ncols=True)  # type: ignore[no-any-return]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'es' * (n != 1)}"


class _Expression(str):
    """Source expression of a launch argument."""


_ADDRESS_EXPRESSIONS = {"arena": "a", "result": "e[{}]", "argument": "x[{}]"}
_BLOCK_EXPRESSIONS = {"arena": "b[0]", "result": "b[1][{}]", "argument": "b[2][{}]", "fixed": "b{}"}


def _array_constructor(array: Any, offset: int) -> Callable[[Any], Any]:
    """Return a function that constructs an array with the layout of `array` at a byte offset in a block."""
    kind, shape, dtype, strides = type(array), array.shape, array.dtype, array.strides
    owns_block = bool(array.address)

    def make(block: Any) -> Any:
        array: Any = np.ndarray.__new__(kind, shape, dtype, block, offset, strides)
        if owns_block:
            array.address = block.address
        return array

    return make


class _ResultBlock:
    """A block of memory, and the result arrays in it."""

    __slots__ = ("address", "arrays", "block", "unshared_counts")
    unshared_counts: list[int]  # the reference counts if nothing else references them

    def __init__(self, block: Any, makers: list[Callable[[Any], Any]]) -> None:
        self.block, self.address, self.arrays = block, block.address, [make(block) for make in makers]

    def reference_counts(self) -> list[int]:
        """Return the reference counts of the block and its arrays, including the references stored here."""
        return [getrefcount(self.block), *map(getrefcount, self.arrays)]


class _ResultProvider:
    """Provider of the result arrays in a memory region. It reuses the last arrays if nothing else references them,
    since allocating a block, passing it to Taichi and releasing it takes four microseconds."""

    __slots__ = ("_constructors", "_pool", "_size", "last")

    def __init__(self, pool: Any, size: int, makers: list[Callable[[Any], Any]]) -> None:
        self._pool, self._size, self._constructors = pool, size, makers
        self.last: _ResultBlock | None = None

    def provide(self) -> _ResultBlock:
        one = self.last
        if one is None or one.reference_counts() != one.unshared_counts:
            one = self.last = _ResultBlock(self._pool.allocate(self._size), self._constructors)
            one.unshared_counts = one.reference_counts()
        return one
