"""Fusion: merge elementwise launches, where one reads results or operands of another, into one launch.

An operand is loaded once, and results stay in registers for the next loop. They are stored only if a launch of another
kind or code outside the step reads them. Elementwise loops over the contiguous result of a matrix product run as its
epilogue, tile by tile, while tiles are in cache. Launches are reordered if neither reads or writes what the other
writes. Row reductions are fused with the loops that use their results: a row is traversed once for each dependency on a
reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.fused_text import ended, made
from minigrad.backends.taichi.codegen.loops import Key, Loop, Product, flattened, key_of, loop_of, product_of, reshaped
from minigrad.backends.taichi.codegen.source import CORES, SERIAL_WIDE, WIDE, of_any_width
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.offsets import moved
from minigrad.backends.taichi.runtime.recording import Launch, Place, Region

__all__ = ["fused"]

ARGUMENTS = 40  # maximum number of arrays and scalars of a kernel
LAUNCHES = 24  # maximum number of launches in a kernel, since registers are few
ENDS = 6  # maximum number of loops in an epilogue
BACK = 64  # number of previous launches considered for fusion
ROWS = max(64, CORES)  # minimum number of rows that are divided between cores


@cached()
def _written(text: str) -> tuple[bool, ...]:
    return moved(text, False).written


class _Group:
    """Launches that are fused: one of any kind, or several loops."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.loops: list[Loop] = []
        self.reads: set[Key] = set()
        self.writes: set[Key] = set()
        self.product = product_of(launch)
        loop = loop_of(launch)
        if loop is not None:
            self.add(loop)
            return
        places = [x for x in launch.args if isinstance(x, Place)]
        for place, written in zip(places, _written(launch.kernel.text), strict=True):
            (self.writes if written else self.reads).add(key_of(place.part))  # a writer may also read

    def add(self, loop: Loop) -> None:
        self.loops.append(loop)
        self.writes.update(key_of(x.place.part) for x in loop.results)
        self.reads.update(key_of(x.place.part) for x in loop.reads)

    def after(self, other: _Group) -> bool:
        """Return whether the order of two groups must be preserved."""
        return bool(self.writes & (other.reads | other.writes) or other.writes & self.reads)

    def joined(self, loop: Loop) -> list[Loop] | None:
        """Return all loops if `loop` can be fused with them, else None: equal sizes, an array in common, and one layout
        for every array that is written."""
        if self.product is not None:
            return self._ended(self.product, loop)
        if not self.loops or len(self.loops) >= LAUNCHES:
            return None
        sizes = max(self.loops[0].sizes, loop.sizes, key=len)
        found = [reshaped(x, sizes) for x in (*self.loops, loop)]
        loops = [x for x in found if x is not None]
        if len(loops) < len(found):
            return None
        lying: dict[Key, set[Any]] = {}
        for one in loops:
            for x in one.arrays:
                lying.setdefault(key_of(x.place.part), set()).add(x.key)
        written = {key_of(x.place.part) for one in loops for x in one.results}
        keys = {x.key for one in loops[:-1] for x in one.arrays}
        arguments = sum(len(one) for one in lying.values()) * (1 if source.VECTORIZED else 2)  # on a GPU with offsets
        arguments += sum(len(x.given) - len(x.reads) for x in loops)
        if arguments > ARGUMENTS or any(len(lying[part]) > 1 for part in written) or not _in_turn(loops):
            return None
        return loops if keys & {x.key for x in loops[-1].arrays} else None

    def _ended(self, product: Product, new: Loop) -> list[Loop] | None:
        """Return the loops of a product's epilogue if `new` can be appended, else None: its results are read by no
        other operand of the product, and elementwise by the loops."""
        flat = reshaped(new, product.sizes) or flattened(new, product.sizes)
        if flat is None or len(self.loops) >= ENDS:
            return None
        if product.lanes < WIDE and not of_any_width(flat.work.snippet):
            return None
        loops = [*self.loops, flat]
        lying: dict[Key, set[Any]] = {}
        for x in [product.y, *[x for one in loops for x in one.arrays]]:
            if x.row or x.strides != (1,):
                return None
            lying.setdefault(key_of(x.place.part), set()).add(x.key)
        written = {key_of(x.place.part) for one in loops for x in one.results}
        read = {key_of(x.part) for x in product.launch.args[1:] if isinstance(x, Place)}
        known = {product.y.key, *[x.key for one in self.loops for x in one.results]}
        if written & read or any(len(lying[part]) > 1 for part in {*written, key_of(product.y.place.part)}):
            return None
        return loops if known & {x.key for x in flat.reads} else None


def _in_turn(loops: Sequence[Loop]) -> bool:
    """Return whether loops can run row by row, if some reduce rows: there are rows for all cores, and no loop
    overwrites an array, since its readers may run in a later pass."""
    if not any(x.y.row for x in loops):
        return True
    touched: set[Any] = set()
    for loop in loops:
        touched.update(x.key for x in loop.reads)
        if any(x.key in touched for x in loop.results):
            return False
        touched.add(loop.y.key)
    sizes = loops[0].sizes
    return len(sizes) == 2 and (sizes[0] >= ROWS or prod(sizes) * WIDE <= SERIAL_WIDE)


def _grouped(launches: Sequence[Launch]) -> list[_Group]:
    groups: list[_Group] = []
    for launch in launches:
        new = _Group(launch)
        home = _home(groups, new) if new.loops else None
        if home is None:
            groups.append(new)
            continue
        place, loops, sinks = home
        group = groups[place]
        if sinks:
            groups.append(groups.pop(place))
        group.loops = []
        for loop in loops:
            group.add(loop)
    return groups


def _home(groups: list[_Group], new: _Group) -> tuple[int, list[Loop], bool] | None:
    """Return the group that a loop can join, the merged loops, and whether the group has to move to the end."""
    rises = True
    for place in range(len(groups) - 1, max(-1, len(groups) - 1 - BACK), -1):
        group = groups[place]
        loops = group.joined(new.loops[0])
        if loops is not None:
            if rises:
                return place, loops, False
            if not any(group.after(later) for later in groups[place + 1 :]):
                return place, loops, True
        rises = rises and not new.after(group)
    return None


def fused(launches: Sequence[Launch], own: Callable[[Region], bool]) -> list[Launch]:
    """Return the launches with loops fused. `own` tells which memory is temporary, read only by these launches."""
    groups = _grouped(launches)
    touched = Counter(part for group in groups for part in group.reads | group.writes)

    def stored(part: Region) -> bool:
        return not own(part) or touched[key_of(part)] > 1

    found = []
    for group in groups:
        if group.product is not None and group.loops:
            found.append(ended(group.product, group.loops, stored))
        else:
            found.append(made(group.loops, stored) if len(group.loops) > 1 else group.launch)
    return found
