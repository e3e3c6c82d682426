# %% [markdown]
# # 6 · Tensors
#
# *Before: [5 · The tape](05_the_tape.ipynb) · Next: [7 · Gradient rules](07_gradient_rules.ipynb)*

# %% [markdown]
# ## The question
#
# In [lesson 5](05_the_tape.ipynb) one instruction computed 3,905 samples at a stroke. To write formulas like that, we need a thing
# that is many numbers and can be added as if it were one. Take a table of two samples, a row for each, and add the same three numbers
# to every row, as a layer adds its biases:
#
# $$\begin{pmatrix} 1 & 2 & 3 \\ 4 & 5 & 6 \end{pmatrix} + \begin{pmatrix} -2 & 0 & -5 \end{pmatrix}
# = \begin{pmatrix} -1 & 2 & -2 \\ 2 & 5 & 1 \end{pmatrix}$$
#
# **How can three numbers serve as six, without being copied? And what is the gradient of each of the three?**

# %% [markdown]
# ## Guess: nudge it and look
#
# Write the table as one list, row by row. The element in row $i$ and column $j$ (both counted from 0) is then at
# position $3i + j$. Our loss $L$ shall be the sum of the squares of all six results:

# %%
x = [1, 2, 3, 4, 5, 6]
b = [-2, 0, -5]


def loss(x, b):
    return sum((x[3 * i + j] + b[j]) ** 2 for i in range(2) for j in range(3))


loss(x, b)


# %% [markdown]
# Now nudge each number to both sides, as in [lesson 1](01_one_neuron.ipynb). From here on, a slope has its proper name, **derivative**; and the derivatives
# of $L$ with respect to all elements of a tensor, together, are the **gradient** of that tensor.

# %%
def slopes(f, numbers, h=0.5):
    found = []
    for k in range(len(numbers)):
        up, down = list(numbers), list(numbers)
        up[k] += h
        down[k] -= h
        found.append((f(up) - f(down)) / (2 * h))
    return found


by_x = slopes(lambda x: loss(x, b), x)
by_b = slopes(lambda b: loss(x, b), b)
print("gradient of x:", by_x[:3], "\n              ", by_x[3:])
print("gradient of b:", by_b)


# %% [markdown]
# Look at the columns: above the 2 stand −2 and 4, above the 14 stand 4 and 10, above the −2 stand −4 and 2. Each element of $b$
# was used in two rows, and its derivative is the sum of what both rows contribute. We know that rule, it is [gradients add
# up](03_gradients_add_up.ipynb); here it comes in new clothes.

# %% [markdown]
# ## Build it: one list, and a way to read it
#
# A **tensor** is a list of numbers, its **elements**, together with a way of reading it. It has
#
# - a **shape**, the size of each of its **dimensions**: (2, 3) for two rows of three; (3,) for a mere list of three; () for a
#   single number, a **scalar**;
# - **strides**, one for each dimension: how many positions further to go in the list when that index grows by 1.
#
# In our table a step down goes 3 positions further, and a step to the right 1, so its strides are (3, 1). An **index** such as (1, 2)
# leads to the position 1 · 3 + 2 · 1 = 5. That formula is all there is to it:

# %%
class Tensor:
    def __init__(self, numbers, shape, strides, start=0):
        self.numbers, self.shape, self.strides, self.start = numbers, shape, strides, start

    def position(self, index):
        return self.start + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def __getitem__(self, index):
        return self.numbers[self.position(index)]


x = Tensor([1, 2, 3, 4, 5, 6], shape=(2, 3), strides=(3, 1))
x[1, 2]

# %% [markdown]
# (Python turns `x[1, 2]` into `x.__getitem__((1, 2))`. What `start` is good for comes in a moment.) Two helpers: all indices of a
# shape, and the elements as nested lists, to print them.

# %%
from itertools import product


def indices(shape):
    return list(product(*[range(size) for size in shape]))


def nested(tensor, *index):
    if len(index) == len(tensor.shape):
        return tensor[index]
    return [nested(tensor, *index, k) for k in range(tensor.shape[len(index)])]


print(indices((2, 3)))
print(nested(x))


# %% [markdown]
# ### Views: read the same list otherwise
#
# To **transpose** a table is to exchange its rows and its columns. No element has to move for that: exchange the two *strides*. A
# column needs the stride that goes down, and a start. And with another shape, the same six can be read as three rows of two.

# %%
def transpose(t):
    return Tensor(t.numbers, t.shape[::-1], t.strides[::-1], t.start)


def column(t, j):
    return Tensor(t.numbers, t.shape[:1], t.strides[:1], t.position((0, j)))


views = {
    "x": x,
    "x transposed": transpose(x),
    "x as (3, 2)": Tensor(x.numbers, (3, 2), (2, 1)),
    "column 1 of x": column(x, 1),
}
for name, view in views.items():
    print(f"{name:<14} shape {view.shape!s:7} strides {view.strides!s:7} {nested(view)}")

# %% [markdown]
# All four share *one* list, their **storage**. Such tensors are **views** of each other: write an element through one, and you see it in all of them. You should see
# below the list, with its positions, and how the four read it. An element has the same colour wherever it is seen, dark at the
# beginning of the list and light at its end. (A single dimension is drawn lying down.) Compare the two in the middle: both have three rows of two, but
# *x transposed* jumps about in the list, and *x as (3, 2)* reads straight on.

# %%
import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")


def paint(ax, t, left, top, title):
    for index in indices(t.shape):
        row, col = (0, *index)[-2:]
        shade = t.position(index) / (len(t.numbers) - 1)
        box = {"facecolor": plt.cm.cividis(shade), "edgecolor": "white", "linewidth": 2}
        ax.add_patch(plt.Rectangle((left + col, top - row - 1), 1, 1, **box))
        ink = {"color": "white" if shade < 0.5 else "black", "fontsize": 14}
        ax.text(left + col + 0.5, top - row - 0.52, t[index], ha="center", va="center", **ink)
    ax.text(left, top + 1.0, title, fontweight="bold")
    ax.text(left, top + 0.2, f"shape {t.shape}\nstrides {t.strides}", fontsize=9.5, linespacing=1.3)


# %%
fig, ax = plt.subplots(figsize=(6.4, 4.0))
for position, left in enumerate(range(6)):
    ax.text(left + 0.5, 5.55, position, ha="center", fontsize=9.5, color="#555555")
ax.text(6.2, 5.55, "position", fontsize=9.5, color="#555555")
paint(ax, Tensor(x.numbers, (6,), (1,)), 0, 7, "the list")
for left, (name, view) in zip((0, 4.1, 7.9, 11.7), views.items(), strict=True):
    paint(ax, view, left, 3, name)
ax.set(xlim=(-0.1, 15), ylim=(-0.1, 8.6), aspect="equal")
ax.axis("off")
plt.show()


# %% [markdown]
# A tensor that reads its list straight on, row by row, is **contiguous**: *x* is, *x transposed* is not. Its strides follow from its
# shape. The last is 1; each one before is the stride to its right times the size there.

# %%
def contiguous(numbers, shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return Tensor(numbers, shape, tuple(strides))


print(contiguous(list(range(24)), (2, 3, 4)).strides)


# %% [markdown]
# ### Broadcasting: a stride of 0
#
# Three numbers are to serve as two rows. So a step down should lead to the same three again, that is, go *no* position further: a stride
# of 0. This is **broadcasting**. Its rule: write the two shapes below each other, flush right. In each dimension the sizes must be
# equal; or one of them is 1, or missing, and then that one is repeated.
#
# | shapes | a row to two | a column to three | a misfit |
# |---|---|---|---|
# | one shape | (2, 3) | (2, 1) | (2, 3) |
# | the other | (3,) | (3,) | (2,) |
# | together | (2, 3) | (2, 3) | refused: 3 over 2 |

# %%
def expand(t, shape):
    strides = [0] * (len(shape) - len(t.shape))
    for size, stride, goal in zip(t.shape, t.strides, shape[len(strides) :], strict=True):
        if size not in (1, goal):
            raise ValueError(f"{t.shape} cannot be read as {shape}")
        strides.append(stride if size == goal else 0)
    return Tensor(t.numbers, shape, tuple(strides), t.start)


b = contiguous([-2, 0, -5], (3,))
c = contiguous([2, -1], (2, 1))
for t in (b, c):
    wide = expand(t, (2, 3))
    print(f"{t.shape!s:6} strides {t.strides!s:6} -> {wide.shape} strides {wide.strides}  {nested(wide)}")

# %% [markdown]
# You should see below the two short lists, and to the right of each the table that it is read as: expanded, $b$ has the stride 0 downwards and
# repeats its row, $c$ has it to the right and repeats its column. Boxes of one colour are one element, stored once.

# %%
fig, ax = plt.subplots(figsize=(6.4, 2.4))
paint(ax, b, 0, 2, "b")
paint(ax, expand(b, (2, 3)), 3.9, 2, "b expanded")
paint(ax, c, 7.8, 2, "c")
paint(ax, expand(c, (2, 3)), 11.7, 2, "c expanded")
ax.set(xlim=(-0.1, 14.8), ylim=(-0.1, 3.6), aspect="equal")
ax.axis("off")
plt.show()

# %%
from operator import add


# An operation on two tensors: find the common shape, expand both, go through all indices.
def combine(f, a, b):
    longest = max(len(a.shape), len(b.shape))
    padded = [(1,) * (longest - len(t.shape)) + t.shape for t in (a, b)]
    shape = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    a, b = expand(a, shape), expand(b, shape)
    return contiguous([f(a[index], b[index]) for index in indices(shape)], shape)


y = combine(add, x, b)
print(y.shape, nested(y))


# %% [markdown]
# ### And back: what was repeated is added up
#
# Now the gradient. $L$ sums up $y \cdot y$, so the gradient of $y$ is $2y$, a table like $y$. Each element of $x$ was used once and
# gets its gradient as it is. But $b$ has only three elements for six gradients. Where should they go? To where the expanded $b$
# *reads*. By the stride 0 two indices share each position, and the `+=` of lesson 3 adds them up:

# %%
def unbroadcast(gradient, shape):
    size = len(indices(shape))
    total = contiguous([0] * size, shape)
    read = expand(total, gradient.shape)
    for index in indices(gradient.shape):
        total.numbers[read.position(index)] += gradient[index]
    return total


by_y = combine(add, y, y)  # 2y
print("gradient of x:", nested(by_y))
print("gradient of b:", nested(unbroadcast(by_y, (3,))))

# %% [markdown]
# You should see the gradients that nudging found. **The gradient of a broadcast is a sum over what was repeated.** The converse holds, too: a
# sum hands its gradient to each element that went into it, so the gradient of a sum is a broadcast.
#
# ## Draw it
#
# minigrad has such tensors. Most of them are data and need no gradient, so we ask for one where we want it: `requires_grad=True`. And since
# tensors may be large, a backward pass frees what it saved. The picture computes it again.

# %%
import minigrad as mg

# %load_ext minigrad_viz

x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
b = mg.tensor([-2.0, 0.0, -5.0], requires_grad=True)
y = x + b
loss = (y * y).sum()
loss.backward()
loss

# %% [markdown]
# You should see a map of colours, a **heatmap**, for each tensor and for its gradient: green above 0, magenta below, and the stronger the
# farther from 0, on one scale for the two maps of a box. Every gradient has the shape of its tensor. That of $b$ has three elements, and
# the dark one in its middle is the 14. That of the squares, $v_3$, is pale and even: the sum has handed its 1 to all six.
#
# ## Step it
#
# Here is a graph with both kinds of broadcasting, $z = \sum (x \cdot c + b)$, where $c$ is the column from above. The backward pass, event by event:
# the shape that comes in, the shape that is handed on, and its values. (An event goes from one operation to another. `grad_fn` is the operation that
# computed a tensor, and the dict `names` leads from it to the name that we use.)

# %%
x.grad = b.grad = None
c = mg.tensor([[2.0], [-1.0]], requires_grad=True)
scaled = x * c
moved = scaled + b
z = moved.sum()

tensors = {"x": x, "c": c, "b": b, "scaled": scaled, "moved": moved, "z": z}
names = {id(tensor.grad_fn or tensor): name for name, tensor in tensors.items()}
for event in mg.events(z):
    edge, given = f"{names[id(event.source)]} -> {names[id(event.target)]}", event.contribution
    print(f"{edge:16} {event.upstream.shape!s:>6} becomes {given.shape!s:6} {given.tolist()}")
z.backward()

# %% [markdown]
# The first line is a broadcast: the sum's single 1 becomes six. The two that reach $b$ and $c$ are sums, each over what was repeated: $b$ gets
# 1 + 1 in each element, and $c$ gets 1 + 2 + 3 = 6 and 4 + 5 + 6 = 15. The same as a tour:

# %%
from minigrad_viz import tour

stops = [
    (scaled, "c has one column, which serves for three: it doubles row 0 and turns the sign of row 1."),
    (moved, "b has one row, which serves for two."),
    ("seed", "Back: the gradient of z itself is 1."),
    ((moved, "backward"), "z is a sum: each of the six elements gets the 1."),
    ((b, "backward"), "b was repeated downwards, so its gradient is summed downwards: 1 + 1, three times."),
    ((x, "backward"), "x was not repeated: each element gets 1 times the c of its row."),
    ((c, "backward"), "c was repeated to the right, so its gradient is summed to the right: 6 and 15."),
]
tour(z, stops)

# %% [markdown]
# You should see $x$, $c$ and $b$ with gradients of their own shapes, and while this notebook runs the stops. Where a gradient was summed
# the player says over which *axis*, another word for dimension. Click on a box: its values are next to it, and those of a leaf can be changed.
#
# ## Compare with the library
#
# The same views in minigrad, whose names are PyTorch's. The column is expanded, too:

# %%
x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
texts = ("x", "x.T", "x.reshape(3, 2)", "x[:, 1]", "x[:, 1].expand(4, 2)")
theirs = (x, x.T, x.reshape(3, 2), x[:, 1], x[:, 1].expand(4, 2))
ours = (*views.values(), expand(views["column 1 of x"], (4, 2)))
for text, t, our in zip(texts, theirs, ours, strict=True):
    agrees = (t.shape, t.stride()) == (our.shape, our.strides)
    print(f"{text:<21} {t.shape!s:7} {t.stride()!s:7} as ours: {agrees}  shared: {t.storage is x.storage}")

# %% [markdown]
# You should see `True` ten times: minigrad reads as we do, and all five share one storage. A write through a view is
# seen in $x$, and counted: the **version** of both goes up. (A backward pass that saved the old values can tell by it that they
# were overwritten, and raises an error. Such a write is called **in-place**.)

# %%
turned = x.T
turned[0, 1] = 40.0
print(x.tolist(), "version", x._version, "and", turned._version)
print("contiguous:", x.is_contiguous(), turned.is_contiguous())
print("type:", x.dtype, mg.tensor([1, 2]).dtype, mg.tensor([True, False]).dtype)

# %% [markdown]
# The last line shows what ours lacks. A library stores its list as plain bytes, so all elements of a tensor have one type, its **dtype**. `float32`, a
# **floating-point** value of 32 bits, about 7 digits, is the usual one for learning. And the gradients of the first formula, three times:

# %%
x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
b = mg.tensor([-2.0, 0.0, -5.0], requires_grad=True)
((x + b) ** 2).sum().backward()
print("nudged:  ", by_b, by_x)
print("ours:    ", nested(unbroadcast(by_y, (3,))), nested(by_y))
print("minigrad:", b.grad.tolist(), x.grad.tolist())

# %% [markdown]
# ## The mean over 120 flowers
#
# In [lesson 4](04_a_network_of_values.ipynb) the loss was the mean of a Python loop over flowers, with three scores each. Here are these scores as one tensor, from the
# network before it learns, with the flowers sorted by species. (A tape computes them, as in lesson 5.)

# %%
from minigrad.data import iris

flowers = iris()
species, measured = zip(*sorted(zip(flowers.train_y, flowers.train_x, strict=True)), strict=True)
model = mg.nn.scalar.MLP([4, 8, 3], seed=0)
inputs = [mg.Value(0.0, name) for name in flowers.features]
found = mg.Tape(model(inputs), parameters=model.parameters()).batch(measured)
scores = mg.tensor(found, requires_grad=True)
right = mg.tensor(species).reshape(120, 1) == mg.arange(3)
print(scores.shape, right.shape, right[0].tolist(), right[119].tolist())

# %% [markdown]
# `right` is broadcasting put to use: the species in a column, (120, 1), compared with 0, 1, 2 in a row, (3,), give a table that is true at the right species. Now the
# cross-entropy of lesson 4, $\ln \sum_j e^{s_j} - s_t$, and its mean. `sum(1)` sums over dimension 1, along each row, and `amax(1)` takes the largest of each row. With
# `keepdim=True` that dimension stays, with the size 1: a column, which can be subtracted from the table. (`item` returns the only element as a Python number.)

# %%
shifted = scores - scores.detach().amax(1, keepdim=True)  # detach: the precaution needs no gradient
loss = (shifted.exp().sum(1).log() - (shifted * right).sum(1)).mean()
loss.backward()
print(f"loss: {loss.item():.2f}")

# %% [markdown]
# Two lines without a loop, and the loss with which lesson 4 began, 1.16. 360 scores and 360 derivatives are too many to print, so we look at them.
# You should see two heatmaps, with a column for each flower and a row for the score of each species. (`.T` has turned them, and moved no element.) The scores are
# an accident of random weights. The gradient knows what is right: for each species its own score is magenta, negative (“up!”), and the two others are green (“down!”).

# %%
from matplotlib.colors import LinearSegmentedColormap

heat = LinearSegmentedColormap.from_list("heat", ["#b3287e", "#ffffff", "#1b7837"])
fig, axes = plt.subplots(2, 1, figsize=(6.4, 4.2), sharex=True)
for ax, table, title in ((axes[0], scores.detach(), "scores"), (axes[1], scores.grad, "gradient of the loss")):
    most = table.abs().max().item()
    ax.imshow(table.T.numpy(), cmap=heat, vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    ax.set(title=title, yticks=range(3), yticklabels=flowers.species)
    for first_of_next in (species.index(1), species.index(2)):
        ax.axvline(first_of_next - 0.5, color="#333333", linewidth=1)
axes[1].set(xlabel="flower")
plt.show()

# %% [markdown]
# ## Read from the other side
#
# Rows first, (2, 3) for two rows of three: that is how the field says it, and it is a custom, not a law. *mljs*, a small autograd library in JavaScript
# whose making ndesmic described on the web, writes [x, y, z]: first to the right, then down, then deep.
#
# | what | mljs | NumPy, PyTorch, minigrad |
# |---|---|---|
# | two rows of three elements | shape [3, 2] | shape (2, 3) |
# | row 1, column 2 | index [2, 1] | index (1, 2) |
# | steps in the list | 1, 3 | strides (3, 1) |
# | the sum along each row | `sum({dimension: 0})` | `sum(1)` |
# | 64 pictures, 8 high, 5 wide | shape [5, 8, 64] | shape (64, 8, 5) |
#
# The list is the *same*, row by row. Only its description is reversed, the order of the dimensions included. So to read one in the other, **reverse
# everything but the list**. Theirs is a view that we have met: shape (3, 2) and strides (1, 3) are those of *x transposed*.
#
# ## Break it: a loss that is a scalar anyway
#
# Broadcasting never asks whether you meant it. Here are three guesses in a column, as a layer gives them, and the three true values in a list. All
# guesses are right, so the mean of the squared differences should be 0:

# %%
guesses = mg.tensor([[1.0], [2.0], [3.0]])
truth = mg.tensor([1.0, 2.0, 3.0])
wrong = guesses - truth
print(wrong.tolist())
print(f"loss: {(wrong * wrong).mean().item():.2f}")

# %% [markdown]
# (3, 1) and (3,) make (3, 3): *every* guess is compared with *every* truth. The loss is a scalar anyway. It has a gradient, and one can
# train with it. To learn what? Let a line, $w \cdot \text{length} + b$, guess the width of a petal from its length:

# %%
length = mg.tensor([x[2] for x in flowers.train_x]).reshape(120, 1)  # standardised, as in lesson 4
width = mg.tensor([x[3] * flowers.deviation[3] + flowers.mean[3] for x in flowers.train_x])  # cm


def train(truth):
    w, b = mg.ones(1, requires_grad=True), mg.ones(1, requires_grad=True)
    for _ in range(50):
        loss = ((length * w + b - truth) ** 2).mean()
        w.grad = b.grad = None
        loss.backward()
        with mg.no_grad():  # the step itself is not to be differentiated
            w -= 0.25 * w.grad
            b -= 0.25 * b.grad
    return w.item(), b.item(), loss.item()


lines = {"column minus list": train(width), "column minus column": train(width.reshape(120, 1))}
for name, (w, b, loss) in lines.items():
    print(f"{name:<20} slope {abs(w):.2f}, at the mean length {b:.2f} cm, loss {loss:.2f}")

# %% [markdown]
# Nothing crashed, but *column minus list* has lost its initial slope of 1. You should see below the flowers in grey, the line of the
# right loss through them (blue), and the flat line of the wrong one (orange): if each guess has to please every truth, the best is to say always the
# same, the mean.

# %%
fig, ax = plt.subplots()
xs = [x[2] for x in flowers.train_x]
ax.scatter(xs, width.tolist(), color="#999999", s=24)
ends = [min(xs), max(xs)]
places = ("#D55E00", -0.6, 0.98), ("#0072B2", 0.1, 1.72)
for (name, (w, b, _)), (color, left, height) in zip(lines.items(), places, strict=True):
    ax.plot(ends, [w * end + b for end in ends], color=color)
    ax.text(left, height, name, color=color, fontweight="bold", ha="right")
ax.set(xlabel="petal length (standardised)", ylabel="petal width (cm)")
plt.show()

# %% [markdown]
# Such a bug hides for days. So print shapes, or forbid broadcasting: inside `with mg.strict_shapes():` nothing is broadcast
# that you did not `expand` yourself. (Python numbers still go with every shape.)

# %%
from minigrad.errors import ShapeError

try:
    with mg.strict_shapes():
        length - width
except ShapeError as error:
    print(error)

# %% [markdown]
# A result of shape (120, 120) from 120 flowers: now nobody can miss it. Elsewhere only shapes that cannot go together are refused. Such an error is worth reading
# aloud, word by word:

# %%
try:
    mg.zeros(2, 3) + mg.zeros(2)
except ShapeError as error:
    print(error)

# %% [markdown]
# *Which operation?* `add`. *What was it given?* (2, 3) and (2,). *Where do they clash?* Counted from the right, in dimension −1, the last one: 3 and 2. *What would
# do?* Equal sizes, or a 1. So if the two numbers are meant for the two rows, say that they are a column: `unsqueeze(1)` makes (2, 1) of (2,). It is a
# view, of course.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 6.1 · Strides
#
# $x$ is contiguous and has the shape (4, 6). Which strides do these views have? (`x[1:3]` are the rows 1 and 2, and `x[::2]` is every other row.) Do not ask the
# library; ask how far *one* step in each dimension goes in the list.

# %%
strides = {
    "x": ...,
    "x.T": ...,
    "x[1:3]": ...,
    "x[::2]": ...,
    "x.reshape(8, 3)": ...,
    "x[0].expand(5, 6)": ...,
}

# %%
lessons.check("06.1", strides)

# %% [markdown]
# ### Exercise 6.2 · From the other side
#
# In mljs, a tensor `t` has the shape [4, 3, 2], in the order [x, y, z], and one of its elements is at [1, 2, 0]. Write it as the field does: the shape of `t`; the
# index of that element; its position in the list; and for `t.sum({dimension: 2})` the `dim` to sum over here, counted from 0, and the shape of the result, in which
# that dimension is gone.

# %%
ours = {"shape": ..., "index": ..., "position": ..., "dim": ..., "shape of the sum": ...}

# %%
lessons.check("06.2", ours)


# %% [markdown]
# ### Exercise 6.3 · And back, with the library
#
# A tensor had the shape `shape`, a tuple, and was broadcast; `gradient`, a tensor of minigrad, is the gradient of what it became. Write a function that gives the
# gradient of the tensor as it was. (`gradient.sum(0)` drops dimension 0, `gradient.sum(1, keepdim=True)` keeps dimension 1, with the size 1; `gradient.ndim` says how many
# dimensions there are.)

# %%
def gradient_before(gradient, shape):
    return ...


# %%
lessons.check("06.3", gradient_before)


# %% [markdown]
# ### Exercise 6.4 · A loss to repair
#
# `x`, (n, k), has a row for each of $n$ samples. `w`, (k,), and `b`, (1,), are a neuron without a sigmoid, and `truth`, (n,), is what it
# should say. This is meant to be the mean over the samples of the squared differences:
#
# ```python
# def mean_squared_error(w, b, x, truth):
#     guess = (x * w).sum(1, keepdim=True) + b
#     return ((guess - truth) ** 2).mean()
# ```
#
# It runs, and it is wrong. Repair it. The check tries it on several tables, and looks at its gradients, too.

# %%
def mean_squared_error(w, b, x, truth):
    return ...


# %%
lessons.check("06.4", mean_squared_error)

# %% [markdown]
# ## Where this comes from
#
# - K. E. Iverson, *A Programming Language*, Wiley (1962): a notation, and later the language APL, whose operations take whole arrays.
# - S. van der Walt, S. C. Colbert and G. Varoquaux, “The NumPy array: a structure for efficient numerical computation”, *Computing in Science & Engineering* 13
#   (2011), issue 2, pages 22–30: shape, strides, views and broadcasting, as everybody has them now.
# - C. R. Harris and others, “Array programming with NumPy”, *Nature* 585 (2020), pages 357–362.
# - A. Paszke and others, “PyTorch: an imperative style, high-performance deep learning library”, *Advances in Neural Information Processing Systems* 32 (2019): tensors with
#   gradients, and the names that minigrad uses.
# - ndesmic, “Building a JS pytorch clone (autograd)”, DEV Community: mljs, and why it says [x, y, z].
#
# Between two tensors, each element of one has a derivative with respect to each element of the other. Nobody stores them all: **[7 · Gradient
# rules](07_gradient_rules.ipynb)**
