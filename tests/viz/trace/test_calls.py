"""Module calls without a recording become the same blocks as recorded calls."""

import gc
import weakref

import pytest

import minigrad as mg
from minigrad.core.snapshot import snapshot
from minigrad.nn.scalar import MLP, Layer, Module, Neuron
from minigrad_viz import to_trace
from minigrad_viz.trace.calls import scopes_by_node

nn, F = mg.nn, mg.functional


def tree(trace):
    """Return the title of each block and of its outer block."""
    pairs = []
    for k, block in enumerate(trace.blocks[1:], 1):
        about = trace.modules.get(k)
        title = block.name if about is None or not about.kind else f"{block.name} · {about.kind}"
        pairs.append((title, trace.blocks[block.outer].name if block.outer else ""))
    return pairs


def trace_both(build):
    """Return the traces of a graph built by `build` without recording, and while recording."""
    plain = to_trace(build(), namespaces=())
    with mg.record():
        recorded = build()
    return plain, to_trace(recorded, namespaces=())


def random_input(model, x):
    return lambda: model(x)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        return x + F.gelu(self.linear(self.norm(x)))


class Branches(nn.Module):
    """Takes two tensors and returns a dict; its submodules include a list."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x, *, other):
        a, b = self.parts[0](x), self.parts[1](other)
        return {"sum": a + b, "both": [a * b, (a - b,)]}


def sequential_case():
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Residual(), Residual(), nn.Linear(4, 2))
    return lambda: F.cross_entropy(model(mg.ones(3, 4)), mg.tensor([0, 1, 1]))


def transformer_case():
    mg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return lambda: layer(mg.ones(2, 3, 8)).sum()


def branches_case():
    model = Branches()

    def build():
        out = model(mg.ones(2, 3), other=mg.ones(2, 3))
        return out["sum"].sum() + out["both"][0].sum() + out["both"][1][0].sum()

    return build


CASES = {
    "perceptron": lambda: random_input(MLP([3, 4, 4, 1], seed=0), [0.5, -1.0, 2.0]),
    "large perceptron": lambda: random_input(MLP([4, 16, 16, 3], seed=0), [0.5, -1.0, 2.0, 0.1]),
    "layer": lambda: random_input(Layer(2, 3), [0.5, -1.0]),
    "neuron": lambda: lambda: Neuron(2)([0.5, -1.0]),
    "sequence": sequential_case,
    "transformer": transformer_case,
    "branches": branches_case,
}


@pytest.mark.parametrize("case", CASES)
def test_unrecorded_call_gives_the_same_block_as_a_recorded_one(case):
    plain, recorded = trace_both(CASES[case]())
    assert tree(plain) == tree(recorded)
    computed = [[at for at, op in enumerate(trace.op) if op >= 0] for trace in (plain, recorded)]
    assert [plain.scopes[plain.block[at]] for at in computed[0]] == [
        recorded.scopes[recorded.block[at]] for at in computed[1]
    ]
    assert len(plain.modules) > 0


def test_recurrent_layer_is_one_operation_that_recording_unrolls_in_the_same_block():
    mg.manual_seed(0)
    model = nn.LSTM(3, 4)
    plain, recorded = trace_both(lambda: model(mg.ones(5, 2, 3))[0].sum())
    assert tree(plain) == tree(recorded) == [("LSTM", "")]
    names = [[node.op.name for node in trace.nodes if node.op and node.scope == "LSTM"] for trace in (plain, recorded)]
    assert names[0][:2] == ["linear", "lstm_sequence"]
    assert [names[1].count(op) for op in ("lstm_sequence", "linear", "sigmoid", "tanh")] == [0, 6, 15, 10]


def test_model_called_twice_is_two_blocks():
    layer = Layer(2, 2)
    h = layer([1.0, 2.0])
    (y, _) = layer([h[0] * 2.0, h[1].exp()])
    trace = to_trace(y)
    assert [title for title, outer in tree(trace) if not outer] == ["layer₁ · Layer(2→2)", "layer₂ · Layer(2→2)"]
    unscoped = [node for node in trace.nodes if node.op and node.scope == ""]
    assert [node.op.name for node in unscoped] == ["mul", "exp"]
    assert trace.modules[1].shared == ("called 2 times",)


def test_same_list_passed_twice_makes_two_calls():
    neuron, x = Neuron(1), [2.0]
    trace = to_trace(neuron(x) + neuron(x))
    assert [block.name for block in trace.blocks[1:]] == ["neuron₁", "neuron₂"]


def test_values_computed_before_a_call_do_not_belong_to_it():
    class Shifted(Module):
        def __init__(self, by):
            self.layer, self._by = Layer(1, 1), by

        def forward(self, x):
            return self.layer(x)[0] + self._by

    by = mg.Value(3.0, "by").exp()
    model = Shifted(by)
    y = model([1.0])
    trace = to_trace(y)
    names = {node.op.name: node.scope for node in trace.nodes if node.op}
    assert names == {"exp": "", "mul": "model/layer/neurons[0]", "add": "model", "tanh": "model/layer/neurons[0]"}


def test_user_scope_is_nested_in_its_call():
    class Named(Module):
        def __init__(self):
            self.w = mg.Value(2.0)

        def forward(self, x):
            with mg.scope("inside"):
                y = self.w * x
            return y + 1.0

    model = Named()
    y = model(mg.Value(3.0, "x"))
    trace = to_trace(y)
    assert [(block.name, block.outer) for block in trace.blocks] == [("graph", -1), ("model", 0), ("inside", 1)]
    assert scopes_by_node(snapshot([y]))[y] == "Named"


def test_parameters_are_named_by_path_and_labels_are_preserved():
    model = MLP([1, 2, 1], seed=0)
    model.layers[0].neurons[1].b.label = "bias of mine"
    trace = to_trace(model([mg.Value(1.0, "x")]))
    leaves = {name for name, kind in zip(trace.names, trace.kinds, strict=True) if kind == "l"}
    assert {"layers[0].neurons[0].w[0]", "layers[1].neurons[0].w[1]", "bias of mine", "x"} < leaves
    at = trace.names.index("layers[0].neurons[0].w[0]")
    assert (trace.title(at), trace.title(at, in_block=True)) == ("…neurons[0].w[0]", "w[0]")
    assert trace.nodes[at].scope == "model/layers[0]/neurons[0]"
    assert trace.nodes[trace.names.index("x")].scope == "", "the inputs of a model are not part of it"


def test_parameters_of_two_models_are_prefixed_with_the_model():
    first, second = Neuron(1), Neuron(1)
    trace = to_trace(first([1.0]) * second([2.0]))
    leaves = [name for name, kind in zip(trace.names, trace.kinds, strict=True) if kind == "l"]
    assert sorted(leaves) == ["first.b", "first.w[0]", "second.b", "second.w[0]"]


def test_unrecorded_tensor_parameters_are_named_by_path():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    trace = to_trace(model(mg.ones(1, 2)).sum())
    leaves = {name for name, kind in zip(trace.names, trace.kinds, strict=True) if kind == "l"}
    assert leaves >= {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_noted_call_keeps_no_tensor_alive():
    first, second = nn.Linear(2, 2), nn.ReLU()
    h = first(mg.ones(1, 2))
    y = second(h)
    gone = weakref.ref(h)
    del h
    gc.collect()
    assert gone() is None
    assert [block.name for block in to_trace(y).blocks[1:]] == ["first", "second"]
