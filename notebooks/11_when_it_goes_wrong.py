# %% [markdown]
# # 11 · When it goes wrong
#
# *Before: [10 · Convolution](10_convolution.ipynb) · Next: [12 · Normalisation](12_normalisation.ipynb)*
#
# ## The question
#
# A program with a mistake in it mostly stops, and says where. A network with a mistake in it does not. It computes, it takes its steps, it
# prints numbers; only it does not learn. Here is a training loop as in [lesson 9](09_optimizers.ipynb), and its handwritten digits: 64 pixels
# from 0 to 1, and ten classes.

# %%
import math
from itertools import pairwise

import matplotlib.pyplot as plt

import minigrad as mg
from minigrad import nn

plt.style.use("lessons.mplstyle")
mg.manual_seed(0)
data = mg.data.digits()
images, labels = data.train_x.flatten(1), data.train_y
cross_entropy = nn.functional.cross_entropy


# %%
def network(bend, *sizes):
    mg.manual_seed(0)
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), bend()]
    return nn.Sequential(*layers[:-1])  # no tanh or ReLU after the scores


# %%
def train(model, x, t, lr, loss_of=cross_entropy, steps=100):
    optimizer, losses = mg.optim.SGD(model.parameters(), lr=lr), []
    for _ in range(steps):
        chosen = mg.randint(0, len(x), (100,))
        optimizer.zero_grad()
        loss = loss_of(model(x[chosen]), t[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# With this loop we train six networks, 100 steps each. One is healthy. The other five are our *patients*: each has a fault. Some are `small`, with 32 neurons between
# pixels and scores, and some are `deep`, with 20 layers. (Look at the picture before you read the next two cells closely: they show which fault is where.)

# %%
def small():
    return network(nn.ReLU, 64, 32, 10)


def deep():
    return network(nn.Tanh, *[64] * 20, 10)


def wild(model):
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -1, 1)
    return model


def by_hand(scores, t):
    p = scores.exp() / scores.exp().sum(1, keepdim=True)
    return -p[mg.arange(len(t)), t].log().mean()


# %%
mixed = labels[mg.randperm(1500)]
six = {
    "healthy": (small, images, labels, 0.5),
    "A": (deep, images, labels, 0.03),
    "B": (lambda: wild(deep()), images, labels, 0.03),
    "C": (small, images, labels, 5.0),
    "D": (small, images * 255, labels, 0.1, by_hand),
    "E": (small, images, mixed, 0.5),
}

# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm

curves = {}
for name, (make, *rest) in tqdm(six.items(), desc="training"):
    curves[name] = train(make(), *rest)

# %%
fig, axes = plt.subplots(2, 3, figsize=(7.4, 4.4), sharex=True, sharey=True)
for ax, (name, losses) in zip(axes.flat, curves.items(), strict=True):
    ax.plot(losses, color="#009E73" if name == "healthy" else "#D55E00", linewidth=1.6)
    ax.axhline(math.log(10), color="#999999", linewidth=1, linestyle="--")
    ax.set_title(name)
    if math.isnan(losses[-1]):
        ax.text(50, 5, "∞, then nan", color="#D55E00", ha="center")
axes[0, 0].text(99, 2.7, "ln 10", color="#666666", ha="right")
axes[0, 0].set(ylim=(0, 11), yticks=[0, 5, 10])
fig.supxlabel("step")
fig.supylabel("loss")
plt.show()


# %% [markdown]
# You should see six losses. That of the healthy network falls. A, E and, after some leaps, C stay near $\ln 10 = 2.30$, the dashed line: the loss of somebody who gives
# each of the ten digits the same probability. B begins far above it, and comes down to it. In D there is no curve at all: its loss was infinite once, and then “not a number”.
#
# Four of them end at the same line, and have four different faults. So the curve tells us *that* something is wrong, and hardly what.
#
# **The loss does not fall, and there is no error message: where do you look?**
#
# ## Guess: twenty factors
#
# The first two patients are deep. Say that the outputs of a layer differ, from sample to sample, by about half as much as its inputs. Or by
# one and a half times as much. Neither sounds dramatic. How much is left of the differences after 20 layers? Write your two guesses down before you run the cell.
#
# (For “how much they differ” we take the *standard deviation*, known from [lesson 4](04_a_network_of_values.ipynb), over the samples, and its mean over the neurons. We call that the
# **spread** of a layer. The weights are drawn so that the factors come out; how that is done, you will see below.)

# %%
def spread(h):
    return h.std(0).mean().item()


def chain(factor, depth=20):
    mg.manual_seed(0)
    h, spreads = mg.randn(200, 64), []
    for _ in range(depth):
        h = h @ (mg.randn(64, 64) * factor / 8)
        spreads.append(spread(h))
    return spreads


for factor in (0.5, 1.5):
    print(f"{factor} to the power of 20: {factor**20:.1g}   measured after 20 layers: {chain(factor)[-1]:.1g}")


# %% [markdown]
# A millionth ($10^{-6}$), and three thousand times as much. (A random layer has its factor only roughly, so what was measured is a little off.)
#
# If the spread is a millionth, each neuron computes nearly the same for every sample, and no layer that comes after it can tell the samples
# apart. And the way back is a product of factors, too: there it is the *gradients* that fade, or grow. One says that they **vanish**, or **explode**.
#
# ## Build it: an instrument
#
# So let us look at the spread of each layer, of its **activations** (its outputs, going forward) and of their gradients (going backward). `mg.grad` returns the gradients of any tensors on the way.
# (We differentiate the sum of the losses, so that the gradient of an image does not depend on how many there are.)

# %%
def look(model, x, t):
    h, signals = x, []
    for part in model:
        h = part(h)
        if not isinstance(part, nn.Linear):
            signals.append(h)
    gradients = mg.grad(cross_entropy(h, t) * len(x), signals)
    return [[spread(h) for h in tensors] for tensors in (signals, gradients)]


# %%
def draw_spreads(models):
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.8), sharey=True)
    for name, (model, color, *places) in models.items():
        for ax, spreads, place in zip(axes, look(model, images, labels), places, strict=True):
            ax.semilogy(range(1, len(spreads) + 1), spreads, "o-", color=color, markersize=3)
            ax.text(*place, name, color=color, fontweight="bold", ha="center")
    axes[0].set(title="forward", ylabel="spread", ylim=(1e-7, 1e5))
    axes[1].set(title="gradients")
    fig.supxlabel("layer")
    plt.show()


places = {"A": ((10, 1e-4), (10, 2e-5)), "B": ((10, 4), (11, 300))}
draw_spreads({"A": (deep(), "#0072B2", *places["A"]), "B": (wild(deep()), "#D55E00", *places["B"])})

# %% [markdown]
# You should see, on a scale of powers of ten, the 19 hidden layers of A (blue) and B (orange). On the left, going forward: in A each layer has little more than half of the spread of
# the one before, so that in the end a few millionths are left. In B the spread soon is nearly 1, the most that a $\tanh$ can give, and stays there. On the right, the gradients; read them
# from the last layer to the first, as they go. In A they vanish, from about a tenth to a few millionths. In B they explode, to thousands.
#
# A can learn nothing, since its first layers get next to no gradient, and the inputs of its last ones do not differ. In B each step throws the first layers far away. There is no mistake in
# their formulas: **only the weights that they begin with have the wrong size.** Those of B were drawn from −1 to 1, which sounds harmless. And in A nobody has planted anything, after all! Its weights are what `nn.Linear`
# draws by default.
#
# ### Where a spread comes from
#
# A neuron computes $z = w_1 x_1 + w_2 x_2 + \dots + w_n x_n + b$. The number of its inputs, $n$, is called its **fan-in**. From one sample to
# another, let the inputs differ by $\Delta x_1, \dots, \Delta x_n$. Then the sum differs by $\Delta z = w_1 \Delta x_1 + \dots + w_n \Delta x_n$. (The bias cancels: it is the same for all samples.)
#
# Now square that. There are squares, $w_k^2 \, \Delta x_k^2$, and products of two different weights, $w_j w_k \, \Delta x_j \Delta x_k$. The weights are drawn at random, each on its own, and as often below 0
# as above. So the products are as often negative as positive, and on average they cancel. The squares remain:
#
# $$\overline{\Delta z^2} = n \cdot \overline{w^2} \cdot \overline{\Delta x^2} \qquad\text{or, in other words,}\qquad \operatorname{Var}(z) = n \cdot \operatorname{Var}(w) \cdot \operatorname{Var}(x)$$
#
# The bar is a mean, over samples and over draws of the weights. The mean of squared differences is twice the **variance**, $\operatorname{Var}$, which is the square of the standard deviation; the 2 is on both sides. So a layer multiplies the *spread* by $\sqrt{n \operatorname{Var}(w)}$, and it hands on
# differences as they are if
#
# $$n \cdot \operatorname{Var}(w) = 1$$
#
# Weights are mostly drawn evenly between two bounds, $-b$ and $b$: a **uniform** distribution. What is its variance? Its mean is 0, so it is the mean of $w^2$ over that interval:
#
# $$\operatorname{Var}(w) = \frac{1}{2b} \int_{-b}^{b} w^2 \, dw = \frac{1}{2b} \cdot \frac{2 b^3}{3} = \frac{b^2}{3}$$
#
# So the bound should be $b = \sqrt{3 / n}$. Let us see whether the spread stays, for three fan-ins; and what becomes of it with the bound that `nn.Linear` uses, $b = 1 / \sqrt{n}$:

# %%
for n in (16, 64, 784):
    x, line = mg.randn(1000, n), f"fan-in {n:>3}"
    for bound in (math.sqrt(3 / n), 1 / math.sqrt(n)):
        w = mg.empty(n, 400).uniform_(-bound, bound)
        line += f"   b = {bound:.4f}: spread times {spread(x @ w) / spread(x):.2f}"
    print(line)


# %% [markdown]
# You should see a factor near 1 in the middle, and one near 0.58 on the right. That is $\sqrt{n \cdot \frac{1}{3n}} = \sqrt{1/3}$, whatever the fan-in. And that is what patient A has: 19 times the factor $\sqrt{1/3}$ makes
# $3 \cdot 10^{-5}$. With two or three layers nobody notices it.
#
# (You may meet the last bound, 0.0357 for a fan-in of 784, elsewhere: it is $1/28$, and 784 are the pixels of a digit of 28 × 28, with which many first networks begin. In a blog post about the autograd library dlgrad, NavneetKanna
# works it out as 0.035, and checks it against PyTorch. Below we check it against minigrad.)
#
# ### The way back, and the activation function
#
# Backward, it is the same calculation. An input $x_k$ is used by all the neurons of a layer, say $m$; $m$ is the layer's **fan-out**. What arrives at $x_k$ is the sum over all of them, $w_{1k} \, g_1 + \dots + w_{mk} \, g_m$
# ([lesson 7](07_gradient_rules.ipynb)). So gradients keep their size if $m \cdot \operatorname{Var}(w) = 1$. In our deep network $m = n = 64$, and one bound serves both ways. Where they differ, one can take the mean of the two, $\operatorname{Var}(w) = \frac{2}{n + m}$: that is
# **Glorot's** rule, also called *Xavier's*, after Xavier Glorot.
#
# Then comes the $\tanh$ or the ReLU; such a function is called an **activation function**. $\tanh$ has the derivative 1 in its middle and less elsewhere, so it takes a little of the spread in each layer. A **gain** makes up for that, a factor on the bound; for $\tanh$, $\frac53$ has proved good. A ReLU cuts away
# all that is below 0. If the sums are distributed below 0 as they are above, that halves the mean of their squares. So with ReLUs the weights need twice the variance: $n \cdot \operatorname{Var}(w) = 2$, which is $b = \sqrt{6 / n}$, a gain of $\sqrt 2$. That is **He's** rule, also called *Kaiming's*, after Kaiming He.
#
# Now we draw the weights of patient A again, by $b = \sqrt{3/n}$ with a gain of 1 and of $\frac53$, and look again:

# %%
def begin(model, bound):
    for layer in model:
        if isinstance(layer, nn.Linear):
            b = bound(layer.in_features)
            nn.init.uniform_(layer.weight, -b, b)
            nn.init.zeros_(layer.bias)
    return model


# %%
plain, gained = [begin(deep(), lambda n, gain=gain: gain * math.sqrt(3 / n)) for gain in (1, 5 / 3)]
draw_spreads(
    {
        "A": (deep(), "#aaaaaa", *places["A"]),
        "B": (wild(deep()), "#aaaaaa", (16, 4), (11, 300)),
        "gain 1": (plain, "#009E73", (13, 1e-2), (6, 5e-3)),
        "gain 5/3": (gained, "#CC79A7", (6, 4), (5, 8)),
    }
)

# %% [markdown]
# You should see A and B again, in grey, and between them four lines that are nearly level: **the spread is the same in all layers**, forward and backward. With the gain 1 (green) the spread fades a little on both ways, with $\frac53$ (pink) it grows a little. Both stay within a
# factor of ten, where A had some thirty thousand. And do they learn?

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2))
for name, losses, color in (
    ("A", curves["A"], "#0072B2"),
    ("gain 1", train(plain, images, labels, 0.03), "#009E73"),
    ("gain 5/3", train(gained, images, labels, 0.03), "#CC79A7"),
):
    ax.plot(losses, color=color)
    ax.text(102, losses[-1], name, color=color, fontweight="bold", va="center")
ax.set(xlabel="step", ylabel="loss", xlim=(0, 118), ylim=(0, 3.2))
plt.show()

# %% [markdown]
# You should see that the same 20 layers, with the same rate on the same images, learn now. (That they begin well does not mean that they stay so. Large networks also have layers that rescale the activations in every step, called *normalisation*, and
# shortcuts around layers, called *residual connections*.)
#
# ## Draw it: a unit that never fires
#
# Patient C is the healthy network with ten times its rate. Here is what can happen then, to one neuron with a ReLU (as it is one of many in a layer, it is also called a **unit**) and one sample. Say that a long step has thrown its bias to −10:

# %%
# %load_ext minigrad_viz

x, w, b = mg.Value(2.0, "x"), mg.Value(3.0, "w"), mg.Value(-10.0, "b")
z = w * x + b
unit = z.relu()
loss = (unit - 1.0) ** 2
loss.backward()
loss

# %% [markdown]
# You should see that the sum $z$ is −4, so the unit outputs 0: it does not **fire**. The loss asks it for more; its gradient is −2. But below 0 the derivative of the ReLU is 0, as the arrow to the unit shows. So $w$, $b$ and $x$ get 0. Not little: *exactly*
# 0. Below the graph there is an **alarm** (!), a sentence about what looks wrong: *unit is 0: dead*.
#
# One sample is no proof: for another $x$, the unit may fire. But if it is silent for *every* sample, its weights get 0 from all of them, no step moves it, and it stays silent. Such a unit is **dead**. Now the 32 units of patient C, on 100 images,
# while it is trained:

# %%
model = small()
fig, axes = plt.subplots(1, 4, figsize=(7.4, 3.2), sharey=True)
moments = (0, "at first"), (1, "after 1 step"), (2, "after 3 steps"), (37, "after 40 steps")
for ax, (steps, title) in zip(axes, moments, strict=True):
    train(model, images, labels, lr=5.0, steps=steps)
    fires = model[1](model[0](images[:100])) > 0
    ax.imshow(fires.T.numpy(), cmap="Blues", vmax=1.4, aspect="auto", interpolation="nearest")
    ax.set(title=title, xticks=[0, 50, 100], yticks=[])
axes[0].set_ylabel("32 units")
fig.supxlabel("image")
plt.show()

# %% [markdown]
# You should see a row for each unit, blue at the images for which it fires. At first nearly every unit answers to some of them. After three steps most rows are empty, and after 40 hardly a unit is left. All that can still learn then are the biases of the ten scores.
# They find out how frequent each digit is, and that is about the same for all: a loss of $\ln 10$.
#
# Why are so many hit at once? Pixels are never negative. So a long step that lowers the weights of a unit lowers its sum for *every* image. The remedy is a shorter step: the healthy network *is* patient C with a tenth of its rate. Another is the
# *leaky* ReLU, which has a small derivative below 0 as well, so that no unit is ever quite dead (exercise 11.1).
#
# ## Step it: the first value that is not finite
#
# In patient D the values themselves are lost. Its loss, `by_hand`, is $-\ln p_t$ with the softmax as written in a book, *without* the largest score subtracted. [Lesson 4](04_a_network_of_values.ipynb) saw that this can give `nan`. Now we want to know *where* that
# comes from. Two scores, 0 and 1000, and the first is that of the right class:

# %%
from minigrad_viz import step

s0, s1 = mg.Value(0.0, "s0"), mg.Value(1000.0, "s1")
e0, e1 = s0.exp(), s1.exp()
p = e0 / (e0 + e1)
loss = -p.log()
loss.backward()
step(loss, position=2)

# %% [markdown]
# You should see *every* box with a thick red border: each has a value or a gradient that is not finite. That is how one finds a network after the event. The alarms (in the player, click *Alarms*) name the two that matter: the first non-finite value on the way forward, and the first on the way back.
#
# Forward it is $e^{1000}$, too large for any float: **infinity**, ∞. What follows are the rules for floats: $1 / \infty = 0$ and $\ln 0 = -\infty$, so the loss is ∞. Now the way back, event by event:

# %%
names = {id(s0): "s0", id(s1): "s1", id(e0): "e0", id(e1): "e1", id(p): "p"}
for event in mg.events(loss):
    target = names.get(id(event.target), event.target.op and event.target.op.name)
    print(f"{event.source.op.name:>3} -> {target:<3}", end="   ")
    print(f"{event.upstream:>4g} × {event.local:g} = {event.contribution:g}")

# %% [markdown]
# It happens at the division: −∞ · 0 has no value, hence `nan`, **not a number**. From there on all is `nan`, since whatever is computed with `nan` is `nan` again. One step with such a gradient, and the weights are `nan` for good.
#
# So with values that are not finite: **do not ask where you see one, ask where the first was.** (While this notebook runs, the player has stopped just there, at $e^{1000}$.)
#
# ### The line in which it happened
#
# In a long program one would rather not draw. Inside `with mg.detect_anomaly():` minigrad checks every result, and raises an error at the first value that is not finite. Here are ten images as patient D sees them:

# %%
x, t = images[60:70] * 255, labels[60:70]
try:
    with mg.detect_anomaly():
        by_hand(small()(x), t)
except mg.errors.GraphError as error:
    print(error)

# %% [markdown]
# You should see which operation it was (a logarithm), how many values are not finite (one of ten), in which pass, and the very line of `by_hand`. A probability was so small that it was rounded to 0, and $\ln 0$ is −∞. (In `float32` a value below $e^{-104}$ is rounded to 0, and $e^{89}$ is ∞ already.)
#
# The cure is to do without $p$. The logarithm of a quotient is a difference, and the largest score, $M$, can be taken out of the sum:
#
# $$-\ln p_t = \ln \sum_j e^{s_j} - s_t = \left( M + \ln \sum_j e^{s_j - M} \right) - s_t \qquad M = \max_j s_j$$
#
# Now the largest power is $e^0 = 1$, and the sum is at least 1: nothing overflows, and nothing is a logarithm of 0. `cross_entropy` is computed in this way:

# %%
print(f"{cross_entropy(small()(x), t).item():.0f}")

# %% [markdown]
# So the values are finite now. The patient is not healthy: a loss of 48, where $\ln 10 = 2.3$ would mean “no idea”, comes from scores that are far too large. We have treated a symptom. What made the scores so large? Look at how D was defined: its pixels go from 0 to 255, as in most
# image files, and nobody has divided them. That was the fault, and `nan` only its loudest sign.
#
# ## Compare with the library
#
# The rules for weights are in `nn.init`, under their second names. Of 784 × 100 weights that each draws, is the largest the bound that we derived, to 1 %? And is that of `nn.Linear` the 0.0357 from above?

# %%
w = mg.empty(100, 784)  # as PyTorch stores it: a row for each neuron
found = {
    "nn.Linear": (nn.Linear(784, 100).weight, 1 / math.sqrt(784)),
    "xavier_uniform_": (nn.init.xavier_uniform_(w.clone()), math.sqrt(6 / (784 + 100))),
    "kaiming_uniform_, relu": (nn.init.kaiming_uniform_(w.clone(), nonlinearity="relu"), math.sqrt(6 / 784)),
    "kaiming_uniform_, a=√5": (nn.init.kaiming_uniform_(w.clone(), a=math.sqrt(5)), 1 / math.sqrt(784)),
}
for name, (weight, bound) in found.items():
    print(f"{name:<23} bound {bound:.4f}   as drawn: {0.99 * bound < weight.abs().max().item() <= bound}")
print("gains:", *[f"{bend} {nn.init.calculate_gain(bend):.2f}" for bend in ("linear", "tanh", "relu")])

# %% [markdown]
# You should see `True` four times. (`kaiming_uniform_` is He's rule for leaky ReLUs. With a derivative of $\sqrt5$ below 0, which nobody would use, its formula happens to give $1/\sqrt n$. That is how PyTorch writes its default, and how the blog post comes to it.)
#
# Next, `watch`. It does what our `look` does, and more, *while* a network is trained. It gets each loss. Patient C again:

# %% tags=["nbval-ignore-output"]
from minigrad_viz import watch

model = small()
optimizer = mg.optim.SGD(model.parameters(), lr=5.0)
with watch(model, share=0.5) as seen:
    for _ in range(100):
        chosen = mg.randint(0, 1500, (100,))
        optimizer.zero_grad()
        loss = cross_entropy(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
        seen.log(loss)

# %% [markdown]
# You should see the loss; below it the *gradient flow*, a row for each layer and a column for each step that was measured, where the colour says, in powers of ten, how large the gradient of the weights was; and a row for each layer: its activations and their gradients, as histograms; how far a step moves the
# weights, compared with their size (in grey, where that mostly is while a network learns, about a thousandth); and the fraction of its units that are dead. An alarm (!) stands where more than half of them died, and, a little later, where no gradient reaches the first layer any longer: its weights do not change from
# then on.
#
# Last, a guard against steps that are too long. The **norm** of a gradient is its length: square all its elements, of all parameters together, add them up, and take the root. **Clipping** means: where the norm is above a limit, multiply all by one factor that brings it down to the limit. The direction
# stays. Patient C again, with its rate of 5, and a limit of 0.1, so that no step is longer than ½:

# %%
model, losses = small(), []
optimizer = mg.optim.SGD(model.parameters(), lr=5.0)
for _ in range(100):
    chosen = mg.randint(0, 1500, (100,))
    optimizer.zero_grad()
    loss = cross_entropy(model(images[chosen]), labels[chosen])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
    optimizer.step()
    losses.append(loss.item())
print(f"below 1 in the last 20 steps, on average: {sum(losses[-20:]) / 20 < 1}")

# %% [markdown]
# With a rate that killed it, the network learns. But clipping is a guard, and no healer. In patient B it would shorten the steps, and the gradients of the first layers would still be thousands of times those of the last.
#
# ## Break it: nothing is wrong with the network
#
# One patient is left. E has only finite values and no dead layer, and no alarm will ever report it. For such cases there are tests that do not look inside. They check what every healthy network can do:
#
# - **The loss at the start.** An untrained network should give every class about the same probability. With ten classes, that is a loss near $\ln 10$. (A little more does no harm: the deep network with a gain of $\frac53$ began at 2.9.)
# - **A few samples by heart.** Give it 20 images, again and again. A network that works at all soon **overfits** them, so that the loss is nearly 0.

# %% tags=["nbval-ignore-output"]
by_heart = {}
for name, (make, x, t, *rest) in tqdm(six.items(), desc="by heart"):
    by_heart[name] = train(make(), x[:20], t[:20], *rest, steps=120)[-1] < 0.1

# %%
print("         ln 10 at the start   20 images by heart")
for name, losses in curves.items():
    start = abs(losses[0] - math.log(10)) < 0.5
    print(f"{name:<8} {'yes' if start else 'no':<20} {'yes' if by_heart[name] else 'no'}")

# %% [markdown]
# You should see B and D fail the first test, which takes a single step. A, B, C and D fail the second. E passes both: it learns 20 images as well as the healthy network does. So network and loop are able to learn. Then it must be their *data*: 1,500 images in which there is nothing to learn but by heart.
# So look at that. Not at the files, and not at the code that reads them: at the very tensors that go into the loss.

# %%
fig, axes = plt.subplots(1, 10, figsize=(7.4, 1.3))
for ax, image, answer in zip(axes, images[:10], mixed[:10].tolist(), strict=True):
    ax.imshow(image.view(8, 8).numpy(), cmap="Greys")
    ax.set_title(answer)
    ax.axis("off")
plt.show()


# %% [markdown]
# You should see ten digits, and above each its label. The first is a 7, and its label says otherwise; so it is with all ten. The labels were shuffled and the images not (`mixed`, in the cell that defines the six). In real programs it is a list that is sorted, while another is not, or a file that lacks a line. It takes
# ten seconds to see, and no tool will do it for you.
#
# ## Break it: a fault that helps
#
# In [lesson 9](09_optimizers.ipynb) a loop without `zero_grad` made a ball that rolls on without friction. Here is such a loop with the small network, and the same with `zero_grad`. Would the loss have told you?

# %%
def forgetful(forget, steps=300):
    model, losses = small(), []
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        chosen = mg.randint(0, 1500, (100,))
        if forget:
            optimizer.zero_grad()
        loss = cross_entropy(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4))
ax.plot(forgetful(False), color="#D55E00", linewidth=1)
ax.plot(forgetful(True), color="#009E73")
ax.text(56, 2.2, "with zero_grad", color="#009E73", fontweight="bold")
ax.text(146, 4.3, "without", color="#D55E00", fontweight="bold", ha="right")
ax.set(xlabel="step", ylabel="loss", ylim=(0, 6))
plt.show()

# %% [markdown]
# You should see the faulty loop (orange) far *ahead* for a hundred steps: it goes along the sum of all gradients so far, so its steps get longer. If you stop there, you keep it. Then it becomes restless, and after 200 steps it is lost. It passes both of our tests. What finds it is a question about the loop: **two backward
# passes for the same images, from the same weights, with the loop's own lines between them: is it the same gradient twice?** Here the second is twice the first. (The player has an alarm for that; you saw it in [lesson 3](03_gradients_add_up.ipynb).)
#
# ## Where to look, in order
#
# From what is quick and finds much to what takes longer. And change one thing at a time, or you will not know what it was.
#
# | no. | look at | it should be | if not | patient |
# |---|---|---|---|---|
# | 1 | ten samples, as the loss gets them | what you meant: shape, dtype, range, and the right label with each | fix the data | D, E |
# | 2 | the loss of the first step | near $\ln$ of the number of classes | weights or inputs are too large | B, D |
# | 3 | twenty samples, some hundred steps | learned by heart | it is the network or the loop: go on. But if it *is*: 1 again, then the rate | A, B, C, D |
# | 4 | the first non-finite value: `mg.detect_anomaly()` | none | a stable formula; then ask what made the values so large | D |
# | 5 | spreads by layer, forward and backward | equal, within a factor of ten or so | $b = \text{gain} \cdot \sqrt{3/n}$ | A, B |
# | 6 | `watch`: dead units; update / weight | few; about a thousandth | another rate, clipping, leaky ReLU | C |
# | 7 | the loop: `zero_grad`, `backward`, `step` | the same gradient twice | `zero_grad` before `backward` | – |
# | 8 | rules of your own: `mg.gradcheck` ([lesson 7](07_gradient_rules.ipynb)) | `True` | fix the rule | – |
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons


# %% [markdown]
# ### Exercise 11.1 · A bound for leaky ReLUs
#
# A leaky ReLU gives $z$ where $z$ is above 0, and $a \cdot z$ below. Derive the bound $b$ of the weights, for a fan-in $n$, so that the mean of the squares stays the same from layer to layer: as above, with sums distributed below 0 as they are above. Write it as a function. (Two checks of your own: what
# should come out for $a = 0$? And for $a = 1$, the identity?)

# %%
def leaky_bound(n, a):
    return ...


# %%
lessons.check("11.1", leaky_bound)


# %% [markdown]
# ### Exercise 11.2 · Who is dead?
#
# `z`, (samples, units), is what goes *into* a layer of ReLUs. Write a function that returns a list of the indices of the units, counted from 0, that get no gradient from any sample. (The derivative of the ReLU at 0 itself counts as 0. Tensors can be compared, `z > 0`, and such a table has `any(dim)` and `all(dim)`.)

# %%
def dead_units(z):
    return ...


# %%
lessons.check("11.2", dead_units)


# %% [markdown]
# ### Exercise 11.3 · The logarithm of a sum of powers
#
# For a table of scores `s`, (samples, classes), return $\ln \sum_j e^{s_j}$ of each row, a tensor of shape (samples,). It has to be right for scores of 1000 and of −1000, also in one table, and gradients have to come back through it. (Not by the library's own `logsumexp`, please.)

# %%
def log_sum_exp(s):
    return ...


# %%
lessons.check("11.3", log_sum_exp)


# %% [markdown]
# ### Exercise 11.4 · Repair a training
#
# `w`, (features, classes), is a layer without bias that needs gradients; `x` has a row for each sample, and `t` the right classes. This should take `steps` steps of half the gradient of the mean loss over all samples, change `w` itself, and return the losses. It runs without an error, and it has three faults:
#
# ```python
# def train(w, x, t, steps):
#     losses = []
#     for _ in range(steps):
#         x = x[mg.randperm(len(x))]  # another order in each step
#         powers = (x @ w).exp()
#         p = powers / powers.sum(1, keepdim=True)
#         loss = -p[mg.arange(len(t)), t].log().mean()
#         loss.backward()
#         with mg.no_grad():
#             w -= 0.5 * w.grad
#         losses.append(loss.item())
#     return losses
# ```
#
# Repair it. The check tells you which symptom is left.

# %%
def repaired(w, x, t, steps):
    return ...


# %%
lessons.check("11.4", repaired)

# %% [markdown]
# ## Where this comes from
#
# - S. Hochreiter, *Untersuchungen zu dynamischen neuronalen Netzen*, diploma thesis, Technische Universität München (1991), and Y. Bengio, P. Simard and P. Frasconi, “Learning long-term dependencies with gradient descent is difficult”, *IEEE
#   Transactions on Neural Networks* 5 (1994), pages 157–166: gradients that vanish.
# - X. Glorot and Y. Bengio, “Understanding the difficulty of training deep feedforward neural networks”, AISTATS (2010): spreads by layer, and the first rule.
# - K. He, X. Zhang, S. Ren and J. Sun, “Delving deep into rectifiers: surpassing human-level performance on ImageNet classification”, ICCV (2015): the rule for ReLUs.
# - R. Pascanu, T. Mikolov and Y. Bengio, “On the difficulty of training recurrent neural networks”, ICML (2013): gradients that explode, and clipping.
# - L. Lu, Y. Shin, Y. Su and G. E. Karniadakis, “Dying ReLU and initialization: theory and numerical examples”, arXiv:1903.06733 (2019).
# - C. Zhang, S. Bengio, M. Hardt, B. Recht and O. Vinyals, “Understanding deep learning requires rethinking generalization”, ICLR (2017): networks learn even random labels by heart.
# - A. Karpathy, “A recipe for training neural networks”, blog post (2019): the loss at the start, one batch by heart, and much more of that kind.
# - NavneetKanna, “dlgrad: Behind the scenes”, blog post (2024): the bound for a fan-in of 784.
#
# Weights were chosen so that a signal keeps its spread. Next, a layer that keeps the spread by itself: **[12 · Normalisation](12_normalisation.ipynb)**
