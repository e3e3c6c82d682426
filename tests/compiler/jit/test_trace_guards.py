"""The guards of a trace: if anything that the step reads has changed, it is retraced, or refused."""

import copy

import pytest

import minigrad as mg
from minigrad.core.errors import CaptureError, GraphError
from needs import needs

needs("numpy")

nn = mg.nn


def assert_same_and_get_captures(run):
    """Check that `run` returns the same with plain and with jitted steps, and return the reasons for retracing."""
    mg.manual_seed(5)
    plain = run(lambda step: step)
    jitted_steps = []

    def jitted(step):
        jitted_steps.append(mg.jit(step))
        return jitted_steps[-1]

    mg.manual_seed(5)
    assert run(jitted) == plain
    return jitted_steps[0].captures[1:]


def calls_around(net, change, shape=(1, 2)):
    """Return a function that calls a module twice, changes it and calls it twice again."""

    def run(wrap):
        model = net()
        function, x = wrap(lambda x: model(x)), mg.ones(shape)
        results = [function(x).tolist() for _ in range(2)]
        change(model)
        return results + [function(-x).tolist() for _ in range(2)]

    return run


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def put_module(model):
    model[0] = nn.Identity()


def put_bias(model):
    model.bias = nn.Parameter(mg.ones(2))


MODULES = {
    "a module is added": (
        lambda: nn.Sequential(nn.Linear(2, 2)),
        lambda model: model.append(nn.ReLU()),
        "the number of modules in Sequential changed from 1 to 2",
    ),
    "a module is added to a list, which is not called itself": (
        Listed,
        lambda model: model.layers.append(nn.Linear(2, 2)),
        "the number of modules in ModuleList changed from 1 to 2",
    ),
    "a module is exchanged": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
        put_module,
        "0 of Sequential was replaced",
    ),
    "a parameter comes where was none": (
        lambda: nn.Linear(2, 2, bias=False),
        put_bias,
        "bias of Linear was replaced",
    ),
    "an attribute is another": (
        lambda: nn.LeakyReLU(0.5),
        lambda model: setattr(model, "negative_slope", 0.25),
        "LeakyReLU.negative_slope changed from 0.5 to 0.25",
    ),
    "a hook is added": (
        lambda: nn.Linear(2, 2),
        lambda model: model.register_forward_hook(lambda module, args, output: output * 2),
        "the table of hooks of Linear was replaced",
    ),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module_is_retraced_when(case):
    net, change, reason = MODULES[case]
    assert assert_same_and_get_captures(calls_around(net, change)) == [reason]


def load(model, optimizer):
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 0.5
    optimizer.load_state_dict(state)


OPTIMIZERS = {
    "a state is loaded": (load, "param_groups of {} was replaced"),
    "it maximizes": (lambda m, o: o.param_groups[0].update(maximize=True), "maximize of {} changed from False to True"),
    "a parameter is frozen": (
        lambda m, o: m[0].weight.requires_grad_(False),
        "requires_grad of weight of Linear changed from True to False",
    ),
    "it forgets": (lambda m, o: o.state.clear(), "the number of parameters with state in {} changed from 4 to 0"),
    "a parameter is taken from it": (
        lambda m, o: o.param_groups[0]["params"].pop(),
        "the parameters in a group of {} changed",
    ),
    "its list of parameters is another": (
        lambda m, o: o.param_groups[0].update(params=o.param_groups[0]["params"][:2]),
        "params of {} was replaced",
    ),
    "a parameter has other memory": (
        lambda m, o: m.to(mg.float64).to(mg.float32),
        "the memory of weight of Linear was replaced",
    ),
}


@pytest.mark.parametrize("case", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_an_optimizer_is_retraced_when(case, kind):
    change, reason = OPTIMIZERS[case]
    options = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.1}}[kind]

    def run(wrap):
        model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
        optimizer = getattr(mg.optim, kind)(model.parameters(), **options)

        @wrap
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = []
        for k in range(7):
            if k == 4:
                change(model, optimizer)
            losses.append(step(mg.randn(5, 2)).item())
        return losses, [p.tolist() for p in model.parameters()], repr(optimizer.state_dict()), optimizer.steps

    assert reason.format(kind) in assert_same_and_get_captures(run)


def test_a_group_that_is_added_is_trained_from_then_on():
    def run(wrap):
        first, second = nn.Linear(2, 2), nn.Linear(2, 2)
        optimizer = mg.optim.SGD(first.parameters(), lr=0.1)

        @wrap
        def step(x):
            optimizer.zero_grad()
            second(first(x)).square().sum().backward()
            optimizer.step()

        for k in range(6):
            if k == 3:
                optimizer.add_param_group({"params": second.parameters()})
            step(mg.ones(1, 2))
        return [p.tolist() for p in (*first.parameters(), *second.parameters())]

    assert assert_same_and_get_captures(run)[-1] == "the groups of SGD changed"


SCALE = 2.0


def test_changed_closure_variables_and_globals_retrace(monkeypatch):
    def run(wrap):
        monkeypatch.setitem(globals(), "SCALE", 2.0)
        count, hidden = 0, mg.zeros(1)
        function = wrap(lambda x: (x * SCALE, (lambda: hidden + count)()))
        results = []
        for k in range(5):
            results.append([x.item() for x in function(mg.ones(1))])
            if k == 1:
                hidden = mg.ones(1)
            if k == 2:
                count = 3
            if k == 3:
                monkeypatch.setitem(globals(), "SCALE", 5.0)
        return results

    assert assert_same_and_get_captures(run) == [
        "hidden was replaced",
        "count changed from 0 to 3",
        "SCALE changed from 2.0 to 5.0",
    ]


def test_a_step_that_changes_its_closure_is_retraced_each_time():
    def run(wrap):
        count, hidden = 0, mg.zeros(1)

        @wrap
        def step(x):
            nonlocal count, hidden
            count, hidden = count + 1, hidden * 0.5 + x
            return hidden * count

        return [step(mg.ones(1)).item() for _ in range(4)]

    assert assert_same_and_get_captures(run) == [
        f"in the step itself count changed from {k} to {k + 1}" for k in range(3)
    ]


def test_methods_are_traced_per_instance_and_module_arguments_are_guarded():
    class Trainer:
        def __init__(self, by):
            self.weight = mg.full((1,), by)

        @mg.jit
        def step(self, x):
            return x * self.weight

    one, other = Trainer(2.0), Trainer(5.0)
    assert [t.step(mg.full((1,), k)).item() for k in (1.0, 2.0) for t in (one, other)] == [2.0, 5.0, 4.0, 10.0]
    assert len(Trainer.step.captures) == 2

    def run(wrap):
        model = nn.Linear(1, 1)
        function = wrap(lambda model, x: x * (2 if model.training else 3))
        results = [function(model, mg.ones(1)).item()]
        model.eval()
        return [*results, function(model, mg.ones(1)).item()]

    assert assert_same_and_get_captures(run) == ["Linear.training changed from True to False"]


def test_a_module_that_counts_its_calls_is_retraced_each_time():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def forward(self, x):
            self.count += 1
            return x * self.count

    def run(wrap):
        model = Counting()
        function = wrap(lambda x: model(x))
        return [function(mg.ones(1)).item() for _ in range(3)], model.count

    assert assert_same_and_get_captures(run) == [
        f"in the step itself Counting.count changed from {k} to {k + 1}" for k in range(2)
    ]


def test_arguments_are_distinguished_by_overlap():
    def columns(wrap):
        data = mg.arange(24.0).view(6, 4)
        function = wrap(lambda x, y: x[3:].sum() * 2 + y[1:].sum())
        return [function(data[:, j], data[:, k]).item() for j, k in ((0, 1), (0, 2), (2, 0), (3, 3))]

    def written(wrap):
        data = mg.arange(12.0)
        function = wrap(lambda x, y: (x.add_(1), x.sum() * 2 + y.sum())[1])
        offsets = [(0, 2), (0, 6), (4, 6), (5, 3)]
        return [function(data[j : j + 4], data[k : k + 4]).item() for j, k in offsets], data.tolist()

    def adjacent(wrap):
        data = mg.arange(12.0).view(6, 2)
        function = wrap(lambda x: (x * data[1].sum()).sum() + data.sum())
        return [function(data[k : k + 2]).item() for k in (0, 2, 4)], function(mg.ones(2, 2)).item()

    def parameter(wrap):
        model, x = nn.Linear(2, 1), mg.ones(1, 2)
        function = wrap(lambda w: (model(x) * w).sum())
        return [function(w).item() for w in (model.weight, nn.Parameter(mg.ones(1, 2)), model.weight)]

    assert "the first call with tensors of shapes (6,) and (6,)" in assert_same_and_get_captures(columns)
    assert_same_and_get_captures(written)
    assert "an argument lies at another offset in the memory that it shares with data" in assert_same_and_get_captures(
        adjacent
    )
    assert assert_same_and_get_captures(parameter)[0] == "an argument that was weight of Linear is now another tensor"


def test_a_write_to_what_an_outer_graph_saved_is_noticed_by_its_backward():
    def refused(inside, saved):
        def run(wrap):
            w = mg.ones(2, requires_grad=True)
            function = wrap(inside)
            function()
            y = (w * saved()).sum()
            function()
            with pytest.raises(GraphError, match=r"mul saved its operand b.*modified by") as caught:
                y.backward()
            return caught.type

        assert_same_and_get_captures(run)

    x = mg.ones(4)
    part = x[1:3]
    norm = nn.BatchNorm1d(2)
    refused(lambda: (x.add_(1), None)[1], lambda: x[:2])
    refused(lambda: (part.mul_(2), None)[1], lambda: x[2:])
    refused(lambda: norm(mg.ones(3, 2)), lambda: norm.running_mean)
    w = mg.ones(2, requires_grad=True)
    read = mg.jit(lambda: x[:2] + 1)
    read()
    y = (w * x[:2]).sum()
    read()
    y.backward()  # tensors that are only read may be saved


def test_an_outer_tensor_gets_no_graph():
    w, memory = mg.ones(2, requires_grad=True), mg.zeros(2)

    def step():
        memory.zero_()
        memory.add_(w * 2)

    with pytest.raises(CaptureError, match=r"of shape \(2,\) from outside the step, by AddBackward"):
        mg.jit(step)()

    def quiet():
        with mg.no_grad():
            memory.mul_(0.5).add_(w)
        return memory.sum()

    memory = mg.zeros(2)
    function = mg.jit(quiet)
    assert [function().item() for _ in range(3)] == [2.0, 3.0, 3.5]
    assert memory.grad_fn is None


def test_a_written_argument_gets_no_graph():
    w, x = mg.full((2,), 2.0, requires_grad=True), mg.ones(2)
    function = mg.jit(lambda x: x.mul_(w).sum())
    assert [function(x).item() for _ in range(3)] == [4.0, 8.0, 16.0]
    assert (x.grad_fn, x.requires_grad) == (None, False)


def test_a_generator_may_be_seeded_between_two_draws_of_a_step():
    def run(wrap):
        generator = mg.Generator(5)

        @wrap
        def step():
            first = mg.rand(2), mg.rand(1, generator=generator)
            mg.manual_seed(9)
            generator.manual_seed(2)
            second = mg.rand(2), mg.randn(1), mg.rand(1, generator=generator)
            mg.manual_seed(10)
            return *first, *second, mg.rand(1), mg.rand(1, generator=mg.Generator(3))

        results = []
        for k in range(4):
            results += [x.tolist() for x in (*step(), mg.rand(1))]
            if k == 2:
                mg.manual_seed(77)
        return results

    assert assert_same_and_get_captures(run) == []


@pytest.mark.parametrize("name", ["seed", "initial_seed", "get_rng_state"])
def test_asking_a_generator_for_its_state_is_refused(name):
    method = name.replace("rng_", "")
    with pytest.raises(CaptureError, match=rf"jit: {method} of a generator is read .*, at .*test_trace_guards\.py:"):
        mg.jit(lambda: getattr(mg, name)())()


def test_an_outer_tensor_keeps_its_shape_in_a_jitted_step():
    outer = mg.ones(2, 2)
    for step in (mg.jit(lambda x: x.t_() * 1), mg.jit(lambda x: outer.unsqueeze_(0) * x)):
        with pytest.raises(CaptureError, match=r"jit: (t|unsqueeze)_ changes the shape of a tensor from outside"):
            step(mg.ones(2, 2))
    assert outer.shape == (2, 2)
    inside = mg.jit(lambda x: (x + 1).t_().unsqueeze_(0) * 2)
    assert [inside(mg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() for _ in range(3)] == [[[[4.0, 8.0], [6.0, 10.0]]]] * 3
