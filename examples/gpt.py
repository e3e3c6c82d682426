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

Past = tuple[mg.Tensor, mg.Tensor]  # KV cache: the keys and values so far, (N, heads, T, width / heads) each


class Attention(nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: mg.Tensor, past: Past | None = None) -> tuple[mg.Tensor, Past]:
        n, t, width = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = mg.cat([past[0], k], dim=2), mg.cat([past[1], v], dim=2)
        # with a KV cache, x is a single new character that may attend to all positions
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.proj(y.transpose(1, 2).reshape(n, t, width)), (k, v)


class Block(nn.Module):
    """Pre-norm transformer block: attention and an MLP, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: mg.Tensor, past: Past | None = None) -> tuple[mg.Tensor, Past]:
        heard, past = self.attention(self.norm1(x), past)
        x = x + heard
        return x + self.mlp(self.norm2(x)), past


class GPT(nn.Module):
    """Decoder-only transformer: maps characters, int (N, T), to next-character logits, (N, T, vocabulary)."""

    def __init__(self, vocabulary: int, layers: int = LAYERS, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.characters.weight  # tied embeddings
        for name, p in self.named_parameters():
            if p.ndim == 2:  # scale residual projections by depth, as GPT-2 does
                added = name.endswith(("proj.weight", "mlp.2.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if added else 0.02)

    def forward(self, x: mg.Tensor, past: list[Past] | None = None) -> mg.Tensor:
        """Return the logits. With `past`, the KV cache from `remembered`, x is the next character, (N, 1)."""
        return self.remembered(x, past)[0]

    def remembered(self, x: mg.Tensor, past: list[Past] | None = None) -> tuple[mg.Tensor, list[Past]]:
        """Return the logits and the updated KV cache, one entry per block."""
        start = past[0][0].shape[2] if past else 0
        h = self.characters(x) + self.places(mg.arange(start, start + x.shape[1]))
        kept = []
        for k, block in enumerate(self.blocks):
            h, one = block(h, past[k] if past else None)
            kept.append(one)
        return self.head(self.norm(h)), kept


@mg.no_grad()
def sample(model: GPT, text: mg.Tensor, count: int, temperature: float = 0.8, top_k: int = 20) -> mg.Tensor:
    """Extend `text`, (T,), by `count` characters, each sampled from the model's `top_k` most probable ones."""
    past = None
    for _ in range(count):
        if past is None or past[0][0].shape[2] == CONTEXT:  # context full: restart from its second half
            given, past = text[-CONTEXT // 2 :], None
        logits, past = model.remembered(given[None], past)
        best, which = (logits[0, -1] / temperature).topk(top_k)
        given = which[F.softmax(best, dim=-1).multinomial(1)]
        text = mg.cat([text, given])
    return text


def bigram(text: mg.Tensor, size: int, smoothing: float) -> mg.Tensor:
    """Return bigram log-probabilities, (size, size), from pair counts in `text` with additive `smoothing`."""
    pairs = mg.bincount(text[:-1] * size + text[1:], minlength=size * size).view(size, size) + smoothing
    return (pairs / pairs.sum(1, keepdim=True)).log()


def bigram_loss(train: mg.Tensor, test: mg.Tensor, size: int) -> float:
    """Return the bigram model's mean test loss; the smoothing is tuned on the last tenth of the training text."""
    cut = len(train) * 9 // 10

    def loss(known: mg.Tensor, new: mg.Tensor, smoothing: float) -> float:
        return -bigram(known, size, smoothing)[new[:-1], new[1:]].mean().item()

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
    numbers = vocabulary.encode(text[:20_000] if args.quick else text)
    train, test = numbers[: len(numbers) * 9 // 10], numbers[len(numbers) * 9 // 10 :]

    model = GPT(len(vocabulary), layers=1 if args.quick else LAYERS)
    loader = mg.data.DataLoader(windows(train), batch_size=8, shuffle=True, drop_last=True)
    tests = mg.data.DataLoader(windows(test), batch_size=8)
    optimizer = mg.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, args.epochs * len(loader), pct_start=0.1)
    history = fit(
        model, loader, optimizer, loss, epochs=args.epochs, scheduler=schedule, schedule="step", callbacks=[Clip()]
    )

    print(vocabulary.decode(sample(model.eval(), vocabulary.encode("def "), 100 if args.quick else 500)))
    found = evaluate(model, tests, {"loss": loss})
    finish(
        args,
        history.steps,
        bigram_loss=bigram_loss(train, test, len(vocabulary)),
        test_loss=found["loss"],
    )


if __name__ == "__main__":
    main()
