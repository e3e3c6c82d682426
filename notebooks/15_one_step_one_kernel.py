# %% [markdown]
# # 15 · One step, one kernel
#
# *Before: [14 · Looking where it matters](14_looking_where_it_matters.ipynb) · Next: [16 · Beyond first order](16_beyond_first_order.ipynb)*
#
# (In a web page, and wherever Taichi is not installed, `mg.jit` replays the calls of a step one by one: nothing is fused or merged,
# there is no source to print, and a replay is no faster. The outputs that come with the lesson show what Taichi makes of it.)
#
# ## The question
#
# This network gets the 64 pixels of a handwritten digit, and computes a score for each of the ten that it could be. `learn` is one step
# of its training: clear the gradients, forward, the mean of the squares by which the scores are off, backward, update the parameters.

# %%
import minigrad as mg

digits = mg.data.digits()
images = digits.train_x.flatten(1)
answers = mg.nn.functional.one_hot(digits.train_y, 10).to(mg.float32)
x, y = images[:64], answers[:64]


def network():
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.Tanh(), mg.nn.Linear(32, 10))
    return model, mg.optim.SGD(model.parameters(), lr=0.1)


# %%
def step_of(model, optimizer):  # we shall need several that begin alike
    def learn(x, y):
        optimizer.zero_grad()
        off = model(x) - y
        loss = (off * off).mean()
        off.abs().max()  # left over from a print
        loss.backward()
        optimizer.step()
        return loss

    return learn


model, optimizer = network()
learn = step_of(model, optimizer)
print(f"loss {learn(x, y).item():.2f}")

# %% [markdown]
# All that computes here are kernels ([lesson 8](08_kernels_and_devices.ipynb)), which are quick. But Python calls them, one after the other,
# and each reads its operands from memory and writes its result back there.
#
# **How much of a step's time is Python, how much is memory traffic, and can we get rid of either?**
#
# ## Guess: how many calls, and for how long?
#
# Seven lines of Python: how many kernels do they call? And how much longer does a step take with 64 digits than with a single one?
# Make two guesses before you look. `mg.tap`, of lesson 8, reports each call:

# %%
from textwrap import dedent, fill

heard = []
with mg.tap(lambda call: heard.append(call.op)):
    learn(x, y)
print(fill(f"{len(heard)} calls: {', '.join(heard)}", 88))

# %% tags=["nbval-ignore-output"]
from time import perf_counter


def quickest(function, times=20):
    found = []
    for _ in range(times):
        start = perf_counter()
        function()
        found.append(perf_counter() - start)
    return min(found) * 1e6  # in millionths of a second


sizes, eager = [4**k for k in range(8)], {}
for size in sizes:
    some, right = mg.rand(size, 64), mg.rand(size, 10)
    times = 20 if size < 1000 else 5
    eager[size] = quickest(lambda some=some, right=right: learn(some, right), times)
print(f"a step with 64 digits takes {eager[64] / eager[1]:.1f} times as long as one with a single digit")

# %%
import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")
thousandths = [time / 1000 for time in eager.values()]
fig, ax = plt.subplots()
ax.loglog(sizes, thousandths, "o-", color="#0072B2")
ax.axhline(thousandths[0], color="#999999", linestyle="--", linewidth=1)
ax.text(1, thousandths[0] * 0.75, "what a step with one digit takes", color="#555555", va="top")
ax.set(xlabel="digits in a step", ylabel="thousandths of a second", ylim=(thousandths[0] / 3, None))
for axis, ticks in ((ax.xaxis, sizes), (ax.yaxis, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50])):
    axis.set_ticks([tick for tick in ticks if axis is ax.xaxis or ax.get_ylim()[0] < tick < ax.get_ylim()[1]])
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_locator(plt.NullLocator())
plt.show()

# %% [markdown]
# You should see twenty-eight calls, a ratio near 1, and a curve that is flat on the left: sixty-four times the arithmetic costs next to
# nothing. What a small step spends, it spends on *calls*. For each, Python creates tensors, links them to a graph, looks up the kernel and the
# rule, allocates memory and starts a loop: some tens of millionths of a second of **overhead**, whatever there is to compute. Only on the right, from
# some thousand digits on, the line goes up with their number.
#
# And the next step does it all again: the same twenty-eight calls, of the same shapes, in the same order.
#
# ## Build it: a tracer
#
# In [lesson 5](05_the_tape.ipynb) we wrote such a repetition down: a **program**, a list of instructions that read rows and write rows. There a
# row was a scalar. Here it is an array, and an instruction is a kernel call. We need not even walk through a graph: the tap reports
# forward, backward and update alike. To write the calls of a run down is to **trace** or **capture** it. Each array gets a name when it first appears. (A kernel may also have
# other arguments, such as a rate: its `attrs`. And `call.out` is the array that it works on in-place, if there is one.)

# %%
from collections import namedtuple

Row = namedtuple("Row", "op reads attrs out writes")


def record(function, *arguments):
    names, arrays, program = {}, {}, []

    def name(array):
        label = names.setdefault(id(array), f"t{len(names)}")
        arrays[label] = array  # as long as it is referenced here, no other array gets its id
        return label

    def hear(call):
        reads = [name(x) if hasattr(x, "shape") else x for x in call.inputs]  # or a Python number
        program.append(Row(call.op, reads, call.attrs, name(call.result), call.out is not None))

    with mg.tap(hear):
        function(*arguments)
    return program, arrays


# %%
def show(program):
    for row in program:
        print(f"{row.out:>3} {'<-' if row.writes else ' ='} {row.op}({', '.join(map(str, row.reads))})")


program, arrays = record(learn, x, y)
show(program)

# %% [markdown]
# You should see a page that can be read aloud. Three lines are the forward pass of the network; `off` is t9, and the loss t11. From the
# `div` on it is the backward pass. `mul`, `sub`, `mul` in t25 to t27 are the rule of $\tanh$, $g \cdot (1 - y \cdot y)$, from [lesson
# 7](07_gradient_rules.ipynb). An arrow, `<-`, is an in-place call: the updates of the four parameters.
# (`linear` is a matrix product plus biases, and `sum_to` the gradient of the biases.)
#
# There is no `Tensor` in it, no graph, no rule and no `learn`. To run it again, to **replay** it, is to go down the list. minigrad's own `dispatch` finds the
# kernels (we built one in lesson 8):

# %%
from minigrad.core.dispatch import dispatch

place = mg.device(mg.get_default_device())


def replay(program, arrays):
    for row in program:
        operands = tuple(arrays[x] if isinstance(x, str) else x for x in row.reads)
        target = arrays[row.out] if row.writes else None
        arrays[row.out] = dispatch(row.op, place, operands, row.attrs, target)


# %% [markdown]
# Does it learn? Two networks with equal parameters, one by `learn`, one by its trace (the first step is the one that is captured):

# %%
def same(a, b):
    return all(mg.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


(first, by_first), (second, by_second) = network(), network()
learn = step_of(first, by_first)
program, arrays = record(step_of(second, by_second), x, y)
learn(x, y)
for _ in range(50):
    learn(x, y)
    replay(program, arrays)
print("the same parameters, bit for bit:", same(first, second))


# %% [markdown]
# (It always uses the `x` and the rate that were captured. One would copy other digits into that `x`.)
#
# ## Build it: eliminate dead code
#
# A list can be analysed before it is run. Somebody once printed how far off the worst score is, and left the line that computes it: no call
# reads t13. That is **dead code**. To find it, go from the end, where we know what is needed: the loss, and in-place writes to arrays
# that outlive the step.

# %%
def needed(program, wanted):
    wanted, kept = set(wanted), []
    for row in reversed(program):
        if row.writes or row.out in wanted:
            wanted.update(row.reads)
            kept.append(row)
    return kept[::-1]


loss = next(row.out for row in program if row.op == "mean")
alive = needed(program, {loss})
print(len(program), "calls, of which", len(alive), "are needed; not these:")
show([row for row in program if row not in alive])

# %% [markdown]
# One pass is enough for both: `abs` was read by `amax`, but since that is dead, its operands are not needed either. It is the backward pass of lesson 5 with
# *yes* and *no* for gradients.
#
# ## Build it: fewer trips to memory
#
# The first call of $\tanh$'s rule writes 64 × 32 squares to memory, the second fetches them and writes 1 minus each, the third fetches
# those. To **fuse** them (lesson 8) is to generate one kernel, in whose loop an element goes through all three before it is stored. The source of such a
# kernel is a snippet. So to fuse is to substitute one snippet for a name in another:

# %%
SNIPPETS = {"add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "div": "({} / {})"}


def fuse(program, wanted):
    waiting, fused = {}, []
    for row in program:
        if row.op not in SNIPPETS:
            fused.append(row)
            continue
        text = SNIPPETS[row.op].format(*[waiting.pop(x, x) for x in row.reads])
        readers = [other.op for other in program for x in other.reads if x == row.out]
        if len(readers) == 1 and readers[0] in SNIPPETS and row.out not in wanted:
            waiting[row.out] = text  # its only reader takes the source instead of the array
        else:
            fused.append(Row(text, names_in(text), {}, row.out, False))
    return fused


# %%
import re


def names_in(text):
    return sorted(set(re.findall(r"t\d+", text)))


short = fuse(alive, {loss})
print(len(short), "calls; those of snippets:")
for row in short:
    if " " in row.op:
        print(f"{row.out:>3}  = {row.op}")


# %% [markdown]
# You should see the rule of $\tanh$ as one line, and the gradient of the loss (t20) as another: $\frac{g}{640}$ times `off`, twice. Each contains two
# more calls. The others stay alone: their results are read by several calls, or by one that is no snippet, such as `mean`.
#
# (One thing we owe to luck: while a snippet waits, no call may overwrite what it is going to read. Our in-place calls all come last.)
#
# Now the snippets have to become kernels. We declare each as an operation with a snippet, as in lesson 8:

# %%
def declare(row):
    if " " not in row.op:
        return row
    letters = dict(zip(row.reads, "abcdef", strict=False))
    snippet = re.sub(r"t\d+", lambda name: letters[name[0]], row.op)
    op = f"fused_{row.out}"
    mg.Op(op, "", vjp=(None,) * len(row.reads), domain=(mg.Domain(-3.0, 3.0),) * len(row.reads))
    mg.kernel(op, "numpy")(eval(f"lambda {', '.join(letters.values())}: {snippet}"))
    if mg.device("cpu") == "cpu":  # where Taichi is installed
        mg.kernel(op, "cpu", snippet)
    return row._replace(op=op)


# %%
compiled = [declare(row) for row in short]
for _ in range(50):
    learn(x, y)
    replay(compiled, arrays)
off = max((p - q).abs().max().item() for p, q in zip(first.parameters(), second.parameters(), strict=True))
print("off by less than a millionth:", off < 1e-6)

# %% [markdown]
# How much **memory traffic** is saved? A call reads its arrays and writes one. A **view** ([lesson 6](06_tensors.ipynb)), such as that of
# `permute`, reads and writes nothing, and an element that is broadcast by a stride of 0 is read once.

# %%
import math

VIEWS = ("reshape", "expand", "permute")


def size(array):
    sides = zip(array.shape, array.strides, strict=True)
    return array.itemsize * math.prod(n for n, stride in sides if stride)


def traffic(row, arrays):
    if row.op in VIEWS:
        return 0, 0
    return sum(size(arrays[x]) for x in set(row.reads) if isinstance(x, str)), size(arrays[row.out])


for what, rows in (("recorded", program), ("needed", alive), ("fused", compiled)):
    print(f"{what:9} {len(rows)} calls, {sum(sum(traffic(row, arrays)) for row in rows):,} bytes")

# %%
fig, axes = plt.subplots(1, 2, figsize=(7.2, 5.6), sharex=True, sharey=True)
for ax, rows, title in zip(axes, (program, short), ("as recorded", "needed, and fused"), strict=True):
    for k, row in enumerate(rows):
        reads, writes = (n / 1024 for n in traffic(row, arrays))
        hot = row.out in ("t25", "t26", "t27")
        ax.barh(k, reads, color="#0072B2", height=0.75)
        ax.barh(k, writes, left=reads, color="#E69F00", height=0.75)
        name = "fused" if row.op.count("(") > 1 else row.op.strip("()")
        ax.text(reads + writes + 0.4, k, name, va="center", fontsize=8, fontweight="bold" if hot else None)
    ax.set(title=title, xlabel="kilobytes", xlim=(0, 39), yticks=[])
axes[0].invert_yaxis()
axes[0].text(20, 16.2, "read", color="#0072B2", fontweight="bold")
axes[0].text(20, 17.6, "written", color="#A66F00", fontweight="bold")
plt.show()

# %% [markdown]
# You should see the calls from top to bottom, each as long as its memory traffic. Ten of the twenty-eight cause three quarters of the traffic; seven read and write next to
# nothing, and cost a call like any other. The three in bold, the rule of $\tanh$, have become one, with less than half the traffic: 24
# kilobytes of 56.
#
# What are bytes worth? Arrays as small as these stay in the **cache**, a small memory close to the processor, and are read quickly. So take the same rule for four million
# elements, which do not fit. Our tools work for any function:

# %% tags=["nbval-ignore-output"]
g, h = mg.rand(4_000_000), mg.rand(4_000_000)
three, large = record(lambda g, h: g * (1 - h * h), g, h)
one = [declare(row) for row in fuse(three, {three[-1].out})]
ratio = quickest(lambda: replay(three, large)) / quickest(lambda: replay(one, large))
print(f"{len(three)} calls take {ratio:.1f} times as long as {len(one)}")

# %% [markdown]
# You should see between 2 and 5, unless the machine is busy elsewhere: the fused one transfers 12 bytes for each element, the three together 28, and they allocate two more
# arrays. So there are two prices. That of a call is the same for all; that of bytes grows with the number of elements. (On `numpy` you see about 1. There a formula with
# three operators is still three loops.)
#
# ## Draw it
#
# minigrad's tracer is `mg.jit`. (The name means *just in time*: compiled while the program runs, when shapes and calls are known.) It
# returns a function that is called like the original one. Here is a smaller step, so that all of it fits into a picture: two
# neurons, as in [lesson 1](01_one_neuron.ipynb), look at two samples, and each answer has a price. The loss is what they cost together.

# %%
from minigrad_viz import draw

few = mg.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
price = mg.tensor([[2.0, -1.0], [1.0, -0.5]])
w = mg.tensor([[2.0, -1.0], [-1.0, 0.5], [1.0, -0.5]], requires_grad=True)
descent = mg.optim.SGD([w], lr=0.5)


@mg.jit
def small(few, price):
    descent.zero_grad()
    loss = ((few @ w).sigmoid() * price).sum()
    loss.backward()
    descent.step()
    return loss


print("loss", small(few, price).item())
draw(small)

# %% [markdown]
# You should see the whole step, from left to right and then in the next row: forward, backward, update. A small dashed name stands for a
# box of a row above. Blue are the arrays that exist before it ($v_7$ contains the ones with which the backward
# pass begins). The last box, $w'$, is $w$ after its in-place update. Dark boxes are returned, or stay in memory: the loss $v_6$, and the gradient. No
# line leads back, as in all our pictures before: the backward pass consists of calls like any others.
#
# ## Step it
#
# `step(small)` would go through the trace call by call. But few of its arrays stay in memory after the step, such as $w$ and its
# gradient. So here is the same step while it is still a graph. (`numpy` computes it, so that the picture is the same on every computer.)

# %%
from minigrad_viz import step

inputs = mg.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]], device="numpy")
cost = mg.tensor([[2.0, -1.0], [1.0, -0.5]], device="numpy")
weights = mg.tensor([[2.0, -1.0], [-1.0, 0.5], [1.0, -0.5]], device="numpy", requires_grad=True)
with mg.record():
    total = ((inputs @ weights).sigmoid() * cost).sum()
    total.backward()
step(total, position=8)

# %% [markdown]
# You should see four operations, where the trace has ten calls. While this notebook runs, the player has stopped where the gradient passes the sigmoid, and shows its rule.
# One step of the player is one rule. One line of the program is one kernel, and this rule has three, $1 - y$, $y \cdot \dots$ and $g \cdot \dots$. Find them here:

# %%
lines = small.program.partition("\n\n")[0].replace("float32", "").splitlines()
for k, line in enumerate(lines):
    part = {0: "forward", 4: "back", len(lines) - 1: "update"}.get(k, "")
    print(f"{part:8} {line.partition(', weight')[0]}")

# %% [markdown]
# You should see the program in minigrad's own words: `a` is an argument, `k` is kept (it existed before the step), `t` is temporary, and shapes
# are in brackets. And `<lr of SGD>` is no constant: the rate is looked up at each replay.
#
# ## Compare with the library
#
# Now the step of the two-layer network. What does the library make of our twenty-eight calls?

# %%
third, by_third = network()
jitted = mg.jit(step_of(third, by_third))
jitted(x, y)
theirs = jitted.program.partition("\n\n")[0].splitlines()
views = sum(row.op in VIEWS for row in program)
twice = len(alive) - len({(row.op, *row.reads) for row in alive})
print(len(theirs), "calls are left in minigrad's program")
left = f"{len(program)} recorded - {len(program) - len(alive)} dead - {views} views - {twice} computed twice"
print(left, "=", len(alive) - views - twice)


# %% [markdown]
# You should see that both come to 21. It eliminates dead code, as we do. It needs no call for a view, since each operand is passed as offset, shape
# and strides. And it computes equal expressions once (*common subexpression elimination*): t18 and t19 above are one product.
#
# Is it the same training? Two hundred steps, other 64 digits each time, and a rate that falls, as in [lesson 9](09_optimizers.ipynb):

# %% tags=["nbval-ignore-output"]
def train(function, optimizer, steps=200):
    schedule = mg.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)
    for k in range(steps):
        start = 64 * (k % 23)
        function(images[start : start + 64], answers[start : start + 64])
        schedule.step()


fourth, by_fourth = network()
plain = step_of(fourth, by_fourth)
plain(x, y)
train(plain, by_fourth)
train(jitted, by_third)

# %%
print("the same parameters, bit for bit:", same(third, fourth))
print("captured:", jitted.captures)

# %% [markdown]
# You should see `True`, and that it was captured once: other digits are other arguments, and the new rate is looked up. (There was
# a pause.) How is it run by now?

# %% tags=["nbval-ignore-output"]
print(jitted.program.partition("\n\n")[2], "\n")
text = jitted.source.splitlines()
at = max([k for k, line in enumerate(text) if "tanh" in line], default=0)
print(dedent("\n".join(text[at - 1 : at + 5])))

# %% [markdown]
# You should see a sentence like “24 launches, 15 of which are fused into 6, merged into” one kernel. There are three stages:
#
# 1. The first call runs your Python, and traces it, as our tap did.
# 2. The second runs the list, and records the arguments with which Taichi starts each loop. One such start is a **launch**; some calls take two. From now on it replays only the launches.
# 3. At the sixteenth replay, launches are fused, and the rest is merged into *one* kernel, a **megakernel**, whose source is one loop
#    below the other. To compile it takes seconds, once. That was the pause.
#
# Below the sentence is a piece of that source: the $\tanh$ of the forward pass and the first two thirds of its rule, `v1 * v1` and 1 minus that,
# in one loop. The square is never stored. (The source differs between processors. On `numpy` the sentence says *call by call*, and there is no source.)

# %% tags=["nbval-ignore-output"]
for _ in range(20):
    small(few, price)
draw(small)

# %% [markdown]
# You should see the small step again, and in it a stack, “sigmoid + mul and gradient”: a fused loop of four calls, across the boundary between
# forward and backward. It is named after the operations in it. (On `numpy` there is no stack.) And what is it good for?

# %% tags=["nbval-ignore-output"]
launches = mg.jit(step_of(*network()))
for _ in range(4):
    launches(x, y)
times = {
    "Python and kernels": eager[64],
    "our list": quickest(lambda: replay(program, arrays)),
    "needed and fused": quickest(lambda: replay(compiled, arrays)),
    "mg.jit, launches": quickest(lambda: launches(x, y), 8),
    "mg.jit, one kernel": quickest(lambda: jitted(x, y)),
}
print(f"with 64 digits, mg.jit takes {times['mg.jit, one kernel'] / eager[64]:.0%} of the time")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.0))
colors = ("#D55E00", "#0072B2", "#0072B2", "#009E73", "#009E73")
for k, (time, color) in enumerate(zip(times.values(), colors, strict=True)):
    ax.barh(k, time, color=color, height=0.65)
    ax.text(time + eager[64] / 80, k, f"{time:,.0f}", va="center")
ax.set(yticks=range(5), yticklabels=times, xlabel="millionths of a second for a step with 64 digits")
ax.set(ylim=(4.5, -0.5), xlim=(0, 1.15 * max(times.values())))
plt.show()


# %% [markdown]
# You should see five bars, each shorter than the one above, and about a tenth of the time in the end. From the first bar to the second,
# tensors, graph and rules are gone; to the third, a few calls; to the fourth, what Python does around each kernel; to the last, all launches
# but one. What is left is arithmetic, memory and a single launch. So the answer for a small step is: nine tenths were Python and
# launches. (On `numpy` the library replays call by call, with more checks than we do, and gains nothing; our list does.)
#
# Compiling is not always worth it: 3 seconds, to save 0.15 thousandths in each step, pay off after 20,000 steps. And for a large step, look at
# the first picture again: with 16,384 digits the flat part is a small fraction. There time is arithmetic, which nobody can leave out,
# and memory traffic, of which fusing saves some.
#
# ## Break it: a branch
#
# [Lesson 5](05_the_tape.ipynb) ended with a trap: an `if` leaves no trace on a tape, and for other values the result is wrong without a
# word. Here is such an `if`. A gradient that is longer than 1 should be clipped to length 1:

# %%
@mg.jit
def clipped(g):
    length = (g * g).sum().sqrt()
    if length > 1:
        g = g / length
    return g


try:
    clipped(mg.tensor([3.0, 4.0]))
except mg.errors.CaptureError as error:
    print(error)


# %% [markdown]
# This time there is an error. The branch depends on data, that is, on the value of a tensor: **data-dependent control flow**. An `if` has to *read* that value, and so have
# `item()`, `float()` and the `print` of a tensor. The jit notices each such read, and raises an error that names the line. The message says what to write instead: an
# operation, which computes both and chooses.

# %%
@mg.jit
def clipped(g):
    length = (g * g).sum().sqrt()
    return mg.where(length > 1, g / length, g)


print(clipped(mg.tensor([3.0, 4.0])), clipped(mg.tensor([0.5, 0.0])))
print(clipped.captures)

# %% [markdown]
# ## Break it: side effects
#
# The list contains kernel calls only. So a step with a **side effect** in Python cannot be replayed:

# %%
losses = []


@mg.jit
def noted(x):
    print("Python was here")
    losses.append(x.sum())
    return x * 2


for k in range(4):
    noted(mg.full((2,), float(k)))
print(losses)

# %% [markdown]
# You should see four lines and four losses: the step changes a list that it reads, so Python runs at every call, and nothing is gained.
# `noted.captures` reports it: "in the step itself losses changed". A counter in an object is the same. What nobody can foresee, Python's own
# `random` or the clock, raises an error. (`mg.rand` is a kernel, and draws again.) So **let the step return what you want to keep**, and
# append it outside. A `print` alone runs when the step is traced, and then never again.
#
# The globals and **closure variables** that the step reads must not be frozen either. So the jit has a **guard** for each: before each replay it checks that all are
# unchanged. If a guard fails, the step is traced again, or **retraced**:

# %%
rate = 0.5


def scaled(x):
    return x * rate


direct = mg.jit(lambda x: x * rate)
through = mg.jit(lambda x: scaled(x))
for rate in (0.5, 0.25):
    print(f"rate {rate}: direct {direct(mg.ones(1)).item()}, through {through(mg.ones(1)).item()}")
print(direct.captures)

# %% [markdown]
# You should see that both were retraced, and why: `through` reads `rate` in a function that it calls, and that is guarded too.
# But tracing takes long. So **pass a number that changes as an argument**. A float such as 0.5 is read at each call,
# like a tensor, and like the rate of an optimizer. Each new integer is a retrace, though, since a shape may depend on it.
# (Modules that the step uses are guarded, too: their layers, and their training mode.)
#
# ## Break it: another shape
#
# 1,500 digits are eleven times 128, and 92 more:

# %%
evaluate = mg.jit(lambda x, y: ((first(x) - y) ** 2).mean())
for start in range(0, len(images), 128):
    evaluate(images[start : start + 128], answers[start : start + 128])
for reason in evaluate.captures:
    print(reason)

# %% [markdown]
# A trace is for certain shapes, so each shape has its own trace, and if it occurs often, its own kernel, which takes seconds to compile. Two
# are no harm. But sentences of 1 to 100 words would be a hundred. One **pads** them to a few lengths, or has the `DataLoader` leave out the
# last, smaller batch (`drop_last=True`). If a step is slower than you thought, print its `captures` first.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 15.1 · Two prices
#
# Suppose that a call costs 30 millionths of a second, and that memory transfers 10,000 bytes in a millionth of a second. To go a part $r$
# of the way from $x$ to $y$, `x - r * (x - y)` makes three calls. `x` and `y` are arrays of $n$ elements, four bytes each, and `r` is a Python
# number. How many bytes do the three calls read and write for $n$ = 1,000,000? How many would a fused one? And for which $n$ do the three calls
# themselves cost as much as their memory traffic?

# %%
prices = {"three calls": ..., "fused": ..., "n": ...}

# %%
lessons.check("15.1", prices)


# %% [markdown]
# ### Exercise 15.2 · Each once
#
# The library computes t18 and t19 once. Write `each_once(program)`: of rows with the same operation and operands only the first is
# kept, and rows that read another one read the first instead. A row is simple here, an operation, what it reads, and what it writes: `("mul", ("t0", "t1"),
# "t2")`. No call works in-place. (Two rows that look different may be the same once names have been replaced.)

# %%
def each_once(program):
    return ...


# %%
lessons.check("15.2", each_once)


# %% [markdown]
# ### Exercise 15.3 · Fuse two snippets
#
# Write `fused(first, second)`. Each of the two is a pair of a snippet and the name of its result, as `("t1 + t2", "t3")` and `("t3 * t4", "t5")`; the
# second reads the first, perhaps several times. Return one snippet that computes the second without the first. (Two things go wrong
# easily: what `t1 + t2` becomes between other operators, and that `t3` is also in `t31`.)

# %%
def fused(first, second):
    return ...


# %%
lessons.check("15.3", fused)

# %% [markdown]
# ### Exercise 15.4 · Retraced?
#
# A step was captured with 64 digits. Between two calls one thing changes. Say `True` if it is retraced, and `False` if not.
#
# | case | what changes |
# |---|---|
# | A | the 64 digits are different |
# | B | there are 28 digits |
# | C | a scheduler has halved the rate of the optimizer |
# | D | `model.eval()` was called, so the model is no longer in training mode |
# | E | the step reads `scale`, a global number, which has changed |
# | F | a function that the step calls reads `scale`, which has changed |

# %%
again = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ...}

# %%
lessons.check("15.4", again)


# %% [markdown]
# ### Exercise 15.5 · Repair a step
#
# This is a step of gradient descent on $\sum (w - x)^2$ whose rate is halved where the loss is below 1. Several of its
# lines cannot be captured, or would be frozen. (`sub_` changes `w` in-place.)
#
# ```python
# def descend(w, x, rate):
#     w.grad = None
#     loss = ((w - x) ** 2).sum()
#     loss.backward()
#     losses.append(loss.item())
#     if loss < 1:
#         rate = rate / 2
#     with mg.no_grad():
#         w.sub_(w.grad * rate.item())
# ```
#
# Write it so that `mg.jit(descend)` computes the same, captured once, for every `x` and `rate`, which are tensors. Return the loss.

# %%
def descend(w, x, rate):
    return ...


# %%
lessons.check("15.5", descend)

# %% [markdown]
# ## Where this comes from
#
# - J. Bergstra and others, “Theano: a CPU and GPU math compiler in Python”, *Proceedings of the 9th Python in Science Conference* (2010): formulas
#   written in Python, fused and compiled.
# - R. Frostig, M. J. Johnson and C. Leary, “Compiling machine learning programs via high-level tracing”, SysML (2018): JAX, whose `jit` traces by running the function.
# - T. Chen and others, “TVM: an automated end-to-end optimizing compiler for deep learning”, OSDI (2018): fused loops, chosen by
#   trying many on the machine where they are to run.
# - J. Ansel and others, “PyTorch 2: faster machine learning through dynamic Python bytecode transformation and graph compilation”, ASPLOS (2024): a jit that
#   reads Python's bytecode, and at a data-dependent `if` lets Python decide (a *graph break*).
#
# One question is left: what the gradient's own gradient is good for: **[16 · Beyond first order](16_beyond_first_order.ipynb)**
