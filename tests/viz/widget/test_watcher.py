"""`watch`: what it measures and shows, that it costs little and does not affect training."""

import html
import re

import pytest

import minigrad as mg
from minigrad.profiling.profiler import profile
from minigrad_viz import watch
from minigrad_viz.pictures.dashboard import WIDTH, figure
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.trace import library
from strategies import PARITY

nn, F = mg.nn, mg.functional


def model(seed=0):
    mg.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def train_steps(net, count, watcher=None, lr=0.1):
    """Train on the same batch, and return the losses."""
    mg.manual_seed(1)
    x, t = mg.randn(16, 3).detach(), mg.randint(0, 2, (16,))
    optimizer, losses = mg.optim.SGD(net.parameters(), lr=lr), []
    for _ in range(count):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        if watcher is not None:
            watcher.log(loss)
        losses.append(float(loss))
    return losses


def measure_always(watcher):
    """Measure each step, whatever the cost."""
    watcher._clock.may_measure = lambda share: True
    return watcher


def test_watch_does_not_change_training_bit_for_bit():
    plain, watched = model(), model()
    losses = train_steps(plain, 20)
    with measure_always(watch(watched)) as watcher:
        assert train_steps(watched, 20, watcher) == losses
    assert [p.tolist() for p in watched.parameters()] == [p.tolist() for p in plain.parameters()]
    assert watcher.measured_count == 20
    assert [loss for _, loss in watcher.view.losses] == losses


def test_measured_step_gives_norms_updates_and_dead_units():
    net = model()
    with mg.no_grad():
        net[0].weight[:2] = 0.0
        net[0].bias[:2] = -1.0
    before = [p.detach().clone() for p in net[0].parameters()]
    with watch(net) as watcher:
        train_steps(net, 1, watcher)
    first, relu, last = watcher.view.layers
    assert [layer.kind for layer in watcher.view.layers] == ["Linear", "ReLU", "Linear"]
    norm = sum(float((p.grad * p.grad).sum()) for p in net[0].parameters()) ** 0.5
    assert first.norms == [(1, pytest.approx(norm, rel=PARITY["float32"]))]
    weight = sum(float((p * p).sum()) for p in before) ** 0.5
    assert first.update_ratio == pytest.approx(0.1 * norm / weight, rel=1e-3)  # a difference of nearby float32 numbers
    assert relu.dead_fraction >= 0.25
    assert (relu.norms, first.dead_fraction, last.dead_fraction) == ([], None, None)
    assert len(first.values) == 16 * 8
    assert len(last.gradients) == 16 * 2


def test_gradient_flow_is_the_rms_of_a_layers_gradient():
    net = model()
    with measure_always(watch(net)) as watcher:
        train_steps(net, 3, watcher)
    columns = watcher.view.flow.columns
    assert [(column.first, sorted(column.sizes)) for column in columns] == [(1, [0, 2]), (2, [0, 2]), (3, [0, 2])]
    gradients = [p.grad for p in net[2].parameters()]
    mean = sum(float((x * x).sum()) for x in gradients) / sum(x.numel() for x in gradients)
    assert columns[-1].sizes[2] == pytest.approx(mean**0.5, rel=PARITY["float32"])
    assert watcher.view.flow.alarms == []


def test_a_layer_without_a_gradient_in_a_step_has_no_cell_in_its_column():
    net = model()
    watcher = measure_always(watch(net))
    for step in range(2):
        net[0].requires_grad_(step == 1)
        train_steps(net, 1, watcher)
        for p in net.parameters():
            p.grad = None
    watcher.close()
    assert [sorted(column.sizes) for column in watcher.view.flow.columns] == [[2], [0, 2]]


def alarm_rows(watcher):
    return [(alarm.kind, alarm.step, watcher.view.layers[alarm.row].name) for alarm in watcher.view.flow.alarms]


def test_vanishing_gradients_of_a_deep_network_are_found_at_the_first_step():
    mg.manual_seed(0)
    net = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(3, 3), nn.Sigmoid())], nn.Linear(3, 2))
    with measure_always(watch(net)) as watcher:
        train_steps(net, 2, watcher)
    assert alarm_rows(watcher)[0] == ("vanishing", 1, "0")
    assert {kind for kind, _, _ in alarm_rows(watcher)} == {"vanishing"}
    assert "! step 1: vanishing gradient in 0, " in str(watcher)


def test_first_non_finite_value_is_found_in_its_layer():
    net = model()
    with measure_always(watch(net)) as watcher:
        train_steps(net, 2, watcher)
        with mg.no_grad():
            net[2].weight[0, 0] = float("nan")
        train_steps(net, 2, watcher)
    assert alarm_rows(watcher) == [("nan", 3, "2")]
    assert "! step 3: the first NaN, in the output of 2" in str(watcher)


def test_half_of_the_units_dead_raises_an_alarm():
    net = model()
    with measure_always(watch(net)) as watcher:
        train_steps(net, 2, watcher)
        with mg.no_grad():
            net[0].bias[:] = -100.0
        train_steps(net, 1, watcher)
    assert ("dead", 3, "1") in alarm_rows(watcher)
    assert ("vanishing", 3, "0") in alarm_rows(watcher)  # no gradient arrives there


def alarms_after_training(clear_gradients, micro=1):
    """Return the alarms of three steps of `micro` backward passes each, in a loop that clears gradients with
    `clear_gradients`.
    """
    net = model()
    optimizer, x = mg.optim.SGD(net.parameters(), lr=0.01), mg.ones(4, 3)
    with measure_always(watch(net)) as watcher:
        for _ in range(3):
            for part in range(micro):
                loss = F.cross_entropy(net(x), mg.tensor([0, 1, 0, 1]))
                if part == 0:
                    clear_gradients(optimizer)
                loss.backward()
            optimizer.step()
            watcher.log(loss)
    return alarm_rows(watcher)


def test_gradients_of_the_previous_step_are_stale_and_micro_batches_are_not():
    stale = [("stale", 2, "0"), ("stale", 2, "2")]
    assert alarms_after_training(lambda optimizer: None) == stale
    assert alarms_after_training(lambda optimizer: None, micro=2) == stale
    for micro in (1, 2):
        assert alarms_after_training(lambda optimizer: optimizer.zero_grad(), micro) == []
        assert alarms_after_training(lambda optimizer: optimizer.zero_grad(set_to_none=False), micro) == []


def test_a_sum_over_several_logged_losses_before_a_step_is_not_stale():
    net = model()
    optimizer, x = mg.optim.SGD(net.parameters(), lr=0.01), mg.ones(4, 3)
    with measure_always(watch(net)) as watcher:
        for part in range(8):
            loss = F.cross_entropy(net(x), mg.tensor([0, 1, 0, 1]))
            loss.backward()
            if part % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
            watcher.log(loss)
    assert alarm_rows(watcher) == []


def test_a_unit_is_a_channel_of_images():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    with mg.no_grad():
        net[0].weight[1:2] = 0.0
        net[0].bias[1:2] = -1.0
        net[0].bias[0:1] = 100.0
        net[0].bias[2:] = 100.0
    watcher = watch(net)
    loss = net(mg.ones(2, 1, 4, 4)).sum()
    loss.backward()
    watcher.log(loss)
    assert watcher.view.layers[1].dead_fraction == 0.25
    watcher.close()


def test_measured_step_needs_one_transfer(monkeypatch):
    monkeypatch.setattr(library, "HOST_DEVICES", ())
    net = model()
    x, t = mg.randn(16, 3).detach(), mg.randint(0, 2, (16,))
    measured = measure_always(watch(net))
    for _ in range(2):
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        with profile() as ran:
            measured.log(loss)
    measured.close()
    assert measured.measured_count == 2
    assert ran.downloads.count <= 1


def test_unmeasured_steps_have_no_hooks_and_leave_the_loss_on_the_device(monkeypatch):
    monkeypatch.setattr(library, "HOST_DEVICES", ())  # as if the default device were a GPU
    net = model()
    unmeasured = watch(net)
    unmeasured._clock.may_measure = lambda share: False
    train_steps(net, 5, unmeasured)
    assert unmeasured.measured_count == 1
    assert all(not module._hooks.after for module in net)
    assert len(unmeasured.view.losses) == 1
    unmeasured.close()
    assert [step for step, _ in unmeasured.view.losses] == [1, 2, 3, 4, 5]


def test_measuring_stays_within_its_budget():
    clock = watch(model())._clock
    clock._measured, clock._average_step, clock._cost, clock._credit, clock._step_time = False, 1.0, 3.0, -3.0, 1.0
    waited = 0
    while not clock.may_measure(0.1):
        waited += 1
    assert 29 <= waited <= 31  # the time of three steps, at a tenth of each


def test_fit_reports_training_and_validation_losses():
    net = model()
    data = [(mg.randn(8, 3).detach(), mg.randint(0, 2, (8,))) for _ in range(3)]
    watcher = watch(net)
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    history = mg.training.fit(
        net, data, optimizer, F.cross_entropy, epochs=2, validate=data, callbacks=[watcher], progress=False
    )
    watcher.close()
    assert [loss for _, loss in watcher.view.losses] == history.steps
    assert watcher.view.validation == [(3, history["val_loss"][0]), (6, history["val_loss"][1])]
    assert "● validation" in watcher.svg()


def test_layers_are_selected_by_name():
    assert [layer.name for layer in watch(model(), layers=["2", "0"]).view.layers] == ["2", "0"]
    with pytest.raises(mg.errors.ArgumentError, match=r"layers=\['3'\], but the modules are 0, 1, 2"):
        watch(model(), layers=["3"])


def test_some_of_many_layers_are_shown_and_the_text_reports_it():
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(40)])
    watcher = watch(net)
    names = [layer.name for layer in watcher.view.layers]
    assert (len(names), names[0], names[-1]) == (24, "0", "39")
    assert str(watcher).endswith("16 more layers are not shown; select layers with watch(model, layers=[…]).")


def test_objects_other_than_modules_are_rejected():
    with pytest.raises(mg.errors.DTypeError, match=r"watch: 3 is not a module"):
        watch(3)
    with pytest.raises(mg.errors.ArgumentError, match=r"share=0; it must be above 0"):
        watch(model(), share=0)


def test_heatmap_is_between_loss_and_layers_in_every_format(tmp_path):
    net = model()
    with measure_always(watch(net)) as watcher:
        train_steps(net, 3, watcher)
    svg, sentence = watcher.svg(), "Gradient flow: 2 layers over 3 measured steps, from 10⁻"
    assert svg.index('class="curve"') < svg.index('class="flow"') < svg.index(">update / weight<")
    assert "<desc>Sequential after 3 steps" in svg
    assert sentence in svg
    assert sentence in html.unescape(re.search(r'alt="([^"]*)"', figure(watcher.view))[1])
    assert f'style="width:{WIDTH}px;max-width:none' in figure(watcher.view)  # smaller, it could not be read
    assert LIGHT["page"] in watcher.svg("light")
    assert DARK["page"] not in watcher.svg("light")
    for name in ("a.svg", "a.html", "a.txt"):
        watcher.save(tmp_path / name)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == svg
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert svg in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == str(watcher)
    assert "\ngradient flow: " in str(watcher)
    with pytest.raises(mg.errors.ArgumentError, match=r"Use one of \.svg, \.html, \.txt"):
        watcher.save(tmp_path / "a.png")


def test_notebook_stores_an_image_and_text():
    watcher = watch(model())
    bundle = watcher._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/html"] == figure(watcher.view)
    assert "<script" not in bundle["text/html"]
    assert bundle["text/plain"].splitlines()[1].split()[:2] == ["layer", "values"]
