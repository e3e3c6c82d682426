"""Training: `fit` runs the training loop, with metrics, early stopping and checkpoints that resume bit for bit.

A step runs the usual code (see `minigrad.training.fitting`):

    optimizer.zero_grad()
    value = loss(model(*inputs), target)
    value.backward()
    optimizer.step()

*A batch* is ``(input, …, target)``, or one tensor that is both input and target (for an autoencoder). Tensors are moved
to the device of the model.

*A metric* is a function of output and target. `fit` reports its mean over the samples of `validate` if given, otherwise
over the training batches. Define a metric that is not a mean over samples, such as `perplexity`, as a `Metric`.

*A checkpoint* is one file with all changing state: model, optimizer, scheduler, default random generator, position in
the loader, history, best weights. `fit` writes it after each epoch and, with `checkpoint_every`, every so many steps
(for a loader with a `state_dict`, such as a `DataLoader`). An interrupted or killed run resumes from it, and ends with
the same bits as an uninterrupted one, on one device and if all randomness comes from minigrad's generators.
``mg.load(path)["model"]`` are the weights.

*A callback* is a function called with the `Run` after each step, or a `Callback`, which also runs after backward passes
and epochs. To clip gradients:

    class Clip(Callback):
        def on_backward(self, run):
            mg.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
"""

from minigrad.training.evaluation import Metric, accuracy, evaluate, perplexity
from minigrad.training.fitting import fit
from minigrad.training.history import History
from minigrad.training.run import Callback, Run
from minigrad.training.stopping import EarlyStop

__all__ = ["Callback", "EarlyStop", "History", "Metric", "Run", "accuracy", "evaluate", "fit", "perplexity"]
