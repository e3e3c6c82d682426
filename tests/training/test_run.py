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
from trained import Interrupted, Setting

needs("safetensors")


# --- exact resume ---


MOMENTS = [
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


@pytest.mark.parametrize(("moment", "step", "every"), MOMENTS)
def test_interrupted_and_resumed_training_ends_with_the_same_bits(moment, step, every, tmp_path):
    whole = Setting()
    expected = whole.all(whole.fit())
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        Setting().fit(path, every, callbacks=[Interrupted(moment, step)])
    mg.manual_seed(99)
    resumed = Setting()
    assert resumed.all(resumed.fit(path, every)) == expected


@pytest.mark.parametrize("schedule", ["step", "plateau"])
@pytest.mark.parametrize("own_generator", [False, True])
def test_schedules_and_generators_of_loaders_go_on_where_they_were(schedule, own_generator, tmp_path):
    whole = Setting(schedule, own_generator, EarlyStop(3))
    expected = whole.all(whole.fit())
    for step in (3, 8, 15):
        with pytest.raises(KeyboardInterrupt):
            Setting(schedule, own_generator, EarlyStop(3)).fit(
                tmp_path / "c", 2, callbacks=[Interrupted("on_step", step)]
            )
    resumed = Setting(schedule, own_generator, EarlyStop(3))
    assert resumed.all(resumed.fit(tmp_path / "c", 2)) == expected


KILLED = """
import os, signal, sys
import minigrad as mg
mg.set_default_device(sys.argv[3])
from trained import Setting

def kill(run):
    if run.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

Setting().fit(sys.argv[1], 3, callbacks=[kill])
"""


def test_a_killed_process_is_gone_on_with_in_another_to_the_same_bits(tmp_path):
    whole = Setting()
    expected = whole.all(whole.fit())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "c"), "11", str(mg.get_default_device())]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert child.returncode not in (0, 1), child.stderr
    resumed = Setting()
    assert resumed.all(resumed.fit(tmp_path / "c", 3)) == expected


def test_a_training_that_is_over_goes_on_when_more_epochs_are_asked_for(tmp_path):
    whole = Setting()
    expected = whole.all(whole.fit())
    Setting().fit(tmp_path / "c", epochs=2)
    again = Setting()
    assert len(again.fit(tmp_path / "c", epochs=2)) == 2
    longer = Setting()
    assert longer.all(longer.fit(tmp_path / "c")) == expected


def test_a_plain_list_of_batches_is_resumed_at_the_end_of_an_epoch(tmp_path):
    batches = [(mg.ones(2, 1), mg.ones(2, 1)), (mg.zeros(2, 1), mg.ones(2, 1))]

    def trained(callbacks=(), path=None):
        mg.manual_seed(0)
        model = nn.Linear(1, 1)
        optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
        fit(model, batches, optimizer, mse_loss, epochs=3, checkpoint=path, callbacks=callbacks, progress=False)
        return [x.tolist() for x in model.parameters()]

    with pytest.raises(KeyboardInterrupt):
        trained([Interrupted("on_step", 3)], tmp_path / "c")
    assert trained(path=tmp_path / "c") == trained()


def test_without_resume_training_begins_again_and_the_old_checkpoint_is_replaced(tmp_path):
    Setting().fit(tmp_path / "c", epochs=2)
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


def untouched(setting, path, error, said):
    before = setting.all(training.History())
    with pytest.raises(error) as raised:
        setting.fit(path)
    assert said in str(raised.value)
    assert setting.all(training.History()) == before


def test_a_checkpoint_that_was_cut_off_changes_nothing(tmp_path):
    Setting().fit(tmp_path / "c", epochs=1)
    data = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(data[:-1])
    untouched(Setting(), tmp_path / "c", FileFormatError, "truncated or corrupt")
    (tmp_path / "c").write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    untouched(Setting(), tmp_path / "c", FileFormatError, "checksum mismatch")
    mg.save(Setting().model.state_dict(), tmp_path / "c")
    untouched(Setting(), tmp_path / "c", FileFormatError, "is not a checkpoint of fit")


def test_a_checkpoint_of_other_parts_changes_nothing(tmp_path):
    Setting().fit(tmp_path / "c", epochs=1)
    untouched(
        Setting(best=EarlyStop(1)), tmp_path / "c", ArgumentError, "has states of model, optimizer, scheduler, loader"
    )
    other = Setting()
    other.model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    other.optimizer = Adam(other.model.parameters())
    untouched(other, tmp_path / "c", ArgumentError, "error(s) in loading state_dict for Sequential")
    other = Setting()  # only the optimizer mismatches: the model must be restored
    other.optimizer = Adam([{"params": [x]} for x in other.model.parameters()])
    other.scheduler = lr_scheduler.StepLR(other.optimizer, 2)
    untouched(other, tmp_path / "c", ArgumentError, "parameter groups of sizes")


def test_a_checkpoint_goes_on_with_other_metrics_between_epochs_and_is_refused_in_one(tmp_path):
    def train(epochs, every=None, callbacks=(), **metrics):
        mine = Setting()
        return training.fit(
            mine.model, mine.loader, mine.optimizer, cross_entropy, epochs=epochs, metrics=metrics, progress=False,
            checkpoint=tmp_path / "c", checkpoint_every=every, callbacks=callbacks,
        )  # fmt: skip

    train(1)
    history = train(2, accuracy=training.accuracy)
    assert [sorted(row) for row in history.epochs] == [["loss", "lr"], ["accuracy", "loss", "lr"]]
    with pytest.raises(KeyboardInterrupt):
        train(3, 1, [Interrupted("on_step", 15)])
    other = Setting()
    before = other.all(training.History())
    with pytest.raises(ArgumentError, match=r"from within an epoch with metrics loss, but this run has loss, accuracy"):
        training.fit(
            other.model, other.loader, other.optimizer, cross_entropy, epochs=3, progress=False,
            metrics={"accuracy": training.accuracy}, checkpoint=tmp_path / "c",
        )  # fmt: skip
    assert other.all(training.History()) == before


def _field(*path, to):
    def change(state):
        inner = state
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = to

    return change


FIELDS = {
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


@pytest.mark.parametrize(("change", "text"), FIELDS.values(), ids=FIELDS)
def test_a_checkpoint_with_fields_of_another_type_changes_nothing(tmp_path, change, text):
    Setting().fit(tmp_path / "c", epochs=1)
    state = mg.load(tmp_path / "c")
    change(state)
    mg.save(state, tmp_path / "c")
    setting = Setting()
    mg.manual_seed(3)
    before = mg.get_rng_state().tolist()
    untouched(setting, tmp_path / "c", mg.errors.MinigradError, text)
    assert mg.get_rng_state().tolist() == before


# --- callbacks ---


def test_callbacks_hear_of_each_moment_in_order_with_what_is_there_then():
    heard = []

    class Watch(training.Callback):
        def on_backward(self, run):
            heard.append(("backward", run.step, run.model.weight.grad.item(), run.model.weight.item()))

        def on_step(self, run):
            heard.append(("step", run.step, run.loss, run.model.weight.item()))

        def on_epoch(self, run):
            heard.append(("epoch", run.epoch, len(run.history), list(run.history.epochs[-1])))

    model = nn.Linear(1, 1, bias=False)
    with mg.no_grad():
        model.weight.fill_(2.0)
    fit(model, [(mg.ones(1, 1), mg.zeros(1, 1))], SGD(model.parameters(), 0.5), mse_loss, epochs=1, progress=False,
        callbacks=[Watch(), lambda run: heard.append("a function")])  # fmt: skip
    assert heard == [
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
