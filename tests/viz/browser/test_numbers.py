"""Every value that the player holds equals the engine's, and every label in its page is that value, rounded.

Random graphs are stepped through forward and backward in Chromium, with the network off. At each position the state and
the labels of the page are read back (numbers.js), and compared with `mg.events` (played.py).
"""

import functools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad_viz.pictures.frontend import module
from playback import Playback, scalar_graph, tensor_graph
from player_expectations import PlayerExpectations, brief, parenthesised, pretty
from strategies import random_expression
from tiers import NIGHTLY, choose_cases

CLOSE = 1e-12
JUMPS = 4  # jumps per graph


@pytest.fixture
def lab(watched):
    """One page for all graphs of a test: ``lab(name, …)`` calls a function of numbers.js."""
    page = watched(width=4000)  # so that cards show every label
    reader = (Path(__file__).parent / "numbers.js").read_text(encoding="utf-8")
    page.evaluate(
        """async (sources) => {
          const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
          const [{ mount }, reader] = await Promise.all(sources.map(load));
          Object.assign(window, { mount, ...reader });
        }""",
        [module(), reader],
    )

    def call(name, *args):
        result = page.evaluate(f"(args) => {name}(mount, ...args)", list(args))
        return json.loads(result, parse_float=float) if isinstance(result, str) else result

    call.page = page
    return call


# --- comparison ------------------------------------------------------------------------------------------------------


def is_close(actual, expected, arrays):
    """Whether the player's value equals the engine's scalar or array to 12 digits."""
    if expected is None or actual is None:
        return actual is expected
    if isinstance(actual, dict):
        cells = arrays[actual["array"]]
        return cells["shape"] == list(np.shape(expected)) and np.allclose(
            np.array([float(x) for x in cells["cells"]]), np.ravel(expected), rtol=CLOSE, atol=0, equal_nan=True
        )
    actual = float(actual)
    return (
        actual == expected
        or math.isclose(actual, expected, rel_tol=CLOSE)
        or (actual != actual and expected != expected)
    )


def check_state(expectations, actual, arrays):
    """Compare the values in the player's state at a position."""
    position = actual["position"]
    for node, (value, gradient) in enumerate(zip(actual["values"], actual["gradients"], strict=True)):
        assert is_close(value, expectations.value(node, position), arrays), (position, node)
        state, met, of, total = expectations.gradient(node, position)
        assert gradient["state"] == state, (position, node, gradient)
        assert state in ("none", "blocked") or (gradient["met"], gradient["of"]) == (met, of), (position, node)
        assert is_close(gradient["value"], total, arrays), (position, node)
    moment = actual["moment"]
    assert (moment["kind"], moment["node"]) == (expectations.kind(position), expectations.node(position))
    if moment["kind"] == "edge":
        event = expectations.event(position)
        for name in ("upstream", "contribution", "before", "total"):
            assert is_close(moment[name], getattr(event, name), arrays), (position, name)
        assert is_close(moment["local"], event.local, arrays), position
        assert (moment["met"], moment["of"]) == (event.met, event.of)


def check_labels(expectations, page_state):
    """Compare every label of the page at a position."""
    position = page_state["position"]
    for key, expected in expectations.all_labels(position).items():
        if key == "cards":
            for node, card in expected.items():
                description = page_state[key][node].pop("said")
                assert description.endswith(f", {card.pop('said')}"), (position, node, description)
                states = [mark for mark in page_state[key][node].pop("state") if mark != "bad"]
                assert states == card.pop("state"), (position, node)
                assert page_state[key][node] == card, (position, node)
        else:
            assert page_state[key] == expected, (position, key)
    for key, (first, last) in (("formula", expectations.formula(position)), ("aria", expectations.sentence(position))):
        start = f"Step {position} of {expectations.last}, " if key == "aria" else ""
        assert page_state[key].startswith(start + first), (page_state[key], first)
        assert page_state[key].endswith(last), (page_state[key], last)


def check_all_positions(lab, playback, scrubs):
    """Check every position of a graph; return their number."""
    expectations = PlayerExpectations(playback)
    walk = lab("walk", expectations.trace_json, scrubs)
    assert walk["unlike"] == []
    assert [moment["position"] for moment in walk["moments"]] == list(range(expectations.last + 1))
    for moment in walk["moments"]:
        check_state(expectations, moment, walk["arrays"])
        check_labels(expectations, moment)
    return len(walk["moments"])


@pytest.mark.parametrize("start", range(0, 200 if NIGHTLY else 10, 10))
def test_random_scalar_graphs_match_the_engine(lab, start):
    for seed in range(start, start + 10):
        generator = random.Random(seed)
        check_all_positions(lab, Playback(scalar_graph(seed)[0]), [generator.random() for _ in range(JUMPS)])


@pytest.mark.parametrize("start", range(0, 50 if NIGHTLY else 10, 10))
def test_random_tensor_graphs_match_the_engine(lab, start):
    for seed in range(start, start + 10):
        generator = random.Random(seed)
        check_all_positions(lab, Playback(tensor_graph(seed)), [generator.random() for _ in range(JUMPS)])


# --- what if ---------------------------------------------------------------------------------------------------------


def smooth_graph(seed, values):
    """Return a random graph of smooth operations on leaves with these values."""
    return random_expression(random.Random(seed), [mg.Value(x, f"x{k}") for k, x in enumerate(values)], 3)


def test_what_if_values_equal_a_fresh_evaluation(lab):
    for seed in range(50 if NIGHTLY else 8):
        generator = random.Random(f"leaves {seed}")
        values, new_values = ([generator.uniform(-2.0, 2.0) for _ in range(3)] for _ in range(2))
        moments, other = (
            PlayerExpectations(Playback(smooth_graph(seed, values))),
            PlayerExpectations(Playback(smooth_graph(seed, new_values))),
        )
        lab("open", moments.trace_json)
        leaves = {moments.title[k] for k in moments.playback.values if moments.trace.kinds[k] == "l"}
        lab("set", {f"x{k}": x for k, x in enumerate(new_values) if f"x{k}" in leaves})
        for position in [
            0,
            moments.seed - 1,
            *generator.sample(range(moments.seed, moments.last + 1), 2),
            moments.last,
        ]:
            state = lab("at", position)
            check_state(other, state, state["arrays"])
            check_shown(other, state)


def check_shown(moments, state):
    """Assert that cards, table and edge show the player's values, possibly with fewer digits."""
    for node, (value, gradient) in enumerate(zip(state["values"], state["gradients"], strict=True)):
        card, row = state["cards"][str(node)], state["table"][node]
        assert row[0] == ("" if value is None else pretty(float(value)))
        assert card["value"] == "" if value is None else is_rounded(card["value"], float(value))
        if gradient["value"] is not None:
            many = f" (Σ {gradient['met']} of {gradient['of']})" if gradient["state"] == "partial" else ""
            assert row[1] == pretty(float(gradient["value"])) + many
            assert "pale" in card["state"] or is_rounded(card["grad"], float(gradient["value"])), (card, gradient)
    moment = {key: float(x) for key, x in state["moment"].items() if isinstance(x, float | int)}
    if state["moment"]["kind"] == "edge":
        up, local, down = (moment[key] for key in ("upstream", "local", "contribution"))
        assert state["product"] == f"{brief(up)} × {parenthesised(local)} = {brief(down)}"
        assert state["product"] in state["formula"]


def is_rounded(text, x):
    return any(text == pretty(float(f"{x:.{digits}g}")) for digits in range(6, 0, -1))


# --- predict ---------------------------------------------------------------------------------------------------------


def shadow(page, selector):
    return page.locator(selector).first


def open_predict_mode(lab, y, position=None):
    """Open a player on `y` and turn on predict mode by its key."""
    lab("open", Playback(y).trace.json(full=True), *([] if position is None else [{"position": position}]))
    page = lab.page
    shadow(page, ".key.play").focus()
    page.keyboard.press("p")
    return page


def answer(page, text):
    """Type an answer; return the player's verdict."""
    shadow(page, "#mg-answer").fill("")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    verdict = shadow(page, ".verdict")
    return verdict.get_attribute("data-verdict"), verdict.inner_text().removeprefix("✓ ")


def square():
    """Return y = a·b + a·c, where a receives two contributions."""
    a, b, c = (mg.Value(x, name) for x, name in ((2.0, "a"), (-3.0, "b"), (5.0, "c")))
    p, q = a * b, a * c
    p.label, q.label = "p", "q"
    y = p * 4.0 + q
    y.label = "y"
    return y


def test_three_kinds_of_mistakes_are_distinguished(lab):
    page = open_predict_mode(lab, square())
    question = shadow(page, ".predict label")
    while "to a" not in question.inner_text():
        page.get_by_role("button", name="Show me").click()
    assert question.inner_text().endswith("contribution 1 of 2: what does a.grad become?")
    moments = PlayerExpectations(Playback(square()))
    first, second = (event for event in moments.events if event.operand == moments.title.index("a"))
    assert [first.total, second.total] == [5.0, -7.0]
    assert answer(page, "-5") == (
        "sign",
        "Right magnitude, wrong sign. It is the gradient of q, 1.0, times ∂q/∂a = 5.0, and neither is negative.",
    )
    assert answer(page, "1") == (
        "factor",
        "1.0 is only the gradient of q. Multiply it by the local derivative, ∂q/∂a = 5.0.",
    )
    assert answer(page, "five") == ("unread", "“five” is not a number: enter a number such as −3, 0.25, 1/3 or 2e-3.")
    assert answer(page, "") == ("unread", "The field is empty: enter a number such as −3, 0.25, 1/3 or 2e-3.")
    assert answer(page, "5") == ("right", "Right: 1.0 × 5.0 = 5.0.")
    while "to a" not in question.inner_text():
        page.get_by_role("button", name="Show me").click()
    assert answer(page, "-12") == ("accumulation", "−12.0 is this step's contribution. a already has 5.0: add the two.")
    sign = "Right magnitude, wrong sign. It is the gradient of p, 4.0, times ∂p/∂a = −3.0, and one of the two is"
    assert answer(page, "17") == ("sign", f"Check the contribution. {sign} negative.")
    factor = "−3.0 is only the local derivative ∂p/∂a. Multiply it by the upstream gradient, that of p: 4.0."
    assert answer(page, "2") == ("factor", f"Check the contribution. {factor}")
    assert answer(page, "9")[0] == "factor"  # 5 + 4
    assert answer(page, "100")[0] == "wrong"
    assert answer(page, "−7") == ("right", "Right: 4.0 × (−3.0) = −12.0, and 5.0 + (−12.0) = −7.0.")


def test_predictions_accept_only_the_engines_value(lab):
    for seed in range(6 if NIGHTLY else 1):
        played = Playback(smooth_graph(seed, [0.7, -1.2, 1.9]))
        page = open_predict_mode(lab, played.root)
        for event in played.events[:4]:
            text = shadow(page, ".predict label").inner_text()
            assert str(PlayerExpectations(played).title[event.operand]) in text
            assert answer(page, f"{event.total + max(1.0, abs(event.total)) * 0.37:.6g}")[0] != "right"
            assert answer(page, f"{event.total:.4g}")[0] == "right"


def test_predict_mode_excludes_tensors(lab):
    x = mg.tensor(2.0, dtype=mg.float64, requires_grad=True)
    with mg.record():
        y = (x * 3.0).tanh()
    page = open_predict_mode(lab, y)
    assert page.get_by_role("button", name="Predict").count() == 0
    assert shadow(page, ".predict").is_hidden(), "the key does not work either"


# --- alarms ----------------------------------------------------------------------------------------------------------


def faulty_graphs():
    """Yield twenty graphs whose first NaN or infinity comes from a known operation; its kind and the affected nodes."""
    small, zero, huge = 0.5, 0.0, 1e200
    makers = [
        ("inf", lambda v: mg.log(v(zero))),
        ("nan", lambda v: mg.log(v(-small))),
        ("nan", lambda v: mg.sqrt(v(-small))),
        ("inf", lambda v: v(small) / v(zero)),
        ("nan", lambda v: v(zero) / v(zero)),
        ("inf", lambda v: mg.exp(v(1000.0))),
        ("inf", lambda v: v(huge) * v(huge)),
        ("inf", lambda v: v(huge) ** 2.0),
        ("inf", lambda v: v(1.7e308) + v(1.7e308)),
        ("inf", lambda v: v(-1.7e308) - v(1.7e308)),
    ]
    for kind, plant in makers:
        for tensors in (False, True):
            leaf = functools.partial(mg.tensor, dtype=mg.float64, requires_grad=True) if tensors else mg.Value
            with mg.record():
                clean = leaf(1.0) * 2.0 + leaf(3.0)
                faulty = plant(leaf)
                after = faulty + clean
                yield kind, [faulty, after, after * 1.0]


@pytest.mark.parametrize("k", choose_cases(range(20), "planted", 7))
def test_the_first_bad_value_raises_an_alarm_and_marks_its_card(lab, k):
    kind, all_bad = list(faulty_graphs())[k]
    played = Playback(all_bad[-1])
    lab("open", played.trace.json(full=True), {"position": len(played.order)})
    page = lab.page
    page.get_by_role("button", name="Alarms").click()
    alarm = page.locator("button.alarm").first
    first, *reached = [played.index_of(x) for x in all_bad]
    title = played.trace.title(first)
    value_name = {"nan": "NaN", "inf": "infinity"}[kind]
    assert alarm.inner_text().startswith(
        f"! {value_name.capitalize() if kind == 'inf' else value_name} {title} is the first {value_name}"
    )
    alarm.click()
    state = lab("read")
    assert page.evaluate("player.state().selected") == f"n{first}"
    assert state["inspector"]["title"] == title
    links = page.locator(".reach button.link").all_inner_texts()
    assert links == [played.trace.title(node) for node in reached]
    badges = page.locator("[data-id]:has(.badge)").evaluate_all("(all) => all.map((one) => one.dataset.id)")
    assert {f"n{first}", *[f"n{node}" for node in reached]} <= set(badges)
    assert all(f"n{node}" not in badges for node in played.order if node < first)
    if not played.trace.tensors:
        marked = {node for node, card in state["cards"].items() if "bad" in card["state"]}
        assert {str(node) for node in (first, *reached)} <= marked


# --- several outputs -------------------------------------------------------------------------------------------------


def test_another_output_has_its_own_backward_pass(lab):
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = a * b
    z = y + a * a
    y.label, z.label = "y", "z"
    passes = [PlayerExpectations(Playback(y, z)), PlayerExpectations(Playback(z, y))]
    passes[1].playback.trace = passes[1].trace = passes[0].trace
    lab("open", passes[0].trace_json)
    page = lab.page
    assert page.get_by_label("Output").evaluate("(one) => [...one.options].map((x) => x.text)") == ["y", "z"]
    for turn in (1, 0, 1):
        moments = passes[turn]
        page.get_by_label("Output").select_option("yz"[turn])
        for position in [*range(moments.last + 1), *range(moments.last, -1, -1)]:
            state = lab("at", position)
            check_state(moments, state, state["arrays"])
            if position:
                check_labels(moments, state)
