"""The player's engine computes tensors like minigrad: random graphs, before and after elements change."""

import math
import random

import numpy as np
import pytest

import minigrad as mg
from minigrad import functional as F
from minigrad.ops.normalization import Norm
from minigrad_viz import to_trace
from minigrad_viz.trace.arrays import summary
from player import compare
from tiers import NIGHTLY

CLOSE = 1e-12
ONE = [
    lambda x: x.tanh(),
    lambda x: x.sigmoid() * 2.0,
    lambda x: (x * x + 0.5).log(),
    lambda x: F.gelu(x),
    lambda x: x.relu() - 0.1 * x,
    lambda x: x.exp().clamp(max=3.0),
    lambda x: F.softmax(x, -1),
    lambda x: F.log_softmax(x, 0),
    lambda x: x - x.mean(0, keepdim=True),
    lambda x: x / (1.0 + x.std(-1, keepdim=True)),
    lambda x: x * x.logsumexp(0),
    lambda x: x.amax(-1, keepdim=True) - x,
    lambda x: x.mT.reshape(-1).reshape(*x.shape),
    lambda x: x[1:2] + x,
    lambda x: x.sum(1).unsqueeze(1).expand(*x.shape) * 0.3,
    lambda x: x.diagonal().sum() * x,
]
TWO = [
    lambda x, y: x @ y.mT @ y * 0.3,
    lambda x, y: x + y[0],
    lambda x, y: x * y.sum(1, keepdim=True),
    lambda x, y: F.linear(x, y.mT @ y * 0.2, y[0]),
    lambda x, y: mg.where(mg.tensor([True, False, False, True]), x * y, x - y),
    lambda x, y: x / (y * y + 1.0),
]
LOSSES = [
    lambda x, targets: F.cross_entropy(x, targets),
    lambda x, targets: F.cross_entropy(x, targets, ignore_index=1, reduction="sum"),
    lambda x, targets: F.cross_entropy(x, targets, mg.tensor([1.0, 2.0, 0.5, 3.0], dtype=mg.float64)).log(),
    lambda x, targets: F.nll_loss(F.log_softmax(x, 1), targets),
    lambda x, targets: F.mse_loss(x, mg.ones(5, 4, dtype=mg.float64)),
    lambda x, targets: F.huber_loss(x, x * 0.5 + 1.0, delta=0.4),
    lambda x, targets: x.sum(),
    lambda x, targets: (x * x).mean(),
]


def graph(seed, leaves):
    """Return the root of a random computation on leaves with these elements."""
    generator = random.Random(seed)
    with mg.record():
        made = [mg.tensor(x, dtype=mg.float64, requires_grad=True) for x in leaves]
        for k, leaf in enumerate(made):
            leaf.label = f"x{k}"
        values = list(made)
        for _ in range(6):
            x = generator.choice(values)
            values.append(generator.choice(ONE)(x) if generator.random() < 0.6 else generator.choice(TWO)(x, values[0]))
        rest = values[-1] + values[1] * values[0].sum() + values[-2] * 0.1
        return generator.choice(LOSSES)(rest, mg.tensor([0, 3, 1, 2, 1]))


def arrays(trace, which):
    """Return the elements of each node's array, or of each event's array in the first pass."""
    if which == "value":
        return {node: trace["arrays"][t["value"]]["cells"] for node, t in trace["nodes"]["tensor"].items()}
    return [trace["arrays"][x["array"]]["cells"] for x in trace["passes"][0][which]]


def close(found, expected, what):
    found, expected = (np.array(x, dtype=float) for x in (found, expected))
    scale = max(1.0, np.abs(expected).max()) if expected.size else 1.0
    assert np.abs(found - expected).max(initial=0.0) <= CLOSE * scale, (what, found, expected)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="compiled"),
        pytest.param(["--disallow-code-generation-from-strings"], id="interpreted", marks=pytest.mark.nightly),
    ],
)
def test_random_graphs_have_python_s_numbers(options):
    jobs, expected = [], []
    for seed in range(10 if options else (50 if NIGHTLY else 20)):
        generator = np.random.default_rng(seed)
        here = [generator.normal(size=(5, 4)) for _ in range(2)]
        there = [x.copy() for x in here]
        elements = [(int(generator.integers(2)), int(generator.integers(20)), float(generator.normal())) for _ in "abc"]
        for leaf, cell, x in elements:
            there[leaf].reshape(-1)[cell] = x
        traces = [to_trace(graph(seed, leaves)).data(full=True) for leaves in (here, there)]
        names = {name: int(k) for k, name in traces[0]["nodes"]["name"].items()}
        count = len(traces[0]["nodes"]["kind"])
        changes = [(names[f"x{leaf}"] + count * (cell + 1), x) for leaf, cell, x in elements]
        tangents = [(changes[0][0], traces[0]["passes"][0]["root"])]
        jobs.append({"trace": traces[0], "runs": [[], changes], "tangents": tangents})
        expected.append(traces)
    for seed, (job, traces) in enumerate(zip(compare(*options, graphs=jobs)["graphs"], expected, strict=True)):
        assert set(job["why"]) == {None}, (seed, job["why"])
        for found, trace in zip(job["runs"], traces, strict=True):
            ops = [trace["ops"][op]["name"] if op >= 0 else "" for op in trace["nodes"]["op"]]
            values = arrays(trace, "value")
            for node, cells in enumerate(found["value"]):
                if str(node) in values:
                    close(cells, values[str(node)], (seed, ops[node]))
            for which in ("upstream", "contribution", "total"):
                for k, cells in enumerate(arrays(trace, which)):
                    over = trace["passes"][0]["edge"][k]
                    what = (seed, which, ops[trace["edges"]["result"][over]])
                    close(found["passes"][0][which][k], cells, what)
        (tangent,) = job["tangents"]
        assert math.isclose(tangent["slope"], tangent["measured"], rel_tol=1e-4, abs_tol=1e-6), (seed, tangent)


# --- decomposition of ops -------------------------------------------------------------------------------------------

NORM = {"norm": Norm((4, 3), (1,), (1,), 1e-5)}
GROUPS = {"norm": Norm((2, 2, 3), (1, 2), (0, 1), 1e-5)}
CLASSES, OVER = {"ignore_index": -100, "reduction": "mean"}, {"dim": (1,), "keepdim": False}
P, Q, V, C, T = (4, 3), (4, 3), (3,), ("int", 4, 3), ("chance", 4, 3)
CASES = {  # operand shapes and attributes
    "matmul": [((P, (3, 5)), {}), (((2, 4, 3), (2, 3, 2)), {}), ((P, (2, 3, 2)), {})],
    "linear": [((P, (5, 3), (5,)), {}), (((2, 4, 3), (5, 3), None), {})],
    "mean": [((P,), OVER), ((P,), {"dim": (0, 1), "keepdim": True})],
    "var": [((P,), {**OVER, "correction": 1})],
    "std": [((P,), {**OVER, "correction": 0})],
    "logsumexp": [((P,), OVER)],
    "softmax": [((P,), {"dim": 0})],
    "log_softmax": [((P,), {"dim": 1})],
    "softmax_backward": [((P, Q), {"dim": 1})],
    "log_softmax_backward": [((P, Q), {"dim": 1})],
    "cross_entropy": [((P, C, None), {**CLASSES, "reduction": how}) for how in ("mean", "sum", "none")]
    + [((P, C, V), {"ignore_index": 1, "reduction": "mean"}), (((4, 3, 2), ("int", 4, 2, 3), None), CLASSES)],
    "nll_loss": [((P, C, V), CLASSES), ((P, C, None), {**CLASSES, "ignore_index": 2})],
    "cross_entropy_backward": [(((), P, C, (4,), (4, 1), (4, 1)), {})],
    "soft_cross_entropy": [((P, T), {})],
    "layer_norm": [((P, V, V), NORM), ((P, None, None), NORM)],
    "group_norm": [((P, (4,), (4,)), GROUPS)],
    "rms_norm": [((P, V), {"norm": Norm((4, 3), (1,), (1,), 1e-5, centred=False)})],
    "norm_backward": [((P, Q, V, (4, 1), (4, 1)), NORM)],
    "norm_weight": [((P, Q, (4, 1), (4, 1)), {"to": (3,), **NORM})],
    "mse_loss": [((P, Q), {})],
    "l1_loss": [((P, Q), {})],
    "huber_loss": [((P, Q), {"delta": 0.7})],
    "hinge_loss": [((P, Q), {})],
    "binary_cross_entropy": [((T, T), {})],
    "bce_with_logits": [((P, T, (3,)), {})],
}


def drawn(kind, generator):
    if kind is None:
        return None
    if kind[:1] == ("int",):
        return mg.tensor(generator.integers(kind[-1], size=kind[1:-1]))
    numbers = generator.uniform(0.1, 0.9, kind[1:]) if kind[:1] == ("chance",) else generator.normal(size=kind)
    return mg.tensor(numbers, dtype=mg.float64, requires_grad=True)


def kept(name, given):
    """Return the operands with saved intermediates that are consistent with them."""
    if name in ("norm_backward", "norm_weight"):
        a = given[1].detach()
        return (*given[:-2], a.mean(1, keepdim=True), (a.var(1, correction=0, keepdim=True) + 1e-5).rsqrt())
    if name != "cross_entropy_backward":
        return given
    top = given[1].detach().amax(1, keepdim=True)
    return (*given[:4], top, (given[1].detach() - top).exp().sum(1, keepdim=True))


def test_every_op_means_what_its_kernel_computes():
    assert CASES.keys() == {name for name, op in mg.OPS.items() if op.meaning is not None}
    jobs, expected = [], []
    for name, cases in CASES.items():
        for shapes, attrs in cases:
            generator = np.random.default_rng(len(jobs))
            given = kept(name, tuple(drawn(shape, generator) for shape in shapes))
            with mg.record():
                y = mg.OPS[name](*given, **attrs)
            trace = to_trace(y).data(full=True)
            leaf = trace["edges"]["operand"][0]
            first = trace["arrays"][trace["nodes"]["tensor"][str(leaf)]["value"]]["cells"][0]
            jobs.append({"trace": trace, "runs": [[(leaf + len(trace["nodes"]["kind"]), first)]]})
            expected.append((name, y.detach().numpy(), trace))
    for job, (name, y, trace) in zip(compare(graphs=jobs)["graphs"], expected, strict=True):
        assert set(job["why"]) == {None}, (name, job["why"])
        (run,) = job["runs"]
        close(run["value"][-1], summary(y)["cells"], name)  # all elements in order
        for which in ("contribution", "total"):
            for k, cells in enumerate(arrays(trace, which)):
                close(run["passes"][0][which][k], cells, (name, which, k))


def test_what_cannot_be_computed_again_says_why():
    x = mg.randn(4, 3, requires_grad=True, dtype=mg.float64)
    with mg.record():
        y = F.dropout(x, 0.5).sum() + x.cumsum(0).sum()
    trace = to_trace(y).data(full=True)
    (job,) = compare(graphs=[{"trace": trace, "runs": [[(len(trace["nodes"]["kind"]), 2.0)]]}])["graphs"]
    why = {text for text in job["why"] if text}
    assert "cumsum is not a scalar formula, and declares no meaning in terms of other ops." in why
    assert any(text.startswith("It depends on") for text in why)
    assert job["runs"][0]["value"][-1] is None
    assert job["runs"][0]["passes"][0]["upstream"][0] is None
