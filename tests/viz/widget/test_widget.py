"""The player as a widget: its Python interface, and what a notebook stores."""

import gc
import json
import math
import random
import weakref
import zlib

import ipywidgets
import pytest

import minigrad as mg
from minigrad_viz import draw, explain, export, play, step, to_text, tour
from minigrad_viz.widget.widget import release_unseen
from needs import needs


def product():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    y = a * b + a
    y.label = "y"
    return a, b, y


def test_bundle_is_the_widget_the_picture_and_the_text_and_the_same_every_time():
    _, _, y = product()
    data, _ = step(y)._repr_mimebundle_()
    assert sorted(data) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    again, _ = step(y)._repr_mimebundle_()
    assert (again["text/html"], again["text/plain"]) == (data["text/html"], data["text/plain"])
    drawn = draw(y)._repr_mimebundle_()["text/html"]
    assert data["text/html"].replace(' data-minigrad="{&quot;position&quot;: 0}"', "") == drawn
    assert data["text/plain"] == to_text(y)
    assert repr(step(y)) == "Player(Graph of y = −4.0: 2 leaves, 2 operations.)"


def test_step_does_not_modify_the_graph():
    a, b, y = product()
    heard = []
    for node in (a, y):
        if hasattr(node, "register_hook"):
            node.register_hook(heard.append)
    state = random.getstate()
    with mg.record() as recording:
        step(y)
    assert (a.grad, b.grad, y.grad, heard, recording.events) == (None, None, None, [], [])
    assert random.getstate() == state


def test_trace_has_full_precision_and_is_compressed_if_large():
    x = mg.Value(1 / 3, "x")
    small = step(x * 1.0)
    assert json.loads(small.trace_text)["nodes"]["value"][0] == 1 / 3
    for _ in range(3000):
        x = x + 1.0
    large = step(x)
    assert large.trace_text == ""
    assert len(large.trace_packed) < 1 << 18
    assert len(json.loads(zlib.decompress(large.trace_packed))["nodes"]["value"]) == 6001


def test_every_scalar_leaf_has_a_trait():
    w = [mg.Value(1.0, "w[0]"), mg.Value(2.0, "w₀"), mg.Value(3.0, "w.0"), mg.Value(math.nan, "n")]
    player = step(w[0] + w[1] + w[2] + w[3] + mg.Value(5.0))
    assert (player.leaf_w_0, player.leaf_w0, player.leaf_w_0_2) == (1.0, 2.0, 3.0)
    assert not hasattr(player, "leaf_n")  # non-finite values cannot be linked
    assert list(player.leaves.items())[-1] == ("leaf_v7", ("v₇", 5.0))
    many = sum((mg.Value(float(n)) for n in range(300)), mg.Value(0.0))
    assert len(step(many).leaves) == 200


def test_slider_is_linked_to_its_leaf():
    player = step(product()[2])
    slider = player.slider("a", min=-1, max=1.5)
    assert (slider.value, slider.min, slider.max, slider.description) == (1.5, -1, 1.5, "a")
    default_slider = player.slider("b")
    assert (default_slider.value, default_slider.min, default_slider.max) == (-3.0, -9.0, 3.0)
    with pytest.raises(mg.errors.ArgumentError, match=r"slider: there is no scalar leaf 'c'.\n.*'a', 'b'"):
        player.slider("c")


def test_slider_of_an_element_gets_a_trait():
    w = mg.tensor([[1.0, -2.0], [0.5, 4.0]], requires_grad=True)
    b = mg.tensor(3.0, requires_grad=True)
    w.label, b.label = "w", "b"
    player = step((w * b).sum())
    slider = player.slider("w[1,0]")
    assert (slider.value, slider.min, slider.max, slider.description) == (0.5, -0.5, 1.5, "w[1, 0]")
    assert player.leaf_w_1_0 == 0.5
    assert player.slider("b").value == 3.0
    player.slider("w[1, 0]")
    assert dict(player.leaves) == {"leaf_w_1_0": ("w[1, 0]", 0.5), "leaf_b": ("b", 3.0)}
    with pytest.raises(mg.errors.ArgumentError, match=r"there is no scalar leaf 'w\[2, 0\]'"):
        player.slider("w[2, 0]")


def test_players_and_sliders_can_be_linked_and_combined():
    player, other = step(product()[2]), step(product()[2])
    ipywidgets.jslink((player, "position"), (other, "position"))
    ipywidgets.link((player, "leaf_a"), (other, "leaf_b"))
    player.leaf_a = 7.0
    assert other.leaf_b == 7.0
    box = ipywidgets.HBox([player, ipywidgets.VBox([other, player.slider("a")])])
    assert box.children[0] is player


def test_python_observes_and_sets_the_state():
    player = play(product()[2], speed=2.0, granularity="op", selected="n1", expanded=[1], values={"a": 1.0}, height=300)
    assert (player.playing, player.speed, player.granularity, player.selected) == (True, 2.0, "op", "n1")
    heard = []
    player.observe(lambda change: heard.append(change["new"]), "position")
    player.position = 3
    assert heard == [3]
    with pytest.raises(Exception, match="position"):
        player.position = -1
    with pytest.raises(Exception, match="granularity"):
        player.granularity = "edges"


def test_values_accept_leaves_and_elements():
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    assert step(mg.sum(x * 2), values={"x[0, 1]": 5.0}).values == {"x[0, 1]": 5.0}
    player = step(product()[2])
    for values in ({"q": 1.0}, {"a[0]": 1.0}, {"x[0, 2]": 1.0}):
        with pytest.raises(mg.errors.ArgumentError, match=r"values: there is no scalar leaf or element '.*'"):
            player.values = values
    assert player.values == {}


def test_tour_stops_are_given_by_node_name_or_position():
    a, b, y = product()
    stops_by_node = [
        (0, "begin"),
        (a, "a leaf"),
        (y, "y"),
        ((y, "backward"), "seed"),
        (("a", "backward"), "a"),
        ((b, "backward"), "b"),
    ]
    stops = json.loads(tour(y, stops_by_node).trace_text)["tours"]
    assert [stop["at"] for stop in stops] == [0, 0, 2, 3, 6, 7]
    assert "tours" not in json.loads(step(y).trace_text)


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (8, "position 8 is out of range.\n  Positions go from 0, before the first operation, to 7."),
        ("z", "'z' is not in this graph"),
        (mg.Value(1.0), "Value(1.0) is not in this graph"),
        (("a", "up"), '\'up\' is neither "forward" nor "backward", nor a node of this graph'),
        (("b", "y"), "no gradient flows over an edge from b to y"),
        ((("v₂", "a"), "start"), "is not in this graph"),
    ],
)
def test_tour_reports_unknown_positions(position, message):
    with pytest.raises(mg.errors.ArgumentError) as error:
        tour(product()[2], [(position, "text")])
    assert message in str(error.value)


def test_tour_stops_on_edges_and_selects_nodes_and_scopes():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    with mg.scope("layer"), mg.scope("cell"):
        c = a * b
    y = c + a
    positions = [
        ("start", "", a),
        ((a, c), "over an edge", "c"),
        ((y, "c"), "written the other way", "cell"),
        ("seed", "", "layer/cell"),
        ("end", "", "layer"),
    ]
    trace = tour(y, positions).trace
    assert [(stop.at, stop.look) for stop in trace.tours] == [
        (0, "n0"),
        (6, "n2"),
        (4, "b2"),
        (3, "b2"),
        (7, "b1"),
    ]
    stops = json.loads(trace.json())["tours"]
    assert stops[0] == {"at": 0, "text": "", "select": "n0"}
    named = mg.Value(1.0, "end")
    assert tour(named * a, [("end", "a node of that name")]).trace.tours[0].at == 0


@pytest.mark.parametrize("caption", ["ab", (0,), (0, 1), (0, "a", "b", "c"), None])
def test_tour_reports_the_invalid_stop(caption):
    with pytest.raises(mg.errors.ArgumentError, match=r"tour, stop 2: .* is not a \(where, text\) tuple"):
        tour(product()[2], [(0, "fine"), caption])


def test_player_rejects_an_unknown_trait():
    with pytest.raises(
        mg.errors.ArgumentError,
        match=r"Player: unexpected keyword argument 'positon'.\n.*The state has position, playing",
    ):
        step(product()[2], positon=3)
    assert step(product()[2], leaf_a=5.0).leaf_a == 5.0


def test_explain_finds_the_output_among_the_variables():
    _, b, y = product()
    assert repr(explain(b)) == (
        "b = −3.0, a leaf\n"
        "∂y/∂b, the gradient of b, arrives through v₂ = a · b: "
        "upstream × local = 1.0 × 2.0 = 2.0, with ∂v₂/∂b = a = 2.0"
    )
    assert str(explain("y", of=y)).splitlines() == [
        "y = v₂ + a = −6 + 2 = −4.0",
        "∂y/∂y, the gradient of y, is 1.0: the backward pass starts here",
    ]


def test_explain_of_a_node_without_gradient():
    a = mg.Value(2.0, "a")
    d = a.detach()
    d.label = "d"
    z = d * a
    assert explain(d, of=z).endswith("d gets no gradient: it does not require grad, or it was detached")
    with pytest.raises(mg.errors.ArgumentError, match="explain: "):
        explain("q", of=z)


def test_explain_of_tensors_has_shapes_rules_and_statistics():
    import numpy as np

    w, x = mg.tensor(np.ones((3, 2)), requires_grad=True), mg.tensor(np.ones((4, 3)))
    with mg.record():
        h = x @ w
        loss = (h * h).sum()
    assert str(explain(w, of=loss)) == (
        "w = (3, 2) float64 all 1.0, a leaf\n"
        "∂loss/∂w, the gradient of w, arrives through h = x w: xᵀ g, where g is (4, 2) float64 all 6.0: "
        "(3, 2) float64 all 24.0"
    )
    lines = str(explain(h)).splitlines()
    assert lines[0] == "h = x w: (4, 2) float64 all 3.0"
    assert lines[-1] == "  their sum: (4, 2) float64 all 6.0"
    assert step(loss).leaves == {}


def test_explain_names_the_summed_axes():
    needs("numpy")
    x, b, s = mg.ones(5, 3), mg.ones(3, requires_grad=True), mg.tensor(2.0, requires_grad=True)
    with mg.record():
        shifted = x + b
        y = shifted * s
    assert "through shifted = x + b: g, summed over axis 0, where g is (5, 3)" in explain(b, of=y)
    assert "through y = shifted · s: g · shifted, summed over axes 0, 1, where g is (5, 3)" in explain(s, of=y)
    assert "summed" not in explain(shifted, of=y)


def test_explain_reports_missing_arguments_and_gradients():
    with pytest.raises(mg.errors.ArgumentError, match=r"explain: expected a Value or a tensor.*\n.*of=loss"):
        explain("a")
    needs("numpy")
    x = mg.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    with mg.no_grad():
        x.add_(1.0)
    assert str(explain(x, of=y)).endswith(
        "Their .grad is from before the change; draw before that line to see that pass."
    )
    x = mg.ones(100, 100, requires_grad=True)
    y = (x + mg.ones(100, 100)).sum()
    y.backward()
    assert "cannot be recomputed: operand b of add was freed" in str(explain(x, of=y))


@pytest.mark.parametrize("suffix", ["svg", "html", "txt", "json", "dot"])
def test_suffix_selects_the_exported_format(tmp_path, suffix):
    player = step(product()[2])
    export(player, tmp_path / f"graph.{suffix}")
    assert (tmp_path / f"graph.{suffix}").stat().st_size > 100


def test_unseen_and_unreferenced_player_is_closed():
    _, _, y = product()
    shown, referenced, gone = step(y), step(y), step(y)
    for player in (shown, referenced, gone):
        player.views += 1
    referenced.views = gone.views = 0
    namespace = {"player": referenced, "_oh": {7: gone}, "_7": gone, "_": 3}
    reference = weakref.ref(gone)
    del gone, player
    release_unseen(namespace)
    gc.collect()
    assert reference() is None, "ipywidgets and Out referred to it"
    assert (shown.comm is not None, referenced.comm is not None) == (True, True)
    assert namespace == {"player": referenced, "_oh": {}, "_": 3}
    del namespace["player"]
    release_unseen(namespace)
    assert referenced.comm is None
