"""The wire format: columns, sparse columns, numbers, blocks."""

import json
import math

import pytest

import minigrad as mg
from minigrad_viz import to_json, to_trace


def test_json_has_nan_and_infinities_as_strings():
    text = to_json([mg.Value(math.nan), mg.Value(math.inf), mg.Value(-math.inf)])
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"a bare {name}"))
    assert data["nodes"]["value"] == ["NaN", "Infinity", "-Infinity"]


def test_json_rounds_to_six_digits_and_gives_zero_no_sign():
    data = json.loads(to_json([mg.Value(1 / 3), mg.Value(-0.0)]))
    assert data["nodes"]["value"] == [0.333333, 0.0]
    assert "-0" not in to_json(mg.Value(-0.0))


def test_full_json_has_all_digits():
    trace = to_trace(mg.Value(1 / 3))
    assert json.loads(trace.json(full=True))["nodes"]["value"] == [1 / 3]


def test_json_has_nodes_edges_and_passes_by_column():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = a * b + 1.0
    y.backward()
    data = to_trace(y, namespaces=()).data()
    assert data["version"] == 2
    assert data["sentence"] == "Graph of v₄ = −5.0: 2 leaves, 2 operations, 1 constant."
    assert data["outputs"] == [4]
    nodes, edges = data["nodes"], data["edges"]
    assert nodes["kind"] == "lloco"
    assert [op["name"] for op in data["ops"]] == ["mul", "add"]
    assert nodes["op"] == [-1, -1, 0, -1, 1]
    assert nodes["name"] == {"0": "a", "1": "b"}
    assert nodes["value"] == [2.0, -3.0, -6.0, 1.0, -5.0]
    assert nodes["state"] == "fffbf"
    assert nodes["grad"] == {"0": -3.0, "1": 2.0, "2": 1.0, "4": 1.0}
    assert edges["operand"] == [0, 1, 2, 3]
    assert edges["result"] == [2, 2, 4, 4]
    assert edges["slot"] == [0, 1, 0, 1]
    assert edges["flows"] == "1110"
    assert edges["local"] == [-3.0, 2.0, 1.0, None]
    assert data["passes"] == [
        {"root": 4, "edge": [2, 0, 1], "upstream": [1.0] * 3, "contribution": [1, -3, 2], "total": [1, -3, 2]}
    ]


def test_each_entry_of_a_scope_is_a_block_after_its_outer_one():
    x = mg.Value(1.0, "x")
    for _ in range(2):
        with mg.scope("layer"), mg.scope("<b>neuron</b>"):
            x = x * 2.0
        with mg.scope("layer"):
            x = x.tanh()
    data = to_trace(x, namespaces=()).data()
    assert [(block["name"], block["outer"], block["kind"]) for block in data["blocks"]] == [
        ("graph", -1, "graph"),
        ("layer₁", 0, "scope"),
        ("layer₂", 0, "scope"),
        ("layer₃", 0, "scope"),
        ("layer₄", 0, "scope"),
        ("<b>neuron</b>", 1, "scope"),
        ("<b>neuron</b>", 3, "scope"),
    ]
    assert data["nodes"]["block"] == [5, 5, 5, 2, 6, 6, 4], "x and the constants lie where they are used"


def test_attributes_of_an_op_are_told_by_name():
    data = to_trace(mg.OPS["clamp"](mg.Value(1.0, "x"), 0.0, 0.5)).data()
    assert data["nodes"]["attrs"] == {"1": {"min": "0.0", "max": "0.5"}}
