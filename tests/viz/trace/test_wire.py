"""The wire format: columns, sparse columns, numbers, blocks."""

import json
import math

import pytest

import minigrad as mg
from minigrad_viz import to_json, to_trace


def leaf(*values):
    return mg.tensor(list(values), requires_grad=True)


def test_json_has_nan_and_infinities_as_strings():
    text = to_json([mg.Value(math.nan), mg.Value(math.inf), mg.Value(-math.inf)])
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"a bare {name}"))
    assert data["nodes"]["value"] == ["NaN", "Infinity", "-Infinity"]


def test_json_rounds_to_six_digits_and_drops_the_sign_of_zero():
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


def test_each_scope_entry_is_a_block_after_its_outer_one():
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
    assert data["nodes"]["block"] == [5, 5, 5, 2, 6, 6, 4], "x and the constants are where they are used"


def test_attributes_of_an_op_are_given_by_name():
    data = to_trace(mg.OPS["clamp"](mg.Value(1.0, "x"), 0.0, 0.5)).data()
    assert data["nodes"]["attrs"] == {"1": {"min": "0.0", "max": "0.5"}}


def test_json_has_each_array_once():
    x = leaf(1.0, 2.0)
    with mg.record():
        y = (x + 1.0).sum()
    data = json.loads(to_trace(y, namespaces=()).json())
    tensors = {
        node: {key: of[key] for key in ("shape", "dtype", "value", "grad")}
        for node, of in data["nodes"]["tensor"].items()
    }
    assert tensors == {
        "0": {"shape": [2], "dtype": "float32", "value": 0, "grad": None},
        "2": {"shape": [2], "dtype": "float32", "value": 1, "grad": None},
        "3": {"shape": [], "dtype": "float32", "value": 2, "grad": None},
    }
    assert data["nodes"]["value"] == [None, 1.0, None, None]
    assert [array["cells"] for array in data["arrays"]] == [[1, 2], [2, 3], [5], [1], [1, 1]]
    assert data["passes"] == [
        {
            "root": 3,
            "edge": [2, 0],
            "upstream": [{"array": 3}, {"array": 4}],
            "contribution": [{"array": 4}, {"array": 4}],
            "total": [{"array": 4}, {"array": 4}],
        }
    ]
    assert data["formulas"][data["edges"]["formula"][0]]["text"].startswith("g")


def test_json_of_nan_infinities_and_empty_tensors_is_valid():
    x = leaf(float("nan"), float("inf"), -float("inf"), -0.0)
    empty = mg.zeros(0, 3, requires_grad=True)
    for y in (x * 1.0, empty.sum(), empty * 2.0):
        with mg.record():
            text = to_trace(y).json()
        json.loads(text, parse_constant=lambda name: pytest.fail(f"a bare {name}"))
    assert json.loads(to_trace(x).json())["arrays"][0]["cells"] == ["NaN", "Infinity", "-Infinity", 0.0]


def test_total_cells_of_large_arrays_are_bounded():
    layers = [mg.randn(100, 100, requires_grad=True) for _ in range(100)]
    y = sum(layers[1:], layers[0])
    data = to_trace(y.sum(), namespaces=()).data()
    assert sum(len(array["cells"]) for array in data["arrays"]) <= 300_000
    assert all(array["size"] in (1, 10_000) for array in data["arrays"])


def test_the_same_graph_gives_the_same_bytes():
    def build():
        mg.manual_seed(0)
        x, w = mg.randn(3, 4), mg.randn(4, 2, requires_grad=True)
        with mg.record(), mg.scope("layer"):
            y = (x @ w).tanh().mean()
            y.backward()
        return to_trace(y, namespaces=()).json()

    assert build() == build()
