"""The moments of a graph: the state at each equals the engine's and the player's."""

import numpy as np
import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.trace.captions import caption_of, edge_label, format_quantity
from minigrad_viz.trace.history import Timeline
from needs import needs
from playback import Playback, scalar_graph, tensor_graph
from player_expectations import PlayerExpectations
from tiers import choose_cases

SEEDS = list(range(40))
GRAPHS = {f"{kind} {seed}": (kind, seed) for kind in ("scalar", "tensor") for seed in choose_cases(SEEDS, kind, 8)}


def sample_graph(kind, seed):
    if kind == "scalar":
        return Playback(scalar_graph(seed)[0])
    needs("numpy")
    return Playback(tensor_graph(seed))


def is_equal(actual, expected):
    if actual is None or expected is None:
        return actual is expected
    return np.shape(actual) == np.shape(expected) and np.array_equal(actual, expected, equal_nan=True)


@pytest.mark.parametrize("graph", GRAPHS)
def test_values_at_every_position_equal_the_engines(graph):
    game = sample_graph(*GRAPHS[graph])
    expected, timeline = PlayerExpectations(game), Timeline(game.trace)
    assert (timeline.forward, timeline.last) == (len(game.order), game.last)
    for position in range(timeline.last + 1):
        now = timeline.at(position)
        assert (now.kind, now.node) == (expected.kind(position), expected.node(position))
        for node in range(len(game.trace.kinds)):
            assert is_equal(now.value(node), expected.value(node, position)), (position, node)
            state, met, of, value = expected.gradient(node, position)
            actual = now.gradient(node)
            assert actual.state == state, (position, node)
            assert state in ("none", "blocked") or (actual.met, actual.of) == (met, of), (position, node)
            assert is_equal(actual.value, value), (position, node)
        if now.kind == "edge":
            event = expected.event(position)
            for name in ("upstream", "contribution", "before", "total"):
                assert is_equal(getattr(now.event, name), getattr(event, name)), (position, name)
            assert (now.event.local, now.event.met, now.event.of) == (event.local, event.met, event.of)


@pytest.mark.parametrize("graph", GRAPHS)
def test_captions_equal_the_players(graph):
    game = sample_graph(*GRAPHS[graph])
    expected, timeline = PlayerExpectations(game), Timeline(game.trace)
    for position in range(1, timeline.last + 1):
        now = timeline.at(position)
        caption = caption_of(now)
        begins, ends = expected.formula(position)
        assert caption.chip == expected.chip(position)
        assert f"{caption.formula} {caption.result}".startswith(begins.strip()), position
        assert edge_label(now) == expected.product(position)
        if now.kind == "edge":
            assert ends.endswith(caption.result + caption.total) or caption.total.endswith(ends), position
            assert f" back to {expected.title[now.node]}" in caption.words
        elif now.kind == "forward":
            assert caption.result == format_quantity(expected.value(now.node, position))


def test_caption_of_a_sum_shows_contribution_and_total():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = a * b + a
    y.label = "y"
    timeline = Timeline(to_trace(y))
    assert [" ".join(caption_of(timeline.at(position))).rstrip() for position in range(timeline.last + 1)] == [
        "Start The leaves have values; nothing is computed yet.",
        "Forward 1 of 2 v₂ is computed: mul, a product. v₂ = a · b = 2 · (−3) = −6.0",
        "Forward 2 of 2 y is computed: add, a sum. The forward pass is complete. y = v₂ + a = −6 + 2 = −4.0",
        (
            "Backward The backward pass begins at y: a change in y changes y by the same amount. ∂y/∂y = 1.0 "
            "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"
        ),
        (
            "Backward 1 of 4 From y back to v₂: upstream × local. "
            "If v₂ increases slightly, y increases 1.0 times as much. ∂y/∂v₂ = 1.0 × 1.0 = 1.0"
        ),
        (
            "Backward 2 of 4 From y back to a: upstream × local, contribution 1 of 2. "
            "∂y/∂a += 1.0 × 1.0 = 1.0 a.grad: 0 + 1.0 → 1.0"
        ),
        (
            "Backward 3 of 4 From v₂ back to a: upstream × local, contribution 2 of 2. "
            "If a increases slightly, y decreases 2.0 times as much. "
            "∂y/∂a += ∂y/∂v₂ · ∂v₂/∂a = 1.0 × (−3.0) = −3.0 where ∂v₂/∂a = b = −3.0; a.grad: 1.0 + (−3.0) → −2.0"
        ),
        (
            "Backward 4 of 4 From v₂ back to b: upstream × local. "
            "If b increases slightly, y increases 2.0 times as much. The backward pass is complete. "
            "∂y/∂b = ∂y/∂v₂ · ∂v₂/∂b = 1.0 × 2.0 = 2.0 where ∂v₂/∂b = a = 2.0"
        ),
    ]


def test_caption_of_a_broadcast_tensor_names_the_summed_axis():
    needs("numpy")
    with mg.record():
        w = mg.ones(2, 3, requires_grad=True)
        b = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = (w + b).sum()
    timeline = Timeline(to_trace(y))
    moment = next(
        now
        for now in map(timeline.at, range(timeline.last + 1))
        if now.edge >= 0 and timeline.trace.title(now.node) == "b"
    )
    assert caption_of(moment)[1:] == (
        (
            "From v₂ back to b, g = ∂y/∂v₂, summed over axis 0, where broadcasting repeated b. "
            "The backward pass is complete."
        ),
        "∂y/∂b = g =",
        "(3,) from 2.0 to 2.0",
        "",
    )


def test_blocked_root_has_only_a_forward_pass():
    y = (mg.Value(2.0, "a") * 3.0).detach()
    z = y * 2.0
    timeline = Timeline(to_trace(z))
    assert (timeline.last, timeline.root, timeline.at(1).kind) == (1, -1, "forward")
    assert caption_of(timeline.at(1)).words == "z is computed: mul, a product."


def test_op_step_covers_all_edges_of_an_operation():
    a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    timeline = Timeline(to_trace((a * b).exp()))
    shown = [0]
    while shown[-1] < timeline.last:
        shown.append(timeline.next(shown[-1], "op"))
    assert shown == [0, 1, 2, 3, 4, 6]


def test_edge_state_changes_from_idle_to_active_to_done():
    a = mg.Value(3.0, "a")
    timeline = Timeline(to_trace(a * a))
    states = [[timeline.at(position).edge_state(edge) for edge in (0, 1)] for position in range(timeline.last + 1)]
    assert states == [
        ["idle", "idle"],
        ["active", "active"],
        ["idle", "idle"],
        ["active", "idle"],
        ["done", "active"],
    ]
