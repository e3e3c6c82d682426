# %% [markdown]
# # 4 · A network of Values
#
# *Before: [3 · Gradients add up](03_gradients_add_up.ipynb) · Next: [5 · The tape](05_the_tape.ipynb)*

# %% [markdown]
# ## The question
#
# In the 1930s the botanist Edgar Anderson measured irises: the length and the width of their petals, and of their
# sepals, which in an iris look like larger petals that hang down. There were three species: *setosa*, *versicolor* and
# *virginica*.
#
# **Can a network of our `Value`s learn to tell the species from the four measurements?**

# %%
from minigrad.data import iris

flowers = iris()
print(len(flowers.train_x), "flowers to learn from,", len(flowers.test_x), "to test with")
print("measured:", ", ".join(flowers.features))
print("species: ", ", ".join(flowers.species))

# %% [markdown]
# The 30 test flowers are kept out of the learning, so that in the end we can ask whether the network has understood
# irises, or only memorised those it has seen.
#
# The numbers come **standardised**: from each measurement its mean is subtracted, and the rest divided by its typical
# spread (the standard deviation). So all four are of similar size, around 0. Undoing it gives centimetres again.
#
# You should see below a mark for each flower to learn from, placed by the length and the width of its petals: *setosa*
# (blue circles) is easy to tell, small in both, and the other two, *versicolor* (orange triangles) and *virginica*
# (green squares), touch.

# %%
from minigrad_viz import Plot


def in_cm(standardised, feature):
    return standardised * flowers.deviation[feature] + flowers.mean[feature]


def add_petals(plot, xs, ys):
    for k, species in enumerate(flowers.species):
        chosen = [x for x, y in zip(xs, ys, strict=True) if y == k]
        lengths, widths = [[in_cm(x[feature], feature) for x in chosen] for feature in (2, 3)]
        plot.points(lengths, widths, label=species)


# %%
plot = Plot(xlabel="petal length (cm)", ylabel="petal width (cm)", legend="upper left")
add_petals(plot, flowers.train_x, flowers.train_y)
plot

# %% [markdown]
# ## The network, and a guess
#
# A **layer** is a row of neurons that all look at the same numbers. Ours has two layers: eight neurons look at the four
# measurements, and three more look at what those eight say. The last three numbers are the **scores**, one for each
# species, and the highest wins. A network of such layers is called a *multi-layer perceptron*, MLP for short.
#
# The neurons are those of [lesson 1](01_one_neuron.ipynb), with many inputs, $w_1 x_1 + w_2 x_2 + \dots + b$. The eight
# squeeze the sum with $\tanh$ (a sigmoid that goes from −1 to 1); the three leave it as it is. All the weights and
# biases together are the **parameters**; they start at random.

# %%
import minigrad as mg

model = mg.nn.scalar.MLP([4, 8, 3], seed=0)
model


# %%
def answer(model, x):
    scores = [score.data for score in model(x)]
    return scores.index(max(scores))


def accuracy(model, xs, ys):
    hits = [answer(model, x) == y for x, y in zip(xs, ys, strict=True)]
    return sum(hits) / len(hits)


print(f"right before any learning: {accuracy(model, flowers.test_x, flowers.test_y):.0%} of the test flowers")


# %% [markdown]
# Blind guessing would get a third right, so it knows nothing yet. There are 67 parameters to turn, (4 + 1) · 8 +
# (8 + 1) · 3, and we know how to find out which way: nudge each, and see whether the network gets better. That is 134
# runs over all the flowers for one step, and it is why we go backward instead. But *better* at what? To take a slope,
# we need one number that says how wrong the network is: a loss.

# %% [markdown]
# ## Build it: a loss from exp and log
#
# First turn the scores $s_k$ into **probabilities** $p_k$, positive numbers that add up to 1. The usual way is the
# **softmax**; it uses $e^{s}$, which is positive for every $s$. Then look at the probability of the *right* species,
# number $t$. The loss, named **cross-entropy**, is its negative logarithm: 0 if the network is certain and right, and
# the larger the less it believed in the right answer:
#
# $$p_k = \frac{e^{s_k}}{\sum_j e^{s_j}} \qquad L = -\ln p_t = \ln \sum_j e^{s_j} - s_t$$
#
# (In code, `log` is the natural logarithm, $\ln$.) One precaution: $e^{1000}$ is too large for a computer. But adding
# the same number to all scores changes no probability, since it cancels. So we may subtract the largest score first,
# and then the largest power is $e^0 = 1$.

# %%
def cross_entropy(scores, target):
    top = max(score.data for score in scores)
    scores = [score - top for score in scores]
    first, *others = [score.exp() for score in scores]
    return sum(others, first).log() - scores[target]  # a sum that begins with the first power


# %% [markdown]
# ## Draw it
#
# Three scores that are all 0, and the right species is number 0. So each probability is ⅓, and the loss is
# $-\ln \frac13 = 1.0986$. For the picture we write the formula as it stands above; the precaution would only add boxes
# that subtract 0.

# %%
# %load_ext minigrad_viz

s0, s1, s2 = mg.Value(0.0, "s0"), mg.Value(0.0, "s1"), mg.Value(0.0, "s2")
loss = (s0.exp() + s1.exp() + s2.exp()).log() - s0
loss.backward()
loss

# %% [markdown]
# You should see the three scores, and their gradients: −0.667 for the right one, 0.333 for the two others. So
# the right score should go up (that lowers the loss), the others should go down, and each by the probability that is
# out of place. That is a rule: $\frac{\partial L}{\partial s_k} = p_k$ for a wrong species, and
# $\frac{\partial L}{\partial s_t} = p_t - 1$ for the right one.

# %% [markdown]
# ## Step it
#
# The last score, $s_2$, is in the loss only through the sum of the powers. Among all events we pick those on its path,
# and print them in the order of the backward pass:

# %%
path, here = [], s2
for event in reversed(mg.events(loss)):
    if event.target is here:
        path.append(event)
        here = event.source

for event in reversed(path):
    made, target = event.source.op.name, event.target.label or event.target.op.name
    print(f"{made:>3} -> {target:<3}   {event.upstream:.3f} × {event.local:.3f} = {event.contribution:.3f}")

# %% [markdown]
# A difference and a sum pass on what they get. The slope of $\ln u$ is $\frac1u$, and the sum $u$ of the powers is 3:
# that makes ⅓. The slope of $e^s$ is $e^s$ itself, here 1. So ⅓ arrives at the score.
#
# The right score, $s_0$, is used twice. A tour of where that shows:

# %%
from minigrad_viz import tour

stops = [
    (loss, "Forward is done: three equal scores, and a loss of ln 3."),
    ("seed", "Backward begins: the gradient of the loss itself is 1."),
    (("s0", "loss"), "The minus sign: −1 arrives at the right score. “Push it up!”"),
    (("s2", "backward"), "By the logarithm and the power, ⅓ arrives at a wrong score: its probability."),
    (("s0", "backward"), "The right score has got ⅓ as well, its probability, and −1: together −⅔."),
]
player = tour(loss, stops)
player

# %% [markdown]
# You should see the graph from above, and while this notebook runs the tour over it. Then, the three scores as sliders:

# %% tags=["nbval-ignore-output"]
from ipywidgets import HBox

HBox([player.slider(name, min=-4, max=4) for name in ("s0", "s1", "s2")])

# %% [markdown]
# Move the right score, $s_0$, up. The loss falls, and all three gradients fade: with $s_0 = 4$ its probability is
# 0.965, so that only −0.035 is left to be learned. Move it down, and the gradient goes to −1, never beyond: the worse
# an answer, the harder the push, up to a limit.

# %% [markdown]
# ## Compare with the library, and with nudging
#
# `mg.gradcheck` nudges every input of a function and compares the result with the backward pass. It says `True`, or
# stops with an error that names the slope that is off:

# %%
mg.gradcheck(lambda *scores: cross_entropy(scores, target=1), [1.0, -2.0, 0.5])

# %% [markdown]
# And for all 67 parameters of the network, on one flower: how far is the backward pass from nudging, at most?

# %%
x, y = flowers.train_x[0], flowers.train_y[0]
cross_entropy(model(x), y).backward()


def loss_with(parameter, number):
    parameter.data = number
    return cross_entropy(model(x), y).data


worst, h = 0.0, 1e-5
for parameter in model.parameters():
    middle = parameter.data
    slope = (loss_with(parameter, middle + h) - loss_with(parameter, middle - h)) / (2 * h)
    parameter.data = middle
    worst = max(worst, abs(slope - parameter.grad))
print(f"off by less than a millionth: {worst < 1e-6}")

# %% [markdown]
# ## Let it learn
#
# The loop from [lesson 3](03_gradients_add_up.ipynb): compute the loss (the mean over all the flowers), forget, go
# backward, take a step, here of half the slope. One turn of this loop builds a graph of some 16,000 operations and
# walks back through it. While it runs, you should see a bar that fills, with the loss beside it.

# %% tags=["nbval-ignore-output"]
from tqdm.auto import tqdm

losses = []
bar = tqdm(range(60), desc="learning")
for _ in bar:
    flower_losses = [cross_entropy(model(x), y) for x, y in zip(flowers.train_x, flowers.train_y, strict=True)]
    loss = sum(flower_losses) / len(flower_losses)
    model.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        parameter.data -= 0.5 * parameter.grad
    losses.append(loss.data)
    bar.set_postfix(loss=f"{loss.data:.3f}")

# %%
right = accuracy(model, flowers.test_x, flowers.test_y)
print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.2f} in the end")
print(f"test flowers that it gets right: {right:.0%}")

# %% [markdown]
# It has never seen these flowers, and gets 29 of the 30 right. You should see below how the loss fell in 60 steps, from
# 1.16 to 0.11, fast at first and then ever more slowly.

# %%
plot = Plot(xlabel="step", ylabel="loss", ylim=(0, None))
plot.line(range(60), losses)
plot

# %% [markdown]
# ## What has it learned?
#
# We ask the network about petals of every size (the sepals are held at their mean, 0) and colour each point of the map
# by the species whose score is ahead. You should see three regions, with the test flowers on top: blue circles for
# *setosa*, orange triangles for *versicolor*, green squares for *virginica*. Where one region ends and the next begins
# is a **decision boundary**. Nobody drew those lines: they are what 67 numbers came to say.
#
# The one flower that it gets wrong is the orange triangle farthest to the right, just past the boundary. (The green
# square beside it lies across the boundary, too. But the map takes every sepal for an average one, and its own sepals
# put it right.)

# %%
lengths = [0.5 + 0.1 * i for i in range(71)]
widths = [0.05 * i for i in range(55)]


def answer_in_cm(length, width):
    petal = [(cm - flowers.mean[i]) / flowers.deviation[i] for i, cm in ((2, length), (3, width))]
    return answer(model, [0.0, 0.0, *petal])


answers = [[answer_in_cm(length, width) for length in lengths] for width in widths]
plot = Plot(xlabel="petal length (cm)", ylabel="petal width (cm)", legend="lower right")
plot.regions(lengths, widths, answers)
add_petals(plot, flowers.test_x, flowers.test_y)
plot

# %% [markdown]
# ## Draw it, from flower to loss
#
# And this is what was differentiated, sixty times for each flower: the loss of one flower, in full. That is too large
# to be read box by box. So the picture has blocks: each layer is one, and in it each neuron. What we compute beside the
# model we may name, too: what is computed inside `with mg.scope("cross-entropy")` is one block. (So that the picture is
# the same on every computer, whatever its last digits, it shows a copy of the network with all numbers rounded.)

# %%
import copy

rounded = copy.deepcopy(model)
for parameter in rounded.parameters():
    parameter.data = round(parameter.data, 1)

rounded.zero_grad()

# %%
flower = [mg.Value(round(x, 1), name) for x, name in zip(flowers.test_x[0], flowers.features, strict=True)]
scores = rounded(flower)
for number, score in enumerate(scores):
    score.label = f"score {number}"
with mg.scope("cross-entropy"):
    loss = cross_entropy(scores, flowers.test_y[0])

# %%
loss.backward()
last = rounded.layers[1].neurons[2]
whole = [
    (loss, "A flower has passed through: four measurements, eight neurons, three scores, a loss."),
    ("seed", "Now back. The gradient of the loss itself is 1."),
    ((scores[2], "backward"), "Score 2 is the first to hear how much it is to blame."),
    ((last.b, "backward"), "Its neuron has told its weights, and the eight before it, which wait for two more."),
    ((scores[0], "backward"), "Scores 1 and 0 have heard, too; score 0 is about to pass it on."),
    ("end", "All eight have heard from all three: each of the 67 parameters knows which way to turn."),
]
tour(loss, whole, granularity="op")  # a step for each operation


# %% [markdown]
# You should see the network itself. Four dark boxes on the left are the measurements of one flower. Each goes to all of
# the eight neurons, and what these answer goes to all of the last three; the cross-entropy from above makes a single
# number of it. A stack is a **closed** block: a neuron of the first layer has 9 operations and 5 parameters in it, and while this notebook runs a click opens it. The (!) is a warning: $\tanh$ is
# nearly flat where neuron 4 works for this flower, so there is little for it to learn here.
#
# Every line is a multiplication of the chain rule, or several, and the gradient of each parameter is the sum over all
# the paths that lead from it to the loss: lessons 1, 2 and 3, all at once. (The measurements have gradients too, but
# nobody turns those.)

# %% [markdown]
# ## Break it
#
# What happens without the precaution, the largest score that is subtracted first? For small scores, nothing at all. For
# large ones:

# %%
def careless(scores, target):
    powers = [score.exp() for score in scores]
    return -(powers[target] / sum(powers)).log()


for size in (1.0, 1000.0):
    scores = [mg.Value(size), mg.Value(0.0), mg.Value(-size)]
    print(f"scores up to {size:g}: {careless(scores, 0).data:.3f}, with care {cross_entropy(scores, 0).data:.3f}")

# %% [markdown]
# `nan` means “not a number”: $e^{1000}$ became infinite, and infinity divided by infinity is nothing at all. One step
# with such a gradient, and all 67 parameters would be `nan` too. Scores do grow while a network learns, which is why
# such bugs tend to strike after hours.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if
# something is.

# %%
from minigrad import lessons


# %% [markdown]
# ### Exercise 4.1 · Softmax
#
# Write a function that turns a list of scores (plain numbers) into a list of probabilities. It should not mind a score
# of 1000. (`mg.exp` takes plain numbers, too.)

# %%
def softmax(scores):
    return ...


# %%
lessons.check("04.1", softmax)


# %% [markdown]
# ### Exercise 4.2 · The simplest gradient
#
# Write a function that is given the list `p` of three probabilities and the number `target` of the right one, and
# returns the list of the slopes of the cross-entropy by the three *scores*.

# %%
def score_gradient(p, target):
    return ...


# %%
lessons.check("04.2", score_gradient)

# %% [markdown]
# ### Exercise 4.3 · Petals are enough
#
# Train a network that sees only the petals, `x[2:]`, and gets at least 27 of the 30 test flowers right. Give the
# trained model to the check. (Make a new MLP, from 2 inputs to 3 scores, and copy the loop. When it works,
# `petal_model` is your trained model in place of the `...`.)

# %%
petal_model = ...

# %%
lessons.check("04.3", petal_model)

# %% [markdown]
# ## Where this comes from
#
# - E. Anderson, “The irises of the Gaspé Peninsula”, *Bulletin of the American Iris Society* 59 (1935), pages 2–5: the
#   flowers.
# - R. A. Fisher, “The use of multiple measurements in taxonomic problems”, *Annals of Eugenics* 7 (1936), pages
#   179–188: the table of 150, and the first formula, a linear one, to tell them apart.
# - D. E. Rumelhart, G. E. Hinton and R. J. Williams, “Learning representations by back-propagating errors”, *Nature*
#   323 (1986), pages 533–536: layers that learn.
# - J. S. Bridle, “Probabilistic interpretation of feedforward classification network outputs”, in *Neurocomputing*,
#   Springer (1990), pages 227–236: softmax, and its name.
#
# Each step of that loop built the same graph anew. Must it? **[5 · The tape](05_the_tape.ipynb)**
