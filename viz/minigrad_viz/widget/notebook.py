"""The IPython extension. It draws a Value at the end of a cell, and ``%%trace`` plays the graph that a cell builds.

The extension registers formatters with IPython instead of modifying the classes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import minigrad as mg
from minigrad.core.graph import Node
from minigrad.core.snapshot import get_node, snapshot
from minigrad_viz.pictures.drawing import Drawing
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.failed_call import trace_failure, user_frames
from minigrad_viz.trace.recording import is_recorded, largest_result, record, recorded_failure
from minigrad_viz.widget.player import make_player

__all__ = ["load", "unload"]

_TENSOR = ("minigrad.core.tensor", "Tensor")
PREVIOUS_PRINTERS: dict[int, Any] = {}  # maps the id of a formatter to its previous printer for Values


def load(shell: Any) -> None:
    """Register the magic ``%%trace`` in `shell`, an IPython InteractiveShell, and a formatter that displays Values as
    `draw` does, with names from the variables of `shell`.
    """

    def format_node(x: Any) -> dict[str, str] | None:
        if isinstance(x, mg.Value) or _has_graph(x):
            return Drawing(to_trace(x, namespaces=(shell.user_ns,)))._repr_mimebundle_()
        return None  # tensors without a graph have their default repr

    def trace(line: str, cell: str) -> Any:
        __tracebackhide__ = True
        return _trace_magic(shell, line, cell)

    trace.__doc__ = _trace_magic.__doc__
    formatter = shell.display_formatter.mimebundle_formatter
    before = formatter.for_type(mg.Value, format_node)
    PREVIOUS_PRINTERS.setdefault(id(formatter), before)
    # The type is registered by name to avoid importing NumPy, which only tensors need.
    formatter.for_type_by_name(*_TENSOR, format_node)
    shell.register_magic_function(trace, "cell", "trace")


def unload(shell: Any) -> None:
    """Restore the display of Values from before `load`."""
    formatter = shell.display_formatter.mimebundle_formatter
    if id(formatter) in PREVIOUS_PRINTERS:
        before = PREVIOUS_PRINTERS.pop(id(formatter))
        formatter.pop(mg.Value, None)
        formatter.pop(".".join(_TENSOR), None)
        if before is not None:
            formatter.for_type(mg.Value, before)
        shell.magics_manager.magics["cell"].pop("trace", None)


def _trace_magic(shell: Any, line: str, cell: str) -> Any:
    """Run the cell, and play the graph that it builds. Each node shows the line of the cell that created it.

    ``%%trace`` shows the last expression if it has a graph, otherwise the results that the cell assigned to variables.
    ``%%trace loss`` shows `loss`, and ``%%trace y, z`` shows both in one graph. With ``--static``, a static picture is
    shown. If the cell raises an error, the graph built so far and the failed operation are shown.
    """
    from IPython.core.error import UsageError

    __tracebackhide__ = True  # IPython shows the user's own frames
    arguments = line.split()
    options = [word for word in arguments if word.startswith("-")]
    if set(options) - {"--static"}:
        raise UsageError(f"%%trace: unrecognized option {' '.join(options)}. It takes names to show, and --static.")
    expression = " ".join(word for word in arguments if word not in options)
    namespace = shell.user_ns
    before = dict(namespace)
    try:
        with record():
            last = _run_cell(shell, cell)
    except BaseException as error:
        inside = [frame.f_locals for frame, _ in user_frames(error, namespace) if frame.f_locals is not namespace]
        failure_trace = recorded_failure(error, (namespace, *inside))
        if failure_trace is None:
            failure_trace = trace_failure(error, (namespace, *inside), _new_results(before, namespace, *inside))
        if failure_trace is not None:
            _show(failure_trace, "--static" in options)
        raise
    with record():
        roots = eval(expression, namespace) if expression else None
    if roots is None and _has_graph(last):
        roots = last
    elif last is not None:
        shell.displayhook(last)
    if roots is None:
        roots = _new_results(before, namespace)
    if not roots:
        raise UsageError("%%trace: no result of this cell has a graph. Name what to show, as in %%trace loss.")
    _show(to_trace(roots, namespaces=(namespace,)), "--static" in options)


def _run_cell(shell: Any, cell: str) -> Any:
    """Run a cell as IPython does, so that tracebacks show its lines, and return the value of its last expression."""
    from IPython.core.error import UsageError

    __tracebackhide__ = True
    # The blank line represents the line of the magic, so that line numbers match the cell.
    code = "\n" + shell.transform_cell(cell)
    name = shell.compile.cache(code, shell.execution_count, raw_code=cell)
    tree = ast.parse(code, name)
    if _uses_await(tree):
        raise UsageError(
            "%%trace: a cell that uses await cannot be traced. Await in an earlier cell, and trace the code after it."
        )
    is_quiet = cell.rstrip().endswith(";")
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_ns)
    value = None if last is None else eval(compile(last, name, "eval"), shell.user_ns)
    return None if is_quiet and not _has_graph(value) else value


def _uses_await(tree: ast.AST) -> bool:
    """Whether `tree` has an await, async for or async with outside of the functions it defines."""
    if isinstance(tree, ast.Await | ast.AsyncFor | ast.AsyncWith) or bool(getattr(tree, "is_async", 0)):
        return True
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    return any(_uses_await(inner) for inner in ast.iter_child_nodes(tree) if not isinstance(inner, functions))


def _show(trace: Trace, static: bool) -> None:
    from IPython import display

    display_function: Any = display.display
    if static:
        display_function(Drawing(trace))
    else:
        operation_count = sum(node.op is not None for node in trace.nodes)  # last position of the forward pass
        display_function(make_player(trace, position=operation_count))


def _has_graph(x: Any) -> bool:
    """Whether `x`, or each item of a list, was computed by recorded operations."""
    if isinstance(x, list | tuple):
        return bool(x) and all(map(_has_graph, x))
    if is_recorded(x):
        return True
    creator = x.op if isinstance(x, mg.Value) else getattr(x, "grad_fn", None) if isinstance(x, Node) else None
    return creator is not None


def _new_results(before: dict[str, Any], *namespaces: Mapping[str, Any]) -> list[Any]:
    """Return the results that a cell assigned to variables, except those that other results use."""
    named = [item for space in namespaces for item in list(space.items())]
    new = [x for name, x in named if not name.startswith("_") and x is not before.get(name)]
    results = [x for x in new if not isinstance(x, list | tuple) and _has_graph(x)]
    results = list({id(x): x for x in results}.values())
    recorded = [x for x in results if is_recorded(x)]
    if recorded:
        return [x for x in recorded if largest_result(x, recorded) is None]
    used = {id(operand) for row in snapshot(results) for operand in row.operands}
    return [x for x in results if id(get_node(x)) not in used]
