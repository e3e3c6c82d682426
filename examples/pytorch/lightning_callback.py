"""Monitor a PyTorch Lightning model: ``Trainer(callbacks=[WatchCallback()])``."""

from lightning.pytorch import Callback

from minigrad_viz import watch


class WatchCallback(Callback):
    """Shows loss, gradients and gradient flow while the trainer fits, and saves the picture at the end."""

    def on_train_start(self, trainer, module):
        self.watch = watch(module)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.watch.log(outputs["loss"])

    def on_train_end(self, trainer, module):
        self.watch.close()
        self.watch.save("training.html")
