# %% [markdown]
# # 7 · Gradient rules
#
# *Before: [6 · Tensors](06_tensors.ipynb) · Next: [8 · Kernels and devices](08_kernels_and_devices.ipynb)*

# %% [markdown]
# ## The question
#
# A layer of neurons that looks at a whole table of flowers is a single operation on tensors, the **matrix product** $Z = X W$:
#
# $$Z_{ij} = \sum_k X_{ik} \, W_{kj}$$
#
# Row $i$ of $X$ is a flower, column $j$ of $W$ has the weights of a neuron, and $Z_{ij}$ is what that neuron makes of that
# flower, the $w_1 x_1 + w_2 x_2 + \dots$ of [lesson 4](04_a_network_of_values.ipynb). Python's sign for it is `@`.
#
# In the chain rule of [lesson 2](02_the_chain_rule.ipynb), an operation passed a gradient on by multiplying it with a local
# derivative, one for each operand. Here *each element* of the result has a derivative with respect to *each element* of an
# operand. How many is that, for the 120 irises and the eight neurons of lesson 4?

# %%
import minigrad as mg
from minigrad.data import iris

mg.set_default_dtype(mg.float64)  # 16 digits, so that nudging is precise

flowers = iris()
x, w = mg.tensor(flowers.train_x), mg.zeros(4, 8)
z = x @ w
for name, operand in (("w", w), ("x", x)):
    slopes = z.numel() * operand.numel()
    print(f"{z.numel()} results by {operand.numel()} elements of {name}: {slopes:,} local derivatives")


# %% [markdown]
# And this is a toy. In a layer of 1,000 neurons with 1,000 inputs and 1,000 samples, a million results have derivatives with
# respect to a million weights: eight terabytes of them, for one step back through one layer. The product itself takes a fraction
# of a second.
#
# **How can a backward pass do without all those derivatives?**
#
# ## Guess: nudge every element and look
#
# Let us measure all of them in a smaller product: four flowers, three measurements, five neurons. `jacobian` nudges the elements
# of one operand (of those in `inputs`, the one at index `slot`), one after the other, and measures how far each element of the
# result moves. That makes a table with a row for each element of the result and a column for each element of the operand. Such a
# table of all derivatives is called the **Jacobian**. (A nudge of ½ does no harm here: as long as only one element moves,
# $Z_{ij}$ is a straight line.)
#
# Before you look at the picture: which of the derivatives will be 0?

# %%
def jacobian(f, inputs, slot, h=0.5):
    columns, operand = [], inputs[slot]
    for n in range(operand.numel()):
        nudge = mg.zeros(operand.numel())
        nudge[n] = h
        nudge = nudge.view(operand.shape)
        up = f(*inputs[:slot], operand + nudge, *inputs[slot + 1 :])
        down = f(*inputs[:slot], operand - nudge, *inputs[slot + 1 :])
        columns.append((up - down).flatten() / (2 * h))
    return mg.stack(columns, dim=1)


def matmul(a, b):
    return a @ b


x, w = mg.arange(12.0).view(4, 3) - 5.5, 7.5 - mg.arange(15.0).view(3, 5)
by_x, by_w = jacobian(matmul, (x, w), 0), jacobian(matmul, (x, w), 1)
by_x.shape, by_w.shape

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

plt.style.use("lessons.mplstyle")
signs = LinearSegmentedColormap.from_list("signs", ["#b3287e", "white", "#1b7837"])

fig, axes = plt.subplots(1, 2, figsize=(7.4, 4.8), width_ratios=(15, 12))
for ax, table, name in zip(axes, (by_w, by_x), ("w", "x"), strict=True):
    rows, columns = table.shape
    ax.pcolormesh(table.numpy(), cmap=signs, vmin=-7.5, vmax=7.5, edgecolor="#dddddd", linewidth=0.5)
    ax.set(xlabel=f"the {columns} elements of ${name}$", aspect="equal", xticks=[], yticks=range(0, 21, 5))
    ax.invert_yaxis()
    ax.tick_params(length=0)
axes[0].set_ylabel("the 20 elements of $z$")
plt.show()

# %% [markdown]
# You should see the two Jacobians as heatmaps, white for 0, green above it and magenta below. Both are mostly white. Left, in the
# derivatives with respect to the weights, there are only thin diagonals: a neuron does not depend on the weights of another.
# Right, in those with respect to the flowers, there are four blocks, one for each flower: no flower is mixed with another. And
# colours come back: each diagonal on the left has a single one, and the four blocks on the right are all the same. So what is in
# there?

# %%
for name, table, other, numbers in (("w", by_w, "x", x), ("x", by_x, "w", w)):
    zeros = (table == 0).sum().item() / table.numel()
    rest = set(table.flatten().tolist()) - {0.0}
    same = rest == set(numbers.flatten().tolist())
    print(f"by {name}: {table.numel()} derivatives, {zeros:.0%} of them 0;", end=" ")
    print(f"the rest are the {len(rest)} elements of {other}: {same}")

# %% [markdown]
# Nothing in these tables is new. The derivatives with respect to $w$ are the elements of $x$, five times over, with zeros between
# them; and the other way round. In the layer of 1,000 neurons, 99.9 % of the eight terabytes are zeros, and the rest are copies.
#
# ## What a rule has to return
#
# The backward pass does not need the derivatives themselves. It needs *contributions*, upstream times local, added up over all
# paths ([lesson 3](03_gradients_add_up.ipynb)). Let $g_m = \frac{\partial L}{\partial y_m}$ be the gradient that the element
# $y_m$ of the result has already, with $L$ the loss at the end. Then the element $a_n$ of an operand gets
#
# $$\frac{\partial L}{\partial a_n} = \sum_m g_m \cdot \frac{\partial y_m}{\partial a_n}$$
#
# The $g_m$ are a row of numbers, a *vector*; the derivatives are the Jacobian. So the sum is called a **vector-Jacobian
# product**, VJP for short. In Python, with the full table, it is `g.flatten() @ table`, one row times the table. A **gradient
# rule** is a function that takes $g$, in the shape of the result, and returns this product, in the shape of the operand. *How* it
# computes it is its own business, and it need not build the table.

# %% [markdown]
# ## Build it: a table of rules
#
# In [lesson 5](05_the_tape.ipynb) we had a table of `SLOPES` for operations on scalars. For tensors it is a table of `RULES`:
# functions of $g$, the result $y$ and the operands, that return what each operand gets. We fill it one rule at a time.
#
# ### The matrix product, from one entry
#
# To derive a rule, ask for *one* element of the operand. Take $W_{kj}$. Where is it used? Neuron $j$ multiplies measurement $k$
# with it, for each flower $i$: in $Z_{ij}$, with derivative $X_{ik}$, and in no other column of $Z$. So the sum over all paths is a
# sum over the flowers. And for $X_{ik}$, it is one over the neurons. With $G$ for the gradient of $Z$:
#
# $$\frac{\partial L}{\partial W_{kj}} = \sum_i X_{ik} \, G_{ij} \qquad\qquad \frac{\partial L}{\partial X_{ik}} = \sum_j G_{ij} \, W_{kj}$$
#
# Both are matrix products again. One only has to swap the rows and columns of one factor, so that the summed index is in the
# middle. That is its **transpose**, $X^\top_{ki} = X_{ik}$ (in Python `x.T`, a view as in [lesson 6](06_tensors.ipynb)):
#
# $$\frac{\partial L}{\partial W} = X^\top G \qquad\qquad \frac{\partial L}{\partial X} = G \, W^\top$$

# %%
VALUE = {"matmul": matmul}
RULES = {"matmul": lambda g, y, a, b: (g @ b.T, a.T @ g)}

g = mg.arange(20.0).view(4, 5) - 9.5
to_x, to_w = RULES["matmul"](g, x @ w, x, w)
print("to x:", to_x.shape, "as by the table:", mg.equal(to_x, (g.flatten() @ by_x).view(4, 3)))
print("to w:", to_w.shape, "as by the table:", mg.equal(to_w, (g.flatten() @ by_w).view(3, 5)))


# %% [markdown]
# The same values, without any table. Two matrix products go back where one went forward.
#
# ### … and from the shapes
#
# If you ever forget which is transposed, and on which side it stands, ask the shapes. A gradient has the shape of what it belongs
# to. So from $G$ (4 × 5) and $X$ (4 × 3) we have to make something for $W$, 3 × 5. There is one way only: (3 × 4) times (4 × 5).

# %%
def draw_product(ax, middle, tensors):
    left = 0
    for sign, (name, rows, columns, color) in zip(("=", "", ""), tensors, strict=True):
        for row in range(rows):
            for column in range(columns):
                corner = left + column, middle - rows / 2 + row
                cell = plt.Rectangle(corner, 1, 1, facecolor=color, edgecolor="white", alpha=0.45)
                ax.add_patch(cell)
        place = left + columns / 2, middle
        ax.text(*place, f"${name}$\n{rows} × {columns}", ha="center", va="center", fontsize=13)
        ax.text(left + columns + 0.7, middle, sign, ha="center", va="center", fontsize=17)
        left += columns + (1.4 if sign else 0.5)


# %%
blue, orange, green, grey = "#0072B2", "#E69F00", "#009E73", "#777777"
x_block, w_block, g_block = ("X", 4, 3, blue), ("W", 3, 5, orange), ("G", 4, 5, green)
to_x_block = (r"\partial L / \partial X", 4, 3, blue)
to_w_block = (r"\partial L / \partial W", 3, 5, orange)

fig, ax = plt.subplots(figsize=(5.6, 5.6))
draw_product(ax, 2, (("Z", 4, 5, grey), x_block, w_block))
draw_product(ax, 7.6, (to_x_block, g_block, (r"W^\top", 5, 3, orange)))
draw_product(ax, 13.2, (to_w_block, (r"X^\top", 3, 4, blue), g_block))
ax.set(xlim=(-0.1, 16), ylim=(15.3, -0.1), aspect="equal")
ax.axis("off")
plt.show()

# %% [markdown]
# You should see three products as blocks. On top the one that goes forward, $Z = XW$. Below it the two that go back: each
# gradient is as high and as wide as the tensor in its colour, and in each product the two sides that meet are equally long: 3, 5
# and 4.
#
# This is a help for the memory and no proof: it says nothing about what is *in* the blocks. We shall see below how it misleads.
#
# ### Sums, and what was copied
#
# In $y = \sum_n a_n$ every element counts once, so each local derivative is 1, and each element gets $g$. **The way back through
# a sum is copying.** A bias, one row that is added to every row of a table, is the other way round. Forward it is copied, by
# broadcasting; its derivative is 1 in every row, and what arrives from all the rows is added up. **The way back through copying
# is a sum**, as lesson 6 has shown.
#
# ### Elementwise operations
#
# Where each element of the result depends on a single element of the operand, as in $\tanh$ or in the **ReLU**, $\max(0, a)$, the
# Jacobian is zero outside its diagonal. Such operations are **elementwise**. Their rule is what it was for `Value`s, $g$ times
# the local derivative, for each element. The derivative of the ReLU is 1 where the element is positive, else 0.
#
# Here are these four. And below them is a check for any rule: nudge the whole Jacobian, multiply it by a random $g$, and compare.

# %%
VALUE |= {
    "sum": lambda a: a.sum(),
    "bias": lambda a, b: a + b,
    "relu": lambda a: a.relu(),
    "tanh": lambda a: a.tanh(),
}
RULES |= {
    "sum": lambda g, y, a: (g.expand(a.shape),),
    "bias": lambda g, y, a, b: (g, g.sum(0)),
    "relu": lambda g, y, a: (g * (y > 0),),
    "tanh": lambda g, y, a: (g * (1 - y * y),),
}

# %%
mg.manual_seed(0)


def check(op, *inputs):
    y = VALUE[op](*inputs)
    g = mg.randn(y.shape)
    for slot, share in enumerate(RULES[op](g, y, *inputs)):
        if share is not None:
            nudged = g.flatten() @ jacobian(VALUE[op], inputs, slot, h=1e-5)
            right = mg.allclose(share, nudged.view(inputs[slot].shape), atol=1e-6)
            print(f"{op}, operand {slot}, {share.shape}: {right}")


table = mg.randn(4, 3)
check("matmul", table, mg.randn(3, 5))
check("bias", table, mg.randn(3))
for op in ("sum", "relu", "tanh"):
    check(op, table)


# %% [markdown]
# ### Softmax
#
# The softmax of lesson 4 makes probabilities of a row of scores, $y_i = e^{a_i} / \sum_j e^{a_j}$. Here each result depends on
# every score. Nudge $a_j$. In $y_j$, what stands above the line grows, which alone would give the derivative $y_j$ (the
# derivative of $e^a$ is $e^a$). But the sum below the line grows as well. Of that sum $e^{a_j}$ is the part $y_j$, so it grows by
# that part of itself, and *every* $y_i$ shrinks by the same part of itself, $y_i y_j$:
#
# $$\frac{\partial y_j}{\partial a_j} = y_j - y_j y_j \qquad\qquad \frac{\partial y_i}{\partial a_j} = - y_i y_j \quad (i \ne j)$$
#
# Now the sum over all paths that lead from $a_j$ to the loss:
#
# $$\frac{\partial L}{\partial a_j} = g_j y_j - \sum_i g_i y_i y_j = y_j \, \bigl(g_j - \bar g\bigr) \qquad\text{with}\qquad \bar g = \sum_i g_i y_i$$
#
# The scalar $\bar g$ is the mean of $g$, weighted by the probabilities. So a score gets what *its* $g$
# has beyond that mean, times its probability.

# %%
def softmax_rule(g, y, a):
    mean = (g * y).sum(1, keepdim=True)  # one for each row
    return (y * (g - mean),)


VALUE["softmax"], RULES["softmax"] = lambda a: a.softmax(1), softmax_rule
check("softmax", table)

# %%
a, g = mg.tensor([[8.0, 4.0, 2.0, 2.0]]).log(), mg.tensor([[1.0, -1.0, 2.0, 0.0]])
y = a.softmax(1)
mean = (g * y).sum().item()
(to_a,) = softmax_rule(g, y, a)

fig, axes = plt.subplots(1, 3, figsize=(7.6, 3.2))
panels = (("the result, $y$", y, grey), ("upstream, $g$", g, green), ("to the scores", to_a, blue))
for ax, (title, heights, color) in zip(axes, panels, strict=True):
    ax.bar(range(4), heights.flatten().tolist(), color=color)
    ax.axhline(0, color="#666666", linewidth=1)
    ax.set(title=title, xlabel="score", xticks=range(4))
axes[1].axhline(mean, color="#D55E00", linestyle="--")
axes[1].text(3.5, mean + 0.1, r"$\bar g$", color="#D55E00", fontsize=15, ha="right")
plt.show()

# %% [markdown]
# You should see the rule at work on four scores. Left, their probabilities, from ½ to ⅛. In the middle, what each probability is
# asked for, $g$, with $\bar g = \frac12$ as a dashed line: scores 0 and 2 are above it, 1 and 3 below. Right, what the scores
# get: up for those above the line, down for those below. Score 0 gets more than score 2, though it is nearer to the line, for its
# probability is four times as large. Together the four bars on the right make 0: probabilities can only be moved, not made.
#
# ### Cross-entropy
#
# The loss of lesson 4, now for a table of $N$ flowers: the mean of $-\ln p_t$, where $p_t$ is the probability of the right
# species. Its gradient with respect to the scores needs no new idea, only the rules that we have. The logarithm and the mean give
# $g_t = -\frac{1}{N p_t}$ to the right probability, and 0 to the others. So $\bar g = g_t \, p_t = -\frac 1 N$, and the softmax
# passes on
#
# $$p_j \, (0 - \bar g) = \frac{p_j}{N} \quad (j \ne t) \qquad\qquad p_t \, (g_t - \bar g) = \frac{p_t - 1}{N}$$
#
# Write the right answers as a table `hot`, with a 1 at the right species of each row and 0 elsewhere (such rows are called
# **one-hot**). Then both cases are one: $(p - \text{hot}) / N$. That is the rule that lesson 4 found in its picture. (`None` says
# that the right answers get no gradient.)

# %%
VALUE["cross-entropy"] = lambda a, hot: -(a.softmax(1) * hot).sum(1).log().mean()
RULES["cross-entropy"] = lambda g, y, a, hot: (g * (a.softmax(1) - hot) / len(a), None)

check("cross-entropy", table, mg.nn.functional.one_hot(mg.tensor([0, 2, 1, 1]), 3))

# %% [markdown]
# ## Draw it
#
# A small layer with softmax and cross-entropy: two samples of three features, and four classes (as the species were three). (The
# values are chosen so that all four scores of a sample are equal: each probability is ¼, and every gradient comes out exactly.)
# `pick` has −½ at the right class of each sample: the minus of the cross-entropy, and the mean of two.

# %%
# %load_ext minigrad_viz

x = mg.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]], requires_grad=True)
w = mg.tensor([[1.0, 3.0, -1.0, 2.0], [0.0, -1.0, 1.0, -0.5], [-1.0, 0.0, -2.0, -0.5]])
w.requires_grad_()
pick = mg.tensor([[-0.5, 0.0, 0.0, 0.0], [0.0, 0.0, -0.5, 0.0]])
with mg.record():  # so that backward() leaves the graph to the events below
    z = x @ w
    p = z.softmax(1)
    loss = (p.log() * pick).sum()
    loss.backward()
loss

# %% [markdown]
# You should see the graph, with a heatmap for each tensor and one for its gradient (on cream), of the same shape. Follow the
# gradients from right to left. At $p$, they are 0 but for two magenta cells: −2 for each right class, that is $-\frac{1}{N p_t}$.
# At $z$ the softmax has spread them out: −⅜ for the right class, ⅛ for each of the others, which is $(p - \text{hot}) / 2$. At
# $x$ and $w$ the matrix product has made of it what fits their shapes.
#
# ## Step it
#
# An event of the backward pass is one use of a rule now. Here they are, named after their operations, each with the shape that
# comes in and the shape that is handed on:

# %%
from minigrad_viz import tour

for event in mg.events(loss):
    rule, g, share = event.source.name, event.upstream, event.contribution
    print(f"{rule:<16} operand {event.slot}:  {g.shape!s:>6} -> {share.shape}")

# %% [markdown]
# The last two are the rules of the product: the same $g$, of shape (2, 4), becomes (2, 3) for $x$ and (3, 4) for $w$. The player
# says it step by step:

# %%
stops = [
    (loss, "Forward is done: all probabilities are ¼, and the loss is ln 4."),
    ("seed", "Back. The loss is a scalar, and its gradient is 1."),
    (7, "The sum copies it: every element gets 1."),
    ((p, "backward"), "The logarithm has the derivative 1/p = 4: −½ · 4 = −2 for each right class."),
    ((z, "backward"), "Softmax: p · (g − ḡ) with ḡ = −½. The others get ⅛, the right class −⅜."),
    ((x, "backward"), "The product, first operand: g wᵀ, of the shape of x."),
    ((w, "backward"), "And the second: xᵀ g, of the shape of w. Each element is a sum over the two samples."),
]
tour(loss, stops)

# %% [markdown]
# You should see the graph again. While this notebook runs, the stops lead through it with the rule of each step above the
# picture, and a click on a box shows its values.
#
# ## Two layers, by hand
#
# Now a whole network, the one from lesson 4, with a ReLU in place of $\tanh$: four measurements, eight neurons, three scores.
# Twelve flowers at once. First forward:

# %%
x, t = mg.tensor(flowers.train_x[:12]), mg.tensor(flowers.train_y[:12])
hot = mg.nn.functional.one_hot(t, 3)
w1, b1, w2, b2 = mg.randn(4, 8), mg.zeros(8), mg.randn(8, 3), mg.zeros(3)

a1 = x @ w1 + b1
h = a1.relu()
a2 = h @ w2 + b2
p = a2.softmax(1)
loss = -(p * hot).sum(1).log().mean()

# %% [markdown]
# And back, from the last line to the first. Each line is one rule from our table:

# %%
to_a2 = (p - hot) / len(x)  # softmax and cross-entropy
to_b2 = to_a2.sum(0)  # bias
to_w2 = h.T @ to_a2  # matmul, second operand
to_h = to_a2 @ w2.T  # matmul, first operand
to_a1 = to_h * (h > 0)  # relu
to_b1 = to_a1.sum(0)  # bias
to_w1 = x.T @ to_a1  # matmul, second operand

# %% [markdown]
# Seven lines are the whole backward pass of a network of two layers. Are they right? We ask minigrad for the same gradients:

# %%
for parameter in (w1, b1, w2, b2):
    parameter.requires_grad_()
mg.functional.cross_entropy((x @ w1 + b1).relu() @ w2 + b2, t).backward()

pairs = {"w1": (w1, to_w1), "b1": (b1, to_b1), "w2": (w2, to_w2), "b2": (b2, to_b2)}
for name, (parameter, ours) in pairs.items():
    off = (parameter.grad - ours).abs().max().item()
    print(f"{name} {ours.shape!s:>6}: off by less than a millionth: {off < 1e-6}")

# %% [markdown]
# Lesson 4 had a graph of some 130 operations for *one* flower. Here there are seven rules for twelve flowers, and seven for 120.
#
# ## Compare with the library
#
# In minigrad each operation is declared once, with its rules, and is found by its name in `mg.OPS`. (In a terminal,
# `minigrad ops` lists them all.) Here is the line about the matrix product, where `mT` swaps the last two dimensions, so that
# stacks of matrices will do as well. And below it, what some operations **save** for the backward pass:

# %%
import inspect

print(inspect.getsource(mg.OPS["matmul"].vjp[0]).strip())
for op in ("matmul", "softmax", "tanh", "relu", "sum"):
    print(f"{op:>7} saves", ", ".join(sorted(mg.OPS[op].saves)) or "no tensor, only a shape")


# %% [markdown]
# The rules are ours, but for one thing: each names just the operands that it reads. What no rule of an operation reads need not
# be saved, and the **saved tensors** are what fills the memory while a network learns.
#
# `mg.gradcheck`, known from lesson 4, checks rules as our `check` does. To give it *our* rules, we make operations of our own: an
# `mg.autograd.Function` defines both directions. Its `forward` saves in `ctx`, the context, what its `backward` will
# need, and `apply` calls it. (Under `@staticmethod` a function of a class gets no `self`.)

# %%
def own(f, rule):
    class Own(mg.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            y = f(*inputs)
            ctx.save_for_backward(y, *inputs)
            return y

        @staticmethod
        def backward(ctx, g):
            return rule(g, *ctx.saved_tensors)

    return Own.apply


# %%
more = {"matmul": mg.randn(3, 5), "bias": mg.randn(3), "cross-entropy": hot[:4]}
for op, rule in RULES.items():
    inputs = [table, more[op]] if op in more else [table]
    print(f"{op}: {mg.gradcheck(own(VALUE[op], rule), inputs)}")

# %% [markdown]
# Last, the words of this lesson are functions in the library, under PyTorch's names. `vjp` returns the result, and the product with
# $g$. `jacobian` returns the full table, with one backward pass for each element of the result. And there is a product from the other
# side: the **Jacobian-vector product**, `jvp`, asks how the results move if all the elements of the operand move at once, each
# at its own speed in some $v$.

# %%
x, w = mg.arange(12.0).view(4, 3) - 5.5, 7.5 - mg.arange(15.0).view(3, 5)
g, v = mg.arange(20.0).view(4, 5) - 9.5, mg.arange(15.0).view(3, 5) / 4

z, to_w = mg.autograd.vjp(lambda w: x @ w, w, g)
whole = mg.autograd.jacobian(lambda w: x @ w, w)
_, moved = mg.autograd.jvp(lambda w: x @ w, w, v)
print("vjp:     ", to_w.shape, "as by our rule:", mg.equal(to_w, RULES["matmul"](g, z, x, w)[1]))
print("jacobian:", whole.shape, "as nudged:", mg.equal(whole.view(20, 15), by_w))
print("jvp:     ", moved.shape)
print("g times jvp:", (g * moved).sum().item(), "  vjp times v:", (to_w * v).sum().item())


# %% [markdown]
# The last two numbers agree, as they must: both add up $g_m \cdot \frac{\partial y_m}{\partial a_n} \cdot v_n$ over the whole
# table, one by rows and one by columns. A JVP answers for one direction of the inputs, a VJP for one result or one mix of
# results. A loss is one result that depends on millions of parameters. That is why networks learn by VJPs, backward.

# %% [markdown]
# ## Break it
#
# Wrong rules seldom crash. Here are three that pass an easy test. `verdict` asks gradcheck, and prints what it complains about.
#
# **A transpose is forgotten.** With a 2 × 3 and a 3 × 4 matrix, that would be noticed at once. With square matrices all the shapes
# are right. And if the test has a symmetric matrix, which is its own transpose, even the values are:

# %%
def verdict(f, rule, *inputs):
    try:
        print(mg.gradcheck(own(f, rule), inputs))
    except mg.errors.MinigradError as error:
        print(error)


def forgetful(g, y, a, b):
    return g @ b, a.T @ g


square, symmetric = mg.tensor([[1.0, 2.0], [3.0, 4.0]]), mg.tensor([[2.0, 1.0], [1.0, 3.0]])
verdict(matmul, forgetful, square, symmetric)
verdict(matmul, forgetful, symmetric, square)

# %% [markdown]
# gradcheck names the element, with indices counted from 0, and both derivatives.
#
# **The sum over the samples is forgotten** at a bias, or taken for a mean. With a single sample there is nothing to add up, and
# both are right. With three, one has the wrong shape, and the other a third of what it should be:

# %%
add = VALUE["bias"]
for samples in (1, 3):
    a, b = mg.zeros(samples, 2), mg.zeros(1, 2)
    verdict(add, lambda g, y, a, b: (g, g), a, b)
    verdict(add, lambda g, y, a, b: (g, g.mean(0, keepdim=True)), a, b)

# %% [markdown]
# **The mean is forgotten** in the softmax, so that its rule is $y \cdot g$, as if every probability stood alone. Shapes cannot
# tell. But does it learn? We train a network on the irises, once with our rule and once with this one:

# %%
all_x, all_t = mg.tensor(flowers.train_x), mg.tensor(flowers.train_y)
all_hot = mg.nn.functional.one_hot(all_t, 3)


def train(softmax, steps=30):
    mg.manual_seed(0)
    numbers, losses = [mg.randn(4, 8) / 2, mg.zeros(8), mg.randn(8, 3) / 2, mg.zeros(3)], []
    for _ in range(steps):
        w1, b1, w2, b2 = parameters = [number.requires_grad_() for number in numbers]
        p = softmax((all_x @ w1 + b1).relu() @ w2 + b2)
        loss = -(p * all_hot).sum(1).log().mean()
        slopes = mg.grad(loss, parameters)
        numbers = [q.detach() - 0.1 * slope for q, slope in zip(parameters, slopes, strict=True)]
        losses.append(loss.item())
    return losses


# %%
def lonely(g, y, a):
    return (y * g,)


fig, ax = plt.subplots()
for rule, name, place in ((softmax_rule, "our rule", (22, 0.47)), (lonely, "$y\\,g$", (19.5, 2.1))):
    (line,) = ax.plot(train(own(VALUE["softmax"], rule)))
    ax.annotate(name, place, color=line.get_color(), fontsize=14)
ax.set(xlabel="step", ylabel="loss", ylim=(0, 3))
plt.show()

# %% [markdown]
# You should see that the wrong rule (orange) learns at first, nearly as fast as the right one (blue): it pushes up the score of
# the right species. So “the loss goes down” is no test. But it pushes by the same $-\frac 1 N$ however sure the network is
# already, and it never pushes the others down. After some eight steps the loss rises, and would not stop: before step 60 it is
# `nan`. One call would have said so:

# %%
verdict(VALUE["softmax"], lonely, mg.zeros(1, 4))

# %% [markdown]
# So test a rule with sizes that are all different, several samples, values without any symmetry, and a random $g$; and by
# nudging, which knows nothing of what you believe.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is. In all of them $g$
# is the gradient of the result, and tensors are of `mg`.

# %%
from minigrad import lessons


# %% [markdown]
# ### Exercise 7.1 · Mean
#
# $y$ is the mean of all elements of $a$, a scalar. Write its rule, which returns what $a$ gets.

# %%
def mean_rule(g, a):
    return ...


# %%
lessons.check("07.1", mean_rule)


# %% [markdown]
# ### Exercise 7.2 · A layer, as PyTorch has it
#
# `y = x @ w.T + b`: here the weights of a neuron are a *row* of $w$. Write the rule: it returns what $x$, $w$ and $b$ get, three
# tensors. (Begin with one element, or with the shapes: in the check, $x$ is 4 × 3, $w$ is 5 × 3, and $b$ has 5 elements.)

# %%
def layer_rule(g, x, w):
    return ...


# %%
lessons.check("07.2", layer_rule)


# %% [markdown]
# ### Exercise 7.3 · Twice in one line
#
# `y = x * x.sum()`, with $x$ a vector. Write its rule. (By how many paths does an element of $x$ reach the results?)

# %%
def weighted_rule(g, x):
    return ...


# %%
lessons.check("07.3", weighted_rule)


# %% [markdown]
# ### Exercise 7.4 · Centering
#
# Large networks keep their activations in range by a *layer norm*, which begins with subtracting from each row its mean:
# `y = a - a.mean(1, keepdim=True)`. Write the rule of that. Does it need $a$?

# %%
def centering_rule(g, a):
    return ...


# %%
lessons.check("07.4", centering_rule)

# %% [markdown]
# ## Where this comes from
#
# - A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd edition, SIAM (2008), chapters 3 and 4: products with the
#   Jacobian from both sides, and why a gradient costs but a few times what the function does.
# - M. B. Giles, “Collected matrix derivative results for forward and reverse mode algorithmic differentiation”, in *Advances in
#   Automatic Differentiation*, Springer (2008), pages 35–44: rules like ours, for many operations on matrices.
# - J. S. Bridle, “Probabilistic interpretation of feedforward classification network outputs”, in *Neurocomputing*, Springer
#   (1990), pages 227–236: softmax.
# - J. L. Ba, J. R. Kiros and G. E. Hinton, “Layer normalization”, arXiv:1607.06450 (2016): where the last exercise begins.
#
# Rules say *what* is computed. The next question is who does it, and where: **[8 · Kernels and devices](08_kernels_and_devices.ipynb)**
