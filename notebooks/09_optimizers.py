# %% [markdown]
# # 9 · Optimizers
#
# *Before: [8 · Kernels and devices](08_kernels_and_devices.ipynb) · Next: [10 · Convolution](10_convolution.ipynb)*

# %% [markdown]
# ## The question
#
# In lessons [3](03_gradients_add_up.ipynb) and [4](04_a_network_of_values.ipynb), each step went downhill by a fraction of the
# gradient. Such a step knows nothing but the gradient under its feet: not how far it is to the minimum, not how the ground bends,
# not where the last step came from. Here is some ground, with two parameters $x$ and $y$:
#
# $$f(x, y) = \tfrac12 \left(x^2 + 25\,y^2\right)$$
#
# The derivatives are $x$ and $25y$. So along $x$ the derivative grows by 1 for each unit of way, and along $y$ by 25. This number is
# called the **curvature**. Where the curvatures are far apart, the ground is a **ravine**, long and narrow. The minimum of
# ours is at (0, 0).

# %%
import math

import minigrad as mg


def ravine(p):
    x, y = p
    return (x * x + 25 * y * y) / 2


p = mg.tensor([-4.0, 1.0], requires_grad=True)
ravine(p).backward()
p.grad.tolist()


# %% [markdown]
# From the point (−4, 1), the minimum lies 4 to the right and 1 down. Against the gradient means 4 to the right and *25* down:
# nearly straight across the ravine.
#
# **What better can be done with the very same gradients?**
#
# ## Guess: a rate a little too large
#
# The factor by which a step multiplies the gradient is called the **learning rate**, or just rate: $p \leftarrow p - \eta\,g$, where
# $g$ is the gradient and $\eta$ (say “eta”) the rate. As a function, and a loop that runs any such rule (what the dict
# `memory` is for, you will see below):

# %%
def sgd(p, g, memory, lr):
    return p - lr * g


def run(rule, f, start, steps, **options):
    p, memory, path = mg.tensor(start, dtype=mg.float64), {}, [start]
    for _ in range(steps):
        p.requires_grad_()
        f(p).backward()
        p = rule(p.detach(), p.grad, memory, **options)
        path.append(p.tolist())
    return path


# %% [markdown]
# We take 20 steps from (−4, 1), at four rates. Before you look: what will the largest of them do? And what is special about
# 0.04?

# %%
import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


def draw_paths(f, paths, goal, box, levels, height, colors=COLORS):
    figure = plt.figure(figsize=(6.4, height))
    axes = figure.subplots(len(paths) // 2, 2, sharex=True, sharey=True, squeeze=False)
    grid = mg.meshgrid(mg.linspace(*box[0], 200), mg.linspace(*box[1], 200), indexing="xy")
    for ax, (name, path), color in zip(axes.flat, paths.items(), colors, strict=False):
        ax.contour(*grid, f(grid), levels, colors="#bbbbbb", linewidths=0.8)
        xs, ys = zip(*path, strict=True)
        ax.plot(xs, ys, "o-", color=color, markersize=min(3, 240 / len(path)), linewidth=1.2)
        ax.plot(*path[0], "o", *goal, "*", color="#333333", markersize=9)
        ax.set_title(f"{name}: {math.dist(path[-1], goal):.2g} away", color=color, fontsize=13)
        ax.set(xlim=box[0], ylim=box[1])
    return axes


# %%
rates = (0.01, 0.04, 0.07, 0.081)
paths = {f"rate {lr}": run(sgd, ravine, [-4.0, 1.0], 20, lr=lr) for lr in rates}

ravine_box, ravine_levels = ((-4.6, 1.4), (-1.7, 1.7)), (0.25, 1, 2.5, 5, 9, 14, 20, 27, 36)
axes = draw_paths(ravine, paths, (0, 0), ravine_box, ravine_levels, 4.2, colors=COLORS[:1] * 4)
axes[0, 0].text(-4.1, 1.25, "start")
axes[0, 0].text(0, 0.3, "minimum", ha="center")
plt.show()

# %% [markdown]
# You should see the ravine from above: each grey ellipse joins points of equal height, as on a map. (Above each walk stands how
# far from the minimum it ends.) With 0.01 the walk creeps. With 0.04 it is on the floor of the ravine in one step, and then
# creeps. With 0.07 it **zigzags** from wall to wall, ever less. With 0.081 it zigzags ever more: that walk never arrives.
#
# ## The rule: two over the curvature
#
# Put the two derivatives into the step, and each parameter is multiplied by a number:
#
# $$x \leftarrow x - \eta\,x = (1 - \eta)\,x \qquad\qquad y \leftarrow y - \eta \cdot 25\,y = (1 - 25\,\eta)\,y$$
#
# In general, where the curvature is $\lambda$ (say “lambda”), a step multiplies the distance to the minimum by
# $1 - \eta\lambda$. It shrinks if that is between −1 and 1, so if $0 < \eta < \frac{2}{\lambda}$. (Where the factor is
# negative, each step lands on the other side: there is the zigzag.) Against the walks above, looking at $y$:

# %%
for lr in rates:
    path = paths[f"rate {lr}"]
    measured = abs(path[1][1] / path[0][1])
    print(f"rate {lr:<5}  along x {1 - lr:.3f}   along y {abs(1 - 25 * lr):.3f}   measured {measured:.3f}")


# %% [markdown]
# You should see (without signs) that $y$ shrinks as predicted, and that it grows only at 0.081, beyond the bound
# $\frac{2}{25} = 0.08$.
#
# That is the trouble with a ravine. The *steepest* direction sets the bound, and the gentle one has to accept it: along
# $x$, no rate that is allowed has a factor better than 0.92. The farther apart the curvatures, the worse. And a ravine need
# not lie along the axes. Turn it, and there still are two directions at right angles, of greatest and least curvature, that
# behave like $y$ and $x$ here. (They are called *eigenvectors*, and their curvatures *eigenvalues*.) Near a minimum, nearly
# every smooth loss is like this: a ravine with as many directions as there are parameters.
#
# ## Build it: steps that remember
#
# A single gradient does not tell a ravine from a hillside. Several do. So an **optimizer** is an update rule with a memory, its
# **state**.
#
# **Momentum** keeps the direction of the walk, as a heavy ball does. Its memory $m$ adds each gradient, and keeps a fraction
# $\beta$ (“beta”) of what it had:
#
# $$m \leftarrow \beta\,m + g \qquad\qquad p \leftarrow p - \eta\,m$$
#
# *Across* the ravine, gradients change their sign from step to step, and cancel. *Along* it they agree, and add up to
# $g\,(1 + \beta + \beta^2 + \dots) = \frac{g}{1 - \beta}$: ten times a single one, with the usual $\beta = 0.9$.

# %%
def momentum(p, g, memory, lr, beta=0.9):
    memory["m"] = beta * memory.get("m", 0) + g
    return p - lr * memory["m"]


# %% [markdown]
# **RMSprop** gives each parameter a rate of its own. Its memory $s$ is a **running mean** of the squared gradients: a mean in
# which older values count less and less (an *exponential moving average*). The step is divided by the root of it, which is the
# size that the gradient has had of late:
#
# $$s \leftarrow \beta\,s + (1 - \beta)\,g^2 \qquad\qquad p \leftarrow p - \eta\,\frac{g}{\sqrt{s}}$$
#
# Where all gradients were 25 and where all were 1, $\frac{g}{\sqrt s}$ is 1: steep or gentle, each parameter moves by about
# $\eta$.

# %%
def rmsprop(p, g, memory, lr, beta=0.9):
    memory["s"] = beta * memory.get("s", 0) + (1 - beta) * g * g
    return p - lr * g / (memory["s"].sqrt() + 1e-8)  # which is never a division by 0


# %% [markdown]
# **Adam** does both: a running mean $m$ of the gradients gives the direction, a running mean $s$ of their squares the size.
# And it corrects a flaw that RMSprop has, too. The means start at 0, as if all gradients before the first had been 0. If the
# gradient is $g$ at every step, then after $t$ steps
#
# $$m = (1 - \beta)\left(1 + \beta + \dots + \beta^{t-1}\right) g = \left(1 - \beta^t\right) g$$
#
# since that sum, times $1 - \beta$, leaves only its first term and the one after its last. So the mean is too small, at the
# first step by the factor $1 - \beta$. Such an error, always to the same side, is called a **bias**, too; it has nothing to
# do with the $b$ of a neuron. The correction is to divide by $1 - \beta^t$:

# %%
m = 0.0
for t in range(1, 6):
    m = 0.9 * m + 0.1 * 1.0  # each gradient is 1
    print(f"after {t} steps: mean {m:.3f}, corrected {m / (1 - 0.9**t):.3f}")


# %%
def adam(p, g, memory, lr, beta1=0.9, beta2=0.999):
    memory["t"] = t = memory.get("t", 0) + 1
    memory["m"] = beta1 * memory.get("m", 0) + (1 - beta1) * g
    memory["s"] = beta2 * memory.get("s", 0) + (1 - beta2) * g * g
    mean, square = memory["m"] / (1 - beta1**t), memory["s"] / (1 - beta2**t)
    return p - lr * mean / (square.sqrt() + 1e-8)


# %% [markdown]
# Plain steps are called **SGD**, *stochastic gradient descent*. (Stochastic means by chance: in training, a gradient is
# mostly that of a few samples drawn at random.) Here are the four in the ravine, 40 steps each. Rates cannot be the same,
# since they do not mean the same: for RMSprop and Adam, a rate is about how far a parameter moves in a step. So each has one
# that suits it, found by trying; that of SGD is near the best there is.

# %%
start = [-4.0, 1.0]
in_ravine = {
    "SGD": run(sgd, ravine, start, 40, lr=0.07),
    "momentum": run(momentum, ravine, start, 40, lr=0.1, beta=0.5),
    "RMSprop": run(rmsprop, ravine, start, 40, lr=0.15),
    "Adam": run(adam, ravine, start, 40, lr=0.1),
}
draw_paths(ravine, in_ravine, (0, 0), ravine_box, ravine_levels, 4.2)
plt.show()

# %% [markdown]
# You should see the zigzag of SGD again. Momentum zigzags at first, but its steps along the ravine get longer and longer,
# at a rate that SGD could not take: it is by far the nearest in the end. (1.5e-06 is short for 0.0000015. A memory of
# $\beta = \frac12$ is long enough for so short a way.) RMSprop goes down and along at about the same speed. Its first steps
# are the longest: that is the bias of $s$. Adam has no such leap; it swings through the floor of the ravine, and is on its
# way.
#
# ## Draw it: a ravine with a bend
#
# In 1960 H. H. Rosenbrock published a function to try such methods on. It is still used for that:
#
# $$f(x, y) = (1 - x)^2 + 100\,(y - x^2)^2$$
#
# Its minimum is at (1, 1), where both squares are 0. The second square is a hundred times as loud: it makes a ravine along
# the curve $y = x^2$. This is the graph at the point (½, ½), off the curve:

# %%
# %load_ext minigrad_viz

x, y = mg.Value(0.5, "x"), mg.Value(0.5, "y")
away = 1 - x
off = y - x**2
f = away**2 + 100 * off**2
f.backward()
f

# %% [markdown]
# You should see that $x$ acts on $f$ along two ways, by how far it is *away* from 1 and by how far the point is *off* the
# curve. The gradient is −51 for $x$ and 50 for $y$. So a step against it goes to the right and *down*, though the minimum is
# to the right and *up*.
#
# ## Step it
#
# Why? `explain` lists what has arrived at $x$, and the player has stopped when the first of it has:

# %%
from minigrad_viz import explain, step

print(explain(x, of=f))
step(f, position=15)


# %% [markdown]
# You should see in the list that only −1 of the −51 comes through *away*, which knows where the minimum is. The other −50,
# and all that $y$ gets, have one message: *down to the floor of the ravine*. An optimizer has to find the 1 under the 50, and for
# that it needs a memory. (Below the list is the same graph. While this notebook runs, open *What if* there, and move $y$ down
# to 0.25, onto the floor: the 50s are gone, and only the −1 is left at the end.)
#
# ## The race in the bend
#
# Now the four, from (−1, 1½), 300 steps each, again at rates that were found by trying. (Momentum has its usual $\beta = 0.9$
# here: the way is longer.)

# %%
def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


start = [-1.0, 1.5]
on_rosenbrock = {
    "SGD": run(sgd, rosenbrock, start, 300, lr=0.002),
    "momentum": run(momentum, rosenbrock, start, 300, lr=0.0015),
    "RMSprop": run(rmsprop, rosenbrock, start, 300, lr=0.02),
    "Adam": run(adam, rosenbrock, start, 300, lr=0.2),
}
box = ((-1.7, 1.7), (-0.5, 2.1))
axes = draw_paths(rosenbrock, on_rosenbrock, (1, 1), box, (1, 4, 16, 64, 256, 1024), 5.2)
plt.show()

# %% [markdown]
# You should see that SGD jumps from wall to wall and then crawls along the floor: it does not get round the bend. Momentum swings
# through it. RMSprop and Adam soon keep to the floor. How far is each from the minimum, after each step?

# %%
fig, ax = plt.subplots()
for (name, path), color in zip(on_rosenbrock.items(), COLORS, strict=True):
    distances = [math.dist(p, (1, 1)) for p in path]
    ax.semilogy(distances, color=color)
    ax.text(305, distances[-1], name, color=color, va="center")
ax.set(xlabel="step", ylabel="distance to the minimum", xlim=(0, 370), xticks=range(0, 301, 50))
plt.show()


# %% [markdown]
# You should see that on a scale of powers of ten momentum falls first, and that none has arrived. There is no best optimizer.
# Which one wins depends on the ground, and on the rates.
#
# ## Compare with the library
#
# `mg.optim` has these rules and more, with PyTorch's names. An optimizer gets the parameters once. Then the loop is
# always the same: `zero_grad`, `backward`, `step`. (RMSprop's $\beta$ is called `alpha` there, Adam's are `betas`.)

# %%
def by_library(make, f, start, steps):
    p = mg.tensor(start, dtype=mg.float64, requires_grad=True)
    optimizer, path = make([p]), [start]
    for _ in range(steps):
        optimizer.zero_grad()
        f(p).backward()
        optimizer.step()
        path.append(p.tolist())
    return path


# %%
makers = {
    "SGD": lambda ps: mg.optim.SGD(ps, lr=0.07),
    "momentum": lambda ps: mg.optim.SGD(ps, lr=0.1, momentum=0.5),
    "RMSprop": lambda ps: mg.optim.RMSprop(ps, lr=0.15, alpha=0.9),
    "Adam": lambda ps: mg.optim.Adam(ps, lr=0.1),
}
for name, make in makers.items():
    path = mg.tensor(by_library(make, ravine, [-4.0, 1.0], 40))
    print(f"{name:<9} same path: {mg.allclose(path, mg.tensor(in_ravine[name]), atol=1e-6)}")

# %% [markdown]
# The results are the same; the work is not. Our Adam launches a kernel for each operation in it, and each allocates a tensor.
# That of the library updates the parameter and its state in-place, in a single fused kernel, as there was one for swish in
# [lesson 8](08_kernels_and_devices.ipynb).
#
# ## Which rate?
#
# Nobody knows the curvatures of a network. But the bound can be measured: begin with a rate that is surely too small, multiply it
# by the same factor after each step, and watch the loss. That is a **learning-rate range test**.
#
# We take a network that reads handwritten digits of 8 × 8 pixels. `Flatten` turns the pixels into a list of 64 numbers. `Linear`
# is a **linear layer**, the $X W$ of [lesson 7](07_gradient_rules.ipynb) plus a bias for each neuron, and holds its weights:
# one computes 32 features from the 64, another 10 scores from these. `Sequential` runs them one after the other.
#
# Each step uses a **mini-batch**: 100 of the 1,500 digits, drawn at random without repetition until all have been used.
# `DataLoader` draws them. Once through all digits, here 15 steps, is an **epoch**. The rate of an optimizer is changed by a
# **scheduler**, with a `step` of its own after each of the optimizer's. `ExponentialLR` multiplies it.

# %%
data = mg.data.digits()
batches = mg.data.DataLoader(data.train, batch_size=100, shuffle=True)
cross_entropy = mg.nn.functional.cross_entropy


def network():
    mg.manual_seed(0)
    return mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 32), mg.nn.ReLU(), mg.nn.Linear(32, 10))


network()


# %%
def range_test(make, low, high, epochs=8):
    model, rates, losses = network(), [], []
    optimizer = make(model.parameters(), lr=low)
    growth = (high / low) ** (1 / (epochs * len(batches)))
    scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, growth)
    for _ in range(epochs):
        for images, labels in batches:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            rates.append(scheduler.get_last_lr()[0])
            losses.append(loss.item())
            scheduler.step()
    return rates, losses


# %%
fig, ax = plt.subplots()
ax.semilogx(*range_test(mg.optim.Adam, 1e-5, 1.0), color="#CC79A7")
ax.semilogx(*range_test(mg.optim.SGD, 1e-3, 10.0), color="#0072B2")
ax.text(0.012, 0.9, "Adam", color="#CC79A7", ha="right")
ax.text(1.8, 1.3, "SGD", color="#0072B2")
ax.text(1e-4, 2.5, "too small: nothing moves", color="#555555")
ax.text(3, 3.4, "too large", color="#555555")
ax.set(xlabel="learning rate", ylabel="loss of a mini-batch", ylim=(0, 4))
plt.show()

# %% [markdown]
# You should see three parts in each curve. On the left the steps are too small to matter. In the middle the loss falls. On
# the right it jumps up, for SGD at a rate between 1 and 2: the bound. Take a rate from where the loss falls steeply, some
# three to ten times below the jump: 0.3 for SGD, say, and 0.03 for Adam, which gets restless from 0.1 on. (The steps of a
# range test build on each other, so it shows the size of a good rate, and not its digits.)
#
# ## A rate that falls
#
# A large rate gets far in few steps, and then leaps to and fro above the minimum; all the more since each mini-batch has
# another gradient. A small one gets close, and takes long. A **schedule** has both: it begins large, and ends small. A
# popular one is half a wave of the cosine. `LambdaLR` multiplies the first rate by a function of the step:

# %%
EPOCHS = 15
TOTAL = EPOCHS * 30  # steps, with mini-batches of 50
schedules = {
    "0.1": (0.1, lambda t: 1.0),
    "0.01": (0.01, lambda t: 1.0),
    "cosine": (0.1, lambda t: (1 + math.cos(math.pi * t / TOTAL)) / 2),
}


# %%
def train(lr, share):
    model, losses = network(), []
    optimizer = mg.optim.Adam(model.parameters(), lr=lr)
    scheduler = mg.optim.lr_scheduler.LambdaLR(optimizer, share)
    for _ in range(EPOCHS):
        for images, labels in mg.data.DataLoader(data.train, batch_size=50, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            optimizer.step()
            scheduler.step()
        with mg.no_grad():
            losses.append(cross_entropy(model(data.train_x), data.train_y).item())
    return losses


# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm

learned = {name: train(*schedules[name]) for name in tqdm(schedules, desc="learning")}
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.4), width_ratios=(2, 3))
for (name, (lr, share)), color in zip(schedules.items(), ("#D55E00", "#56B4E9", COLORS[3]), strict=True):
    left.plot([lr * share(t) for t in range(TOTAL)], color=color)
    right.semilogy(range(1, EPOCHS + 1), learned[name], color=color)
    right.text(EPOCHS + 0.4, learned[name][-1], name, color=color, va="center")
left.set(xlabel="step", ylabel="rate of Adam")
right.set(xlabel="epoch", ylabel="loss of all 1,500 digits", xlim=(0, EPOCHS + 4))
plt.show()


# %% [markdown]
# You should see on the left the three rates, and on the right what becomes of the loss. With 0.1 (orange) it is low soon, and
# then goes up and down. With 0.01 (light blue) it falls calmly. The cosine (pink) is as quick as the first, and at the end,
# where its rate goes to 0, calmer and lower than both. (This is the **training loss**, of the digits that it learns from. How it
# does on others is another question, as it was for the irises.) `CosineAnnealingLR(optimizer, T_max=TOTAL)` is this schedule
# ready made, and `mg.optim.lr_scheduler` has a dozen more.
#
# ## Break it: a memory too short, a memory too long
#
# Two mistakes that give no error message. In the first, the optimizer is re-created in the loop, with an empty memory.
# In the second, `zero_grad` is forgotten.

# %%
def careless(steps, recreated=False, zero=True, **options):
    p = mg.tensor([-4.0, 1.0], dtype=mg.float64, requires_grad=True)
    optimizer, path = mg.optim.SGD([p], **options), [p.tolist()]
    for _ in range(steps):
        if recreated:
            optimizer = mg.optim.SGD([p], **options)
        if zero:
            optimizer.zero_grad()
        ravine(p).backward()
        optimizer.step()
        path.append(p.tolist())
    return path


# %%
kept, recreated = [careless(40, recreated, lr=0.1, momentum=0.5) for recreated in (False, True)]
for k in (0, 10, 20, 40):
    print(f"after {k:2} steps: kept {math.hypot(*kept[k]):.3f}, re-created {math.hypot(*recreated[k]):,.0f}")

# %% [markdown]
# Without its memory, momentum is SGD. And 0.1 is over the bound of 0.08: what was next to nothing grows by half at each step.
# (With a smaller rate it would not have blown up. It would only have been slow, and nobody would have known why.)
#
# Without `zero_grad`, gradients add up in the parameters ([lesson 3](03_gradients_add_up.ipynb)), and each step goes along
# the sum of all so far. But that is $m \leftarrow \beta\,m + g$ with $\beta = 1$: momentum that forgets nothing, a ball
# without friction.

# %%
walks = {"with zero_grad": careless(150, lr=0.02), "without": careless(150, zero=False, lr=0.02)}
frictionless = run(momentum, ravine, [-4.0, 1.0], 150, lr=0.02, beta=1.0)
same = mg.allclose(mg.tensor(walks["without"]), mg.tensor(frictionless), atol=1e-6)
print("without zero_grad it is momentum with beta = 1:", same)
draw_paths(ravine, walks, (0, 0), ((-4.6, 4.6), (-1.9, 1.9)), ravine_levels, 2.6)
plt.show()


# %% [markdown]
# You should see a walk that arrives, and one that swings in both directions for ever, each at its own pace, and fills a whole
# rectangle.
#
# ## Break it: turn the ravine
#
# RMSprop and Adam have a rate for each *parameter*. That helps if the ravine lies along one. We turn it by 45 degrees, and
# the start with it:

# %%
def turned(p):
    x, y = p
    return ravine(((x + y) / 2**0.5, (y - x) / 2**0.5))


start = [(-4 - 1) / 2**0.5, (-4 + 1) / 2**0.5]
in_turned = {
    "SGD": run(sgd, turned, start, 40, lr=0.07),
    "momentum": run(momentum, turned, start, 40, lr=0.1, beta=0.5),
    "RMSprop": run(rmsprop, turned, start, 40, lr=0.15),
    "Adam": run(adam, turned, start, 40, lr=0.1),
}
draw_paths(turned, in_turned, (0, 0), ((-4.6, 1.4), (-4.2, 1.4)), ravine_levels, 6.0)
plt.show()

# %% [markdown]
# You should see the walks of SGD and momentum as they were, only turned, and as far from the minimum in the end: they see
# directions, not parameters. RMSprop and Adam have changed, and are farther away, RMSprop 0.32 where it was 0.02, Adam 2.5
# where it was 0.66. The steep direction is now in *both* derivatives, so both are divided by about the same number, and the gentle
# direction is as slow as ever. In a network nobody knows how the ravines lie. That Adam often does well there has been found
# by trying; it does not follow from its formula.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 9.1 · The bound
#
# What is the bound of the rate for plain steps on each of these? Below it they arrive, above they do not.
#
# $$a = 5x^2 \qquad b = \tfrac12\left(3x^2 + 8y^2\right) \qquad c = 4\,(x + y)^2 + (x - y)^2$$
#
# ($c$ is a turned ravine. Its directions are (1, 1) and (1, −1). Compute the gradient at these points: it is a number times
# the point.)

# %%
bound = {"a": ..., "b": ..., "c": ...}

# %%
lessons.check("09.1", bound)


# %% [markdown]
# ### Exercise 9.2 · Look ahead
#
# Momentum steps along $m$. Nesterov's momentum looks one step ahead: it adds $g$ to its memory $m$ as before, but then
# steps along what the memory *would become* if the same $g$ came once more. Write it, for tensors, with our four arguments
# and $\beta$.

# %%
def nesterov(p, g, memory, lr, beta=0.9):
    return ...


# %%
lessons.check("09.2", nesterov)

# %% [markdown]
# ### Exercise 9.3 · What the correction does
#
# Suppose that we forget Adam's correction, and that the gradient is the same at every step. Both means are too small then,
# and the step is $\frac{m}{\sqrt s}$: how many times as long as it should be is the first one, with $\beta_1 = 0.9$ and
# $\beta_2 = 0.999$? And the tenth? With which $\beta_2$ would the first step be right without any correction, for the same
# $\beta_1$? (Let Python compute: `0.9**10` is a power.)

# %%
without = {"first": ..., "tenth": ..., "beta2": ...}

# %%
lessons.check("09.3", without)


# %% [markdown]
# ### Exercise 9.4 · Pull to zero
#
# **Weight decay** pulls each parameter towards 0, so that no weight gets larger than it must:
# $p \leftarrow p - \eta \cdot d \cdot p$, for a small $d$. One can add $d \cdot p$ to the gradient. With SGD this is
# the same. With Adam it is not: the pull would go through its means, and be divided by $\sqrt{s}$. AdamW keeps it out of
# them: the step of Adam from $g$ alone, and the pull, both counted from the old $p$. Write it. You may use `adam`.

# %%
def adamw(p, g, memory, lr, decay):
    return ...


# %%
lessons.check("09.4", adamw)


# %% [markdown]
# ### Exercise 9.5 · Repair a loop
#
# This runs without an error, and $p$ does not move. Repair it, so that it takes as many steps of momentum as are asked for.
#
# ```python
# def fit(f, p, steps):
#     for _ in range(steps):
#         optimizer = mg.optim.SGD([p], lr=0.125, momentum=0.5)
#         f(p).backward()
#         optimizer.zero_grad()
#         optimizer.step()
#     return p
# ```

# %%
def fit(f, p, steps):
    return ...


# %%
lessons.check("09.5", fit)

# %% [markdown]
# ## Where this comes from
#
# - H. H. Rosenbrock, “An automatic method for finding the greatest or least value of a function”, *The Computer Journal* 3
#   (1960), pages 175–184: the ravine with a bend.
# - B. T. Polyak, “Some methods of speeding up the convergence of iteration methods”, *USSR Computational Mathematics and
#   Mathematical Physics* 4 (1964), pages 1–17: momentum, the *heavy ball*.
# - Y. Nesterov, “A method for solving the convex programming problem with convergence rate O(1/k²)”, *Soviet Mathematics
#   Doklady* 27 (1983), pages 372–376: look ahead.
# - T. Tieleman and G. Hinton, “Lecture 6.5: RMSprop”, *Neural Networks for Machine Learning*, Coursera (2012).
# - D. P. Kingma and J. Ba, “Adam: a method for stochastic optimization”, ICLR (2015).
# - L. N. Smith, “Cyclical learning rates for training neural networks”, WACV (2017): the range test.
# - G. Goh, “Why momentum really works”, *Distill* (2017): factors, bounds and much more about ravines, with pictures that
#   move.
# - I. Loshchilov and F. Hutter, “SGDR: Stochastic gradient descent with warm restarts”, ICLR (2017), for the cosine, and
#   “Decoupled weight decay regularization”, ICLR (2019), for AdamW.
#
# So far each weight was used in one place. Next, one weight serves all positions of a picture: **[10 ·
# Convolution](10_convolution.ipynb)**
