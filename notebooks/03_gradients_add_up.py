# %% [markdown]
# # 3 · Gradients add up
#
# *Before: [2 · The chain rule](02_the_chain_rule.ipynb) · Next: [4 · A network of
# Values](04_a_network_of_values.ipynb)*

# %% [markdown]
# ## The question
#
# In a product, the slope by one factor is the other factor. So far, nearly every number was used once. But what if both
# factors are the *same* number?
#
# $$y = a \cdot a$$
#
# **With $a = 3$, is the slope of $y$ by $a$ equal to 3?**

# %% [markdown]
# ## Guess: nudge it and look
#
# Move $a$ a little to both sides, and divide how far the result went by how far $a$ did:

# %%
def nudge(f, a, h=0.5):
    return (f(a + h) - f(a - h)) / (2 * h)


print("a + a:    ", nudge(lambda a: a + a, 3))
print("a * a:    ", nudge(lambda a: a * a, 3))
print("a * a + a:", nudge(lambda a: a * a + a, 3))

# %% [markdown]
# It is 6, not 3. In `a + a` we see the same: each side of the plus sign has slope 1, and together they give 2. (A nudge
# as large as ½ does no harm here: what the bend of $a \cdot a$ adds on one side, it takes away on the other.)
#
# The reason can be drawn. You should see below a square with sides $a = 3$: its area is $a \cdot a$. When $a$ grows by
# $h$, the square gains *two* strips (blue and orange), one for each side, and each is 3 long. So the area grows by
# about $3h + 3h = 6h$. (The little corner, $h \cdot h$, shrinks away much faster than the strips when $h$ gets small.)

# %%
from minigrad_viz import Plot

plot = Plot(xlim=(-0.4, 4.1), ylim=(-0.4, 3.8), aspect="equal", axis=False, width=300, height=280)
plot.rectangle(0, 0, 3, 3, color="C3", alpha=0.15)
plot.rectangle(3, 0, 0.3, 3, color="C0")
plot.rectangle(0, 3, 3, 0.3, color="C1")
plot.rectangle(3, 3, 0.3, 0.3, color="C3")
for x, y, text in ((1.5, 1.5, "$a \\cdot a$"), (3.75, 1.5, "$a \\cdot h$"), (1.5, 3.55, "$a \\cdot h$")):
    plot.text(x, y, text, ha="center", fontsize=15)
for middle, side in ((1.5, "$a$"), (3.15, "$h$")):
    plot.text(middle, -0.2, side, ha="center", fontsize=15, color="C3")
    plot.text(-0.2, middle, side, ha="center", fontsize=15, color="C3")
plot


# %% [markdown]
# ## The rule
#
# A number that is used several times acts on the result along several paths at once, and **what arrives along all the
# paths is added up**. If $a$ acts on $y$ by way of $u_1$, $u_2$ and so on, the chain rule becomes
#
# $$\frac{\partial y}{\partial a} = \sum_i \frac{\partial y}{\partial u_i} \cdot \frac{\partial u_i}{\partial a}$$
#
# Each product in this sum is a contribution, upstream × local, as in [lesson 2](02_the_chain_rule.ipynb). There is one
# for each *use* of $a$: a product $a \cdot a$ uses it twice, and makes two. A gradient is complete when all its
# contributions have arrived.

# %% [markdown]
# ## Build it
#
# A number that remembers what it was made from, in seven lines: for each operand the pair (operand, local slope).

# %%
class Value:
    def __init__(self, data, made_from=()):
        self.data, self.grad, self.made_from = data, 0.0, made_from

    def __add__(self, other):
        return Value(self.data + other.data, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Value(self.data * other.data, [(self, other.data), (other, self.data)])


# %% [markdown]
# And the backward pass: list the values so that each stands after what it was made from (a *topological* order), and go
# through the list from its end. The whole lesson is in the `+=` of the last line.

# %%
def in_order(value, order):
    if value not in order:
        for operand, _ in value.made_from:
            in_order(operand, order)
        order.append(value)
    return order


def backward(result):
    result.grad = 1.0
    for value in reversed(in_order(result, [])):
        for operand, local in value.made_from:
            operand.grad += value.grad * local


# %%
for f in (lambda a: a + a, lambda a: a * a, lambda a: a * a + a):
    a = Value(3.0)
    backward(f(a))
    print(a.grad)

# %% [markdown]
# These are the slopes that nudging found: 2, 6 and 7.
#
# ## Draw it
#
# The same with minigrad's `Value`, which can be drawn:

# %%
import minigrad as mg

# %load_ext minigrad_viz

a = mg.Value(3.0)
u = a * a
y = u + a
y.backward()
y

# %% [markdown]
# You should see *two* lines from $a$ to the product, since it is used there twice, and a third to the sum. Multiply
# along each path from $y$ back to $a$: 1 · 3, 1 · 3 and 1. Together that is the 7 in the box of $a$. (Σ3 says that
# three contributions are in it.)

# %% [markdown]
# ## Step it
#
# `mg.events` lists the contributions in the order in which they arrive. Each knows the `total` that its target has so
# far:

# %%
names = {id(a): "a", id(u): "u", id(y): "y"}

for event in mg.events(y):
    edge = f"{names[id(event.source)]} -> {names[id(event.target)]}"
    before = event.total - event.contribution
    print(f"{edge}   {names[id(event.target)]} gets {event.contribution:g}:  ", end="")
    print(f"{before:g} + {event.contribution:g} = {event.total:g}")

# %% [markdown]
# Three events arrive at $a$. Its gradient is 1 after the first, 4 after the second, and complete only after the
# third: 7. A player shows them one by one:

# %%
from minigrad_viz import step

step(y, position=5)

# %% [markdown]
# You should see the same graph. While this notebook runs, the player stands in the middle, after the first event at
# $a$, whose gradient is 1 so far, and “Σ 1 of 3” says that two more are to come. Two steps on it says 7, and no longer
# that it waits.
#
# Where does it matter *which* operation uses a number twice? Below are `a + a` and `a * a`, one above the other, with
# one slider for the $a$ of both. Two links keep them in step: `jslink` joins two properties in the page, without asking
# Python.

# %% tags=["nbval-ignore-output"]
from ipywidgets import VBox, jslink

a = mg.Value(3.0, "a")
double, square = step(a + a, position=4), step(a * a, position=4)
jslink((double, "position"), (square, "position"))
jslink((double, "leaf_a"), (square, "leaf_a"))
VBox([double.slider("a", min=-5, max=5), double, square])

# %% [markdown]
# Both add up two contributions (Σ 2). Those of the sum are 1 and 1 wherever the slider stands; those of the product are
# $a$ and $a$, so that its gradient is always $2a$: 6 at first, 0 in the middle, negative on the left.

# %% [markdown]
# ## Compare with the library
#
# Again `a + a`, `a * a` and `a * a + a`, each nudged, by our own `backward`, and by minigrad:

# %%
print("nudged  ours  minigrad")
for f in (lambda a: a + a, lambda a: a * a, lambda a: a * a + a):
    own, value = Value(3.0), mg.Value(3.0)
    backward(f(own))
    f(value).backward()
    print(f"{nudge(f, 3):6g} {own.grad:5g} {value.grad:9g}")


# %% [markdown]
# ## Break it: overwrite instead of add
#
# What if we had written `=` for `+=`? It worked in lesson 2, where the first loop did just that.

# %%
def overwriting(result):
    result.grad = 1.0
    for value in reversed(in_order(result, [])):
        for operand, local in value.made_from:
            operand.grad = value.grad * local


for f in (lambda a: a + a, lambda a: a * a, lambda a: a * a + a):
    a = Value(3.0)
    overwriting(f(a))
    print(a.grad, "instead of", nudge(f, 3))

# %% [markdown]
# Only the last contribution is left: in `a * a + a` that is a 3, and the other 3 and the 1 are gone. Nothing crashes
# and no warning is given. So this mistake is worth knowing by sight: the gradient is *exactly one of the
# contributions*.

# %% [markdown]
# ## What adding up means for a second backward
#
# Adding goes on across calls. If you call `backward` again, the same gradient is added once more:

# %%
a = mg.Value(3.0, "a")
y = a * a + a
y.backward()
print("once: ", a.grad)
y.backward()
print("twice:", a.grad)
y

# %% [markdown]
# You should see 14 at $a$, exactly twice the 7 that one pass brings, and below the graph a warning of it (!). A
# gradient from before is called **stale**. That it adds up is useful (the gradients of two results can be summed into
# the same numbers), but it has to be done with care. Our own `backward` does *not* pass this test: call it twice on
# `(a * a) * a`, whose slope at 3 is 27.

# %%
a = Value(3.0)
y = (a * a) * a
backward(y)
print("once: ", a.grad)
backward(y)
print("twice:", a.grad)

# %% [markdown]
# 27, and then 72 instead of 54. The second pass found the first pass's gradient still in the *middle* of the graph, at
# `a * a`, and sent it down a second time. minigrad keeps the sums of one pass apart, and adds them to `grad` at the
# end.
#
# To start afresh, forget the gradients. `zero_grad` does it for a value and for all that it was made from.
# The gradient is `None` then: not zero, but *not computed*.

# %%
a = mg.Value(3.0, "a")
y = a * a + a
y.backward()
y.zero_grad()
print(a.grad)
y.backward()
print(a.grad)


# %% [markdown]
# ## Why a training loop forgets
#
# To **train** means to turn numbers, a small step at a time, so that some result gets smaller. That result is called
# the **loss**, since it says how bad things are. Turning against the slope makes it smaller; this is **gradient
# descent**. Here the loss is $(w - 3)^2$, smallest at $w = 3$, and each step goes a quarter of the slope downhill.

# %%
def train(steps, forget):
    w = mg.Value(0.0, "w")
    path = [w.data]
    for _ in range(steps):
        loss = (w - 3) * (w - 3)
        if forget:
            w.grad = None
        loss.backward()
        w.data -= 0.25 * w.grad
        path.append(w.data)
    return path


print("forgetting:  ", train(5, forget=True))
print("remembering: ", train(5, forget=False))

# %% [markdown]
# With forgetting, each step halves the distance to 3. Without it, the slopes of all earlier steps push on, right
# through the goal and out on the other side. You should see below where $w$ is after each of 24 steps: the
# blue path (circles), with forgetting, settles at 3 (dashed), and the orange one (triangles), without, swings to and
# fro around it for ever.

# %%
plot = Plot(xlabel="step", ylabel="$w$", ylim=(-0.8, 8.4)).hline(3)
plot.line(range(25), train(24, forget=True), label="gradient forgotten before each step", marker="o")
plot.line(range(25), train(24, forget=False), label="gradients of all steps kept", marker="^")
plot

# %% [markdown]
# So a training loop, in this library as in PyTorch, has these four lines: **compute the loss, forget the old gradients,
# go backward, take a step**.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if
# something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 3.1 · Three paths
#
# $y = a \cdot a \cdot b + a$ with $a = 3$ and $b = 2$ is 21. What are its two slopes?
#
# You should see the formula below. While this notebook runs, press *Predict*: the player asks for the next gradient
# before each step. At $a$, it wants to know what its gradient is *then*, with all that has arrived so far.

# %%
a, b = mg.Value(3.0), mg.Value(2.0)
y = a * a * b + a
step(y, position=3)

# %%
gradient = {"a": ..., "b": ...}

# %%
lessons.check("03.1", gradient)


# %% [markdown]
# ### Exercise 3.2 · Add up the events
#
# Write a function that is given a list of events, as from `mg.events(y)`, and one `Value`, and returns the gradient of
# that value: the sum of the contributions that arrive there. (An event has a `target` and a `contribution`. `==`
# compares the numbers of two `Value`s; `is` asks whether they are the same one.)

# %%
def gradient_of(events, value):
    return ...


# %%
lessons.check("03.2", gradient_of)


# %% [markdown]
# ### Exercise 3.3 · Downhill
#
# Write a training loop that makes $x \cdot x - 4 \cdot x$ small: begin at the number `start`, take `steps` steps, each
# a quarter of the slope downhill, and return the number you end at. (Compute the loss anew in each step, from a
# `mg.Value`.)

# %%
def descend(start, steps):
    return ...


# %%
lessons.check("03.3", descend)

# %% [markdown]
# ## Where this comes from
#
# - The chain rule for several paths at once is in every calculus book as the *multivariable* chain rule.
# - D. E. Rumelhart, G. E. Hinton and R. J. Williams, “Learning representations by back-propagating errors”, *Nature*
#   323 (1986), pages 533–536: there, a neuron sums what comes back to it from all the neurons that it feeds.
# - A. G. Baydin, B. A. Pearlmutter, A. A. Radul and J. M. Siskind, “Automatic differentiation in machine learning: a
#   survey”, *Journal of Machine Learning Research* 18 (2018), paper 153.
#
# You have all the parts now. Next, they learn something: **[4 · A network of Values](04_a_network_of_values.ipynb)**
