"""Random numbers, defaults and modes that change between calls."""

from __future__ import annotations

import minigrad as mg
from adversary import Knob, Scene, scene


@scene("mg.manual_seed between calls", symbolic=True)
def _(world):
    return Scene(lambda x: x * mg.rand(3), Knob(mg.manual_seed, [5, 7, 9]))


@scene("the state of the default generator", symbolic=True)
def _(world):
    states = [mg.get_rng_state(), mg.Generator(3).get_state()]
    return Scene(lambda x: x * mg.randn(3), Knob(mg.set_rng_state, states))


@scene("draws between calls", symbolic=True)
def _(world):
    return Scene(lambda x: x * mg.rand(3), Knob(lambda n: mg.rand(n), [1, 2, 3]))


@scene("a generator that is seeded", symbolic=True)
def _(world):
    generator = mg.Generator(3)
    return Scene(lambda x: x * mg.rand(3, generator=generator), Knob(generator.manual_seed, [3, 4]), [generator])


@scene("a generator that is replaced")
def _(world):
    generator = mg.Generator(3)
    generators = [generator, mg.Generator(4), mg.Generator(5)]

    def put(k):
        nonlocal generator
        generator = generators[k]

    return Scene(lambda x: x * mg.rand(3, generator=generator), Knob(put, [0, 1, 2]), generators)


@scene("a seed that the step sets")
def _(world):
    seed = 3

    def step(x):
        mg.manual_seed(seed)
        return x * mg.rand(3)

    def put(new):
        nonlocal seed
        seed = new

    return Scene(step, Knob(put, [3, 4]))


@scene("mg.fork_rng in the step", refused=("get_state", "fork_rng"))
def _(world):
    seed = 3

    def step(x):
        with mg.fork_rng():
            mg.manual_seed(seed)
            y = x * mg.rand(3)
        return y + mg.rand(3)

    def put(new):
        nonlocal seed
        seed = new

    return Scene(step, Knob(put, [3, 4]), [])


@scene("the default dtype")
def _(world):
    return Scene(lambda x: (mg.ones(3) * 2, mg.tensor([0.1]) + x), Knob(mg.set_default_dtype, [mg.float32, mg.float64]))


@scene("the default device")
def _(world):
    now = mg.get_default_device()
    other = "cpu" if now == "numpy" else "numpy"
    step = lambda x: (x + 1, mg.ones(3) * 2)  # noqa: E731
    return Scene(step, Knob(mg.set_default_device, [now, other]))


def mode_knob(world, enter, values):
    """Return a knob that enters a block of ``enter(value)``; None leaves it."""
    blocks = []

    def put(value):
        while blocks:
            blocks.pop().__exit__(None, None, None)
        if value is not None:
            blocks.append(enter(value))
            blocks[-1].__enter__()

    world.cleanups.append(lambda: put(None))
    return Knob(put, [None, *values])


def gradient_step(world):
    w = world.leaf(1.0, 2.0, 3.0)

    def step(x):
        w.grad = None
        y = (x * w).sum()
        if y.requires_grad:
            y.backward()
        return x * (2.0 if mg.is_grad_enabled() else 3.0)

    return step


@scene("mg.no_grad around calls")
def _(world):
    return Scene(gradient_step(world), mode_knob(world, lambda _: mg.no_grad(), [1]))


@scene("mg.inference_mode around calls")
def _(world):
    return Scene(gradient_step(world), mode_knob(world, lambda _: mg.inference_mode(), [1]))


@scene("mg.set_grad_enabled between calls")
def _(world):
    world.cleanups.append(lambda: mg.set_grad_enabled(True))
    return Scene(gradient_step(world), Knob(mg.set_grad_enabled, [True, False]))


@scene("mg.strict_shapes around calls", raises=True)
def _(world):
    return Scene(lambda x: x * mg.ones(3), mode_knob(world, lambda _: mg.strict_shapes(), [1]))


@scene("mg.record around calls", harmless=True)
def _(world):
    return Scene(gradient_step(world), mode_knob(world, lambda _: mg.record(), [1]))


@scene("mg.tap around calls")
def _(world):
    ops = []
    return Scene(lambda x: x * 2, mode_knob(world, lambda _: mg.tap(lambda call: ops.append(call.op)), [1]), [ops])


@scene("mg.detect_anomaly around calls", harmless=True)
def _(world):
    return Scene(gradient_step(world), mode_knob(world, lambda _: mg.detect_anomaly(), [1]))


@scene("mg.scope around calls", harmless=True)
def _(world):
    return Scene(gradient_step(world), mode_knob(world, mg.scope, ["a", "b"]))


@scene("a grad mode that the step chooses")
def _(world):
    w, on = world.leaf(1.0, 2.0, 3.0), True

    def step(x):
        w.grad = None
        with mg.set_grad_enabled(on):
            y = (x * w).sum()
        if y.requires_grad:
            y.backward()
        return y.detach()

    def put(new):
        nonlocal on
        on = new

    return Scene(step, Knob(put, [True, False]))
