# %% [markdown]
# # 18 · Inside a PyTorch model
#
# *Before: [17 · Gradients add up, again](17_gradients_add_up_again.ipynb)*
#
# ## The question
#
# Most networks that you will meet are written in PyTorch. Its tensors have the methods that you know from this course, and its `backward` does what
# that of [lesson 5](05_the_tape.ipynb) does. But it is compiled: you call it, and a moment later each parameter has a `.grad`. If that is `None`, or `nan`, or simply wrong, there is nothing between the call and the result that you could look at.
#
# This lesson needs PyTorch, which minigrad itself does not. The first cell says how to get it, if it is missing.

# %%
try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("Lesson 18 looks into PyTorch. Install it first: pip install torch") from error

from torch import nn

import minigrad as mg


# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 3)
        self.output = nn.Linear(3, 1)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return self.output(h)


# %%
def in_eighths(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((8 * parameter).round() / 8)
    return model


torch.manual_seed(4)
net = in_eighths(Net())
x = torch.tensor([[2.0, -2.0], [1.0, -2.0]])
t = torch.tensor([[1.0], [0.0]])

# %% [markdown]
# Two inputs, three hidden units, one output; two samples and their targets. (The weights are random, and rounded to eighths, so that all values below are exact, and you see the same ones as we do.)

# %%
loss = nn.functional.mse_loss(net(x), t)
loss.backward()
print(loss)
print(net.hidden.weight.grad)


# %% [markdown]
# That is all that PyTorch shows: a loss with the name of the function that will be called first on the way back, and a table of six values.
#
# **Where does a value in `.grad` come from, and how do you see it without changing the model?**
#
# ## Guess: nudge a weight
#
# Take the first weight, 0.125, which leads from the first input to the first hidden unit. The unit fires for both samples, and is multiplied by 0.5 in the output. The first sample's output is too low by about 0.16, the second's
# too high by about 0.39. If the weight goes up, does the loss go up, or down? Decide before you run the cell. (While no unit begins or ceases to fire, the loss is a square of the weight, so a nudge of $\frac1{16}$ to either side is exact, as in [lesson 3](03_gradients_add_up.ipynb).)

# %%
def nudge(model, weight, h=1 / 16):
    found = []
    for k in range(weight.numel()):
        losses = []
        for by in (h, -2 * h, h):  # up, down, and back to where it was
            with torch.no_grad():
                weight.view(-1)[k] += by
                losses.append(nn.functional.mse_loss(model(x), t).item())
        found.append((losses[0] - losses[1]) / (2 * h))
    return torch.tensor(found).view_as(weight)


print(nudge(net, net.hidden.weight))


# %% [markdown]
# It goes up, with a derivative of 0.04: the second sample wins, though only just. Its error is more than twice as large, but its input is half as large. The table agrees with `.grad`. So PyTorch is right, and we still do not know how it came to this.
#
# ## Build it: the way back
#
# In lesson 5 each result knew how it was computed. PyTorch keeps the same record: `loss.grad_fn` is a *node*, an object for one operation, and its `next_functions` are the nodes of the operands. A node can be *called*: with the
# gradient of its result, it returns a contribution for each of its operands. So these are its gradient rules ([lesson 7](07_gradient_rules.ipynb)), compiled, and we may use them one at a time.

# %%
def in_order(node, seen):
    """Return the nodes that lead to `node`, each after its operands."""
    if node is None or node in seen:
        return []
    seen.add(node)
    return [one for operand, _ in node.next_functions for one in in_order(operand, seen)] + [node]


for node in reversed(in_order(loss.grad_fn, set())):
    print(node.name(), "for", [operand and operand.name() for operand, _ in node.next_functions])


# %% [markdown]
# You should see ten lines, from the loss down to the leaves. `Addmm` is a matrix product with a bias added, the whole of `nn.Linear` in one operation; `T` is a transpose, since a layer stores its weights as (outputs, inputs). `AccumulateGrad` is the end of a path: it belongs to a parameter, and
# adds what arrives to its `.grad`. And `None` stands for an operand that needs no gradient: here it is `t`, and $x$.
#
# The backward pass is the one of lesson 5, with two additions. A node may return one tensor or a tuple. And the rule for the bias returns a row for each sample, which has to be summed to the shape of the bias, as after each broadcast ([lesson 6](06_tensors.ipynb)). We compute the loss again first, since `loss.backward()` has freed what the rules of the old one had saved.

# %%
def backward(loss):
    arrived = {loss.grad_fn: torch.ones_like(loss)}
    found = {}
    for node in reversed(in_order(loss.grad_fn, set())):
        gradient = arrived[node]
        if hasattr(node, "variable"):  # an AccumulateGrad
            found[node.variable] = gradient.sum_to_size(node.variable.shape)
            continue
        contributions = node(gradient)
        if not isinstance(contributions, tuple):
            contributions = (contributions,)
        for (operand, _), contribution in zip(node.next_functions, contributions, strict=True):
            if operand is not None:
                arrived[operand] = arrived.get(operand, 0) + contribution
    return found


# %%
again = nn.functional.mse_loss(net(x), t)
ours = backward(again)
for name, parameter in net.named_parameters():
    print(f"{name:<15} equal to .grad: {torch.equal(ours[parameter], parameter.grad)}")

# %% [markdown]
# `True` four times, to the last digit: it is PyTorch's own arithmetic, in Python's order. And now every contribution passes before our eyes. (This version is for nodes with a single result. An operation such as `split` has several; there, the second entry of each pair in `next_functions` says which one is meant.)
#
# ## Build it: the way forward
#
# The graph has no values in it, no names and no modules; and what needs no gradient is missing. For that we have to be there *while* the model computes. PyTorch allows it: a `TorchFunctionMode` is called in place of each function of PyTorch, and calls it.

# %%
from torch.overrides import TorchFunctionMode


class Watcher(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        print(f"{function.__name__:<9} {tuple(result.shape)!s:<7} needs a gradient: {result.requires_grad}")
        return result


with Watcher():
    nn.functional.mse_loss(net(x), t)

# %% [markdown]
# Four calls, and nothing in the model was changed for it. Line by line that is the forward pass of `Net`. With these two pieces, the calls on the way forward and the nodes on the way back, one can draw any model. minigrad's player does it with the same two, and a few more.
#
# ## Draw it
#
# `record` goes around the code as it is; `draw` draws what was recorded. The two may be far apart, and `backward` may be called before the drawing, or after, or not at all. It is the same `record` and `draw` that you know, and they take both kinds of tensors.

# %%
from minigrad_viz import draw, record

net.zero_grad()
with record():
    prediction = net(x)
    loss = nn.functional.mse_loss(prediction, t)
draw(loss, expand=True)

# %% [markdown]
# You should see a block for each module, with its name, its type and the number of its parameters: `net`, and within it `hidden` and `output`. Between them, in `net` but in neither of the layers, is the ReLU. The dark cards are leaves: $x$, $t$, and in each layer its `weight` and its `bias`. Every other card is an operation, with a formula in the notation of this course, and is named after your variable
# if there is one (`prediction`, `loss`). A card has the shape and the dtype of its tensor and a heat map of its values. At $x$ and $t$ it says *blocked*: no gradient goes there, as their dashed outlines and dotted edges show. All other cards wait for theirs. (Without `expand=True`, `hidden` and `output` would be closed; a click opens a block.)
#
# ## Step it
#
# `step` plays the graph, forward and backward, in 12 steps: four operations, the 1 with which the way back begins, and seven edges. Here is the moment after eight of them, at which a gradient has come to the hidden units. First as a picture, then as a player:

# %%
from minigrad_viz import step

draw(loss, step=8)

# %%
step(loss, position=8)

# %% [markdown]
# You should see the forward pass complete, and the way back half done: the edge that is lit leads from `output`, which is closed here, to the result of the ReLU, and carries a *contribution*. Above the graph is its arithmetic: $g$ times the weights of `output`, where $g$ is the gradient of `prediction`. With → in the player, the gradient goes
# on to the ReLU, which lets it pass where the unit fires (five of the six), and then to `hidden`.
#
# Click a card, and the panel explains this one; `explain` prints the same. Here is the weight of the layer `hidden`:

# %%
from minigrad_viz import explain

print(explain(net.hidden.weight))

# %% [markdown]
# Read it from the left. The gradient arrives through one operation, $v_3$. Its rule is $g^\mathsf{T} x$, where $g$ is what came to $v_3$, a row for each sample and a column for each unit. With two samples that is a sum of two terms, and the second one was the larger: that is the answer to our guess.
#
# ## Compare with the library
#
# None of these contributions was computed by a formula of minigrad's. The player calls the nodes of PyTorch, as we did above, in the order in which the engine of PyTorch calls them. So the sum of the contributions on the edges to a parameter should be `.grad`, bit for bit. Is it?

# %%
drawn = draw(loss).trace
loss.backward()
sums = {}
for edge, contribution in zip(drawn.passes[0].edge, drawn.passes[0].contribution, strict=True):
    node = drawn.operand[edge]
    sums[drawn.names[node]] = sums.get(drawn.names[node], 0) + torch.tensor(contribution)
for name, parameter in net.named_parameters():
    assert torch.equal(sums[name], parameter.grad)
    print(f"{name:<15} {tuple(parameter.shape)!s:<7} the sum of its contributions is .grad")

# %% [markdown]
# It is. So what you see in the player is what your training loop gets, and not a reconstruction. Now for the riddles. All but the last are mistakes that PyTorch accepts without a word. Try to name the cause *before* you look at its drawing.
#
# ## Break it: a loss that is finite, and gradients that are not
#
# We look for a `place` with a small mean distance from two marks. The loss is 1, which is right: the distances are 0 and 2.

# %%
place = torch.tensor([3.0, 4.0], requires_grad=True)
marks = torch.tensor([[3.0, 4.0], [3.0, 2.0]])
with record():
    away = place - marks
    distance = away.square().sum(1).sqrt()
    loss = distance.mean()
loss.backward()
print(loss.item(), place.grad)

# %% [markdown]
# The loss is a fine number, the gradient is `nan`, and one step of an optimizer makes it that of `place`. Where does it come from?

# %%
draw(loss)


# %% [markdown]
# You should see an alarm below the graph: *The first infinity of the backward pass is in ∂loss/∂v₅, through distance, in 1 of 2 elements.* So it is the square root. The derivative of $\sqrt s$ is $\frac{1}{2\sqrt s}$, and at 0 that is infinite. The `nan` follows two edges later: the derivative of the square is $2 \cdot \text{away}$, which is 0 there, and
# $\infty \cdot 0$ is not a number.
#
# PyTorch has a search of its own, `torch.autograd.set_detect_anomaly(True)`. It stops at the first `nan`. That is the *square*, where nothing is wrong, one operation after the infinity. (The remedy is exercise 18.3. It is less obvious than it looks.)
#
# ## Break it: a gradient that does not arrive
#
# The next one seems to learn: its loss falls. Only it falls more slowly than it should. A look at the parameters shows that the layer `hidden` never moves.

# %%
class Frozen(Net):
    def forward(self, x):
        h = torch.relu(self.hidden(x))
        self.activity = h.detach().mean(0)  # to plot it later
        h = h.detach() if self.training else h
        return self.output(h)


frozen = Frozen()
frozen.load_state_dict(net.state_dict())
with record():
    loss = nn.functional.mse_loss(frozen(x), t)
loss.backward()
print(frozen.hidden.weight.grad)

# %%
draw(loss)


# %% [markdown]
# You should see the same loss as before, and the same blocks. But between the ReLU and `output` there is a new card, `detach`; it and all that leads to it has a dashed outline and dotted edges, and is blocked like $x$. So that is where the gradient ends. The card has its line of source: click it in the player. Somebody wrote it while they trained only the last layer, and left it there. (`with torch.no_grad():` around a
# line looks the same in the drawing, without a card for it: its results are blocked. `.tolist()` and `.numpy()` leave even less: what comes after is a leaf, and the layers before it are not in the graph at all.)
#
# `None` can be found without a drawing. This one cannot:

# %%
class Scaled(Net):
    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return self.output(h / h.amax().item())


scaled = Scaled()
scaled.load_state_dict(net.state_dict())
with torch.no_grad():
    scaled.hidden.bias[0] += 0.25  # so that the largest activation is 1
    scaled.output.bias += 1  # so that the loss is large
with record():
    loss = nn.functional.mse_loss(scaled(x), t)
loss.backward()
nudged = nudge(scaled, scaled.hidden.weight, 1 / 256)
for way, gradient in ("backward", scaled.hidden.weight.grad), ("nudged", nudged):
    print(f"{way:<10}", *[f"{value:6.2f}" for value in gradient.flatten().tolist()])

# %% [markdown]
# Every parameter has a gradient, and of these six the first two are wrong: the nudges say so. They belong to the first unit. Look for a card that is blocked:

# %%
draw(loss)

# %% [markdown]
# You should see the activations divided by a card without a name, the constant 1.0. *A constant?* It was the largest activation, which depends on the weights like every other. But `.item()` made it a Python number, and Python's numbers have no history. Without `.item()` there would be a second path from $h$ to the division, and a second contribution.
# Sometimes such a thing is meant: then write `h.amax().detach()`, which says so.
#
# ## Break it: twice as much
#
# Here are two backward passes for the same batch, from the same weights.

# %%
net.zero_grad()
for number in (1, 2):
    with record():
        loss = nn.functional.mse_loss(net(x), t)
    loss.backward()
    print(number, net.hidden.weight.grad[0])

# %%
draw(loss)

# %% [markdown]
# You should see the alarm of lesson 3: *The gradient of hidden.weight contains more than this pass: backward() accumulates into .grad, unless it began at a later result. The same applies to 3 other leaves. Call zero_grad() before each backward().* The player knows what this pass contributed, and compares. In [lesson 11](11_when_it_goes_wrong.ipynb) the loss curve did not show that mistake for a hundred steps.
#
# ## Break it: an operand that was overwritten
#
# The last one stops with an error, but the error is a riddle. The player shows it before you call `backward`:

# %%
area = torch.tensor([4.0, 9.0], requires_grad=True)
with record():
    side = area.sqrt()
    side += 1
    total = side.sum()
draw(total)

# %% [markdown]
# You should see the alarm with the message of PyTorch, which speaks of *output 0 of Sqrt*, and of versions. The drawing shows what is meant: the card before `side`, the result of the square root. The rule of the root has saved it, because the derivative $\frac{1}{2\sqrt s}$ is one half over the result. Then `+=` wrote its sum *into the same memory*. The drawing
# has both, 2 and 3, and then 3 and 4, since the values were copied while they were there. Write `side = side + 1`, and the result has memory of its own.
#
# ## A model with more layers
#
# `draw(model, x)` needs no loss and no `record`: it runs the model once, on a given input, and leaves it as it was (also its random numbers, the running means of its batch norms, and every `.grad`). Here is a convolutional network ([lesson 10](10_convolution.ipynb)) with one of minigrad's digits, handed over as a list.

# %%
from collections import OrderedDict

digits = mg.data.digits()
image = torch.tensor(digits.train_x[:1].tolist())


def stage(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


torch.manual_seed(0)
parts = {"first": stage(1, 4), "second": stage(4, 8), "flat": nn.Flatten(), "scores": nn.Linear(32, 10)}
classifier = in_eighths(nn.Sequential(OrderedDict(parts)))
draw(classifier, image, expand=False)

# %% [markdown]
# You should see the four parts of `classifier`, closed, with the shapes of what goes in and what comes out. Blocks nest as the modules do, so open only what you want to look at. In the player a click opens a block; in a picture, `expand` lists their names:

# %%
draw(classifier, image, expand=["classifier", "first"])

# %% [markdown]
# You should see the same, with the `first` part open: a convolution, a ReLU and a pooling, which halves the image. A transformer of twelve layers is drawn in the same way; begin with everything closed.
#
# (In a notebook there is a shorter way for code that is in a cell already: after `%load_ext minigrad_viz`, a first line `%%trace` plays what the cell computed. It also draws a cell that *fails*, up to the call that raised the error.)
#
# ## Two runs that should agree
#
# A network was saved, and loaded again. It has the same code and the same parameters, and another loss.

# %%
state = net.state_dict()
state["output.weights"] = state.pop("output.weight")  # as an older version of the program called it

loaded = Net()
nn.init.constant_(loaded.output.weight, 0.25)
loaded.load_state_dict(state, strict=False)

with record():
    saved_loss = nn.functional.mse_loss(net(x), t)
    loaded_loss = nn.functional.mse_loss(loaded(x), t)
print(f"{saved_loss.item():.2f} and {loaded_loss.item():.2f}")

# %%
from minigrad_viz import compare

compare(saved_loss, loaded_loss)

# %% [markdown]
# You should see one graph with two values on each card, and a sentence that names the first that differs: *an input: output.weight*. Only $x$ and $t$ agree in everything, and are pale. In `hidden` the values agree and the gradients differ, since they have come through `output`: all that differs follows from that one weight. With `strict=False`, PyTorch skips what does not fit, and only its return value says so. `compare` is for any two runs of the same code: in
# `float32` and `float64`, on the CPU and on the GPU, before and after a change of the data.
#
# ## How it works
#
# Everything is observed from outside; your model stays as it is.
#
# | what is drawn | what it is observed with |
# |---|---|
# | functions that you call (`linear`, `relu`), and their source lines | a `TorchFunctionMode`, like our `Watcher` |
# | the operations that they consist of (`addmm`), and every value, copied at once | a `TorchDispatchMode`, one level below |
# | modules, as blocks | hooks before and after each module's `forward` |
# | your own `backward()` | a hook on each node, which reads what goes in and out |
# | a backward pass that you have not run | the nodes, called one by one, like our `backward`; it writes no `.grad` |
#
# Values of more than 10,000 elements are summarised where they are, so that nothing large is copied. Still, recording costs time. Put it around one step of your loop, the one that you want to see, and not around a training.
#
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 18.1 · Two arrows
#
# ```python
# w = torch.tensor(2.0, requires_grad=True)
# h = w * 3
# loss = h * h - h.detach() * w
# loss.backward()
# ```
#
# Without running it: which contribution arrives at `w` through `h`, and which through the product `h.detach() * w`? What is `w.grad`, and what is it if the last three lines are run `again`, with no `zero_grad` in between? (Then record it and step it.)

# %%
arrows = {"h": ..., "product": ..., "grad": ..., "again": ...}

# %%
lessons.check("18.1", arrows)

# %% [markdown]
# ### Exercise 18.2 · Does it arrive?
#
# With `w = torch.tensor([1.0, 2.0], requires_grad=True)` and `x = torch.tensor([3.0, -1.0])`, which of these losses give `w` a gradient that is not 0 everywhere? Write `True` or `False`. (If `backward` raises an error, because the loss does not depend on anything that needs a gradient, that is a `False`.)
#
# - A: `(w * w.detach()).sum()`
# - B: `(w.data * x).sum()`
# - C: `(w / w.max().item()).sum()`
# - D: `torch.relu(w * x - 4).sum()`
# - E: `(w * x).round().sum()`
# - F: `torch.where(w > 0, w, w.detach()).sum()`
# - G: `torch.tensor((w * x).tolist()).sum()`

# %%
arrives = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ..., "G": ...}

# %%
lessons.check("18.2", arrives)


# %% [markdown]
# ### Exercise 18.3 · A length that can be 0
#
# `v` is a PyTorch tensor of shape (rows, n). Return the length of each row, $\sqrt{v_1^2 + \dots + v_n^2}$, so that it is right for every row, also for very short ones, and the gradient of a row of zeros is 0. (A `torch.where` around the root does not do it. Draw what becomes of the gradient there, and you will see why. Please do it without PyTorch's own norms; afterwards, compare with `torch.linalg.vector_norm`.)

# %%
def lengths(v):
    return ...


# %%
lessons.check("18.3", lengths)


# %% [markdown]
# ### Exercise 18.4 · Repair a training in PyTorch
#
# This should train both layers of a `Net` for `steps` steps, on all samples at once, and return the losses as Python floats. It runs without an error, and it has three faults:
#
# ```python
# def train(model, x, t, steps):
#     optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
#     losses = []
#     for _ in range(steps):
#         with torch.no_grad():
#             h = torch.relu(model.hidden(x))
#         loss = (model.output(h) - t).square().mean()
#         loss.backward()
#         optimizer.step()
#         losses.append(loss)
#     return losses
# ```
#
# Record a step of it, draw the loss, and repair it.

# %%
def repaired(model, x, t, steps):
    return ...


# %%
lessons.check("18.4", repaired)

# %% [markdown]
# ## Where this comes from
#
# - A. Paszke and others, “Automatic differentiation in PyTorch”, NIPS Autodiff Workshop (2017): the graph of nodes, and why in-place operations have versions.
# - A. Paszke and others, “PyTorch: an imperative style, high-performance deep learning library”, NeurIPS (2019).
# - *Autograd mechanics*, in the documentation of PyTorch: what is saved, when it is freed, and what `no_grad` and `detach` do.
# - *Extending PyTorch*, in the same documentation: `TorchFunctionMode` and `TorchDispatchMode`.
#
# ## Where to go from here
#
# This was the last lesson. It began with a neuron and a nudge, and all that came since is one idea: a computation that records
# its operations can be differentiated. And what was recorded can be looked at, in the library of this course and in the one that you will work with.
#
# From here, take a program of your own and look inside. The `examples/` train models on real data, each in a file to copy
# from. To see how minigrad works, begin with `minigrad/core/graph.py`, where the chain rule is, and add an operation;
# `CONTRIBUTING.md` says how. And what you have learned has the same names in PyTorch: `backward`, `create_graph`,
# `torch.autograd.Function`, `DistributedDataParallel`.
#
# Back to the beginning: [1 · One neuron](01_one_neuron.ipynb).
