"""Train a convolutional network on handwritten digits with data augmentation.

Each digit is randomly rotated, translated and scaled. The test accuracy on 297 digits must be at least 98%. The
training loop is explicit, and equals PyTorch's except for the imports.
"""

from common import finish, options
from tqdm.auto import tqdm

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn
from minigrad.data import transforms
from minigrad.training import accuracy, evaluate

args = options(__doc__, epochs=20)
digits = mg.data.digits()
loader = mg.data.DataLoader(digits.train, batch_size=50, shuffle=True)
augment = transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


model = CNN()
optimizer = mg.optim.AdamW(model.parameters(), lr=1e-2)
schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=args.epochs, steps_per_epoch=len(loader))
losses = []
for _ in (bar := tqdm(range(args.epochs))):
    for x, y in loader:
        loss = F.cross_entropy(model(augment(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    bar.set_postfix(loss=losses[-1])

test = evaluate(model, mg.data.DataLoader(digits.test, batch_size=297), {"accuracy": accuracy})
finish(args, losses, test_accuracy=test["accuracy"])
