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
    optimizer_object = OPTIMIZERS[optimizer](net.parameters())
    schedule = lr_scheduler.StepLR(optimizer_object, 3, 0.5)

    def step(x, y):
        optimizer_object.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer_object.step()
        return loss

    function, losses = wrap(step), []
    for _ in range(steps):
        x = mg.randn(16, 6)
        losses.append(function(x, (x[:, 0] > 0).to(mg.int64)).item())
        schedule.step()
    values = [losses, net.state_dict(), [None if p.grad is None else p.grad for p in net.parameters()]]
    return repr(values), repr(optimizer_object.state_dict()), mg.rand(3).tolist(), optimizer_object.steps, function


@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        *itertools.product(["perceptron"], list(OPTIMIZERS)[:: 1 if NIGHTLY else 2]),
        ("convolutional", "AdamW"),
        ("recurrent", "SGD"),
    ],
)
def test_training_has_equal_bits_with_schedules_dropout_and_statistics(model, optimizer):
    *plain, _ = trained(model, optimizer, lambda step: step)
    *jitted, function = trained(model, optimizer, mg.jit)
    assert jitted == plain
    first = ["the first call with tensors of shapes (16, 6) and (16,)"]
    if optimizer in ("SGD", "momentum") and model != "perceptron":
        assert function.captures == first


def test_a_learning_rate_is_read_each_call_and_a_custom_optimizer_is_retraced():
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


def test_scalars_are_read_each_call_in_nested_attributes():
    device = mg.get_default_device()
    mg.kernel("nested", device)(lambda p, params: p * 0 + params["rates"][0][0])

    class Nested(mg.optim.Optimizer):
        traceable = True

        def update(self, p, grad, state, group):
            p.sub_(grad * group["lr"])
            p.clamp_(-group["lr"], group["lr"])
            params = {"rates": [(-group["lr"] - 1, 2.0)]}
            dispatch("nested", device, (p._array,), {"params": params}, p._array)

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
        result = step()
        assert (result, type(result), w.item()) == (2 * rate, float, -rate - 1)
    assert len(step.captures) == 1
    assert "sub(" in step.program


def test_random_values_continue_from_the_generator_state():
    draw = mg.jit(lambda: (mg.rand(3), mg.randn(2), mg.randperm(4)))
    mg.manual_seed(3)
    results = [[x.tolist() for x in draw()] for _ in range(3)]
    mg.manual_seed(3)
    assert results == [[x.tolist() for x in (mg.rand(3), mg.randn(2), mg.randperm(4))] for _ in range(3)]
    mg.manual_seed(3)
    assert [x.tolist() for x in draw()] == results[0]
    assert len(draw.captures) == 1


def test_rows_of_a_batch_draw_the_same_as_eager():
    results = []
    for jit in (mg.jit, lambda step: step):
        generator = mg.Generator(3)
        generator.rows(2, 4)
        step = jit(lambda generator=generator: mg.rand(2, generator=generator) + mg.rand(2, generator=generator))
        results.append([step().tolist() for _ in range(4)])
    assert results[0] == results[1]


def test_unused_draws_still_advance_the_generator():
    mg.manual_seed(1)
    step = mg.jit(lambda: (mg.rand(3), mg.ones(2))[1])
    for _ in range(4):
        step()
    assert mg.random.default_generator.draw(0) == (1, 12)


def test_a_change_of_training_mode_retraces():
    model = nn.Dropout(0.5)
    function = mg.jit(lambda x: model(x))
    x = mg.ones(100)
    assert function(x).max().item() == 2.0
    model.eval()
    assert function(x).tolist() == [1.0] * 100
    assert function(x).tolist() == [1.0] * 100
    assert function.captures[1:] == ["Dropout.training changed from True to False"]


def test_a_replaced_parameter_and_a_new_shape_retrace():
    model = nn.Linear(2, 1, bias=False)
    function = mg.jit(lambda x: model(x))
    function(mg.ones(1, 2))
    model.weight = nn.Parameter(mg.full((1, 2), 5.0))
    assert function(mg.ones(1, 2)).item() == 10.0
    assert function(mg.ones(3, 2)).tolist() == [[10.0]] * 3
    assert function.captures[1:] == ["weight of Linear was replaced", "the first call with tensors of shapes (3, 2)"]


def test_arguments_may_be_written_differentiated_given_twice_and_in_dicts():
    @mg.jit
    def function(x, mapping, scale=1.0):
        x.grad = None
        (x * mapping["y"] * scale).sum().backward()
        mapping["y"].add_(1)
        return {"sum": x + mapping["y"], "list": [mapping["y"], None, 3]}

    for k in range(3):
        x, y = mg.full((2,), float(k), requires_grad=True), mg.full((2,), 10.0 + k)
        result = function(x, {"y": y}, scale=2.0)
        assert x.grad.tolist() == [20.0 + 2 * k] * 2
        assert y.tolist() == [11.0 + k] * 2
        assert result["sum"].tolist() == [11.0 + 2 * k] * 2
        assert result["list"][1:] == [None, 3]
        assert result["list"][0].tolist() == y.tolist()
    assert len(function.captures) == 1
    double = mg.jit(lambda a, b: a + b)
    x = mg.ones(2)
    assert [double(x, x).tolist(), double(x, mg.zeros(2)).tolist()] == [[2.0, 2.0], [1.0, 1.0]]


def test_slices_of_one_tensor_share_a_trace():
    data = mg.arange(12.0).view(6, 2)
    function = mg.jit(lambda x: x.sum())
    assert [function(data[k : k + 2]).item() for k in range(5)] == [data[k : k + 2].sum().item() for k in range(5)]
    assert len(function.captures) == 1


def test_in_place_writes_count_as_versions():
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
        result = collections.defaultdict(list)
        result["a"].append(x * 2)
        return collections.OrderedDict(inner=result, maximum=x.max(0))

    function = mg.jit(counted)
    for k in range(3):
        result = function(mg.tensor([0.0, k]))
        assert (type(result), type(result["inner"])) == (collections.OrderedDict, collections.defaultdict)
        assert result["inner"]["a"][0].tolist() == [0.0, 2.0 * k]
        assert result["maximum"].values.item() == k


def test_program_describes_the_last_trace():
    function = mg.jit(lambda x: x.exp())
    assert function.program == ""
    for size in (1, 2, 1):
        function(mg.zeros(size))
        assert f"float32[{size}] = exp(" in function.program


def test_common_and_dead_calls_are_eliminated():
    function = mg.jit(lambda x: (x.exp() + x.exp(), x.sin())[0])
    assert function(mg.zeros(2)).tolist() == [2.0, 2.0]
    calls = function.program.partition("\n\n")[0].splitlines()
    assert [line.split(" = ")[1].split("(")[0] for line in calls] == ["exp", "add"]
    assert function(mg.zeros(2)).tolist() == [2.0, 2.0]


def test_a_tap_runs_the_function_eagerly():
    calls = []
    function = mg.jit(lambda x: x * 2)
    function(mg.ones(2))
    with mg.tap(lambda call: calls.append(call.op)):
        function(mg.ones(2))
    assert calls == ["mul"]
    outer = mg.jit(lambda x: function(x) + 1)
    assert [outer(mg.ones(1)).item() for _ in range(2)] == [3.0, 3.0]


def test_memory_does_not_grow():
    model = perceptron()
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)

    @mg.jit
    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    x = mg.ones(16, 6)
    counts = []
    for k in range(60):
        step(x)
        if k in (20, 59):
            now = mg.memory()[mg.get_default_device()]
            counts.append((now.tensors, now.bytes))
    assert counts[0] == counts[1]


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
def test_every_call_and_its_gradient_replay_with_other_elements(key):
    sample = SAMPLES[key]
    arrays = [parity.cast(array, parity.FLOATS[0]) for array in sample.inputs]

    def function(*leaves):
        result = sample.call(parity.minigrad_functions(), *leaves)
        outputs = [x for x in (result if isinstance(result, tuple | list) else [result]) if isinstance(x, mg.Tensor)]
        for x in outputs:
            if x.requires_grad:
                x.backward(mg.ones_like(x), retain_graph=True)
        return outputs

    jitted = mg.jit(function)
    for sign in (1.0, 0.5, 1.0):  # traced call by call, then recorded as launches, then replayed
        result = []
        for each in (function, jitted):
            mg.manual_seed(1)
            inputs = [mg.tensor(sign * x if x.dtype.kind == "f" else x) for x in arrays]
            leaves = [x.requires_grad_() if x.dtype.is_floating_point else x for x in inputs]
            try:
                outputs = [x.detach().numpy() for x in each(*leaves)]
            except CaptureError:
                assert reads(key)
                return
            except parity.EXPECTED_ERRORS as error:
                result.append(str(error))
                continue
            result.append((outputs, [None if x.grad is None else x.grad.numpy() for x in leaves]))
        assert_alike(*result)


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


def test_only_a_function_can_be_jitted():
    with pytest.raises(DTypeError, match="jit: 3 is an int; expected a callable"):
        mg.jit(3)
