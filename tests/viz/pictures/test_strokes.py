"""Strokes: an edge encodes the gradient that flowed back over it, as in the player."""

import json

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.pictures.strokes import Stroke, Strokes
from needs import needs
from playback import Playback, scalar_graph, tensor_graph
from player import run_job


def strokes_of(trace):
    """Return the width, opacity and sign of each edge, as in the player; "" if no gradient flowed back."""
    strokes = Strokes(trace.passes[0] if trace.passes else None)
    strokes_by_edge = [strokes.of([edge]) for edge in range(len(trace.operand))]
    signs = {"wild": "bad"}
    return ["" if one is None else [one.width, one.opacity, signs.get(one.sign, one.sign)] for one in strokes_by_edge]


def non_finite_trace():
    a, b = mg.Value(0.0, "a"), mg.Value(float("inf"), "b")
    return to_trace(a * b + a * 0.0)


def test_player_draws_the_same_strokes():
    needs("numpy")
    traces = [Playback(scalar_graph(seed)[0]).trace for seed in range(6)]
    traces += [Playback(tensor_graph(seed)).trace for seed in range(6)] + [non_finite_trace()]
    drawn = run_job(strokes=[json.loads(trace.json()) for trace in traces])["strokes"]
    for trace, edges in zip(traces, drawn, strict=True):
        for actual, expected in zip(edges, strokes_of(trace), strict=True):
            assert actual[2:] == expected[2:]
            assert list(actual[:2]) == pytest.approx(list(expected[:2]), rel=1e-5)  # a trace has six significant digits
    signs = {edge[2] for edges in drawn for edge in edges if edge}
    assert signs == {"positive", "negative", "mixed", "zero", "bad"}


def test_width_and_opacity_grow_with_the_share():
    assert [Stroke(share, "positive").width for share in (0.0, 0.5, 1.0)] == [1.0, 3.0, 5.0]
    assert Stroke(0.5, "negative").attributes() == ' style="stroke-width:3;opacity:0.775"'
