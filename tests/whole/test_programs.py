"""Programs from PyTorch tutorials, as functions of tensors, run in minigrad with only the import changed.

Each takes the library and its functional module, and returns its results, which must be equal in both libraries.
"""

import math

import numpy as np
import pytest

import minigrad as mg
import minigrad.functional
from strategies import PARITY


def random_array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def logistic_regression(torch, F):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.tensor(random_array(60, 2)).to(device)
    y = (x[:, 0] + x[:, 1] > 0).float()
    w = torch.zeros(2, requires_grad=True, device=device)
    b = torch.zeros((), requires_grad=True, device=device)
    for _ in range(30):
        p = torch.sigmoid(x @ w + b)
        loss = -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8)).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            b -= 0.5 * b.grad
        w.grad.zero_()
        b.grad.zero_()
    predicted = (torch.sigmoid(x @ w + b) >= 0.5).long()
    hits = ((predicted == 1) & (y == 1)).sum()
    misses = ((predicted == 1) & ~(y == 1)).sum()
    return w, b, loss, hits, misses, (predicted == y.long()).float().mean().item()


def spirals(torch, F):
    count, classes = 30, 3
    x = torch.zeros(count * classes, 2)
    y = torch.zeros(count * classes, dtype=torch.long)
    for j in range(classes):
        rows = slice(count * j, count * (j + 1))
        r = torch.linspace(0, 1, count)
        t = torch.linspace(j * 4, (j + 1) * 4, count) + torch.tensor(random_array(count)) * 0.2
        x[rows] = torch.stack([r * torch.sin(t), r * torch.cos(t)], dim=1)
        y[rows] = j
    params = [
        torch.tensor(random_array(2, 16) / 2),
        torch.zeros(16),
        torch.tensor(random_array(16, 3) / 2),
        torch.zeros(3),
    ]
    for p in params:
        p.requires_grad_()
    velocities = [torch.zeros_like(p) for p in params]
    for _ in range(40):
        logits = F.relu(x @ params[0] + params[1], inplace=True) @ params[2] + params[3]
        loss = F.cross_entropy(logits, y) + 1e-3 * sum((p**2).sum() for p in params)
        for p in params:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, v in zip(params, velocities, strict=True):
                v *= 0.9
                v += p.grad
                p -= 0.5 * v
    _, predicted = torch.max(logits.data, 1)
    return loss, predicted.eq(y.view_as(predicted)).sum().item(), *params


def recurrent_characters(torch, F):
    text = "hello world"
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text], dtype=torch.long)
    size, hidden = len(letters), 8
    params = [torch.tensor(random_array(n, m) / 10) for n, m in ((size, hidden), (hidden, hidden), (hidden, size))]
    memory = [torch.zeros_like(p) for p in params]
    for p in params:
        p.requires_grad = True
    for _ in range(8):
        h, loss = torch.zeros(1, hidden), 0
        for t in range(len(ids) - 1):
            h = torch.tanh(F.one_hot(ids[t : t + 1], size).float() @ params[0] + h @ params[1])
            loss += F.cross_entropy(h @ params[2], ids[t + 1 : t + 2])
        loss /= len(ids) - 1
        for p in params:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, m in zip(params, memory, strict=True):
                p.grad.clamp_(-5, 5)
                m += p.grad * p.grad
                p.addcdiv_(p.grad, m.sqrt().add_(1e-8), value=-0.1)
    return loss, h.detach_(), *params


def language_model(torch, F):
    letters, length, width, heads = 11, 6, 8, 2
    torch.manual_seed(1337)
    x = torch.arange(4 * length).view(4, length) % letters
    y = torch.roll(x, -1, dims=1)
    wte, wpe = (torch.tensor(random_array(n, width), requires_grad=True) for n in (letters, length))
    wqkv = torch.tensor(random_array(width, 3 * width) / 3, requires_grad=True)

    def model(ids, targets=None):
        batch, t = ids.size()
        h = F.embedding(ids, wte) + wpe[torch.arange(0, t, dtype=torch.long, device=ids.device)]
        normed = F.layer_norm(h, (width,))
        q, k, v = (s.view(batch, t, heads, -1).transpose(1, 2) for s in (normed @ wqkv).split(width, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        rescored = torch.einsum("bhid,bhjd->bhij", q, k) * (width // heads) ** -0.5
        rescored.masked_fill_(torch.ones((t, t), dtype=torch.bool).triu(1), -torch.finfo(rescored.dtype).max)
        mixed = (F.softmax(scores, dim=-1) + rescored.softmax(dim=-1)) / 2 @ v
        h = h + F.gelu(mixed.transpose(1, 2).contiguous().view(batch, t, width))
        logits = h @ wte.t()
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(ids, steps, temperature=0.8, top_k=5):
        for _ in range(steps):
            logits, _ = model(ids[:, -length:])
            logits = logits[:, -1, :] / temperature
            best, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < best[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            assert torch.multinomial(probs, num_samples=1).shape == (len(ids), 1)
            ids = torch.cat((ids, torch.argmax(probs, dim=-1, keepdim=True)), dim=1)
        return ids, probs

    _, loss = model(x, y)
    loss.backward()
    return loss, wte.grad, wpe.grad, wqkv.grad, *generate(torch.zeros((2, 1), dtype=torch.long), 8)


def batch_norm_by_hand(torch, F):
    x = torch.tensor(random_array(8, 3, 4, 4))
    gamma, beta = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    running_mean, running_var = torch.zeros(3), torch.ones(3)
    var, mean = torch.var_mean(x, dim=(0, 2, 3), unbiased=False, keepdim=True)
    y = gamma[None, :, None, None] * ((x - mean) / torch.sqrt(var + 1e-5)) + beta.view(1, -1, 1, 1)
    (y**3).sum().backward()
    with torch.no_grad():
        running_mean.mul_(0.9).add_(mean.squeeze(), alpha=0.1)
        running_var.lerp_(x.var([0, 2, 3], unbiased=True), 0.1)
    running_stats = [torch.zeros(3), torch.ones(3)]
    return (
        y,
        gamma.grad,
        running_mean,
        running_var,
        F.batch_norm(x, *running_stats, gamma, beta, training=True),
        *running_stats,
    )


def clipped_adam(torch, F):
    w, b = torch.tensor(random_array(4, 3), requires_grad=True), torch.zeros(3, requires_grad=True)
    x, y = torch.tensor(random_array(12, 4)), torch.tensor([0, 1, 2] * 4)
    y[::5] = -100
    for rows, targets in zip(x.split(3), y.split(3), strict=True):  # gradients accumulate
        (F.cross_entropy(rows @ w + b, targets, label_smoothing=0.1, ignore_index=-100) / 4).backward()
    total = torch.norm(torch.stack([p.grad.detach().norm(2) for p in (w, b)]), 2)
    for p in (w, b):
        p.grad.detach().mul_(torch.clamp(0.1 / (total + 1e-6), max=1.0).to(p.grad.device))
        m, v = torch.zeros_like(p), torch.zeros_like(p)
        m.mul_(0.9).add_(p.grad, alpha=0.1)
        v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
        p.data.addcdiv_(m / (1 - 0.9), (v / (1 - 0.999)).sqrt().add_(1e-8), value=-0.01)
    return total, w, b


def gradient_penalty(torch, F):
    w1, w2 = torch.tensor(random_array(3, 4), requires_grad=True), torch.tensor(random_array(4, 1), requires_grad=True)
    x = torch.tensor(random_array(6, 3)).requires_grad_(True)
    out = torch.tanh(x @ w1) @ w2
    gradients = torch.autograd.grad(
        outputs=out,
        inputs=x,
        grad_outputs=torch.ones(out.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    penalty = ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean() * 10
    grads = torch.autograd.grad(penalty, (w1, w2), create_graph=True)
    flat = torch.cat([g.reshape(-1) for g in grads])
    return penalty, flat, *torch.autograd.grad(flat.dot(torch.ones_like(flat)), [w1, w2])


PROGRAMS = [
    logistic_regression,
    spirals,
    recurrent_characters,
    language_model,
    batch_norm_by_hand,
    clipped_adam,
    gradient_penalty,
]


@pytest.mark.parity
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_program_gives_the_same_results_as_in_pytorch(program):
    import torch

    actual, expected = program(mg, minigrad.functional), program(torch, torch.nn.functional)
    for a, b in zip(actual, expected, strict=True):
        a, b = (x.detach().cpu().numpy() if hasattr(x, "detach") else np.array(x) for x in (a, b))
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=10 * PARITY["float32"], atol=10 * PARITY["float32"])
