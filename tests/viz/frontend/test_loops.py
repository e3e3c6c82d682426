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
from player import run_job
from tiers import NIGHTLY

CLOSE = 1e-12
UNARY = [
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
BINARY = [
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
        leaf_tensors = [mg.tensor(x, dtype=mg.float64, requires_grad=True) for x in leaves]
        for k, leaf in enumerate(leaf_tensors):
            leaf.label = f"x{k}"
        values = list(leaf_tensors)
        for _ in range(6):
            x = generator.choice(values)
            values.append(
                generator.choice(UNARY)(x) if generator.random() < 0.6 else generator.choice(BINARY)(x, values[0])
            )
        rest = values[-1] + values[1] * values[0].sum() + values[-2] * 0.1
        return generator.choice(LOSSES)(rest, mg.tensor([0, 3, 1, 2, 1]))


def arrays(trace, key):
    """Return the elements of each node's array, or of each event's array in the first pass."""
    if key == "value":
        return {node: trace["arrays"][t["value"]]["cells"] for node, t in trace["nodes"]["tensor"].items()}
    return [trace["arrays"][x["array"]]["cells"] for x in trace["passes"][0][key]]


def assert_close(actual, expected, case):
    actual, expected = (np.array(x, dtype=float) for x in (actual, expected))
    scale = max(1.0, np.abs(expected).max()) if expected.size else 1.0
    assert np.abs(actual - expected).max(initial=0.0) <= CLOSE * scale, (case, actual, expected)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="compiled"),
        pytest.param(["--disallow-code-generation-from-strings"], id="interpreted", marks=pytest.mark.nightly),
    ],
)
def test_random_graphs_have_python_s_elements(options):
    jobs, expected = [], []
    for seed in range(10 if options else (50 if NIGHTLY else 20)):
        generator = np.random.default_rng(seed)
        inputs = [generator.normal(size=(5, 4)) for _ in range(2)]
        changed_inputs = [x.copy() for x in inputs]
        elements = [(int(generator.integers(2)), int(generator.integers(20)), float(generator.normal())) for _ in "abc"]
        for leaf, cell, x in elements:
            changed_inputs[leaf].reshape(-1)[cell] = x
        traces = [to_trace(graph(seed, leaves)).data(full=True) for leaves in (inputs, changed_inputs)]
        names = {name: int(k) for k, name in traces[0]["nodes"]["name"].items()}
        count = len(traces[0]["nodes"]["kind"])
        changes = [(names[f"x{leaf}"] + count * (cell + 1), x) for leaf, cell, x in elements]
        tangents = [(changes[0][0], traces[0]["passes"][0]["root"])]
        jobs.append({"trace": traces[0], "runs": [[], changes], "tangents": tangents})
        expected.append(traces)
    for seed, (job, traces) in enumerate(zip(run_job(*options, graphs=jobs)["graphs"], expected, strict=True)):
        assert set(job["why"]) == {None}, (seed, job["why"])
        for result, trace in zip(job["runs"], traces, strict=True):
            ops = [trace["ops"][op]["name"] if op >= 0 else "" for op in trace["nodes"]["op"]]
            values = arrays(trace, "value")
            for node, cells in enumerate(result["value"]):
                if str(node) in values:
                    assert_close(cells, values[str(node)], (seed, ops[node]))
            for key in ("upstream", "contribution", "total"):
                for k, cells in enumerate(arrays(trace, key)):
                    over = trace["passes"][0]["edge"][k]
                    case = (seed, key, ops[trace["edges"]["result"][over]])
                    assert_close(result["passes"][0][key][k], cells, case)
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
    "cross_entropy": [((P, C, None), {**CLASSES, "reduction": reduction}) for reduction in ("mean", "sum", "none")]
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


def random_operand(kind, generator):
    if kind is None:
        return None
    if kind[:1] == ("int",):
        return mg.tensor(generator.integers(kind[-1], size=kind[1:-1]))
    elements = generator.uniform(0.1, 0.9, kind[1:]) if kind[:1] == ("chance",) else generator.normal(size=kind)
    return mg.tensor(elements, dtype=mg.float64, requires_grad=True)


def consistent_operands(name, operands):
    """Return the operands with saved intermediates that are consistent with them."""
    if name in ("norm_backward", "norm_weight"):
        a = operands[1].detach()
        return (*operands[:-2], a.mean(1, keepdim=True), (a.var(1, correction=0, keepdim=True) + 1e-5).rsqrt())
    if name != "cross_entropy_backward":
        return operands
    top = operands[1].detach().amax(1, keepdim=True)
    return (*operands[:4], top, (operands[1].detach() - top).exp().sum(1, keepdim=True))


def test_every_decomposition_agrees_with_its_kernel():
    assert CASES.keys() == {name for name, op in mg.OPS.items() if op.meaning is not None}
    jobs, expected = [], []
    for name, cases in CASES.items():
        for shapes, attrs in cases:
            generator = np.random.default_rng(len(jobs))
            operands = consistent_operands(name, tuple(random_operand(shape, generator) for shape in shapes))
            with mg.record():
                y = mg.OPS[name](*operands, **attrs)
            trace = to_trace(y).data(full=True)
            leaf = trace["edges"]["operand"][0]
            first = trace["arrays"][trace["nodes"]["tensor"][str(leaf)]["value"]]["cells"][0]
            jobs.append({"trace": trace, "runs": [[(leaf + len(trace["nodes"]["kind"]), first)]]})
            expected.append((name, y.detach().numpy(), trace))
    for job, (name, y, trace) in zip(run_job(graphs=jobs)["graphs"], expected, strict=True):
        assert set(job["why"]) == {None}, (name, job["why"])
        (run,) = job["runs"]
        assert_close(run["value"][-1], summary(y)["cells"], name)  # all elements in order
        for key in ("contribution", "total"):
            for k, cells in enumerate(arrays(trace, key)):
                assert_close(run["passes"][0][key][k], cells, (name, key, k))


def test_uncomputable_operations_explain_why():
    x = mg.randn(4, 3, requires_grad=True, dtype=mg.float64)
    with mg.record():
        y = F.dropout(x, 0.5).sum() + x.cumsum(0).sum()
    trace = to_trace(y).data(full=True)
    (job,) = run_job(graphs=[{"trace": trace, "runs": [[(len(trace["nodes"]["kind"]), 2.0)]]}])["graphs"]
    why = {text for text in job["why"] if text}
    assert "cumsum is not a scalar formula, and declares no meaning in terms of other ops." in why
    assert any(text.startswith("It depends on") for text in why)
    assert job["runs"][0]["value"][-1] is None
    assert job["runs"][0]["passes"][0]["upstream"][0] is None
