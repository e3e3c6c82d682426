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
from test_examples import ran, recorded
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
    numbers, said = ran("gpt", tmp_path, alone=False)
    assert numbers["last_loss"] < 0.9 * numbers["first_loss"]
    assert {"test_loss", "bigram_loss"} <= set(numbers)
    assert said.startswith("def ")
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.slow
def test_the_names_are_learned_in_a_quick_run_and_its_losses_are_drawn(tmp_path):
    numbers, said = ran("names_lstm", tmp_path, alone=False)
    assert numbers["last_loss"] < 0.9 * numbers["first_loss"]
    assert len(said.split(", ")) == 24
    root = ElementTree.fromstring((tmp_path / "names_lstm.svg").read_text(encoding="utf-8"))
    curves = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [2, 2]  # two losses, of two epochs


def test_the_full_runs_on_record_beat_bigrams_and_made_up_names_that_are_new():
    runs = [(name, numbers) for name, device, _, numbers in recorded() if device == "cpu"]
    gpts, lstms = [[numbers for found, numbers in runs if found == name] for name in ("gpt", "names_lstm")]
    assert gpts
    assert lstms
    assert all(numbers["test_loss"] < numbers["bigram_loss"] - 0.3 for numbers in gpts)
    assert all(numbers["test_loss"] < 2.5 and numbers["new_names"] > 0.5 for numbers in lstms)


def test_the_next_character_by_what_was_kept_is_the_one_by_looking_at_all_again(model):
    text = mg.tensor([[3, 1, 4, 1, 5, 2, 6]])
    with mg.no_grad():
        whole = model(text).numpy()
        logits, past = model.remembered(text[:, :3])
        found = [logits]
        for k in range(3, 7):
            logits, past = model.remembered(text[:, k : k + 1], past)
            found.append(logits)
    np.testing.assert_allclose(mg.cat(found, 1).numpy(), whole, rtol=0, atol=PARITY["float32"] * np.abs(whole).max())


def test_a_character_depends_on_those_before_it_alone(model):
    with mg.no_grad():
        one, other = model(mg.tensor([[3, 1, 4, 1]])).numpy(), model(mg.tensor([[3, 1, 4, 2]])).numpy()
    np.testing.assert_array_equal(one[:, :3], other[:, :3])
    assert np.abs(one[:, 3] - other[:, 3]).max() > 0.01


def test_a_sample_of_the_likeliest_alone_is_the_likeliest_at_each_place_also_past_the_context(gpt, model):
    found = gpt["sample"](model, mg.tensor([1, 2]), 200, top_k=1).tolist()
    assert len(found) == 202
    assert found[:2] == [1, 2]
    with mg.no_grad():
        likeliest = model(mg.tensor([found[:128]]))[0].argmax(-1).tolist()
        after = model(mg.tensor([found[65:180]]))[0].argmax(-1).tolist()  # the context restarts with the last 64
    assert likeliest[1:] == found[2:129]
    assert after[63:] == found[129:181]


def test_the_bigram_model_s_loss_is_that_of_counted_pairs(gpt):
    train, test = "abracadabra, abracadabra, a bad cab" * 3, "a cad, a bra"
    vocabulary = mg.data.Vocabulary(train)
    size, pairs, ones = len(vocabulary), Counter(pairwise(train)), Counter(train[:-1])

    def loss(k):
        steps = list(pairwise(test))
        return sum(-math.log((pairs[a, b] + k) / (ones[a] + k * size)) for a, b in steps) / len(steps)

    smoothings = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    found = gpt["bigram_loss"](vocabulary.encode(train), vocabulary.encode(test), size)
    assert min(abs(found - loss(k)) for k in smoothings) < 1e-5
    table = gpt["bigram"](vocabulary.encode(train), size, 0.1).exp().sum(1).numpy()
    np.testing.assert_allclose(table, 1, rtol=0, atol=1e-5)


def test_windows_do_not_overlap_and_each_place_is_to_say_the_next(gpt):
    x, y = gpt["windows"](mg.arange(300)).tensors
    assert x.shape == y.shape == (2, 128)
    assert x.flatten().tolist() == list(range(256))
    assert y.flatten().tolist() == list(range(1, 257))


def test_names_are_rows_of_letters_and_behind_their_end_is_nothing_to_learn(names_lstm):
    vocabulary = mg.data.Vocabulary("\nabc")
    x, y = names_lstm["rows"](["ab", "cab"], vocabulary).tensors
    assert x.tolist() == [[0, 1, 2, 0], [0, 3, 1, 2]]
    assert y.tolist() == [[1, 2, 0, -100], [3, 1, 2, 0]]
