# %% [markdown]
# # 2 · The chain rule
#
# *Before: [1 · One neuron](01_one_neuron.ipynb) · Next: [3 · Gradients add up](03_gradients_add_up.ipynb)*

# %% [markdown]
# ## The question
#
# Seven numbers go into this formula, and one comes out:
#
# $$y = (a + b) \cdot (c + d) + e \cdot f - g$$
#
# With $a = 2$, $b = 3$, $c = 4$, $d = 5$, $e = 6$, $f = 7$ and $g = 8$ it gives 5 · 9 + 42 − 8 = 79.
#
# **If each of the seven grew by a little, which would move $y$ the most, and which would make it smaller?**
#
# The answer is the gradient of [lesson 1](01_one_neuron.ipynb): the slopes $\frac{\partial y}{\partial a}$,
# $\frac{\partial y}{\partial b}$ and so on, each measured while the other numbers hold still.

# %% [markdown]
# ## Guess: nudge it and look
#
# We name the results on the way as well, since each of them can be nudged just like the seven: $s = a + b$,
# $t = c + d$, $p = s \cdot t$, $q = e \cdot f$, $r = p + q$ and $y = r - g$. That makes six operations. Below,
# `formula(a=0.5)` computes $y$ with $a$ half a unit larger, and `formula(s=0.5)` with that half added to $s$.
# (`nudge.get("a", 0)` is the nudge for $a$, or 0 if there is none.)

# %%
def formula(**nudge):
    start = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 7, "g": 8}
    a, b, c, d, e, f, g = [number + nudge.get(name, 0) for name, number in start.items()]
    s = a + b + nudge.get("s", 0)
    t = c + d + nudge.get("t", 0)
    p = s * t + nudge.get("p", 0)
    q = e * f + nudge.get("q", 0)
    r = p + q + nudge.get("r", 0)
    return r - g + nudge.get("y", 0)


formula()

# %%
h = 0.5
nudged = {name: (formula(**{name: h}) - formula(**{name: -h})) / (2 * h) for name in "abcdefgstpqry"}
print("leaves:     ", "  ".join(f"{name} {nudged[name]:+g}" for name in "abcdefg"))
print("operations: ", "  ".join(f"{name} {nudged[name]:+g}" for name in "stpqry"))

# %% [markdown]
# (A nudge as large as ½ does no harm here: as long as only one letter moves, the formula is a straight line.)
#
# So $a$ and $b$ move $y$ the most, by 9 for each unit, and $g$ makes it smaller: its slope is **−1**. A minus sign
# is easily lost when a gradient is worked out by hand, so look at $g$ twice.
#
# Look also at what the numbers are. The slope by $a$ is 9, which is $c + d$. The slope by $e$ is 7, which is $f$. And
# $s$ has the same slope as $a$ and $b$, from which it was made. There is a rule behind this.

# %% [markdown]
# ## The rule
#
# Think of gears. Suppose the second wheel turns 9 times for each turn of the first, and the first turns once for each
# turn of the crank. Then the second turns 9 · 1 times for each turn of the crank. **Rates that follow each other are
# multiplied.** For $a$, which acts on $y$ by way of $s$, this is the **chain rule**:
#
# $$\frac{\partial y}{\partial a} = \frac{\partial y}{\partial s} \cdot \frac{\partial s}{\partial a}$$
#
# In these lessons, and in minigrad, its three parts have names:
#
# - the **upstream** gradient $\frac{\partial y}{\partial s}$ is what the result of an operation already has;
# - the local slope $\frac{\partial s}{\partial a}$ is known from the operation alone: 1 for a sum, the other factor for
#   a product, and for a difference 1 on the left of the minus sign and −1 on the right of it;
# - the **contribution**, upstream × local, is what goes on to the operand.
#
# So we begin at the end, where $\frac{\partial y}{\partial y} = 1$ ($y$ moves exactly as far as $y$), and go backwards.
# This is the **backward pass**.

# %% [markdown]
# ## Build it
#
# Write down the six operations in the order of computing, each with the local slopes of its two operands. Then go
# through the list from its end.

# %%
operations = [
    ("s", {"a": 1, "b": 1}),
    ("t", {"c": 1, "d": 1}),
    ("p", {"s": 9, "t": 5}),  # s · t: the slope by s is t = 9, the slope by t is s = 5
    ("q", {"e": 7, "f": 6}),
    ("r", {"p": 1, "q": 1}),
    ("y", {"r": 1, "g": -1}),
]

gradient = {"y": 1}
for result, slopes in reversed(operations):
    for operand, local in slopes.items():
        gradient[operand] = gradient[result] * local
print("  ".join(f"{name} {gradient[name]:+d}" for name in "abcdefgstpqry"))

# %% [markdown]
# The whole backward pass is the three lines of that loop. It made one multiplication for each operand, twelve in all;
# nudging took twenty-six runs of the formula.

# %% [markdown]
# ## Draw it
#
# Now with minigrad's `Value`, which writes such a list by itself while it computes. (Names in the picture come
# from our variables.)

# %%
import minigrad as mg

# %load_ext minigrad_viz

a, b, c, d = mg.Value(2.0), mg.Value(3.0), mg.Value(4.0), mg.Value(5.0)
e, f, g = mg.Value(6.0), mg.Value(7.0), mg.Value(8.0)
s, t = a + b, c + d
p, q = s * t, e * f
r = p + q
y = r - g
y.backward()
y

# %% [markdown]
# You should see seven leaves, the numbers that were put in, and six operations. Data flows from left to right,
# gradients from right to left. On each line stands its local slope. Choose any leaf and multiply along its path to $y$:
# you get its gradient. For $g$ that is a single line, and it says −1.

# %% [markdown]
# ## Step it
#
# Here is the backward pass edge by edge; an **edge** is a line of the graph. Each event of `mg.events(y)` is one use of
# the chain rule. (Looking at the events changes no gradient.)

# %%
values = dict(zip("abcdefgstpqry", (a, b, c, d, e, f, g, s, t, p, q, r, y), strict=True))
names = {id(value): name for name, value in values.items()}

print("edge     upstream   local   contribution")
for event in mg.events(y):
    edge = f"{names[id(event.source)]} -> {names[id(event.target)]}"
    print(f"{edge}   {event.upstream:8g} × {event.local:5g} = {event.contribution:8g}")

# %% [markdown]
# Twelve edges, twelve events. Follow $y \to r \to p \to s \to a$: the 1 passes two edges as it is, is multiplied by
# $t = 9$ on the way into $s$, and reaches $a$ as 9.
#
# The same pass in a player. This one gives a **tour**: it stops at chosen places and says something there, and *Go on*
# leads to the next.

# %%
from minigrad_viz import step, tour

player = tour(
    y,
    [
        (y, "Forward is done: y is 79. No gradient is known yet, so every box shows a dash."),
        ("seed", "Backward begins at y. It moves exactly as far as itself: the gradient is 1."),
        ((r, "backward"), "y = r − g passes the 1 on to r as it is: 1 × 1."),
        ((g, "backward"), "But g stands to the right of the minus sign: 1 × (−1). There is our −1."),
        ((p, "backward"), "r = p + q: a sum passes on what it gets."),
        ((s, "backward"), "p = s · t: the slope by one factor is the other, t = 9. So s gets 1 × 9."),
        ((a, "backward"), "s = a + b passes the 9 on to a. All along the path: 1 × 1 × 1 × 9 × 1 = 9."),
        ("end", "The last step reaches b. Twelve multiplications, and all gradients are known."),
    ],
)
player

# %% [markdown]
# You should see the graph from before; while this notebook runs, the tour begins with a dash for each gradient, and
# fills them in from right to left. The stops are those of the path $y \to r \to p \to s \to a$, with a look at $g$.
#
# **What if** a number were another one? Two sliders move $d$ and $g$ (or open *What if* above the graph, which asks no
# kernel). Before you touch them: which gradients will change with $g$, and which with $d$?

# %% tags=["nbval-ignore-output"]
from ipywidgets import HBox

HBox([player.slider("d", min=0, max=10), player.slider("g", min=0, max=16)])

# %% [markdown]
# With $g$, none: $y$ falls by 1 for each unit of it, wherever it stands. With $d$, three: $d$ is a part of $t$, which
# is the local slope into $s$, so that $s$, and $a$ and $b$ behind it, always have the gradient $c + d$. At $d = 6$ that
# is 10. But the gradient of $d$ itself stays 5, as it depends on $a$ and $b$ only.

# %% [markdown]
# ## Compare with the library
#
# All thirteen gradients, three times: nudged, from our loop, and from minigrad.

# %%
print("name   nudged   ours   minigrad")
for name, value in values.items():
    print(f"{name:<4} {nudged[name]:+8g} {gradient[name]:+6d} {value.grad:+10g}")

# %% [markdown]
# ## Break it: does the order matter?
#
# Our loop went through the list backwards. Could we not simply start at $y$ and pass gradients on to whatever we
# meet first? Take a formula in which a result is used twice:
#
# $$s = 3a \qquad t = s + 1 \qquad y = s \cdot t$$
#
# With $a = 2$: $s = 6$, $t = 7$, $y = 42$. Nudging says that $\frac{\partial y}{\partial a}$ is 39:

# %%
h = 0.5
((3 * (2 + h)) * (3 * (2 + h) + 1) - (3 * (2 - h)) * (3 * (2 - h) + 1)) / (2 * h)

# %% [markdown]
# Here is a hasty backward pass: whoever is met first passes on what it has, at once. (`made_from` holds, for each
# result, its operands with their local slopes. For the product these are 7 and 6, each the other factor.)

# %%
made_from = {"s": {"a": 3}, "t": {"s": 1}, "y": {"s": 7, "t": 6}}


def hasty(result):
    gradient, waiting = {result: 1}, [result]
    for node in waiting:  # the list grows while we walk along it
        for operand, local in made_from.get(node, {}).items():
            if operand not in gradient:
                gradient[operand] = 0
                waiting.append(operand)
            gradient[operand] += gradient[node] * local
            print(f"{node} -> {operand}: {operand} has {gradient[operand]} now")
    return gradient


hasty("y")


# %% [markdown]
# It says 21 for $a$, and that is wrong. See where: $s$ got 7 from $y$ and passed 7 · 3 = 21 on to $a$. *Only then* did
# the other 6 arrive at $s$, by way of $t$. The gradient of $s$ ends up right, 13, but $a$ never hears of the last 6.
#
# **A value may pass its gradient on only when it has all of it**, that is, after everything made from it has had its
# turn. Going forward, the same rule says: each value stands after all that it was made from. A list with this property
# is said to be in **topological order**. Computing makes one all by itself, since nothing can be used before it exists;
# from a graph we get one by listing, before each value, what it was made from:

# %%
def in_order(result, order):
    if result not in order:
        for operand in made_from.get(result, {}):
            in_order(operand, order)
        order.append(result)
    return order


def patient(result):
    order = in_order(result, [])
    gradient = dict.fromkeys(order, 0) | {result: 1}
    for node in reversed(order):
        for operand, local in made_from.get(node, {}).items():
            gradient[operand] += gradient[node] * local
    return order, gradient


patient("y")

# %% [markdown]
# In the order a, s, t, y, read backwards, $s$ waits for $t$, and $a$ gets 39. (Why `+=`? Because $s$ is
# used twice, and gets two contributions. That plus sign has [the next lesson](03_gradients_add_up.ipynb) to itself.)
#
# minigrad does the same:

# %%
a = mg.Value(2.0)
s = 3 * a
t = s + 1
y = s * t
y.backward()
step(y, position=5)

# %% [markdown]
# You should see two lines that go out from $s$, and in the stored picture, where all is done, 39 at $a$ and 13 at $s$.
# (Σ2 says that the 13 is the sum of two contributions. The dotted boxes are **constants**, plain numbers that need no
# gradient.) While this notebook runs, the player stands in the middle of the backward pass: $s$ has got 7, and
# “Σ 1 of 2” says that one more contribution is to come. So the next step goes to $t$, not to $a$, which has to wait.
#
# What about the 14 lines of [lesson 1](01_one_neuron.ipynb)? They were right without any order, because they walked
# every *path* from the result to a leaf separately. But paths multiply: after 30 doublings, `a = a + a`, there are 2³⁰
# of them, a billion. In topological order each edge is walked just once.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if
# something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 2.1 · By hand
#
# $y = \dfrac{a \cdot (b - c)}{d}$ with $a = 6$, $b = 5$, $c = 3$, $d = 4$ is 3. What are its four slopes? Name the
# results on the way, and multiply. (The local slopes of $n / d$ are $\frac{1}{d}$ by $n$, and $-\frac{n}{d^2}$ by $d$.)
#
# You should see the formula below, without gradients. While this notebook runs, press *Predict*: before each step the
# player asks you for the next gradient, and tells you if a sign is wrong or a factor is missing. Otherwise pencil and
# paper do as well.

# %%
a, b, c, d = mg.Value(6.0), mg.Value(5.0), mg.Value(3.0), mg.Value(4.0)
difference = b - c
n = a * difference
y = n / d
step(y, position=3)

# %%
gradient = {"a": ..., "b": ..., "c": ..., "d": ...}

# %%
lessons.check("02.1", gradient)


# %% [markdown]
# ### Exercise 2.2 · Is it in order?
#
# Write a function that is given a list of `Value`s and says whether each stands after all that it was made from: `True`
# or `False`. What a value was made from is in `value.inputs`. That is empty for a leaf, and it may hold plain numbers
# (`3 * a` is made from `3.0` and `a`), which need no place in the list; `isinstance(operand, mg.Value)` tells which is
# which. Mind that `==` between two `Value`s, and so `in` with a list, compares their numbers, whereas a `set` tells two
# `Value`s with the same number apart.

# %%
def is_in_order(values):
    return ...


# %%
lessons.check("02.2", is_in_order)


# %% [markdown]
# ### Exercise 2.3 · Three in a chain
#
# $y = \bigl(\sin(3x)\bigr)^2$ is a chain of three operations. Write a function that gives the slope of $y$ at any $x$,
# without nudging. (The local slopes: $\sin u$ has $\cos u$, and $u^2$ has $2u$. `mg.sin` and `mg.cos` take plain
# numbers, too.)

# %%
def slope(x):
    return ...


# %%
lessons.check("02.3", slope)

# %% [markdown]
# ## Where this comes from
#
# - G. W. Leibniz, who gave us this notation, used the chain rule in a memoir of 1676 (and got a sign wrong).
# - S. Linnainmaa described the backward pass in topological order, for any computation, in his master's thesis of 1970
#   (in English in *BIT* 16 (1976), pages 146–160).
# - D. E. Rumelhart, G. E. Hinton and R. J. Williams, “Learning representations by back-propagating errors”, *Nature*
#   323 (1986), pages 533–536, made it the way in which networks learn.
# - A. G. Baydin, B. A. Pearlmutter, A. A. Radul and J. M. Siskind, “Automatic differentiation in machine learning: a
#   survey”, *Journal of Machine Learning Research* 18 (2018), paper 153, section 3.2.
#
# Next: what happens where a value is used more than once. **[3 · Gradients add up](03_gradients_add_up.ipynb)**
