"""Networks of single Values."""

import math

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.nn.scalar import MLP, Layer, Module, Neuron, cross_entropy


def test_a_neuron_is_its_formula():
    neuron = Neuron(2, "tanh", label="n")
    for parameter, value in zip(neuron.parameters(), (0.5, -2.0, 0.25), strict=True):
        parameter.data = value
    assert neuron([3.0, 1.0]).data == math.tanh(0.25 + 0.5 * 3.0 - 2.0 * 1.0)
    assert [p.label for p in neuron.parameters()] == ["n.w[0]", "n.w[1]", "n.b"]


@pytest.mark.parametrize("activation", ["linear", "relu", "sigmoid", "tanh"])
def test_each_activation_is_applied(activation):
    neuron = Neuron(1, activation)
    z = neuron.b + neuron.w[0] * 2.0
    assert neuron([2.0]).data == (z.data if activation == "linear" else getattr(z, activation)().data)


def test_an_mlp_has_its_parameters_in_order_and_a_linear_last_layer():
    model = MLP([3, 4, 2], "relu", seed=0)
    assert len(model.parameters()) == 3 * 4 + 4 + 4 * 2 + 2
    first = [*(f"layers[0].neurons[0].w[{i}]" for i in range(3)), "layers[0].neurons[0].b"]
    assert [p.label for p in model.parameters()][:4] == first
    assert [name for name, _ in model.named_parameters()] == [p.label for p in model.parameters()]
    assert [name for name, _ in model.named_modules()][:3] == ["", "layers[0]", "layers[0].neurons[0]"]
    assert [layer.neurons[0].activation for layer in model.layers] == ["relu", "linear"]
    assert len(model([1.0, 2.0, 3.0])) == 2


def test_the_seed_reproduces_the_weights_within_the_bound():
    first, again, other = (MLP([4, 8, 3], seed=s) for s in (7, 7, 8))
    weights = [[p.data for p in model.parameters()] for model in (first, again, other)]
    assert weights[0] == weights[1] != weights[2]
    assert all(abs(w.data) <= 0.5 for neuron in first.layers[0].neurons for w in neuron.parameters())


def test_zero_grad_resets_the_gradients():
    model = MLP([1, 1], seed=0)
    model([2.0])[0].backward()
    assert [p.grad for p in model.parameters()] == [2.0, 1.0]
    model.zero_grad()
    assert [p.grad for p in model.parameters()] == [None, None]


def test_a_wrong_number_of_inputs_raises():
    with pytest.raises(ShapeError, match="Neuron: expected 2 inputs, but got 3"):
        Neuron(2)([1.0, 2.0, 3.0])


def test_reprs_show_sizes():
    model = MLP([4, 8, 3], seed=0)
    assert repr(model) == "MLP(4 -> 8 -> 3, 'tanh', 67 parameters)"
    assert repr(model.layers[0]) == "Layer(4 -> 8, 'tanh')"
    assert repr(model.layers[1].neurons[0]) == "Neuron(8, 'linear')"
    assert repr(Layer(1, 2)) == "Layer(1 -> 2, 'tanh')"


def test_an_unknown_activation_raises_at_construction():
    with pytest.raises(
        ArgumentError, match="Neuron: unknown activation 'step'; expected one of linear, relu, sigmoid, tanh"
    ):
        Neuron(2, "step")


def test_gradient_descent_fits_a_line():
    neuron = Neuron(1, "linear")
    for _ in range(200):
        loss = sum(((neuron([x]) - (2.0 * x - 1.0)) ** 2 for x in (-1.0, 0.0, 1.0)), Value(0.0))
        neuron.zero_grad()
        loss.backward()
        for p in neuron.parameters():
            p.data -= 0.1 * p.grad
    assert [p.data for p in neuron.parameters()] == pytest.approx([2.0, -1.0], abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Neuron(0), "Neuron: inputs must be > 0, but got 0"),
        (lambda: Layer(2, 0), "Layer: outputs must be > 0, but got 0"),
        (
            lambda: MLP([3]),
            r"MLP: expected the sizes of the input and of at least one layer, such as \[4, 8, 3\], but got \[3\]",
        ),
        (lambda: cross_entropy([Value(1.0)], -1), "target -1 is out of bounds for 1 scores"),
        (lambda: cross_entropy([], 0), "target 0 is out of bounds for 0 scores"),
    ],
    ids=["neuron", "layer", "mlp", "negative class", "no class"],
)
def test_invalid_sizes_raise(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


def test_cross_entropy_is_minus_the_log_of_the_softmax_also_where_exp_would_overflow():
    scores = [Value(1.0), Value(-2.0), Value(0.5)]
    loss = cross_entropy(scores, 1)
    loss.backward()
    weights = [math.exp(s.data) for s in scores]
    probabilities = [w / sum(weights) for w in weights]
    assert loss.data == pytest.approx(-math.log(probabilities[1]), rel=1e-12)
    assert [s.grad for s in scores] == pytest.approx(
        [probabilities[0], probabilities[1] - 1.0, probabilities[2]], rel=1e-12
    )
    assert cross_entropy([Value(1000.0), Value(0.0)], 0).data == 0.0
    assert cross_entropy([Value(1000.0), Value(0.0)], 1).data == 1000.0


def test_inputs_that_are_not_lists_raise():
    with pytest.raises(DTypeError, match=r"MLP: expected a list of 3 scalars, but got a float: 1\.0"):
        MLP([3, 1])(1.0)
    with pytest.raises(DTypeError, match=r"Neuron: expected a list of 3 scalars, but got a float: 1\.0"):
        Neuron(3)(1.0)
    with pytest.raises(ShapeError, match=r"MLP: expected the sizes .* but got 3\."):
        MLP(3)


class Gated(Module):
    """Two layers in a dict, one of which gates the other, and a scale parameter."""

    def __init__(self):
        self.sides = {"value": Layer(2, 2, "linear"), "gate": Layer(2, 2, "sigmoid")}
        self.scale = Value(2.0)

    def forward(self, x):
        value, gate = self.sides["value"](x), self.sides["gate"](x)
        return [self.scale * v * g for v, g in zip(value, gate, strict=True)]


def test_a_custom_module_names_parameters_by_path():
    model = Gated()
    names = [name for name, _ in model.named_parameters()]
    assert names[:2] == ["scale", "sides['value'].neurons[0].w[0]"]
    assert len(model.parameters()) == 13
    sum(model([1.0, -2.0]), Value(0.0)).backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(
        NotImplementedError, match=r'Module is missing the required "forward" function: define def forward'
    ):
        Module()(1.0)


def test_a_shared_submodule_counts_once():
    class Tied(Module):
        def __init__(self):
            self.first = self.second = Neuron(1)

    assert [name for name, _ in Tied().named_parameters()] == ["first.w[0]", "first.b"]
    assert len([*Tied().named_parameters(remove_duplicate=False)]) == 4


def test_a_call_is_recorded_on_its_results_and_opens_a_scope_only_while_tracing():
    model = MLP([2, 2, 1], seed=0)
    (y,) = model([1.0, 2.0])
    assert (y.scope, y.inputs[0].scope, y.inputs[1].scope) == ("", "", "")
    assert [key for key in y._extras if isinstance(key, Module)] == [model.layers[1].neurons[0], model.layers[1], model]
    assert not hasattr(y.inputs[0], "_extras"), "intermediate values record nothing"
    with mg.record():
        (z,) = model([1.0, 2.0])
    assert z.scope == "MLP/layers[1]/neurons[0]"
    with mg.scope("mine"):
        assert model([1.0, 2.0])[0].scope == "mine/MLP/layers[1]/neurons[0]"


def test_a_module_that_returns_its_input_leaves_it_unchanged():
    class Same(Module):
        def forward(self, x):
            return x

    w = Value(1.0, "w")
    assert Same()(w) is w
    assert w._extras == {"label": "w"}
    assert Same()([1.0, w]) == [1.0, w]
