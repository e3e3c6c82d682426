"""PyTorch models on a GPU: values are summarised on the device."""

import numpy as np
import pytest

from minigrad_viz import draw, record
from minigrad_viz.trace import trace_with_indices
from torch_checks import gradient_sums

pytestmark = pytest.mark.needs("a GPU")


@pytest.fixture
def cuda(torch):
    torch.manual_seed(0)
    return torch.device("cuda")


def test_contributions_sum_to_the_gradients_on_a_gpu(torch, cuda):
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)).to(cuda)
    x, y = torch.randn(128, 64, device=cuda), torch.arange(128, device=cuda) % 10
    with record():
        loss = torch.nn.functional.cross_entropy(net(x), y)
    trace, indices = trace_with_indices(loss)
    assert [p.grad for p in net.parameters()] == [None] * 4
    loss.backward()
    observed = trace_with_indices(loss)[0]
    for run in (trace, observed):
        sums = gradient_sums(run)
        for p in net.parameters():
            if p.numel() <= 10_000:
                np.testing.assert_allclose(sums[indices[id(p)]], p.grad.cpu().numpy(), rtol=1e-5, atol=1e-7)
    hidden = next(node for node in trace.nodes if node.shape == (128, 256))
    assert hidden.array.cells.size <= 1024
    assert "cross_entropy" in draw(loss).text()


def test_a_step_of_mixed_precision_with_a_scaler_is_recorded(torch, cuda):
    net = torch.nn.Linear(8, 4, device=cuda)
    optimizer, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler("cuda")
    with record():
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(torch.ones(2, 8, device=cuda)).square().mean()
        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
    trace, indices = trace_with_indices(scaled)
    assert "float16" in draw(scaled).text()
    expected = trace.totals(trace.passes[0])[indices[id(net.weight)]] / scaler.get_scale()
    np.testing.assert_allclose(expected, net.weight.grad.cpu().numpy(), rtol=1e-3)


def test_only_samples_of_large_tensors_are_transferred(torch, cuda, monkeypatch):
    transferred = []
    to_cpu = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda x, *args, **kw: transferred.append(x.numel()) or to_cpu(x, *args, **kw)
    )
    x = torch.randn(2000, 2000, device=cuda, requires_grad=True)
    with record():
        loss = (x @ x).relu().sum()
    draw(loss)
    assert transferred
    assert max(transferred) <= 16_384
