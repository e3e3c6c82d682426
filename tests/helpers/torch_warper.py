"""The network of examples/image_warper.py in PyTorch. As a program, this file trains it and saves its weights."""

import runpy
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def network() -> Any:
    """Return the network with random weights. PyTorch is imported here, since tests read this file without it."""
    import torch.nn.functional as F
    from torch import nn

    class Warper(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 5, stride=2, padding=2, bias=False)
            self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
            self.conv3 = nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False)
            self.localization = nn.Linear(16 * 4 * 4, 6)

        def localise(self, x):
            features = F.relu(F.instance_norm(self.conv1(x)))
            features = F.relu(F.instance_norm(self.conv2(features)))
            features = F.relu(F.instance_norm(self.conv3(features)))
            return self.localization(features.flatten(1)).reshape(-1, 2, 3)

        def forward(self, x):
            return F.grid_sample(x, F.affine_grid(self.localise(x), x.shape, align_corners=False), align_corners=False)

    return Warper()


def train(letters: Any, steps: int) -> Any:
    """Train a network on known transformations, with new letters at each step."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        images, _, theta = [torch.from_numpy(x.numpy()) for x in letters(64)]
        loss = torch.nn.functional.mse_loss(model.look(images), theta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(step, loss.item(), flush=True)
    return model


if __name__ == "__main__":
    from safetensors.torch import save_file

    import minigrad as mg

    sys.path.insert(0, str(EXAMPLES))
    mg.set_default_device("numpy")
    mg.manual_seed(1000)
    example = runpy.run_path(str(EXAMPLES / "image_warper.py"))
    save_file(train(example["letters"], 1500).state_dict(), example["WEIGHTS"])
