"""Beyond one process: the training step of `minigrad.training` in several processes, on one machine or many, by Ray.

    def make():
        model = mg.nn.Linear(4, 3)
        return model, mg.optim.SGD(model.parameters(), lr=0.1), mg.functional.cross_entropy

    trained = mg.distributed.fit(make, DataLoader(data, batch_size=64, shuffle=True), epochs=3, workers=4)

is, to the last digits of its sums,

    model, optimizer, loss = make()
    mg.training.fit(model, DataLoader(data, batch_size=64, shuffle=True), optimizer, loss, epochs=3)

*A worker* is an actor of Ray's: a process with a device, threads and a Taichi of its own, which holds a *replica*, the
model and the optimizer that `make` returns there. Ray starts, places and restarts workers; nothing here does. `ray` is
the extra of that name (``pip install 'seegrad[ray]'``), loaded when `fit` is called.

*A step*: each batch of the loader is cut into as many *shards*, rows one after another, as there are workers. Each
worker gives the gradient of the mean loss of its shard, as one flat array, through Ray's store of objects. The driver,
the process that called `fit`, averages them in the order of the ranks, weighted by how many examples they are of, and
every replica, its own too, makes the same update of them. So callbacks, schedulers and clipping work here as there:
they see the whole gradient on the driver, and what they change of it or of ``param_groups`` reaches all replicas.

*Options*: `data` is a `DataLoader`; its data set goes to every worker once, and one that is too large for that opens
its files when it is first asked. `resources` is what Ray keeps free for each worker: ``{"GPU": 1}``, ``{"CPU": 2}`` for
two threads (one is the default), memory in bytes, or what a cluster calls its own. `device` is where replicas compute:
"cuda" where they have a GPU, else the default device. `accumulate` computes a shard in so many pieces, for less memory,
and `clip` shortens the whole gradient to that norm. With `jit` each replica records the passes of a shard, and its
updates, as `minigrad.jit` does: the same digits without the Python around the kernels, but what model, loss and
optimizer do beside computing they do once. With `logs` the driver shows what workers print. A worker that dies is
restarted up to `restarts` times; with none there for `patience` seconds training ends. `validate` is gone through by
the driver.

*A loss* is a mean over the examples of a batch, or over what ``count(target)`` counts, where that is another number:
``lambda y: (y >= 0).sum()`` for tokens some of which are left out. Of buffers that a step changes,
as running statistics, the mean of the shards is kept. Batch norm in train mode knows its own shard alone, as in
PyTorch's DistributedDataParallel: there, and there alone, results depend on how many shards there are.

*Random numbers*: dropout drops in a shard what it would have dropped in the whole batch; other draws of a shard are
its own. All of them follow from the state of the driver's generator, so that a shard computed again is the same.

*Faults*: a worker that dies is started again by Ray, and gets the state of the last complete step from the driver;
until then another one computes its shard, so that no digit changes. What a shard raises is raised by `fit`.

*A checkpoint* is that of `minigrad.training.fit`, which either goes on from: see there.

*A sweep* is another thing: many trainings, each in one process, with other values. A worker runs one *trial* after
another; Ray's Tune places them, and its ASHA ends early those that are behind. See `sweep`.
"""

from typing import Any

from minigrad.distributed.fitting import Trained, fit
from minigrad.distributed.sweeps import Halving, Report, Sweep, Trial, sweep

__all__ = ["Halving", "Report", "Sweep", "Trained", "Trial", "fit", "sweep"]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.modules import absent

    return absent(__name__, name)
