"""fit: it equals a hand-written loop, rejects invalid arguments, and reports a non-finite loss."""

import re

import pytest

import minigrad as mg
from minigrad import nn, training
from minigrad.core.errors import ArgumentError, DivergedError, DTypeError
from minigrad.data import DataLoader, TensorDataset
from minigrad.functional import cross_entropy, mse_loss
from minigrad.optim import SGD
from minigrad.training import fit
from needs import needs
from training_setup import TrainingSetup

needs("safetensors")


# --- steps ---


def test_fit_equals_a_handwritten_loop_bit_for_bit():
    actual, expected = TrainingSetup(), TrainingSetup()
    mg.manual_seed(5)
    losses = []
    for _ in range(3):
        for x, y in expected.loader:
            expected.optimizer.zero_grad()
            loss = cross_entropy(expected.model(x), y)
            loss.backward()
            expected.optimizer.step()
            losses.append(loss.item())
        expected.scheduler.step()
    history = actual.fit(epochs=3)
    assert history.steps == losses
    assert [x.tolist() for x in actual.model.parameters()] == [x.tolist() for x in expected.model.parameters()]
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
        with pytest.raises(DTypeError, match=r"expected a batch \(input, …, target\), or one tensor for both"):
            losses(wrong)


def test_batches_go_to_the_device_of_the_model():
    model = nn.Linear(2, 1).to("numpy")
    batch = mg.ones(3, 2), mg.ones(3, 1)
    devices = []
    optimizer = SGD(model.parameters(), 0.1)
    fit(
        model,
        [batch],
        optimizer,
        lambda a, b: devices.append((a.device, b.device)) or mse_loss(a, b),
        epochs=1,
        progress=False,
    )
    assert devices == [("numpy", "numpy")]


def test_a_model_in_eval_mode_is_trained_in_train_mode_and_restored():
    setting = TrainingSetup()
    setting.model.eval()
    during = []
    setting.fit(epochs=1, callbacks=[lambda run: during.append(run.model.training)])
    assert (during, setting.model.training) == ([True] * 6, False)


# --- non-finite losses ---


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_nonfinite_loss_raises_before_the_weights_change(bad):
    model = nn.Linear(1, 1)
    batches = [(mg.ones(1, 1), mg.ones(1, 1)), (mg.full((1, 1), bad), mg.ones(1, 1))]
    weights = []
    with pytest.raises(DivergedError) as raised:
        fit(model.eval(), batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False,
            callbacks=[lambda run: weights.append(model.weight.item())])  # fmt: skip
    assert str(raised.value).startswith(f"fit: the loss is {bad} at step 2, in epoch 1, after ")
    assert "call fit inside `with mg.detect_anomaly():`" in str(raised.value)
    assert isinstance(raised.value, ArithmeticError)
    assert ([model.weight.item()], model.training) == (weights, False)


# --- deferred losses ---


def regression(**options):
    """Return the history and final weights of a seeded run of three epochs, with batches of different sizes."""
    mg.manual_seed(0)
    model, x = nn.Linear(3, 1), mg.randn(22, 3)
    batches = [(part, part.sum(1, keepdim=True)) for part in x.split(4)]
    history = fit(model, batches, SGD(model.parameters(), 0.05), mse_loss, epochs=3, progress=False, **options)
    return history.steps, history.epochs, model.weight.tolist()


@pytest.mark.parametrize("every", [2, 4, 100])
def test_deferred_losses_yield_the_same_history_bit_for_bit(every, tmp_path):
    expected = regression()
    assert regression(look_every=every) == expected
    assert regression(look_every=every, checkpoint=tmp_path / "c", checkpoint_every=None) == expected
    assert regression(look_every=every, metrics={"mae": lambda y, t: (y - t).abs().mean()})[0] == expected[0]


def test_a_deferred_loss_is_read_in_groups_or_on_access():
    read = []

    class Counting(training.Callback):
        def on_step(self, run):
            read.append(len(run._pending_losses))

    regression(look_every=4, callbacks=[Counting()])
    assert read == [1, 2, 3, 0, 1, 2] * 3
    losses = []
    steps, *_ = regression(look_every=4, callbacks=[lambda run: losses.append(run.loss)])
    assert losses == steps


def test_a_deferred_nonfinite_loss_reports_the_updates_since():
    model = nn.Linear(1, 1)
    good = (mg.ones(1, 1), mg.ones(1, 1))
    batches = [good, (mg.full((1, 1), float("nan")), mg.ones(1, 1)), good, good, good]
    with pytest.raises(DivergedError) as raised:
        fit(model, batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False, look_every=4)
    text = "fit: the loss is nan at step 2, in epoch 1, after "
    assert str(raised.value).startswith(text)
    assert "The weights have been updated 2 times since, because look_every=4.\n" in str(raised.value)


def test_no_checkpoint_is_written_after_a_nonfinite_loss(tmp_path):
    model, path = nn.Linear(1, 1), tmp_path / "c"
    data = mg.tensor([[1.0], [2.0], [float("inf")], [3.0]])
    loader = DataLoader(TensorDataset(data, data), batch_size=1)
    with pytest.raises(DivergedError, match="at step 3"):
        fit(model, loader, SGD(model.parameters(), 0.01), mse_loss, epochs=1, progress=False, look_every=50,
            checkpoint=path, checkpoint_every=2)  # fmt: skip
    assert mg.load(path)["fit"]["step"] == 2


# --- options ---


INVALID = {
    "no epochs": ({"epochs": 0}, "expected positive integer epochs, but got 0"),
    "a schedule": ({"schedule": "daily"}, "expected schedule 'epoch' or 'step', but got 'daily'"),
    "a moment without a place": ({"checkpoint_every": 3}, "Pass a path."),
    "half of a step": ({"checkpoint_every": 0.5, "checkpoint": "c"}, "integer checkpoint_every, but got 0.5"),
    "the middle of a list": ({"checkpoint_every": 3, "checkpoint": "c"}, "a list has no state_dict"),
    "no batches": ({"loader": []}, "the loader yielded no batch in epoch 1"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_options_raise(case):
    options, message = INVALID[case]
    model = nn.Linear(1, 1)
    options = {"loader": [(mg.ones(1, 1), mg.ones(1, 1))], "epochs": 1, "progress": False, **options}
    with pytest.raises(ArgumentError, match=re.escape(message)):
        fit(model, options.pop("loader"), SGD(model.parameters(), 0.1), mse_loss, **options)


def test_an_exhausted_generator_of_batches_raises():
    model = nn.Linear(1, 1)
    batches = ((mg.ones(1, 1), mg.ones(1, 1)) for _ in range(2))
    with pytest.raises(ArgumentError, match=r"in epoch 2.\n.*a generator can be consumed only once"):
        fit(model, batches, SGD(model.parameters(), 0.1), mse_loss, epochs=2, progress=False)


def test_arguments_in_the_wrong_order_raise():
    model = nn.Linear(2, 1)
    with pytest.raises(
        DTypeError,
        match=r"fit: loader has the wrong type, a SGD\.\n  Write fit\(model, loader, optimizer, loss, epochs",
    ):
        fit(model, SGD(model.parameters(), lr=0.1), mse_loss, [], epochs=1)
