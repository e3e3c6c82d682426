"""The player on traces of PyTorch: it shows what the trace contains, and recomputes what PyTorch computes."""

import re
from collections import Counter

import pytest

from minigrad_viz import draw, export, record, to_trace
from playback import Event
from player_expectations import PlayerExpectations
from torch_models import MODELS


class TracePlayback:
    """The playback of a trace of PyTorch, in the form that `PlayerExpectations` reads."""

    def __init__(self, trace):
        run = trace.passes[0]
        self.trace, self.root, self.locals = trace, run.root, {}
        self.order = [node for node, kind in enumerate(trace.kinds) if kind == "o"]
        self.blocked = {node for node, state in enumerate(trace.states) if state == "b"}
        self.values = {k: trace.tensors[k].array if k in trace.tensors else x for k, x in enumerate(trace.values)}
        targets = [trace.operand[edge] for edge in run.edge]
        counts, met, totals = Counter(targets), Counter(), {}
        self.events = []
        for k, (edge, target) in enumerate(zip(run.edge, targets, strict=True)):
            met[target] += 1
            arrays = run.upstream[k], None, run.contribution[k], totals.get(target), run.total[k]
            ends = trace.result[edge], target, trace.slot[edge]
            self.events.append(Event(*ends, *arrays, met=met[target], of=counts[target]))
            totals[target] = run.total[k]
        self.seed = len(self.order) + 1
        self.last = self.seed + len(self.events)

    def index_of(self, node):
        return node


@pytest.fixture
def path(tmp_path):
    return tmp_path / "page.html"


@pytest.fixture
def open_page(watched, path):
    """Open the page at `path`."""

    def open_one():
        page = watched(width=1600)
        page.goto(path.as_uri())
        button(page, "Step forward").wait_for()
        return page

    return open_one


def recorded(torch, name):
    torch.manual_seed(0)
    with record():
        loss, _ = MODELS[name](torch)
    return loss


def button(page, name):
    return page.get_by_role("button", name=name).first


def seek(page, position):
    page.locator(".scrub").evaluate(
        "(scrub, position) => { scrub.value = String(position); scrub.dispatchEvent(new Event('input')); }", position
    )


def table_of(page):
    """Return the rows of the open table: name, formula, value and gradient."""
    return page.locator("tr[aria-rowindex]").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


def numbers_in(text):
    return [float(x) for x in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", text.replace("−", "-"))]


# --- what the trace contains -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["perceptron", "normalizing_flow", "lstm_two_layers", "in_place_masks_and_views", "mixed_precision"]
)
def test_each_step_shows_the_values_and_gradients_of_the_trace(torch, path, open_page, name):
    loss = recorded(torch, name)
    export(loss, path)
    playback = TracePlayback(to_trace(loss))
    page, expectations = open_page(), PlayerExpectations(playback)
    button(page, "Table").click()
    seed, last = playback.seed, playback.last
    for position in (0, seed // 2, seed - 1, seed, (seed + last) // 2, last):
        seek(page, position)
        assert page.locator(".count").inner_text() == f"{position} / {last}"
        assert page.locator(".say .chip").inner_text() == expectations.chip(position)
        rows = table_of(page)
        assert [row[0] for row in rows] == expectations.title
        for node, (_, _, value, gradient) in enumerate(rows):
            is_known = expectations.value(node, position) is not None
            assert value in ([expectations.row(node, position)[0]] if is_known else ["", "—"]), (position, node)
            assert gradient == expectations.gradient_text(node, position), (position, node)
        if position == 0 or playback.values[expectations.node(position)] is None:
            continue
        first, end = expectations.formula(position)
        formula = page.locator(".say .formula").text_content()
        assert formula.startswith(first)
        assert formula.endswith(end)
        first, end = expectations.sentence(position)
        sentence = page.locator(".say [aria-live]").text_content()
        assert sentence.startswith(f"Step {position} of {last}, {first}")
        assert sentence.endswith(end)


def block_titles(page):
    """Return the titles of all blocks, which are opened."""
    button(page, "Expand all blocks").click()
    return page.locator(".frame text").all_text_contents()


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("perceptron", {"Sequential", "0 · Linear", "1 · Tanh", "2 · Linear"}),
        ("lstm_two_layers", {"LSTM", "lstm", "Linear"}),
        (
            "transformer_encoder",
            {"layers.1 · TransformerEncoderLayer", "self_attn · MultiheadAttention", "norm2 · LayerNorm"},
        ),
    ],
)
def test_blocks_are_modules_and_functions(torch, path, open_page, name, titles):
    export(recorded(torch, name), path)
    assert titles <= set(block_titles(open_page()))


def test_a_model_is_played_with_the_names_of_its_input_and_output(torch, path, open_page):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    x = torch.randn(4, 2)
    path.write_text(draw(net, x).html(), encoding="utf-8")
    page = open_page()
    assert page.locator(".count").inner_text() == "2 / 6"
    button(page, "Table").click()
    assert [name for name, *_ in table_of(page)] == ["x", "0.weight", "0.bias", "v₃", "output"]
    assert {"net · Sequential", "0 · Linear", "1 · ReLU"} <= set(block_titles(page))


def test_a_model_with_running_statistics_has_a_backward_pass(torch, path, open_page):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    path.write_text(draw(net, torch.ones(4, 2)).html(), encoding="utf-8")
    assert open_page().locator(".count").inner_text() == "2 / 8"


def test_the_first_nan_is_reported_with_its_origin(torch, path, open_page):
    x = torch.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
    with record():
        y = x.log()
        loss = (y * 2.0).sum()
    export(loss, path)
    page = open_page()
    button(page, "Alarms").click()
    alarm = page.locator("button.alarm").first
    assert alarm.inner_text() == "! NaN y is the first NaN: ln(x), in 1 of 4 elements. It spread to 2 nodes."
    alarm.click()
    assert page.locator(".inspector .title").inner_text() == "y"
    assert page.locator(".reach button.link").all_inner_texts() == ["v₃", "loss"]
    button(page, "Table").click()
    values = {name: value for name, _, value, _ in table_of(page)}
    assert values["y"] == "(4,) from −0.693147 to 1.09861 NaN!"
    assert values["loss"] == "NaN"
    assert all("bad" in page.locator(f"[data-id=n{node}]").get_attribute("class") for node in (1, 3, 4))


def chunks(torch):
    x = torch.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
    with record():
        a, b = x.chunk(2)
        loss = (a * b).sum()
    return loss


def test_a_function_of_several_outputs_collects_their_gradients(torch, path, open_page):
    export(chunks(torch), path)
    page = open_page()
    button(page, "Table").click()
    button(page, "Last").click()
    gradients = {formula: gradient for _, formula, _, gradient in table_of(page)}
    assert gradients["chunk(v₀, split_size=2)"] == "(2, 2) from −2.0 to 3.0"
    assert gradients["leaf"] == "(4,) from −2.0 to 3.0"


def test_a_function_of_several_outputs_is_drawn_as_computed(torch, path, open_page):
    export(chunks(torch), path)
    assert "pale" not in open_page().locator("[data-id=n1]").get_attribute("class")


# --- panels ----------------------------------------------------------------------------------------------------------


def test_search_finds_operations_names_and_modules(torch, path, open_page):
    export(recorded(torch, "perceptron"), path)
    page = open_page()
    button(page, "Search").click()
    field, results = page.get_by_role("searchbox"), page.locator(".results button.link")
    for text, found in (("tanh", ["v₇"]), ("bias", ["0.bias", "2.bias"]), ("linear", ["v₆", "v₁₀"])):
        field.fill(text)
        assert results.all_inner_texts()[: len(found)] == found, text
    field.press("Enter")
    assert page.locator(".inspector .title").inner_text() == "v₆"
    assert "torch_models.py:" in page.locator(".inspector code").inner_text()


def test_predict_is_not_offered_for_tensors(torch, path, open_page):
    """As for tensors of minigrad: no local derivative, which the question is about, is a number."""
    x = torch.tensor(2.0, requires_grad=True)
    with record():
        y = (x * 3.0).tanh()
    export(y, path)
    page = open_page()
    assert page.get_by_role("button", name="Predict").count() == 0
    page.keyboard.press("p")
    assert page.locator("#mg-answer:visible").count() == 0


def change(page, name, value):
    """Set an element of a leaf in the open What if panel."""
    field = page.get_by_role("textbox", name="Element to change")
    field.fill(name)
    field.press("Enter")
    page.get_by_role("spinbutton", name=f"{name}, exact value").fill(str(value))


def test_a_changed_element_is_recomputed_as_by_pytorch(torch, path, open_page):
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 2), torch.randn(3, 2), torch.randn(2, 2, requires_grad=True)

    def run():
        hidden = torch.tanh(x @ weight)
        return hidden, (hidden - target).square().mean()

    with record():
        hidden, loss = run()
    export(loss, path)
    page = open_page()
    button(page, "What if").click()
    change(page, "x[2, 1]", 0.7)
    change(page, "weight[0, 1]", -1.3)
    with torch.no_grad():
        x[2, 1], weight[0, 1] = 0.7, -1.3
    hidden, loss = run()
    loss.backward()
    figures = page.locator(".plot b").all_inner_texts()
    assert [numbers_in(text)[-1] for text in figures] == pytest.approx([weight.grad[0, 1].item()] * 2, rel=1e-4)
    button(page, "Table").click()
    button(page, "Last").click()
    rows = {name: (value, gradient) for name, _, value, gradient in table_of(page)}
    assert numbers_in(rows["loss"][0]) == pytest.approx([loss.item()], rel=1e-5)
    for text, x in ((rows["hidden"][0], hidden), (rows["weight"][1], weight.grad)):
        assert numbers_in(text)[2:] == pytest.approx([x.min().item(), x.max().item()], rel=1e-5)


def test_a_function_without_a_counterpart_says_why_it_cannot_be_recomputed(torch, path, open_page):
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    with record():
        y = torch.erfinv(x)
        loss = y.sum()
    export(loss, path)
    page = open_page()
    button(page, "What if").click()
    change(page, "x[0]", 0.5)
    reason = "cannot be recomputed here: It depends on y, which cannot be recomputed. erfinv"
    assert reason in page.locator(".plot").inner_text()
    assert page.locator("[data-unable]").evaluate_all("(all) => all.map((one) => one.dataset.id)") == ["n1", "n2"]
