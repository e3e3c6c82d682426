"""fit: it does what the loop by hand does, measures right, stops, says what is wrong, and goes on to the bit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, training
from minigrad.core.errors import (
    ArgumentError,
    DivergedError,
    DTypeError,
    FileFormatError,
    MissingPackageError,
    ShapeError,
)
from minigrad.data import DataLoader, TensorDataset
from minigrad.functional import cross_entropy, mse_loss
from minigrad.optim import SGD, Adam, lr_scheduler
from minigrad.training import EarlyStop, Metric, accuracy, evaluate, fit, perplexity
from needs import needs

needs("safetensors")


def numbers(count, seed):
    """`count` examples of three classes, as a dataset."""
    generator = mg.Generator(seed)
    x = mg.randn(count, 6, generator=generator)
    return TensorDataset(x, (x @ mg.randn(6, 3, generator=mg.Generator(0))).argmax(1))


class Setting:
    """A model with dropout and a norm, and all that trains it, made anew each time: so is a process that is resumed."""

    def __init__(self, schedule="epoch", own_generator=False, best=None):
        mg.manual_seed(4)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        self.optimizer = Adam(self.model.parameters(), lr=0.02)
        generator = mg.Generator(8) if own_generator else None
        self.loader = DataLoader(numbers(22, 1), batch_size=4, shuffle=True, generator=generator)
        self.schedule = schedule
        self.scheduler = {
            "epoch": lambda: lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5),
            "step": lambda: lr_scheduler.OneCycleLR(self.optimizer, 0.05, total_steps=40),
            "plateau": lambda: lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=0),
        }[schedule]()
        self.best = best

    def fit(self, path=None, every=None, epochs=4, callbacks=()):
        return fit(
            self.model,
            self.loader,
            self.optimizer,
            cross_entropy,
            epochs=epochs,
            validate=DataLoader(numbers(10, 2), batch_size=4),
            metrics={"accuracy": accuracy},
            scheduler=self.scheduler,
            schedule="step" if self.schedule == "step" else "epoch",
            early_stop=self.best,
            checkpoint=path,
            checkpoint_every=every,
            progress=False,
            seed=5,
            callbacks=callbacks,
        )

    def all(self, history):
        """Every number that training changes, as bits."""
        found = {name: x.numpy().tobytes() for name, x in self.model.state_dict().items()}
        for k, kept in self.optimizer.state_dict()["state"].items():
            found |= {f"{k}{name}": x.numpy().tobytes() if hasattr(x, "numpy") else x for name, x in kept.items()}
        found["rates"] = [group["lr"] for group in self.optimizer.param_groups]
        return found, history.epochs, history.steps, mg.get_rng_state().tolist()


class Interrupted:
    """A callback that interrupts training at a moment of a step, counted from 1, as Ctrl-C does."""

    def __init__(self, moment, step):
        def interrupt(run):
            if run.step == step:
                raise KeyboardInterrupt

        setattr(self, moment, interrupt)


# --- exact resume ---

MOMENTS = [
    ("on_step", 1, 1),  # just before the first checkpoint
    ("on_step", 2, 1),
    ("on_backward", 4, 1),  # gradients are there, weights are old
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
from test_training import Setting

def kill(run):
    if run.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

Setting().fit(sys.argv[1], 3, callbacks=[kill])
"""


def test_a_killed_process_is_gone_on_with_in_another_to_the_same_bits(tmp_path):
    whole = Setting()
    expected = whole.all(whole.fit())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
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


# --- checkpoints that do not fit ---


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
    untouched(Setting(), tmp_path / "c", FileFormatError, "cut off or damaged")
    (tmp_path / "c").write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    untouched(Setting(), tmp_path / "c", FileFormatError, "its checksum is not that of what it holds")
    mg.save(Setting().model.state_dict(), tmp_path / "c")
    untouched(Setting(), tmp_path / "c", FileFormatError, "is not a checkpoint that fit wrote")


def test_a_checkpoint_of_other_parts_changes_nothing(tmp_path):
    Setting().fit(tmp_path / "c", epochs=1)
    untouched(
        Setting(best=EarlyStop(1)), tmp_path / "c", ArgumentError, "has states of model, optimizer, scheduler, loader"
    )
    other = Setting()
    other.model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    other.optimizer = Adam(other.model.parameters())
    untouched(other, tmp_path / "c", ArgumentError, "this state does not fit Sequential")
    other = Setting()  # the model fits, the optimizer does not: the model is given back what it had
    other.optimizer = Adam([{"params": [x]} for x in other.model.parameters()])
    other.scheduler = lr_scheduler.StepLR(other.optimizer, 2)
    untouched(other, tmp_path / "c", ArgumentError, "groups of")


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
    with pytest.raises(
        ArgumentError, match=r"from the middle of an epoch that measured loss, and here are loss, accuracy"
    ):
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
    "epoch": (_field("fit", "epoch", to="one"), "epoch of the checkpoint is not what fit writes"),
    "negative": (_field("fit", "step", to=-1), "a count of the checkpoint is not what fit writes"),
    "rows": (_field("fit", "history", to=[1]), "history[0] of the checkpoint is not what fit writes"),
    "numbers": (_field("fit", "history", to=[{"loss": "low"}]), "history[0] of the checkpoint"),
    "totals": (_field("fit", "totals", to=[1]), "history[totals] of the checkpoint"),
    "fit": (_field("fit", to=[1]), "it of the checkpoint is not what fit writes"),
    "losses": (_field("losses", to="all"), "losses of the checkpoint is not what fit writes"),
    "random": (_field("random", to=5), "the state of random in the checkpoint does not fit"),
    "scheduler": (
        _field("scheduler", "last_epoch", to="two"),
        "the state of scheduler in the checkpoint does not fit: last",
    ),
    "another scheduler": (
        _field("scheduler", to={"gamma": 2}),
        "the state of scheduler in the checkpoint does not fit",
    ),
    "loader": (_field("loader", "position", to=[3]), "the state of loader in the checkpoint does not fit: position is"),
    "loader's kind": (
        _field("loader", to=3),
        "the state of loader in the checkpoint does not fit: it is of another form",
    ),
    "optimizer": (_field("optimizer", "param_groups", to=3), "the state of optimizer in the checkpoint does not fit"),
    "memories": (_field("optimizer", "state", to=3), "the state of optimizer in the checkpoint does not fit"),
    "groups": (_field("optimizer", "param_groups", to=[3]), "the state of optimizer in the checkpoint does not fit"),
    "model": (_field("model", to=3), "it takes a dict of names and tensors, not an int"),
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


# --- what a step is ---


def test_fit_does_what_the_loop_by_hand_does_to_the_bit():
    mine, its = Setting(), Setting()
    mg.manual_seed(5)
    losses = []
    for _ in range(3):
        for x, y in its.loader:
            its.optimizer.zero_grad()
            loss = cross_entropy(its.model(x), y)
            loss.backward()
            its.optimizer.step()
            losses.append(loss.item())
        its.scheduler.step()
    history = mine.fit(epochs=3)
    assert history.steps == losses
    assert [x.tolist() for x in mine.model.parameters()] == [x.tolist() for x in its.model.parameters()]
    assert history["lr"] == [0.02, 0.02, 0.01]
    assert history["loss"][0] == pytest.approx(sum(n * x for n, x in zip([4] * 5 + [2], losses, strict=False)) / 22)


def test_a_batch_is_inputs_and_a_target_or_a_tensor_that_is_both():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(mg.ones(2))

        def forward(self, *inputs):
            return sum(inputs) * self.weight

    def losses(batch):
        model = Sum()
        return fit(model, [batch], SGD(model.parameters(), 0.0), mse_loss, epochs=1, progress=False).steps

    x = mg.tensor([[1.0, 2.0]])
    assert (losses((x, x, x)), losses(x), losses([x, x * 2])) == ([2.5], [0.0], [2.5])
    for wrong in ({"x": x}, (x,)):
        with pytest.raises(DTypeError, match=r"a batch is \(input, …, target\), or a tensor that is both"):
            losses(wrong)


def test_batches_go_to_the_device_of_the_model():
    model = nn.Linear(2, 1).to("numpy")
    batch = mg.ones(3, 2), mg.ones(3, 1)
    seen = []
    optimizer = SGD(model.parameters(), 0.1)
    fit(
        model,
        [batch],
        optimizer,
        lambda a, b: seen.append((a.device, b.device)) or mse_loss(a, b),
        epochs=1,
        progress=False,
    )
    assert seen == [("numpy", "numpy")]


# --- what is measured ---


def test_means_are_over_examples_however_they_are_batched():
    model = Setting().model.eval()
    data = numbers(11, 3)
    x, y = data.tensors
    metrics = {"loss": cross_entropy, "accuracy": accuracy, "perplexity": perplexity}
    found = evaluate(model, DataLoader(data, batch_size=4), metrics)
    output = model(x)
    assert found["loss"] == pytest.approx(cross_entropy(output, y).item(), rel=1e-6)
    assert found["accuracy"] == pytest.approx((output.argmax(1) == y).float().mean().item(), rel=1e-6)
    assert found["perplexity"] == pytest.approx(np.exp(cross_entropy(output, y).item()), rel=1e-6)
    assert perplexity(output, y) == pytest.approx(found["perplexity"], rel=1e-6)
    assert Metric(lambda *_: 1e6, perplexity.then)(output, y) == float("inf")


def test_accuracy_asks_for_classes_along_the_second_dimension():
    scores = mg.tensor([[[0.0, 2.0], [1.0, 1.0]]])  # one sequence, two classes, two places
    assert accuracy(scores, mg.tensor([[1, 1]])) == 0.5
    with pytest.raises(ShapeError, match=re.escape("accuracy: output (2, 3) and target (2, 3) do not go together")):
        accuracy(mg.zeros(2, 3), mg.zeros(2, 3))


def test_without_validation_metrics_are_of_the_training_batches():
    model = nn.Linear(6, 3)
    loader = DataLoader(numbers(9, 1), batch_size=3)
    history = fit(
        model,
        loader,
        SGD(model.parameters(), 0.0),
        cross_entropy,
        epochs=1,
        metrics={"accuracy": accuracy},
        progress=False,
    )
    assert history.names == ["loss", "accuracy", "lr"]
    assert history["accuracy"] == [pytest.approx(evaluate(model, loader, {"a": accuracy})["a"])]


def test_validation_runs_without_gradients_in_eval_mode_and_leaves_every_mode_as_it_was():
    setting = Setting()
    setting.model[1].eval()  # a frozen norm
    seen = []

    def metric(output, target):
        seen.append((setting.model.training, setting.model[3].training, output.requires_grad, mg.is_grad_enabled()))
        return 0.0

    during = []
    fit(setting.model, setting.loader, setting.optimizer, cross_entropy, epochs=1, validate=[numbers(3, 0).tensors],
        metrics={"m": metric}, progress=False,
        callbacks=[lambda run: during.append([module.training for module in run.model.modules()])])  # fmt: skip
    assert seen == [(False, False, False, False)]
    assert during == [[True, True, False, True, True, True]] * 6
    assert [module.training for module in setting.model.modules()] == [True, True, False, True, True, True]


def test_a_model_in_eval_mode_is_trained_in_train_mode_and_given_back_as_it_was():
    setting = Setting()
    setting.model.eval()
    during = []
    setting.fit(epochs=1, callbacks=[lambda run: during.append(run.model.training)])
    assert (during, setting.model.training) == ([True] * 6, False)


# --- stopping ---


def scripted(*scores):
    """A metric with these numbers, one a call."""
    waiting = list(scores)
    return lambda output, target: waiting.pop(0)


def stopped(scores, early_stop, epochs=6, **options):
    """A training of one weight, by 1 an epoch, of which the validation gives `scores`."""
    model = nn.Linear(1, 1, bias=False)
    with mg.no_grad():
        model.weight.fill_(0.0)
    batch = mg.ones(1, 1), mg.ones(1, 1)
    history = fit(model, [batch], SGD(model.parameters(), 1.0), lambda a, b: -a.sum(), epochs=epochs, validate=[batch],
                  metrics={"score": scripted(*scores)}, early_stop=early_stop, progress=False, **options)  # fmt: skip
    return model.weight.item(), len(history), history.stopped


def test_training_stops_when_nothing_becomes_better_and_the_model_has_its_best_weights():
    rule = EarlyStop(2, "val_score", "max")
    said = "stopped after 2 epochs without a better val_score: the weights are those of epoch 2"
    assert stopped([1.0, 3.0, 2.0, 3.0, 9.0, 9.0], rule) == (2.0, 4, said)
    assert stopped([1.0, 3.0, 2.9, 2.8], rule._replace(mode="min")) == (
        1.0, 3, "stopped after 2 epochs without a better val_score: the weights are those of epoch 1"
    )  # fmt: skip
    assert stopped([1.0, 1.5, 2.0, 2.5], rule._replace(min_delta=1.0), 4)[:2] == (1.0, 3)
    assert stopped([1.0, float("nan"), 2.0, 1.0], rule, 4) == (
        3.0, 4, "all epochs are over: the weights are those of epoch 3"
    )  # fmt: skip


def test_a_patience_alone_looks_at_the_loss_of_validation():
    assert stopped([0.0] * 3, 1, 3)[:2] == (3.0, 3)
    with pytest.raises(
        ArgumentError, match=re.escape("monitors 'accuracy', and there is only loss, val_loss, val_score")
    ):
        stopped([0.0], EarlyStop(1, "accuracy"))
    for wrong in (0, EarlyStop(1, mode="least")):
        with pytest.raises(ArgumentError, match="needs patience=1 or more, and mode='min' or 'max'"):
            stopped([0.0], wrong)


def test_a_training_that_stopped_early_stays_stopped_when_it_is_resumed(tmp_path):
    rule = EarlyStop(1, "val_score", "max")
    first = stopped([1.0, 3.0, 2.0], rule, checkpoint=tmp_path / "c")
    assert first[:2] == (2.0, 3)
    assert stopped([], rule, checkpoint=tmp_path / "c") == first
    assert stopped([4.0], rule._replace(patience=2), 4, checkpoint=tmp_path / "c")[:2] == (4.0, 4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_before_it_spoils_the_weights(bad):
    model = nn.Linear(1, 1)
    batches = [(mg.ones(1, 1), mg.ones(1, 1)), (mg.full((1, 1), bad), mg.ones(1, 1))]
    weights = []
    with pytest.raises(DivergedError) as raised:
        fit(model.eval(), batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False,
            callbacks=[lambda run: weights.append(model.weight.item())])  # fmt: skip
    assert str(raised.value).startswith(f"fit: the loss is {bad} at step 2, in epoch 1, after ")
    assert "fit again inside `with mg.detect_anomaly():`" in str(raised.value)
    assert isinstance(raised.value, ArithmeticError)
    assert ([model.weight.item()], model.training) == (weights, False)


# --- losses that wait ---


def regression(**options):
    """A history, and the weights after it: a seeded training of three epochs, by batches that are not of one size."""
    mg.manual_seed(0)
    model, x = nn.Linear(3, 1), mg.randn(22, 3)
    batches = [(part, part.sum(1, keepdim=True)) for part in x.split(4)]
    history = fit(model, batches, SGD(model.parameters(), 0.05), mse_loss, epochs=3, progress=False, **options)
    return history.steps, history.epochs, model.weight.tolist()


@pytest.mark.parametrize("every", [2, 4, 100])
def test_losses_that_are_looked_at_together_make_the_same_history_to_the_bit(every, tmp_path):
    expected = regression()
    assert regression(look_every=every) == expected
    assert regression(look_every=every, checkpoint=tmp_path / "c", checkpoint_every=None) == expected
    assert regression(look_every=every, metrics={"mae": lambda y, t: (y - t).abs().mean()})[0] == expected[0]


def test_a_loss_that_waits_is_not_read_until_there_are_enough_or_somebody_asks():
    read = []

    class Counting(training.Callback):
        def on_step(self, run):
            read.append(len(run._unread))

    regression(look_every=4, callbacks=[Counting()])
    assert read == [1, 2, 3, 0, 1, 2] * 3
    losses = []
    steps, *_ = regression(look_every=4, callbacks=[lambda run: losses.append(run.loss)])
    assert losses == steps


def test_a_bad_loss_that_waited_says_how_often_the_weights_were_changed_since():
    model = nn.Linear(1, 1)
    good = (mg.ones(1, 1), mg.ones(1, 1))
    batches = [good, (mg.full((1, 1), float("nan")), mg.ones(1, 1)), good, good, good]
    with pytest.raises(DivergedError) as raised:
        fit(model, batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False, look_every=4)
    text = "fit: the loss is nan at step 2, in epoch 1, after "
    assert str(raised.value).startswith(text)
    assert "The weights were changed 2 times since, as look_every=4.\n" in str(raised.value)


def test_no_checkpoint_has_seen_a_bad_loss_that_waits(tmp_path):
    model, path = nn.Linear(1, 1), tmp_path / "c"
    data = mg.tensor([[1.0], [2.0], [float("inf")], [3.0]])
    loader = DataLoader(TensorDataset(data, data), batch_size=1)
    with pytest.raises(DivergedError, match="at step 3"):
        fit(model, loader, SGD(model.parameters(), 0.01), mse_loss, epochs=1, progress=False, look_every=50,
            checkpoint=path, checkpoint_every=2)  # fmt: skip
    assert mg.load(path)["fit"]["step"] == 2


# --- who hears of it ---


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


# --- what is shown ---


def shown(capsys, **options):
    """The lines that a terminal shows at the end: a carriage return begins a line again."""
    model = nn.Linear(6, 3)
    loader = DataLoader(numbers(8, 1), batch_size=4)
    fit(model, loader, SGD(model.parameters(), 0.1), cross_entropy, epochs=2, validate=loader, **options)
    return [re.split(r"\r", line)[-1] for line in "".join(capsys.readouterr()).splitlines(keepends=True)]


def test_a_terminal_shows_one_line_with_the_epoch_the_steps_and_the_numbers(capsys):
    *_, line = shown(capsys)
    assert re.fullmatch(r"epoch 2/2: 100%\|█+\| \d\d:\d\d<\d\d:\d\d, loss=[\d.]+, val_loss=[\d.]+\n", line)


def test_a_training_that_goes_on_says_from_where_and_begins_its_bar_there(capsys, tmp_path):
    shown(capsys, checkpoint=tmp_path / "c")
    said = "".join(shown(capsys, checkpoint=tmp_path / "c"))
    assert f"going on from {tmp_path / 'c'}, after 2 epochs and 4 steps\n" in said
    assert "100%|" in said


def test_an_interrupted_training_says_how_to_go_on(capsys, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        shown(capsys, checkpoint=tmp_path / "c", callbacks=[Interrupted("on_step", 3)])
    said = "".join(capsys.readouterr())
    assert f"interrupted: the same call goes on from {tmp_path / 'c'}\n" in said


def test_without_progress_nothing_is_shown(capsys):
    assert shown(capsys, progress=False) == []


def test_without_tqdm_the_error_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingPackageError, match=re.escape('pip install "tqdm>=4.60", or fit(…, progress=False)')):
        shown(capsys)


def test_a_history_is_a_table_whose_middle_is_left_out_when_it_is_long():
    history = training.History()
    assert repr(history) == "History: no epoch has ended yet, after 0 steps"
    history.epochs = [{"loss": 1 / k, "val_loss": 2.0 * k} for k in range(1, 31)]
    history.epochs[0]["note"] = 0.5
    history.stopped = "over"
    lines = repr(history).splitlines()
    assert lines[:2] == ["epoch     loss  val_loss  note", "    1        1         2   0.5"]
    assert (lines[11], lines[-2:]) == ("    …        …         …     …", ["   30  0.03333        60      ", "over"])
    assert (history["loss"][1], history["note"], len(history)) == (0.5, [0.5], 30)
    with pytest.raises(KeyError, match="history has no 'accuracy'; it has loss, val_loss, note"):
        history["accuracy"]


# --- options ---

WRONG = {
    "no epochs": ({"epochs": 0}, "epochs=0 is not an int of 1 or more"),
    "a schedule": ({"schedule": "daily"}, "schedule='daily' is not 'epoch' or 'step'"),
    "a moment without a place": ({"checkpoint_every": 3}, "Give a path."),
    "half of a step": ({"checkpoint_every": 0.5, "checkpoint": "c"}, "checkpoint_every=0.5 is not an int"),
    "the middle of a list": ({"checkpoint_every": 3, "checkpoint": "c"}, "a list does not say where it stands"),
    "no batches": ({"loader": []}, "the loader gave no batch in epoch 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_options_that_cannot_be_are_refused_in_words(case):
    options, said = WRONG[case]
    model = nn.Linear(1, 1)
    options = {"loader": [(mg.ones(1, 1), mg.ones(1, 1))], "epochs": 1, "progress": False, **options}
    with pytest.raises(ArgumentError, match=re.escape(said)):
        fit(model, options.pop("loader"), SGD(model.parameters(), 0.1), mse_loss, **options)


def test_a_generator_of_batches_is_used_up_after_an_epoch_and_that_is_said():
    model = nn.Linear(1, 1)
    batches = ((mg.ones(1, 1), mg.ones(1, 1)) for _ in range(2))
    with pytest.raises(ArgumentError, match=r"in epoch 2.\n.*a generator gives its batches only once"):
        fit(model, batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False)


def test_arguments_in_another_order_are_named():
    model = nn.Linear(2, 1)
    with pytest.raises(
        DTypeError, match=r"fit: loader is a SGD\.\n  Write fit\(model, loader, optimizer, loss, epochs"
    ):
        fit(model, SGD(model.parameters(), lr=0.1), mse_loss, [], epochs=1)
