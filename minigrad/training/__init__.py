"""Training: `fit` goes through a loader epoch by epoch, measures, stops, saves, and goes on where it was interrupted.

A step is what you would write yourself, and in `minigrad.training.fitting` it stands on one screen:

    optimizer.zero_grad()
    number = loss(model(*inputs), target)
    number.backward()
    optimizer.step()

*A batch* is ``(input, …, target)``, or one tensor that is input and target (an autoencoder's). Tensors go to the device
of the model.

*A metric* is a function of output and target. Its mean over the examples is reported, of `validate` where that is
given, of the training batches else. What is not a mean itself is a `Metric`, as `perplexity` is.

*A checkpoint* is one file with all that goes on changing: the model, the optimizer, the scheduler, the default random
generator, the place in the loader, the history, the best weights. It is written after each epoch, and with
`checkpoint_every` after so many steps too (for a loader that has a `state_dict`, as a `DataLoader`). A training that is
interrupted, or killed, and started again goes on from there, and ends with the same bits as one that was not: on one
device, where all that is random comes from minigrad's generators. ``mg.load(path)["model"]`` are the weights.

*A callback* is a function that is called with the `Run` after each step, or a `Callback`, which also hears of backward
passes and of epochs. To clip gradients:

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
