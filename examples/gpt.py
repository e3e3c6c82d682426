"""Train a small character-level GPT on minigrad's own frozen text corpus.

A decoder-only transformer after Radford et al. 2019: 4 layers of width 128, 4 heads, a context of 128 characters. It is
trained on the first 90% of the text. On the rest, its loss must be below that of the best bigram model, which predicts
the next character from the frequencies of character pairs.
"""

from __future__ import annotations

from common import finish, options

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad.training import Callback, Run, evaluate, fit

LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 128

KVCache = tuple[mg.Tensor, mg.Tensor]  # KV cache: the keys and values so far, (N, heads, T, width / heads) each


class Attention(nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: mg.Tensor, cache: KVCache | None = None) -> tuple[mg.Tensor, KVCache]:
        n, t, width = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        if cache is not None:
            k, v = mg.cat([cache[0], k], dim=2), mg.cat([cache[1], v], dim=2)
        # with a KV cache, x is a single new character that may attend to all positions
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.proj(y.transpose(1, 2).reshape(n, t, width)), (k, v)


class Block(nn.Module):
    """Pre-norm transformer block: attention and an MLP, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: mg.Tensor, cache: KVCache | None = None) -> tuple[mg.Tensor, KVCache]:
        attended, cache = self.attention(self.norm1(x), cache)
        x = x + attended
        return x + self.mlp(self.norm2(x)), cache


class GPT(nn.Module):
    """Decoder-only transformer: maps characters, int (N, T), to next-character logits, (N, T, vocabulary)."""

    def __init__(self, vocabulary: int, layers: int = LAYERS, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.characters.weight  # tied embeddings
        for name, p in self.named_parameters():
            if p.ndim == 2:  # scale residual projections by depth, as GPT-2 does
                is_residual = name.endswith(("proj.weight", "mlp.2.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if is_residual else 0.02)

    def forward(self, x: mg.Tensor, cache: list[KVCache] | None = None) -> mg.Tensor:
        """Return the logits. With `cache`, the KV cache from `forward_cached`, x is the next character, (N, 1)."""
        return self.forward_cached(x, cache)[0]

    def forward_cached(self, x: mg.Tensor, cache: list[KVCache] | None = None) -> tuple[mg.Tensor, list[KVCache]]:
        """Return the logits and the updated KV cache, one entry per block."""
        start = cache[0][0].shape[2] if cache else 0
        h = self.characters(x) + self.positions(mg.arange(start, start + x.shape[1]))
        new_cache = []
        for k, block in enumerate(self.blocks):
            h, block_cache = block(h, cache[k] if cache else None)
            new_cache.append(block_cache)
        return self.head(self.norm(h)), new_cache


@mg.no_grad()
def sample(model: GPT, text: mg.Tensor, count: int, temperature: float = 0.8, top_k: int = 20) -> mg.Tensor:
    """Extend `text`, (T,), by `count` characters, each sampled from the model's `top_k` most probable ones."""
    cache = None
    for _ in range(count):
        if cache is None or cache[0][0].shape[2] == CONTEXT:  # context full: restart from its second half
            context, cache = text[-CONTEXT // 2 :], None
        logits, cache = model.forward_cached(context[None], cache)
        top_logits, candidates = (logits[0, -1] / temperature).topk(top_k)
        context = candidates[F.softmax(top_logits, dim=-1).multinomial(1)]
        text = mg.cat([text, context])
    return text


def bigram(text: mg.Tensor, size: int, smoothing: float) -> mg.Tensor:
    """Return bigram log-probabilities, (size, size), from pair counts in `text` with additive `smoothing`."""
    pairs = mg.bincount(text[:-1] * size + text[1:], minlength=size * size).view(size, size) + smoothing
    return (pairs / pairs.sum(1, keepdim=True)).log()


def bigram_loss(train: mg.Tensor, test: mg.Tensor, size: int) -> float:
    """Return the bigram model's mean test loss; the smoothing is tuned on the last tenth of the training text."""
    cut = len(train) * 9 // 10

    def loss(corpus: mg.Tensor, new: mg.Tensor, smoothing: float) -> float:
        return -bigram(corpus, size, smoothing)[new[:-1], new[1:]].mean().item()

    best = min((0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), key=lambda k: loss(train[:cut], train[cut:], k))
    return loss(train, test, best)


def windows(text: mg.Tensor) -> mg.data.TensorDataset:
    """Split the text into contexts; the target is the next character at each position."""
    count = (len(text) - 1) // CONTEXT * CONTEXT
    return mg.data.TensorDataset(text[:count].view(-1, CONTEXT), text[1 : count + 1].view(-1, CONTEXT))


def loss(logits: mg.Tensor, target: mg.Tensor) -> mg.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


class Clip(Callback):
    """Callback that clips the gradient norm to 1."""

    def on_backward(self, run: Run) -> None:
        nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)


def main() -> None:
    args = options(__doc__, epochs=2, quick=1)
    text = mg.data.corpus()
    vocabulary = mg.data.Vocabulary(text)
    indices = vocabulary.encode(text[:20_000] if args.quick else text)
    train, test = indices[: len(indices) * 9 // 10], indices[len(indices) * 9 // 10 :]

    model = GPT(len(vocabulary), layers=1 if args.quick else LAYERS)
    loader = mg.data.DataLoader(windows(train), batch_size=8, shuffle=True, drop_last=True)
    test_loader = mg.data.DataLoader(windows(test), batch_size=8)
    optimizer = mg.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, args.epochs * len(loader), pct_start=0.1)
    history = fit(
        model, loader, optimizer, loss, epochs=args.epochs, scheduler=schedule, schedule="step", callbacks=[Clip()]
    )

    print(vocabulary.decode(sample(model.eval(), vocabulary.encode("def "), 100 if args.quick else 500)))
    metrics = evaluate(model, test_loader, {"loss": loss})
    finish(
        args,
        history.steps,
        bigram_loss=bigram_loss(train, test, len(vocabulary)),
        test_loss=metrics["loss"],
    )


if __name__ == "__main__":
    main()
