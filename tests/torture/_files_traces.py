"""Corrupt traces, and the player's own reader of them in one Node.js process for many."""

from __future__ import annotations

import copy
import json
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from torture._file_corruption import corrupt, edge_integer, odd_string

__all__ = ["read_trace", "trace"]

READER = Path(__file__).with_name("_traces.mjs")
CODE = ["globalThis.ran = 1", "(a + (globalThis.ran = 1))", "constructor.constructor('globalThis.ran = 1')()", "a", "y"]
CODE += [
    "Math.constructor.constructor('globalThis.ran = 1')",
    "(" * 9000,
    "(" * 300 + "a" + ")" * 300,
    "import('fs')",
    "",
    "(a)",
]
CODE += [
    "o);globalThis.ran=1;(a",
    "i0",
    "m0[globalThis.ran = 1]",
    "Math.hypot",
    "toString()",
    "(a + b + c)",
    "`${ran = 1}`",
]


@cache
def _valid_traces() -> list[dict[str, Any]]:
    import minigrad as mg
    import sample_graphs
    from minigrad_viz import to_trace

    with mg.record():
        x, w = [mg.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True, device="numpy") for _ in range(2)]
        tensors = ((x @ w).tanh() * x).sum()
    graphs = [sample_graphs.expression(), sample_graphs.not_a_number(), tensors, sample_graphs.scalars()]
    return [json.loads(to_trace(one).json(full=True)) for one in graphs]


def trace(draw: random.Random) -> str:
    """Return a trace with some of its parts or characters changed."""
    data = copy.deepcopy(draw.choice(_valid_traces()))
    if draw.random() < 0.1:
        data["tours"] = [
            {"at": draw.choice([0, 1, edge_integer(draw)]), "text": "a", "select": draw.choice(["n1", "b0", "n99"])}
        ]
    if draw.random() < 0.8:
        for _ in range(draw.choice([1, 1, 2, 4])):
            programs = data.get("programs") if draw.random() < 0.2 else None
            _mutate(draw, programs if isinstance(programs, list) else data)
    source = json.dumps(data)
    if draw.random() < 0.35:
        return corrupt(draw, source.encode(), [source.encode()[: 10**6]], 2).decode("utf-8", "replace")
    return source


def _mutate(draw: random.Random, data: Any) -> None:
    """Change one part of the data; parts with many siblings change less often."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and draw.random() < 0.85:
            data = data[key]
            continue
        match draw.randrange(7):
            case 0:
                data.pop(key)
            case 1 if isinstance(data, list):
                data.insert(key, copy.deepcopy(draw.choice(data)))
            case 2 if isinstance(data[key], str):
                data[key] = draw.choice([draw.choice(CODE), data[key][:-1], data[key] + draw.choice("lnf01x\ud7ff")])
            case 3 if isinstance(data, dict):
                data[odd_string(draw)] = draw.choice(list(data.values()))
            case 4 if isinstance(data, list):
                other = draw.randrange(len(data))
                data[key], data[other] = data[other], data[key]
            case _:
                data[key] = _random_value(draw)
        return


def _random_value(draw: random.Random) -> Any:
    nested: Any = []
    if draw.random() < 0.1:
        for _ in range(draw.choice([5, 900])):
            nested = [nested] if draw.random() < 0.5 else {"a": nested}
    odd = [
        None,
        True,
        -1,
        0,
        1,
        1.5,
        1e300,
        edge_integer(draw),
        odd_string(draw),
        draw.choice(CODE),
        [],
        {},
        "NaN",
        "Infinity",
        nested,
    ]
    return draw.choice(
        [
            *odd,
            {"array": edge_integer(draw)},
            {"toString": 1, "valueOf": 1},
            [[]],
            [1],
            [edge_integer(draw)],
            "x" * 9000,
        ]
    )


@cache
def _reader() -> subprocess.Popen[str]:
    options = ["--max-old-space-size=512", "--no-warnings"]
    return subprocess.Popen(
        ["node", *options, str(READER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def read_trace(source: str) -> dict[str, Any]:
    """Return the outcome of a read; restart Node.js if it crashed."""
    process = _reader()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"text": source}) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        _reader.cache_clear()
        return {"wrong": f"node ended with {process.wait()}", "seconds": 0.0, "bytes": 0}
    return json.loads(line)
