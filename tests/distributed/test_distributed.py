"""distributed.fit: the same results as one process on the same batches, despite failures, and no orphaned processes."""

import os
import signal
import sys
from functools import partial

import numpy as np
import pytest

import distributed_jobs as jobs
import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, MissingPackageError, WorkerError
from minigrad.distributed import replica
from minigrad.distributed.flat_gradients import flatten_gradients, weighted_sum, write_gradients
from minigrad.training import Callback, accuracy, fit
from needs import needs

needs("safetensors")

TOLERANCE = 1e-9  # sums over shards round differently from sums over full batches


class Clip(Callback):
    def on_backward(self, run):
        mg.nn.utils.clip_grad_norm_(run.model.parameters(), 0.2)


def train_alone(make, epochs=10, **options):
    """Train in one process; return the model and history."""
    mg.manual_seed(5)
    model, optimizer, loss, *rest = make()
    scheduler = rest[0] if rest else None
    history = fit(
        model, jobs.loader(), optimizer, loss, epochs=epochs, scheduler=scheduler, seed=5, progress=False, **options
    )
    return model, history


def train_distributed(make, data=None, epochs=10, **options):
    run = mg.distributed.fit(
        make, data or jobs.loader(), epochs=epochs, workers=2, seed=5, **{"progress": False, **options}
    )
    return run.model, run.history


def difference(one, other):
    states = one.state_dict(), other.state_dict()
    assert list(states[0]) == list(states[1])
    return max(float(np.abs(a.numpy() - b.numpy()).max()) for a, b in zip(*map(dict.values, states), strict=True))


# --- without Ray ---


@pytest.fixture
def restore_defaults():
    """Restore the default device, dtype and generator, which a replica sets for its process."""
    device, dtype, state = mg.get_default_device(), mg.get_default_dtype(), mg.get_rng_state()
    yield
    mg.set_default_device(str(device)), mg.set_default_dtype(dtype), mg.set_rng_state(state)


def make_job(make, pieces=1, weigh=None, jit=False):
    return replica.ReplicaJob(
        make, jobs.points(), None, {}, weigh, pieces, str(mg.get_default_device()), "float32", jit
    )


@pytest.mark.usefixtures("restore_defaults")
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("make", [jobs.momentum, jobs.dropout])
def test_shard_gradients_average_to_the_batch_gradient(make, pieces):
    mg.manual_seed(5)
    whole = replica.Replica(make_job(make))
    mg.manual_seed(5)
    cut = replica.Replica(make_job(make, pieces))
    indices = [3, 1, 4, 15, 9, 2, 6]
    expected = whole.gradient(replica.Shard(indices, 0, (7, 11)))
    parts = [cut.gradient(replica.Shard(indices[a:b], a, (7, 11))) for a, b in ((0, 2), (2, 7))]
    actual = weighted_sum([part.gradient for part in parts], [2 / 7, 5 / 7])
    np.testing.assert_allclose(actual, expected.gradient, rtol=0, atol=1e-14)
    assert [part.weight for part in parts] == [2, 5]
    assert {part.draw_count for part in parts} == {expected.draw_count}


@pytest.mark.usefixtures("restore_defaults")
@pytest.mark.parametrize("make", [jobs.momentum, jobs.adam, jobs.norm, jobs.dropout])
def test_a_jitted_replica_takes_the_same_steps(make):
    def steps(jit):
        mg.manual_seed(5)
        one = replica.Replica(make_job(make, 2, jit=jit))
        replicas.update({jit: one})
        actual = []
        for k in range(24):
            first = k % 3  # the offset of the shard varies
            answer = one.gradient(replica.Shard([k, k + 2, k + 3, k + 7, k + 11], first, (7, 100 * k)))
            options = [{**group, "lr": 0.05 / (k + 1)} for group in replica.group_options(one.optimizer)]
            one.apply(answer.gradient, replica.Update(answer.has_gradient, options, answer.buffers))
            actual.append((answer.gradient.tolist(), answer.loss, answer.draw_count))
        return actual, [x.tolist() for x in one.model.state_dict().values()]

    replicas = {}
    (actual, model), (expected, expected_state) = steps(jit=True), steps(jit=False)
    close = 1e-14 if mg.get_default_device() == "cuda" else 0  # CUDA may fuse a multiply and an add
    for (gradient, loss, drawn), (same, expected_loss, expected_drawn) in zip(actual, expected, strict=True):
        np.testing.assert_allclose([*gradient, loss, drawn], [*same, expected_loss, expected_drawn], rtol=0, atol=close)
    for one, same in zip(model, expected_state, strict=True):
        np.testing.assert_allclose(one, same, rtol=0, atol=close)
    # micro-batches of two and three rows at three offsets, then with the optimizer's state allocated
    assert len(replicas[True].forward_backward.captures) == 6


@pytest.mark.usefixtures("restore_defaults")
def test_count_sets_the_weights_of_the_mean():
    def make():
        model, optimizer, _ = jobs.momentum()
        return model, optimizer, partial(mg.functional.cross_entropy, ignore_index=0)

    def count_targets(target):
        return (target != 0).sum().item()

    mg.manual_seed(5)
    one = replica.Replica(make_job(make, 3, count_targets))
    indices = list(range(8))
    expected = one.gradient(replica.Shard(indices, 0, (1, 0)))
    parts = [one.gradient(replica.Shard(indices[a:b], a, (1, 0))) for a, b in ((0, 3), (3, 8))]
    assert expected.weight == sum(part.weight for part in parts) == count_targets(jobs.points().tensors[1][:8])
    shares = [part.weight / expected.weight for part in parts]
    np.testing.assert_allclose(
        weighted_sum([part.gradient for part in parts], shares), expected.gradient, rtol=0, atol=1e-14
    )


@pytest.mark.usefixtures("restore_defaults")
def test_a_shard_restores_buffers_and_returns_the_new_ones():
    one = replica.Replica(make_job(jobs.norm))
    before = [x.tolist() for x in one.model[1].buffers()]
    first = one.gradient(replica.Shard([0, 1, 2, 3], 0, (1, 0)))
    again = one.gradient(replica.Shard([0, 1, 2, 3], 0, (1, 0)))
    assert [x.tolist() for x in one.model[1].buffers()] == before
    assert [x.tolist() for x in first.buffers] == [x.tolist() for x in again.buffers] != before
    np.testing.assert_array_equal(first.gradient, again.gradient)


def test_missing_gradients_stay_none():
    a, b = mg.ones(2, 2, requires_grad=True), mg.ones(3, requires_grad=True)
    (a * mg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    write_gradients([a, b], flatten_gradients([a, b]) * 2, [True, False])
    assert (a.grad.tolist(), b.grad) == ([[2.0, 4.0], [6.0, 8.0]], None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"data": [1]}, DTypeError, "expected data to be a DataLoader, but got a list"),
        ({"workers": 0}, ArgumentError, "workers should be an int >= 1, but got workers=0"),
        (
            {"resources": {"GPU": -1}},
            ArgumentError,
            "resources['GPU'] should be a positive amount per worker, but got -1",
        ),
        ({"make": lambda: 3}, DTypeError, "Return (model, optimizer, loss)"),
        ({"make": 3}, DTypeError, "distributed.fit: make"),
    ],
)
def test_invalid_arguments_raise_before_anything_starts(options, error, message):
    arguments = {"make": jobs.momentum, "data": jobs.loader(), "epochs": 1, **options}
    with pytest.raises(error) as raised:
        mg.distributed.fit(arguments.pop("make"), arguments.pop("data"), **arguments)
    assert message in str(raised.value)


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'seegrad\[ray\]'"):
        mg.distributed.fit(jobs.momentum, jobs.loader(), epochs=1)


# --- with Ray ---


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(
    "make",
    [
        jobs.dropout,
        *(pytest.param(job, marks=pytest.mark.nightly) for job in (jobs.momentum, jobs.adam, jobs.norm_in_eval)),
    ],
)
def test_parameters_after_50_steps_are_those_of_one_process(make):
    model, history = train_alone(make)
    trained, distributed_history = train_distributed(make)
    assert len(distributed_history.steps) == 50
    assert difference(model, trained) <= TOLERANCE
    assert distributed_history.steps == pytest.approx(history.steps, abs=TOLERANCE, rel=0)
    assert distributed_history["lr"] == history["lr"]


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_jitted_steps_are_those_of_one_process():
    model, history = train_alone(jobs.dropout)
    trained, distributed_history = train_distributed(jobs.dropout, jit=True)
    assert difference(model, trained) <= TOLERANCE
    assert distributed_history.steps == pytest.approx(history.steps, abs=TOLERANCE, rel=0)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_accumulated_and_clipped_gradients_and_metrics_are_those_of_one_process():
    model, history = train_alone(jobs.momentum, metrics={"accuracy": accuracy}, callbacks=[Clip()])
    trained, distributed_history = train_distributed(
        jobs.momentum, metrics={"accuracy": accuracy}, clip=0.2, accumulate=3
    )
    assert difference(model, trained) <= TOLERANCE
    assert distributed_history["accuracy"] == pytest.approx(history["accuracy"])
    unclipped, _ = train_alone(jobs.momentum)
    assert difference(model, unclipped) > 1e-3


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_restarted_workers_compute_shards(tmp_path):
    def forget(run):  # forget the first workers, to record the replacement and the survivor after a failure
        if run.step in (200, 1200):
            pids_by_epoch.append({int(path.name) for path in tmp_path.iterdir()})
        if run.step in (150, 1150):
            for path in tmp_path.iterdir():
                path.unlink()
        if run.step == 200:
            os.kill(min(pids_by_epoch[0]), signal.SIGKILL)

    pids_by_epoch = []
    train_distributed(jobs.momentum, jobs.loader(jobs.ProcessRecorder(tmp_path)), epochs=240, callbacks=[forget])
    assert [len(pids) for pids in pids_by_epoch] == [2, 2]
    assert len(pids_by_epoch[0] & pids_by_epoch[1]) == 1


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_killing_a_worker_does_not_change_results(tmp_path):
    expected, history = train_distributed(jobs.dropout, epochs=4)
    marking = jobs.FaultInjector(tmp_path / "mark", "die", (3, 11))
    data = jobs.loader(jobs.FaultyDataset(tmp_path / "mark"))
    trained, distributed_history = train_distributed(jobs.dropout, data, epochs=4, callbacks=[marking])
    assert not (tmp_path / "mark").exists()
    assert difference(expected, trained) == 0
    assert distributed_history.steps == history.steps


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_exceeding_restarts_raises_one_error(tmp_path):
    data = jobs.loader(jobs.FaultyDataset(tmp_path / "mark"))
    marking = jobs.FaultInjector(tmp_path / "mark", "die", (2,))
    with pytest.raises(WorkerError, match=r"worker \d died after \d+ steps and exceeded its 0 restarts"):
        train_distributed(jobs.momentum, data, epochs=200, callbacks=[marking], restarts=0)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(("fault", "kind"), [("raise", LookupError), ("memory", MemoryError)])
def test_shard_exceptions_propagate_and_checkpoints_resume_without_ray(fault, kind, tmp_path):
    path = tmp_path / "c"
    data = jobs.loader(jobs.FaultyDataset(tmp_path / "mark"))
    marking = jobs.FaultInjector(tmp_path / "mark", fault, (7,))
    with pytest.raises(kind) as raised:
        train_distributed(jobs.adam, data, callbacks=[marking], checkpoint=path, checkpoint_every=1)
    assert any("Raised by worker" in note for note in raised.value.__notes__)
    assert mg.load(path)["fit"]["step"] == 7
    model, _ = train_alone(jobs.adam)
    resumed, _ = train_alone(jobs.adam, checkpoint=path)
    assert difference(model, resumed) <= TOLERANCE
