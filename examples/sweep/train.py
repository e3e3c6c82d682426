"""Training function for `minigrad sweep sweep.toml`: a two-layer network on handwritten digits.

It does not use the test digits, as selecting hyperparameters on them would bias the test accuracy.
"""

import minigrad as mg
from minigrad import nn
from minigrad.data import DataLoader, random_split
from minigrad.training import accuracy, fit

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


def train(lr, width, activation, seed, report, epochs=15):
    train_set, validation_set = random_split(mg.data.digits().train, [1200, 300], generator=mg.Generator(0))
    mg.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, width), ACTIVATIONS[activation](), nn.Linear(width, 10))
    fit(
        model,
        DataLoader(train_set, batch_size=50, shuffle=True),
        mg.optim.SGD(model.parameters(), lr=lr, momentum=0.9),
        nn.CrossEntropyLoss(),
        epochs=epochs,
        validate=DataLoader(validation_set, batch_size=300),
        metrics={"accuracy": accuracy},
        progress=False,
        callbacks=[report],
    )
