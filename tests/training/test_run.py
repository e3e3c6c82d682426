"""An interrupted run resumes bit for bit, mismatched checkpoints change nothing, and callbacks run at every event."""

import os
import subprocess
import sys

import pytest

import minigrad as mg
from minigrad import nn, training
from minigrad.core.errors import ArgumentError, FileFormatError
from minigrad.functional import cross_entropy, mse_loss
from minigrad.optim import SGD, Adam, lr_scheduler
from minigrad.training import EarlyStop, fit
from needs import needs
from training_setup import Interrupt, TrainingSetup

needs("safetensors")


# --- exact resume ---


EVENTS = [
    ("on_step", 1, 1),  # just before the first checkpoint
    ("on_step", 2, 1),
    ("on_backward", 4, 1),  # with gradients, before the weights change
    ("on_step", 6, None),  # the last step of the first epoch
    ("on_epoch", 6, None),
    ("on_step", 9, None),
    ("on_step", 9, 4),
    ("on_step", 13, 6),  # saved after the last batch of an epoch, before its end
    ("on_backward", 20, 5),
    ("on_epoch", 24, 7),
]


@pytest.mark.parametrize(("moment", "step", "every"), EVENTS)
def test_interrupted_and_resumed_training_ends_with_the_same_bits(moment, step, every, tmp_path):
    whole = TrainingSetup()
    expected = whole.snapshot(whole.fit())
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        TrainingSetup().fit(path, every, callbacks=[Interrupt(moment, step)])
    mg.manual_seed(99)
    resumed = TrainingSetup()
    assert resumed.snapshot(resumed.fit(path, every)) == expected


@pytest.mark.parametrize("schedule", ["step", "plateau"])
@pytest.mark.parametrize("own_generator", [False, True])
def test_schedules_and_loader_generators_resume(schedule, own_generator, tmp_path):
    whole = TrainingSetup(schedule, own_generator, EarlyStop(3))
    expected = whole.snapshot(whole.fit())
    for step in (3, 8, 15):
        with pytest.raises(KeyboardInterrupt):
            TrainingSetup(schedule, own_generator, EarlyStop(3)).fit(
                tmp_path / "c", 2, callbacks=[Interrupt("on_step", step)]
            )
    resumed = TrainingSetup(schedule, own_generator, EarlyStop(3))
    assert resumed.snapshot(resumed.fit(tmp_path / "c", 2)) == expected


KILLED = """
import os, signal, sys
import minigrad as mg
mg.set_default_device(sys.argv[3])
from training_setup import TrainingSetup

def kill(run):
    if run.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

TrainingSetup().fit(sys.argv[1], 3, callbacks=[kill])
"""


def test_a_killed_process_resumes_in_another_bit_for_bit(tmp_path):
    whole = TrainingSetup()
    expected = whole.snapshot(whole.fit())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "c"), "11", str(mg.get_default_device())]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert child.returncode not in (0, 1), child.stderr
    resumed = TrainingSetup()
    assert resumed.snapshot(resumed.fit(tmp_path / "c", 3)) == expected


def test_a_completed_run_resumes_for_more_epochs(tmp_path):
    whole = TrainingSetup()
    expected = whole.snapshot(whole.fit())
    TrainingSetup().fit(tmp_path / "c", epochs=2)
    again = TrainingSetup()
    assert len(again.fit(tmp_path / "c", epochs=2)) == 2
    longer = TrainingSetup()
    assert longer.snapshot(longer.fit(tmp_path / "c")) == expected


def test_a_plain_list_of_batches_is_resumed_at_the_end_of_an_epoch(tmp_path):
    batches = [(mg.ones(2, 1), mg.ones(2, 1)), (mg.zeros(2, 1), mg.ones(2, 1))]

    def trained(callbacks=(), path=None):
        mg.manual_seed(0)
        model = nn.Linear(1, 1)
        optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
        fit(model, batches, optimizer, mse_loss, epochs=3, checkpoint=path, callbacks=callbacks, progress=False)
        return [x.tolist() for x in model.parameters()]

    with pytest.raises(KeyboardInterrupt):
        trained([Interrupt("on_step", 3)], tmp_path / "c")
    assert trained(path=tmp_path / "c") == trained()


def test_without_resume_training_restarts_and_replaces_the_checkpoint(tmp_path):
    TrainingSetup().fit(tmp_path / "c", epochs=2)
    model = nn.Linear(2, 1)
    batch = mg.ones(1, 2), mg.ones(1, 1)
    fit(
        model,
        [batch],
        SGD(model.parameters(), 0.1),
        mse_loss,
        epochs=1,
        checkpoint=tmp_path / "c",
        resume=False,
        progress=False,
    )
    assert list(mg.load(tmp_path / "c")["model"]) == ["weight", "bias"]


# --- mismatched checkpoints ---


def check_unchanged(setting, path, error, message):
    before = setting.snapshot(training.History())
    with pytest.raises(error) as raised:
        setting.fit(path)
    assert message in str(raised.value)
    assert setting.snapshot(training.History()) == before


def test_a_truncated_checkpoint_changes_nothing(tmp_path):
    TrainingSetup().fit(tmp_path / "c", epochs=1)
    data = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(data[:-1])
    check_unchanged(TrainingSetup(), tmp_path / "c", FileFormatError, "truncated or corrupt")
    (tmp_path / "c").write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    check_unchanged(TrainingSetup(), tmp_path / "c", FileFormatError, "checksum mismatch")
    mg.save(TrainingSetup().model.state_dict(), tmp_path / "c")
    check_unchanged(TrainingSetup(), tmp_path / "c", FileFormatError, "is not a checkpoint of fit")


def test_a_checkpoint_of_other_components_changes_nothing(tmp_path):
    TrainingSetup().fit(tmp_path / "c", epochs=1)
    check_unchanged(
        TrainingSetup(best=EarlyStop(1)),
        tmp_path / "c",
        ArgumentError,
        "has states of model, optimizer, scheduler, loader",
    )
    other = TrainingSetup()
    other.model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    other.optimizer = Adam(other.model.parameters())
    check_unchanged(other, tmp_path / "c", ArgumentError, "error(s) in loading state_dict for Sequential")
    other = TrainingSetup()  # only the optimizer mismatches: the model must be restored
    other.optimizer = Adam([{"params": [x]} for x in other.model.parameters()])
    other.scheduler = lr_scheduler.StepLR(other.optimizer, 2)
    check_unchanged(other, tmp_path / "c", ArgumentError, "parameter groups of sizes")


def test_a_checkpoint_resumes_with_other_metrics_only_between_epochs(tmp_path):
    def train(epochs, every=None, callbacks=(), **metrics):
        setup = TrainingSetup()
        return training.fit(
            setup.model, setup.loader, setup.optimizer, cross_entropy, epochs=epochs, metrics=metrics, progress=False,
            checkpoint=tmp_path / "c", checkpoint_every=every, callbacks=callbacks,
        )  # fmt: skip

    train(1)
    history = train(2, accuracy=training.accuracy)
    assert [sorted(row) for row in history.epochs] == [["loss", "lr"], ["accuracy", "loss", "lr"]]
    with pytest.raises(KeyboardInterrupt):
        train(3, 1, [Interrupt("on_step", 15)])
    other = TrainingSetup()
    before = other.snapshot(training.History())
    with pytest.raises(ArgumentError, match=r"from within an epoch with metrics loss, but this run has loss, accuracy"):
        training.fit(
            other.model, other.loader, other.optimizer, cross_entropy, epochs=3, progress=False,
            metrics={"accuracy": training.accuracy}, checkpoint=tmp_path / "c",
        )  # fmt: skip
    assert other.snapshot(training.History()) == before


def _field(*path, to):
    def change(state):
        inner = state
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = to

    return change


INVALID_FIELDS = {
    "epoch": (_field("fit", "epoch", to="one"), "epoch of the checkpoint is invalid"),
    "negative": (_field("fit", "step", to=-1), "a count of the checkpoint is invalid"),
    "rows": (_field("fit", "history", to=[1]), "history[0] of the checkpoint is invalid"),
    "numbers": (_field("fit", "history", to=[{"loss": "low"}]), "history[0] of the checkpoint"),
    "totals": (_field("fit", "totals", to=[1]), "history[totals] of the checkpoint"),
    "fit": (_field("fit", to=[1]), "the state of the checkpoint is invalid"),
    "losses": (_field("losses", to="all"), "losses of the checkpoint is invalid"),
    "random": (_field("random", to=5), "the state of random in the checkpoint does not match"),
    "scheduler": (
        _field("scheduler", "last_epoch", to="two"),
        "the state of scheduler in the checkpoint does not match: last",
    ),
    "another scheduler": (
        _field("scheduler", to={"gamma": 2}),
        "the state of scheduler in the checkpoint does not match",
    ),
    "loader": (
        _field("loader", "position", to=[3]),
        "the state of loader in the checkpoint does not match: position has",
    ),
    "loader's kind": (
        _field("loader", to=3),
        "the state of loader in the checkpoint does not match: the state has another structure",
    ),
    "optimizer": (_field("optimizer", "param_groups", to=3), "the state of optimizer in the checkpoint does not match"),
    "memories": (_field("optimizer", "state", to=3), "the state of optimizer in the checkpoint does not match"),
    "groups": (_field("optimizer", "param_groups", to=[3]), "the state of optimizer in the checkpoint does not match"),
    "model": (_field("model", to=3), "expected state_dict to be dict-like, but got an int"),
}


@pytest.mark.parametrize(("change", "text"), INVALID_FIELDS.values(), ids=INVALID_FIELDS)
def test_a_checkpoint_with_fields_of_another_type_changes_nothing(tmp_path, change, text):
    TrainingSetup().fit(tmp_path / "c", epochs=1)
    state = mg.load(tmp_path / "c")
    change(state)
    mg.save(state, tmp_path / "c")
    setting = TrainingSetup()
    mg.manual_seed(3)
    before = mg.get_rng_state().tolist()
    check_unchanged(setting, tmp_path / "c", mg.errors.MinigradError, text)
    assert mg.get_rng_state().tolist() == before


# --- callbacks ---


def test_callbacks_run_at_each_event_in_order():
    calls = []

    class Watch(training.Callback):
        def on_backward(self, run):
            calls.append(("backward", run.step, run.model.weight.grad.item(), run.model.weight.item()))

        def on_step(self, run):
            calls.append(("step", run.step, run.loss, run.model.weight.item()))

        def on_epoch(self, run):
            calls.append(("epoch", run.epoch, len(run.history), list(run.history.epochs[-1])))

    model = nn.Linear(1, 1, bias=False)
    with mg.no_grad():
        model.weight.fill_(2.0)
    fit(model, [(mg.ones(1, 1), mg.zeros(1, 1))], SGD(model.parameters(), 0.5), mse_loss, epochs=1, progress=False,
        callbacks=[Watch(), lambda run: calls.append("a function")])  # fmt: skip
    assert calls == [
        ("backward", 0, 4.0, 2.0),
        ("step", 1, 4.0, 0.0),
        "a function",
        ("epoch", 1, 1, ["loss", "lr"]),
    ]


def test_a_callback_can_clip_gradients():
    class Clip(training.Callback):
        def on_backward(self, run):
            nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)

    model = nn.Linear(1, 1, bias=False)
    with mg.no_grad():
        model.weight.fill_(100.0)
    fit(
        model,
        [(mg.ones(1, 1), mg.zeros(1, 1))],
        SGD(model.parameters(), 1.0),
        mse_loss,
        epochs=1,
        progress=False,
        callbacks=[Clip()],
    )
    assert model.weight.item() == pytest.approx(99.0, rel=1e-5)
