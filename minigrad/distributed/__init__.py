"""Distributed data-parallel training and hyperparameter sweeps in several processes, on one or more machines, with Ray.

    def make():
        model = mg.nn.Linear(4, 3)
        return model, mg.optim.SGD(model.parameters(), lr=0.1), mg.functional.cross_entropy

    trained = mg.distributed.fit(make, DataLoader(data, batch_size=64, shuffle=True), epochs=3, workers=4)

computes the same, up to rounding in sums, as

    model, optimizer, loss = make()
    mg.training.fit(model, DataLoader(data, batch_size=64, shuffle=True), optimizer, loss, epochs=3)

*Workers*: a worker is a Ray actor, a process with its own device, threads and Taichi runtime. It contains a *replica*,
the model and optimizer that `make` returns in that process. Ray starts, places and restarts workers. Install the extra
``pip install 'seegrad[ray]'``; `ray` is imported when `fit` is called.

*Steps*: each batch of the loader is split along its first dimension into one contiguous *shard* per worker. Each worker
computes the gradient of the mean loss of its shard and sends it as one flat array through Ray's object store. The
driver, the process that called `fit`, averages the gradients in rank order, weighted by the number of samples, and
all replicas, including its own, apply the same update. Callbacks, schedulers and clipping use the full gradient on the
driver; their changes to the gradient or to ``param_groups`` are sent to all replicas.

*Options*: `data` is a `DataLoader`; its dataset is sent to every worker once, so a large dataset should open its files
lazily. `resources` are reserved by Ray for each worker: ``{"GPU": 1}``, ``{"CPU": 2}`` for two threads (default: one),
memory in bytes, or custom resources of a cluster. `device` is the device of the replicas: by default "cuda" for workers
with a GPU, else the default device. `accumulate` is the number of micro-batches per shard; more of them use less
memory. `clip` is the maximum norm of the full gradient. With `jit`, replicas compile the forward and backward pass and
the update with `minigrad.jit`: the results are equal bit for bit, without Python overhead between kernels, but side
effects of model, loss and optimizer happen only while tracing. `logs` prints the workers' output on the driver. A
worker that dies is restarted up to `restarts` times; training fails if no worker is available for `patience` seconds.
`validate` runs on the driver.

*Losses*: the loss is a mean over the samples of a batch, or over ``count(target)`` elements, such as
``lambda y: (y >= 0).sum()`` for masked tokens. Buffers that a step changes, such as running statistics, are averaged
over the shards. Batch norm in train mode normalises each shard separately, as in PyTorch's DistributedDataParallel;
this is the only case in which results depend on the number of workers.

*Randomness*: dropout drops the same elements in a shard as in the full batch; other random numbers are drawn per shard.
All are derived from the state of the driver's generator, so recomputing a shard gives the same result.

*Fault tolerance*: Ray restarts a worker that dies, and the driver sends it the state of the last complete step. Until
then, another worker computes the shard, with bitwise identical results. An exception in a shard is raised by `fit`.

*Checkpoints* are those of `minigrad.training.fit`, and either function can resume from them.

*Sweeps* train many times with different hyperparameters, each *trial* in one process. A worker runs trials one after
another; Ray Tune places them, and its ASHA scheduler stops trials early. See `sweep`.
"""

from typing import Any

from minigrad.distributed.fitting import Trained, fit
from minigrad.distributed.sweeps import Halving, Report, Sweep, Trial, sweep

__all__ = ["Halving", "Report", "Sweep", "Trained", "Trial", "fit", "sweep"]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
