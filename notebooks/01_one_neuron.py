# %% [markdown]
# # 1 · One neuron
#
# *Next: [2 · The chain rule](02_the_chain_rule.ipynb)*
#
# You need a little Python and no calculus: the one idea of calculus that we use is built here, by measuring.
# Read from top to bottom; every result is on the page already. To try things out, run the cells and change them.

# %% [markdown]
# ## The question
#
# A **neuron** is a small formula that turns a number into an opinion between 0 (“no”) and 1 (“yes”):
#
# $$y = \sigma(w \cdot x + b) \qquad\text{with}\qquad \sigma(z) = \frac{1}{1 + e^{-z}}$$
#
# - $x$ is what it looks at, its **input**.
# - $w$, its **weight**, says how much the input counts, and whether for yes or for no.
# - $b$, its **bias**, is what it leans to before it has looked.
# - $\sigma$ (say “sigma”), the **sigmoid**, squeezes any number into the range from 0 to 1. ($e$ is the number 2.718…;
#   $e^{-z}$ is huge for very negative $z$, 1 for $z = 0$, and next to nothing for large $z$. So $\sigma$ goes from 0 by
#   way of ½ to 1.)

# %%
import math


def neuron(w, x, b):
    z = w * x + b
    return 1 / (1 + math.exp(-z))


neuron(w=-2, x=3, b=6)

# %% [markdown]
# One half: this neuron cannot make up its mind. Suppose the right answer is *yes*, so that $y$ should be nearer to 1.
# We cannot change the input, but there are two knobs to turn, $w$ and $b$.
#
# **Which way should we turn each knob, and which of the two moves the answer more?**
#
# Networks with millions of weights learn by asking exactly this, over and over.

# %% [markdown]
# ## Guess: nudge it and look
#
# Turn one knob a tiny bit, hold the others still, and see how far $y$ moves. We nudge $w$ by $h$ to both sides and
# divide how far $y$ went by how far $w$ went:
#
# $$\frac{\partial y}{\partial w} \approx \frac{y(w + h) - y(w - h)}{2h}$$
#
# That quotient is a **slope**: how much $y$ moves for each unit that $w$ moves. Measured like this it is called a
# **finite difference**. The sign on the left, read “d y by d w”, stands for the slope when $h$ shrinks to nothing,
# with all other numbers held still. Its name is the **derivative** of $y$ by $w$. (Where there are several numbers to
# nudge, books say *partial* derivative and write the round $\partial$.)

# %%
w, x, b, h = -2, 3, 6, 0.001
by_w = (neuron(w + h, x, b) - neuron(w - h, x, b)) / (2 * h)
by_x = (neuron(w, x + h, b) - neuron(w, x - h, b)) / (2 * h)
by_b = (neuron(w, x, b + h) - neuron(w, x, b - h)) / (2 * h)
print(f"slope by w: {by_w:+.3f}\nslope by x: {by_x:+.3f}\nslope by b: {by_b:+.3f}")

# %% [markdown]
# There is our answer. Both knobs have a positive slope, so turn both **up**, and $w$ counts three times as much as $b$.
# (The input has a negative slope: a larger $x$ would make the answer smaller.) The slopes by all the numbers together
# are called the **gradient**. It is a list of directions: which way, and how much. (One also says “the gradient of $w$”
# for the entry of $w$ in that list.)
#
# On a curve, the slope is the steepness. You should see below how $y$ (blue) depends on $w$, our neuron (the dot) at
# $w = -2$, and through it the straight line (orange) that has the measured slope, 0.75. Near the dot the two are the
# same; farther off, the curve bends away.

# %%
from minigrad_viz import Plot

ws = [-4 + 0.02 * i for i in range(201)]
plot = Plot(xlabel="weight $w$", ylabel="answer $y$", legend="upper left")
plot.line(ws, [neuron(v, x, b) for v in ws], label="the neuron, $y$")
plot.line([-2.6, -1.4], [0.5 - 0.75 * 0.6, 0.5 + 0.75 * 0.6], label="a line of slope 0.75")
plot.points([-2], [0.5], color="C3")
plot

# %% [markdown]
# A slope lets us predict. If we turn $w$ up by 0.1, then $y$ should rise by about 0.75 · 0.1:

# %%
print(f"predicted: {0.5 + 0.75 * 0.1:.3f}")
print(f"computed:  {neuron(w + 0.1, x, b):.3f}")


# %% [markdown]
# ## Build it: a number that remembers
#
# Nudging took two runs of the neuron for each slope. A network with a million weights would need two million runs, for
# a single step of learning. There is a way to get *all* the slopes from *one* run. It needs two observations.
#
# First, each operation on its own has slopes that are easy to write down. They are called **local** slopes:
#
# | operation | slope by $p$ | slope by $q$ | because |
# |---|---|---|---|
# | $p + q$ | 1 | 1 | the sum moves as far as either of the two |
# | $p \cdot q$ | $q$ | $p$ | if $p$ grows by 1, there is one $q$ more |
# | $s = \sigma(p)$ | $s\,(1 - s)$ | | this one takes some algebra; nudge it to check |
#
# Second, slopes that follow each other are **multiplied**. If $z$ moves by 3 for each unit of $w$, and $y$ moves by ¼
# for each unit of $z$, then $y$ moves by ¾ for each unit of $w$. (That is the *chain rule*; the next lesson is about
# it.)
#
# So let a number remember what it was made from, with the local slopes. To get every slope, walk back along those
# memories, and multiply on the way. Here is that idea in 14 lines:

# %%
class Value:
    def __init__(self, data, made_from=()):
        self.data, self.grad, self.made_from = data, 0.0, made_from

    def __add__(self, other):
        return Value(self.data + other.data, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Value(self.data * other.data, [(self, other.data), (other, self.data)])

    def sigmoid(self):
        s = 1 / (1 + math.exp(-self.data))
        return Value(s, [(self, s * (1 - s))])

    def backward(self, slope=1.0):
        self.grad += slope
        for operand, local in self.made_from:
            operand.backward(slope * local)


# %% [markdown]
# Python turns `w * x` into `w.__mul__(x)`, and so on: the formula can be written as before. An **operand** is what an
# operation works on. Each `Value` keeps its number in `data` and, once `backward` has passed by, its slope in `grad`.
# (`self.grad +=` adds rather than replaces. [Lesson 3](03_gradients_add_up.ipynb) is about that plus sign.)

# %%
w, x, b = Value(-2.0), Value(3.0), Value(6.0)
y = (w * x + b).sigmoid()
y.backward()
print(y.data, w.grad, x.grad, b.grad)

# %% [markdown]
# The answer is 0.5, and the slopes are the three that nudging gave us, without a single nudge.
# Working out derivatives by remembering operations is called **automatic differentiation**, and going from the result
# back to the inputs, as we did, is its *reverse mode*, or **backpropagation**.

# %% [markdown]
# ## Draw it
#
# minigrad is this idea, grown up. It has a `Value` of its own, which knows more operations and can be drawn: after
# the line that starts with `%`, a `Value` at the end of a cell shows how it was made. The second thing that we give it,
# `"w"`, is a **label**, a name for the picture.

# %%
import minigrad as mg

# %load_ext minigrad_viz

w, x, b = mg.Value(-2.0, "w"), mg.Value(3.0, "x"), mg.Value(6.0, "b")
y = (w * x + b).sigmoid()
y.backward()
y


# %% [markdown]
# You should see the formula as a **graph**: boxes joined by lines. Read it from left to right. The boxes without a line
# coming in are the **leaves**, numbers that we put in. Each other box is an operation. Every box shows its number
# and, below that, its gradient: the slope of $y$ by it. On each line stands the local slope of that step. What has no
# name of its own is numbered: $v_2$ is the product, $v_4$ the sum.

# %% [markdown]
# ## Step it
#
# Now read it from right to left, as `backward` does. It starts at $y$, whose slope by itself is 1. Every line of the
# graph is then one multiplication: the slope that has arrived so far, times the local slope of the line.
# `mg.events` lists them in order. An **event** is one such multiplication.

# %%
def name(value):
    return value.label or value.op.name


for event in mg.events(y):
    print(f"{name(event.source):>7} -> {name(event.target):<3}  ", end="")
    print(f"{event.upstream:5} * {event.local:5} = {event.contribution:5}")

# %% [markdown]
# Here the product is called `mul` and the sum `add`, after their operations. The first line says: the sum, from which
# the sigmoid was made, gets 1 · 0.25. The last two say that $w$ gets 0.25 times $x$, which is 0.75, and $x$ gets 0.25
# times $w$.
#
# `step` makes a **player** of the graph, which plays both directions one step at a time:

# %%
from minigrad_viz import step

player = step(y)
player

# %% [markdown]
# You should see the same graph; in a running notebook and in the book, with buttons above it to step forward and back
# (or press → and ←). First the numbers appear, from left to right: −6, then 0, then ½. Then the gradients, from right to
# left, and above the picture each multiplication as it is made. (The other buttons can wait. Two of them, *Predict* and
# *What if*, come in lesson 2.)
#
# And here is a knob to turn. (It needs a running notebook. In the book, *What if* above the graph has one.)

# %% tags=["nbval-ignore-output"]
player.slider("w", min=-6, max=2)

# %% [markdown]
# Everything follows: the sum, the answer, and the gradients. Turn $w$ to −4: the sum is −6, the answer nearly 0, and
# the slope of the sigmoid next to nothing, 0.0025. All three gradients are multiplied by it, so they are next to
# nothing too. Wherever a neuron is sure, near 0 or near 1, its slopes say little. Look at the curve above: out there,
# it is flat.

# %% [markdown]
# ## Compare with the library
#
# Three ways to the same gradient: nudging, our 14 lines, and minigrad.

# %%
our_w, our_x, our_b = Value(-2.0), Value(3.0), Value(6.0)
(our_w * our_x + our_b).sigmoid().backward()

print("     nudged   ours   minigrad")
for value, our, nudged in ((w, our_w, by_w), (x, our_x, by_x), (b, our_b, by_b)):
    print(f"{value.label}   {nudged:+7.3f}  {our.grad:+.2f}  {value.grad:+9.2f}")

# %% [markdown]
# ## Break it
#
# If nudging gives the same numbers, what is wrong with it, apart from its price? Let us measure the slope by $w$ again,
# with larger and smaller nudges. The true value is 0.75.

# %%
for h in (1, 0.1, 0.001, 0.000001, 1e-17):
    slope = (neuron(-2 + h, 3, 6) - neuron(-2 - h, 3, 6)) / (2 * h)
    print(f"h = {h:<8}  slope = {slope:.3f}")

# %% [markdown]
# A nudge that is too large ($h = 1$) reaches beyond the bend of the curve: 0.453 is the slope of some other, flatter
# line. And a nudge that is too small is lost altogether: a computer keeps about 16 digits, so $-2 + 10^{-17}$ *is*
# $-2$, nothing moves, and the slope comes out as 0.
#
# You should see below how wrong the measured slope is (upwards) for each size of the nudge (to the right), both in
# powers of ten. On the right side the bend is to blame; on the left, with its jitter, the digits. Even the best nudge,
# in the valley between, is off somewhere around the eleventh digit. The `Value` above has no such trouble: it never
# nudges.

# %% tags=["nbval-ignore-output"]
hs = [10 ** (-k / 8) for k in range(112)]
errors = [abs((neuron(-2 + h, 3, 6) - neuron(-2 - h, 3, 6)) / (2 * h) - 0.75) for h in hs]
plot = Plot(xlabel="nudge $h$", ylabel="error of the slope", xscale="log", yscale="log")
plot.line(hs, errors, marker="o", linewidth=1, markersize=4)
plot.text(1e-11, 3e-4, "the digits run out", color="C3")
plot.text(4e-3, 2e-3, "the curve bends", color="C3", ha="right")
plot

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if
# something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 1.1 · Predict a gradient
#
# Another neuron, $y = \sigma(w \cdot x + b)$ with $w = 4$, $x = \frac12$ and $b = -2$. What are the three slopes of
# $y$? Work them out by hand, with the table of local slopes. (What goes into the sigmoid is 0 here too.)

# %%
gradient = {"w": ..., "x": ..., "b": ...}

# %%
lessons.check("01.1", gradient)


# %% [markdown]
# ### Exercise 1.2 · A slope for any function
#
# Write a function that measures the slope of any `f` at any `x` by nudging.

# %%
def slope(f, x):
    return ...


# %%
lessons.check("01.2", slope)


# %% [markdown]
# ### Exercise 1.3 · One operation more
#
# Our `Value` cannot divide yet. Write what it would have to remember: a function that returns three numbers, the
# quotient $a / b$, its local slope by $a$, and its local slope by $b$. Nudge if you are unsure. (For $a = 6$, nudging
# $b$ gives a slope of −6 at $b = 1$, −1.5 at $b = 2$ and −0.375 at $b = 4$. What happens each time that $b$ doubles?)

# %%
def division(a, b):
    return ...


# %%
lessons.check("01.3", division)

# %% [markdown]
# ## Where this comes from
#
# - D. E. Rumelhart, G. E. Hinton and R. J. Williams, “Learning representations by back-propagating errors”,
#   *Nature* 323 (1986), pages 533–536: backpropagation, for networks of neurons like this one.
# - A. G. Baydin, B. A. Pearlmutter, A. A. Radul and J. M. Siskind, “Automatic differentiation in machine learning:
#   a survey”, *Journal of Machine Learning Research* 18 (2018), paper 153: why it is neither nudging nor algebra.
#
# We multiplied slopes that follow each other, and it worked. Why, and in which order, is the subject of the next
# lesson: **[2 · The chain rule](02_the_chain_rule.ipynb)**.
