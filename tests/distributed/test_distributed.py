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
from minigrad.distributed.flat import flattened, mean, write_gradients
from minigrad.training import Callback, accuracy, fit
from needs import needs

needs("safetensors")

CLOSE = 1e-9  # sums over shards round differently from sums over full batches


class Clip(Callback):
    def on_backward(self, run):
        mg.nn.utils.clip_grad_norm_(run.model.parameters(), 0.2)


def alone(make, epochs=10, **options):
    """Train in one process; return the model and history."""
    mg.manual_seed(5)
    model, optimizer, loss, *rest = make()
    scheduler = rest[0] if rest else None
    history = fit(
        model, jobs.loader(), optimizer, loss, epochs=epochs, scheduler=scheduler, seed=5, progress=False, **options
    )
    return model, history


def together(make, data=None, epochs=10, **options):
    found = mg.distributed.fit(
        make, data or jobs.loader(), epochs=epochs, workers=2, seed=5, **{"progress": False, **options}
    )
    return found.model, found.history


def difference(one, other):
    states = one.state_dict(), other.state_dict()
    assert list(states[0]) == list(states[1])
    return max(float(np.abs(a.numpy() - b.numpy()).max()) for a, b in zip(*map(dict.values, states), strict=True))


# --- without Ray ---


@pytest.fixture
def kept():
    """Restore the default device, dtype and generator, which a replica sets for its process."""
    device, dtype, state = mg.get_default_device(), mg.get_default_dtype(), mg.get_rng_state()
    yield
    mg.set_default_device(str(device)), mg.set_default_dtype(dtype), mg.set_rng_state(state)


def job(make, pieces=1, weigh=None, jit=False):
    return replica.ReplicaJob(
        make, jobs.points(), None, {}, weigh, pieces, str(mg.get_default_device()), "float32", jit
    )


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("make", [jobs.momentum, jobs.dropout])
def test_shards_in_any_number_of_pieces_average_to_the_gradient_of_the_batch(make, pieces):
    mg.manual_seed(5)
    whole = replica.Replica(job(make))
    mg.manual_seed(5)
    cut = replica.Replica(job(make, pieces))
    numbers = [3, 1, 4, 15, 9, 2, 6]
    expected = whole.gradient(replica.Asked(numbers, 0, (7, 11)))
    parts = [cut.gradient(replica.Asked(numbers[a:b], a, (7, 11))) for a, b in ((0, 2), (2, 7))]
    found = mean([part.gradient for part in parts], [2 / 7, 5 / 7])
    np.testing.assert_allclose(found, expected.gradient, rtol=0, atol=1e-14)
    assert [part.weight for part in parts] == [2, 5]
    assert {part.drawn for part in parts} == {expected.drawn}


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("make", [jobs.momentum, jobs.adam, jobs.norm, jobs.dropout])
def test_a_recorded_replica_makes_the_same_steps(make):
    def steps(jit):
        mg.manual_seed(5)
        one = replica.Replica(job(make, 2, jit=jit))
        kept.update({jit: one})
        found = []
        for k in range(24):
            first = k % 3  # the offset of the shard varies
            answer = one.gradient(replica.Asked([k, k + 2, k + 3, k + 7, k + 11], first, (7, 100 * k)))
            options = [{**group, "lr": 0.05 / (k + 1)} for group in replica.options_of(one.optimizer)]
            one.apply(answer.gradient, replica.Update(answer.there, options, answer.buffers))
            found.append((answer.gradient.tolist(), answer.loss, answer.drawn))
        return found, [x.tolist() for x in one.model.state_dict().values()]

    kept = {}
    (found, model), (expected, its) = steps(jit=True), steps(jit=False)
    close = 1e-14 if mg.get_default_device() == "cuda" else 0  # CUDA may fuse a multiply and an add
    for (gradient, loss, drawn), (same, its_loss, its_drawn) in zip(found, expected, strict=True):
        np.testing.assert_allclose([*gradient, loss, drawn], [*same, its_loss, its_drawn], rtol=0, atol=close)
    for one, same in zip(model, its, strict=True):
        np.testing.assert_allclose(one, same, rtol=0, atol=close)
    # micro-batches of two and three rows at three offsets, then with the optimizer's state allocated
    assert len(kept[True].both.captures) == 6


@pytest.mark.usefixtures("kept")
def test_what_a_loss_is_a_mean_over_is_what_count_says():
    def make():
        model, optimizer, _ = jobs.momentum()
        return model, optimizer, partial(mg.functional.cross_entropy, ignore_index=0)

    def seen(target):
        return (target != 0).sum().item()

    mg.manual_seed(5)
    one = replica.Replica(job(make, 3, seen))
    numbers = list(range(8))
    expected = one.gradient(replica.Asked(numbers, 0, (1, 0)))
    parts = [one.gradient(replica.Asked(numbers[a:b], a, (1, 0))) for a, b in ((0, 3), (3, 8))]
    assert expected.weight == sum(part.weight for part in parts) == seen(jobs.points().tensors[1][:8])
    shares = [part.weight / expected.weight for part in parts]
    np.testing.assert_allclose(mean([part.gradient for part in parts], shares), expected.gradient, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("kept")
def test_a_shard_leaves_the_buffers_as_they_were_and_answers_with_the_new_ones():
    one = replica.Replica(job(jobs.norm))
    before = [x.tolist() for x in one.model[1].buffers()]
    first = one.gradient(replica.Asked([0, 1, 2, 3], 0, (1, 0)))
    again = one.gradient(replica.Asked([0, 1, 2, 3], 0, (1, 0)))
    assert [x.tolist() for x in one.model[1].buffers()] == before
    assert [x.tolist() for x in first.buffers] == [x.tolist() for x in again.buffers] != before
    np.testing.assert_array_equal(first.gradient, again.gradient)


def test_parameters_without_a_gradient_have_none_afterwards_either():
    a, b = mg.ones(2, 2, requires_grad=True), mg.ones(3, requires_grad=True)
    (a * mg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    write_gradients([a, b], flattened([a, b]) * 2, [True, False])
    assert (a.grad.tolist(), b.grad) == ([[2.0, 4.0], [6.0, 8.0]], None)


@pytest.mark.parametrize(
    ("options", "error", "said"),
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
def test_what_cannot_be_is_told_before_anything_starts(options, error, said):
    given = {"make": jobs.momentum, "data": jobs.loader(), "epochs": 1, **options}
    with pytest.raises(error) as raised:
        mg.distributed.fit(given.pop("make"), given.pop("data"), **given)
    assert said in str(raised.value)


def test_where_ray_is_not_installed_the_extra_is_named(monkeypatch):
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
    model, history = alone(make)
    found, its = together(make)
    assert len(its.steps) == 50
    assert difference(model, found) <= CLOSE
    assert its.steps == pytest.approx(history.steps, abs=CLOSE, rel=0)
    assert its["lr"] == history["lr"]


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_recorded_steps_are_those_of_one_process_too():
    model, history = alone(jobs.dropout)
    found, its = together(jobs.dropout, jit=True)
    assert difference(model, found) <= CLOSE
    assert its.steps == pytest.approx(history.steps, abs=CLOSE, rel=0)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_accumulated_and_clipped_gradients_and_metrics_are_those_of_one_process():
    model, history = alone(jobs.momentum, metrics={"accuracy": accuracy}, callbacks=[Clip()])
    found, its = together(jobs.momentum, metrics={"accuracy": accuracy}, clip=0.2, accumulate=3)
    assert difference(model, found) <= CLOSE
    assert its["accuracy"] == pytest.approx(history["accuracy"])
    unclipped, _ = alone(jobs.momentum)
    assert difference(model, unclipped) > 1e-3


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_each_worker_computes_its_shard_also_when_it_came_later_or_again(tmp_path):
    def forget(run):  # forget the first workers, to record the replacement and the survivor after a failure
        if run.step in (200, 1200):
            seen.append({int(path.name) for path in tmp_path.iterdir()})
        if run.step in (150, 1150):
            for path in tmp_path.iterdir():
                path.unlink()
        if run.step == 200:
            os.kill(min(seen[0]), signal.SIGKILL)

    seen = []
    together(jobs.momentum, jobs.loader(jobs.Signed(tmp_path)), epochs=240, callbacks=[forget])
    assert [len(pids) for pids in seen] == [2, 2]
    assert len(seen[0] & seen[1]) == 1


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_a_killed_worker_changes_no_digit(tmp_path):
    expected, history = together(jobs.dropout, epochs=4)
    marking = jobs.Marking(tmp_path / "mark", "die", (3, 11))
    data = jobs.loader(jobs.Marked(tmp_path / "mark"))
    found, its = together(jobs.dropout, data, epochs=4, callbacks=[marking])
    assert not (tmp_path / "mark").exists()
    assert difference(expected, found) == 0
    assert its.steps == history.steps


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_a_worker_that_dies_more_often_than_it_is_restarted_ends_training_with_one_error(tmp_path):
    data = jobs.loader(jobs.Marked(tmp_path / "mark"))
    marking = jobs.Marking(tmp_path / "mark", "die", (2,))
    with pytest.raises(WorkerError, match=r"worker \d died after \d+ steps and exceeded its 0 restarts"):
        together(jobs.momentum, data, epochs=200, callbacks=[marking], restarts=0)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(("what", "kind"), [("raise", LookupError), ("memory", MemoryError)])
def test_what_a_shard_raises_is_raised_and_the_checkpoint_goes_on_also_without_ray(what, kind, tmp_path):
    path = tmp_path / "c"
    data = jobs.loader(jobs.Marked(tmp_path / "mark"))
    marking = jobs.Marking(tmp_path / "mark", what, (7,))
    with pytest.raises(kind) as raised:
        together(jobs.adam, data, callbacks=[marking], checkpoint=path, checkpoint_every=1)
    assert any("Raised by worker" in note for note in raised.value.__notes__)
    assert mg.load(path)["fit"]["step"] == 7
    model, _ = alone(jobs.adam)
    resumed, _ = alone(jobs.adam, checkpoint=path)
    assert difference(model, resumed) <= CLOSE
