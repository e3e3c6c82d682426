# %% [markdown]
# # 16 · Beyond first order
#
# *Before: [15 · One step, one kernel](15_one_step_one_kernel.ipynb) · Next: [17 · Gradients add up, again](17_gradients_add_up_again.ipynb)*
#
# ## The question
#
# In [lesson 9](09_optimizers.ipynb) each optimizer had a learning rate, and each rate was found by trying. For a gradient tells which
# way is down, and not how far to go. The bound was set by the **curvature**: along $y$, the derivative of our ravine grew by 25
# for each unit of way, and no rate above $\frac{2}{25}$ could arrive. But we knew that 25 from the formula, and a network has none
# to read it from.
#
# **A curvature is the derivative of the derivative. Can a program find it, and can it tell how far to go?**
#
# ## Guess: nudge the derivative
#
# The derivative of $x^3$ at 4 is 48. How fast does *that* change? Nudge $x$ to both sides, and compute the derivative there:

# %%
import minigrad as mg

mg.set_default_dtype(mg.float64)  # 16 digits


def cube(x):
    return x * x * x


def slope(f, x):
    x = mg.Value(x)
    return mg.grad(f(x), x)[0]


def curvature(f, x, h=0.5):
    return (slope(f, x + h) - slope(f, x - h)) / (2 * h)


slope(cube, 4.0), curvature(cube, 4.0)


# %% [markdown]
# It grows by 24 for each unit. The derivative of the derivative, $f''$, is called the **second derivative**. ($x^3$ has the derivative
# $3x^2$, and that has the derivative $6x$. The nudge of ½ does no harm here, as $3x^2$ bends equally on both sides.)
#
# Now for *how far*. Where the derivative is $g$, and grows by $c$ for each unit, it should be 0 after $\frac{g}{c}$ units of way back.
# That is a step at the rate $\frac{1}{c}$, which nobody had to choose. How many such steps will it take to the minimum of
# $3x^2 - 12x + 5$, which is at 2, from 10? And from −100? And for $e^x - 2x$, whose minimum is at 0.693…? Guess before you look.

# %%
def walk(f, x, steps):
    path = [x]
    for _ in range(steps):
        x -= slope(f, x) / curvature(f, x, h=1e-3)
        path.append(x)
    return "  ".join(f"{x:.3f}" for x in path)


print(walk(lambda x: 3 * x * x - 12 * x + 5, 10.0, 3))
print(walk(lambda x: 3 * x * x - 12 * x + 5, -100.0, 3))
print(walk(lambda x: x.exp() - 2 * x, 2.0, 4))

# %% [markdown]
# One step, from anywhere, if the function is quadratic, for its derivative does grow evenly. (Lesson 9 said that a step multiplies the
# distance to the minimum by $1 - \eta\lambda$. With the rate $\eta = \frac{1}{\lambda}$, that is 0.) And where it is not quadratic, a
# few.

# %%
import math

import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")
xs = [-0.6 + 0.01 * k for k in range(331)]
at, height, g, c = 2, math.exp(2) - 4, math.exp(2) - 2, math.exp(2)  # of e^x - 2 x
fig, ax = plt.subplots()
ax.plot(xs, [math.exp(x) - 2 * x for x in xs], color="#333333")
ax.plot(xs, [height + g * (x - at) for x in xs], color="#E69F00")
ax.plot(xs, [height + g * (x - at) + c / 2 * (x - at) ** 2 for x in xs], color="#0072B2")
ax.plot([at, at - g / c], [height, height - g * g / c / 2], "o", color="#0072B2", markersize=8)
ax.text(1.0, -1.6, "a line: down for ever", color="#B57C00", ha="right")
ax.text(0.5, 4.4, "a parabola:\nit has a bottom", color="#0072B2")
ax.text(-0.5, 0.7, "$e^x - 2x$", color="#333333")
ax.set(xlabel="$x$", ylabel="height", ylim=(-2.2, 5.8))
plt.show()


# %% [markdown]
# You should see $e^x - 2x$ in black, and what we know of it at $x = 2$. From height and derivative there we get a line (orange),
# and no line has a lowest point. With the curvature, too, we get a parabola (blue), and a step goes to *its* bottom, at 1.27.
# From there one starts again. This is **Newton's method**.
#
# ## Build it: derivatives with a graph
#
# Nudging is slow and not exact, as [lesson 1](01_one_neuron.ipynb) found. But a derivative is computed, too, from products and sums. If
# we compute it *with Values*, it has a graph of its own, and can be differentiated like any other result. It takes
# little: in the class of [lesson 3](03_gradients_add_up.ipynb), the local derivative of a product was the other factor's *number*.
# Now it is the other factor, a Value. (`in_order` is as it was.)

# %%
class Value:
    def __init__(self, data, made_from=()):
        self.data, self.made_from = data, made_from

    def __add__(self, other):
        return Value(self.data + other.data, [(self, ONE), (other, ONE)])

    def __mul__(self, other):
        return Value(self.data * other.data, [(self, other), (other, self)])


ONE = Value(1.0)


def in_order(value, order):
    if value not in order:
        for operand, _ in value.made_from:
            in_order(operand, order)
        order.append(value)
    return order


# %%
def grad(result, x):
    slopes = {result: ONE}
    for value in reversed(in_order(result, [])):
        for operand, local in value.made_from:
            share = slopes[value] * local
            slopes[operand] = slopes[operand] + share if operand in slopes else share
    return slopes.get(x, Value(0.0))


x = Value(4.0)
y = cube(x)
for _ in range(5):
    print(y.data)
    y = grad(y, x)

# %% [markdown]
# $x^3$, $3x^2$, $6x$, 6 and 0, at 4, without a nudge. minigrad does the same with `create_graph=True`: its rules are
# written in operations ([lesson 7](07_gradient_rules.ipynb)), and these are recorded in a graph then. Otherwise `mg.grad` returns floats.
#
# ## Draw it
#
# The cube and its derivative, in one picture:

# %%
from minigrad_viz import draw, step

# %load_ext minigrad_viz

x = mg.Value(4.0)
square = x * x
y = square * x
(slope_of_y,) = mg.grad(y, x, create_graph=True)
draw(y, slope_of_y)

# %% [markdown]
# You should see two results, in dark boxes. $y$ is 64, computed from $x$ and `square`. All other boxes belong to its derivative: the
# backward pass of two products, as a graph. (The two dotted ones are the 1 with which it began.) It is $x \cdot x$ three times,
# each 16, for there are three ways from $x$ to $y$; and their sum is 48. Note where they begin: at $x$, and at `square`, in the
# graph of $y$ itself.
#
# ## Step it
#
# So a second backward pass can go through the graph of the first:

# %%
slope_of_y.backward()
print(x.grad)
step(slope_of_y, position=16)


# %% [markdown]
# You should see the graph of the derivative alone, with 24 at $x$: the curvature. While this notebook runs, the player has stopped on
# its way back, when two of the five contributions to it have arrived, 4 and 4.
#
# ## Many parameters: the Hessian
#
# With several parameters, the gradient has an element for each, and each of these has a derivative with respect to each parameter. That
# square table, the Jacobian of the gradient, is called the **Hessian**. Row by row, for a tensor $p$:

# %%
def hessian(f, p):
    p = p.detach().requires_grad_()
    (g,) = mg.grad(f(p), p, create_graph=True)
    return mg.stack([mg.grad(number, p, retain_graph=True)[0] for number in g])


def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


bottom = mg.tensor([1.0, 1.0])
h = hessian(rosenbrock, bottom)
h


# %% [markdown]
# This is the ground under lesson 9's second race, the ravine with a bend, at its minimum. (`retain_graph` keeps the graph of the
# gradient for the next row.) The table is symmetric: it does not matter with respect to which parameter one differentiates first. Against
# nudging, and against the library:

# %%
def nudged(f, p, h=1e-5):
    rows = []
    for k in range(2):
        up, down = p.clone(), p.clone()
        up[k] += h
        down[k] -= h
        slopes = [mg.grad(f(q.requires_grad_()), q)[0] for q in (up, down)]
        rows.append((slopes[0] - slopes[1]) / (2 * h))
    return mg.stack(rows)


print("nudged: ", mg.allclose(h, nudged(rosenbrock, bottom), atol=1e-3))
print("library:", mg.equal(h, mg.autograd.hessian(rosenbrock, bottom)))

# %% [markdown]
# In the direction of a vector $v$ of length 1, the curvature is $v \cdot Hv$. As lesson 9 said, there are directions where it is
# greatest and least, the eigenvectors; these curvatures are the eigenvalues. NumPy finds them in the table:

# %%
import numpy as np

least, most = np.linalg.eigvalsh(h.numpy())
print(f"curvatures from {least:.2f} to {most:.1f}")
print(f"no rate above 2 / {most:.1f} = {2 / most:.4f}")
print(f"at that rate, the distance along the ravine shrinks by {2 / most * least:.2%} in a step")


# %% [markdown]
# There is the bound. Lesson 9 ran SGD at 0.002, found by trying: within a hair of it. And there is why SGD did not arrive in 300
# steps: at 0.08 % a step, each right digit takes nearly 3,000.
#
# ## Newton's step
#
# Along a step $s$, the gradient changes by about $Hs$. It should be 0 after the step, so we look for the $s$ with $g + Hs = 0$:
# no longer a division, but a system of equations, which `solve` solves. (What `damping` is for, you will see below.) From the
# start of lesson 9's race:

# %%
def newton(f, start, steps, damping=0.0):
    p, path = mg.tensor(start), [start]
    for _ in range(steps):
        p.requires_grad_()
        (g,) = mg.grad(f(p), p)
        h = hessian(f, p) + damping * mg.eye(2)
        p = p.detach() - mg.linalg.solve(h, g)
        path.append(p.tolist())
    return path


path = newton(rosenbrock, [-1.0, 1.5], 7)
print("step   distance    height")
for k, point in enumerate(path):
    print(f"{k:4} {math.dist(point, (1, 1)):10.6f} {rosenbrock(mg.tensor(point)).item():9.2f}")


# %% [markdown]
# Seven steps, where no optimizer of lesson 9 arrived in 300. Near the minimum, each step about doubles the number of right
# digits. But look at the second step: it lands far *above* where it began.
#
# ## A saddle
#
# Newton's step goes where the gradient is 0, and not where the ground is low. Here is ground with two minima, at (0, 1) and (0, −1), and
# a **saddle** between them at (0, 0): it bends up along $x$ and down along $y$.
#
# $$f(x, y) = \tfrac12 x^2 + \tfrac14 y^4 - \tfrac12 y^2$$

# %%
def saddle(p):
    x, y = p
    return x**2 / 2 + y**4 / 4 - y**2 / 2


def draw_paths(ax, f, box, levels, paths):
    grid = mg.meshgrid(mg.linspace(*box[0], 150), mg.linspace(*box[1], 150), indexing="xy")
    ax.contour(*grid, f(grid), levels, colors="#cccccc", linewidths=0.8, linestyles="solid")
    for path, color in paths:
        ax.plot(*zip(*path, strict=True), "o-", color=color, markersize=4, linewidth=1.4)
    ax.plot(*paths[0][0][0], "o", color="#333333", markersize=8)
    ax.set(xlabel="$x$", ylabel="$y$")


hessian(saddle, mg.zeros(2))


# %%
def sgd(f, start, steps, lr):
    p, path = mg.tensor(start), [start]
    for _ in range(steps):
        p.requires_grad_()
        p = p.detach() - lr * mg.grad(f(p), p)[0]
        path.append(p.tolist())
    return path


# %%
orange, blue, green = "#E69F00", "#0072B2", "#009E73"
slow, start = sgd(rosenbrock, [-1.0, 1.5], 300, lr=0.002), [1.0, 0.25]
both = (newton(saddle, start, 6), blue), (newton(saddle, start, 12, damping=1.5), green)
fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 4.6))
draw_paths(left, rosenbrock, ((-1.7, 1.7), (-3.1, 2.1)), (1, 4, 16, 64, 256, 1024), ((slow, orange), (path, blue)))
draw_paths(right, saddle, ((-0.5, 1.3), (-1.4, 1.4)), [k / 16 - 0.25 for k in range(14)], both)
left.plot(1, 1, "*", color="#333333", markersize=11, zorder=3)
for ax, x, y, name, color in (
    (left, -1.62, -0.45, "SGD,\n300 steps", "#B57C00"),
    (left, -1.3, -2.4, "Newton,\n7 steps", blue),
    (right, 0.16, -0.27, "Newton, 6 steps", blue),
    (right, 0.05, 1.12, "damped, 12 steps", green),
):
    ax.text(x, y, name, color=color, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1}, zorder=1)
plt.show()


# %% [markdown]
# You should see on the left SGD (orange) creep along the floor of the ravine. Newton (blue) leaps far out of it, and back to the
# minimum, the star. On the right, from the dot, Newton (blue) goes to the saddle, and stays there: down along $x$, but *up* along
# $y$. The table above shows why: along $y$ the curvature is negative, and then $-\frac{g}{c}$ leads uphill.
#
# The green walk arrives. It adds $\mu = 1.5$ to each curvature, so that all are positive: that is **damping**. Where
# $\mu$ is small compared with a curvature, the step is Newton's; where it is large, it is plain descent at the rate $\frac{1}{\mu}$. It
# shortens leaps, too.
#
# ## Without the table
#
# The network of lesson 9, which read digits, had 2,410 parameters. Its Hessian has 5.8 million elements, and for a large network it fits
# into no computer's memory. But as with the Jacobian in lesson 7, a *product* with it comes without the table. $Hv$ is how the gradient
# $g$ changes along $v$. Now $g \cdot v$ is a scalar, and element $j$ of *its* gradient is
#
# $$\frac{\partial}{\partial p_j} \sum_i g_i v_i = \sum_i \frac{\partial g_i}{\partial p_j} v_i = (Hv)_j$$
#
# This is the **Hessian-vector product**, at the price of about two more backward passes. With lists, as a network has several
# tensors of parameters:

# %%
def dot(xs, ys):
    return sum((x * y).sum() for x, y in zip(xs, ys, strict=True))


def hvp(slopes, parameters, v):
    return mg.grad(dot(slopes, v), parameters, retain_graph=True)


p, v = mg.tensor([-1.0, 1.5], requires_grad=True), mg.tensor([2.0, -1.0])
slopes = mg.grad(rosenbrock(p), [p], create_graph=True)
print(hvp(slopes, [p], [v])[0].tolist(), (hessian(rosenbrock, p) @ v).tolist())

# %% [markdown]
# From products one gets the greatest curvature. Multiply any $v$ by $H$, again and again: its part along the steepest direction
# grows most each time, and soon outgrows all others. From then on, each product makes it longer by the greatest curvature. (That
# is called *power iteration*.) So here is the bound for the rate of a network, computed:

# %%
images, labels = mg.data.digits().train.tensors
images = images.flatten(1).double()


def network():
    mg.manual_seed(0)
    return mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.ReLU(), mg.nn.Linear(32, 10))


def bound(model):
    parameters = list(model.parameters())
    loss = mg.nn.functional.cross_entropy(model(images), labels)
    v = slopes = mg.grad(loss, parameters, create_graph=True)
    for _ in range(16):
        length = dot(v, v).item() ** 0.5
        v = hvp(slopes, parameters, [part.detach() / length for part in v])
    return 2 / dot(v, v).item() ** 0.5


print(f"{bound(network()):.1f}")

# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm


def descend(lr):
    model, bounds, losses = network(), [], []
    optimizer = mg.optim.SGD(model.parameters(), lr=lr)
    for k in tqdm(range(161), desc=f"rate {lr}"):
        if k % 20 == 0:
            bounds.append(bound(model))
        optimizer.zero_grad()
        loss = mg.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return bounds, losses


walks = {lr: descend(lr) for lr in (0.3, 1.0)}

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6))
for (lr, (bounds, losses)), color in zip(walks.items(), ("#0072B2", "#E69F00"), strict=True):
    left.plot(range(0, 161, 20), bounds, "o-", color=color, markersize=5)
    left.axhline(lr, color=color, linewidth=1, linestyle="--")
    left.text(46, lr + 0.04, f"rate {lr}", color=color)
    right.plot(losses, color=color, linewidth=1.5)
left.set(xlabel="step", title="bound, 2 / greatest curvature", ylim=(0, 2.8))
right.set(xlabel="step", title="loss", ylim=(0, 2.8))
plt.show()


# %% [markdown]
# You should see on the left the bound while the network learns, at two rates, which are the dashed lines. The ground bends
# more as soon as learning begins: the bound falls from 2.6 to ½. Lesson 9 found by trying that 0.3 is a good rate: it stays below the bound
# all the way, and the loss (right) falls smoothly. The rate 1.0 is above its bound for about a hundred steps: the loss leaps up, and
# the walk is thrown out of the narrow ground until its own rate is allowed again. (It even gets lower in the end, for it also goes
# faster where the ground is gentle.)
#
# So yes, the second derivative tells how far. But it is valid at one point, and not along the entire way.
#
# ## The other way: derivatives that travel along
#
# All our derivatives came from a backward pass, in **reverse mode**. But the chain rule can be followed from the leaves to the result,
# too. Let each number carry its derivative with respect to one chosen input. In a sum the derivatives are added. In a product, each
# derivative is multiplied by the other factor. Such a pair (here of `value` and `slope`) is called a **dual number**, and to compute
# with it is **forward mode**.

# %%
class Dual:
    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        by_rule = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, by_rule)

    __radd__, __rmul__ = __add__, __mul__


y = cube(Dual(4.0, 1.0))  # x moves by 1 for each unit of x
print(y.value, y.slope)

# %% [markdown]
# 64 and 48, in one pass, without a graph, and nothing is saved for a backward pass. So why not always? Each run follows *one* input:

# %%
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
for ax, rows, columns in zip(axes, (8, 3), (3, 8), strict=True):
    for row in range(rows):
        for column in range(columns):
            color = "#0072B2" if column == 0 else "#E69F00" if row == rows - 1 else "#e0e0e0"
            corner = column - columns / 2, row - rows / 2
            ax.add_patch(plt.Rectangle(corner, 0.92, 0.92, color=color, linewidth=0))
    ax.text(0, 5, f"{rows} results of {columns} inputs", ha="center", va="center")
    ax.text(0, -5, f"forward: {columns} runs", ha="center", va="center", color="#0072B2")
    ax.text(0, -6, f"reverse: {rows} runs", ha="center", va="center", color="#B57C00")
    ax.set(xlim=(-5, 5), ylim=(-6.6, 5.6), aspect="equal")
    ax.axis("off")
plt.show()

# %% [markdown]
# You should see two Jacobians, with a row for each result and a column for each input. Forward mode fills a column in each run
# (blue), reverse mode a row (orange). A loss is a single row, of millions of columns: one run backward, or millions forward.
#
# Both together are best at a Hessian-vector product. Put *duals into our Values*: the backward pass computes the gradient, and each
# number in it carries its derivative in the chosen direction. Neither class needs a new line. This is **forward over reverse**:

# %%
x = Value(Dual(4.0, 1.0))
found = grad(cube(x), x).data
print("gradient:", found.value, " curvature:", found.slope)

# %% [markdown]
# ## Compare with the library
#
# `mg.autograd` has all of these, with PyTorch's names. They take the function and the point:

# %%
auto, p, v = mg.autograd, mg.tensor([-1.0, 1.5]), mg.tensor([2.0, -1.0])


def gradient(p):
    return auto.vjp(rosenbrock, p, create_graph=True)[1]


h = auto.hessian(rosenbrock, p)
g = gradient(p)
print("hessian:  the same as ours:", mg.equal(h, hessian(rosenbrock, p)))
print("jacobian: of the gradient, the same:", mg.equal(h, auto.jacobian(gradient, p)))
print("hvp:      the same as H v:", mg.equal(auto.hvp(rosenbrock, p, v)[1], h @ v))
print("jvp:      the same as g v:", auto.jvp(rosenbrock, p, v)[1].item() == (g * v).sum().item())

# %% [markdown]
# One thing is not as its name may suggest: minigrad has no forward mode. `jvp` takes two passes backward. The first gives $u^\top J$
# for any $u$; times $v$ that is a scalar, and the second pass differentiates it with respect to $u$, which gives $Jv$.
#
# ## To penalise a gradient
#
# A derivative can also be a *part of the loss*. Here are twelve points, and a curve made of twelve waves, $\sum_k c_k \sin(kx)$. With as
# many waves as points it can run through all of them; but how does it run between them? To have it calm, we add to the loss the mean
# square of its derivative. That is a **gradient penalty**:

# %%
xs = mg.tensor([0.2, 0.4, 0.6, 0.8, 1.1, 1.4, 1.7, 2.0, 2.2, 2.5, 2.7, 3.0])
ys = mg.tensor([0.3, 0.3, 0.7, 0.5, 1.0, 0.8, 1.1, 0.8, 0.9, 0.4, 0.5, 0.1])
waves, fine = mg.arange(1.0, 13.0), mg.linspace(0, math.pi, 200, requires_grad=True)


def curve(c, x):
    return (x.view(-1, 1) * waves).sin() @ c


def loss(c, weight, create_graph=True):
    miss = curve(c, xs) - ys
    (slopes,) = mg.grad(curve(c, fine).sum(), fine, create_graph=create_graph)
    return (miss**2).mean() + weight * (slopes**2).mean()


# %% [markdown]
# The derivative is with respect to $x$, and learning then differentiates it with respect to $c$: without `create_graph`, it could not.
# The loss is quadratic in $c$. So how many of Newton's steps will it take?

# %%
def fit(weight, create_graph=True):
    c = mg.zeros(12, requires_grad=True)
    g, h = (d(lambda c: loss(c, weight, create_graph), c) for d in (auto.jacobian, auto.hessian))
    return -mg.linalg.solve(h, g)  # one step, from 0


def draw_fit(ax, c, name, color):
    ax.plot(fine.tolist(), curve(c, fine).tolist(), color=color)
    ax.plot(xs.tolist(), ys.tolist(), "o", color="#333333", markersize=6)
    ax.set_title(name, color=color)
    ax.set(xlabel="$x$", ylabel="height")


fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
draw_fit(axes[0], fit(0.0), "points alone", "#B57C00")
draw_fit(axes[1], fit(0.05), "gradient penalty", "#0072B2")
plt.show()

# %% [markdown]
# You should see the curve run through all the points and swing between them, on the left; and on the right calmly *past* most of
# them. One step has fitted both. The networks that judge pictures in “Wasserstein GANs” are trained with such a term, too: it
# keeps the norm of their gradient near 1.
#
# ## Break it
#
# **The graph is forgotten.** A missing `create_graph` is often an error, for a float has no gradient. But in the penalty?

# %%
try:
    x = mg.Value(4.0)
    mg.grad(mg.grad(cube(x), x)[0], x)
except mg.errors.MinigradError as error:
    print(error)

print("penalty without effect:", mg.allclose(fit(0.05, create_graph=False), fit(0.0), atol=1e-9))


# %% [markdown]
# No error: a result without a graph is a constant, and a constant in a loss changes nothing. The loss that is printed even includes the
# penalty. Only the curve swings as if there were none.
#
# **A rule is not differentiable itself.** Here is the cube as an operation of its own, whose rule reads $x$ by `detach`:

# %%
class Cube(auto.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() ** 2


print("first:", mg.gradcheck(Cube.apply, mg.tensor([4.0])))
try:
    mg.gradgradcheck(Cube.apply, mg.tensor([4.0]))
except mg.errors.MinigradError as error:
    print(error)

# %% [markdown]
# `gradcheck` passes, for the gradient is right. It is only treated as a constant, whose derivative is 0. `gradgradcheck` nudges the
# gradient, and finds out. (Is 0 always wrong? A ReLU is made of two straight lines, so its second derivative truly is 0. The loss
# of a network of ReLUs bends all the same, as we saw: by its cross-entropy, and by the products of its weights.)
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 16.1 · Twice by hand
#
# $y = (x^2 - 1)^3$. What are its first and its second derivative at $x = 2$? (The first is a product, and so the second
# derivative has two parts.)

# %%
derivative = {"first": ..., "second": ...}

# %%
lessons.check("16.1", derivative)


# %% [markdown]
# ### Exercise 16.2 · How it bends along a direction
#
# Write a function that returns the curvature of `f` at the tensor `p` in the direction of the tensor `v`, as a Python number. `v` may
# have any length but 0: in $v \cdot Hv$ it counts twice, so divide by $v \cdot v$. Do it without the table, with `mg.grad` alone.

# %%
def bend(f, p, v):
    return ...


# %%
lessons.check("16.2", bend)


# %% [markdown]
# ### Exercise 16.3 · Newton that never climbs
#
# Write Newton's method for a function of one `mg.Value`: begin at the number `x`, take so many `steps`, and return the number you
# end at. Where the curvature is negative the step would go up: divide by its absolute value, $x \leftarrow x - \frac{g}{|c|}$.

# %%
def downhill(f, x, steps):
    return ...


# %%
lessons.check("16.3", downhill)


# %% [markdown]
# ### Exercise 16.4 · More for the duals
#
# Write three operations on pairs (value, derivative): each gets pairs and returns a pair. (The local derivatives of $\frac{a}{b}$ are
# $\frac{1}{b}$ and $-\frac{a}{b^2}$; `math` has `sin`, `cos` and `exp`.)

# %%
def div(p, q):
    return ...


def sin(p):
    return ...


def exp(p):
    return ...


# %%
lessons.check("16.4", {"div": div, "sin": sin, "exp": exp})

# %% [markdown]
# ### Exercise 16.5 · Which mode?
#
# Someone needs the full Jacobian. Which mode needs fewer runs, and how many? Answer with pairs like `("forward", 7)`.
#
# - *pen*: 2 coordinates of a plotter's pen, with respect to the time, a scalar
# - *camera*: 10,000 pixels, with respect to the 6 parameters of a camera's pose
# - *loss*: 1 loss, with respect to 2,410 parameters
# - *robot*: 3 coordinates of a hand, with respect to 7 angles

# %%
cheaper = {"pen": ..., "camera": ..., "loss": ..., "robot": ...}

# %%
lessons.check("16.5", cheaper)

# %% [markdown]
# ## Where this comes from
#
# - W. K. Clifford, “Preliminary sketch of biquaternions”, *Proceedings of the London Mathematical Society* 4 (1873), pages
#   381–395: dual numbers.
# - R. E. Wengert, “A simple automatic derivative evaluation program”, *Communications of the ACM* 7 (1964), pages 463–464: forward
#   mode.
# - B. A. Pearlmutter, “Fast exact multiplication by the Hessian”, *Neural Computation* 6 (1994), pages 147–160.
# - J. Nocedal and S. J. Wright, *Numerical Optimization*, 2nd edition, Springer (2006), chapters 3 and 4: Newton's method, and how to
#   hold it back. H. H. Rosenbrock's function is from *The Computer Journal* 3 (1960), pages 175–184.
# - A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd edition, SIAM (2008): both modes, their prices, and higher orders.
# - I. Gulrajani, F. Ahmed, M. Arjovsky, V. Dumoulin and A. Courville, “Improved training of Wasserstein GANs”, *NIPS* (2017): the
#   gradient penalty.
# - J. M. Cohen, S. Kaur, Y. Li, J. Z. Kolter and A. Talwalkar, “Gradient descent on neural networks typically occurs at the edge of
#   stability”, ICLR (2021): our picture of rates and bounds.
#
# So far one machine has computed everything. What do two have to exchange, or a thousand? **[17 · Gradients add up,
# again](17_gradients_add_up_again.ipynb)**
