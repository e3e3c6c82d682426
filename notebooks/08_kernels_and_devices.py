# %% [markdown]
# # 8 · Kernels and devices
#
# *Before: [7 · Gradient rules](07_gradient_rules.ipynb) · Next: [9 · Optimizers](09_optimizers.ipynb)*
#
# (In a web page, and wherever Taichi is not installed, NumPy computes everything. Then `mg.kernel_source` prints the name of
# NumPy's function instead of a kernel, and cells that need Taichi do nothing. The outputs that come with the lesson show what
# Taichi makes of it.)

# %% [markdown]
# ## The question
#
# Since lesson 1 we have written `x * y`, and a number came out. Here it is with a million elements:

# %%
import minigrad as mg

mg.manual_seed(0)
x, y = mg.rand(1_000_000), mg.rand(1_000_000)
product = x * y
product.shape

# %% [markdown]
# There is no loop in sight, and yet a million multiplications were made.
#
# **Which loop runs, where does it run, and who wrote it?**
#
# ## Guess: a race of three loops
#
# Three loops could do it: one of Python's, over two lists; one of NumPy's, over its arrays; and whatever it is that minigrad does.
# Before you look: how many times longer does the slowest of them take?

# %% tags=["nbval-ignore-output"]
from time import perf_counter


def quickest(function):
    times = []
    for _ in range(5):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


xs, ys, a, b = x.tolist(), y.tolist(), x.numpy(), y.numpy()
by_python = quickest(lambda: [p * q for p, q in zip(xs, ys, strict=True)])
print(f"Python's loop takes {by_python / quickest(lambda: a * b):.0f} times as long as NumPy's,")
print(f"and {by_python / quickest(lambda: x * y):.0f} times as long as minigrad's")

# %% [markdown]
# You should see some tens or some hundreds, twice. All three make the same multiplications. Python spends its time around them: each float of a list
# is an object, somewhere in memory; for each pair Python looks up again what these two are and what `*` means for them, and it allocates one more
# object for the result. The other two look it up once. Their elements are adjacent in memory, four bytes each ([lesson 6](06_tensors.ipynb)), and all that is left to
# do for each is to load, to multiply and to store.
#
# Such a loop is called a **kernel**: a function that computes one operation on arrays, and knows nothing of graphs or gradients.
# Where it does so is a **device**: a machine that computes, and the memory that it computes in.
#
# ## Who wrote it?
#
# `mg.kernel_source` shows the **source** of a kernel, its code as text. Here are two for multiplication, one on the device `python`, where `Value`s are computed, one on
# `numpy`:

# %%
few = mg.ones(2, device="numpy")
print(mg.kernel_source("mul", 2.0, 3.0))
print(mg.kernel_source("mul", few, few))

# %% [markdown]
# You should see two names and no source: one is Python's own multiplication, the other a loop that somebody wrote in C, years ago, for NumPy. A
# third device is `cpu`, where tensors are unless you say otherwise:

# %% tags=["nbval-ignore-output"]
few = mg.ones(2, device="cpu")
print(mg.kernel_source("mul", few, few))

# %% [markdown]
# You should see a source. What runs it is **Taichi**, a *compiler*: a program that turns source code into instructions for a processor. And who wrote it is minigrad,
# which knows how to put a loop around the three signs `a * b`. (Each `a_[i]` is a **vector** of 16 adjacent elements, since a processor can multiply several at once: it
# is **SIMD**, one instruction for several data. For a million of them the loop is also split among the **cores**, the several processors that are in one. Where Taichi
# is not installed, “cpu” means `numpy`, and you see NumPy's name again.)
#
# So the star is somebody's loop, and whose it is depends on the device.
#
# ## Build it: a table of kernels
#
# So we need a table: for each operation and each device, a function. To look up a kernel there, and call it, is to **dispatch**. And to fill it:
# `@kernel("swish", "numpy")` in the line above a function passes that function to what `kernel("swish", "numpy")` returns, `register`, which writes it into the
# table. (Such a line is a *decorator* of Python's.)

# %%
KERNELS = {}


def kernel(op, device):
    def register(function):
        KERNELS[op, device] = function
        return function

    return register


def dispatch(op, device, *operands):
    if (op, device) not in KERNELS:
        there = [place for name, place in KERNELS if name == op]
        raise LookupError(f"{op}: no kernel on {device}; it has one on {', '.join(there)}")
    return KERNELS[op, device](*operands)


# %% [markdown]
# Now fill it with an operation that our lessons have not had yet, **swish**, a bend that many networks use in place of a $\tanh$:
#
# $$\operatorname{swish}(x) = x \cdot \sigma(x) = \frac{x}{1 + e^{-x}}$$

# %%
import math

import numpy as np


@kernel("swish", "python")
def swish_python(a):
    return a / (1 + math.exp(-a))


@kernel("swish", "numpy")
def swish_numpy(a):
    return a / (1 + np.exp(-a))


print(f"{dispatch('swish', 'python', 2.0):.4f}")
print(dispatch("swish", "numpy", np.array([-1.0, 0.0, 2.0])).round(4))

# %% [markdown]
# And a loop of our own. Python never runs the code below `@ti.kernel`: Taichi reads its source, and compiles it when it is first called. A kernel of
# Taichi's returns nothing; it writes into an array that it gets as an argument.

# %%
COMPILED = mg.device("cpu") == "cpu"  # where Taichi is not installed, "cpu" means "numpy"

if COMPILED:
    import taichi as ti

    @ti.kernel
    def swish_loop(a: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(a.shape[0]):
            y[i] = a[i] / (1 + ti.exp(-a[i]))

    @kernel("swish", "cpu")
    def swish_by_hand(a):
        y = np.empty_like(a)
        swish_loop(a, y)
        return y

# %%
some = np.linspace(-3, 3, 1001, dtype=np.float32)
right = [dispatch("swish", "python", number) for number in some.tolist()]
devices = [device for op, device in KERNELS if device != "python"]
print("they agree:", all(np.allclose(dispatch("swish", device, some), right) for device in devices))

# %% [markdown]
# The outermost loop of such a kernel is **parallel**: the cores share its iterations, at the same time, and in no guaranteed order. Here that does no harm, since
# each iteration reads and writes its own elements only. Keep it in mind until *Break it*.
#
# ## Build it: an operation
#
# minigrad has the same table, and for each operation three things more: its name, how it is printed, and its rule, as in [lesson 7](07_gradient_rules.ipynb). In
# $y = x \cdot \sigma(x)$ there are two paths from $x$: as a factor, whose derivative is the other factor, $\sigma$; and through $\sigma$, whose own derivative is
# $\sigma\,(1 - \sigma)$. Together: $\sigma + x\,\sigma\,(1 - \sigma) = y + \sigma\,(1 - y)$.

# %%
swish = mg.Op(
    "swish",
    r"{a} \cdot \sigma({a})",
    vjp=(lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),),
    domain=(mg.Domain(-3.0, 3.0),),
    promotes="float",
)
mg.kernel("swish", "python")(swish_python)
mg.kernel("swish", "numpy")(swish_numpy)

if COMPILED:
    for device in ("cpu", "cuda", "vulkan", "metal"):
        mg.kernel("swish", device, "a / (1 + ti.exp(-a))")

# %% [markdown]
# A rule gets the parameters that it names: `g`, the gradient of the output, `y`, the output, and `a`, the operand. (`domain` is the range in which tests try the operation;
# `promotes` means that integers become floats first.)
#
# Look at the last line. For Taichi we give only a **snippet**, the body of a loop; minigrad generates the loop around it, for every
# shape and dtype. And one snippet serves four devices. A **GPU** is a processor with thousands of small cores, made for pictures, and good at loops like ours. None
# is needed yet: a snippet is compiled when it is first used.
#
# | device | who computes | whose loop |
# |---|---|---|
# | `python` | your processor, one float at a time | there is none |
# | `numpy` | your processor | NumPy's, in C |
# | `cpu` | your processor, all its cores | minigrad's source, compiled by Taichi |
# | `cuda`, `vulkan`, `metal` | a GPU: by NVIDIA, by most makers, by Apple | the same |

# %%
print(f"{swish(2.0):.4f} {swish(mg.Value(2.0)).data:.4f}")
swish(mg.tensor([-1.0, 0.0, 2.0]))

# %% [markdown]
# ## Draw it
#
# It is an operation now like any other. (Here `numpy` computes it, so that the picture is the same on every computer.)

# %%
# %load_ext minigrad_viz

x = mg.tensor([-1.0, 0.0, 2.0], requires_grad=True, device="numpy")
w = mg.tensor([2.0, 1.0, 0.5], requires_grad=True, device="numpy")
with mg.record():
    y = swish(x)
    loss = (y * w).sum()
    loss.backward()
loss

# %% [markdown]
# You should see $y = x \cdot \sigma(x)$ as a box between others, with the formula that we declared. Green is above 0 and magenta below. The gradient of $x$ is palest
# on the left, at −1: swish is nearly flat there, so that little passes, although $w$ is largest.
#
# ## Step it
#
# You should see the same boxes. While this notebook runs, the player stands at the last step, where the gradient passes swish, and shows our rule,
# $g \cdot (y + \sigma(x) \cdot (1 - y))$. Nobody typed that formula: minigrad printed it from the `lambda`.

# %%
from minigrad_viz import step

step(loss, position=8)

# %% [markdown]
# And who computed all that? minigrad has one `dispatch`, and everything passes there. So one can observe it: `mg.tap` calls a function, a **callback**, for every kernel.

# %%
calls, x.grad = [], None
with mg.tap(lambda call: calls.append(call.op)):
    loss = (swish(x) * w.detach()).sum()
    there = len(calls)
    loss.backward()
print("forward: ", " ".join(calls[:there]))
print("backward:", " ".join(calls[there:]))

# %% [markdown]
# You should see three kernels on the way forward and eight on the way back, and among these no kernel for the gradient of swish. The first two broadcast the 1 of the
# loss to all three elements, the next multiplies by $w$, and the other five *are* our rule, from the inside out. That is why rules are written in operations: these have
# their kernels already, on every device.
#
# ## Compare with the library
#
# minigrad has this function by its other name, `silu`. Values, derivatives, and a check of our rule against nudging:

# %%
silu = mg.nn.functional.silu


def slopes(function):
    x = mg.linspace(-3, 3, 1001, requires_grad=True)
    function(x).sum().backward()
    return x.grad


x = mg.linspace(-3, 3, 1001)
print("same values:     ", mg.allclose(swish(x), silu(x), atol=1e-6))
print("same derivatives:", mg.allclose(slopes(swish), slopes(silu), atol=1e-6))
print("gradcheck:       ", mg.gradcheck(swish, [0.5]) and mg.gradcheck(swish, [-2.0]))

# %% [markdown]
# What became of our snippet? A loop like that of `mul` above: `print(mg.kernel_source("swish"))` shows it, with the exponential spelled out. And what does it
# bring? The same million elements, three ways:

# %% tags=["nbval-ignore-output"]
x = mg.rand(1_000_000)
a = x.numpy()
snippet = quickest(lambda: swish(x))
print(f"NumPy takes {quickest(lambda: swish_numpy(a)) / snippet:.1f} times as long as the snippet,")
if COMPILED:
    print(f"our own loop {quickest(lambda: swish_by_hand(a)) / snippet:.1f} times as long")
with mg.profile() as profile:
    swish(x)
profile

# %% [markdown]
# You should see that the snippet is the quickest: our own loop, which takes one element after the other, needs a few times as long. (Without Taichi, there is
# nothing but NumPy to compare.) The table is a **profile**: for each kernel where it ran, how often, how long, and how many bytes it read and wrote. A million
# floats are 4 million bytes, or 3.8 MiB.
#
# Bytes are half of the matter. NumPy's formula is *four* kernels, `-`, `exp`, `+` and `/`. Each reads whole arrays from memory, and writes a whole array back. A
# processor multiplies faster than it fetches, so often that is what takes the time: such code is **memory-bound**. To merge several kernels into one is to **fuse**
# them.

# %%
import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")
loops = {"−a": (4, 4), "exp": (4, 4), "1 + …": (4, 4), "a / …": (8, 4), "one fused\nkernel": (4, 4)}
fig, ax = plt.subplots(figsize=(6.4, 3.2))
for row, (reads, writes) in enumerate(loops.values()):
    ax.barh(row, reads, color="#0072B2", height=0.6)
    ax.barh(row, writes, left=reads, color="#E69F00", height=0.6)
for x, color, text in ((2, "#0072B2", "reads"), (6, "#A66F00", "writes")):
    ax.text(x, -0.55, text, color=color, ha="center", fontweight="bold")
ax.text(12.4, 1.5, "four kernels:\n36 MB", va="center")
ax.text(12.4, 4, "8 MB", va="center")
ax.axhline(3.5, color="#999999", linewidth=1, linestyle="--")
ax.set(yticks=range(5), yticklabels=loops, xlim=(0, 15.5), ylim=(4.6, -1))
ax.set_xlabel("megabytes, for a million numbers")
plt.show()

# %% [markdown]
# You should see four bars above the dashed line, 36 megabytes in all, for what the fused kernel below does with 8.
#
# ## Where the data is
#
# A GPU has a memory of its own. Its kernels cannot access any other, and the processor cannot access it. Data has to be copied there, an **upload**, and
# copied back, a **download**, across a bridge. This is what `x * y` of a million elements costs on an H200, a large GPU, computed from measurements
# there with Taichi:

# %%
times = {"upload x": 1.0, "upload y": 1.0, "start the kernel": 0.02, "multiply": 0.004, "download": 1.5}
fig, ax = plt.subplots(figsize=(6.4, 3.0))
for row, (what, time) in enumerate(times.items()):
    ax.barh(row, time, color="#D55E00" if "load" in what else "#009E73", height=0.6)
    ax.text(time + 0.03, row, f"{time}", va="center")
ax.set(yticks=range(5), yticklabels=times, xlim=(0, 1.7), ylim=(4.6, -0.6))
ax.set_xlabel("thousandths of a second")
plt.show()


# %% [markdown]
# You should see three long orange bars, the copies, and next to nothing in green, the work. (The multiplication is too short to be timed alone. It reads and
# writes 12 MB, here at the 3,455 GB a second that large arrays reach in the GPU's own memory.) Who copies data to and fro for each operation has bought a very
# fast machine, and waits at the bridge.
#
# You may have no GPU. So let us build what matters of one: a memory of its own, where every copy is counted. All that we get to
# know of an array there is its **address**, its position in that memory, like the rows of [lesson 5](05_the_tape.ipynb).

# %%
class Board:
    def __init__(self):
        self.memory, self.uploads, self.downloads = [], 0, 0

    def put(self, array):
        self.uploads += 1
        return self.keep(array.copy())

    def get(self, address):
        self.downloads += 1
        return self.memory[address].copy()

    def run(self, op, *addresses):
        return self.keep(dispatch(op, "numpy", *[self.memory[address] for address in addresses]))

    def keep(self, array):
        self.memory.append(array)
        return len(self.memory) - 1


# %% [markdown]
# Ten times $x \leftarrow \operatorname{swish}(x) \cdot w$, in two loops that differ in nothing but where their data is:

# %%
def to_and_fro(board, x, w, steps):
    for _ in range(steps):
        far_x, far_w = board.put(x), board.put(w)
        x = board.get(board.run("mul", board.run("swish", far_x), far_w))
    return x


def stays_there(board, x, w, steps):
    far_x, far_w = board.put(x), board.put(w)
    for _ in range(steps):
        far_x = board.run("mul", board.run("swish", far_x), far_w)
    return board.get(far_x)


kernel("mul", "numpy")(np.multiply)
for loop in (to_and_fro, stays_there):
    board = Board()
    last = loop(board, np.linspace(-1, 1, 1000), np.full(1000, 1.5), 10)[-1]
    print(f"{loop.__name__:11}  {board.uploads:2} uploads  {board.downloads:2} downloads  result {last:.3f}")

# %% [markdown]
# 30 copies, or 3, for the same result. And however long the second loop runs, it stays with 3. minigrad counts, too: `mg.memory()` reports the uploads and
# downloads since the start. So it can be *proved* that a loop, here the second one, leaves its data on the device:

# %%
# mg.set_default_device("cuda")  # if you have a GPU by NVIDIA; or "vulkan", or "metal"
before = mg.memory()
x, w = [mg.tensor(array.astype(np.float32)) for array in (np.linspace(-1, 1, 1000), np.full(1000, 1.5))]
for _ in range(10):
    x = swish(x) * w
x.numpy()
after = mg.memory()
print(after.uploads.since(before.uploads).count, "uploads")
print(after.downloads.since(before.downloads).count, "downloads")

# %% [markdown]
# You should see two zeros, and they are true: `cpu` and `numpy` compute in the one memory of your computer, so there is nothing to copy. With
# `"vulkan"` for the default device, this cell printed 2 and 1: what our board counted.
#
# Without a bridge, even `x.numpy()` is no copy, but a view of the same bytes:

# %%
x = mg.zeros(3)
x.numpy()[0] = 5.0
x

# %% [markdown]
# On a GPU this 5 would be written into a copy. So a loop that is meant for one uploads its data **once**, before it begins; looks
# at values **seldom**, since each `.item()`, `.numpy()` and `print` is a download; and computes small things **there**, too.
#
# ## Break it: a kernel that is not there
#
# Here is an operation with a kernel on `python` alone, and a tensor on `numpy`:

# %%
cube = mg.Op("cube", "{a}^3", vjp=(None,), domain=(mg.Domain(-3.0, 3.0),))
mg.kernel("cube", "python")(lambda a: a * a * a)
print(cube(2.0))
try:
    cube(mg.tensor([2.0], device="numpy"))
except mg.errors.DeviceError as error:
    print(error)

# %% [markdown]
# Read it aloud: the operation (`cube`), the device (`numpy`), the device that has a kernel (`python`), and what to write. It is the `LookupError` of our own
# `dispatch`, with advice. There is no silent fallback to another device.
#
# ## Break it: a rule that is not there
#
# Did you see `vjp=(None,)`? There is no rule. So add the kernel, and ask for the derivative of $x^3 + x$ at 2, which is 13:

# %%
mg.kernel("cube", "numpy")(lambda a: a * a * a)
x = mg.tensor([2.0], requires_grad=True, device="numpy")
y = cube(x) + x
y.backward()
print("gradient:", x.grad.item())

try:
    mg.gradcheck(cube, mg.tensor([0.5], dtype=mg.float64, requires_grad=True, device="numpy"))
except mg.errors.GradcheckError as error:
    print(error)

# %% [markdown]
# Only the path past the cube arrived, without a word: `None` means that an operation is not differentiable, as a comparison is not. `mg.gradcheck` found out. Check
# each operation of yours with it before you use it.
#
# ## Break it: a kernel that works in-place
#
# `a *= a` works **in-place**: it needs no new array. What could be wrong with it? The derivative of $a^2$ at 3 should be 6:

# %%
square = mg.Op("my_square", "{a}^2", vjp=(lambda g, a: g * 2.0 * a,), domain=(mg.Domain(-3.0, 3.0),))


@mg.kernel("my_square", "numpy")
def _(a):
    a *= a
    return a


x = mg.tensor([3.0], requires_grad=True, device="numpy")
square(x).backward()
print("gradient:", x.grad.item(), "and x is now", x.item())

# %% [markdown]
# $x$ has become 9. The kernel overwrote its operand, and when the rule came to read that, it found 2 · 9. A kernel may write
# into arrays that it allocated, and nowhere else.
#
# Worse is a parallel loop in which *several iterations* write one element. Two workers count votes for a candidate, in one drawer: each reads what is in it, and writes
# one more. In between, the other has a turn:

# %%
drawer = [0]


def worker(name, votes):
    for _ in range(votes):
        old = drawer[0]
        yield f"{name} reads {old}"
        drawer[0] = old + 1
        yield f"{name} writes {old + 1}"


for turns in zip(worker("A", 3), worker("B", 3), strict=True):
    print(" · ".join(turns))
print("votes counted:", drawer[0], "of 6")

# %% [markdown]
# Both read 0, and both write 1: a vote is lost. That is a **race condition**, or race: the result depends on who comes when. Now for real, fifty million votes for ten
# candidates, four times, on all the cores of your processor:

# %% tags=["nbval-ignore-output"]
if COMPILED:

    @ti.kernel
    def count(votes: int, drawers: ti.types.ndarray()):
        for i in range(votes):
            candidate = i % 10
            drawers[candidate] = drawers[candidate] + 1

    for _ in range(4):
        drawers = np.zeros(10, dtype=np.int32)
        count(50_000_000, drawers)
        print(f"{drawers.sum():,} of 50,000,000 votes counted")
else:
    print("Taichi is not installed here.")

# %% [markdown]
# You should see that votes are missing, each time a different number of them. (A single core has nobody to race with. So where the others are busy elsewhere, a count
# may be right; run the cell again.) With only a few votes the counts would mostly be right, which is the worst of it: a small test finds nothing. With
# `drawers[candidate] += 1` Taichi reads and writes in one indivisible step, an **atomic** addition, and every vote is counted. For
# floats that is not enough: nothing is lost, but the order differs each time, and so do the last digits of the sum. So minigrad splits the elements of a large
# sum into chunks, gives each a drawer of its own, and adds up the drawers in the end.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 8.1 · An operation of yours
#
# $\operatorname{softsign}(a) = \dfrac{a}{1 + |a|}$ squeezes every value into the range from −1 to 1, without an exponential. Write its snippet for Taichi, a
# string that may use `ti.abs`, and its rule, a `lambda` as in our `vjp`, that names `g` and what it needs of `y` and `a`. (Find the derivative for positive $a$ first;
# then nudge, or think of the curve, for negative $a$.)

# %%
softsign = {"snippet": ..., "rule": ...}

# %%
lessons.check("08.1", softsign)

# %% [markdown]
# ### Exercise 8.2 · Count the bytes
#
# `a * b + c`, with three arrays of a million `float32`, four bytes each. How many bytes are read and written, all together, if a kernel multiplies and another one adds?
# And if one kernel does both? How many operations (each product and each sum is one) does the fused kernel perform for each byte that it reads or writes? That quotient
# is called the **arithmetic intensity**; where it is small, memory decides how long it takes.

# %%
moved = {"two kernels": ..., "one kernel": ..., "operations per byte": ...}

# %%
lessons.check("08.2", moved)

# %% [markdown]
# ### Exercise 8.3 · Repair a loop
#
# This loop draws $w$ towards $x$, and looks at a loss in each step. It works, and it makes 40 copies in 10 steps:

# %%
kernel("step", "numpy")(lambda w, x: w - 0.25 * (w - x))
kernel("loss", "numpy")(lambda w, x: ((w - x) ** 2).sum())


def learn(board, x, w, steps):
    losses = []
    for _ in range(steps):
        far_x, far_w = board.put(x), board.put(w)
        losses.append(board.get(board.run("loss", far_w, far_x)))
        w = board.get(board.run("step", far_w, far_x))
    return w, losses


board = Board()
learn(board, np.linspace(-1, 1, 1000), np.zeros(1000), 10)
print(board.uploads, "uploads,", board.downloads, "downloads")


# %% [markdown]
# Write it so that it returns the same, while `x` and `w` are uploaded once each, and `w` is downloaded once. The losses are scalars; they may be downloaded one by one.

# %%
def learn_there(board, x, w, steps):
    return ...


# %%
lessons.check("08.3", learn_there)

# %% [markdown]
# ### Exercise 8.4 · Which of these race?
#
# Each line is the body of a parallel loop over `i`, from 0 to `n`; `x`, `y` and `total` are separate arrays, and `x` is long enough. Say `True` where the result is
# the same in whatever order the iterations run, also at the same time, and `False` where there is a race.
#
# | loop | its body |
# |---|---|
# | A | `y[i] = x[i] + x[i + 1]` |
# | B | `x[i] = x[i] * x[i]` |
# | C | `x[i] = x[i + 1]` |
# | D | `total[0] = total[0] + x[i]` |
# | E | `y[n - 1 - i] = x[i]` |
# | F | `y[i // 2] = x[i]` |

# %%
safe = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ...}

# %%
lessons.check("08.4", safe)

# %% [markdown]
# ## Where this comes from
#
# - C. R. Harris and others, “Array programming with NumPy”, *Nature* 585 (2020), pages 357–362.
# - Y. Hu, T.-M. Li, L. Anderson, J. Ragan-Kelley and F. Durand, “Taichi: a language for high-performance computation on spatially sparse data structures”, *ACM
#   Transactions on Graphics* 38 (2019), article 201.
# - S. Williams, A. Waterman and D. Patterson, “Roofline: an insightful visual performance model for multicore architectures”, *Communications of the ACM* 52
#   (2009), pages 65–76: operations, bytes, and which of the two decides.
# - E. W. Dijkstra, “Solution of a problem in concurrent programming control”, *Communications of the ACM* 8 (1965), page 569: workers that must not come between
#   each other.
# - S. Elfwing, E. Uchibe and K. Doya, “Sigmoid-weighted linear units for neural network function approximation in reinforcement learning”, *Neural Networks* 107
#   (2018), pages 3–11, and P. Ramachandran, B. Zoph and Q. V. Le, “Searching for activation functions”, arXiv 1710.05941 (2017): one function, two names, SiLU and swish.
#
# Our operations are fast now. What to do with a gradient, other than a step against it, comes next: **[9 · Optimizers](09_optimizers.ipynb)**
