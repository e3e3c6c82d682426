"""Straighten images of letters with a network trained in PyTorch, which predicts an affine transform and applies it.

It runs inference only, with weights from a file. The letters are synthetic, rotated by up to 60 degrees, translated and
shrunk. The network must remove at least three quarters of the squared pixel error. The image (--picture) shows the
inputs, with the outputs below. tests/helpers/torch_warper.py defines and trains the network in PyTorch; a test compares
the outputs of both.
"""

from math import pi
from pathlib import Path

from common import finish, options
from png import save_png, tile_horizontally

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn

WEIGHTS = Path(__file__).with_suffix(".safetensors")
BARS = {  # (x, y, half width, half height) of each bar of a letter, in [-1, 1]
    "L": [(-0.3, 0.0, 0.1, 0.6), (0.0, 0.5, 0.4, 0.1)],
    "T": [(0.0, 0.0, 0.1, 0.6), (0.0, -0.5, 0.4, 0.1)],
    "F": [(-0.3, 0.0, 0.1, 0.6), (0.0, -0.5, 0.4, 0.1), (-0.05, 0.0, 0.25, 0.1)],
    "E": [(-0.3, 0.0, 0.1, 0.6), (0.0, -0.5, 0.4, 0.1), (-0.05, 0.0, 0.25, 0.1), (0.0, 0.5, 0.4, 0.1)],
}


class Warper(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=2, padding=2, bias=False)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.conv3 = nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False)
        self.localization = nn.Linear(16 * 4 * 4, 6)

    def predict_theta(self, x):
        """Predict the affine sampling matrix of each image, (N, 2, 3)."""
        features = F.relu(F.instance_norm(self.conv1(x)))
        features = F.relu(F.instance_norm(self.conv2(features)))
        features = F.relu(F.instance_norm(self.conv3(features)))
        return self.localization(features.flatten(1)).reshape(-1, 2, 3)

    def forward(self, x):
        return F.grid_sample(x, F.affine_grid(self.predict_theta(x), x.shape, align_corners=False), align_corners=False)


def letters(count):
    """Draw random letters: transformed images, upright images, (count, 1, 32, 32) each, and the true matrices."""
    kind = mg.randint(len(BARS), (count,))
    angle, size = (mg.rand(count) * 2 - 1) * (pi / 3), 1 + 0.4 * mg.rand(count)
    right, down = (mg.rand(2, count) * 2 - 1) * 0.2
    coordinates = (mg.arange(32) + 0.5) / 16 - 1
    y, x = mg.meshgrid(coordinates, coordinates, indexing="ij")

    def draw(x, y):  # x, y: coordinates of the pixels on the upright letter, (count, 32, 32)
        letters_drawn = []
        for bars in BARS.values():
            parts = [mg.sigmoid(25 * (w - (x - a).abs())) * mg.sigmoid(25 * (h - (y - b).abs())) for a, b, w, h in bars]
            letters_drawn.append(mg.stack(parts).max(0).values)
        return sum(one * (kind == k).reshape(-1, 1, 1) for k, one in enumerate(letters_drawn))[:, None]

    cos, sin = angle.cos(), angle.sin()
    column = [t.reshape(-1, 1, 1) for t in (cos * size, sin * size, right, down)]
    scaled_cos, scaled_sin, shifted_x, shifted_y = column[0], column[1], x - column[2], y - column[3]
    transformed = draw(scaled_cos * shifted_x - scaled_sin * shifted_y, scaled_sin * shifted_x + scaled_cos * shifted_y)
    theta = mg.stack([cos / size, sin / size, right, -sin / size, cos / size, down], 1).reshape(-1, 2, 3)
    return transformed, draw(x.expand(count, 32, 32), y.expand(count, 32, 32)), theta


if __name__ == "__main__":
    args = options(__doc__, epochs=1, picture="image_warper.png")
    model = Warper()
    model.load_state_dict(mg.load(WEIGHTS))
    transformed, upright, _ = letters(40 if args.quick else 1000)
    with mg.no_grad():
        straight = model(transformed)
    before, after = [((x - upright) ** 2).mean().item() for x in (transformed, straight)]
    save_png(args.picture, 1 - mg.cat([tile_horizontally(x[:10]) for x in (transformed, straight)]), scale=3)
    finish(args, letters=len(transformed), error_before=before, error_after=after, share_gone=1 - after / before)
