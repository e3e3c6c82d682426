"""`mg.jit`: a jitted step computes the same as the plain function, whatever changes between its calls."""

import collections
import itertools

import numpy as np
import pytest

import minigrad as mg
import parity
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import CaptureError, DTypeError
from samples import all_samples
from tiers import NIGHTLY

nn, F, lr_scheduler = mg.nn, mg.functional, mg.optim.lr_scheduler


def perceptron():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Dropout(0.25), nn.Linear(8, 3))


def convolutional():
    first = [nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 4, 3, padding=1), nn.GELU(), nn.MaxPool2d((1, 3))]
    return nn.Sequential(*first, nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 3))


def recurrent():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(2, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x):
            return self.out(self.lstm(x.view(-1, 3, 2))[0][:, -1])

    return Net()


MODELS = {"perceptron": perceptron, "convolutional": convolutional, "recurrent": recurrent}
OPTIMIZERS = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda p: mg.optim.Adam(p, lr=1e-2, amsgrad=True),
    "AdamW": lambda p: mg.optim.AdamW(p, lr=1e-2),
    "NAdam": lambda p: mg.optim.NAdam(p, lr=1e-2),
    "RAdam": lambda p: mg.optim.RAdam(p, lr=1e-2),
    "Adamax": lambda p: mg.optim.Adamax(p, lr=1e-2),
    "RMSprop": lambda p: mg.optim.RMSprop(p, lr=1e-2, centered=True, momentum=0.9),
    "Adagrad": lambda p: mg.optim.Adagrad(p, lr=1e-2),
    "Adadelta": lambda p: mg.optim.Adadelta(p, lr=1.0),
    "Lion": lambda p: mg.optim.Lion(p, lr=1e-3),
    "Muon": lambda p: mg.optim.Muon([x for x in p if x.ndim == 2], lr=1e-2),
}


def trained(model, optimizer, wrap, steps=8):
    """Return the state after some steps of training, and the function that ran them."""
    mg.manual_seed(7)
    net = MODELS[model]()
    made = OPTIMIZERS[optimizer](net.parameters())
    schedule = lr_scheduler.StepLR(made, 3, 0.5)

    def step(x, y):
        made.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        made.step()
        return loss

    function, losses = wrap(step), []
    for _ in range(steps):
        x = mg.randn(16, 6)
        losses.append(function(x, (x[:, 0] > 0).to(mg.int64)).item())
        schedule.step()
    numbers = [losses, net.state_dict(), [None if p.grad is None else p.grad for p in net.parameters()]]
    return repr(numbers), repr(made.state_dict()), mg.rand(3).tolist(), made.steps, function


@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        *itertools.product(["perceptron"], list(OPTIMIZERS)[:: 1 if NIGHTLY else 2]),
        ("convolutional", "AdamW"),
        ("recurrent", "SGD"),
    ],
)
def test_training_is_the_same_to_the_bit_with_schedules_dropout_and_statistics(model, optimizer):
    *plain, _ = trained(model, optimizer, lambda step: step)
    *jitted, function = trained(model, optimizer, mg.jit)
    assert jitted == plain
    first = ["the first call with tensors of shapes (16, 6) and (16,)"]
    if optimizer in ("SGD", "momentum") and model != "perceptron":
        assert function.captures == first


def test_a_rate_is_read_anew_and_an_optimizer_of_a_reader_s_own_is_recorded_again():
    class Plain(mg.optim.Optimizer):
        def update(self, p, grad, state, group):
            p.add_(grad, alpha=-group["lr"])

    captures = {}
    for kind in (mg.optim.SGD, Plain):
        w = mg.ones(1, requires_grad=True)
        optimizer = kind([w], lr=1.0) if kind is mg.optim.SGD else kind([w], {"lr": 1.0})

        @mg.jit
        def step(w=w, optimizer=optimizer):
            optimizer.zero_grad()
            (w * 1.0).sum().backward()
            optimizer.step()

        for rate in (1.0, 2.0, 4.0, 4.0):
            optimizer.param_groups[0]["lr"] = rate
            step()
        assert w.item() == 1 - 11
        captures[kind] = step.captures
    assert len(captures[mg.optim.SGD]) == 1
    assert captures[Plain][1:] == ["lr of Plain changed"] * 2


def test_numbers_are_read_anew_wherever_they_stand_in_a_call():
    place = mg.get_default_device()
    mg.kernel("nested", place)(lambda p, how: p * 0 + how["rates"][0][0])

    class Nested(mg.optim.Optimizer):
        traceable = True

        def update(self, p, grad, state, group):
            p.sub_(grad * group["lr"])
            p.clamp_(-group["lr"], group["lr"])
            how = {"rates": [(-group["lr"] - 1, 2.0)]}
            dispatch("nested", place, (p._array,), {"how": how}, p._array)

    w = mg.ones((), requires_grad=True)
    optimizer = Nested([w], {"lr": 1.0})

    @mg.jit
    def step():
        optimizer.zero_grad()
        (w * 1.0).sum().backward()
        optimizer.step()
        return optimizer.param_groups[0]["lr"] * 2

    for rate in (1.0, 2.0, 4.0):
        optimizer.param_groups[0]["lr"] = rate
        found = step()
        assert (found, type(found), w.item()) == (2 * rate, float, -rate - 1)
    assert len(step.captures) == 1
    assert "sub(" in step.program


def test_random_numbers_are_drawn_anew_and_from_where_the_generator_is():
    draw = mg.jit(lambda: (mg.rand(3), mg.randn(2), mg.randperm(4)))
    mg.manual_seed(3)
    found = [[x.tolist() for x in draw()] for _ in range(3)]
    mg.manual_seed(3)
    assert found == [[x.tolist() for x in (mg.rand(3), mg.randn(2), mg.randperm(4))] for _ in range(3)]
    mg.manual_seed(3)
    assert [x.tolist() for x in draw()] == found[0]
    assert len(draw.captures) == 1


def test_rows_of_a_batch_draw_what_they_do_without_a_recording():
    found = []
    for jit in (mg.jit, lambda step: step):
        generator = mg.Generator(3)
        generator.rows(2, 4)
        step = jit(lambda generator=generator: mg.rand(2, generator=generator) + mg.rand(2, generator=generator))
        found.append([step().tolist() for _ in range(4)])
    assert found[0] == found[1]


def test_a_recorded_step_that_uses_none_of_what_it_draws_draws_it_all_the_same():
    mg.manual_seed(1)
    step = mg.jit(lambda: (mg.rand(3), mg.ones(2))[1])
    for _ in range(4):
        step()
    assert mg.random.default_generator.draw(0) == (1, 12)


def test_modules_that_are_switched_are_recorded_again():
    model = nn.Dropout(0.5)
    function = mg.jit(lambda x: model(x))
    x = mg.ones(100)
    assert function(x).max().item() == 2.0
    model.eval()
    assert function(x).tolist() == [1.0] * 100
    assert function(x).tolist() == [1.0] * 100
    assert function.captures[1:] == ["Dropout.training changed from True to False"]


def test_a_parameter_that_is_exchanged_is_recorded_again_and_so_is_a_new_shape():
    model = nn.Linear(2, 1, bias=False)
    function = mg.jit(lambda x: model(x))
    function(mg.ones(1, 2))
    model.weight = nn.Parameter(mg.full((1, 2), 5.0))
    assert function(mg.ones(1, 2)).item() == 10.0
    assert function(mg.ones(3, 2)).tolist() == [[10.0]] * 3
    assert function.captures[1:] == ["weight of Linear was replaced", "the first call with tensors of shapes (3, 2)"]


def test_arguments_may_be_written_differentiated_given_twice_and_in_dicts():
    @mg.jit
    def function(x, more, scale=1.0):
        x.grad = None
        (x * more["y"] * scale).sum().backward()
        more["y"].add_(1)
        return {"sum": x + more["y"], "list": [more["y"], None, 3]}

    for k in range(3):
        x, y = mg.full((2,), float(k), requires_grad=True), mg.full((2,), 10.0 + k)
        found = function(x, {"y": y}, scale=2.0)
        assert x.grad.tolist() == [20.0 + 2 * k] * 2
        assert y.tolist() == [11.0 + k] * 2
        assert found["sum"].tolist() == [11.0 + 2 * k] * 2
        assert found["list"][1:] == [None, 3]
        assert found["list"][0].tolist() == y.tolist()
    assert len(function.captures) == 1
    double = mg.jit(lambda a, b: a + b)
    x = mg.ones(2)
    assert [double(x, x).tolist(), double(x, mg.zeros(2)).tolist()] == [[2.0, 2.0], [1.0, 1.0]]


def test_rows_of_one_tensor_are_read_where_they_are():
    data = mg.arange(12.0).view(6, 2)
    function = mg.jit(lambda x: x.sum())
    assert [function(data[k : k + 2]).item() for k in range(5)] == [data[k : k + 2].sum().item() for k in range(5)]
    assert len(function.captures) == 1


def test_what_stays_is_written_and_counted():
    total = mg.zeros(2)

    @mg.jit
    def add(x):
        total.add_(x * 2)
        return total

    w = mg.ones(2, requires_grad=True)
    for _ in range(3):
        assert add(mg.ones(2)) is not None
    assert total.tolist() == [6.0, 6.0]
    x = mg.ones(2)
    write = mg.jit(lambda x: x.mul_(2))
    write(x)
    y = w * x
    write(x)
    with pytest.raises(mg.errors.GraphError, match="modified by an inplace operation: jit"):
        y.sum().backward()


def test_captures_name_the_scalars_that_a_step_was_traced_for():
    function = mg.jit(lambda x, by: x * by["n"])
    for by in (5, 2, 5):
        function(mg.ones(2), {"n": by})
    first = "the first call with tensors of shapes (2,), by['n']="
    assert function.captures == [f"{first}5", f"{first}2"]
    alone, sized = mg.jit(lambda: mg.ones(1)), mg.jit(lambda n: mg.ones(n))
    alone()
    sized(3)
    assert alone.captures + sized.captures == ["the first call", "the first call with n=3"]


def test_dicts_of_all_kinds_come_back():
    def counted(x):
        found = collections.defaultdict(list)
        found["a"].append(x * 2)
        return collections.OrderedDict(inner=found, maximum=x.max(0))

    function = mg.jit(counted)
    for k in range(3):
        found = function(mg.tensor([0.0, k]))
        assert (type(found), type(found["inner"])) == (collections.OrderedDict, collections.defaultdict)
        assert found["inner"]["a"][0].tolist() == [0.0, 2.0 * k]
        assert found["maximum"].values.item() == k


def test_the_program_is_the_one_that_ran_last():
    function = mg.jit(lambda x: x.exp())
    assert function.program == ""
    for size in (1, 2, 1):
        function(mg.zeros(size))
        assert f"float32[{size}] = exp(" in function.program


def test_what_is_computed_twice_or_for_nothing_is_computed_once_or_not_at_all():
    function = mg.jit(lambda x: (x.exp() + x.exp(), x.sin())[0])
    assert function(mg.zeros(2)).tolist() == [2.0, 2.0]
    calls = function.program.partition("\n\n")[0].splitlines()
    assert [line.split(" = ")[1].split("(")[0] for line in calls] == ["exp", "add"]
    assert function(mg.zeros(2)).tolist() == [2.0, 2.0]


def test_while_somebody_looks_on_the_function_itself_is_called():
    seen = []
    function = mg.jit(lambda x: x * 2)
    function(mg.ones(2))
    with mg.tap(lambda call: seen.append(call.op)):
        function(mg.ones(2))
    assert seen == ["mul"]
    outer = mg.jit(lambda x: function(x) + 1)
    assert [outer(mg.ones(1)).item() for _ in range(2)] == [3.0, 3.0]


def test_memory_stays_as_it_was():
    model = perceptron()
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)

    @mg.jit
    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    x = mg.ones(16, 6)
    found = []
    for k in range(60):
        step(x)
        if k in (20, 59):
            now = mg.memory()[mg.get_default_device()]
            found.append((now.tensors, now.bytes))
    assert found[0] == found[1]


SAMPLES = all_samples()
READERS = {  # operations that read elements, or whose output shape depends on them
    "counting": ("bincount", "unique"),
    "distance": ("gaussian_nll_loss",),
    "draws": ("multinomial",),
    "elementwise": ("by integers",),
    "embedding": ("embedding_bag with offsets", "embedding_bag, weighed"),
    "indexing": ("x[", "one_hot, counted", "masked_", "nonzero", "argwhere"),
    "shape": ("repeat_interleave by", "tensor_split at a tensor", "tensor_split by a 0-d"),
    "statistics": ("cov, counted", "cov, weighed", "quantile", "nanquantile"),
}


def reads(key):
    family, _, name = key.partition(": ")
    return any(name.startswith(one) for one in READERS.get(family, ()))


@pytest.mark.parametrize("key", list(SAMPLES)[:: 1 if NIGHTLY else 4])
def test_every_call_and_its_gradient_are_the_same_recorded_with_some_numbers_and_run_with_others(key):
    sample = SAMPLES[key]
    arrays = [parity.cast(array, parity.FLOATS[0]) for array in sample.inputs]

    def function(*leaves):
        found = sample.call(parity.ours(), *leaves)
        outputs = [x for x in (found if isinstance(found, tuple | list) else [found]) if isinstance(x, mg.Tensor)]
        for x in outputs:
            if x.requires_grad:
                x.backward(mg.ones_like(x), retain_graph=True)
        return outputs

    jitted = mg.jit(function)
    for sign in (1.0, 0.5, 1.0):  # traced call by call, then recorded as launches, then replayed
        found = []
        for each in (function, jitted):
            mg.manual_seed(1)
            made = [mg.tensor(sign * x if x.dtype.kind == "f" else x) for x in arrays]
            leaves = [x.requires_grad_() if x.dtype.is_floating_point else x for x in made]
            try:
                outputs = [x.detach().numpy() for x in each(*leaves)]
            except CaptureError:
                assert reads(key)
                return
            except parity.REFUSED as error:
                found.append(str(error))
                continue
            found.append((outputs, [None if x.grad is None else x.grad.numpy() for x in leaves]))
        assert_alike(*found)


def assert_alike(a, b):
    """Assert that strings, None and structure are equal, and arrays up to rounding."""
    if isinstance(a, tuple | list):
        assert type(a) is type(b)
        for x, y in zip(a, b, strict=True):
            assert_alike(x, y)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        rtol = 4 * np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0
        np.testing.assert_allclose(b, a, rtol=rtol, atol=0)
    else:
        assert a == b


def test_only_a_function_can_be_recorded():
    with pytest.raises(DTypeError, match="jit: 3 is an int; expected a callable"):
        mg.jit(3)
