# %% [markdown]
# # 5 · The tape
#
# *Before: [4 · A network of Values](04_a_network_of_values.ipynb) · Next: [6 · Tensors](06_tensors.ipynb)*

# %% [markdown]
# ## The question
#
# In [lesson 4](04_a_network_of_values.ipynb) a network of `Value`s learned to tell irises apart. Each turn of its loop
# made some 16,000 new Python objects, linked them to a graph, walked back through it, and threw it away. The next turn
# made *the same* graph again, from other numbers.
#
# **If only the numbers change, can we write down once what is to be done, and then only do it?**

# %% [markdown]
# ## Guess: what stays the same?
#
# Here are two graphs of one formula, made from different numbers. (`in_order` is that of [lesson
# 2](02_the_chain_rule.ipynb): each value after those that it was made from. It fills a dict, since `in` with a list
# would compare the numbers of two `Value`s.) Before you run the cell: which columns will agree?

# %%
import minigrad as mg


def in_order(value, order):
    if value not in order:
        for operand in value.inputs:
            in_order(operand, order)
        order[value] = len(order)
    return order


def graph(x, y):
    a, b = mg.Value(x, "a"), mg.Value(y, "b")
    return (a + b) * (a * b)


for first, second in zip(in_order(graph(2.0, 3.0), {}), in_order(graph(-1.0, 0.5), {}), strict=True):
    ops = [value.op.name if value.op else value.label for value in (first, second)]
    print(f"{ops[0]:4} {first.data:5g}    {ops[1]:4} {second.data:5g}")


# %% [markdown]
# You should see the same operations in the same order, and other numbers. What a graph *does* is said by the first
# column, together with one thing more: which numbers each operation reads. That is a **program**: a list of
# instructions. It is what this lesson writes down.

# %% [markdown]
# ## Build it: rows that read rows
#
# Give each number a **row**, counted from 0: first the leaves, then the results in topological order. An instruction
# names its operation, and the rows that it reads. Where it writes needs no saying: to the next row.

# %%
def flatten(output, leaves):
    rows, program = {leaf: row for row, leaf in enumerate(leaves)}, []
    for value in in_order(output, {}):
        if value not in rows:
            program.append((value.op.name, *[rows[operand] for operand in value.inputs]))
            rows[value] = len(rows)
    return program


a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
y = (a + b) * (a * b)
program = flatten(y, [a, b])
program

# %% [markdown]
# Read it aloud: row 2 is row 0 plus row 1; row 3 is row 0 times row 1; row 4 is row 2 times row 3. There is no `Value`
# in it and no name, only words and whole numbers. To run it, go down the list:

# %%
VALUE = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y}


def forward(program, leaves):
    values = list(leaves)
    for op, *reads in program:
        values.append(VALUE[op](*[values[row] for row in reads]))
    return values


print(forward(program, [2.0, 3.0]))
print(forward(program, [-1.0, 0.5]))

# %% [markdown]
# You should see the two columns of numbers from above, leaves first. And backward? The same list, read from its end.
# Every row has a gradient as well, 0 at first and 1 for the last. An instruction takes the gradient of its own row,
# multiplies it by a local slope for each row that it read, and adds that there, with the `+=` of [lesson
# 3](03_gradients_add_up.ipynb):

# %%
SLOPES = {"add": lambda x, y: (1.0, 1.0), "mul": lambda x, y: (y, x)}


def backward(program, values):
    gradients = [0.0] * (len(values) - 1) + [1.0]
    row = len(values)
    for op, *reads in reversed(program):
        row -= 1
        slopes = SLOPES[op](*[values[read] for read in reads])
        for read, slope in zip(reads, slopes, strict=True):
            gradients[read] += gradients[row] * slope
    return gradients


print(backward(program, forward(program, [2.0, 3.0])))

# %% [markdown]
# The list is a **tape**: played forward it gives values, played backward gradients. Once it is written, a run makes no
# graph and asks no questions. It reads numbers from a row and writes numbers to a row.

# %% [markdown]
# ## Draw it
#
# You should see the graph that the program was made from, with the gradients that were just printed: 21 for $a$ and 16
# for $b$.

# %%
# %load_ext minigrad_viz

y.backward()
y

# %% [markdown]
# ## Step it
#
# You should see the same boxes. While this notebook runs, the player goes through them as the program goes through its
# rows, and back. It stands in the middle of the way back: row 4 has told rows 2 and 3 what they get, and these are
# about to pass it on.

# %%
from minigrad_viz import step

step(y, position=6)

# %% [markdown]
# ## Compare with the library
#
# `mg.Tape` does the same for every operation. Printed, it is the table that we wrote, with the numbers beside it.
# (`device="python"` says who computes; more about that in a moment.)

# %%
tape = mg.Tape(y, device="python")
tape.backward()
print(tape)

# %% [markdown]
# You should see our three instructions in rows 2, 3 and 4. With other numbers:

# %%
print("value:   ", tape.forward({"a": -1.0, "b": 0.5}), "and ours:", forward(program, [-1.0, 0.5])[-1])
tape.backward()
print("gradient:", tape.gradients[a], "and ours:", backward(program, forward(program, [-1.0, 0.5]))[0])

# %% [markdown]
# A tape is a copy. The graph still holds the numbers that it was made with, and so do its leaves, until `tape.write()`
# tells them:

# %%
print("before:", a.data, b.data, y.data)
tape.write()
print("after: ", a.data, b.data, y.data)

# %% [markdown]
# ## The irises again
#
# This is the network of lesson 4, with its loss: the mean of the cross-entropy over the 120 flowers. The graph of it is
# built *once*.

# %%
from minigrad.data import iris

flowers = iris()
model = mg.nn.scalar.MLP([4, 8, 3], seed=0)


def cross_entropy(scores, target):
    top = max(score.data for score in scores)
    scores = [score - top for score in scores]
    first, *others = [score.exp() for score in scores]
    return sum(others, first).log() - scores[target]


def mean_loss():
    losses = [cross_entropy(model(x), y) for x, y in zip(flowers.train_x, flowers.train_y, strict=True)]
    return sum(losses) / len(losses)


# %%
loss = mean_loss()
tape = mg.Tape(loss, parameters=model.parameters())
print(f"{len(tape):,} rows, {len(tape.parameters)} of them are parameters")

# %% [markdown]
# One turn of the loop is now three lines, none of which makes a `Value`. `tape.step(0.5)` subtracts half the gradient
# from each parameter, in the tape. You should see the losses that lesson 4 came to in the end, and the same answers.

# %%
losses = []
for _ in range(60):
    losses.append(tape.forward())
    tape.backward()
    tape.step(0.5)
tape.write()  # the parameters of the model have the numbers of the tape now


def answer(x):
    scores = [score.data for score in model(x)]
    return scores.index(max(scores))


hits = sum(answer(x) == y for x, y in zip(flowers.test_x, flowers.test_y, strict=True))
print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.2f} in the end")
print(f"{hits} of {len(flowers.test_y)} test flowers are right")

# %% [markdown]
# How much quicker is it? One turn with a graph, against the mean of a hundred with the tape:

# %% tags=["nbval-ignore-output"]
from time import perf_counter

start = perf_counter()
mean_loss().backward()
by_graph = perf_counter() - start

start = perf_counter()
for _ in range(100):
    tape.forward()
    tape.backward()
by_tape = (perf_counter() - start) / 100

print(f"the graph takes {by_graph / by_tape:,.0f} times as long as the tape, on {tape.device}")

# %% [markdown]
# You should see some hundreds, or more than a thousand, on `cpu`. Where do they come from?
#
# - Nothing is made. A `Value` is a Python object, some hundred bytes with its links; a row is eight bytes in an array.
# - Nothing is asked. The order was found once, and so was the answer to “which rule belongs to this operation?”.
# - Where Taichi is installed, a compiler that [lesson 8](08_kernels_and_devices.ipynb) is about, the whole program
#   becomes machine code for the processor (`cpu`). Where it is not, NumPy, Python's library for arrays of numbers, goes
#   through it in **runs**: neighbouring rows with the same operation, all at once (`numpy`). Where there is neither,
#   Python goes down the list as our `forward` did (`python`). These two are only a few times as quick as the graph.

# %% [markdown]
# ## One program, many samples
#
# A program can be run on a whole table of inputs, too. The map of lesson 4, which asked the network 3,905 times, is one
# call of `batch`: a row for each point, a column for each input. What comes back is a table, with a row for each point
# and a column for each score. (The parameters are rounded, so that the picture is the same on every computer.)

# %%
for parameter in model.parameters():
    parameter.data = round(parameter.data, 1)
inputs = [mg.Value(0.0, name) for name in flowers.features]
scores = mg.Tape(model(inputs), parameters=model.parameters())

lengths = [0.5 + 0.1 * i for i in range(71)]
widths = [0.05 * i for i in range(55)]
mean, deviation = flowers.mean, flowers.deviation
points = [[0.0, 0.0, (x - mean[2]) / deviation[2], (y - mean[3]) / deviation[3]] for y in widths for x in lengths]
found = scores.batch(points)
print(f"{len(found):,} rows of {len(found[0])} scores")

# %%
from minigrad_viz import Plot

answers = [list(row).index(max(row)) for row in found]
rows = [answers[i : i + len(lengths)] for i in range(0, len(answers), len(lengths))]
plot = Plot(xlabel="petal length (cm)", ylabel="petal width (cm)")
plot.regions(lengths, widths, rows)
for species, x, y in zip(flowers.species, (1.4, 4.2, 6.2), (0.3, 1.1, 2.2), strict=True):
    plot.text(x, y, species, ha="center")
plot


# %% [markdown]
# You should see the map of lesson 4, petal length to the right and petal width upward: *setosa* (blue) below on the
# left, *versicolor* (orange) in a band across the middle, and *virginica* (green) above on the right. This is how
# machines like to work: one instruction for *all* samples, and only then the next one. It is the idea behind tensors,
# to which the next lesson comes.

# %% [markdown]
# ## Break it
#
# A tape writes down what was *done*, and not why. Here is the absolute value with an `if`, as one would write it in
# Python:

# %%
def absolute(x):
    return x if x.data > 0 else -x


x = mg.Value(3.0, "x")
frozen = mg.Tape(absolute(x))
print("the tape says:", frozen.forward({"x": -2.0}))
print("the graph says:", absolute(mg.Value(-2.0)).data)

# %% [markdown]
# When the tape was made, $x$ was positive, so Python gave back $x$ itself, and that is all that the tape knows. The
# question left no trace, and the answer −2 is wrong without a word. What should be decided for each number has to be an
# operation, such as `mg.abs`, which a tape can write down:

# %%
kept = mg.Tape(mg.abs(x))
print("the tape says:", kept.forward({"x": -2.0}))

# %% [markdown]
# The `max` in our cross-entropy is such a question, too: the tape subtracts what the largest scores *were*. That is
# harmless, since what is subtracted changes no probability; only the precaution wears off as scores grow. Whoever
# records steps to play them again meets this trap: PyTorch's `torch.jit.trace` warns where a number decides, and JAX's
# `jit` refuses to answer an `if`. The graphs of [lesson 4](04_a_network_of_values.ipynb) were safe from it: built anew
# in each turn, they ask each question anew.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...`, and run its cell and the one below. The check tells you what is wrong, if
# something is.

# %%
from minigrad import lessons

# %% [markdown]
# ### Exercise 5.1 · Write a program
#
# $y = (a \cdot b + a) \cdot (a \cdot b)$. Rows 0 and 1 are $a$ and $b$. Write the program, a list of instructions like
# `("add", 0, 1)`. The product $a \cdot b$ should be computed once.

# %%
my_program = ...

# %%
lessons.check("05.1", my_program)


# %% [markdown]
# ### Exercise 5.2 · Two operations more
#
# Write `run(program, leaves)`, which gives back the list of all values, leaves first. Besides `"add"` and `"mul"` it
# should know `"neg"`, which reads one row and gives $-x$, and `"max"`, which reads two and gives the larger number.

# %%
def run(program, leaves):
    return ...


# %%
lessons.check("05.2", run)


# %% [markdown]
# ### Exercise 5.3 · And back
#
# Write `run_back(program, values)`, which gives back the list of all gradients, for `"add"`, `"mul"` and `"neg"`.
# `values` are those of a run, leaves first.

# %%
def run_back(program, values):
    return ...


# %%
lessons.check("05.3", run_back)

# %% [markdown]
# ## Where this comes from
#
# - R. E. Wengert, “A simple automatic derivative evaluation program”, *Communications of the ACM* 7 (1964), pages
#   463–464: such lists, and why they are called *Wengert lists*.
# - B. Speelpenning, *Compiling fast partial derivatives of functions given by algorithms*, thesis, University of
#   Illinois at Urbana-Champaign (1980): programs that compute gradients backward, compiled.
# - A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd edition, SIAM (2008), chapters 2 and 4: tapes, what they
#   cost, and what they miss.
#
# One instruction for all samples at once needs numbers that come in tables. **[6 · Tensors](06_tensors.ipynb)**
