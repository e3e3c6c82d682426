"""`watch`: what it measures and shows, that it costs little and does not affect training."""

import html
import re

import pytest

import minigrad as mg
from minigrad.profiling.profiler import profile
from minigrad_viz import watch
from minigrad_viz.pictures.board import WIDTH, figure
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.widget import watching
from strategies import PARITY

nn, F = mg.nn, mg.functional


def model(seed=0):
    mg.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def steps(net, count, seen=None, lr=0.1):
    """Train on the same batch, and return the losses."""
    mg.manual_seed(1)
    x, t = mg.randn(16, 3).detach(), mg.randint(0, 2, (16,))
    optimizer, found = mg.optim.SGD(net.parameters(), lr=lr), []
    for _ in range(count):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        if seen is not None:
            seen.log(loss)
        found.append(float(loss))
    return found


def always(seen):
    """Measure each step, whatever the cost."""
    seen._clock.may = lambda share: True
    return seen


def test_training_is_the_same_to_the_bit_with_and_without():
    plain, watched = model(), model()
    losses = steps(plain, 20)
    with always(watch(watched)) as seen:
        assert steps(watched, 20, seen) == losses
    assert [p.tolist() for p in watched.parameters()] == [p.tolist() for p in plain.parameters()]
    assert seen.measured == 20
    assert [loss for _, loss in seen.view.losses] == losses


def test_a_measured_step_tells_norms_updates_and_dead_units():
    net = model()
    with mg.no_grad():
        net[0].weight[:2] = 0.0
        net[0].bias[:2] = -1.0
    before = [p.detach().clone() for p in net[0].parameters()]
    with watch(net) as seen:
        steps(net, 1, seen)
    first, relu, last = seen.view.layers
    assert [layer.kind for layer in seen.view.layers] == ["Linear", "ReLU", "Linear"]
    norm = sum(float((p.grad * p.grad).sum()) for p in net[0].parameters()) ** 0.5
    assert first.norms == [(1, pytest.approx(norm, rel=PARITY["float32"]))]
    weight = sum(float((p * p).sum()) for p in before) ** 0.5
    assert first.update == pytest.approx(0.1 * norm / weight, rel=1e-3)  # a difference of nearby float32 numbers
    assert relu.dead >= 0.25
    assert (relu.norms, first.dead, last.dead) == ([], None, None)
    assert len(first.values) == 16 * 8
    assert len(last.gradients) == 16 * 2


def test_gradient_flow_is_the_root_mean_square_of_what_the_weights_of_a_layer_got():
    net = model()
    with always(watch(net)) as seen:
        steps(net, 3, seen)
    columns = seen.view.flow.columns
    assert [(column.first, sorted(column.sizes)) for column in columns] == [(1, [0, 2]), (2, [0, 2]), (3, [0, 2])]
    gradients = [p.grad for p in net[2].parameters()]
    mean = sum(float((x * x).sum()) for x in gradients) / sum(x.numel() for x in gradients)
    assert columns[-1].sizes[2] == pytest.approx(mean**0.5, rel=PARITY["float32"])
    assert seen.view.flow.alarms == []


def test_a_layer_without_a_gradient_in_a_step_has_no_cell_in_its_column():
    net = model()
    seen = always(watch(net))
    for step in range(2):
        net[0].requires_grad_(step == 1)
        steps(net, 1, seen)
        for p in net.parameters():
            p.grad = None
    seen.close()
    assert [sorted(column.sizes) for column in seen.view.flow.columns] == [[2], [0, 2]]


def alarms(seen):
    return [(alarm.kind, alarm.step, seen.view.layers[alarm.row].name) for alarm in seen.view.flow.alarms]


def test_vanishing_gradients_of_a_deep_network_begin_at_the_first_step():
    mg.manual_seed(0)
    net = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(3, 3), nn.Sigmoid())], nn.Linear(3, 2))
    with always(watch(net)) as seen:
        steps(net, 2, seen)
    assert alarms(seen)[0] == ("vanishing", 1, "0")
    assert {kind for kind, _, _ in alarms(seen)} == {"vanishing"}
    assert "! step 1: vanishing gradient in 0, " in str(seen)


def test_the_first_number_that_is_not_finite_is_found_in_its_layer():
    net = model()
    with always(watch(net)) as seen:
        steps(net, 2, seen)
        with mg.no_grad():
            net[2].weight[0, 0] = float("nan")
        steps(net, 2, seen)
    assert alarms(seen) == [("nan", 3, "2")]
    assert "! step 3: the first NaN, in the output of 2" in str(seen)


def test_dead_units_are_an_alarm_where_they_are_half():
    net = model()
    with always(watch(net)) as seen:
        steps(net, 2, seen)
        with mg.no_grad():
            net[0].bias[:] = -100.0
        steps(net, 1, seen)
    assert ("dead", 3, "1") in alarms(seen)
    assert ("vanishing", 3, "0") in alarms(seen)  # no gradient arrives there


def trained(forget, micro=1):
    """Return the alarms of three steps of `micro` backward passes each, in a loop that clears gradients with
    `forget`.
    """
    net = model()
    optimizer, x = mg.optim.SGD(net.parameters(), lr=0.01), mg.ones(4, 3)
    with always(watch(net)) as seen:
        for _ in range(3):
            for part in range(micro):
                loss = F.cross_entropy(net(x), mg.tensor([0, 1, 0, 1]))
                if part == 0:
                    forget(optimizer)
                loss.backward()
            optimizer.step()
            seen.log(loss)
    return alarms(seen)


def test_gradients_of_the_step_before_are_stale_however_they_are_forgotten_and_sums_of_one_step_are_not():
    stale = [("stale", 2, "0"), ("stale", 2, "2")]
    assert trained(lambda optimizer: None) == stale
    assert trained(lambda optimizer: None, micro=2) == stale
    for micro in (1, 2):
        assert trained(lambda optimizer: optimizer.zero_grad(), micro) == []
        assert trained(lambda optimizer: optimizer.zero_grad(set_to_none=False), micro) == []


def test_a_sum_over_several_logged_losses_before_a_step_is_not_stale():
    net = model()
    optimizer, x = mg.optim.SGD(net.parameters(), lr=0.01), mg.ones(4, 3)
    with always(watch(net)) as seen:
        for part in range(8):
            loss = F.cross_entropy(net(x), mg.tensor([0, 1, 0, 1]))
            loss.backward()
            if part % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
            seen.log(loss)
    assert alarms(seen) == []


def test_a_unit_is_a_channel_of_images():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    with mg.no_grad():
        net[0].weight[1:2] = 0.0
        net[0].bias[1:2] = -1.0
        net[0].bias[0:1] = 100.0
        net[0].bias[2:] = 100.0
    seen = watch(net)
    loss = net(mg.ones(2, 1, 4, 4)).sum()
    loss.backward()
    seen.log(loss)
    assert seen.view.layers[1].dead == 0.25
    seen.close()


def test_all_layers_of_a_measured_step_come_in_one_transfer(monkeypatch):
    monkeypatch.setattr(watching, "_HERE", ())
    net = model()
    x, t = mg.randn(16, 3).detach(), mg.randint(0, 2, (16,))
    seen = always(watch(net))
    for _ in range(2):
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        with profile() as ran:
            seen.log(loss)
    seen.close()
    assert seen.measured == 2
    assert ran.downloads.times <= 1


def test_steps_that_are_not_measured_have_no_hooks_and_keep_their_loss_on_the_device(monkeypatch):
    monkeypatch.setattr(watching, "_HERE", ())  # as if the default device were a GPU
    net = model()
    seen = watch(net)
    seen._clock.may = lambda share: False
    steps(net, 5, seen)
    assert seen.measured == 1
    assert all(not module._hooks.after for module in net)
    assert len(seen.view.losses) == 1
    seen.close()
    assert [step for step, _ in seen.view.losses] == [1, 2, 3, 4, 5]


def test_measuring_waits_until_it_was_earned():
    clock = watch(model())._clock
    clock._measured, clock._usual, clock._cost, clock._credit, clock._took = False, 1.0, 3.0, -3.0, 1.0
    waited = 0
    while not clock.may(0.1):
        waited += 1
    assert 29 <= waited <= 31  # the time of three steps, at a tenth of each


def test_fit_tells_the_losses_and_those_of_validation():
    net = model()
    data = [(mg.randn(8, 3).detach(), mg.randint(0, 2, (8,))) for _ in range(3)]
    seen = watch(net)
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    history = mg.training.fit(
        net, data, optimizer, F.cross_entropy, epochs=2, validate=data, callbacks=[seen], progress=False
    )
    seen.close()
    assert [loss for _, loss in seen.view.losses] == history.steps
    assert seen.view.validation == [(3, history["val_loss"][0]), (6, history["val_loss"][1])]
    assert "● validation" in seen.svg()


def test_layers_are_chosen_by_name():
    assert [layer.name for layer in watch(model(), layers=["2", "0"]).view.layers] == ["2", "0"]
    with pytest.raises(mg.errors.ArgumentError, match=r"layers=\['3'\], but the modules are 0, 1, 2"):
        watch(model(), layers=["3"])


def test_of_many_layers_some_are_shown_and_the_text_says_so():
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(40)])
    seen = watch(net)
    names = [layer.name for layer in seen.view.layers]
    assert (len(names), names[0], names[-1]) == (24, "0", "39")
    assert str(seen).endswith("16 more layers are not shown; select layers with watch(model, layers=[…]).")


def test_what_is_no_model_is_refused():
    with pytest.raises(mg.errors.DTypeError, match=r"watch: 3 is not a module"):
        watch(3)
    with pytest.raises(mg.errors.ArgumentError, match=r"share=0; it must be above 0"):
        watch(model(), share=0)


def test_the_heatmap_stands_between_the_loss_and_the_layers_in_every_form(tmp_path):
    net = model()
    with always(watch(net)) as seen:
        steps(net, 3, seen)
    svg, said = seen.svg(), "Gradient flow: 2 layers over 3 measured steps, from 10⁻"
    assert svg.index('class="curve"') < svg.index('class="flow"') < svg.index(">update / weight<")
    assert "<desc>Sequential after 3 steps" in svg
    assert said in svg
    assert said in html.unescape(re.search(r'alt="([^"]*)"', figure(seen.view))[1])
    assert f'style="width:{WIDTH}px;max-width:none' in figure(seen.view)  # smaller, it could not be read
    assert LIGHT["page"] in seen.svg("light")
    assert DARK["page"] not in seen.svg("light")
    for name in ("a.svg", "a.html", "a.txt"):
        seen.save(tmp_path / name)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == svg
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert svg in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == str(seen)
    assert "\ngradient flow: " in str(seen)
    with pytest.raises(mg.errors.ArgumentError, match=r"Use one of \.svg, \.html, \.txt"):
        seen.save(tmp_path / "a.png")


def test_a_notebook_keeps_an_image_and_a_text():
    seen = watch(model())
    bundle = seen._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/html"] == figure(seen.view)
    assert "<script" not in bundle["text/html"]
    assert bundle["text/plain"].splitlines()[1].split()[:2] == ["layer", "values"]
