"""Short snippets from notebooks, answers and tutorials. Each returns its results for comparison."""

import copy
import io
import math
import os
import random
from collections import OrderedDict, defaultdict
from functools import partial
from typing import Dict, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.distributions import Categorical, Independent, MultivariateNormal, Normal, kl_divergence
from torch.nn import Linear, Module, ModuleList, Parameter, init
from torch.nn.parameter import Parameter as P
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, SequentialLR
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from tqdm import tqdm


def fixed(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def fill(model):
    """Set the same weights in either library."""
    for k, p in enumerate(model.parameters()):
        p.data.copy_(fixed(*p.shape, seed=k) * 0.3)
    return model


def sequential_of_names():
    model = nn.Sequential(
        OrderedDict(
            [
                ("conv1", nn.Conv2d(1, 4, 5)),
                ("relu1", nn.ReLU()),
                ("pool", nn.AdaptiveAvgPool2d((2, 2))),
                ("flatten", nn.Flatten()),
                ("fc", nn.Linear(16, 3)),
            ]
        )
    )
    fill(model)
    assert model.conv1 is model[0]
    assert len(model) == 5
    shapes = [(name, tuple(p.shape)) for name, p in model.named_parameters()]
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return model(fixed(2, 1, 8, 8)), shapes, total, str(type(model).__name__)


class Head(nn.Module):
    """one head of self-attention"""

    def __init__(self, n_embd, head_size, block_size, dropout=0.0):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        _, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        v = self.value(x)
        return wei @ v


class MultiHead(nn.Module):
    def __init__(self, num_heads, n_embd, block_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(n_embd, n_embd // num_heads, block_size) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


def heads_of_attention():
    model = fill(MultiHead(2, 8, 6))
    x = fixed(2, 5, 8).requires_grad_()
    y = model(x)
    y.square().mean().backward()
    names = [n for n, _ in model.named_buffers()]
    return y, x.grad, names, [p.grad.norm() for p in model.parameters()]


def attention_agrees_with_itself():
    q, k, v = fixed(3, 2, 4, 6, 8).unbind(0)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = torch.ones(6, 6, dtype=torch.bool).tril(diagonal=0)
    b = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(a, b, atol=1e-6)
    bias = torch.triu(torch.full((6, 6), float("-inf")), diagonal=1)
    return a, F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.5)


def rotary_positions():
    dim, seq = 8, 5
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
    t = torch.arange(seq, dtype=inv_freq.dtype)
    freqs = torch.outer(t, inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos()[None, :, None, :], emb.sin()[None, :, None, :]
    x = fixed(2, seq, 3, dim)
    x1, x2 = x[..., : dim // 2], x[..., dim // 2 :]
    return x * cos + torch.cat((-x2, x1), dim=-1) * sin, torch.einsum("i,j->ij", t, inv_freq)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


def encoder_with_positions():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=False)
    model = nn.Sequential(PositionalEncoding(8), nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False))
    fill(model)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = fixed(5, 2, 8)
    return model(x), model[1](model[0](x), mask=mask), mask


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


class SwiGLU(nn.Module):
    def __init__(self, dim: int, hidden_dim: int):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


def llama_block():
    block = fill(nn.Sequential(RMSNorm(6), SwiGLU(6, 10)))
    x = fixed(2, 4, 6)
    out = x + block(x)
    kv = fixed(2, 4, 2, 3)
    repeated = kv[:, :, :, None, :].expand(2, 4, 2, 3, 3).reshape(2, 4, 6, 3)
    return out, repeated, torch.repeat_interleave(kv, dim=2, repeats=3)


class Pairs(Dataset):
    def __init__(self, n: int, transform=None):
        self.x, self.y = fixed(n, 3), torch.arange(n) % 2
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        x = self.x[idx]
        if self.transform:
            x = self.transform(x)
        return {"x": x, "y": self.y[idx], "name": f"row {int(idx)}"}


def loop_with_a_bar():
    dataset = Pairs(10, transform=lambda x: x * 2)
    loader = DataLoader(dataset, batch_size=4, shuffle=False, num_workers=0, pin_memory=False, drop_last=False)
    device = torch.device("cpu")
    model = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))).to(device)
    optimizer = AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    scheduler = OneCycleLR(optimizer, max_lr=0.05, steps_per_epoch=len(loader), epochs=2)
    history: Dict[str, List[float]] = defaultdict(list)
    for epoch in range(2):
        model.train()
        running_loss, correct, total = 0.0, 0, 0
        pbar = tqdm(loader, desc=f"Epoch {epoch + 1}", leave=False, disable=True)
        for batch in pbar:
            inputs, labels = batch["x"].to(device, non_blocking=True), batch["y"].to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            scheduler.step()
            running_loss += loss.item() * inputs.size(0)
            _, predicted = torch.max(outputs.data, 1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
            pbar.set_postfix(loss=f"{loss.item():.4f}", acc=100.0 * correct / total)
        history["loss"].append(running_loss / len(loader.dataset))
        history["lr"].append(scheduler.get_last_lr()[0])
    return history["loss"], history["lr"], correct / total, batch["name"], len(loader)


def pieces_of_a_data_set():
    x, y = fixed(12, 2), torch.arange(12)
    full = TensorDataset(x, y)
    train, val = random_split(full, [9, 3], generator=torch.Generator().manual_seed(42))
    rows = sorted([int(t) for _, t in train] + [int(t) for _, t in val])

    def collate(batch):
        xs, ys = zip(*batch)
        return torch.stack(xs), torch.tensor([int(t) for t in ys])

    first = next(iter(DataLoader(Subset(full, [3, 1, 2]), batch_size=3, collate_fn=collate)))
    return rows, first[0], first[1], len(train), len(val)


def two_groups_and_a_warm_up():
    model = fill(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)))
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        if param.ndim <= 1 or name.endswith(".bias"):
            no_decay.append(param)
        else:
            decay.append(param)
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0, "lr": 5e-2}]
    optimizer = optim.AdamW(groups, lr=1e-2)
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=2)
    cosine = CosineAnnealingLR(optimizer, T_max=4, eta_min=1e-4)
    scheduler = SequentialLR(optimizer, schedulers=[warmup, cosine], milestones=[2])
    rates, norms = [], []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(fixed(6, 3)).pow(2).mean()
        loss.backward()
        norms.append(float(clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()
        scheduler.step()
        rates.append([g["lr"] for g in optimizer.param_groups])
    return rates, norms, list(model.parameters())


def frozen_layers():
    model = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    for param in model[0].parameters():
        param.requires_grad = False
    model[2] = fill(nn.Linear(4, 3))
    optimizer = SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    loss = F.mse_loss(model(fixed(5, 3)), fixed(5, 3, seed=4))
    loss.backward()
    clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()
    same = [torch.equal(before[k], v) for k, v in model.state_dict().items()]
    return same, model[0].weight.grad is None, model[2].weight


def moving_average_of_weights():
    model = fill(nn.Linear(3, 2))
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.5)
        for e, p in zip(ema.parameters(), model.parameters()):
            e.mul_(0.9).add_(p, alpha=0.1)
            e.lerp_(p, 0.01)
    return list(ema.parameters()), [p.requires_grad for p in ema.parameters()]


@torch.no_grad()
def estimate(model, x):
    model.eval()
    out = model(x)
    model.train()
    return out


def modes_of_recording():
    model = fill(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    x = fixed(2, 3)
    modes = [estimate(model, x).requires_grad, model.training]
    for phase in ["train", "val"]:
        model.train(phase == "train")
        with torch.set_grad_enabled(phase == "train"):
            modes.append(model(x).sum().requires_grad)
    with torch.inference_mode():
        modes.append(model(x).requires_grad)
    with torch.enable_grad():
        modes.append(torch.is_grad_enabled())
    return modes, estimate(model, x)


def texts_of_tensors():
    loss = torch.tensor(0.123456)
    x = torch.tensor([1.0, 2.5])
    return (
        f"{loss:.4f}",
        f"loss: {loss.item():>7f}  [{10:>5d}/{60:>5d}]",
        f"{x[0]:.2f}",
        f"{x}",
        str(x.shape[0]),
        f"{x.mean():.3e}",
        "%.3f" % loss,
        repr(torch.arange(3)),
        f"{torch.tensor(3)}",
        f"{torch.tensor(True)}",
        round(loss.item(), 3),
    )


def a_checkpoint_in_memory():
    model, other = fill(nn.Linear(3, 2)), nn.Linear(3, 2)
    optimizer = Adam(model.parameters(), lr=0.01)
    model(fixed(4, 3)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    checkpoint = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": 0.5}
    torch.save(checkpoint, file)
    file.seek(0)
    restored = torch.load(file, map_location=torch.device("cpu"), weights_only=True)
    missing, unexpected = other.load_state_dict(restored["model"], strict=False)
    again = Adam(other.parameters(), lr=0.5)
    again.load_state_dict(restored["optimizer"])
    other(fixed(4, 3)).sum().backward()
    again.step()
    return restored["epoch"], restored["loss"], missing, unexpected, again.param_groups[0]["lr"], other.weight


def seeds():
    def set_seed(seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        os.environ["PYTHONHASHSEED"] = str(seed)

    set_seed(1)
    a = torch.rand(3)
    set_seed(1)
    b = torch.rand(3)
    g = torch.Generator()
    g.manual_seed(1)
    c = torch.randn(2, 2, generator=g)
    return torch.equal(a, b), tuple(c.shape), torch.randperm(5).sort()[0], bool((torch.randint(0, 4, (9,)) < 4).all())


def penalties_and_distances():
    model = fill(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)))
    x = fixed(6, 4)
    l2 = sum(p.pow(2.0).sum() for p in model.parameters())
    l1 = sum(torch.norm(p, 1) for p in model.parameters())
    logits = model(x)
    soft = F.kl_div(
        F.log_softmax(logits / 2.0, dim=1), F.softmax(fixed(6, 2, seed=9) / 2.0, dim=1), reduction="batchmean"
    )
    z = F.normalize(fixed(4, 3), dim=1)
    sim = z @ z.T / 0.5
    sim.fill_diagonal_(-1e9)
    triplet = nn.TripletMarginLoss(margin=1.0)(fixed(4, 3), fixed(4, 3, seed=1), fixed(4, 3, seed=2))
    cosine = F.cosine_embedding_loss(fixed(4, 3), fixed(4, 3, seed=1), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    gauss = nn.GaussianNLLLoss()(fixed(4, 3), fixed(4, 3, seed=1), torch.ones(4, 3))
    return l2, l1, soft, F.cross_entropy(sim, torch.tensor([1, 0, 3, 2])), triplet, cosine, gauss, torch.cdist(z, z)


def gates_and_choices():
    torch.manual_seed(0)
    logits = fixed(4, 3).requires_grad_()
    hard = F.gumbel_softmax(logits, tau=1.0, hard=True)
    experts, index = torch.topk(F.softmax(logits, -1), k=2, dim=-1)
    experts = experts / experts.sum(-1, keepdim=True)
    full = torch.zeros_like(logits).scatter(-1, index, experts)
    straight = (logits.round() - logits).detach() + logits
    straight.sum().backward()
    return hard.sum(-1).detach(), full, index, logits.grad, torch.bincount(index.flatten(), minlength=3)


def policy_gradient():
    rewards, gamma, R = [1.0, 0.0, 2.0, 1.0], 0.99, 0.0
    returns = []
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    policy = fill(nn.Linear(3, 2))
    probs = F.softmax(policy(fixed(4, 3)), dim=1)
    actions = torch.tensor([0, 1, 1, 0])
    log_prob = torch.log(probs.gather(1, actions.unsqueeze(1)).squeeze(1))
    loss = (-log_prob * returns).sum()
    loss.backward()
    q = fixed(4, 2)
    target = 0.1 + 0.99 * q.max(1)[0].detach() * (1 - torch.tensor([0, 0, 1, 0], dtype=torch.float32))
    return loss, policy.weight.grad, F.smooth_l1_loss(q.max(dim=1).values, target), q.argmax(1).tolist()


def straight_line_by_hand():
    X = torch.linspace(-1, 1, 20).view(-1, 1)
    Y = 3 * X + 2
    w, b = torch.zeros(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(20):
        loss = ((X.mm(w) + b - Y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
    return w, b, loss.item()


def patches_of_pictures():
    img = fixed(2, 3, 8, 8)
    p = 4
    patches = img.reshape(2, 3, 2, p, 2, p).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    proj = fill(nn.Conv2d(3, 5, kernel_size=p, stride=p))
    tokens = proj(img).flatten(2).transpose(1, 2)
    cls = nn.Parameter(torch.zeros(1, 1, 5))
    x = torch.cat((cls.expand(img.shape[0], -1, -1), tokens), dim=1)
    mean, std = torch.tensor([0.5, 0.4, 0.3]).view(-1, 1, 1), torch.tensor([0.2, 0.2, 0.2])[:, None, None]
    normal = (img - mean) / std
    dropped = x * torch.empty(2, 1, 1).bernoulli_(1.0) / 1.0
    return patches, x, normal.clamp(0, 1), F.unfold(img, p, stride=p), dropped, img.flip(-1), torch.roll(img, 1, -1)


def diffusion_schedule():
    betas = torch.linspace(1e-4, 0.02, 20)
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
    variance = betas * (1.0 - prev) / (1.0 - alphas_cumprod)
    t = torch.tensor([3, 7])
    x0, noise = fixed(2, 1, 4, 4), fixed(2, 1, 4, 4, seed=3)
    a = alphas_cumprod.gather(-1, t).reshape(2, *((1,) * (len(x0.shape) - 1)))
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    half = 4
    emb = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
    emb = t[:, None].float() * emb[None, :]
    return variance, xt, torch.cat((emb.sin(), emb.cos()), dim=-1), (xt - (1 - a).sqrt() * noise) / a.sqrt()


def hooks_and_features():
    model = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    features, grads = {}, {}

    def get_activation(name):
        def hook(module, input, output):
            features[name] = output.detach()

        return hook

    handle = model[0].register_forward_hook(get_activation("first"))
    model[2].register_full_backward_hook(lambda m, gi, go: grads.update(out=go[0]))
    x = fixed(2, 3).requires_grad_(True)
    out = model(x)
    out.backward(torch.ones_like(out))
    handle.remove()
    return features["first"], grads["out"], x.grad.data.abs()


def packed_and_padded():
    rows = [torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 6])]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
    lengths = torch.tensor([len(r) for r in rows])
    mask = torch.arange(padded.size(1))[None, :] < lengths[:, None]
    emb = nn.Embedding(7, 4, padding_idx=0)
    fill(emb)
    vectors = (emb(padded) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    return padded, mask, vectors, F.one_hot(padded, num_classes=7)


def types_and_shapes():
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.float)
    y = torch.from_numpy(np.array([0, 1])).long()
    z = torch.as_tensor([0.5, 1.5])
    flat = x.view(x.size(0), -1).to(torch.float32).contiguous()
    assert flat.dtype == torch.float32
    assert x.is_cuda == (x.device.type == "cuda") and not x.requires_grad
    rows, columns = x.shape
    triangle = torch.triu(torch.ones(rows, columns, dtype=torch.bool), diagonal=1)
    grid = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"), dim=-1)
    return flat, y, z, torch.addmm(torch.zeros(2), x, x), x.clone().clamp_(max=3), x.long().sum().item(), triangle, grid


def parts_by_their_types():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.GELU(approximate="tanh"))
    for m in net.modules():
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            init.xavier_uniform_(m.weight, gain=init.calculate_gain("relu"))
            nn.init.constant_(m.bias, 0.01)
        elif isinstance(m, nn.BatchNorm1d):
            m.weight.data.fill_(1)
            m.bias.data.zero_()
    kinds: List[Tuple[str, str]] = [(n, type(m).__name__) for n, m in net.named_children()]
    norm_layer = partial(nn.BatchNorm2d, eps=1e-3)
    scale: Optional[P] = Parameter(torch.tensor(0.5))
    both: Union[Tensor, Parameter] = scale
    is_parts = [isinstance(net[0], Module), isinstance(both, Tensor), isinstance(ModuleList([Linear(1, 1)]), Module)]
    return kinds, norm_layer(4).eps, is_parts, net[0].bias, net(fixed(4, 2)).shape[1]


class AlexNetLike(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=5, stride=2, padding=2),
            nn.ReLU(inplace=True),
            nn.LocalResponseNorm(size=5, alpha=1e-4, beta=0.75, k=2),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(8, 8, 3, padding=1, groups=2),
            nn.ReLU(inplace=True),
        )
        self.classifier = nn.Linear(8 * 3 * 3, num_classes)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def local_norms_of_channels():
    model = fill(AlexNetLike())
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    loss = nn.MultiMarginLoss()(model(fixed(4, 3, 16, 16)), torch.tensor([0, 2, 1, 1]))
    loss.backward()
    optimizer.step()
    return loss, [p for p in model.parameters()]


class ShuffleUnit(nn.Module):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.groups = groups
        self.branch = nn.Sequential(nn.Conv2d(channels // 2, channels // 2, 1), nn.BatchNorm2d(channels // 2), nn.ReLU())

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.branch(x2)), dim=1)
        return F.channel_shuffle(out, self.groups)


def shuffled_channels():
    x = fixed(2, 4, 5, 5).requires_grad_()
    y = fill(ShuffleUnit(4))(x)
    y.square().sum().backward()
    return y, x.grad


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def bags_of_words():
    model = fill(TextClassificationModel(10, 4, 3))
    text, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 3, 7])
    optimizer = AdamW(model.parameters(), lr=0.01, fused=False)
    loss = F.cross_entropy(model(text, offsets), torch.tensor([0, 2, 1]))
    loss.backward()
    clip_grad_norm_(model.parameters(), 0.1, foreach=True)
    optimizer.step()
    return loss, list(model.parameters())


def actor_and_critic():
    logits = fixed(5, 3).requires_grad_()
    dist = Categorical(logits=logits)
    actions = torch.tensor([0, 2, 1, 1, 0])
    old, advantages = dist.log_prob(actions).detach() - 0.1, fixed(5, seed=1)
    ratio = torch.exp(dist.log_prob(actions) - old)
    surrogate = torch.min(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages)
    loss = -surrogate.mean() - 0.01 * dist.entropy().mean()
    loss.backward()
    mu, log_var = fixed(4, 2, seed=2).requires_grad_(), fixed(4, 2, seed=3).requires_grad_()
    posterior = Independent(Normal(mu, torch.exp(0.5 * log_var)), 1)
    prior = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
    kl = kl_divergence(posterior, prior).mean()
    kl.backward()
    return loss, logits.grad, kl, mu.grad, log_var.grad, posterior.log_prob(torch.zeros(4, 2))


def a_critic_of_bounded_slope():
    layer = nn.utils.spectral_norm(nn.Linear(4, 3))
    state = {name: fixed(*p.shape, seed=k) for k, (name, p) in enumerate(layer.state_dict().items())}
    layer.load_state_dict(state)
    conv = nn.utils.weight_norm(nn.Conv1d(2, 3, 3, padding=1))
    fill(conv)
    y = layer(fixed(2, 4)).sum() + conv(fixed(2, 2, 5)).sum()
    y.backward()
    return y, layer.weight_orig.grad, conv.weight_g.grad, conv.weight_v.grad


def dynamic_thresholds():
    x0 = fixed(3, 2, 4, 4) * 2
    s = torch.quantile(x0.reshape(3, -1).abs(), 0.9, dim=1)
    s = torch.clamp(s, min=1.0)[:, None, None, None]
    image = fixed(4, 4)
    image.unsqueeze_(0).unsqueeze_(0)
    rounded = torch.round(x0, decimals=2)
    return torch.clamp(x0, -s, s) / s, image, image.squeeze_().t_(), rounded, torch.nanmedian(x0)


def messages_between_nodes():
    x, edges = fixed(4, 3).requires_grad_(), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 0, 0, 3]])
    source, target = edges
    messages = x.index_select(0, source)
    index = target.unsqueeze(-1).expand_as(messages)
    mean = torch.zeros(4, 3).scatter_reduce(0, index, messages, reduce="mean", include_self=False)
    maximum = torch.zeros(4, 3).scatter_reduce(0, index, messages, reduce="amax", include_self=False)
    (mean.square() + maximum).sum().backward()
    return mean, maximum, x.grad


class SentimentLSTM(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, output_dim, n_layers, bidirectional):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.rnn = nn.LSTM(
            embedding_dim, hidden_dim, num_layers=n_layers, bidirectional=bidirectional, batch_first=True
        )
        self.fc = nn.Linear(hidden_dim * 2, output_dim)

    def forward(self, text, text_lengths):
        embedded = self.embedding(text)
        packed_embedded = pack_padded_sequence(
            embedded, text_lengths.to("cpu"), batch_first=True, enforce_sorted=False
        )
        packed_output, (hidden, cell) = self.rnn(packed_embedded)
        assert isinstance(packed_output, PackedSequence)
        output, output_lengths = pad_packed_sequence(packed_output, batch_first=True)
        hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        return self.fc(hidden), output, output_lengths


def sentences_of_different_lengths():
    tokens = [torch.tensor([3, 1]), torch.tensor([2, 5, 4, 1]), torch.tensor([6, 2, 2])]
    model = fill(SentimentLSTM(7, 4, 3, 1, n_layers=2, bidirectional=True))
    logits, output, lengths = model(pad_sequence(tokens, batch_first=True), torch.tensor([len(t) for t in tokens]))
    F.binary_cross_entropy_with_logits(logits.squeeze(1), torch.tensor([0.0, 1.0, 1.0])).backward()
    return logits, output, lengths, [p.grad for p in model.parameters()]


def gaussian_process():
    x, y, at = torch.linspace(-1, 1, 6), fixed(6), torch.linspace(-0.5, 0.5, 3)
    log_scale = torch.zeros(1, requires_grad=True)
    kernel = lambda a, b: torch.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / torch.exp(log_scale) ** 2)
    K = kernel(x, x) + 0.1 * torch.eye(len(x))
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y.unsqueeze(1), L)
    nll = 0.5 * (y.unsqueeze(1) * alpha).sum() + torch.log(torch.diagonal(L)).sum()
    nll.backward()
    with torch.no_grad():
        v = torch.linalg.solve_triangular(L, kernel(x, at), upper=False)
        mean, cov = kernel(at, x) @ alpha, kernel(at, at) - v.T @ v
    return nll, log_scale.grad, mean, torch.diag(cov), MultivariateNormal(torch.zeros(6), K.detach()).log_prob(y)


def least_squares_and_flows():
    A, b = fixed(8, 3), fixed(8, seed=1)
    w = torch.linalg.solve(A.T @ A, A.T @ b)
    ridge = torch.inverse(A.T @ A + 0.1 * torch.eye(3)) @ A.T @ b
    W = nn.Parameter(fixed(3, 3, seed=2))
    logdet = torch.slogdet(W)[1]
    (logdet + torch.linalg.det(W) + W.inverse().sum()).backward()
    try:
        torch.linalg.inv(torch.zeros(2, 2)).sum().item()
        singular = False
    except torch.linalg.LinAlgError:
        singular = True
    return w, ridge, logdet, W.grad, singular, torch.logdet(A.T @ A)


SNIPPETS = [
    sequential_of_names,
    heads_of_attention,
    attention_agrees_with_itself,
    rotary_positions,
    encoder_with_positions,
    llama_block,
    loop_with_a_bar,
    pieces_of_a_data_set,
    two_groups_and_a_warm_up,
    frozen_layers,
    moving_average_of_weights,
    modes_of_recording,
    texts_of_tensors,
    a_checkpoint_in_memory,
    seeds,
    penalties_and_distances,
    gates_and_choices,
    policy_gradient,
    local_norms_of_channels,
    shuffled_channels,
    bags_of_words,
    actor_and_critic,
    a_critic_of_bounded_slope,
    dynamic_thresholds,
    messages_between_nodes,
    straight_line_by_hand,
    patches_of_pictures,
    diffusion_schedule,
    hooks_and_features,
    packed_and_padded,
    sentences_of_different_lengths,
    gaussian_process,
    least_squares_and_flows,
    types_and_shapes,
    parts_by_their_types,
]
