# %% [markdown]
# # 10 · Convolution
#
# *Before: [9 · Optimizers](09_optimizers.ipynb) · Next: [11 · When it goes wrong](11_when_it_goes_wrong.ipynb)*

# %% [markdown]
# ## The question
#
# A network in [lesson 9](09_optimizers.ipynb) read handwritten digits. But its input was not quite a picture: it was
# a list of 64 values, the pixels of 8 rows, one after the other. Does it matter that they are a picture? Let us put the 64
# into another order, the same for all digits.

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

import minigrad as mg

plt.style.use("lessons.mplstyle")
nn, F = mg.nn, mg.nn.functional
heat = LinearSegmentedColormap.from_list("heat", ["#b3287e", "white", "#1b7837"])


def show(ax, table, title="", signs=False):
    most = table.abs().max().item()
    colors = {"cmap": heat, "vmin": -most} if signs else {"cmap": "gray_r", "vmin": 0}
    ax.imshow(table.numpy(), vmax=most, **colors)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=12)
    ax.spines[:].set_visible(True)


# %%
digits = mg.data.digits()
mg.manual_seed(0)
order = mg.randperm(64)  # the numbers from 0 to 63, shuffled

fig, axes = plt.subplots(2, 6, figsize=(6.4, 2.3))
for (upper, lower), image in zip(axes.T, digits.test_x[[9, 26, 37, 12, 27, 6]], strict=True):
    show(upper, image[0])
    show(lower, image.flatten()[order].view(8, 8))
plt.show()

# %% [markdown]
# You should see six digits, and below each one its own 64 pixels in the new order. We read the upper row at a glance, and
# cannot read the lower one. To a linear layer they are alike: put its weights into the new order, too, and every score is the
# same sum, with its terms in another order.
#
# So a linear layer makes no use of what is next to what. What it has learned about a stroke in one place, it cannot use
# in another place, where the same stroke meets other weights. And it is expensive, with a weight for each pair of a pixel
# and an output. To compute a picture of a million pixels from another one takes a million million weights, four terabytes.
#
# **Can a few weights, used again at every position, do better?**
#
# ## Guess: what will nine weights see?
#
# A **filter** is a small table of weights. Lay it on the picture, multiply each weight with the pixel beneath it, and add
# up: that is one value. Move the filter by one pixel, and do it again. These values, each in its position, are a picture
# again: a **feature map**. (Many call a filter a *kernel*. For us that word has a meaning already, from [lesson
# 8](08_kernels_and_devices.ipynb).) Here is a filter of three rows and three columns, on the upper left corner of a digit:

# %%
zero = digits.test_x[9, 0]
edge = mg.tensor([[-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])

blue, orange = "#0072B2", "#D55E00"
fig, ax = plt.subplots(figsize=(3.4, 3.4))
show(ax, zero)
frame = {"facecolor": "#ffffffcc", "edgecolor": blue, "linewidth": 3}
ax.add_patch(plt.Rectangle((-0.45, -0.45), 3, 3, **frame))
for row in range(3):
    for column, text in enumerate(("−1", "0", "1")):
        ax.text(column, row, text, color=blue, ha="center", va="center")
plt.show()


# %% [markdown]
# You should see a 0, and on it the nine weights: −1 in the left column, 0 in the middle, 1 on the right. So an element of the
# map is the difference between the ink on the right of a position and on the left.
#
# Before you go on: where on this digit will the map be positive, where negative, and where 0? And how many weights would a
# linear layer need to make a map of this size?
#
# ## Build it: four loops
#
# Two loops for the position of the filter, two for the weight in it. On a line of $n$ pixels, a filter of $k$ has $n - k + 1$
# positions: here $8 - 3 + 1 = 6$.

# %%
def correlate(x, w):
    (height, width), (rows, columns) = x.shape, w.shape
    y = mg.zeros(height - rows + 1, width - columns + 1, dtype=x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(rows):
                for b in range(columns):
                    y[i, j] += w[a, b] * x[i + a, j + b]
    return y


edges = correlate(zero, edge)

fig, axes = plt.subplots(1, 3, figsize=(6.4, 2.5), width_ratios=(8, 6, 6))
show(axes[0], zero, "the digit")
show(axes[1], edges, "edge", signs=True)
show(axes[2], correlate(zero, edge.T), "edge.T", signs=True)
plt.show()

# %% [markdown]
# You should see the map in the middle: green (positive) where, from left to right, ink begins, and magenta (negative) where it
# ends. So both strokes of the 0 have a green side and a magenta side. It is pale where left and right have about equal ink, as
# in the arc at the top. On the right, the transposed filter does the same from top to bottom. Such a filter is called an
# *edge detector*. We chose its weights; a network will have to find its own.
#
# And the count: a linear layer from 64 pixels to 36 outputs has 64 · 36 = 2,304 weights. The filter has 9.
#
# ### It is a linear layer, after all
#
# Each element of the map is a sum of weighted pixels. So there *is* a linear layer that does what the filter does. Its weights
# are the derivatives of the map with respect to the pixels, the Jacobian of [lesson 7](07_gradient_rules.ipynb). Here they
# are, for a filter of nine different weights. (`F.conv2d` is the library's filter. It expects four dimensions, to which we
# shall come.)

# %%
nine = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


def with_nine(x):
    return F.conv2d(x[None, None], nine[None, None])[0, 0]


layer = mg.autograd.jacobian(with_nine, zero).view(36, 64)

fig, ax = plt.subplots(figsize=(6.4, 4.1))
ax.pcolormesh(layer.numpy(), cmap=heat, vmin=-9, vmax=9, edgecolor="#eeeeee", linewidth=0.3)
ax.invert_yaxis()
ax.set(xlabel="the 64 pixels", ylabel="the 36 elements of the map")
ax.set(xticks=range(0, 65, 8), yticks=range(0, 37, 6))
plt.show()

# %% [markdown]
# You should see a table with a row for each element of the map, nearly all of it white, 0. Each row has the same nine
# weights, the paler the smaller, in three groups of three, as the three rows of the filter are 8 pixels apart. From row to
# row they move on by one pixel, and by three where the filter begins a new line. So a filter is a linear layer under two
# conditions:
#
# - each output depends only on its own neighbourhood; all other weights are 0;
# - all outputs have the same weights. This is called **weight sharing**.
#
# ### Why it is called convolution
#
# What our loops compute, mathematics calls a **correlation**. A **convolution** has a minus in place of the plus:
#
# $$\text{correlation:} \;\; y_{ij} = \sum_{a,b} w_{ab} \, x_{i+a,\,j+b}
# \qquad\qquad \text{convolution:} \;\; y_{ij} = \sum_{a,b} w_{ab} \, x_{i-a,\,j-b}$$
#
# What does the sign do? Take a picture with ink in a single pixel, in row $m$. In a correlation, a weight in row $a$ of the
# filter meets it where $i + a = m$, at position $i = m - a$: what is lower in the filter comes out *higher*. In a convolution,
# $i = m + a$.

# %%
dot = mg.zeros(5, 5)
dot[2, 2] = 1.0
print("correlation:", correlate(dot, nine).tolist())
print("convolution:", correlate(dot, nine.flip(0, 1)).tolist())  # turned round first


# %% [markdown]
# A convolution prints the filter like a stamp. A correlation prints it turned by half a turn. And each becomes the other if
# the filter is turned first, as in the last line (`flip(0, 1)` turns both dimensions round). A network finds its own
# weights, and could as well find them turned. So the field computes the one without the minus, and says “convolution” all
# the same. So shall we. But keep the minus in mind: it comes back.
#
# ### Windows, without copying
#
# Loops in Python are slow. The part of the picture under the filter is a **window**. All the windows together make a tensor of
# four dimensions: row and column of the position, row and column in the window. Where is its element $(i, j, a, b)$? In row
# $i + a$ and column $j + b$ of the picture. If $s$ and $t$ are the strides of the picture, that is the position
#
# $$(i + a) \cdot s + (j + b) \cdot t = i \cdot s + j \cdot t + a \cdot s + b \cdot t$$
#
# So it is a view, with the strides $(s, t, s, t)$, and as in [lesson 6](06_tensors.ipynb) no element has to move.
# (`as_strided` makes a view of any shape and strides. What `stride` and `others` are for comes below.)

# %%
def windows(x, k, stride=1):
    *others, height, width = x.shape
    *steps, down, right = x.stride()
    places = (height - k) // stride + 1, (width - k) // stride + 1
    strides = (*steps, stride * down, stride * right, down, right)
    return x.as_strided((*others, *places, k, k), strides)


x = mg.arange(16.0).view(4, 4)
seen = windows(x, 2)
table = seen.reshape(9, 4)
for name, tensor in (("windows", seen), ("table", table)):
    print(f"{name:<7} {tensor.shape!s:>12}  strides {tensor.stride()!s:>12}", end="  ")
    print("shares the storage of x:", tensor.storage is x.storage)

# %% [markdown]
# Make a row of each window, and a column of the filter. Then **all the sums are one matrix product**, a single operation.
# These rows do have to be copied, since the windows are not evenly spaced in the storage. The copy is known as *im2col*,
# “image to columns”. (In the library, each window is a column.)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.0), width_ratios=(4, 5))
for ax, numbers, title in ((left, x, "a picture"), (right, table, "a row for each window")):
    ax.imshow(numbers.numpy(), vmin=0, vmax=15)
    for row, line in enumerate(numbers.tolist()):
        for column, number in enumerate(line):
            ink = "white" if number < 8 else "black"
            ax.text(column, row, f"{number:g}", color=ink, ha="center", va="center")
    ax.set_title(title)
    ax.axis("off")
frame = {"fill": False, "edgecolor": orange, "linewidth": 3}
left.add_patch(plt.Rectangle((-0.45, -0.45), 2, 2, **frame))
right.add_patch(plt.Rectangle((-0.45, -0.45), 3.9, 0.9, **frame))
plt.show()

# %% [markdown]
# You should see a picture of 16 elements, and its nine windows of 2 × 2 as rows. The first of them is framed. An element in the
# middle, like 5, appears four times, one in a corner once. Now the digit, and whether the sums are those of the loops:

# %%
by_matmul = windows(zero, 3).reshape(36, 9) @ edge.reshape(9)
mg.allclose(by_matmul.view(6, 6), edges, atol=1e-6)

# %% [markdown]
# ### Padding, stride, and the size that comes out
#
# Two numbers determine where the windows are. Under a filter of 3 × 3, a pixel in the middle of a digit is in nine windows, and
# one in a corner in a single one: the border has little influence. **Padding** puts $p$ rows and columns of zeros on each side of
# the picture, so that pixels at the border can be in the middle of a window, too. The **stride** $s$ is how far the filter
# moves from position to position. (It *is* a stride, of the view: look at `windows`.) On a line of $n$ pixels, a window may begin
# at 0, $s$, $2s$ and so on, as long as it does not end beyond the padding: up to $n + 2p - k$. So the number of positions is
#
# $$\left\lfloor \frac{n + 2p - k}{s} \right\rfloor + 1$$
#
# where $\lfloor\;\rfloor$ means rounded down.

# %%
fig, axes = plt.subplots(1, 3, figsize=(6.4, 2.1))
for ax, (padding, stride) in zip(axes, ((0, 1), (1, 1), (1, 2)), strict=True):
    for pixel in range(-padding, 6 + padding):
        color = "#bbbbbb" if 0 <= pixel < 6 else "white"
        ax.add_patch(plt.Rectangle((pixel, 0), 1, 1, facecolor=color, edgecolor="#666666"))
    count = (6 + 2 * padding - 3) // stride + 1
    for place in range(count):
        left = place * stride - padding
        ax.plot([left + 0.1, left + 2.9], [-0.5 - 0.5 * place] * 2, color=blue, linewidth=4)
    ax.set(xlim=(-1.2, 7.2), ylim=(-3.3, 1.1))
    ax.set_title(f"$p$ = {padding}, $s$ = {stride}: {count} positions", fontsize=12)
    ax.axis("off")
plt.show()


# %% [markdown]
# You should see a line of six pixels (grey) three times, with zeros (white) on both sides where $p = 1$. The blue bars are
# the positions of a filter with $k = 3$. A padding of 1 makes them as many as there are pixels. With a stride of 2 they are
# three, and no window reaches the zero on the right: that is the rounding.
#
# ### Many filters, many channels
#
# A colour photo has three values for each pixel, red, green and blue. They are called **channels**. A filter has a table
# for each channel then, and adds up over the channels, too: it still computes *one* map. A layer has several filters, and so
# computes several maps. They are the channels of the picture for the next layer. The pictures of a mini-batch are a tensor
# (pictures, channels, rows, columns), the weights of a layer are (filters, channels, rows, columns), and a matrix product does
# the rest:

# %%
def conv2d(x, w, stride=1, padding=0):
    seen = windows(F.pad(x, (padding,) * 4), w.shape[-1], stride)
    pictures, channels, rows, columns, k, _ = seen.shape
    table = seen.permute(0, 2, 3, 1, 4, 5).reshape(pictures * rows * columns, channels * k * k)
    y = table @ w.reshape(len(w), channels * k * k).T
    return y.view(pictures, rows, columns, len(w)).permute(0, 3, 1, 2)


conv2d(mg.zeros(100, 3, 32, 32), mg.zeros(16, 3, 5, 5), stride=2, padding=2).shape

# %% [markdown]
# (`permute` puts dimensions into another order. Pictures and channels are what `windows` called `others`.) Each of 100
# colour photos, 32 × 32, has become 16 maps of 16 × 16.
#
# ## Draw it: one weight, three positions
#
# How does such a weight learn? Here is the smallest example, in `Value`s: a picture of a single line, four pixels long, and
# a filter of two weights, which has three positions on it. The loss is made up, so that the $y$ get the gradients 1, 2 and −1.

# %%
# %load_ext minigrad_viz

line = [mg.Value(number, f"x{k}") for k, number in enumerate((1.0, 3.0, 2.0, 0.5))]
w0, w1 = mg.Value(-1.0, "w0"), mg.Value(1.0, "w1")
y0, y1, y2 = [w0 * line[i] + w1 * line[i + 1] for i in range(3)]
loss = y0 + 2 * y1 - y2
loss.backward()
loss


# %% [markdown]
# You should see that *three* lines go out from each weight, one to each position, and Σ3 beside its gradient: the contributions
# of all positions have been added up. So weight sharing needs no new rule: [gradients add up](03_gradients_add_up.ipynb).
# The two pixels in the middle have two lines each, and those at the ends one.
#
# ## The gradient: count the paths
#
# Let $G$ be the gradient of the map $y$. Where is the weight $w_{ab}$ used? At each position $(i, j)$, with the derivative
# $x_{i+a,\,j+b}$. And where is the pixel $x_{mn}$ used? With each weight $w_{ab}$ at one position, that where $i + a = m$ and
# $j + b = n$, if there is such a position. So
#
# $$\frac{\partial L}{\partial w_{ab}} = \sum_{i,j} G_{ij} \, x_{i+a,\,j+b}
# \qquad\qquad \frac{\partial L}{\partial x_{mn}} = \sum_{a,b} w_{ab} \, G_{m-a,\,n-b}$$
#
# Look at the signs. The first is a *correlation*, of the picture, with $G$ for a filter. The second has the minus: it is a
# true *convolution*, of $G$ with our filter. Each element of $G$ stamps the filter, times itself, onto the window of its
# position, and where stamps overlap they add up. Our loops can do that if we turn the filter and pad $G$ with $k - 1$ zeros on
# each side, so that positions where the two barely touch count, too. That is called a **full** convolution.

# %%
def spread(g, w):
    rows, columns = w.shape
    around = (columns - 1, columns - 1, rows - 1, rows - 1)
    return correlate(F.pad(g, around), w.flip(0, 1))


x, w = mg.tensor([[1.0, 3.0, 2.0, 0.5]]), mg.tensor([[-1.0, 1.0]])
g = mg.tensor([[1.0, 2.0, -1.0]])
print("to w:", correlate(x, g).tolist(), "     in the picture above:", [w0.grad, w1.grad])
print("to x:", spread(g, w).tolist(), "in the picture above:", [value.grad for value in line])


# %% [markdown]
# And in two dimensions, by nudging. As in lesson 7, a `Function` has both directions, and gradcheck compares them:

# %%
class Correlate(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return correlate(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return spread(g, w), correlate(x, g)


x, w = mg.randn(5, 4, dtype=mg.float64), mg.randn(3, 2, dtype=mg.float64)
mg.gradcheck(Correlate.apply, [x, w])


# %% [markdown]
# ## Pooling: the winner takes all
#
# Networks for pictures have one more kind of layer, which has no weights. **Max pooling** keeps the largest element of each
# window. Mostly its windows are 2 × 2 with a stride of 2, so that they do not overlap, and the map becomes half as high and
# half as wide. It still shows that there is an edge, but no longer quite where.
#
# And its gradient? Nudge an element that is not the largest of its window: nothing moves. Nudge the largest: the result moves
# as far. So the derivative is 1 for the largest, which gets all of the gradient, and 0 for the others.

# %%
def pool(x):
    return windows(x, 2, stride=2).amax((-2, -1))


def pool_rule(g, y, x):
    def enlarged(t):  # each element twice in both directions
        return t.repeat_interleave(2, 0).repeat_interleave(2, 1)

    return enlarged(g) * (x == enlarged(y))


x = mg.tensor([[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 8.0, 6.0]])
print(pool(x).tolist())
print(pool_rule(mg.tensor([[10.0, 20.0]]), pool(x), x).tolist())

# %% [markdown]
# The 5 and the 8 have won their windows, and get the 10 and the 20. (Of two equal winners, our rule would give the gradient to
# both. The library gives it to the first.)
#
# ## Step it
#
# Now both in one graph of tensors: a picture of 3 × 3, a filter of 2 × 2 with four positions, and a pool that takes the largest
# of the four.

# %%
x = mg.tensor([[[[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [2.0, 0.0, 1.0]]]], requires_grad=True)
w = mg.tensor([[[[1.0, -1.0], [0.5, 2.0]]]], requires_grad=True)
with mg.record():
    y = F.conv2d(x, w)
    p = F.max_pool2d(y, 2)
    loss = p.sum()
    loss.backward()

for name, tensor in (("y", y), ("w", w), ("gradient of w", w.grad), ("gradient of x", x.grad)):
    print(f"{name:<13}", tensor[0, 0].tolist())

# %% [markdown]
# You should see in the printed values that 8.5, at the upper right of $y$, is the largest, and alone gets anything. So the
# gradient of $w$ *is* the window in the upper right of $x$, 2 and 0 over 1 and 3. And the gradient of $x$ *is* the filter,
# stamped there: 1 and −1 over 0.5 and 2. The player shows how they are computed:

# %%
from minigrad_viz import tour

stops = [
    (y, "Four windows, four sums."),
    (p, "The largest of the four is 8.5, at the upper right."),
    ("seed", "Back: the gradient of the loss itself is 1."),
    ((y, "backward"), "The winner takes all: 1 at its place, 0 at the three others."),
    ((x, "backward"), "One stamp: the filter, at the upper right of the picture."),
    ((w, "backward"), "One window: the four pixels that won, as they are."),
]
tour(loss, stops)

# %% [markdown]
# You should see the heatmaps of the values and, on cream, of the gradients. While this notebook runs, the stops lead through
# them; click on a box for its values.
#
# ## Compare with the library
#
# `F.conv2d` has rules for its gradients, where our `conv2d` leaves them to those of the matrix product and the view. Are
# result, gradient of $x$ and gradient of $w$ the same? (`mg.grad(y, inputs, g)` computes them from a given $g$.)

# %%
x = mg.randn(2, 3, 7, 7, dtype=mg.float64, requires_grad=True)
w = mg.randn(4, 3, 3, 3, dtype=mg.float64, requires_grad=True)

for stride, padding in ((1, 0), (1, 1), (2, 1), (3, 2)):
    ours, theirs = conv2d(x, w, stride, padding), F.conv2d(x, w, stride=stride, padding=padding)
    g = mg.randn(ours.shape, dtype=mg.float64)
    one, other = [(y, *mg.grad(y, (x, w), g)) for y in (ours, theirs)]
    same = [mg.allclose(our, their) for our, their in zip(one, other, strict=True)]
    print(f"stride {stride}, padding {padding}: {theirs.shape}", *same)

# %% [markdown]
# `F.unfold` is im2col. The layer, `nn.Conv2d`, holds its weights, and has a bias for each filter, which it adds to all of
# its map:

# %%
small = mg.arange(16.0).view(1, 1, 4, 4)
print("unfold:    ", mg.equal(F.unfold(small, 2)[0].T, table))
print("max_pool2d:", mg.equal(F.max_pool2d(small, 2)[0, 0], pool(small[0, 0])))

layer = nn.Conv2d(3, 4, kernel_size=3, padding=1)
x = mg.randn(2, 3, 7, 7)
by_hand = conv2d(x, layer.weight, padding=1) + layer.bias.view(4, 1, 1)
print("Conv2d:    ", mg.allclose(layer(x), by_hand, atol=1e-5))
print(layer)


# %% [markdown]
# ## A network that reads digits
#
# Filters, ReLU, pooling, and again filters, ReLU, pooling; in the end a linear layer to ten scores. Such a network is a
# **CNN**, a convolutional neural network.

# %%
def cnn(last_pool=2):
    mg.manual_seed(0)
    first = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(last_pool)
    scores = nn.Flatten(), nn.Linear(16 * (4 // last_pool) ** 2, 10)
    return nn.Sequential(*first, *second, *scores)


x = digits.test_x[:1]
for layer in cnn():
    x = layer(x)
    count = sum(parameter.numel() for parameter in layer.parameters())
    print(f"{type(layer).__name__:<9} {count:5} parameters, gives {x.shape}")

# %% [markdown]
# That makes 1,898 parameters; the network of lesson 9 had 2,410. The eight first filters are 8 · 9 weights and 8 biases.
# (A linear layer from a digit to eight maps of 8 × 8 would have 64 · 512 weights, 32,768.) Each of the next sixteen looks
# at all eight maps, with 8 · 9 weights and a bias. The loop is that of lesson 9. While it runs, you should see a bar that
# fills, with the loss beside it.

# %%
from tqdm.auto import tqdm


def train(model, epochs=12):
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)
    batches = mg.data.DataLoader(digits.train, batch_size=50, shuffle=True)
    scheduler = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches))
    bar = tqdm(range(epochs), desc="learning")
    for _ in bar:
        for images, labels in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    return model


# %% tags=["nbval-ignore-output"]
model = train(cnn())


# %%
def accuracy(model, images):
    with mg.no_grad():
        return (model(images).argmax(1) == digits.test_y).float().mean().item()


print(f"more than 95 of 100 test digits are right: {accuracy(model, digits.test_x) > 0.95}")

# %% [markdown]
# ## What has it learned?
#
# So a few weights will do, fewer than in lesson 9. These are the eight first filters, which began as random numbers:

# %%
fig, axes = plt.subplots(1, 8, figsize=(6.4, 0.9))
for ax, weights in zip(axes, model[0].weight.detach(), strict=True):
    show(ax, weights[0], signs=True)
plt.show()

# %% [markdown]
# You should see eight little tables, green where ink counts for and magenta where it counts against. Nearly every one has both
# colours, on different sides: it compares one side of a position with another, as our edge filter did, if less tidily. Nobody
# programmed that.
#
# Now send the 0 through the network, and keep the output of each layer, its **activations**:

# %%
stages = [digits.test_x[9:10]]
with mg.no_grad():
    for layer in model:
        stages.append(layer(stages[-1]))

# %%
fig = plt.figure(figsize=(6.4, 4.2))
drawn = (0, 2, "8 maps"), (2, 3, "pooled"), (4, 5, "16 maps"), (5, 6, "pooled")
for top, stage, name in drawn:
    maps = stages[stage][0]
    wide = 16 // len(maps)
    for k, one in enumerate(maps):
        ax = plt.subplot2grid((8, 16), (top, k * wide), wide, wide)
        show(ax, one)
        if k == 0:
            ax.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
ax = plt.subplot2grid((8, 16), (6, 0), 2, 16)
ax.bar(range(10), stages[-1][0].tolist(), color=blue)
ax.set(xticks=range(10), ylabel="score")
plt.show()

# %% [markdown]
# You should see five rows. On top are the eight maps after the first ReLU: the 0 is still plain to see, each time with
# other parts of its strokes. (Where a map is white, its filter computes only values below 0 for this digit, and the ReLU
# turns them into 0. If it does so for every digit, it has died in training: with a derivative of 0 no gradient arrives to wake
# it.) Then the same after pooling, half as large; the sixteen maps of the second layer, which only the network can read;
# these pooled, to 2 × 2; and the ten scores, with that of the 0 well ahead. From row to row there is less *where* and more
# *what*.
#
# And what did it get wrong?

# %%
with mg.no_grad():
    answers = model(digits.test_x).argmax(1).tolist()
right = digits.test_y.tolist()
wrong = [k for k in range(len(right)) if answers[k] != right[k]]

fig, axes = plt.subplots(1, 6, figsize=(6.4, 1.5))
for ax in axes:
    ax.axis("off")
for ax, k in zip(axes, wrong, strict=False):
    ax.axis("on")
    show(ax, digits.test_x[k, 0], f"{right[k]}, read {answers[k]}")
plt.show()


# %% [markdown]
# You should see a handful of test digits (six at most), with what their writers meant and what the network read. Some of
# them we might have misread, too.
#
# ## Break it: move the picture
#
# Move a digit to the right by one pixel. (A padding below 0 cuts off; there is hardly any ink in the outermost columns.) To a
# filter this makes no difference: its map moves along.

# %%
def moved(images, pixels):
    return F.pad(images, (pixels, -pixels))


mg.equal(correlate(moved(zero, 1), edge)[:, 1:], edges[:, :-1])

# %% [markdown]
# What does it do to a network that has learned from digits in their places, and has never seen one that was moved? We compare
# three: a linear layer alone; our CNN; and a CNN whose last pooling takes the largest element of each *full* map (*global*
# pooling). In that one, 16 values are left of a digit, and nothing shows where they come from.

# %% tags=["nbval-ignore-output"]
mg.manual_seed(0)
linear = train(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))
anywhere = train(cnn(last_pool=4))

# %%
networks = {"linear layer": linear, "CNN": model, "CNN, whole maps": anywhere}
shifts = range(-3, 4)
read = {}
for name, network in networks.items():
    read[name] = [accuracy(network, moved(digits.test_x, pixels)) for pixels in shifts]

fig, ax = plt.subplots()
places = (-0.42, 20, "#555555"), (1.35, 50, "#D55E00"), (1.2, 83, blue)
for (name, shares), (left, height, color) in zip(read.items(), places, strict=True):
    ax.plot(shifts, [100 * share for share in shares], "o-", color=color)
    ax.text(left, height, name, color=color)
ax.set(xlabel="pixels to the right", ylabel="test digits read right (%)", ylim=(0, 104))
plt.show()

# %% [markdown]
# You should see three peaks. In their places (0), all three networks read more than nine of ten digits. Moved by one pixel,
# the linear layer (grey) reads three or four of ten; by two, it might as well guess. The CNN (orange) reads six or seven of
# ten after one pixel, and only about three after two. Its maps have moved along. But at its end there is a linear layer, with
# weights for each of the 2 × 2 positions that are left, and to that it does make a difference. The network with global pooling
# (blue) has no positions left at its end: of digits moved by two pixels, it still reads two in three. What it loses, it loses
# at the border, and in its first pooling, whose windows of two pixels contain other pairs after a step of one. And it has a
# price: a network that forgets all positions cannot tell *where* anything is.
#
# ## Break it: forget the padding
#
# Each filter of 3 × 3 without padding takes away two rows and two columns. Here are three layers of them, and a pooling:

# %%
from minigrad.errors import ShapeError

layers = nn.Conv2d(1, 8, 3), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.Conv2d(16, 16, 3)
x = digits.test_x[:1]
try:
    for layer in layers:
        x = layer(x)
        print(f"{type(layer).__name__:<9} {x.shape}")
except ShapeError as error:
    print(error)

# %% [markdown]
# Read it aloud. *Which operation?* `conv2d`. *What does it expect?* A window of 3 × 3. *What did it get?* A picture of 1 × 1. Our
# formula would say $\lfloor \frac{1 - 3}{1} \rfloor + 1 = -1$ positions. *What would do?* To pad: with $p = 1$, filters of 3 × 3
# leave a picture as large as it is, and only pooling makes it smaller: 8, 4, 4, 4.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 10.1 · Sizes and counts
#
# Colour photos of 32 × 32 pixels, with 3 channels, go through this network. How many rows do the maps have after the first
# filters, after the pooling, and after the second filters? (They have as many columns.) What is the question mark? And how
# many parameters do the three layers have that have any?
#
# ```text
# nn.Conv2d(3, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
# nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(?, 10)
# ```

# %%
found = {
    "rows after the first filters": ...,
    "rows after the pooling": ...,
    "rows after the second filters": ...,
    "question mark": ...,
    "parameters of the first filters": ...,
    "parameters of the second filters": ...,
    "parameters of the linear layer": ...,
}

# %%
lessons.check("10.1", found)


# %% [markdown]
# ### Exercise 10.2 · Loops with stride and padding
#
# Write `correlate` with both. $x$ and $w$ are tensors with rows and columns; on each side of the picture there are `padding`
# zeros, and the filter moves `stride` pixels at a time, to the right and down.

# %%
def correlate_with(x, w, stride, padding):
    return ...


# %%
lessons.check("10.2", correlate_with)


# %% [markdown]
# ### Exercise 10.3 · What the weights get
#
# On a line, with a stride $s$: $y_i = \sum_a w_a \, x_{i s + a}$. Write the rule for the filter, which returns a list (or a
# tensor) of $k$ elements. Given are $g$, the gradient of $y$; the line $x$; and how many weights there are, $k$. (How many
# paths lead from a weight to the $y$, and which pixel is the derivative along each?)

# %%
def filter_rule(g, x, k, stride):
    return ...


# %%
lessons.check("10.3", filter_rule)


# %% [markdown]
# ### Exercise 10.4 · A winner may win twice
#
# Max pooling on a line, with windows of $k$ elements and a stride of 1, so that they overlap: $y_i$ is the largest of $x_i,
# \dots, x_{i+k-1}$. Write its rule. (Of equal elements the first wins. `argmax()` returns the index of the largest element of
# a tensor, as a tensor; `.item()` returns it as an int.)

# %%
def overlapping_rule(g, x, k):
    return ...


# %%
lessons.check("10.4", overlapping_rule)

# %% [markdown]
# ## Where this comes from
#
# - K. Fukushima, “Neocognitron: a self-organizing neural network model for a mechanism of pattern recognition unaffected by
#   shift in position”, *Biological Cybernetics* 36 (1980), pages 193–202: layers of shared filters, and layers that forget
#   the place, in turn.
# - Y. LeCun and others, “Backpropagation applied to handwritten zip code recognition”, *Neural Computation* 1 (1989), pages
#   541–551: the filters are learned by gradients.
# - Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, “Gradient-based learning applied to document recognition”, *Proceedings of
#   the IEEE* 86 (1998), pages 2278–2324.
# - K. Chellapilla, S. Puri and P. Simard, “High performance convolutional neural networks for document processing”, *Tenth
#   International Workshop on Frontiers in Handwriting Recognition* (2006): windows as rows of one matrix product.
# - V. Dumoulin and F. Visin, “A guide to convolution arithmetic for deep learning”, arXiv:1603.07285 (2016): padding, strides
#   and sizes, in pictures.
# - E. Alpaydin and C. Kaynak, “Optical recognition of handwritten digits”, UCI Machine Learning Repository (1998),
#   doi:10.24432/C50P49: the digits.
#
# The networks so far learned at once. Next, some that do not: **[11 · When it goes wrong](11_when_it_goes_wrong.ipynb)**
