"""The language-model examples run and learn, and their parts compute what they document."""

import math
import runpy
from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import minigrad as mg
from strategies import PARITY
from test_examples import recorded_runs, run_example
from torch_warper import EXAMPLES


@pytest.fixture
def gpt(monkeypatch):
    """The globals of examples/gpt.py."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return runpy.run_path(str(EXAMPLES / "gpt.py"))


@pytest.fixture
def names_lstm(monkeypatch):
    """The globals of examples/names_lstm.py."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return runpy.run_path(str(EXAMPLES / "names_lstm.py"))


@pytest.fixture
def model(gpt):
    with mg.random.fork_rng():
        mg.manual_seed(0)
        return gpt["GPT"](7, layers=2, width=16, heads=2)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_gpt_learns_in_a_quick_run_writes_a_sample_and_compares_with_bigrams(tmp_path):
    results, output = run_example("gpt", tmp_path, alone=False)
    assert results["last_loss"] < 0.9 * results["first_loss"]
    assert {"test_loss", "bigram_loss"} <= set(results)
    assert output.startswith("def ")
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.slow
def test_the_names_are_learned_in_a_quick_run_and_its_losses_are_drawn(tmp_path):
    results, output = run_example("names_lstm", tmp_path, alone=False)
    assert results["last_loss"] < 0.9 * results["first_loss"]
    assert len(output.split(", ")) == 24
    root = ElementTree.fromstring((tmp_path / "names_lstm.svg").read_text(encoding="utf-8"))
    curves = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [2, 2]  # two losses, of two epochs


def test_the_recorded_runs_beat_bigrams_and_invent_new_names():
    runs = [(name, results) for name, device, _, results in recorded_runs() if device == "cpu"]
    gpts, lstms = [
        [results for example_name, results in runs if example_name == name] for name in ("gpt", "names_lstm")
    ]
    assert gpts
    assert lstms
    assert all(results["test_loss"] < results["bigram_loss"] - 0.3 for results in gpts)
    assert all(results["test_loss"] < 2.5 and results["new_names"] > 0.5 for results in lstms)


def test_cached_decoding_equals_full_decoding(model):
    text = mg.tensor([[3, 1, 4, 1, 5, 2, 6]])
    with mg.no_grad():
        expected = model(text).numpy()
        logits, past = model.forward_cached(text[:, :3])
        logits_by_step = [logits]
        for k in range(3, 7):
            logits, past = model.forward_cached(text[:, k : k + 1], past)
            logits_by_step.append(logits)
    np.testing.assert_allclose(
        mg.cat(logits_by_step, 1).numpy(), expected, rtol=0, atol=PARITY["float32"] * np.abs(expected).max()
    )


def test_the_model_is_causal(model):
    with mg.no_grad():
        one, other = model(mg.tensor([[3, 1, 4, 1]])).numpy(), model(mg.tensor([[3, 1, 4, 2]])).numpy()
    np.testing.assert_array_equal(one[:, :3], other[:, :3])
    assert np.abs(one[:, 3] - other[:, 3]).max() > 0.01


def test_top_1_sampling_is_greedy_also_past_the_context(gpt, model):
    tokens = gpt["sample"](model, mg.tensor([1, 2]), 200, top_k=1).tolist()
    assert len(tokens) == 202
    assert tokens[:2] == [1, 2]
    with mg.no_grad():
        likeliest = model(mg.tensor([tokens[:128]]))[0].argmax(-1).tolist()
        after = model(mg.tensor([tokens[65:180]]))[0].argmax(-1).tolist()  # the context restarts with the last 64
    assert likeliest[1:] == tokens[2:129]
    assert after[63:] == tokens[129:181]


def test_the_bigram_loss_equals_that_of_counted_pairs(gpt):
    train, test = "abracadabra, abracadabra, a bad cab" * 3, "a cad, a bra"
    vocabulary = mg.data.Vocabulary(train)
    size, pairs, counts = len(vocabulary), Counter(pairwise(train)), Counter(train[:-1])

    def loss(k):
        steps = list(pairwise(test))
        return sum(-math.log((pairs[a, b] + k) / (counts[a] + k * size)) for a, b in steps) / len(steps)

    smoothings = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    actual = gpt["bigram_loss"](vocabulary.encode(train), vocabulary.encode(test), size)
    assert min(abs(actual - loss(k)) for k in smoothings) < 1e-5
    table = gpt["bigram"](vocabulary.encode(train), size, 0.1).exp().sum(1).numpy()
    np.testing.assert_allclose(table, 1, rtol=0, atol=1e-5)


def test_windows_do_not_overlap_and_targets_are_shifted_by_one(gpt):
    x, y = gpt["windows"](mg.arange(300)).tensors
    assert x.shape == y.shape == (2, 128)
    assert x.flatten().tolist() == list(range(256))
    assert y.flatten().tolist() == list(range(1, 257))


def test_names_are_padded_with_ignored_targets(names_lstm):
    vocabulary = mg.data.Vocabulary("\nabc")
    x, y = names_lstm["rows"](["ab", "cab"], vocabulary).tensors
    assert x.tolist() == [[0, 1, 2, 0], [0, 3, 1, 2]]
    assert y.tolist() == [[1, 2, 0, -100], [3, 1, 2, 0]]
