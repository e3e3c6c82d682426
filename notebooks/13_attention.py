# %% [markdown]
# # 13 · Attention
#
# *Before: [12 · Normalisation](12_normalisation.ipynb) · Next: [14 · Looking where it matters](14_looking_where_it_matters.ipynb)*
#
# ## The question
#
# Here is a small language. Each line is a name, of a chemical element, a country or a star, and the same name again.
# One name in ten is held out: no network is trained on it.

# %%
import math

import matplotlib.pyplot as plt
from tqdm.auto import tqdm

import minigrad as mg
from minigrad import nn

plt.style.use("lessons.mplstyle")
mg.set_default_dtype(mg.float64)  # 16 digits, so that rounding matters little
F = nn.functional

listed = {name.lower() for kind in ("elements", "countries", "stars") for name in mg.data.names(kind)}
names = sorted(name for name in listed if name.isascii() and name.isalpha() and 3 <= len(name) <= 10)
new = names[::10]
known = [name for name in names if name not in new]
print(len(known), "names to learn from,", len(new), "held out:", ", ".join(new[::8]))

# %%
alphabet = mg.data.Vocabulary("\n abcdefghijklmnopqrstuvwxyz")  # an index for each of 28 letters
mg.manual_seed(0)
drawn = mg.randint(0, len(known), (4000,)).tolist()
story = "\n" + "".join(f"{known[k]} {known[k]}\n" for k in drawn)
text = alphabet.encode(story)
print(*story.split("\n")[1:7], sep="\n")


# %% [markdown]
# (Space and line break count as letters.) A network should guess the next letter from those before it. In the first half
# of a line it can only know which letters like to follow each other. In the second half *you* are never wrong, even if
# you have never heard of the star. After `markeb ma` you look where `ma` occurred before, and read on there: `r`. That is
# six letters back. In `cuba cu` it is four, and in `tajikistan ta` ten. A filter as in [lesson
# 10](10_convolution.ipynb) has a weight for each *distance*, the same in every line. That will not do.
#
# **How can a network choose where to look, by what it reads? And how can a choice have a gradient?**
#
# ## Guess: ask a table
#
# Python's `dict` chooses by what it is asked: among its **keys** it finds the one that equals the **query**, and out
# comes the **value** that belongs to it. But it is all or nothing. Nudge the query, and there is no such key, and no
# derivative.
#
# So let us be less strict. Each key gets a **score** for how well it matches, the softmax of [lesson
# 4](04_a_network_of_values.ipynb) turns the scores into weights that add up to 1, and the answer is the mean of *all*
# values with these weights. This is a **soft lookup**. There are two values, 10 and 30. Before you run the cell: what
# is found for the scores 0 and 0? For 0 and $\ln 3$? For 0 and 100?

# %%
def soft_lookup(scores, values):
    powers = [math.exp(score) for score in scores]
    weights = [power / sum(powers) for power in powers]
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


for name, score in (("0", 0), ("ln 3", math.log(3)), ("100", 100)):
    print(f"scores 0 and {name:5} {soft_lookup([0, score], [10, 30]):.2f}")

# %% [markdown]
# With equal scores it is the plain mean. $\ln 3$ gives weights of ¼ and ¾. And with a score that is far ahead, it is
# the table again. In between, it can be nudged:

# %%
h, scores, values = 1e-5, [0, math.log(3)], [10, 30]
found = soft_lookup(scores, values)
for i, weight in enumerate((0.25, 0.75)):
    up, down = list(scores), list(scores)
    up[i] += h
    down[i] -= h
    nudged = (soft_lookup(up, values) - soft_lookup(down, values)) / (2 * h)
    formula = weight * (values[i] - found)
    print(f"score {i}: nudged {nudged:+.3f}, and {weight} · ({values[i]} − 25) = {formula:+.3f}")


# %% [markdown]
# There is a gradient for the choice. With $w_i$ for the weights, $v_i$ for the values and $y$ for what is found, it
# follows from the softmax rule of [lesson 7](07_gradient_rules.ipynb):
#
# $$\frac{\partial y}{\partial s_i} = w_i \, (v_i - y)$$
#
# Read it as a vote: a value above the mean needs more weight if $y$ should grow, one below needs less, and those with
# a weight of 0 have no influence.
#
# ## Build it: queries, keys and values
#
# Where do scores come from? Let query and keys be vectors of $d$ elements. Their **dot product** $q \cdot k = q_1 k_1 +
# \dots + q_d k_d$ is large if both point the same way, 0 if they have nothing in common, and negative if they are
# opposed. If queries are the rows of a matrix $Q$, keys and values those of $K$ and $V$, then all lookups together are
# two matrix products with a softmax between them. This is **attention**:
#
# $$\operatorname{attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt d}\right) V$$
#
# (Each row of scores has its own softmax. What `hidden` is for, you will see in a moment.)

# %%
def attend(q, k, v, hidden=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


# %% [markdown]
# ### Why the root?
#
# It is the calculation of [lesson 11](11_when_it_goes_wrong.ipynb). If the elements of $q$ and $k$ have mean 0 and
# variance 1, each product has variance 1, and a sum of $d$ of them has variance $d$. So scores have a spread of
# $\sqrt d$, and dividing by it makes it 1 again. What happens without it, we shall measure under *Break it*.
#
# ### Not to look ahead
#
# Now every position of a line should look at the others: each attends to all. But a position that has to guess the next
# letter must not look at it: it comes right behind. So a score that is not allowed becomes $-\infty$ *before* the softmax.
# Then its power is $e^{-\infty} = 0$, and the other weights still add up to 1. Such a table of hidden positions is a
# **causal mask**. With equal scores each position gets the mean of all so far:

# %%
def causal(length):
    return mg.ones(length, length, dtype=mg.bool).triu(1)  # triu(1): what is above the diagonal


zeros = mg.zeros(4, 2)
for hidden, row in zip(causal(4), attend(zeros, zeros, zeros, causal(4))[1], strict=True):
    print("hidden:", "".join(" x"[h] for h in hidden.tolist()), "  weights:", *[f"{w:.2f}" for w in row.tolist()])


# %% [markdown]
# And the gradient? $w_i\,(v_i - y)$ is 0 for $w_i = 0$. A hidden position gets no gradient.
#
# ### Several heads
#
# One softmax computes one mean. To look at two positions for two reasons takes two of them, so attention is split into
# **heads**: the features of each position are divided among the heads, and each head has its own queries, keys and values.
# It costs a view ([lesson 6](06_tensors.ipynb)): (N, T, 32), for T positions of N lines, is read as (N, T, 2, 16) and
# transposed to (N, 2, T, 16). The matrix products use the last two dimensions, for each line and head by itself: the
# others are **batch dimensions**.
#
# Where do queries, keys and values come from? From the position itself, by a learned linear layer, a **projection**, one
# for all three; `chunk` splits its output in three. Another combines the outputs of the heads. (A subclass of `nn.Module`
# is a layer of our own. Its `forward` computes the output, and `parameters()` finds those of all layers stored in `self`.)

# %%
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.masked = heads, True
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = [part.view(n, t, self.heads, -1).transpose(1, 2) for part in parts]
        found, weights = attend(q, k, v, causal(t) if self.masked else None)
        self.weights = weights.detach()  # to look at
        return self.out(found.transpose(1, 2).reshape(n, t, width))


# %% [markdown]
# ### A block
#
# Attention carries features from position to position. A small perceptron processes them, at each
# position by itself. Both are on a **residual path**: their output is *added* to their input, $x + f(x)$. A plus
# sign passes gradients on unchanged, so they reach the lowest block undiminished, however many there are. And each
# $f$ gets its input through a layer norm ([lesson 12](12_normalisation.ipynb)).

# %%
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.linear1, self.linear2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


# %% [markdown]
# ## Draw it
#
# One query that asks two keys, without the root. It is at right angles to both, so both scores are 0. The values are 1
# and 5.

# %%
# %load_ext minigrad_viz

q = mg.tensor([[1.0, 1.0]], requires_grad=True)
k = mg.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)
v = mg.tensor([[1.0], [5.0]], requires_grad=True)
with mg.record():
    scores = q @ k.T
    scores.retain_grad()  # to print it below
    weights = F.softmax(scores, dim=-1)
    found = weights @ v
    found.backward()

for name, tensor in (("scores", scores), ("q", q), ("k", k), ("v", v)):
    print(f"{name:<6} gradient {tensor.grad.tolist()}")
found

# %% [markdown]
# You should see that the two weights are equal, so 3 is found. If it should be more, score 0 must fall and score 1 rise:
# $\frac12 (1 - 3) = -1$, and $\frac12 (5 - 3) = 1$. Therefore the gradient turns the *query* away from the first key and
# towards the second, (−2, 2). And the keys as well: it moves the second towards the query, the first away from it. So
# those who ask and those who answer learn to understand each other.
#
# ## Step it
#
# Now three positions with a mask. Each has a query, a key and a value of one element, and all keys are 0. The loss is the
# sum of the three results.

# %%
from minigrad_viz import tour

q = mg.ones(3, 1, requires_grad=True)
k = mg.zeros(1, 3, requires_grad=True)  # a column for each key
v = mg.tensor([[0.0], [3.0], [6.0]], requires_grad=True)
with mg.record():
    scores = q @ k
    scores.retain_grad()
    seen = scores.masked_fill(causal(3), -math.inf)
    weights = F.softmax(seen, dim=-1)
    found = weights @ v
    loss = found.sum()
    loss.backward()

print("gradient of the scores:", *scores.grad.tolist(), sep="\n  ")
print("gradient of the keys:  ", k.grad.tolist()[0])

# %%
stops = [
    (scores, "Three queries times three keys: nine scores, all of them 0."),
    (seen, "The mask: what is to the right of the diagonal becomes −∞ (crossed)."),
    (weights, "Row by row: 1; then ½ and ½; then a third each. Hidden positions get 0."),
    (found, "0 alone; the mean of 0 and 3; the mean of 0, 3 and 6."),
    ((seen, "backward"), "Back: w · (v − y). Row 0 had no choice, and where a position is hidden, 0 arrives."),
    ((k, "backward"), "Each key adds up what all queries that see it say. The last is seen by one alone."),
]
tour(loss, stops)

# %% [markdown]
# You should see a staircase of weights, paler from row to row, and beside the scores a gradient that is white in row 0
# and right of the diagonal. (The two red borders are alarms for infinity, as in lesson 11. Here it is intended.) All
# would find more if they looked less at the first position: its key gets −0.75 − 1.
#
# ## Compare with the library
#
# `F.scaled_dot_product_attention` is our `attend`. `nn.TransformerEncoderLayer` is our block, and the attention within
# it an `nn.MultiheadAttention`. Given the same parameters, which have other names in part, are their results ours?

# %%
mg.manual_seed(0)
q, k, v = mg.randn(3, 2, 2, 5, 16)
theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print("attend:   ", mg.allclose(attend(q, k, v, causal(5))[0], theirs))

block, x = Block(32, heads=2), mg.randn(2, 5, 32)
layer = nn.TransformerEncoderLayer(32, 2, 128, dropout=0.0, batch_first=True, norm_first=True)
renamed = {}
for name, parameter in block.state_dict().items():
    name = name.replace("attention.qkv.", "self_attn.in_proj_")
    renamed[name.replace("attention.out", "self_attn.out_proj")] = parameter
layer.load_state_dict(renamed)
theirs, _ = layer.self_attn(x, x, x, attn_mask=causal(5))
print("Attention:", mg.allclose(block.attention(x), theirs))
print("Block:    ", mg.allclose(block(x), layer(x, src_mask=causal(5))))

# %% [markdown]
# ## A small GPT
#
# One thing is missing. A lookup does not depend on the *order* of keys and values. For one block, the letters before
# the last might as well be shuffled:

# %%
shuffled = mg.tensor([2, 0, 3, 1, 4])
print("the last position finds the same:", mg.allclose(block(x)[:, -1], block(x[:, shuffled])[:, -1]))


# %% [markdown]
# So the features of a position must tell where it is. We add a pattern to them that no other position has, a **positional
# encoding**: sines and cosines of its index, from quick to slow, like the hands of many clocks. To go on by some positions
# turns each hand by an angle, always the same wherever one begins. So “the position before me” is something that a linear
# layer can ask for.

# %%
def clocks(places, width):
    speeds = 64.0 ** (-mg.arange(width // 2) / (width // 2))
    angles = mg.arange(places).view(-1, 1) * speeds
    return mg.cat([angles.sin(), angles.cos()], dim=1)


fig, ax = plt.subplots(figsize=(6.4, 4.0))
ax.imshow(clocks(24, 32).numpy(), cmap="cividis")
ax.set(xlabel="32 features: sines, then cosines, from quick to slow", ylabel="position")
plt.show()

# %% [markdown]
# You should see a row for each of 24 positions. From top to bottom, the columns on the left of each half change quickly,
# and those on the right hardly at all. No two rows are alike.
#
# An **embedding** is a table with a row of learned features for each letter. Letter and position added, then two blocks, a
# last norm, and a linear layer for the scores of the next letter: such a network is a **transformer**. One that guesses
# what comes next is called **GPT**, *generative pre-trained transformer*. The large ones have the same parts.

# %%
PLACES = 24  # a line has at most 22 letters, with both line breaks 24


class GPT(nn.Module):
    def __init__(self, width=32, heads=2, blocks=2):
        super().__init__()
        self.letters = nn.Embedding(len(alphabet), width)
        nn.init.normal_(self.letters.weight, std=0.5)  # not to drown out the clocks
        self.clocks = clocks(PLACES, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, len(alphabet))

    def forward(self, x):
        h = self.letters(x) + self.clocks[: x.shape[1]]
        return self.scores(self.norm(self.blocks(h)))


# %%
mg.manual_seed(3)
model = GPT()
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
print(f"blind guessing costs ln {len(alphabet)} = {math.log(len(alphabet)):.2f}")

# %% [markdown]
# ## Let it learn
#
# A step takes a batch of 16 sequences from the text, each beginning at a line break. All 24 positions of a sequence guess
# at once: position $t$ sees the letters up to its own, and letter $t + 1$ is the right answer. The loss is their mean
# cross-entropy, the optimizer Adam, its rate a cosine, both of [lesson 9](09_optimizers.ipynb). Before the cosine falls,
# the rate rises during the first 15 % of the steps: such a **warm-up** keeps the first steps small, while the network has
# not learned yet where to look. In some 10 to 20 seconds, you should see a bar that fills, with the loss beside it.

# %%
starts = mg.tensor([place for place, letter in enumerate(story[:-PLACES]) if letter == "\n"])


def train(model, steps, lr=0.015):
    optimizer, losses = mg.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.95)), []
    scheduler = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps, pct_start=0.15)
    for _ in (bar := tqdm(range(steps), desc="learning")):
        start = starts[mg.randint(0, len(starts), (16, 1))]
        pieces = text[start + mg.arange(PLACES + 1)]
        loss = F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.2f}", refresh=False)
    return losses


# %% tags=["nbval-ignore-output"]
losses = train(model, steps=400)


# %%
def surprise(model, line):
    letters = alphabet.encode(line)
    with mg.no_grad():
        return F.cross_entropy(model(letters[None, :-1])[0], letters[1:], reduction="none").tolist()


def halves(name):
    found, half = surprise(model, f"\n{name} {name}\n"), len(name) + 1
    return sum(found[:half]) / half, sum(found[half:]) / half


first, again = [sum(costs) / len(new) for costs in zip(*map(halves, new), strict=True)]
print(f"loss: {losses[0]:.1f} at first, {sum(losses[-50:]) / 50:.1f} in the end")
print(f"new names: {first:.1f} the first time, {again:.1f} the second time")

# %% [markdown]
# It begins near blind guessing. In the end a letter of a *new* name, one of those held out, costs 2.4 the first
# time: like choosing among eleven, since $e^{2.4} \approx 11$. The second time, it costs next to nothing. That is no list
# learned by heart. The network has learned to look. Letter by letter:

# %%
line = "\nmarkeb markeb\n"
costs = surprise(model, line)
fig, ax = plt.subplots(figsize=(6.4, 3.2))
ax.bar(range(len(costs)), costs, color=["#E69F00"] * 7 + ["#0072B2"] * 7)
ax.set_xticks(range(len(costs)), [*"markeb", "·", *"markeb", "↵"])
ax.text(3, 4.9, "first time", color="#B87A00", ha="center")
ax.text(10, 4.9, "second time", color="#0072B2", ha="center")
ax.tick_params(axis="x", length=0)
ax.set(ylabel="cross-entropy of the letter", ylim=(0, 5.4))
plt.show()

# %% [markdown]
# You should see high bars (orange) the first time that Markeb occurs, a star that was not in the training data, and almost
# none (blue) the second time. (· is the space, ↵ the line break.)
#
# ## Where does it look?
#
# The weights show it. A row is a position that looks, a column a position that is looked at, and the darker, the more.
# (The line begins with a line break.)

# %%
marks = ["↵", *"markeb", "·", *"markeb"]
fig, axes = plt.subplots(2, 2, figsize=(7.4, 7.6))
for row, block in enumerate(model.blocks):
    for head, ax in enumerate(axes[row]):
        ax.imshow(block.attention.weights[0, head].numpy(), cmap="Blues", vmin=0, vmax=1)
        ax.set_xticks(range(len(marks)), marks)
        ax.set_yticks(range(len(marks)), marks)
        ax.tick_params(length=0)
        ax.set_title(f"block {row + 1}, head {head + 1}", fontsize=13)
axes[1, 0].set(xlabel="looked at", ylabel="looks")
plt.show()


# %% [markdown]
# You should see four triangles, because of the mask, and in the last one, block 2, head 2, what we asked for. When the
# name occurs first, that head mostly rests on ↵: there is nothing to look for. From the space on, it runs along a line
# beside the diagonal: the space looks at the first `m`, `m` looks at `a`, `a` at `r`, each at the letter that has to come
# *next*. (After the last `b` none has to.) The other heads prepare this. Head 1 of block 1, for one, turns to the space as
# soon as there is one. Nobody programmed that. (A head that finds where the same occurred before, and reads on there, is
# called an **induction head**.)
#
# ## It writes
#
# To write, let it guess, **sample** a letter by its probabilities, append it, and ask again. Before the softmax the
# scores are divided by a **temperature** $\tau$ (“tau”): below 1 the likely letters become still more likely, above 1
# they all become more equal.

# %% tags=["nbval-ignore-output"]
@mg.no_grad()
def write(model, count, temperature):
    lines = mg.zeros(count, 1, dtype=mg.int64)  # letter 0 is the line break
    while lines.shape[1] < PLACES:
        scores = model(lines)[:, -1]
        p = F.softmax(scores / temperature, dim=-1)
        lines = mg.cat([lines, p.multinomial(1)], dim=1)
    return [alphabet.decode(line)[1:].split("\n")[0] for line in lines]


for temperature in (0.3, 0.7, 1.0, 1.5):
    mg.manual_seed(1)
    print(f"{temperature}:", ", ".join(write(model, 5, temperature)))

# %% tags=["nbval-ignore-output"]
mg.manual_seed(2)
lines = [line.split() for line in write(model, 100, temperature=0.7)]
twice = [words[0] for words in lines if len(words) == 2 and words[0] == words[1]]
invented = [name for name in twice if name not in names]
print(f"{len(twice)} of 100 lines contain a name twice, and {len(invented)} of these names are on no list")

# %% [markdown]
# You should see, at low temperatures, names that sound like those of elements and stars. Nearly all are invented, and
# most occur twice all the same. The higher the temperature, the stranger the names and the more slips. (Which names
# they are is chance. Even another processor, which adds up in another order and so rounds differently, may draw
# others.)
#
# ## Break it: forget the mask
#
# The same network, the same text, and no mask:

# %% tags=["nbval-ignore-output"]
mg.manual_seed(3)
cheat = GPT()
for block in cheat.blocks:
    block.attention.masked = False
cheat_losses = train(cheat, steps=150)


# %% tags=["nbval-ignore-output"]
def so_far(model, line):
    letters = alphabet.encode(line)
    with mg.no_grad():
        guesses = mg.stack([model(letters[None, :t])[0, -1] for t in range(1, len(letters))])
        return F.cross_entropy(guesses, letters[1:]).item()


for title, network, found in (("with the mask", model, losses), ("without it", cheat, cheat_losses)):
    told = sum(so_far(network, f"\n{name} {name}\n") for name in new[::8]) / len(new[::8])
    learned = sum(found[-20:]) / 20
    print(f"{title:<14} while learning: {learned:.1f}  given only the letters so far: {told:.1f}")
mg.manual_seed(1)
print(write(cheat, 8, temperature=1.0))

# %% [markdown]
# In fewer steps the loss falls wonderfully, far below what anybody could guess of a name. It is a fraud: to guess letter
# $t + 1$, it looks at letter $t + 1$. Given only the letters so far, it does much worse than blind guessing (3.3), and
# what it writes is empty lines and rubbish. For when it writes, the letters that it learned to look at do not exist yet.
# If a loss is too good to be true, ask what the network can see.
#
# ## Break it: forget the root
#
# Eight keys, queries and keys at random, with larger and larger $d$. How far does a weight move if its score does?
# By the rule above that derivative is $w_i \,(1 - w_i)$. We take its mean, with the root and without:

# %%
mg.manual_seed(0)
sizes, slopes = [4**n for n in range(7)], {"with the root": [], "without": []}
for d in sizes:
    scores = (mg.randn(300, 1, d) @ mg.randn(300, d, 8)).squeeze(1)
    for name, scale in zip(slopes, (d**0.5, 1.0), strict=True):
        w = F.softmax(scores / scale, dim=-1)
        slopes[name].append((w * (1 - w)).mean().item())

fig, ax = plt.subplots(figsize=(6.4, 3.6))
for (name, found), color in zip(slopes.items(), ("#0072B2", "#D55E00"), strict=True):
    ax.loglog(sizes, found, "o-", color=color)
    ax.text(sizes[-1] * 1.3, found[-1], name, color=color, va="center")
ax.set(xlabel="$d$", ylabel="mean derivative of a weight", xlim=(0.8, 60000), ylim=(0.001, 0.3))
plt.show()

# %% [markdown]
# You should see that with the root (blue) the derivative is the same for all $d$. Without it (orange), the larger $d$, the
# larger the scores, and the nearer the softmax comes to a `dict`: one key gets nearly all the weight, and the derivatives
# fade. Such a softmax is **saturated**. The choice is made before anything has been learned, and the gradient to unmake
# it is small.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 13.1 · Look it up by hand
#
# The query is $(1, 1)$. The keys are $(2, -2)$, $(-1, 1)$, $(0, 0)$ and $(3, 3)$, their values 1, 4, 7 and 60, and the
# last one is hidden by a mask. Give the four weights, what is found, and its derivatives with respect to the four scores
# (`"slopes"`).

# %%
lookup = {"weights": ..., "found": ..., "slopes": ...}

# %%
lessons.check("13.1", lookup)


# %% [markdown]
# ### Exercise 13.2 · A shorter memory
#
# In a long text each position may look at itself and at the `back` positions just before it, and at nothing else
# (*sliding-window attention*). Write that mask, a table of `True` (hidden) and `False`, for `length` positions.
# (`mg.arange(length)` are their indices, and tensors can be compared: `<`, `>`. Two boolean tensors are combined by `|`,
# “or”.)

# %%
def window(length, back):
    return ...


# %%
lessons.check("13.2", window)


# %% [markdown]
# ### Exercise 13.3 · Count the parameters
#
# How many parameters has our `GPT`, for so many `letters`, a `width`, and so many `blocks`? Write the formula. (A
# linear layer from $n$ to $m$ has $n m$ weights and $m$ biases, a layer norm two parameters for each of the width. Why
# does the number of heads not matter?)

# %%
def count(letters, width, blocks):
    return ...


# %%
lessons.check("13.3", count)


# %% [markdown]
# ### Exercise 13.4 · Only the best
#
# A network that writes should not be too bold. **Top-k sampling** lets it draw only from the `k` letters with the
# highest scores. Write a function that turns a list of scores into the list of probabilities to draw with, at a given
# temperature. All other letters have 0, and the rest add up to 1.

# %%
def probabilities(scores, temperature, k):
    return ...


# %%
lessons.check("13.4", probabilities)

# %% [markdown]
# ## Where this comes from
#
# - D. Bahdanau, K. Cho and Y. Bengio, “Neural machine translation by jointly learning to align and translate”, ICLR
#   (2015): a network that chooses by weights where to look, and maps of them.
# - A. Vaswani and others, “Attention is all you need”, NeurIPS (2017): queries, keys and values, the root, heads, sines
#   and cosines: the transformer.
# - A. Radford, K. Narasimhan, T. Salimans and I. Sutskever, “Improving language understanding by generative
#   pre-training”, OpenAI (2018): GPT.
# - A. Radford and others, “Language models are unsupervised multitask learners”, OpenAI (2019): GPT-2, with the norms
#   where ours are.
# - A. Karpathy, “The unreasonable effectiveness of recurrent neural networks” (2015), a post on his blog: networks that
#   write letter by letter, and what the temperature does.
# - C. Olsson and others, “In-context learning and induction heads”, Transformer Circuits Thread (2022): heads that find
#   where the same stood before, and read on there, in large networks.
#
# This network looked everywhere at once, with weights. The next one looks at a single position of a picture, and learns
# which: **[14 · Looking where it matters](14_looking_where_it_matters.ipynb)**
