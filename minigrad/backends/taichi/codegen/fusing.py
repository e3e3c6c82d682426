"""Fusing: launches that compute each number from those in its place, as one launch, where one reads what another has.

What a number is computed from is read once, and what is computed stays in a register for whoever comes next. It is
stored only where a launch of another kind reads it, or somebody outside. What is computed of a product of matrices, as
its numbers lie, is computed tile by tile, while these are near. Launches change places for that where neither
reads or writes what the other writes. Sums and extremes of rows go along, with what is made of them: a row is gone
through once for each that waits for another.
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

ARGUMENTS = 40  # arrays and numbers of one kernel
LAUNCHES = 24  # in one kernel: registers are few
ENDS = 6  # that go with a product
BACK = 64  # launches that are looked at to find one to go with
ROWS = max(64, CORES)  # at least, of those that cores take in turns


@cached()
def _written(text: str) -> tuple[bool, ...]:
    return moved(text, False).written


class _Group:
    """Launches that go together: one of any kind, or several loops."""

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
            (self.writes if written else self.reads).add(key_of(place.part))  # who writes may read what it leaves

    def add(self, loop: Loop) -> None:
        self.loops.append(loop)
        self.writes.update(key_of(x.place.part) for x in loop.results)
        self.reads.update(key_of(x.place.part) for x in loop.reads)

    def after(self, other: _Group) -> bool:
        """Whether it has to stay on its side of another."""
        return bool(self.writes & (other.reads | other.writes) or other.writes & self.reads)

    def joined(self, loop: Loop) -> list[Loop] | None:
        """All loops, if one more may go with them: alike in size, with an array in common, and what any of them writes
        is touched by all as it lies."""
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
        arguments = sum(len(one) for one in lying.values()) * (1 if source.VECTORIZED else 2)  # an array has a place
        arguments += sum(len(x.given) - len(x.reads) for x in loops)
        if arguments > ARGUMENTS or any(len(lying[part]) > 1 for part in written) or not _in_turn(loops):
            return None
        return loops if keys & {x.key for x in loops[-1].arrays} else None

    def _ended(self, product: Product, new: Loop) -> list[Loop] | None:
        """All loops over the result of a product, if one more may go with them: what it writes is read by none but
        them, and each number of it once, in its place."""
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
    """Whether loops can be computed row by row, if some make numbers of rows: there are rows for all cores, and nothing
    is overwritten, since who reads it may have to wait for a sum."""
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
    """Which group a loop can go with, the loops of both then, and whether that has to wait until the end for it."""
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
    """The same launches, fewer: loops over the same numbers in one. `own` memory is looked at by none but them."""
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
