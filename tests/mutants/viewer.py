"""Mutants of the viewer: traces, pictures, the widget, the player in JavaScript, and the book's extensions."""

from mutants._mutant import Mutant

__all__ = ["MUTANTS"]

MUTANTS = (
    Mutant(
        "no alarm reports saturated activations",
        "viz/minigrad_viz/trace/alarms.py",
        "_faded_gradients, _dead_relus, _saturated_nodes, _stale_gradients)",
        "_faded_gradients, _dead_relus, _stale_gradients)",
        ("viz/trace/test_alarms.py",),
    ),
    Mutant(
        "a heatmap swaps the colours of above and below zero",
        "viz/minigrad_viz/pictures/heat.py",
        'key = "plus" if shade > 0 else "minus", abs(shade)',
        'key = "minus" if shade > 0 else "plus", abs(shade)',
        ("viz/pictures/test_heat.py", "viz/pictures/test_drawing_tensors.py"),
    ),
    Mutant(
        "the layout does not swap crossing neighbours",
        "viz/minigrad_viz/layout/order.py",
        "column[at], column[at + 1] = lower, upper",
        "column[at], column[at + 1] = upper, lower",
        ("viz/layout/test_layout.py", "viz/layout/test_layout_parity.py"),
    ),
    Mutant(
        "a player accepts values for leaves that do not exist",
        "viz/minigrad_viz/widget/widget.py",
        "if name not in scalar_leaves and _find_element(self.trace, name) is None:",
        "if name not in scalar_leaves and not scalar_leaves:",
        ("viz/widget/test_widget.py",),
    ),
    Mutant(
        "watch shows the squared size of an update",
        "viz/minigrad_viz/widget/watcher.py",
        'layer.update_ratio = sums[k, "update"] ** 0.5 / weight',
        'layer.update_ratio = sums[k, "update_ratio"] / weight',
        ("viz/widget/test_watcher.py",),
    ),
    Mutant(
        "a step of a pass has the derivative of the edge before",
        "viz/minigrad_viz/trace/columns.py",
        "self.trace.local[edge], self.contribution[at]",
        "self.trace.local[edge - 1], self.contribution[at]",
        ("viz/trace/test_trace.py", "viz/trace/test_trace_passes.py"),
    ),
    Mutant(
        "the key B does nothing",
        "viz/frontend/src/panels/keyboard.js",
        "{ b: toggleNodeBreakpoint }",
        "{}",
        ("viz/browser/test_keyboard.py",),
    ),
    Mutant(
        "a selected alarm highlights nothing",
        "viz/frontend/src/panels/alarmlist.js",
        "      highlight(note.nodes);\n",
        "      highlight([]);\n",
        ("viz/browser/test_player.py",),
    ),
    Mutant(
        "a step back by an operation stops one edge early",
        "viz/frontend/src/model/history.js",
        "p > forward + 1 && resultAt(to) === resultAt(p)",
        "p > forward + 2 && resultAt(to) === resultAt(p) && to > forward + 2",
        ("viz/frontend/test_modules.py",),
    ),
    Mutant(
        "the player's heatmap swaps the colours of above and below zero",
        "viz/frontend/src/drawing/heatcolour.js",
        "const end = t < 0 ? minus : plus;",
        "const end = t < 0 ? plus : minus;",
        ("viz/frontend/test_modules.py",),
    ),
    Mutant(
        "a prediction with two correct digits counts as correct",
        "viz/frontend/src/model/predict.js",
        "10 ** (floor(log10(abs(number))) - 2)",
        "10 ** (floor(log10(abs(number))) - 1)",
        ("viz/frontend/test_modules.py",),
    ),
    Mutant(
        "the first row of a sweep's table is not a header",
        "viz/minigrad_viz/static/sweep.js",
        'k ? "td" : "th"',
        '"td"',
        ("viz/browser/test_sweep_views.py",),
    ),
    Mutant(
        "a failed claim is not set in bold",
        "book/_ext/measured.py",
        'if verdict_text == "NOT" else',
        'if verdict_text == "not" else',
        ("book/test_pages.py",),
    ),
)
