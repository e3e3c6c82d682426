"""Monitor a Hugging Face trainer: ``Trainer(model, args, callbacks=[WatchCallback()], ...)``."""

from transformers import TrainerCallback

from minigrad_viz import watch


class WatchCallback(TrainerCallback):
    """Shows loss, gradients and gradient flow while the trainer fits, and saves the picture at the end."""

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.watch = watch(model)
        model.register_forward_hook(lambda module, inputs, output: setattr(self, "loss", output["loss"].detach()))

    def on_optimizer_step(self, args, state, control, **kwargs):
        self.watch.log(self.loss)

    def on_train_end(self, args, state, control, **kwargs):
        self.watch.close()
        self.watch.save("training.html")
