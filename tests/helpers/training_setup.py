"""The model and the data for tests of training, and a callback that interrupts it."""

import minigrad as mg
from minigrad import nn
from minigrad.data import DataLoader, TensorDataset
from minigrad.functional import cross_entropy
from minigrad.optim import Adam, lr_scheduler
from minigrad.training import accuracy, fit


def random_dataset(count, seed):
    """Return `count` samples of three classes, as a dataset."""
    generator = mg.Generator(seed)
    x = mg.randn(count, 6, generator=generator)
    return TensorDataset(x, (x @ mg.randn(6, 3, generator=mg.Generator(0))).argmax(1))


class TrainingSetup:
    """A model with dropout and a norm, and its training state, built from scratch each time as in a resumed process."""

    def __init__(self, schedule="epoch", own_generator=False, best=None):
        mg.manual_seed(4)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        self.optimizer = Adam(self.model.parameters(), lr=0.02)
        generator = mg.Generator(8) if own_generator else None
        self.loader = DataLoader(random_dataset(22, 1), batch_size=4, shuffle=True, generator=generator)
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
            validate=DataLoader(random_dataset(10, 2), batch_size=4),
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

    def snapshot(self, history):
        """Return everything that training changes, as bytes."""
        snapshot = {name: x.numpy().tobytes() for name, x in self.model.state_dict().items()}
        for k, state in self.optimizer.state_dict()["state"].items():
            snapshot |= {f"{k}{name}": x.numpy().tobytes() if hasattr(x, "numpy") else x for name, x in state.items()}
        snapshot["rates"] = [group["lr"] for group in self.optimizer.param_groups]
        return snapshot, history.epochs, history.steps, mg.get_rng_state().tolist()


class Interrupt:
    """A callback that interrupts training at a moment of a step, counted from 1, as Ctrl-C does."""

    def __init__(self, moment, step):
        def interrupt(run):
            if run.step == step:
                raise KeyboardInterrupt

        setattr(self, moment, interrupt)
