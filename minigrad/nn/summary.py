"""The table of `Module.summary`: output shapes and costs of each module, measured in one forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from minigrad.backends.limits import format_size
from minigrad.core.dispatch import Call, tap
from minigrad.core.errors import ArgumentError, printable
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.profiling.profiler import Profile, profile
from minigrad.random import get_rng_state, set_rng_state

__all__ = ["Summary", "SummaryRow", "summarize"]

MAX_WIDTH = 100  # maximum line length; strings are truncated to fit, numerals are not
_HEADER = ("layer", "kind", "output", "parameters", "multiply-adds", "memory")
_NUM_TEXT_COLUMNS = 3  # number of leading columns that contain strings
_MIN_TEXT_WIDTH = 12  # minimum width of a truncated column


@dataclass
class SummaryRow:
    """The row of one module. Its counts include the module's descendants.

    `output` contains the output shapes of the last call. `calls` is the number of calls, 0 for a pure container.
    `parameters` excludes parameters counted in earlier rows; `shared` maps their names to the names in those rows.
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
    alias_of: str = ""
    """Name of an earlier row for the same module, or empty."""
    rows: list[SummaryRow] = field(default_factory=list)

    def group_key(self) -> tuple[Any, ...]:
        """Return a key that is equal for rows that are displayed as a single line."""
        counts = (self.kind, self.output, self.parameters, self.multiply_adds, self.memory, self.calls)
        return (*counts, bool(self.shared), self.alias_of, *[(row.name, row.group_key()) for row in self.rows])


@dataclass(repr=False)
class Summary:
    """Table of the modules of a model. When printed, consecutive identical modules share one line."""

    rows: list[SummaryRow]
    trained: int
    state: int
    """Size of the parameters and buffers in bytes."""
    inputs: str

    @property
    def total(self) -> SummaryRow:
        """The row of the model."""
        return self.rows[0]

    def __str__(self) -> str:
        lines = [_HEADER, *_format_rows(self.total, 0)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADER))]
        while (
            sum(widths) + 2 * len(widths) - 2 > MAX_WIDTH
            and (widest := max(widths[:_NUM_TEXT_COLUMNS])) > _MIN_TEXT_WIDTH
        ):
            widths[widths.index(widest)] -= 1
        rule = "─" * (sum(widths) + 2 * len(widths) - 2)
        table = [
            "  ".join(_format_cell(line[k], width, k) for k, width in enumerate(widths)).rstrip() for line in lines
        ]
        return printable("\n".join([table[0], rule, *table[1:], rule, *self._footer_lines()]))

    __repr__ = __str__

    def _footer_lines(self) -> Iterator[str]:
        """Iterate over the lines below the table."""
        total = self.total
        frozen = total.parameters - self.trained
        yield f"{total.parameters:,} parameters{f', {frozen:,} frozen' if frozen else ''}; {format_size(self.state)}"
        multiply_adds = f"{total.multiply_adds:,} multiply-adds of matrices and convolutions"
        yield f"{multiply_adds}; {format_size(total.memory)} of results, for {self.inputs}"
        for name, counted_name in _iter_shared(total):
            yield f"* {name} is {counted_name}: counted once"


def _iter_shared(row: SummaryRow) -> Iterator[tuple[str, str]]:
    yield from row.shared.items()
    for child in row.rows:
        yield from _iter_shared(child)


def _format_cell(text: str, width: int, column: int) -> str:
    """Format a table cell. Strings are truncated and left-aligned, numerals are right-aligned."""
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.ljust(width) if column < _NUM_TEXT_COLUMNS else text.rjust(width)


def _format_rows(row: SummaryRow, depth: int, repeats: int = 1, last_name: str = "") -> Iterator[tuple[str, ...]]:
    """Iterate over the lines of a row and its descendants. The `repeats` rows up to `last_name` share one line."""
    name = f"{row.name}-{last_name}" if repeats > 1 else row.name
    kind = f"{row.kind} × {repeats}" if repeats > 1 else row.kind
    marker = "*" if row.shared or row.alias_of else ""
    output = f"{row.output} ({row.calls} calls)" if row.calls > 1 else row.output
    parameters = f"{marker}{row.parameters:,}" if row.parameters or marker else ""
    multiply_adds = f"{row.multiply_adds:,}" if row.multiply_adds else ""
    memory = format_size(row.memory) if row.memory else ""
    yield "  " * depth + name, kind, output or "–", parameters, multiply_adds, memory
    for first, end, count in _group_rows(row.rows):
        yield from _format_rows(first, depth + 1, count, end.name)


def _group_rows(rows: list[SummaryRow]) -> Iterator[tuple[SummaryRow, SummaryRow, int]]:
    """Group consecutive identical containers, and iterate over the (first, last, count) of each group."""
    start = 0
    while start < len(rows):
        end = start + 1
        if rows[start].rows and rows[start].name.isdigit():
            while end < len(rows) and rows[end].name.isdigit() and rows[end].group_key() == rows[start].group_key():
                end += 1
        yield rows[start], rows[end - 1], end - start
        start = end


# --- measurement ---


def summarize(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Summary:
    """Run the model in evaluation mode without gradients, and return its summary. All state is preserved."""
    if not args and not kwargs:
        raise ArgumentError(
            f"summary: expected an input, to call {type(model).__name__} once.\n"
            "  Write model.summary(mg.zeros(1, 3, 32, 32)), for example."
        )
    modes, random_state = [(module, module.training) for module in model.modules()], get_rng_state()
    meter = _ModuleMeter()
    handles = [handle for module, _ in modes for handle in meter.register_hooks(module)]
    try:
        model.eval()
        with no_grad(), profile() as meter.profile, tap(meter.count_multiply_adds):
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
        set_rng_state(random_state)
    tensors = list({id(x): x for x in (*model.parameters(), *model.buffers())}.values())
    inputs = _format_shapes([*args, *kwargs.values()])
    return Summary(
        [_build_row(model, model._get_name(), "", meter, {}, {})],
        sum(x.numel() for x in model.parameters() if x.requires_grad),
        sum(x.numel() * x.element_size() for x in tensors),
        f"an input of {inputs}" if inputs else "this input",
    )


class _ModuleMeter:
    """Records the outputs and costs of each module during a forward pass, in dicts keyed by module id."""

    def __init__(self) -> None:
        self.profile = Profile()
        self.multiply_adds = 0  # multiply-adds so far
        self.output: dict[int, str] = {}
        self.calls: dict[int, int] = {}
        self.cost: dict[int, tuple[int, int]] = {}
        self._open_calls: list[tuple[int, int]] = []

    def register_hooks(self, module: Any) -> Iterator[Any]:
        """Register hooks that record each call of a module, and iterate over their handles."""
        yield module.register_forward_pre_hook(
            lambda *_: self._open_calls.append((self.multiply_adds, len(self.profile.events)))
        )
        yield module.register_forward_hook(lambda _, args, output: self._end_call(id(module), output))

    def _end_call(self, module: int, output: Any) -> None:
        multiply_adds_before, first_event = self._open_calls.pop()
        allocated = sum(
            event.written
            for event in self.profile.events[first_event:]
            if event.new and not (event.op in _BOUNDS_CHECK_OPS and event.written <= 16)
        )
        previous_cost = self.cost.get(module, (0, 0))
        self.cost[module] = previous_cost[0] + self.multiply_adds - multiply_adds_before, previous_cost[1] + allocated
        self.output[module], self.calls[module] = _format_shapes(output), self.calls.get(module, 0) + 1

    def count_multiply_adds(self, call: Call) -> None:
        """Add the multiply-adds of a kernel call to the total."""
        if call.op in _MULTIPLY_ADDS:
            self.multiply_adds += _MULTIPLY_ADDS[call.op](call)


def _contract_multiply_adds(call: Call) -> int:
    sizes: dict[str, int] = {}
    for labels, x in zip((call.attrs["left"], call.attrs["right"]), call.inputs, strict=True):
        sizes.update(zip(labels, x.shape, strict=True))
    return math.prod(sizes.values())


def _attention_multiply_adds(call: Call) -> int:
    weights: int = math.prod(call.result[1].shape)
    return weights * (int(call.inputs[0].shape[-1]) + int(call.inputs[2].shape[-1]))


def _sequence_multiply_adds(call: Call) -> int:
    """Count the hidden products of all time steps; the inputs are (x, *states, weight, bias)."""
    count: int = math.prod(call.inputs[0].shape[:2]) * math.prod(call.inputs[-2].shape)
    return count


_MULTIPLY_ADDS: dict[str, Callable[[Call], int]] = {
    "matmul": lambda call: math.prod(call.result.shape) * int(call.inputs[0].shape[-1]),
    "linear": lambda call: math.prod(call.result.shape) * int(call.inputs[0].shape[-1]),
    "contract": _contract_multiply_adds,
    "conv2d": lambda call: math.prod(call.result.shape) * math.prod(call.inputs[1].shape[1:]),
    "conv2d_input": lambda call: math.prod(call.inputs[0].shape) * math.prod(call.inputs[1].shape[1:]),
    "scaled_dot_product_attention": _attention_multiply_adds,
    **dict.fromkeys(("lstm_sequence", "gru_sequence", "rnn_sequence"), _sequence_multiply_adds),
}
"""Maps compute-bound ops to functions that count multiply-adds. A transposed convolution is a `conv2d_input`."""

_BOUNDS_CHECK_OPS = {"amax", "amin", "last"}  # index bounds checks, which are not outputs of the model


def _build_row(
    module: Any, name: str, path: str, meter: _ModuleMeter, counted: dict[int, str], module_paths: dict[int, str]
) -> SummaryRow:
    """Build the row of a module and its descendants.

    `counted` and `module_paths` map the ids of the parameters and modules of earlier rows to their paths.
    """
    row = SummaryRow(
        name, module._get_name() if path else "", meter.output.get(id(module), ""), calls=meter.calls.get(id(module), 0)
    )
    if id(module) in module_paths:
        row.alias_of = module_paths[id(module)]
        row.shared[path] = row.alias_of
        return row
    module_paths[id(module)] = path or name
    for label, parameter in module._parameters.items():
        if parameter is not None:
            parameter_path = f"{path}.{label}" if path else label
            if id(parameter) in counted:
                row.shared[parameter_path] = counted[id(parameter)]
            else:
                counted[id(parameter)] = parameter_path
                row.parameters += parameter.numel()
    for label, child in module._modules.items():
        if child is not None:
            row.rows.append(
                _build_row(child, label, f"{path}.{label}" if path else label, meter, counted, module_paths)
            )
    row.parameters += sum(inner.parameters for inner in row.rows)
    children_costs = sum(inner.multiply_adds for inner in row.rows), sum(inner.memory for inner in row.rows)
    row.multiply_adds, row.memory = meter.cost.get(id(module), children_costs)
    return row


def _format_shapes(x: Any) -> str:
    """Format the shapes of the tensors in an input or output."""
    if isinstance(x, Tensor):
        return str(x.shape)
    if isinstance(x, dict):
        x = list(x.values())
    return ", ".join(filter(None, map(_format_shapes, x))) if isinstance(x, list | tuple) else ""
