# %% [markdown]
# # 14 · Looking where it matters
#
# *Before: [13 · Attention](13_attention.ipynb) · Next: [15 · One step, one kernel](15_one_step_one_kernel.ipynb)*
#
# ## The question
#
# Here is a network that reads digits of 8 × 8 pixels, like the one of [lesson 9](09_optimizers.ipynb). It learns from
# upright ones, and then it is shown the same test digits turned, each by an angle drawn at random from −60 to 60
# degrees. (To be sure, each digit is turned three times. Counts are rounded to the nearest 5 of 100.)

# %%
import math

import matplotlib.pyplot as plt

import minigrad as mg

plt.style.use("lessons.mplstyle")
nn, F = mg.nn, mg.nn.functional

digits = mg.data.digits()
mg.manual_seed(0)
reader = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = mg.optim.Adam(reader.parameters(), lr=0.01)
for _ in range(12):
    for images, labels in mg.data.DataLoader(digits.train, batch_size=100, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(reader(images), labels).backward()
        optimizer.step()


# %%
def answers(model, images):
    with mg.no_grad():
        return model(images).argmax(1)


def right_of_100(model, images, labels):
    share = (answers(model, images) == labels).float().mean().item()
    return 5 * round(20 * share)


upright, labels = mg.cat([digits.test_x] * 3), mg.cat([digits.test_y] * 3)
turned = mg.data.transforms.RandomRotation(60, generator=mg.Generator(0))(upright)
print("upright:", right_of_100(reader, upright, labels), "of 100 are read")
print("turned: ", right_of_100(reader, turned, labels), "of 100 are read")


# %%
def show(ax, image, title="", color="#333333"):
    ax.imshow(image.detach().numpy(), cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(title, color=color, fontsize=13)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(True)


def show_read(axes, images):
    for ax, image, truth, answer in zip(axes, images, labels[some], answers(reader, images), strict=True):
        right = truth.item() == answer.item()
        show(ax, image[0], answer.item(), "#0072B2" if right else "#D55E00")


some = mg.tensor([689, 677, 816, 743, 407, 577, 260, 208, 817, 16])
fig, axes = plt.subplots(2, 10, figsize=(7.4, 2.1))
show_read(axes[0], upright[some])
show_read(axes[1], turned[some])
plt.show()


# %% [markdown]
# You should see ten digits, and below them the same ten, turned far. The title of each picture is what the network reads,
# in blue where that is right, in orange where it is wrong. Half of what lies aslant it takes for a 4. We can still read
# most of the lower row: we tilt our heads.
#
# **Can a network learn to tilt its head, by gradients alone?** It would have to choose, for each pixel of a new
# picture, a *position* to look at in the old one. (In [lesson 13](13_attention.ipynb) a network looked everywhere, with
# weights. Here it should look at one position, and choose which.) And “take the pixel at column 3.7, row 2.2” does not
# sound like a smooth function.
#
# ## Guess: nudge the angle
#
# To turn a picture, go through the pixels of the *result*, and ask of each where it comes from. (The other way round,
# where each pixel goes, would leave holes.) So take its position, counted from the middle of the picture, and turn that.
# Here is a 2, turned by 40 degrees, and where the 64 pixels have to look to turn it back:

# %%
def places_at(angle):
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    along = [k - 3.5 for k in range(8)]
    return [(3.5 + c * x - s * y, 3.5 + s * x + c * y) for y in along for x in along]


two = digits.test_x[8:9]
slanted = mg.data.transforms.RandomRotation((40, 40))(two)

fig, axes = plt.subplots(1, 3, figsize=(7, 2.6))
show(axes[0], two[0, 0], "upright")
show(axes[1], slanted[0, 0], "slanted")
show(axes[2], slanted[0, 0], "where to look")
axes[2].plot(*zip(*places_at(-40), strict=True), "o", color="#E69F00", markersize=4)
axes[2].set(xlim=(-1.6, 8.6), ylim=(8.6, -1.6))
plt.show()


# %% [markdown]
# You should see a 2, the 2 turned to the left, and a slanted grid of 64 orange dots on it. Go along its rows, and you
# meet the rows of the upright 2. But the dots fall between the pixels, and the first idea is to **round**: take the
# nearest pixel, and 0 outside of the picture. As a loss, we take the mean of the squared differences from the upright
# 2. Before you look: what is its derivative with respect to the angle? And is the loss a smooth curve?

# %%
def pixel(image, row, column):
    inside = 0 <= row < len(image) and 0 <= column < len(image[0])
    return image[row][column] if inside else 0.0


def nearest(image, x, y):
    return pixel(image, round(y), round(x))


def loss(angle, look, image):
    goal = two.flatten().tolist()
    found = [look(image, x, y) for x, y in places_at(angle)]
    return sum((f - g) ** 2 for f, g in zip(found, goal, strict=True)) / 64


pixels, h = slanted[0, 0].tolist(), 1e-6
for angle in (-60, -30, 0, 30):
    slope = (loss(angle + h, nearest, pixels) - loss(angle - h, nearest, pixels)) / (2 * h)
    print(f"derivative at {angle:3} degrees: {slope}")


# %%
def draw_losses(*looks):
    _, axes = plt.subplots(1, 2, figsize=(7, 3.4), width_ratios=(3, 2))
    for ax, (start, width) in zip(axes, ((-90, 180), (-30, 5)), strict=True):
        angles = [start + width * k / 720 for k in range(721)]
        for look, color in looks:
            losses = [loss(angle, look, pixels) for angle in angles]
            ax.plot(angles, losses, color=color, linewidth=1.4)
        ax.set(xlabel="angle (degrees)")
    axes[0].set(ylabel="loss", xticks=range(-90, 91, 45))
    axes[1].set_title("5 degrees of it", fontsize=12)
    plt.show()


rounded = (nearest, "#E69F00")
draw_losses(rounded)


# %% [markdown]
# The derivative is 0, wherever we nudge. You should see why: the curve has its lowest point near −40 degrees, as it should,
# but it is a **staircase**. On the right, 5 degrees of it: it is level, until one of the 64 dots crosses from one pixel
# to the next, and there it jumps. A gradient contains nothing of what comes after the jump. On such ground nobody
# learns.
#
# ## Build it: between four pixels
#
# A dot between four pixels should have a bit of each, and more of the nearer ones. Let $u$ be how far it has gone from
# the left two to the right two, from 0 to 1, and $v$ how far from the upper to the lower two. Then the four pixels $a$,
# $b$ (above) and $c$, $d$ (below) are mixed like this:
#
# $$f = (1-u)(1-v)\,a + u\,(1-v)\,b + (1-u)\,v\,c + u\,v\,d$$
#
# To compute values between given ones is to **interpolate**. This is **bilinear interpolation**: hold $v$ still, and it
# is a straight line in $u$; hold $u$ still, and it is one in $v$.

# %%
def cell(image, x, y):
    column, row = math.floor(x), math.floor(y)
    four = [pixel(image, row + i, column + j) for i in (0, 1) for j in (0, 1)]
    return row, column, x - column, y - row, four


def bilinear(image, x, y):
    _, _, u, v, (a, b, c, d) = cell(image, x, y)
    return (1 - u) * (1 - v) * a + u * (1 - v) * b + (1 - u) * v * c + u * v * d


tiny = [[1.0, 3.0], [5.0, 11.0]]
print(bilinear(tiny, 0, 0), bilinear(tiny, 1, 1), bilinear(tiny, 0.5, 0.25))

# %% [markdown]
# Where there is a pixel, we get that pixel. Half-way from left to right, and a quarter of the way down, we get 3.5. Why
# these weights? They are areas:

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6))
u, v, corners = 0.5, 0.25, ((0, 0), (1, 0), (0, 1), (1, 1))
for (x, y), color in zip(corners, ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=True):
    width, height = (u if x else 1 - u), (v if y else 1 - v)
    area = (0 if x else u), (0 if y else v)  # where it begins, on the other side
    left.add_patch(plt.Rectangle(area, width, height, color=color, alpha=0.5, linewidth=0))
    left.text(area[0] + width / 2, area[1] + height / 2, width * height, ha="center", va="center")
    ring = {"boxstyle": "circle", "facecolor": "white", "edgecolor": color, "linewidth": 3}
    for ax, text in ((left, "abcd"[x + 2 * y]), (right, f"{tiny[y][x]:g}")):
        ax.text(x, y, text, ha="center", va="center", bbox=ring)
fine = [k / 40 for k in range(41)]
right.contourf(fine, fine, [[bilinear(tiny, x, y) for x in fine] for y in fine], levels=range(1, 12))
_ = left.plot(u, v, "o", color="#D55E00"), right.plot(u, v, "o", color="#D55E00")
plt.setp((left, right), xlabel="$u$", ylabel="$v$", xlim=(-0.15, 1.15), ylim=(1.15, -0.15), aspect="equal")
plt.show()

# %% [markdown]
# You should see on the left the four pixels, and our point (the dot). Two lines through it cut the square into four
# areas, and these are the weights. Each pixel has the area on the *other* side, in its colour: the nearer the point
# comes, the larger that gets. On the right, what is found between 1, 3, 5 and 11, from dark to bright (in steps of 1,
# so that lines of equal brightness can be seen). It has no jumps.
#
# And now the loss:

# %%
draw_losses(rounded, (bilinear, "#0072B2"))


# %% [markdown]
# You should see a blue curve through the orange staircase. It can be walked down. (It still has small kinks, where a
# dot passes a pixel and begins to mix with other neighbours. A ReLU has a kink, too, and learns.)
#
# ### Its derivatives
#
# The formula is a sum of products, so its derivatives are easily read off. With respect to each *pixel*, the derivative
# is its weight. With respect to the *point*, it is
#
# $$\frac{\partial f}{\partial u} = (1-v)\,(b-a) + v\,(d-c) \qquad\qquad \frac{\partial f}{\partial v} = (1-u)\,(c-a) + u\,(d-b)$$
#
# the rise from left to right in the upper and in the lower pair, mixed; and the same from above to below. ($u$ grows with
# the column $x$ of the point, and $v$ with its row $y$. So these are the derivatives with respect to $x$ and $y$, too.)

# %%
def slopes(image, x, y):
    row, column, u, v, (a, b, c, d) = cell(image, x, y)
    by_x = (1 - v) * (b - a) + v * (d - c)
    by_y = (1 - u) * (c - a) + u * (d - b)
    by_pixel = {
        (row, column): (1 - u) * (1 - v),
        (row, column + 1): u * (1 - v),
        (row + 1, column): (1 - u) * v,
        (row + 1, column + 1): u * v,
    }
    return by_x, by_y, by_pixel


h = 0.125
print(slopes(tiny, 0.5, 0.25))
print("nudged by x:", (bilinear(tiny, 0.5 + h, 0.25) - bilinear(tiny, 0.5 - h, 0.25)) / (2 * h))
print("nudged by y:", (bilinear(tiny, 0.5, 0.25 + h) - bilinear(tiny, 0.5, 0.25 - h)) / (2 * h))

# %% [markdown]
# ## Draw it
#
# The same with `Value`s. Three mixes are enough: along the upper pair, along the lower pair, and between these
# two results.

# %%
# %load_ext minigrad_viz

a, b, c, d = [mg.Value(number, name) for number, name in zip((1.0, 3.0, 5.0, 11.0), "abcd", strict=True)]
u, v = mg.Value(0.5, "u"), mg.Value(0.25, "v")
top = a + u * (b - a)
bottom = c + u * (d - c)
f = top + v * (bottom - top)
f.backward()
f

# %% [markdown]
# You should see the derivatives from above: 3 at $u$, 6 at $v$, and at the pixels their weights, 0.375 and 0.125. So
# the loss has a gradient for *pixels*, which is not new. It also has one for the *point*, which says where to go: to
# the right and down, where this picture is brighter.
#
# ## A whole picture: the grid
#
# 64 points are a **grid**. We want to move it as a whole, by a few parameters. Let positions on a picture go from −1 (left,
# or top) to 1 (right, or bottom), so that they mean the same for any number of pixels. A matrix $\theta$ (“theta”) of 2
# × 3 elements determines where the pixel at $(x, y)$ of the result looks:
#
# $$\begin{pmatrix} x' \\ y' \end{pmatrix} = \begin{pmatrix} \theta_{00} & \theta_{01} & \theta_{02} \\ \theta_{10} & \theta_{11} & \theta_{12} \end{pmatrix} \begin{pmatrix} x \\ y \\ 1 \end{pmatrix}$$
#
# The last column is a shift. The others rotate, scale and shear. Together that is an **affine** map: straight lines
# stay straight, and parallels parallel. For an angle $\alpha$, the first two columns are $\cos\alpha, -\sin\alpha$
# above $\sin\alpha, \cos\alpha$, as in `places_at`.
#
# Where exactly is −1? There are two conventions, and functions that sample pictures have a parameter for it:
# `align_corners`.

# %%
fig, axes = plt.subplots(2, 1, figsize=(6.4, 3.4))
for ax, align, ends in zip(axes, (False, True), ((-0.5, 3.5), (0, 3)), strict=True):
    for k in range(4):
        ax.add_patch(plt.Rectangle((k - 0.5, -0.5), 1, 1, facecolor="#e0e0e0", edgecolor="white", linewidth=3))
        ax.plot(k, 0, "o", color="#0072B2")
        place = f"{(2 * k - 3) / (3 if align else 4):.3g}".replace("-", "−")
        ax.text(k, 0.72, place, color="#0072B2", ha="center", va="center")
    for end, name in zip(ends, ("−1", "1"), strict=True):
        ax.plot([end, end], [-0.7, 0.5], color="#D55E00", zorder=0 if align else 2)
        ax.text(end, -0.75, name, color="#D55E00", ha="center", va="top", fontweight="bold")
    ax.text(3.8, 0, f"align_corners={align}", va="center", family="monospace")
    ax.set(xlim=(-0.8, 6.4), ylim=(-1.3, 0.95), aspect="equal")
    ax.axis("off")
plt.show()


# %% [markdown]
# You should see a row of four pixels, twice. With `False`, which we use, −1 and 1 (orange) are the outer *edges*, and
# the middles of the pixels (blue) are half a pixel further in. With `True`, −1 and 1 are the *middles* of the first and
# the last pixel. Either is good. To confuse them shifts every point by a bit.

# %%
def places(n, like):  # (x, y, 1) of n x n pixels
    along = [(2 * k + 1) / n - 1 for k in range(n)]
    return like.new_tensor([[x, y, 1.0] for y in along for x in along])


def to_pixels(points, n):
    return n / 2 * (points + 1) - 0.5


def theta_of(angle):
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return mg.tensor([[c, -s, 0.0], [s, c, 0.0]])


at = to_pixels(places(8, mg.zeros(1)) @ theta_of(-40).T, 8)
print("as in the guess:", mg.allclose(at, mg.tensor(places_at(-40)), atol=1e-5))


# %% [markdown]
# ### And back
#
# All these are operations that we know, a matrix product, a factor and a sum, except for one: the sampling between. It
# gets a rule in a `Function`, as in [lesson 7](07_gradient_rules.ipynb). What arrives at an element of the result is passed
# on with all its derivatives: to its point, and to four pixels, where it is *added* to the contributions of others.

# %%
def spread(g, image, at):
    rows, to_image, to_points = image.tolist(), mg.zeros_like(image), []
    for share, (x, y) in zip(g.tolist(), at.tolist(), strict=True):
        by_x, by_y, by_pixel = slopes(rows, x, y)
        to_points.append((share * by_x, share * by_y))
        for (row, column), weight in by_pixel.items():
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                to_image[row, column] += share * weight
    return to_image, g.new_tensor(to_points)


# %%
class Sample(mg.autograd.Function):
    @staticmethod
    def forward(ctx, image, at):
        ctx.save_for_backward(image, at)
        rows = image.tolist()
        return image.new_tensor([bilinear(rows, x, y) for x, y in at.tolist()])

    @staticmethod
    def backward(ctx, g):
        return spread(g, *ctx.saved_tensors)


# %%
def warp(image, theta):
    n = len(image)
    points = places(n, theta) @ theta.T
    return Sample.apply(image, to_pixels(points, n)).view(n, n)


mg.manual_seed(0)
image = mg.randn(4, 4, dtype=mg.float64)
theta = mg.tensor([[0.83, -0.31, 0.07], [0.19, 0.77, -0.13]], dtype=mg.float64)
mg.gradcheck(warp, [image, theta])

# %% [markdown]
# So nudging agrees, for all 16 pixels and for all six elements of $\theta$. (Their values are chosen so that no point
# falls on a pixel: at a kink, nudging to both sides gives something between.) The chain from the result to $\theta$ has
# three links, the gradient of the points from the sampling, the factor of `to_pixels`, and the rule of the matrix product:
#
# $$\frac{\partial L}{\partial \theta} = \frac n2 \, D^\top P$$
#
# where row $k$ of $D$ has the two derivatives at point $k$, times what has arrived there, and row $k$ of $P$ is its
# position, $(x, y, 1)$. Here is what four matrices do:

# %%
matrices = {
    "as it is": mg.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "turned by 40°": theta_of(40),
    "half as large": mg.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]),
    "to the right": mg.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]),
}
fig, axes = plt.subplots(2, 4, figsize=(7.4, 4))
for (upper, lower), (title, theta) in zip(axes.T, matrices.items(), strict=True):
    at = to_pixels(places(8, theta) @ theta.T, 8)
    show(upper, two[0, 0], title)
    upper.plot(at[:, 0].numpy(), at[:, 1].numpy(), "o", color="#E69F00", markersize=3)
    upper.set(xlim=(-2, 9.9), ylim=(9.4, -2.4))
    show(lower, warp(two[0, 0], theta))
plt.show()

# %% [markdown]
# You should see above where the grid looks, and below what it finds. Everything is the other way round: a grid that
# turns to the right (clockwise) finds a picture that has turned to the left; a grid half as large finds the picture
# twice as large; a grid that goes to the right finds it further left.
#
# ## Step it
#
# The smallest case: our picture of 2 × 2, looked at from two positions. With $n = 2$, `to_pixels` amounts to adding ½.

# %%
from minigrad_viz import tour

image = mg.tensor(tiny, requires_grad=True)
theta = mg.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, -0.25]], requires_grad=True)
pair = mg.tensor([[-0.5, 0.0, 1.0], [0.5, 0.0, 1.0]])
with mg.record():
    points = pair @ theta.T
    at = points + 0.5
    found = Sample.apply(image, at)
    result = found.sum()
    result.backward()
print("at:   ", at.tolist(), " found:", found.tolist())
print("theta:", theta.grad.tolist())

# %%
stops = [
    (points, "Each row of pair is a position, (x, y, 1). θ says where it looks."),
    (at, "Counted in pixels: columns ¼ and ¾, both in row ¼."),
    (found, "Two samples, each mixed from the four pixels."),
    ("seed", "Back. The gradient of the result is 1, and so is that of both samples."),
    ((image, "backward"), "Each pixel gets its weights, added up over the two samples."),
    ((at, "backward"), "Each point gets its derivatives: 3 to the right for both, downwards 5 and 7."),
    ((theta, "backward"), "The product's rule. The two shifts get 3 + 3 and 5 + 7."),
]
tour(result, stops)

# %% [markdown]
# You should see the graph, and while this notebook runs the stops. Compare the gradient of $\theta$ with what was
# printed: 6 and 12 for the shifts, and 1 for $\theta_{10}$, since −½ · 5 + ½ · 7 = 1. To shear the grid so that it goes
# down on the right would find more.
#
# ## Compare with the library
#
# `F.affine_grid` computes the points, and `F.grid_sample` samples, for a whole batch of pictures with channels, (N, C, H,
# W). Values and gradients:

# %%
theta = theta_of(25).requires_grad_()
picture = two[0, 0].detach().requires_grad_()
weights = mg.randn(8, 8)
grid = F.affine_grid(theta[None], (1, 1, 8, 8), align_corners=False)
theirs = F.grid_sample(picture[None, None], grid, align_corners=False)[0, 0]
ours = warp(picture, theta)
print("grid:   ", mg.allclose(grid.view(64, 2), places(8, theta) @ theta.T, atol=1e-5))
print("samples:", mg.allclose(theirs, ours, atol=1e-5))
for name, x in (("theta", theta), ("picture", picture)):
    both = [mg.grad((result * weights).sum(), x, retain_graph=True)[0] for result in (theirs, ours)]
    print(f"gradient of {name}:", mg.allclose(*both, atol=1e-4))


# %% [markdown]
# ## One angle
#
# Now let gradients turn the 2 back. The angle is the only parameter. It begins at 0, and each step of plain SGD makes
# the squared difference from the upright 2 smaller:

# %%
def turn(angles):  # (N,) in radians -> (N, 2, 3)
    c, s, o = angles.cos(), angles.sin(), mg.zeros_like(angles)
    return mg.stack([mg.stack([c, -s, o], 1), mg.stack([s, c, o], 1)], 1)


def look(images, theta, **options):
    grid = F.affine_grid(theta, images.shape, align_corners=False)
    return F.grid_sample(images, grid, align_corners=False, **options)


# %%
def descend(image, steps=40, lr=0.15, **options):
    angle, path = mg.zeros(1, requires_grad=True), []
    optimizer = mg.optim.SGD([angle], lr=lr)
    for _ in range(steps + 1):
        optimizer.zero_grad()
        loss = ((look(image, turn(angle), **options) - two) ** 2).mean()
        path.append((math.degrees(angle.item()), loss.item()))
        loss.backward()
        optimizer.step()
    return path


# %%
path = descend(slanted)
fig = plt.figure(figsize=(7, 4.6))
upper, lower = fig.subfigures(2, 1, height_ratios=(3, 2))
ax = upper.subplots()
ax.plot([loss for _, loss in path])
ax.set(xlabel="step", ylabel="loss", ylim=(0, 0.21))
panels = lower.subplots(1, 5)
for ax, step in zip(panels, (0, 5, 10, 40), strict=False):
    angle = mg.tensor([math.radians(path[step][0])])
    show(ax, look(slanted, turn(angle))[0, 0], f"step {step}")
show(panels[4], two[0, 0], "the goal", "#0072B2")
plt.show()
print(f"{path[0][0]:.0f} degrees at first, {path[-1][0]:.0f} in the end")

# %% [markdown]
# You should see the loss fall, and below it the 2 as it rises. It ends within a degree or so of −40, and a little
# blurred: it has been mixed twice, when it was turned and when it was turned back.
#
# ## A spatial transformer
#
# Here we knew the upright picture. In general nobody does. But there is a network that reads upright digits, and its
# answer for a turned one has a loss. So put before it a small second network, which gets the picture and outputs an
# angle. The picture is turned by that, and then read:
#
# picture → angle → $\theta$ → grid → turned picture → reader → loss
#
# Every arrow has a gradient. So the gradient of the pixels goes back through the sampling to the grid, and from there
# to the network that computed the angle. That network is called a **localisation network**; together with grid and
# sampling it is a **spatial transformer**. *The reader learns nothing here*: the optimizer does not get its parameters.
# And the other network gets no label for the angle. It gets the digits turned at random, and from the loss only how
# badly they were read. (Its last layer begins at 0, so that it begins by leaving pictures as they are.)

# %%
mg.manual_seed(0)
localise = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
nn.init.zeros_(localise[-1].weight)
nn.init.zeros_(localise[-1].bias)


def straighten(images):
    return look(images, turn(localise(images)[:, 0]))


def read_straightened(images):
    return reader(straighten(images))


# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm

anew = mg.data.transforms.RandomRotation(60)
optimizer = mg.optim.Adam(localise.parameters(), lr=0.01)
for _ in tqdm(range(15), desc="learning where to look"):
    for images, truth in mg.data.DataLoader(digits.train, batch_size=100, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(read_straightened(anew(images)), truth).backward()
        optimizer.step()

# %%
print("turned, as they are:  ", right_of_100(reader, turned, labels), "of 100 are read")
print("turned, straightened: ", right_of_100(read_straightened, turned, labels), "of 100 are read")

fig, axes = plt.subplots(2, 10, figsize=(7.4, 2.1))
show_read(axes[0], turned[some])
show_read(axes[1], straighten(turned[some]))
plt.show()

# %% [markdown]
# You should see the turned digits of the beginning, and below them what the transformer makes of each: nearly all stand
# upright, and are read (blue). These are test digits; neither network has learned from them.
#
# Has it found the angle, or some trick? We turn all test digits by angles that we know, and plot its output. To turn
# back by as much, it should be the same angle with the opposite sign:

# %%
angles = (2 * mg.rand(297, generator=mg.Generator(1)) - 1) * math.pi / 3
with mg.no_grad():
    said = localise(look(digits.test_x, turn(angles)))[:, 0]

fig, ax = plt.subplots(figsize=(5.2, 4.2))
ax.plot([-60, 60], [60, -60], color="#999999", linewidth=1, linestyle="--")
ax.plot(angles.rad2deg().numpy(), said.rad2deg().numpy(), "o", color="#0072B2", markersize=4, alpha=0.6)
ax.set(xlabel="turned by (degrees)", ylabel="says (degrees)")
ax.set(xticks=range(-60, 61, 30), yticks=range(-60, 61, 30))
plt.show()

# %% [markdown]
# You should see a dot for each test digit, near the dashed line. It finds the angle, mostly to within some ten degrees.
# No label ever told it what an angle is.
#
# ## Break it: round again
#
# `grid_sample` can round, too, with `mode="nearest"`. Then the loss is the staircase, and its gradient shows it:

# %%
stuck = descend(slanted, mode="nearest")
print("angles:", {angle for angle, _ in stuck})

# %% [markdown]
# 40 steps, and one angle: it has not moved. There was no error message. The gradient was 0 and not missing, so a
# network before it would have learned nothing, in silence.
#
# ## Break it: half a turn
#
# Our 2 again, but turned by 140 degrees, so that it is nearer to upside down than to upright.

# %%
flipped = mg.data.transforms.RandomRotation((140, 140))(two)
path = descend(flipped)

fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=(4, 1))
around = range(-200, 151, 2)
axes[0].plot(around, [loss(angle, bilinear, flipped[0, 0].tolist()) for angle in around])
axes[0].plot(*zip(*path, strict=True), "o", color="#E69F00", markersize=5)
for angle, height, text in ((-140, -0.02, "upright"), (40, 0.03, "upside down"), (6, 0.21, "start")):
    axes[0].text(angle, height, text, ha="left" if text == "start" else "center", va="center")
axes[0].set(xlabel="angle (degrees)", ylabel="loss", xticks=range(-180, 121, 60), ylim=(-0.04, 0.38))
show(axes[1], look(flipped, turn(mg.tensor([math.radians(path[-1][0])])))[0, 0], "in the end")
plt.show()


# %% [markdown]
# You should see two valleys. The deep one, at −140, is where the 2 stands upright. We begin at 0, and the way down from
# there (orange) goes the other way, into the other valley: there the 2 stands upside down, with its strokes as far as
# possible on those of the goal. At such a point, a **local minimum**, every small turn makes things worse, and a
# gradient knows only small turns. So where we begin decides. One can begin at several angles, and keep the best. And
# with half turns even a reader cannot help: an upside-down 6 is a perfectly good 9.
#
# ## Break it: out of the picture
#
# Off the picture, `grid_sample` finds zeros (`padding_mode="zeros"`). So what if the grid has left it? We shift the
# grid of an upright 2 to the side, by $t$; at $t = 2$ it has moved by the whole width.

# %%
def shift_loss(t):
    one, zero = mg.ones_like(t), mg.zeros_like(t)
    theta = mg.stack([mg.stack([one, zero, t], 1), mg.stack([zero, one, zero], 1)], 1)
    return ((look(two.expand(len(t), 1, 8, 8), theta) - two) ** 2).mean((1, 2, 3))


shifts = mg.linspace(-3, 3, 241)
fig, ax = plt.subplots()
ax.plot(shifts.numpy(), shift_loss(shifts).numpy())
ax.set(xlabel="shift $t$", ylabel="loss", ylim=(0, None))
plt.show()

lost = mg.tensor([2.5], requires_grad=True)
shift_loss(lost).backward()
print("gradient at 2.5:", lost.grad.abs().item())

# %% [markdown]
# You should see a valley around 0, and to both sides, from about 1.8 on, a plain: there is nothing but zeros to see,
# and a small step shows nothing else. (`padding_mode="border"` repeats the last pixel of each row out there, which is
# as level.) So a transformer should begin with the whole picture in view. That is why ours began at an angle of 0. (The
# peaks in between are shifts by whole pixels. There the picture is sharp, and in the wrong place. Blurred, it disagrees
# less.)
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 14.1 · By hand
#
# The picture has the pixels 2 and 6 above, 10 and 4 below. The point is at $x = \frac14$ and $y = \frac12$, counted in
# pixels from the 2. What is found there, what is the derivative with respect to the 6, and what are those with respect
# to the point? Then: in which direction would you move the point to find more?

# %%
sampled = {"value": ..., "by the 6": ..., "by x": ..., "by y": ...}

# %%
lessons.check("14.1", sampled)

# %% [markdown]
# ### Exercise 14.2 · Where to look
#
# Write $\theta$, two lists of three numbers, so that the *picture* that is found
#
# - is twice as large, around its middle;
# - has moved to the right by a quarter of its width;
# - has turned by a quarter turn to the left (counter-clockwise: what was at the bottom is now on the right);
# - is the left half of the old one, scaled to the full width.

# %%
theta = {"twice as large": ..., "to the right": ..., "quarter turn": ..., "left half": ...}

# %%
lessons.check("14.2", theta)


# %% [markdown]
# ### Exercise 14.3 · A sampler of lines
#
# In one dimension, a picture is a list of values, and a point is between two of them. Write the sampler with its
# gradient: for a list `line` and a number `x` with $0 < x <$ `len(line) - 1`, not an integer, it returns three things:
# the value found; its derivatives with respect to the elements of `line`, a list as long as that; and its derivative
# with respect to `x`.

# %%
def sample_line(line, x):
    return ...


# %%
lessons.check("14.3", sample_line)


# %% [markdown]
# ### Exercise 14.4 · Two in one
#
# A picture is warped by the matrix `first`, and the result by `second`. Each time it gets blurred. Better to sample
# once: write a function that returns the one matrix, (2, 3), that looks where both together look. Both are tensors of
# that shape. (Follow a point of the last picture: where does it look, and where does *that* look?)

# %%
def both(first, second):
    return ...


# %%
lessons.check("14.4", both)

# %% [markdown]
# ## Where this comes from
#
# - M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, “Spatial transformer networks”, *Advances in Neural
#   Information Processing Systems* 28 (2015), pages 2017–2025: localisation network, grid and sampling, and the derivatives
#   with respect to the point (equations 6 and 7).
# - G. Wolberg, *Digital Image Warping*, IEEE Computer Society Press (1990): how pictures are moved, turned and sampled
#   between their pixels.
# - E. Alpaydin and C. Kaynak, “Optical recognition of handwritten digits”, UCI Machine Learning Repository (1998): the
#   digits.
#
# `examples/spatial_transformer.py` lets both networks learn together, with all six elements of $\theta$, and compares
# them with a single network of the same size; `examples/image_warper.py` straightens letters.
#
# Each of these steps launched many kernels. Next, they become one: **[15 · One step, one
# kernel](15_one_step_one_kernel.ipynb)**
