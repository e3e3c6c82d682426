"""Train a character-level LSTM to generate names of chemical elements, countries and stars.

One in ten of 633 names is held out for validation. Training stops early when the network overfits, and restores the
weights with the best validation loss. The figure (--figure) shows both losses.
"""

from __future__ import annotations

from pathlib import Path

from common import finish, options

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad.training import EarlyStop, evaluate, fit

END = "\n"  # start and end token
MAX_LENGTH = 17  # maximum length; a dozen longer country names would only add padding


class NameModel(nn.Module):
    """Character-level language model: maps letters, int (N, T), to next-letter logits, (N, T, letters)."""

    def __init__(self, letters: int, width: int = 128) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(width, letters)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.forward_state(x)[0]

    def forward_state(
        self, x: mg.Tensor, state: tuple[mg.Tensor, mg.Tensor] | None = None
    ) -> tuple[mg.Tensor, tuple[mg.Tensor, mg.Tensor]]:
        """Return the logits and the LSTM state."""
        h, state = self.lstm(self.letters(x), state)
        return self.head(self.dropout(h)), state


def rows(names: list[str], vocabulary: mg.data.Vocabulary) -> mg.data.TensorDataset:
    """Encode names as padded rows of inputs and targets; -100, the ignored index, marks padding in the targets."""
    longest = max(map(len, names)) + 1
    letters = mg.stack([vocabulary.encode((END + name).ljust(longest, END)) for name in names])
    targets = mg.full(letters.shape, -100)
    for row, name in zip(targets, names, strict=True):
        row[: len(name) + 1] = vocabulary.encode(name + END)
    return mg.data.TensorDataset(letters, targets)


def loss(logits: mg.Tensor, target: mg.Tensor) -> mg.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


@mg.no_grad()
def generate_names(model: NameModel, vocabulary: mg.data.Vocabulary, count: int, temperature: float = 0.6) -> list[str]:
    """Sample a batch of `count` names from the model, letter by letter."""
    letters, state = mg.full((count, 1), vocabulary.characters.index(END)), None
    names = [""] * count
    for _ in range(MAX_LENGTH):
        logits, state = model.forward_state(letters, state)
        letters = F.softmax(logits[:, 0] / temperature, dim=-1).multinomial(1)
        names = [text + letter for text, letter in zip(names, vocabulary.decode(letters[:, 0]), strict=True)]
    return [text.split(END)[0] for text in names]


def figure(path: Path, **curves: list[float]) -> None:
    """Plot curves over epochs to an SVG file."""
    top, bottom = max(map(max, curves.values())), min(map(min, curves.values()))
    lines = []
    for (name, ys), colour in zip(curves.items(), ("#0072b2", "#d55e00"), strict=True):
        xs = [40 + 360 * k / max(len(ys) - 1, 1) for k in range(len(ys))]
        at = [20 + 200 * (top - y) / (top - bottom) for y in ys]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, at, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="406" y="{at[-1] + 4:.1f}" fill="{colour}">{name} {ys[-1]:.2f}</text>')
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 260" font-family="sans-serif" font-size="12">\n'
        '<rect width="520" height="260" fill="white"/>\n'
        '<path d="M40 20V220H400" fill="none" stroke="#888"/>\n'
        f'<text x="36" y="24" text-anchor="end">{top:.1f}</text>\n'
        f'<text x="36" y="224" text-anchor="end">{bottom:.1f}</text>\n'
        f'<text x="220" y="244" text-anchor="middle">loss per letter, over {len(xs)} epochs</text>\n'
        + "\n".join(lines)
        + "\n</svg>\n",
        encoding="utf-8",
    )


def main() -> None:
    args = options(__doc__, epochs=60, figure="names_lstm.svg")
    kinds = "elements", "countries", "stars"
    names = [name.lower() for kind in kinds for name in mg.data.names(kind) if len(name) <= MAX_LENGTH]
    vocabulary = mg.data.Vocabulary([END, *names])
    data = rows(names, vocabulary)
    train, test = mg.data.random_split(data, [0.9, 0.1])
    loader = mg.data.DataLoader(train, batch_size=32, shuffle=True)
    test_loader = mg.data.DataLoader(test, batch_size=len(test))

    model = NameModel(len(vocabulary))
    optimizer = mg.optim.Adam(model.parameters(), lr=3e-3)
    history = fit(
        model, loader, optimizer, loss, epochs=args.epochs, validate=test_loader, early_stop=EarlyStop(patience=6)
    )

    figure(args.figure, train=history["loss"], test=history["val_loss"])
    samples = generate_names(model.eval(), vocabulary, 24)
    print(", ".join(samples))
    finish(
        args,
        history.steps,
        test_loss=evaluate(model, test_loader, {"loss": loss})["loss"],
        new_names=sum(name not in names for name in samples) / len(samples),
    )


if __name__ == "__main__":
    main()
