"""The hooks of `watch`: which ReLUs follow which layers, and which of their units are dead."""

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad_viz import watch


class Residual(nn.Module):
    """Calls relu as a function, once on a layer's output and once on a sum."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        with mg.no_grad():
            for layer, dying in ((self.first, 1), (self.second, 3)):
                layer.weight[:] = 0.0
                layer.bias[:dying] = -1.0
                layer.bias[dying:] = 1.0

    def forward(self, x):
        x = F.relu(self.first(x))
        return self.last((-x + self.second(x)).relu())


class Gate(nn.Module):
    """Has a parameter and calls relu, but has no submodules."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(mg.tensor([-1.0, 1.0]))

    def forward(self, x):
        return F.relu6(0.0 * x + self.shift, inplace=True) + 1.0


def dead_after_a_step(net, x, **options):
    """Return by row the dead fraction that the picture shows."""
    watcher = watch(net, **options)
    loss = net(x).sum()
    loss.backward()
    watcher.log(loss)
    watcher.close()
    return {layer.name: layer.dead_fraction for layer in watcher.view.layers}


def test_dead_units_of_a_functional_relu_belong_to_the_layer_before_it():
    assert dead_after_a_step(Residual(), mg.ones(3, 4)) == {"first": 0.25, "second": 1.0, "last": None}
    net = nn.Sequential(nn.Linear(4, 2), Gate(), nn.Linear(2, 2))
    assert dead_after_a_step(net, mg.ones(3, 4)) == {"0": None, "1": 0.5, "2": None}


def test_container_layer_reports_its_last_relu():
    net = nn.Sequential(nn.Linear(4, 4), Residual())
    assert dead_after_a_step(net, mg.ones(3, 4), layers=["1", "0"]) == {"1": 1.0, "0": None}


def test_relu_without_row_is_reported_by_the_layer_before_it():
    pairs = [part for _ in range(13) for part in (nn.Linear(2, 2), nn.ReLU())]
    with mg.no_grad():
        pairs[24].weight[:] = 0.0
        pairs[24].bias[:] = mg.tensor([-1.0, 1.0])
    fractions = dead_after_a_step(nn.Sequential(*pairs, nn.Linear(2, 2)), mg.ones(3, 2))
    assert (len(fractions), fractions["24"], fractions["26"]) == (14, 0.5, None)
