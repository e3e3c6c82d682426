"""Parameter updates. PyTorch has no such functions; `tests/optim` compares them with its optimizers' trajectories."""

from samples import distinct_floats, sample

DECAY = {"weight_decay": 0.1, "maximize": False}
ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "decoupled": False, "step": 2, **DECAY}
RMSPROP = {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "momentum": 0.5, **DECAY}
MOMENTUM = {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, **DECAY}
UPDATES = [  # the operation, the number of state arrays, its attributes
    ("sgd_step", 0, {"lr": 0.1, **DECAY}),
    ("momentum_step", 1, {**MOMENTUM, "nesterov": False}),
    ("momentum_step", 1, {**MOMENTUM, "nesterov": True, "maximize": True}),
    ("adam_step", 2, ADAM),
    ("adam_step", 2, {**ADAM, "decoupled": True}),
    ("amsgrad_step", 3, ADAM),
    ("nadam_step", 2, {**ADAM, "mu": 0.5, "next_mu": 0.6, "mu_product": 0.3}),
    ("radam_step", 2, ADAM),
    ("radam_step", 2, {**ADAM, "step": 20}),
    ("adamax_step", 2, {name: ADAM[name] for name in ("lr", "beta1", "beta2", "eps", "step", *DECAY)}),
    ("adagrad_step", 1, {"lr": 0.1, "eps": 1e-8, **DECAY}),
    ("adadelta_step", 2, {"lr": 0.1, "rho": 0.9, "eps": 1e-6, **DECAY}),
    ("rmsprop_step", 1, RMSPROP),
    ("rmsprop_momentum_step", 2, RMSPROP),
    ("rmsprop_centered_step", 2, RMSPROP),
    ("rmsprop_centered_momentum_step", 3, RMSPROP),
    ("lion_step", 1, {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, **DECAY}),
]


def update_call(name, state_count, attrs):
    """Return a call with positive optimizer state, in which second moments exceed first moments, as in a run."""

    def call(F, p, grad):
        state_arrays = [abs(p) + 9.0 for _ in range(state_count)]
        if "centered" in name:
            state_arrays[1] = p * 0.1
        return getattr(F, name)(p, grad, *state_arrays, **attrs)

    return call


SAMPLES = [
    sample(
        f"{name} {k}",
        update_call(name, memory, attrs),
        distinct_floats(3, 4),
        distinct_floats(3, 4, seed=1),
        parity=False,
    )
    for k, (name, memory, attrs) in enumerate(UPDATES)
]
