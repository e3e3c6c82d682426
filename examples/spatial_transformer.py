"""Compare a convolutional network with and without a spatial transformer on rotated digits.

The digits, upsampled to 16x16, are randomly rotated by up to 90 degrees. A convolutional network is trained twice with
the same seed: alone, and behind a spatial transformer, which predicts an affine transform with six parameters
(`affine_grid`) and resamples the image (`grid_sample`). The second network is narrower, so that both have about 9,400
parameters; it must have the higher test accuracy.

Jaderberg et al. 2015, "Spatial Transformer Networks".
"""

from common import finish, options

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn
from minigrad.data import transforms
from minigrad.training import accuracy, evaluate, fit


class RandomlyRotated(nn.Module):
    """Module that randomly rotates its input during training."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.turn = transforms.RandomRotation(90)

    def forward(self, x):
        return self.model(self.turn(x) if self.training else x)


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6))
        nn.init.zeros_(self.localization[-1].weight)  # start from the identity transform
        nn.init.eye_(self.localization[-1].bias.view(2, 3))

    def forward(self, x):
        theta = self.localization(x).reshape(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)


def cnn(channels):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(channels * 4 * 4, 10),
    )


args = options(__doc__, epochs=20, quick=4)
digits = mg.data.digits()
larger = [F.interpolate(x, size=(16, 16), mode="bilinear") for x in (digits.train_x, digits.test_x)]
train = mg.data.TensorDataset(larger[0], digits.train_y)
# Each test digit appears three times, at fixed random angles for all networks and seeds.
turn = transforms.RandomRotation(90, generator=mg.Generator(0))
test = mg.data.TensorDataset(mg.cat([turn(larger[1]) for _ in range(3)]), mg.cat([digits.test_y] * 3))

results = {}
for name, build in [("plain", lambda: cnn(40)), ("transformer", lambda: nn.Sequential(SpatialTransformer(), cnn(30)))]:
    mg.manual_seed(args.seed)
    model = RandomlyRotated(build())
    loader = mg.data.DataLoader(train, batch_size=50, shuffle=True)
    optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, epochs=args.epochs, steps_per_epoch=len(loader))
    loss = nn.CrossEntropyLoss()
    history = fit(model, loader, optimizer, loss, epochs=args.epochs, scheduler=schedule, schedule="step")
    results[f"{name}_parameters"] = sum(p.numel() for p in model.parameters())
    results[f"{name}_accuracy"] = evaluate(model, mg.data.DataLoader(test, 297), {"accuracy": accuracy})["accuracy"]

finish(args, history.steps, **results)
