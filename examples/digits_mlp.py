"""Train a two-layer perceptron on handwritten digits of 8x8 pixels. Start with this example.

There are 1,500 training digits and 297 test digits; the test accuracy must be at least 96%.
"""

from common import finish, options

import minigrad as mg
from minigrad import nn
from minigrad.training import accuracy, evaluate, fit

args = options(__doc__, epochs=30)
digits = mg.data.digits()
loader = mg.data.DataLoader(digits.train, batch_size=50, shuffle=True)

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = mg.optim.AdamW(model.parameters(), lr=6e-3)
schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, epochs=args.epochs, steps_per_epoch=len(loader))
history = fit(
    model,
    loader,
    optimizer,
    nn.CrossEntropyLoss(),
    epochs=args.epochs,
    metrics={"accuracy": accuracy},
    scheduler=schedule,
    schedule="step",
)

test = evaluate(model, mg.data.DataLoader(digits.test, batch_size=297), {"accuracy": accuracy})
finish(args, history.steps, test_accuracy=test["accuracy"])
