# %% [markdown]
# # 17 · Gradients add up, again
#
# *Before: [16 · Beyond first order](16_beyond_first_order.ipynb) · Next: [18 · Inside a PyTorch model](18_inside_a_pytorch_model.ipynb)*
#
# ## The question
#
# A network is trained on a batch of samples at a time, and for a large one that takes long, however quick the machine. So take two
# machines, or a thousand. Each has a copy of the network, a **replica**, and gets its part of every batch, a **shard**. But a replica
# sees only its own samples, and so they would learn different things.
#
# In [lesson 3](03_gradients_add_up.ipynb) a value was used several times, and the contributions of all paths were added up. A weight
# of a network is used by *each sample* of a batch.
#
# **What must replicas exchange, so that they learn exactly what a single one would? And what does this communication cost?**
#
# (All replicas of this lesson live in this notebook, and compute one after the other.)
# (So it also runs in a web page, which has neither threads nor processes. What a page cannot do is train in several processes, as
# `mg.distributed` does.)
#
# ## Guess: what do two halves tell about all?
#
# Four samples $(x, y)$ (`examples` in the code), a model with one weight, $w \cdot x$, and the mean of the squares by which it is off. Nudge $w$, which is 1
# (a nudge of ½ does no harm to a square, as in lesson 3):

# %%
examples = [(1.0, 2.0), (2.0, 3.0), (3.0, 7.0), (4.0, 6.0)]


def loss(w, shard):
    return sum((w * x - y) ** 2 for x, y in shard) / len(shard)


def nudge(f, w, h=0.5):
    return (f(w + h) - f(w - h)) / (2 * h)


print("all four:", nudge(lambda w: loss(w, examples), 1.0))

# %% [markdown]
# Now cut the four in two, in the middle, or after the third. Each part has its own loss, the mean over *its* samples, and so its own
# derivative. How do two derivatives combine to −11.5? Guess before you look.

# %%
for cut in (2, 3):
    first = nudge(lambda w, shard=examples[:cut]: loss(w, shard), 1.0)
    second = nudge(lambda w, shard=examples[cut:]: loss(w, shard), 1.0)
    print(f"{cut} and {4 - cut}: {first:g} and {second:g}, their mean is {(first + second) / 2:g}")

# %% [markdown]
# The mean of the two does it for halves, but not for 3 and 1. There the last sample counts as much as the first three together. It should
# count once, and they three times: $\frac14 (3 \cdot (-10) + 1 \cdot (-16)) = -11.5$.
#
# It has to be so. The loss of a batch of $N$ samples is a sum over samples, and a sum can be added up in parts. With $n_k$ samples in
# shard $k$, whose mean loss is $L_k$,
#
# $$L = \frac1N \sum_i \ell_i = \sum_k \frac{n_k}{N} L_k \qquad\text{and so}\qquad
# \frac{\partial L}{\partial w} = \sum_k \frac{n_k}{N} \frac{\partial L_k}{\partial w}$$
#
# This is the **weighted mean**. Nothing in it is an approximation, and nothing depends on what the network is like. It requires one thing
# only: that the loss of a sample does not depend on the other samples. (Keep that in mind.)
#
# ## Build it: shards
#
# With Values, cut in several ways:

# %%
import minigrad as mg


def gradient(w, shard):
    w = mg.Value(w)
    return mg.grad(loss(w, shard), w)[0]


def averaged(gradients, sizes):
    return sum(n * g for n, g in zip(sizes, gradients, strict=True)) / sum(sizes)


for sizes in ((2, 2), (3, 1), (1, 3), (1, 2, 1), (1, 1, 1, 1)):
    rest = iter(examples)
    shards = [[next(rest) for _ in range(n)] for n in sizes]
    gradients = [gradient(1.0, shard) for shard in shards]
    print(f"{sizes!s:>12}: {averaged(gradients, sizes):g} of {'  '.join(f'{g:.4g}' for g in gradients)}")

# %% [markdown]
# You should see −11.5 each time. And now a network, for the digits of [lesson 9](09_optimizers.ipynb), with a thousand weights. A replica can
# do two things: return the gradient of its shard, as one vector, and make a step with a gradient that it gets. (`seed` and
# `norm` are for later. `split` cuts a tensor into parts of these sizes.)

# %%
mg.set_default_dtype(mg.float64)  # 16 digits
nn = mg.nn
images, labels = mg.data.digits().train.tensors
images = images.flatten(1).double()
batches = [(images[k : k + 100], labels[k : k + 100]) for k in range(0, 1500, 100)]


def cut(batch, sizes):
    return list(zip(*(part.split(list(sizes)) for part in batch), strict=True))


# %%
class Replica:
    def __init__(self, seed=0, norm=False):
        mg.manual_seed(seed)
        middle = [nn.BatchNorm1d(16)] if norm else []
        self.model = nn.Sequential(nn.Linear(64, 16), *middle, nn.Tanh(), nn.Linear(16, 10))
        self.weights = list(self.model.parameters())
        self.optimizer = mg.optim.SGD(self.weights, lr=0.1, momentum=0.9)

    def gradient(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        return mg.cat([g.flatten() for g in mg.grad(loss, self.weights)])

    def update(self, gradient):
        for w, part in zip(self.weights, gradient.split([w.numel() for w in self.weights]), strict=True):
            w.grad = part.view(w.shape)
        self.optimizer.step()


# %%
replica = Replica()
whole = replica.gradient(*batches[0])
for sizes in ((50, 50), (70, 30), (40, 30, 20, 10)):
    gradients = [replica.gradient(*shard) for shard in cut(batches[0], sizes)]
    off = (averaged(gradients, sizes) - whole).abs().max().item()
    print(f"{sizes}: {len(whole)} elements, none off by more than rounding: {off < 1e-15}")

# %% [markdown]
# ## Draw it
#
# The four samples again, cut into 3 and 1. Each replica is a block of the picture, and they use the same $w$:

# %%
from minigrad_viz import draw, step

# %load_ext minigrad_viz


def weight():
    return mg.tensor(1.0, device="numpy", requires_grad=True)


def replica_loss(number, w, x, y):
    with mg.scope(f"replica {number}"):
        x, y = mg.tensor(x, device="numpy"), mg.tensor(y, device="numpy")
        x.label, y.label = f"x{number}", f"y{number}"
        return (w * x - y).square().mean()


# %%
w = weight()
with mg.record():
    left = replica_loss(0, w, [1.0, 2.0, 3.0], [2.0, 3.0, 7.0])
    right = replica_loss(1, w, [4.0], [6.0])
    total = 0.75 * left + 0.25 * right
    total.backward()
draw(total)

# %% [markdown]
# You should see one $w$ on the left, and two lines from it, one into each block. (The samples are below it.) Each block computes a mean, of 3 samples or of 1,
# and at the end they are combined, ¾ of one and ¼ of the other. This is one process that computes in two blocks. The gradient of $w$ is −11.5 (Σ2, two
# contributions).
#
# ## Step it
#
# Where do these two come together?

# %%
for event in mg.events(total):
    if event.target is w:
        print(f"w gets {event.contribution.item():g}, in all {event.total.item():g}")
step(total, position=19)

# %% [markdown]
# You should see the same picture. While this notebook runs, the player has stopped where the first of the two has arrived at $w$, and “Σ 1 of 2”
# means that it waits for the other one. So all communication between the blocks is in one place: a plus sign, at $w$. Now give each
# replica a weight of its own, as on two machines:

# %%
first, second = weight(), weight()
with mg.record():
    left = replica_loss(0, first, [1.0, 2.0, 3.0], [2.0, 3.0, 7.0])
    right = replica_loss(1, second, [4.0], [6.0])
    (0.75 * left).backward()
    (0.25 * right).backward()
draw(left, right)


# %% [markdown]
# You should see two graphs that do not touch. −7.5 has arrived at one weight and −4 at the other, and the plus sign is gone. It connected
# blocks of one process, and it now has to connect two machines. **Each replica has a gradient for each weight, and each needs the sum of
# all.** This is called an **all-reduce**. No other communication is needed.
#
# ## Build it: replicas that stay equal
#
# With the sum, replicas that were equal make the same step, and are equal again. `together` is the all-reduce, for now in the simplest
# way: it has access to all of them.

# %%
def together(gradients, sizes):
    return [averaged(gradients, sizes)] * len(sizes)


def learn(replicas, sizes, steps=range(3), exchange=together):
    for k in steps:
        shards = cut(batches[k % len(batches)], sizes)
        gradients = [replica.gradient(*shard) for replica, shard in zip(replicas, shards, strict=True)]
        for replica, g in zip(replicas, exchange(gradients, sizes), strict=True):
            replica.update(g)
    return replicas


def apart(a, b):
    return max((p - q).abs().max().item() for p, q in zip(a.weights, b.weights, strict=True))


# %%
(one,) = learn([Replica()], [100])
for sizes in ((50, 50), (70, 30), (40, 30, 20, 10)):
    others = learn([Replica() for _ in sizes], sizes)
    same = all(apart(others[0], other) == 0 for other in others)
    print(f"{sizes}: equal to each other: {same}, to one process but for rounding: {apart(one, others[0]) < 1e-14}")

# %% [markdown]
# They are equal to *each other* bit for bit, for they make the same step with the same gradients. From *one* process they differ
# in the last digits, since sums are added up in another order. (The momentum of [lesson 9](09_optimizers.ipynb) is not exchanged: each has
# its own, and these are equal too, as they come from equal gradients.)
#
# This way to train is called **data parallelism**.
#
# ## Compare with the library
#
# `mg.training.fit` trains in one process. Three steps of it, and three of the four replicas:

# %%
alone = Replica()
mg.training.fit(alone.model, batches[:3], alone.optimizer, nn.functional.cross_entropy, epochs=1, progress=False)
print("fit and four replicas, the same but for rounding:", apart(alone, others[0]) < 1e-14)

# %% [markdown]
# ## Break it
#
# Four ways to get it wrong. For each: how far are the two replicas from each other after 30 steps, and how far is the first from what one process
# has learned? In which of the four would you notice something? Guess.
#
# 1. The sum is **forgotten**: each makes a step with its own gradient.
# 2. The shards have 70 and 30 samples, and are **weighted equally**.
# 3. There is a **batch norm** ([lesson 12](12_normalisation.ipynb)) in the network.
# 4. The replicas **begin differently**: one was created with another seed.

# %%
ways = {
    "nothing wrong": ({}, {}, (50, 50), together),
    "forgotten": ({}, {}, (50, 50), lambda gradients, sizes: gradients),
    "weighted alike": ({}, {}, (70, 30), lambda gradients, sizes: together(gradients, (1, 1))),
    "batch norm": ({"norm": True}, {"norm": True}, (50, 50), together),
    "another seed": ({}, {"seed": 1}, (50, 50), together),
}
paths = {}
for way, (first, second, sizes, exchange) in ways.items():
    one, pair = [Replica(**first)], [Replica(**first), Replica(**second)]
    paths[way] = []
    for k in range(30):
        learn(one, [100], [k])
        learn(pair, sizes, [k], exchange)
        paths[way].append((apart(*pair), apart(one[0], pair[0])))

# %%
print("after 30 steps   from each other   from one process")
for way, path in paths.items():
    between, away = (f"{off:.2g}" if off > 1e-9 else "0" for off in path[-1])
    print(f"{way:<17}{between:>15}{away:>19}")

# %%
import matplotlib.pyplot as plt

plt.style.use("lessons.mplstyle")
fig, ax = plt.subplots(figsize=(7.2, 4.0))
colors = ("#555555", "#D55E00", "#0072B2", "#009E73", "#A3477F")
for (way, path), color, height in zip(paths.items(), colors, (3e-16, 0.1, 5e-3, 2e-4, 2), strict=True):
    ax.semilogy(range(1, 31), [max(away, 1e-17) for _, away in path], color=color)
    ax.text(30.5, height, way, color=color, va="center")
ax.set(xlabel="step", ylabel="from one process", xlim=(0, 38), ylim=(1e-17, 10))
plt.show()

# %% [markdown]
# You should see one line at the very bottom, and four that are more than ten billion times as far up, from the first step on.
#
# A forgotten sum or another seed shows as soon as somebody compares two replicas. (Those with another seed stay exactly as far apart as
# they began, for they make the same steps.) But look at the zeros: with wrong weights, and with batch norm, the replicas agree with
# *each other* perfectly. They learn, too, and the loss falls. Only the result is wrong, and no comparison between them will show it.
#
# - Wrong weights are the likeliest mistake of all. The last batch of an epoch is often smaller; or samples are sentences and the loss is a mean
#   over *words*: then the weights are word counts.
# - Batch norm breaks the one requirement: it takes its mean over the shard, so each sample depends on the others. That can be no
#   weighted mean of gradients. (Layer norm uses one sample, and does no harm.) To take the means over the full batch, replicas would
#   have to exchange *them*, in the middle of the pass (*synchronised* batch norm).
#
# ## A sum without a centre
#
# Now for the sum itself. In the simplest way, all send their gradients to worker 0 (a **worker** is a process with a replica), which adds them up,
# and sends the sum back to all. That is a **star**. With 100 workers, 99 arrays arrive at a single one, along its one **link**, one after the other.
#
# Here is a way in which all links are busy all the time. The workers sit in a **ring**, and each sends to the one on its right only. Each
# cuts its array into as many pieces as there are workers. In each step it sends one piece and receives another one, from its left:
#
# - At first it *adds* what it receives to its own, and that is the piece that it sends next. After $n-1$ steps each
#   worker has one piece with the sum of all (a *reduce-scatter*).
# - Then it *replaces* its own piece by the received one, and sends that next. After $n-1$ more steps each has all of them (an *all-gather*).

# %%
import numpy as np


def ring(arrays, watch=lambda *what: None):
    n = len(arrays)
    held = [np.array_split(array, n) for array in arrays]
    for turn in range(2 * (n - 1)):
        mail = [held[rank][(rank - turn) % n] for rank in range(n)]  # what each sends to its right
        for rank in range(n):
            piece = (rank - 1 - turn) % n  # the one that it receives from its left
            mine, received = held[rank][piece], mail[rank - 1]
            held[rank][piece] = mine + received if turn < n - 1 else received
        watch(turn, mail, held)
    return [np.concatenate(pieces) for pieces in held]


# %% [markdown]
# Let us watch four workers. So that one can see which workers are in a sum, worker 0 has only ones, worker 1 tens, worker 2 hundreds, and
# worker 3 thousands. Then 1001 is what workers 0 and 3 have together:

# %%
tables = [[[np.full(1, 10**k)] * 4 for k in range(4)]]


def look(turn, mail, held):
    tables.append([list(pieces) for pieces in held])


ring([np.full(4, 10**k) for k in range(4)], look)
print("step  " + "".join(f"worker {k:<16}" for k in range(4)))
for number, table in enumerate(tables):
    print(f"{number:>4}  " + "   ".join(" ".join(f"{piece[0]:04}" for piece in pieces) for pieces in table))

# %%
colors = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


def draw_table(ax, step, table):
    for rank, pieces in enumerate(table):
        for piece, number in enumerate(pieces):
            for k in range(4):
                color = colors[k] if f"{number[0]:04}"[3 - k] == "1" else "#eeeeee"
                ax.add_patch(plt.Rectangle((piece + 0.21 * k, -rank), 0.21, 0.78, color=color, linewidth=0))
        if step:
            arrived = (rank - step) % 4
            ax.add_patch(plt.Rectangle((arrived - 0.05, -rank - 0.05), 0.94, 0.88, fill=False, linewidth=1.6))
        ax.text(-0.2, 0.39 - rank, rank, ha="right", va="center", fontsize=10)
    ax.set_title(f"step {step}" if step else "before", fontsize=12)
    ax.set(xlim=(-0.6, 4.0), ylim=(-3.2, 0.95), aspect="equal")
    ax.axis("off")


# %%
fig, axes = plt.subplots(2, 4, figsize=(7.4, 4.0))
for k, (ax, table) in enumerate(zip(axes.flat, tables, strict=False)):
    draw_table(ax, k, table)
ax = axes[1, 3]
places = [(0, 1), (1, 0), (0, -1), (-1, 0)]
for k, (x, y) in enumerate(places):
    ax.plot(x, y, "o", color=colors[k], markersize=17)
    ax.text(x, y - 0.02, k, ha="center", va="center", color="white", fontweight="bold")
    bent = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.3", "shrinkA": 11, "shrinkB": 11}
    ax.annotate("", places[(k + 1) % 4], (x, y), arrowprops={**bent, "color": "#555555"})
ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
ax.axis("off")
plt.show()

# %% [markdown]
# You should see a row for each worker and a column for each piece, at first in the colour of the worker alone. A frame is around what has just
# arrived. In steps 1 to 3 the framed piece has one colour more each time, and after step 3 every column has one piece with all four.
# From step 4 on only such pieces are passed on, until all have all of them. (The last picture shows who sends to whom.)
#
# Each piece is added up only once, on one way around, and then copied. So all workers get the same bits. But for each piece that way begins
# at another worker, and so the order of the sum differs:

# %%
rng = np.random.default_rng(0)
arrays = [rng.random(1000) for _ in range(8)]
sums, by_rank = ring(arrays), sum(arrays)
print("all the same, bit for bit:", all(np.array_equal(sums[0], other) for other in sums))
print("as summed by rank, bit for bit:", np.array_equal(sums[0], by_rank))
print("as summed by rank, but for rounding:", np.allclose(sums[0], by_rank, rtol=1e-14))


# %% [markdown]
# And do replicas learn with it?

# %%
def by_ring(gradients, sizes):
    weighted = [(n / sum(sizes) * g).numpy() for n, g in zip(sizes, gradients, strict=True)]
    return [mg.tensor(total) for total in ring(weighted)]


(one,) = learn([Replica()], [100])
others = learn([Replica() for _ in range(4)], (40, 30, 20, 10), exchange=by_ring)
print("equal to each other:", all(apart(others[0], other) == 0 for other in others))
print("to one process but for rounding:", apart(one, others[0]) < 1e-14)


# %% [markdown]
# ### How much is sent
#
# Count the bytes that the busiest worker sends, in the ring and in the star, for an array of 4,800 elements of 8 bytes:

# %%
def most_sent(n, numbers=4800):
    sent = np.zeros(n, int)

    def count(turn, mail, held):
        sent[:] += [piece.nbytes for piece in mail]

    ring([np.ones(numbers)] * n, count)
    return sent.max()


print("workers  steps   in the ring, each   in the star, worker 0")
for n in (2, 4, 8, 16, 96):
    print(f"{n:>7}{2 * (n - 1):>7}{most_sent(n):>20,}{(n - 1) * 38400:>24,}")

# %% [markdown]
# The traffic of the star grows with the workers, that of the ring hardly at all. In each of $2(n-1)$ steps a worker sends a piece, an $n$-th
# of the $B$ bytes of the array:
#
# $$2(n-1) \cdot \frac Bn = 2 \, \frac{n-1}{n} B$$
#
# That is less than $2B$, for ten workers or a thousand. It has been proved that no all-reduce needs less at its busiest
# worker. But the number of *steps* grows.
#
# ## What it costs
#
# A message takes some time to start, its **latency**, however short it is, and then some time for each byte. With the latency $\alpha$ (“alpha”) and the
# **bandwidth** $\beta$ in bytes a second, a message of $s$ bytes takes $\alpha + \frac s\beta$. This model is Hockney's (1994). And a shard takes some time for
# each row, and some that does not depend on the rows: calls ([lesson 15](15_one_step_one_kernel.ipynb)), and a gradient has to be written for every weight for
# any number of samples. So a step of $n$ workers with a batch of $N$ rows takes
#
# $$T(n) = \underbrace{c_0 + c_1 \frac Nn}_{\text{compute}} + \underbrace{2(n-1) \Bigl(\alpha + \frac{1}{\beta} \cdot \frac Bn\Bigr)}_{\text{ring}}$$
#
# Four parameters are unknown, and both parts can be measured on two cores. Here they were those of an AMD EPYC, on 24 November
# 2026: two processes of one thread, connected by pipes, and a network of 784, 512, 512 and 10, whose gradient has 2.7 MB in float32
# (`benchmarks/bench_ring.py`). All times are medians, the best of several rounds, in thousandths of a second:

# %%
MESSAGES = {1: 0.0414, 2: 0.0422, 4: 0.0443, 8: 0.0462, 16: 0.0489, 32: 0.0417}  # KB: time
MESSAGES |= {64: 0.0967, 128: 0.137, 256: 0.203, 512: 0.299, 1024: 0.493, 2048: 1.06}
SHARDS = {1024: 39.3, 512: 19.9, 256: 10.6, 128: 5.62, 64: 3.06, 32: 1.89}  # rows: time
SHARDS |= {16: 1.24, 8: 0.989, 4: 0.834, 2: 0.537, 1: 1.26}
STEP_OF_TWO = 23.1  # the gradient of 512 rows each, and the sum by a ring of two
GRADIENT = 2616  # KB


# %% [markdown]
# Both are straight lines, if the model holds. We fit the line with the least mean of squared relative
# errors. That loss is quadratic in the two parameters, so one of Newton's steps is enough ([lesson 16](16_beyond_first_order.ipynb)).

# %%
def line(measured):
    xs, ys = mg.tensor(list(map(float, measured))), mg.tensor(list(measured.values()))

    def miss(c):
        return (((c[0] + c[1] * xs) / ys - 1) ** 2).mean()

    c = mg.zeros(2, requires_grad=True)
    slope, bend = (d(miss, c) for d in (mg.autograd.jacobian, mg.autograd.hessian))
    return (-mg.linalg.solve(bend, slope)).tolist()


alpha, each_kb = line(MESSAGES)
fixed, each_row = line(SHARDS)
print(f"a message: {alpha:.3f} to start, then {1.024 / each_kb:.0f} MB a second")
print(f"a shard: {fixed:.1f}, and {each_row * 1000:.0f} for each 1,000 rows")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
for ax, measured, label in ((left, MESSAGES, "kilobytes in a message"), (right, SHARDS, "rows in a shard")):
    begin, slope = line(measured)
    xs = [2 ** (k / 4) for k in range(int(4 * np.log2(max(measured))) + 1)]
    ax.loglog(xs, [begin + slope * x for x in xs], color="#E69F00")
    ax.loglog(list(measured), list(measured.values()), "o", color="#0072B2")
    ax.set(xlabel=label, ylabel="thousandths of a second")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,g}")
plt.show()


# %% [markdown]
# You should see what was measured as points, and the two lines, which are bent because both axes count factors. Each is flat on the left, where the latency
# dominates, and rises on the right, where the bytes do, or the rows. Not all points are on them: the pipe buffers 64 KB, and longer messages wait; and a single
# row is multiplied in another way than several. A model with two parameters for each line leaves that out.
#
# Together they predict a step of two workers, which was measured too, and was not used for any line:

# %%
def milliseconds(workers, rows=1024):
    compute = fixed + each_row * rows / workers
    return compute + 2 * (workers - 1) * (alpha + each_kb * GRADIENT / workers)


print(f"predicted {milliseconds(2):.1f}, measured {STEP_OF_TWO:.1f}; one worker takes {milliseconds(1):.1f}")

# %% [markdown]
# It took 6 % longer. Two cores share one memory, and the sum waits for whichever is later: neither is in the model.
#
# ## A thousand workers
#
# We have no thousand machines, but we have a formula. How much quicker will a step be with 10 workers, with 100, with 1,000? Guess.

# %%
counts = sorted({round(10 ** (k / 50)) for k in range(151)})
best = min(range(1, 1001), key=milliseconds)
print("workers   a step   times as quick as one")
for n in sorted((1, 10, 100, 1000, best)):
    print(f"{n:>7}{milliseconds(n):>9.1f}{milliseconds(1) / milliseconds(n):>13.1f}")

# %%
parts = {
    "rows": ([each_row * 1024 / n for n in counts], "#0072B2"),
    "what stays": ([fixed] * len(counts), "#555555"),
    "bytes": ([2 * (n - 1) / n * each_kb * GRADIENT for n in counts], "#009E73"),
    "starts of messages": ([2 * (n - 1) * alpha for n in counts], "#D55E00"),
}

# %%
fig, ax = plt.subplots(figsize=(7.2, 4.4))
for name, (times, color) in parts.items():
    ax.loglog(counts[1:], times[1:], color=color, linewidth=1.4, label=name)
ax.loglog(counts, [milliseconds(n) for n in counts], color="#111111", linewidth=3, label="a step")
ax.plot([1, 2], [SHARDS[1024], STEP_OF_TWO], "o", color="#111111", markersize=8)
ax.plot(best, milliseconds(best), "v", color="#111111", markersize=10)
ax.set(xlabel="workers", ylabel="thousandths of a second", ylim=(0.1, 600))
ax.xaxis.set_major_formatter("{x:,g}")
ax.yaxis.set_major_formatter("{x:,g}")
ax.legend(loc="upper center", ncols=3)
plt.show()


# %% [markdown]
# You should see that a step (black) gets shorter at first as it should, then hardly, and longer again beyond the triangle, 21 workers. The two dots were
# measured; the rest is predicted. On the left the rows (blue) take nearly all of it, and they do get less. The bytes (green) come to their bound soon, and
# the constant part (grey) stays. But the latencies of messages (red) grow with each worker. With a thousand of them, each computes a single
# row, and then waits for 1,998 messages: twice as long as *one* worker alone takes for all.
#
# To divide the *same* work among more workers is called **strong scaling**, and it always ends like this: there is
# a best number, and it depends on the machines, the links and the network. But there is another way to use a thousand. Let each
# keep its 1,024 rows, so that the batch grows. This is **weak scaling**. A step does not get shorter then. It learns from more samples:

# %%
def examples_a_second(n, weak):
    rows = 1024 * n if weak else 1024
    return 1000 * rows / milliseconds(n, rows)


one_worker = examples_a_second(1, weak=False)
fig, ax = plt.subplots(figsize=(6.4, 4.0))
ax.loglog(counts, [n * one_worker for n in counts], "--", color="#999999", linewidth=1.4)
ax.text(20, 35 * one_worker, "no cost at all", color="#777777", ha="right")
for weak, color, name in ((True, "#0072B2", "each has\n1,024 rows"), (False, "#E69F00", "1,024 rows\nfor all")):
    found = [examples_a_second(n, weak) for n in counts]
    ax.loglog(counts, found, color=color)
    ax.text(1150, found[-1], name, color=color, va="center")
ax.set(xlabel="workers", ylabel="samples a second", xlim=(1, 9000), ylim=(5e3, None))
ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
plt.show()

# %% [markdown]
# You should see that with batches that grow (blue) workers stay near the dashed line, on which communication costs nothing: a hundred learn from about 80 times as
# many samples a second as one, a thousand from about 330 times as many. With one batch for all (orange) a thousand learn from fewer than one.
#
# So one makes batches larger, and does not get it for free. A batch of a million rows still is a single step, with a less noisy gradient; it takes a larger rate,
# and a warm-up ([lesson 13](13_attention.ipynb)), and beyond some size more samples teach nothing more.
#
# What the model leaves out: other links than pipes between two cores (a network of machines has other $\alpha$ and $\beta$), links that are shared, and the one
# worker that is late today, for which all others wait (a *straggler*). It is a good guess for ten workers and a sketch for a thousand. Libraries that train on so
# many begin to send gradients that are ready while the backward pass is still running, and build rings of rings, or trees, in which fewer messages follow each
# other (exercise 3).
#
# ## How the library does it
#
# `mg.distributed.fit` trains in several processes, which the package Ray starts, on one machine or many. It takes a function that creates a replica, and
# a `DataLoader` (this is not run here):
#
# ```python
# def make():
#     model = mg.nn.Linear(64, 10)
#     return model, mg.optim.SGD(model.parameters(), lr=0.1), mg.functional.cross_entropy
#
# loader = mg.data.DataLoader(data, batch_size=100, shuffle=True)
# trained = mg.distributed.fit(make, loader, epochs=3, workers=4)
# ```
#
# It does what this lesson did: shards, weighted by their sample counts, one sum, and the same step everywhere. But its sum is a star and no ring. The
# process that called `fit`, the *driver*, receives all gradients, adds them up in the order of the workers' ranks, and sends the result to all. By our
# table that does not reach far, and it was chosen for two reasons.
#
# The sum has one order, whatever happens. If a worker dies, another computes its shard, and no digit changes; a ring without one of
# its members is no ring. And for a moment the full gradient is in one process, where it can be inspected, and clipped ([lesson
# 11](11_when_it_goes_wrong.ipynb)), by the code that a single process would use.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 17.1 · Three shards
#
# Three workers have 4, 3 and 1 samples. The derivatives of their mean losses with respect to some weight are 2, −4 and 16. What is the derivative of the mean loss of
# all eight? What is it if the loss is the *sum* over all eight? And if somebody takes the plain mean of the three derivatives: how many times as much
# as a sample of the first shard does the sample of the last one count?

# %%
shards = {"mean": ..., "sum": ..., "times": ...}

# %%
lessons.check("17.1", shards)

# %% [markdown]
# ### Exercise 17.2 · Still the same?
#
# Two replicas begin with equal parameters, have half of each batch each, and average their gradients. Say `True` if they learn what one process would have
# learned (but for rounding), and `False` if not.
#
# | case | what is different |
# |---|---|
# | A | the network has layer norms |
# | B | the network has batch norms, and is in training mode |
# | C | the optimizer has a momentum, and each replica keeps its own |
# | D | each replica clips its gradient to norm 1 *before* they are averaged |
# | E | each replica clips the gradient to norm 1 *after* they were averaged |
# | F | the loss is the root of the mean square, and no mean |
# | G | each replica draws its own dropout mask |

# %%
still = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ..., "G": ...}

# %%
lessons.check("17.2", still)


# %% [markdown]
# ### Exercise 17.3 · In fewer steps
#
# Here is an all-reduce with fewer messages, for 2, 4, 8, … workers. In step 0 worker $r$ and its neighbour `r ^ 1` send each other *all* that they
# have, and both add it up; in step 1 so do $r$ and `r ^ 2`, then `r ^ 4`, and so on. (`^` changes one binary digit: `5 ^ 1` is 4, `5 ^ 2` is 7.) Write
# `doubling(numbers)`: it gets a list with one number for each worker, and returns a list of lists, the values of all workers after each step. The last one has
# the sum at every worker.

# %%
def doubling(numbers):
    return ...


# %%
lessons.check("17.3", doubling)

# %% [markdown]
# ### Exercise 17.4 · What a sum costs
#
# A network has 25 million weights of four bytes. Eight workers are connected by links with a latency of half a thousandth of a second and a bandwidth of
# 1.25 GB (1,250,000,000 bytes) a second. How many bytes does each worker send in the ring? How many seconds does the ring take? And how many
# a star, in which worker 0 receives seven arrays, one after the other, and then sends seven?

# %%
costs = {"bytes": ..., "ring": ..., "star": ...}

# %%
lessons.check("17.4", costs)


# %% [markdown]
# ### Exercise 17.5 · Efficiency
#
# The **efficiency** of $n$ workers is the samples that they learn from in a second, over $n$ times those of one worker: 1 where
# communication costs nothing. Write `efficiency(time, workers, weak)`. `time(workers, rows)` is a function as `milliseconds` above, of the workers and of the
# rows in the *full* batch. One worker has 1,024 rows; several have 1,024 for all together, or, if `weak` is true, 1,024 each. (When it is right, try it
# on `milliseconds` with 8, 100 and 1,000 workers, both ways.)

# %%
def efficiency(time, workers, weak):
    return ...


# %%
lessons.check("17.5", efficiency)

# %% [markdown]
# ## Where this comes from
#
# - R. W. Hockney, “The communication challenge for MPP: Intel Paragon and Meiko CS-2”, *Parallel Computing* 20 (1994), pages 389–398: a message as
#   a start and a rate.
# - P. Patarasuk and X. Yuan, “Bandwidth optimal all-reduce algorithms for clusters of workstations”, *Journal of Parallel and Distributed
#   Computing* 69 (2009), pages 117–124: the ring, and why nothing sends less.
# - R. Thakur, R. Rabenseifner and W. Gropp, “Optimization of collective communication operations in MPICH”, *International Journal of High
#   Performance Computing Applications* 19 (2005), pages 49–66: doubling, and when to use which.
# - J. L. Gustafson, “Reevaluating Amdahl's law”, *Communications of the ACM* 31 (1988), pages 532–533: work that grows with the workers.
# - P. Goyal and others, “Accurate, large minibatch SGD: training ImageNet in 1 hour”, arXiv:1706.02677 (2017): a batch of 8,192 on 256 GPUs, and what
#   its rate has to be.
# - S. Li and others, “PyTorch Distributed: experiences on accelerating data parallel training”, *Proceedings of the VLDB Endowment* 13 (2020), pages
#   3005–3018: sending while the backward pass goes on.
#
# The sum of gradients is the same on one machine and on a thousand. In the last lesson, the models are those of another library:
# **[18 · Inside a PyTorch model](18_inside_a_pytorch_model.ipynb)**
