"""Train an autoencoder that compresses digits of 64 pixels to 8-dimensional codes.

The reconstructions must explain at least 80% of the pixelwise variance of the 297 test digits. The image (--picture)
shows one test digit per class, with its reconstruction below.
"""

from common import finish, options
from png import save_png, tile_horizontally

import minigrad as mg
from minigrad import nn
from minigrad.training import fit

args = options(__doc__, epochs=60, picture="autoencoder.png")
digits = mg.data.digits()
images = mg.data.TensorDataset(digits.train_x, digits.train_x)  # the target is the input
loader = mg.data.DataLoader(images, batch_size=50, shuffle=True)

encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8))
decoder = nn.Sequential(nn.Linear(8, 128), nn.GELU(), nn.Linear(128, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
model = nn.Sequential(encoder, decoder)
optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3)
schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
history = fit(model, loader, optimizer, nn.MSELoss(), epochs=args.epochs, scheduler=schedule)

with mg.no_grad():
    drawn = model(digits.test_x)
    error = ((drawn - digits.test_x) ** 2).mean()
    spread = digits.test_x.var(0).mean()
    kinds = mg.stack([(digits.test_y == kind).to(mg.int64).argmax() for kind in range(10)])  # the first of each class
    pairs = [tile_horizontally(x[kinds]) for x in (digits.test_x, drawn)]
save_png(args.picture, 1 - mg.cat(pairs))  # ink is 1 in the data, black in the image
finish(args, history.steps, test_error=error.item(), test_explained=1 - (error / spread).item())
