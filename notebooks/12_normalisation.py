# %% [markdown]
# # 12 · Normalisation
#
# *Before: [11 · When it goes wrong](11_when_it_goes_wrong.ipynb) · Next: [13 · Attention](13_attention.ipynb)*
#
# ## The question
#
# [Lesson 11](11_when_it_goes_wrong.ipynb) chose the first weights so that signals keep their **spread**, their standard
# deviation (here that of all activations of a layer together), from layer to layer: for ReLUs the weights have variance
# $\frac2n$, where $n$ is the number of inputs. But then comes training, and moves the weights. Here is a network of eight
# such layers for the digits of [lesson 9](09_optimizers.ipynb). (What `norm` is for, and why `spreads` looks at a copy,
# you will see.)

# %%
import copy
from itertools import product

import matplotlib.pyplot as plt

import minigrad as mg
from minigrad import nn

plt.style.use("lessons.mplstyle")
mg.set_default_dtype(mg.float64)  # 16 digits, as in lesson 7
data = mg.data.digits()
test_x, test_y = data.test_x.double(), data.test_y


# %%
def deep(norm=None, spread=(2 / 64) ** 0.5):
    mg.manual_seed(0)
    rows = [nn.Flatten()]
    for _ in range(8):
        linear = nn.Linear(64, 64, bias=False)
        nn.init.normal_(linear.weight, std=spread)
        rows += [linear, norm(64), nn.ReLU()] if norm else [linear, nn.ReLU()]
    return nn.Sequential(*rows, nn.Linear(64, 10))


def spreads(model, x):
    found = []
    for layer in copy.deepcopy(model):
        x = layer(x)
        found += [x.std().item()] if isinstance(layer, nn.ReLU) else []
    return found


# %%
def train(model, steps=90, lr=0.1):
    mg.manual_seed(0)
    optimizer, losses = mg.optim.SGD(model.parameters(), lr=lr), []
    while len(losses) < steps:
        for images, labels in mg.data.DataLoader(data.train, batch_size=100, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.double()), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


# %%
fig, ax = plt.subplots()
model = deep()
before = spreads(model, test_x)
train(model)
for name, found in (("before", before), ("after 90 steps", spreads(model, test_x))):
    (line,) = ax.plot(range(1, 9), found, "o-")
    ax.text(8.15, found[-1], name, color=line.get_color(), va="center")
ax.set(xlabel="layer", ylabel="spread of its signals", xlim=(0.8, 10.2), ylim=(0, None), xticks=range(1, 9))
plt.show()

# %% [markdown]
# You should see that before training all layers have about the same spread, and that after 90 steps it grows from layer
# to layer, to about three times as much. Nothing in the loss asks for that. And each layer, while it learned, had to adapt to
# whatever the layers before it had become.
#
# In [lesson 4](04_a_network_of_values.ipynb) the measurements of the irises came *standardised*: from each its mean was
# subtracted, and the rest divided by its standard deviation. That was done once, to the inputs.
#
# **Can a layer do the same to the activations inside, again in each step, so that their spread stays by itself?**
#
# ## Guess: which elements share a mean?
#
# The recipe is clear, but for one thing: the mean *of what*? Of the irises, each measurement had a mean of its own, over
# all the flowers. The signals of a convolution ([lesson 10](10_convolution.ipynb)) are a tensor (N, C, H, W): N samples,
# C channels, and H × W positions. Let us take one whose elements encode their index: 213 is in sample 2, channel 1,
# position 3.

# %%
N, C, H, W = 3, 4, 2, 2
sample, channel, place = mg.arange(N), mg.arange(C), mg.arange(H * W)
x = 100.0 * sample.view(N, 1, 1) + 10.0 * channel.view(C, 1) + place
x = x.view(N, C, H, W)
print("sample 2, channel 1:", x[2, 1].tolist())


# %% [markdown]
# Here are four ways to take means of it. `mean(dims)` averages over the dimensions `dims`, which are gone in the result;
# of the others each index has a mean of its own. (The last two are printed for sample 0 only.) Before you go on to the
# picture: how many means does each of the four take of the 48 elements, and how many elements go into each mean?

# %%
def shown(means):
    return "  ".join(f"{mean:5g}" for mean in means.flatten().tolist())


print("over (0, 2, 3):          ", shown(x.mean((0, 2, 3))))
print("over (1, 2, 3):          ", shown(x.mean((1, 2, 3))))
print("over (2, 3), in sample 0:", shown(x.mean((2, 3))[0]))
print("two channels together:   ", shown(x.view(N, 2, C // 2, H, W).mean((2, 3, 4))[0]))


# %% [markdown]
# ## Which elements share a mean
#
# To look at it, we stack the H × W positions of a channel on top of each other. You should see the tensor below as a block
# of cubes: channels to the right, positions upwards, samples to the back. The front shows the elements of sample 0.

# %%
def shade(color, light):
    goal = 1 if light > 0 else 0
    return [part + abs(light) * (goal - part) for part in plt.matplotlib.colors.to_rgb(color)]


def draw_cube(ax, x, y, z, color):
    x, y = x + 0.42 * z, y + 0.36 * z
    front = [(0, 0), (1, 0), (1, 1), (0, 1)]
    top = [(0, 1), (1, 1), (1.42, 1.36), (0.42, 1.36)]
    side = [(1, 0), (1.42, 0.36), (1.42, 1.36), (1, 1)]
    for corners, light in ((front, 0), (top, 0.3), (side, -0.15)):
        points = [(x + right, y + up) for right, up in corners]
        ax.add_patch(plt.Polygon(points, facecolor=shade(color, light), edgecolor="white", linewidth=0.6))
    return x + 0.5, y + 0.48  # the middle of the front


# %%
fig, ax = plt.subplots(figsize=(4.0, 3.6))
for n, c, p in sorted(product(range(N), range(C), range(H * W)), key=lambda cube: -cube[0]):  # the back first
    middle = draw_cube(ax, c, p, n, "#bbbbbb")
    if n == 0:
        ax.text(*middle, f"{10 * c + p}", ha="center", va="center")
for k in range(4):
    ax.text(k + 0.5, -0.35, k, ha="center")
    ax.text(-0.25, k + 0.5, k, ha="center", va="center")
for n in range(N):
    ax.text(4.3 + 0.42 * n, 0.36 * n - 0.05, n)
for left, up, text, turn in ((1.4, -0.85, "channel", 0), (-0.9, 1.6, "position", 90), (5.35, 0.15, "sample", 40)):
    ax.text(left, up, text, rotation=turn)
ax.set(xlim=(-0.9, 6.4), ylim=(-0.9, 5.2), aspect="equal")
ax.axis("off")
plt.show()

# %% [markdown]
# Now cubes that share a mean get one colour, and the block is pulled apart where a new mean begins:

# %%
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


def draw_norm(ax, title, together, each_sample):
    for n in reversed(range(N)):
        for c in range(C):
            part = c // together
            color = COLORS[n] if together == C else shade(COLORS[part], 0.3 * n * each_sample)
            for p in range(H * W):
                draw_cube(ax, c + 0.5 * part, p, n * (2.2 if each_sample else 1), color)
    means = C // together * (N if each_sample else 1)
    ax.set_title(f"{title}\n{means} means of {N * C * H * W // means}", fontsize=13)
    ax.set(xlim=(-0.2, 8), ylim=(-0.2, 6), aspect="equal")
    ax.axis("off")


# %%
fig, axes = plt.subplots(1, 4, figsize=(7.4, 2.4))
draw_norm(axes[0], "batch", together=1, each_sample=False)
draw_norm(axes[1], "layer", together=C, each_sample=True)
draw_norm(axes[2], "instance", together=1, each_sample=True)
draw_norm(axes[3], "group", together=2, each_sample=True)
plt.show()


# %% [markdown]
# You should see four ways to cut one block: into 4 slabs that go from front to back, into 3 slabs one behind the other,
# into 12 thin columns, and into 6 columns of double width. We call the elements that share a mean a **piece**. Each way
# to cut is a layer with a name, which standardises every piece by itself:
#
# | layer | one mean for | over | mostly used for |
# |---|---|---|---|
# | **batch norm** | a channel, of all samples and positions | N, H, W | pictures, in large batches |
# | **layer norm** | a sample, all of it | C, H, W | sentences, where each word is a sample |
# | **instance norm** | a channel of a sample | H, W | changing the style of pictures |
# | **group norm** | some channels of a sample | these, H, W | pictures, in small batches |
#
# (*Norm* is short for normalisation. The norm of lesson 11, the length of a gradient, is another.) The standardised
# irises were a batch norm. It alone mixes samples, which will matter below.
#
# ## Build it: three lines
#
# Subtract the mean; the mean square of what is left is the **variance**; divide by its root, the standard deviation.
# (`keepdim=True` keeps the averaged dimensions, with size 1, so that the means are broadcast, as in [lesson
# 6](06_tensors.ipynb).)

# %%
def normalised(x, dims, eps=1e-5):
    centred = x - x.mean(dims, keepdim=True)
    variance = (centred * centred).mean(dims, keepdim=True)
    return centred / (variance + eps).sqrt()


def four(x, groups, eps=1e-5):
    n, c, h, w = x.shape
    return {
        "batch": normalised(x, (0, 2, 3), eps),
        "layer": normalised(x, (1, 2, 3), eps),
        "instance": normalised(x, (2, 3), eps),
        "group": normalised(x.view(n, groups, c // groups, h, w), (2, 3, 4), eps).view(x.shape),
    }


# %% [markdown]
# All four norms are this one function. For groups, a view splits the channels into two dimensions, and back. What becomes
# of one element of our tensor, 213?

# %%
for name, y in four(x, groups=2).items():
    print(f"{name:<9} {y[2, 1, 1, 1].item():+.3f}")


# %% [markdown]
# You should see that it depends on the company. Among the elements of channel 1, those of sample 2 are the largest:
# +1.243. Within sample 2 alone, those of the channels 2 and 3 are larger still: −0.311. (And what is **eps**, or
# $\varepsilon$, “epsilon”? A piece whose elements are all the same has no spread to divide by, and $\frac00$ is nan. With
# eps, it becomes zeros.)
#
# ### A gain and a bias
#
# After a norm each piece has mean 0 and spread 1, whether that is good for the task or not. So each channel gets two
# learned parameters, a **gain** $\gamma$ (“gamma”), which is a factor as in lesson 11, and a bias $\beta$ (“beta”).
# They begin as 1 and 0:
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \qquad\qquad z = \gamma \, y + \beta$$
#
# ($\mu$ is the mean, $\sigma^2$ the variance.) With $\gamma = \sigma$ and $\beta = \mu$ a batch norm can even undo
# itself. Then what is gained? The spread is a parameter of its own now. Before, it was what all the weights of all
# earlier layers made it.
#
# ### And back
#
# In the backward pass mean and variance are not constants: they are computed from $x$. So an element $x_j$ acts on
# *every* result of its piece, in three ways: directly, through the mean, and through the standard deviation, $s =
# \sqrt{\sigma^2 + \varepsilon}$.
#
# Take the division first, $y_i = c_i / s$, with $c$ for the centred elements and $m$ for how many there are. Directly,
# $c_j$ gets $\frac{g_j}{s}$, where $g$ is the gradient of $y$. As for $s$: with respect to $c_j$, the derivative of $s^2$ is
# $\frac{2 c_j}{m}$, since $s^2$ is the mean of the $c^2$ (plus $\varepsilon$). By the chain rule it is also $2s$ times
# the derivative of $s$. So $s$ has the derivative $\frac{c_j}{m s} = \frac{y_j}{m}$. And each $y_i$ has the derivative
# $-\frac{c_i}{s^2} = -\frac{y_i}{s}$ with respect to $s$. Added up over all $i$:
#
# $$\frac{\partial L}{\partial c_j} = \frac{g_j}{s} - \sum_i g_i \, \frac{y_i}{s} \cdot \frac{y_j}{m}
# = \frac1s \Bigl(g_j - y_j \cdot \overline{g y}\Bigr)$$
#
# The bar is a mean over the piece. Now the subtraction of the mean, $c = x - \mu$. Its rule was exercise 4 of [lesson
# 7](07_gradient_rules.ipynb): from what arrives, its mean is subtracted. Since the mean of $y$ is 0, that is
#
# $$\frac{\partial L}{\partial x} = \frac1s \Bigl(g - \bar g - y \cdot \overline{g y}\Bigr)$$

# %%
def normalised_rule(g, y, s, dims):
    mean = g.mean(dims, keepdim=True)
    along = (g * y).mean(dims, keepdim=True)
    return (g - mean - y * along) / s


# %% [markdown]
# Two things are subtracted. $\bar g$ is the part of $g$ that moves all of the piece up or down *together*.
# $y \cdot \overline{g y}$, the **projection** of $g$ on $y$, is the part that *scales* it. But for eps, neither would
# change the result: the norm removes just that. And a change without effect gets no gradient. The softmax of lesson 7,
# $y\,(g - \bar g)$, is a cousin: adding the same to all scores changes nothing there, so one mean (by probabilities) is
# subtracted.
#
# Is the rule right? As an operation of our own, with `dims` fixed, it can be nudged by `mg.gradcheck`:

# %%
def own(dims, eps=1e-5):
    class Own(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            s = (x.var(dims, correction=0, keepdim=True) + eps).sqrt()
            y = (x - x.mean(dims, keepdim=True)) / s
            ctx.save_for_backward(y, s)
            return y

        @staticmethod
        def backward(ctx, g):
            return normalised_rule(g, *ctx.saved_tensors, dims)

    return Own.apply


# %%
mg.manual_seed(0)
r = mg.randn(N, C, H, W)
for name, dims in (("batch", (0, 2, 3)), ("layer", (1, 2, 3)), ("instance", (2, 3))):
    print(f"{name:<9} {mg.gradcheck(own(dims), [r])}")


# %% [markdown]
# ### A batch norm remembers
#
# When the network is *used*, for **inference**, there may be a single digit, and no batch to take means of. So while it
# learns, batch norm keeps **running statistics**, a running mean as in [lesson 9](09_optimizers.ipynb) of the means, and
# one of the variances. In inference they replace those of the batch. (Its **momentum** is the weight of the *new* value:
# 0.1 here corresponds to $\beta = 0.9$ there. And for the running variance the squares are divided by $m - 1$, as `var`
# does, since a few samples are nearer to their own mean than to that of all.)

# %%
class BatchNorm:
    def __init__(self, channels, momentum=0.1, eps=1e-5):
        self.mean, self.variance = mg.zeros(channels), mg.ones(channels)
        self.momentum, self.eps, self.training = momentum, eps, True

    def __call__(self, x):  # (N, C)
        if not self.training:
            return (x - self.mean) / (self.variance + self.eps).sqrt()
        with mg.no_grad():
            self.mean += self.momentum * (x.mean(0) - self.mean)
            self.variance += self.momentum * (x.var(0) - self.variance)
        return normalised(x, 0, self.eps)


norm = BatchNorm(1)
for batch in ([[1.0], [3.0]], [[5.0], [7.0]]):
    norm(mg.tensor(batch))
    print(f"after a batch of {batch}: running mean {norm.mean.item():.2f}")

# %% [markdown]
# ## Draw it
#
# A layer norm of two samples, four features each, chosen so that all means and standard deviations are exact. (`eps` is
# 0.) The gradient $g$ of $y$ is 4 at the first element of each sample, and 0 at the others. You should see three lines
# leave $x$: to the mean, to the standard deviation, and directly to the difference.

# %%
# %load_ext minigrad_viz

x = mg.tensor([[1.0, 1.0, 3.0, 3.0], [8.0, 0.0, 0.0, 8.0]], requires_grad=True)
g = mg.tensor([[4.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
with mg.record():
    mean = x.mean(1, keepdim=True)
    s = x.std(1, correction=0, keepdim=True)
    y = (x - mean) / s
    y.backward(g)
print("y:          ", y.tolist())
print("gradient:   ", x.grad.tolist())
print("by our rule:", normalised_rule(g, y.detach(), s.detach(), 1).tolist())
y

# %% [markdown]
# On the way back the three lines bring three contributions (Σ3), and these are the three parts of our rule. In sample 0
# it gives $4 - 1 - (-1) \cdot (-1) = 2$ for the first element, $0 - 1 - (-1) \cdot (-1) = -2$ for the second, and 0 for the
# others. In sample 1 the spread is four times as large, and the gradients are a quarter: a loud signal has to move farther
# for the same effect.
#
# ## Step it
#
# The smallest layer norm has two elements. We ask for the gradient of the first result, and look at what arrives at $x$:

# %%
x = mg.tensor([1.0, 3.0], requires_grad=True)
with mg.record():
    mean = x.mean(0, keepdim=True)
    s = x.std(0, correction=0, keepdim=True)
    centred = x - mean
    y = centred / s
    first = y[0]
    first.backward()

for event in mg.events(first):
    if event.target is x:
        rule, share, total = event.source.name, event.contribution.tolist(), event.total.tolist()
        print(f"{rule:<12} brings {share!s:>12}, in all {total}")

# %%
from minigrad_viz import tour

stops = [
    (y, "1 and 3 have mean 2 and standard deviation 1, so y is −1 and 1."),
    ("seed", "Back from the first of them: its gradient is 1."),
    ((x, s), "Through s. If the second element grows, so does s, and −1 comes nearer to 0: ½."),
    ((x, centred), "Directly: the first element gets 1."),
    ((x, mean), "Through the mean: −½ for each. Together 0 and 0."),
]
tour(first, stops)

# %% [markdown]
# You should see that both elements get 0 in the end. It is no accident: two *different* elements, whatever they are, always
# become −1 and +1. One of their two freedoms was the mean, the other the spread. Take both out, and nothing is left to
# learn from.
#
# ## Compare with the library
#
# `nn` has the four as layers, under PyTorch's names. Do they give our results? And which elements of the result move if we
# nudge a single one, at sample 1, channel 2, position 0? Those that share its mean:

# %%
layers = {
    "batch": nn.BatchNorm2d(C),
    "layer": nn.LayerNorm((C, H, W)),
    "instance": nn.InstanceNorm2d(C),
    "group": nn.GroupNorm(2, C),
}
nudge = mg.zeros(N, C, H, W)
nudge[1, 2, 0, 0] = 0.5
for name, layer in layers.items():
    equal = mg.allclose(layer(r), four(r, groups=2)[name], atol=1e-6)
    moved = (layer(r + nudge) - layer(r)).abs() > 1e-9
    sizes = [p.shape for p in layer.parameters()]
    print(f"{name:<9} equal: {equal}   moved: {moved.sum().item():2}   gain and bias: {sizes}")

# %% [markdown]
# You should see the sizes of the pieces again: 12, 16, 4 and 8. Gain and bias are one value a channel, as a rule; a
# layer norm has one for each element of a sample, and an instance norm none, unless you ask with `affine=True`. (Group norm
# lies between two of the others. With a single group it is a layer norm, and with a group for each channel an instance
# norm.)
#
# And the running statistics. `train()` puts a model into **training mode**, `eval()` into **evaluation mode**,
# with all layers in it:

# %%
ours, theirs = BatchNorm(64), nn.BatchNorm1d(64)
for k in range(3):
    batch = data.train_x[100 * k : 100 * k + 100].double().flatten(1)
    learning = mg.allclose(ours(batch), theirs(batch), atol=1e-6)
theirs.eval()
ours.training = False
print("learning:          ", learning)
print("running statistics:", mg.allclose(ours.variance, theirs.running_var, atol=1e-6))
print("in use:            ", mg.allclose(ours(batch), theirs(batch), atol=1e-6))

# %% [markdown]
# ## Two bad starts
#
# Lesson 11 needed care for the first weights. Now we are careless: the weights of the eight layers get a standard
# deviation of 0.05 (it should be 0.18), or of 0.5. Spread by layer, and what 90 steps of learning make of it:

# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm

norms = {"none": None, "layer norm": nn.LayerNorm, "batch norm": nn.BatchNorm1d}
cases = [(name, start) for start in (0.05, 0.5) for name in norms]
models = {case: deep(norms[case[0]], case[1]) for case in cases}
at_start = {case: spreads(models[case], test_x) for case in cases}
losses = {case: train(models[case]) for case in tqdm(cases, desc="learning")}

# %%
fig, axes = plt.subplots(2, 2, figsize=(6.8, 5.4), sharex="row", sharey="row")
styles = {"none": ("#555555", 2.2), "layer norm": ("#0072B2", 5), "batch norm": ("#E69F00", 2.2)}
for name, start in cases:
    above, below = axes[:, int(start > 0.1)]
    color, width = styles[name]
    above.semilogy(range(1, 9), at_start[name, start], "o-", color=color, linewidth=width, markersize=4)
    above.set(title=f"started with {start}", xlabel="layer", xticks=range(1, 9))
    below.plot(range(5, 95, 10), mg.tensor(losses[name, start]).view(-1, 10).mean(1).tolist(), color=color)
    below.set(xlabel="step", ylim=(0, 3))
for name, place in (("none", (5, 2.42)), ("layer norm", (22, 1.4)), ("batch norm", (45, 0.35))):
    axes[1, 0].text(*place, name, color=styles[name][0])
axes[0, 0].set_ylabel("spread at the start")
axes[1, 0].set_ylabel("loss (mean of 10 steps)")
plt.show()

# %% [markdown]
# You should see in the upper row that without a norm (grey) each layer multiplies the spread, by about 0.3 or about 3,
# and that with one it is the same in all layers, whatever the weights are. Below, what comes of it. Without a norm
# nothing is learned. (On the right, the first steps are so large that all ReLUs die; 2.3 is the loss of an answer that
# gives ten digits equal chances.) With a norm, all four learn. And afterwards?

# %%
for name, start in cases:
    if name != "none":
        after = spreads(models[name, start], test_x)
        print(f"{name}, started with {start:<4}  spreads {min(after):.1f} to {max(after):.1f} after 90 steps")

# %% [markdown]
# So a layer can keep its spread by itself. *Why* that helps so much is disputed. Ioffe and Szegedy, who introduced batch
# norm, argued that a layer learns better if its inputs stop moving about while the layers before it learn. Santurkar and
# others disturbed the inputs on purpose, behind a batch norm, and the network learned as well as before. They argue that a
# norm makes the loss smoother, so that a gradient stays accurate for a longer step.
#
# ## Break it: a batch of one
#
# A mean over samples needs samples. What does a batch norm make of a single one, or of the same one twice?

# %%
from minigrad.errors import ShapeError

alone = mg.tensor([[7.0, -2.0, 5.0]])
print("one sample:        ", normalised(alone, 0).tolist())
print("the same one twice:", normalised(alone.expand(2, 3), 0).tolist())
try:
    nn.BatchNorm1d(3)(alone)
except ShapeError as error:
    print(error)


# %% [markdown]
# Each element *is* the mean, so nothing is left of it. The library raises an error in the first case. It cannot detect
# the second, nor two samples that differ: there each channel becomes −1 and +1, as in the player above. So small batches
# suit a batch norm badly. That is what group norm was made for.
#
# ## Break it: who else is there?
#
# Take the number 3. In a batch with 1 it becomes +1, in one with 5 it becomes −1. While it learns, a network can live
# with that; in inference it must not happen. But it does whenever someone forgets `model.eval()`. We let the network with
# batch norm read 290 test digits, in batches of ten:

# %%
def share_right(order, learning):
    # A copy, since in training mode each batch moves the running statistics.
    model = copy.deepcopy(models["batch norm", 0.05]).train(learning)
    answers = [model(test_x[some]).argmax(1) == test_y[some] for some in order.split(10)]
    return mg.cat(answers).double().mean().item()


mixed, sorted_by_digit = mg.arange(290), test_y[:290].argsort()
bars = {
    "eval(), in any order": share_right(mixed, learning=False),
    "train(), mixed": share_right(mixed, learning=True),
    "train(), sorted by digit": share_right(sorted_by_digit, learning=True),
}

# %%
fig, ax = plt.subplots(figsize=(6.4, 2.2))
ax.barh(list(bars), [100 * share for share in bars.values()], color=["#009E73", "#E69F00", "#D55E00"])
for row, share in enumerate(bars.values()):
    ax.text(100 * share + 1, row, f"{share:.0%}", va="center")
ax.set(xlabel="right answers (%)", xlim=(0, 110))
ax.invert_yaxis()
plt.show()


# %% [markdown]
# You should see the same weights and the same digits, three times. With `eval()` more than nine in ten are right. In
# training mode and mixed batches it is about three in four. In batches of ten that are nearly all the same digit, hardly
# more than by guessing: what they have in common is what the mean takes out. A layer norm has no such trouble: no
# sample depends on another.
#
# ## Break it: weights that have no size
#
# What happens to a linear layer whose results go into a batch norm, if we double its weights?

# %%
def layer(w):
    w = w.detach().requires_grad_()
    y = normalised(signals @ w, 0, eps=0.0)
    (y * g).sum().backward()
    return y.detach(), w.grad


mg.manual_seed(0)
signals, w, g = mg.randn(16, 5), mg.randn(5, 3), mg.randn(16, 3)
(y, slope), (y_twice, slope_twice) = layer(w), layer(2 * w)
print("the result is the same:       ", mg.allclose(y_twice, y, atol=1e-6))
print("the gradient is half as large:", mg.allclose(slope_twice, slope / 2, atol=1e-6))
print("it is at right angles to w:   ", (slope * w).sum(0).abs().max().item() < 1e-6)

# %% [markdown]
# What is doubled is divided out again. So only the *direction* of the weights matters. Their size is a hidden learning
# rate: with double weights and half the gradient, a step turns them a quarter as far. Look at the losses above once more.
# The two networks with batch norm had weights of the same directions and began with the same answers; where the weights
# were ten times as large, the eight layers learned as with a hundredth of the rate. (And since the gradient is at right
# angles to the weights, each step makes them longer, and so this rate smaller.) A bias before the norm is taken out
# altogether, which is why `deep` has `bias=False`.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 12.1 · Words
#
# A tensor (8, 20, 64) contains 8 sentences of 20 words each, and 64 elements, its *features*, for each word. Which `dims`
# does `normalised` need, and how many means does it take, so that mean 0 and spread 1 has
#
# - each `"word"`;
# - each `"feature"`, in all words of all sentences together;
# - each `"sentence"` as a whole;
# - each `"feature of a sentence"`, over the words of that sentence alone?
#
# For the batch norm of our tensor (3, 4, 2, 2), the answer would be `((0, 2, 3), 4)`.

# %%
pieces = {"word": ..., "feature": ..., "sentence": ..., "feature of a sentence": ...}

# %%
lessons.check("12.1", pieces)


# %% [markdown]
# ### Exercise 12.2 · The whole layer norm, back
#
# `z = normalised(x, 1, eps) * gain + bias`, with $x$ of shape (N, D), `gain` and `bias` of shape (D,). Write its rule:
# given $g$, the gradient of $z$, it returns what $x$, the gain and the bias get, three tensors.

# %%
def layer_norm_rule(g, x, gain, eps):
    return ...


# %%
lessons.check("12.2", layer_norm_rule)

# %% [markdown]
# ### Exercise 12.3 · How long is its memory?
#
# A running mean begins at 0, with momentum 0.1, and in every batch the mean is 8. What is it after three batches
# (`"three"`)? After how many is it within 1 % of 8 for the first time (`"enough"`)? And another one: it should be, after
# every batch, the plain mean of all the batches so far. Which momentum must the *third* batch have (`"third"`)? (This is
# what `momentum=None` does.)

# %%
memory = {"three": ..., "enough": ..., "third": ...}

# %%
lessons.check("12.3", memory)


# %% [markdown]
# ### Exercise 12.4 · Fold it away
#
# In evaluation mode, a batch norm is a product and a sum with constants, and so is the linear layer before it. Then the
# two are *one* linear layer, and the norm costs nothing. Write `fold(linear, norm)`, which returns its weight and its
# bias, two tensors. `linear` computes `x @ weight.T + bias`, a row of its weight for each output. `norm`, in evaluation
# mode, has `running_mean`, `running_var`, `eps`, and as gain and bias `weight` and `bias`.

# %%
def fold(linear, norm):
    return ...


# %%
lessons.check("12.4", fold)

# %% [markdown]
# ## Where this comes from
#
# - S. Ioffe and C. Szegedy, “Batch normalization: accelerating deep network training by reducing internal covariate shift”, ICML (2015).
# - J. L. Ba, J. R. Kiros and G. E. Hinton, “Layer normalization”, arXiv:1607.06450 (2016).
# - D. Ulyanov, A. Vedaldi and V. Lempitsky, “Instance normalization: the missing ingredient for fast stylization”,
#   arXiv:1607.08022 (2016).
# - T. van Laarhoven, “L2 regularization versus batch and weight normalization”, arXiv:1706.05350 (2017): weights whose size is a
#   learning rate.
# - Y. Wu and K. He, “Group normalization”, ECCV (2018): with a picture of the four, like ours.
# - S. Santurkar, D. Tsipras, A. Ilyas and A. Mądry, “How does batch normalization help optimization?”, NeurIPS (2018).
#
# A norm rescales activations, whatever they represent. Next, a network that chooses where to look:
# **[13 · Attention](13_attention.ipynb)**
