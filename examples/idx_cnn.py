"""A convolutional network learns from files in MNIST's format, IDX: from MNIST, where its four files are there.

`minigrad data` says where they belong and where to get them; nothing is fetched. Where they are not, the digits of 8x8
are written as such files into a temporary folder first: the same reader reads both, and the same network learns both.
Of the 297 small test digits at least 96% must be read right, after twenty epochs; of MNIST's 60,000 it learns for one.
"""

import tempfile
from pathlib import Path

from common import finish, options

import minigrad as mg
from minigrad import nn
from minigrad.training import accuracy, evaluate, fit


def write_digits(folder):
    """The digits that are shipped as files with MNIST's names, of bytes from 0 to 255 as MNIST's are."""
    digits = mg.data.digits()
    parts = {"train": (digits.train_x, digits.train_y), "t10k": (digits.test_x, digits.test_y)}
    for name, (x, y) in parts.items():
        mg.data.write_idx(folder / f"{name}-images-idx3-ubyte.gz", (x[:, 0] * 255).numpy().astype("uint8"))
        mg.data.write_idx(folder / f"{name}-labels-idx1-ubyte.gz", y.numpy().astype("uint8"))


folder = mg.data.data_folder() / "mnist"
args = options(__doc__, epochs=1 if folder.is_dir() else 20)
with tempfile.TemporaryDirectory() as temporary:
    if not folder.is_dir():
        folder = Path(temporary)
        write_digits(folder)
    train, test = [mg.data.read_images(folder, train=part) for part in (True, False)]

loader = mg.data.DataLoader(train, batch_size=50, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),  # from pictures of any size
    nn.Flatten(),
    nn.Linear(32 * 4 * 4, 10),
)
optimizer = mg.optim.AdamW(model.parameters(), lr=1e-2)
history = fit(model, loader, optimizer, nn.CrossEntropyLoss(), epochs=args.epochs, metrics={"accuracy": accuracy})

result = evaluate(model, mg.data.DataLoader(test, batch_size=500), {"accuracy": accuracy})
finish(args, history.steps, images=len(train), pixels=train[0][0].numel(), test_accuracy=result["accuracy"])
