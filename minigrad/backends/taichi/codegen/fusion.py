"""Fusion: merge elementwise launches into a single launch if one reads results or operands of another.

An operand is loaded once, and results stay in registers for the next loop. They are stored only if a launch of another
kind or code outside the step reads them. Elementwise loops over the contiguous result of a matrix product run as its
epilogue, tile by tile, while tiles are in cache. Launches are reordered if neither reads or writes an array that the
other writes. Row reductions are fused with the loops that use their results: a row is traversed once for each
dependency on a reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.fused_source import fuse_epilogue, fuse_loops
from minigrad.backends.taichi.codegen.loops import (
    ElementwiseLoop,
    MatrixProduct,
    RegionKey,
    as_loop,
    as_product,
    flatten_loop,
    region_key,
    reshape_loop,
)
from minigrad.backends.taichi.codegen.source import CORES, MAX_SERIAL_VECTOR_ELEMENTS, VECTOR_SIZE, is_width_independent
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.launch_recording import ArrayArgument, Launch, Region
from minigrad.backends.taichi.runtime.transforms import add_offsets

__all__ = ["fuse_launches"]

MAX_ARGUMENTS = 40  # maximum number of arrays and scalars of a kernel
MAX_LAUNCHES = 24  # maximum number of launches in a kernel, since registers are few
MAX_EPILOGUE_LOOPS = 6  # maximum number of loops in an epilogue
MAX_LOOKBACK = 64  # number of previous launches considered for fusion
MIN_PARALLEL_ROWS = max(64, CORES)  # minimum number of rows that are divided between cores


@arch_cache()
def _written_arrays(text: str) -> tuple[bool, ...]:
    return add_offsets(text, False).is_written


class _FusionGroup:
    """Launches to fuse: a single launch of any kind, or several loops."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.loops: list[ElementwiseLoop] = []
        self.reads: set[RegionKey] = set()
        self.writes: set[RegionKey] = set()
        self.product = as_product(launch)
        loop = as_loop(launch)
        if loop is not None:
            self.add(loop)
            return
        written = iter(_written_arrays(launch.kernel.source))
        for kind, x in zip(launch.kernel.kinds, launch.args, strict=True):
            if isinstance(x, ArrayArgument):  # written arrays, and memory at addresses, may also be read
                (self.writes if kind == "p" or next(written) else self.reads).add(region_key(x.region))

    def add(self, loop: ElementwiseLoop) -> None:
        self.loops.append(loop)
        self.writes.update(region_key(x.place.region) for x in loop.results)
        self.reads.update(region_key(x.place.region) for x in loop.reads)

    def depends_on(self, other: _FusionGroup) -> bool:
        """Return whether the order of two groups must be preserved."""
        return bool(self.writes & (other.reads | other.writes) or other.writes & self.reads)

    def fuse(self, loop: ElementwiseLoop) -> list[ElementwiseLoop] | None:
        """Return the loops of the group and `loop` if they can be fused, else None. Fusion requires equal sizes, a
        common array, and a single layout of every array that is written."""
        if self.product is not None:
            return self._fuse_epilogue(self.product, loop)
        if not self.loops or len(self.loops) >= MAX_LAUNCHES:
            return None
        sizes = max(self.loops[0].sizes, loop.sizes, key=len)
        reshaped_loops = [reshape_loop(x, sizes) for x in (*self.loops, loop)]
        loops = [x for x in reshaped_loops if x is not None]
        if len(loops) < len(reshaped_loops):
            return None
        layouts: dict[RegionKey, set[Any]] = {}
        for loop_of_group in loops:
            for x in loop_of_group.arrays:
                layouts.setdefault(region_key(x.place.region), set()).add(x.key)
        written = {region_key(x.place.region) for one in loops for x in one.results}
        keys = {x.key for one in loops[:-1] for x in one.arrays}
        arguments = sum(len(one) for one in layouts.values()) * (1 if source.VECTORIZED else 2)  # a GPU needs offsets
        arguments += sum(len(x.operands) - len(x.reads) for x in loops)
        if arguments > MAX_ARGUMENTS or any(len(layouts[part]) > 1 for part in written) or not _can_run_by_row(loops):
            return None
        return loops if keys & {x.key for x in loops[-1].arrays} else None

    def _fuse_epilogue(self, product: MatrixProduct, new: ElementwiseLoop) -> list[ElementwiseLoop] | None:
        """Return the loops of a product's epilogue if `new` can be appended, else None. The product must not read
        arrays that the loops write, and the loops must access all arrays elementwise."""
        flat = reshape_loop(new, product.sizes) or flatten_loop(new, product.sizes)
        if flat is None or len(self.loops) >= MAX_EPILOGUE_LOOPS:
            return None
        if product.lanes < VECTOR_SIZE and not is_width_independent(flat.work.snippet):
            return None
        loops = [*self.loops, flat]
        layouts: dict[RegionKey, set[Any]] = {}
        for x in [product.y, *[x for one in loops for x in one.arrays]]:
            if x.row or x.strides != (1,):
                return None
            layouts.setdefault(region_key(x.place.region), set()).add(x.key)
        written = {region_key(x.place.region) for one in loops for x in one.results}
        read = {region_key(x.region) for x in product.launch.args[1:] if isinstance(x, ArrayArgument)}
        computed = {product.y.key, *[x.key for one in self.loops for x in one.results]}
        if written & read or any(len(layouts[part]) > 1 for part in {*written, region_key(product.y.place.region)}):
            return None
        return loops if computed & {x.key for x in flat.reads} else None


def _can_run_by_row(loops: Sequence[ElementwiseLoop]) -> bool:
    """Return whether loops can run row by row, which is required if a loop reduces rows. There must be enough rows for
    all cores, and no loop may overwrite an array, since loops that read it may run in a later pass."""
    if not any(x.y.row for x in loops):
        return True
    touched: set[Any] = set()
    for loop in loops:
        touched.update(x.key for x in loop.reads)
        if any(x.key in touched for x in loop.results):
            return False
        touched.add(loop.y.key)
    sizes = loops[0].sizes
    return len(sizes) == 2 and (
        sizes[0] >= MIN_PARALLEL_ROWS or prod(sizes) * VECTOR_SIZE <= MAX_SERIAL_VECTOR_ELEMENTS
    )


def _group_launches(launches: Sequence[Launch]) -> list[_FusionGroup]:
    groups: list[_FusionGroup] = []
    for launch in launches:
        new = _FusionGroup(launch)
        target = _find_group(groups, new) if new.loops else None
        if target is None:
            groups.append(new)
            continue
        position, loops, moves_to_end = target
        group = groups[position]
        if moves_to_end:
            groups.append(groups.pop(position))
        group.loops = []
        for loop in loops:
            group.add(loop)
    return groups


def _find_group(groups: list[_FusionGroup], new: _FusionGroup) -> tuple[int, list[ElementwiseLoop], bool] | None:
    """Return the index of a group that a loop can join, the fused loops, and whether the group must move to the end."""
    can_move_up = True
    for position in range(len(groups) - 1, max(-1, len(groups) - 1 - MAX_LOOKBACK), -1):
        group = groups[position]
        loops = group.fuse(new.loops[0])
        if loops is not None:
            if can_move_up:
                return position, loops, False
            if not any(group.depends_on(later) for later in groups[position + 1 :]):
                return position, loops, True
        can_move_up = can_move_up and not new.depends_on(group)
    return None


def fuse_launches(launches: Sequence[Launch], is_temporary: Callable[[Region], bool]) -> list[Launch]:
    """Return the launches with loops fused. `is_temporary` returns whether a memory region is read only by these
    launches."""
    groups = _group_launches(launches)
    touched = Counter(part for group in groups for part in group.reads | group.writes)

    def is_stored(part: Region) -> bool:
        return not is_temporary(part) or touched[region_key(part)] > 1

    result = []
    for group in groups:
        if group.product is not None and group.loops:
            result.append(fuse_epilogue(group.product, group.loops, is_stored))
        else:
            result.append(fuse_loops(group.loops, is_stored) if len(group.loops) > 1 else group.launch)
    return result
