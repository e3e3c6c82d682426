"""Parameters are named by the module they belong to, whatever variable leads there."""

import minigrad as mg
from minigrad_viz import to_trace

nn = mg.nn


def leaf(*values):
    return mg.tensor(list(values), requires_grad=True)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.scale = nn.Parameter(mg.ones(2))
        self.shift = mg.ones(2, requires_grad=True)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale + self.shift


def leaves_of(*results, **variables):
    loss = sum(x.sum() for x in results)
    return [node.name for node in to_trace(loss, namespaces=(variables,)).nodes if node.kind == "leaf"]


def test_parameters_are_named_by_path_in_the_outermost_module():
    class Trainer:
        def __init__(self):
            self.model = Scaled()
            self.optimizer = mg.optim.SGD(self.model.parameters(), lr=0.1)

    trainer, x = Trainer(), mg.ones(1, 2)
    layer, w = trainer.model.layers[0], trainer.model.scale
    paths = ["layers.0.weight", "layers.0.bias", "x", "layers.1.weight", "layers.1.bias", "scale", "self.model.shift"]
    assert leaves_of(trainer.model(x), x=x, layer=layer, w=w, self=trainer) == paths


def test_parameters_of_several_models_are_prefixed_with_their_variables():
    g, d = nn.Linear(2, 2), [nn.Sequential(nn.Linear(2, 1))]
    assert leaves_of(d[0](g(mg.ones(1, 2))), g=g, d=d, other=nn.Linear(1, 1)) == [
        *("g.weight", "g.bias", None),
        *("d[0].0.weight", "d[0].0.bias"),
    ]


def test_parameters_only_in_an_optimizer_are_named_after_it():
    optimizer = mg.optim.SGD([leaf(1.0), leaf(2.0)], lr=0.1)
    (a, b) = optimizer.param_groups[0]["params"]
    path = "optimizer.param_groups[0]['params']"
    assert leaves_of(a * b, optimizer=optimizer) == [f"{path}[0]", f"{path}[1]"]
