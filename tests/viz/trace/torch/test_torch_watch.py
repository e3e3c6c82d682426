"""`watch` monitors the training of a PyTorch model."""

import pytest

from minigrad.core.errors import DTypeError
from minigrad_viz import watch


@pytest.fixture
def training(torch):
    """A function that trains a net for some steps, and returns the monitor."""
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer, x = torch.optim.SGD(net.parameters(), 0.1), torch.randn(64, 3)

    def train(steps, zero_grad=True, scale=1.0):
        with watch(net, share=1.0) as seen:
            for _ in range(steps):
                if zero_grad:
                    optimizer.zero_grad()
                loss = (net(x * scale) - x[:, :1]).square().mean()
                loss.backward()
                optimizer.step()
                seen.log(loss)
        return seen

    return train


def test_losses_layers_and_norms_are_recorded(training):
    seen = training(30)
    assert [step for step, _ in seen.view.losses] == list(range(1, 31))
    assert seen.view.losses[-1][1] < seen.view.losses[0][1]
    assert [(layer.name, layer.kind) for layer in seen.view.layers] == [
        ("0", "Linear"),
        ("1", "ReLU"),
        ("2", "Linear"),
        ("3", "Tanh"),
        ("4", "Linear"),
    ]
    assert seen.measured_count > 1
    assert all(layer.norms and layer.update_ratio > 0 for layer in seen.view.layers[::2])
    assert seen.view.layers[1].dead_fraction is not None
    assert "gradient flow" in seen.text()
    assert seen.svg().startswith("<svg")


def test_the_norm_is_that_of_the_gradient(torch, training):
    seen = training(1)
    (step, norm), *_ = seen.view.layers[0].norms
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    )
    x = torch.randn(64, 3)
    (net(x) - x[:, :1]).square().mean().backward()
    expected = torch.cat([p.grad.reshape(-1) for p in net[0].parameters()]).norm()
    assert step == 1
    assert norm == pytest.approx(float(expected), rel=1e-5)


def test_alarms_name_the_layer(training):
    assert "stale" in {alarm.kind for alarm in training(20, zero_grad=False).view.flow.alarms}
    assert "NaN" in training(5, scale=float("nan")).text()


def test_hooks_are_removed(torch, training):
    seen = training(3)
    assert all(not module._forward_hooks for module in seen._model.modules())


def test_other_objects_are_rejected(torch):
    with pytest.raises(DTypeError, match="is not a module"):
        watch(torch.ones(3))
