"""Train a convolutional network on files in MNIST's IDX format: on MNIST itself, if its four files are available.

`minigrad data` lists where to download MNIST and where to put it. Without it, the shipped 8x8 digits are written to a
temporary folder in the same format, and read back with the same code. The test accuracy on these must be at least 96%
after twenty epochs; on MNIST's 60,000 images the network is trained for one epoch.
"""

import tempfile
from pathlib import Path

from common import finish, options

import minigrad as mg
from minigrad import nn
from minigrad.training import accuracy, evaluate, fit


def write_digits(folder):
    """Write the shipped digits as uint8 files with MNIST's names and value range."""
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
    nn.AdaptiveAvgPool2d(4),  # for images of any size
    nn.Flatten(),
    nn.Linear(32 * 4 * 4, 10),
)
optimizer = mg.optim.AdamW(model.parameters(), lr=1e-2)
history = fit(model, loader, optimizer, nn.CrossEntropyLoss(), epochs=args.epochs, metrics={"accuracy": accuracy})

result = evaluate(model, mg.data.DataLoader(test, batch_size=500), {"accuracy": accuracy})
finish(args, history.steps, images=len(train), pixels=train[0][0].numel(), test_accuracy=result["accuracy"])
