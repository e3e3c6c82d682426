"""The table of `Module.summary`: output shapes and costs of each module, measured in one forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from minigrad.backends.limits import size_text
from minigrad.core.dispatch import Call, tap
from minigrad.core.errors import ArgumentError, printable
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.profiling.profiler import Profile, profile
from minigrad.random import get_rng_state, set_rng_state

__all__ = ["Row", "Summary", "summarize"]

WIDTH = 100  # columns of the table: strings are truncated to fit, numerals never
_HEADS = ("layer", "kind", "output", "parameters", "multiply-adds", "memory")
_TEXTS = 3  # the first columns, which hold strings
_LEAST = 12  # characters that truncation preserves


@dataclass
class Row:
    """The row of one module. Its counts include the module's descendants.

    `output` has the output shapes of the last call; `calls` counts the calls, 0 for a pure container. `parameters`
    excludes those counted in earlier rows: `shared` maps the names of these to the names under which they are counted.
    `memory` is the size in bytes of all tensors that the module allocated.
    """

    name: str
    kind: str
    output: str = ""
    parameters: int = 0
    multiply_adds: int = 0
    memory: int = 0
    calls: int = 0
    shared: dict[str, str] = field(default_factory=dict)
    same: str = ""
    """The name of the earlier row of the same module, if any."""
    rows: list[Row] = field(default_factory=list)

    def looks(self) -> tuple[Any, ...]:
        """Return a key that is equal for rows shown as one."""
        numbers = (self.kind, self.output, self.parameters, self.multiply_adds, self.memory, self.calls)
        return (*numbers, bool(self.shared), self.same, *[(row.name, row.looks()) for row in self.rows])


@dataclass(repr=False)
class Summary:
    """The table of a model; `rows` holds its tree. When printed, consecutive identical modules share one line."""

    rows: list[Row]
    trained: int
    state: int
    """Bytes of parameters and buffers."""
    inputs: str

    @property
    def total(self) -> Row:
        """The row of the model."""
        return self.rows[0]

    def __str__(self) -> str:
        lines = [_HEADS, *_lines(self.total, 0)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADS))]
        while sum(widths) + 2 * len(widths) - 2 > WIDTH and (widest := max(widths[:_TEXTS])) > _LEAST:
            widths[widths.index(widest)] -= 1
        rule = "─" * (sum(widths) + 2 * len(widths) - 2)
        table = ["  ".join(_cell(line[k], width, k) for k, width in enumerate(widths)).rstrip() for line in lines]
        return printable("\n".join([table[0], rule, *table[1:], rule, *self._said()]))

    __repr__ = __str__

    def _said(self) -> Iterator[str]:
        """Iterate over the lines below the table."""
        total = self.total
        frozen = total.parameters - self.trained
        yield f"{total.parameters:,} parameters{f', {frozen:,} frozen' if frozen else ''}; {size_text(self.state)}"
        work = f"{total.multiply_adds:,} multiply-adds of matrices and convolutions"
        yield f"{work}; {size_text(total.memory)} of results, for {self.inputs}"
        for name, first in _shared(total):
            yield f"* {name} is {first}: counted once"


def _shared(row: Row) -> Iterator[tuple[str, str]]:
    yield from row.shared.items()
    for inner in row.rows:
        yield from _shared(inner)


def _cell(text: str, width: int, column: int) -> str:
    """Format a cell: strings left-aligned and truncated, numerals right-aligned."""
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.ljust(width) if column < _TEXTS else text.rjust(width)


def _lines(row: Row, depth: int, times: int = 1, last: str = "") -> Iterator[tuple[str, ...]]:
    """Iterate over the lines of a row, or of identical ones up to the name `last`, and of its descendants."""
    name = f"{row.name}-{last}" if times > 1 else row.name
    kind = f"{row.kind} × {times}" if times > 1 else row.kind
    mark = "*" if row.shared or row.same else ""
    output = f"{row.output} ({row.calls} calls)" if row.calls > 1 else row.output
    parameters = f"{mark}{row.parameters:,}" if row.parameters or mark else ""
    work = f"{row.multiply_adds:,}" if row.multiply_adds else ""
    memory = size_text(row.memory) if row.memory else ""
    yield "  " * depth + name, kind, output or "–", parameters, work, memory
    for first, end, count in _runs(row.rows):
        yield from _lines(first, depth + 1, count, end.name)


def _runs(rows: list[Row]) -> Iterator[tuple[Row, Row, int]]:
    """Group consecutive identical containers: iterate over (first, last, count)."""
    start = 0
    while start < len(rows):
        end = start + 1
        if rows[start].rows and rows[start].name.isdigit():
            while end < len(rows) and rows[end].name.isdigit() and rows[end].looks() == rows[start].looks():
                end += 1
        yield rows[start], rows[end - 1], end - start
        start = end


# --- measurement ---


def summarize(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Summary:
    """Run the model in evaluation mode without gradients, and return its table. Preserves all state."""
    if not args and not kwargs:
        raise ArgumentError(
            f"summary: expected an input, to call {type(model).__name__} once.\n"
            "  Write model.summary(mg.zeros(1, 3, 32, 32)), for example."
        )
    modes, random = [(module, module.training) for module in model.modules()], get_rng_state()
    meter = _Meter()
    handles = [handle for module, _ in modes for handle in meter.follow(module)]
    try:
        model.eval()
        with no_grad(), profile() as meter.ran, tap(meter.hear):
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
        set_rng_state(random)
    known = list({id(x): x for x in (*model.parameters(), *model.buffers())}.values())
    inputs = _shapes([*args, *kwargs.values()])
    return Summary(
        [_row(model, model._get_name(), "", meter, {}, {})],
        sum(x.numel() for x in model.parameters() if x.requires_grad),
        sum(x.numel() * x.element_size() for x in known),
        f"an input of {inputs}" if inputs else "this input",
    )


class _Meter:
    """The outputs and costs of each module during a forward pass, by id of the module."""

    def __init__(self) -> None:
        self.ran = Profile()
        self.work = 0  # multiply-adds so far
        self.output: dict[int, str] = {}
        self.calls: dict[int, int] = {}
        self.cost: dict[int, tuple[int, int]] = {}
        self._begun: list[tuple[int, int]] = []

    def follow(self, module: Any) -> Iterator[Any]:
        """Register hooks that record each call of a module, and iterate over their handles."""
        yield module.register_forward_pre_hook(lambda *_: self._begun.append((self.work, len(self.ran.events))))
        yield module.register_forward_hook(lambda _, args, output: self._end(id(module), output))

    def _end(self, module: int, output: Any) -> None:
        work, first = self._begun.pop()
        made = sum(
            event.written
            for event in self.ran.events[first:]
            if event.new and not (event.op in _CHECKS and event.written <= 16)
        )
        before = self.cost.get(module, (0, 0))
        self.cost[module] = before[0] + self.work - work, before[1] + made
        self.output[module], self.calls[module] = _shapes(output), self.calls.get(module, 0) + 1

    def hear(self, call: Call) -> None:
        """Add the multiply-adds of a kernel."""
        if call.op in _WORK:
            self.work += _WORK[call.op](call)


def _contracted(call: Call) -> int:
    sizes: dict[str, int] = {}
    for letters, x in zip((call.attrs["left"], call.attrs["right"]), call.inputs, strict=True):
        sizes.update(zip(letters, x.shape, strict=True))
    return math.prod(sizes.values())


def _attended(call: Call) -> int:
    weights: int = math.prod(call.result[1].shape)
    return weights * (int(call.inputs[0].shape[-1]) + int(call.inputs[2].shape[-1]))


_WORK: dict[str, Callable[[Call], int]] = {
    "matmul": lambda call: math.prod(call.result.shape) * int(call.inputs[0].shape[-1]),
    "linear": lambda call: math.prod(call.result.shape) * int(call.inputs[0].shape[-1]),
    "contract": _contracted,
    "conv2d": lambda call: math.prod(call.result.shape) * math.prod(call.inputs[1].shape[1:]),
    "conv2d_input": lambda call: math.prod(call.inputs[0].shape) * math.prod(call.inputs[1].shape[1:]),
    "scaled_dot_product_attention": _attended,
}
"""The number of multiply-adds of each compute-bound kernel. A transposed convolution runs as `conv2d_input`."""

_CHECKS = {"amax", "amin", "last"}  # bounds checks of indices: not outputs of the model


def _row(module: Any, name: str, path: str, meter: _Meter, counted: dict[int, str], seen: dict[int, str]) -> Row:
    """Build the row of a module and its descendants. `counted` and `seen` are the earlier parameters and modules."""
    row = Row(
        name, module._get_name() if path else "", meter.output.get(id(module), ""), calls=meter.calls.get(id(module), 0)
    )
    if id(module) in seen:
        row.same = seen[id(module)]
        row.shared[path] = row.same
        return row
    seen[id(module)] = path or name
    for label, parameter in module._parameters.items():
        if parameter is not None:
            where = f"{path}.{label}" if path else label
            if id(parameter) in counted:
                row.shared[where] = counted[id(parameter)]
            else:
                counted[id(parameter)] = where
                row.parameters += parameter.numel()
    for label, inner in module._modules.items():
        if inner is not None:
            row.rows.append(_row(inner, label, f"{path}.{label}" if path else label, meter, counted, seen))
    row.parameters += sum(inner.parameters for inner in row.rows)
    inside = sum(inner.multiply_adds for inner in row.rows), sum(inner.memory for inner in row.rows)
    row.multiply_adds, row.memory = meter.cost.get(id(module), inside)
    return row


def _shapes(x: Any) -> str:
    """Format the shapes of the tensors in an input or output."""
    if isinstance(x, Tensor):
        return str(x.shape)
    if isinstance(x, dict):
        x = list(x.values())
    return ", ".join(filter(None, map(_shapes, x))) if isinstance(x, list | tuple) else ""
