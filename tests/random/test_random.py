"""Random tensors: published bits, one stream for any split into calls, and the distributions."""

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.numpy import random as kernels
from minigrad.core.dispatch import tap
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError

N = 100_000
# The seeds are fixed; a correct generator would exceed these bounds for one seed in a thousand.
KOLMOGOROV = 1.95 / math.sqrt(N)  # bound on the Kolmogorov-Smirnov statistic
CHI_SQUARE = {1: 10.8, 3: 16.3, 9: 27.9, 23: 49.7}  # by degrees of freedom
DEVIATIONS = 3.3


def seeded(seed=0):
    return mg.Generator(seed)


def distance(sample, probability):
    """Return the Kolmogorov-Smirnov statistic of samples and a distribution, given as its CDF."""
    row = np.sort(sample.numpy().ravel())
    exact = np.vectorize(probability)(row.astype(float))
    steps = np.arange(row.size + 1) / row.size
    return max(abs(exact - steps[:-1]).max(), abs(exact - steps[1:]).max())


def chi_square(counts, expected):
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    return ((counts - expected) ** 2 / expected).sum() < CHI_SQUARE[counts.size - 1]


def below_normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


# --- bits ---


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [
        ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, 0xFFFFFFFFFFFFFFFF, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            0x299F31D0A4093822,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_matches_the_published_blocks(counter, key, block):
    assert list(kernels.philox(counter, key)) == block
    assert np.stack(kernels.philox(np.array([counter] * 3, np.uint64).T, key), axis=1).tolist() == [block] * 3


def test_the_first_samples_of_a_seed_are_stable():
    assert mg.rand(3, generator=seeded(0)).tolist() == [w / 2**24 for w in (0x6627E8, 0xE169C5, 0xBC57AC)]
    words = kernels.philox((0, 0, kernels.BITS, 0), 7)
    full = [(words[0] + 2**32 * words[1]) % 1000, (words[2] + 2**32 * words[3]) % 1000]
    assert mg.randint(1000, (2,), generator=seeded(7)).tolist() == full
    assert mg.rand(2, generator=seeded(1)).tolist() != mg.rand(2, generator=seeded(0)).tolist()


CUT = {"rand": mg.rand, "randn": mg.randn, "randint": lambda *size, **options: mg.randint(50, size, **options)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("parts", [[5, 5], [1, 2, 7], [3, 0, 3, 4], [9, 1]], ids=str)
def test_a_stream_is_independent_of_the_split_into_calls(name, parts, dtype):
    draw, full, cut = CUT[name], seeded(3), seeded(3)
    pieces = [x for n in parts for x in draw(n, generator=cut, dtype=getattr(mg, dtype)).tolist()]
    assert pieces == draw(2, 5, generator=full, dtype=getattr(mg, dtype)).numpy().ravel().tolist()
    assert full.draw(0) == cut.draw(0)


def test_distributions_have_separate_streams():
    streams = [kernels.words(9, stream, 0, 1000) for stream in range(5)]
    assert len(set(np.concatenate(streams).tolist())) > 4995


def test_large_counters_carry_into_the_second_word():
    far = 4 * (2**32 - 1)
    across = kernels.words(5, kernels.UNIFORM, far, 8)
    assert across[4:].tolist() == list(kernels.philox((0, 1, kernels.UNIFORM, 0), 5))
    chunked = kernels.words(5, 0, 1, 5 * kernels.BLOCKS_PER_CHUNK)
    assert chunked[-3:].tolist() == kernels.words(5, 0, 5 * kernels.BLOCKS_PER_CHUNK - 2, 3).tolist()


def test_every_sample_goes_through_dispatch():
    log = []
    with tap(lambda call: log.append(call.op)):
        mg.rand(2), mg.randn(2), mg.randint(3, (2,)), mg.randperm(3), mg.multinomial(mg.ones(3), 2)
    assert log == ["random_uniform", "random_normal", "random_int", "random_permutation", "random_choice"]


# --- distributions ---

DRAWS = {
    "rand": (lambda g: mg.rand(N, generator=g), lambda x: x),
    "rand of float64": (lambda g: mg.rand(N, generator=g, dtype=mg.float64), lambda x: x),
    "randn": (lambda g: mg.randn(N, generator=g), below_normal),
    "randn of float64": (lambda g: mg.randn(N, generator=g, dtype=mg.float64), below_normal),
    "randn, every second": (lambda g: mg.randn(2 * N, generator=g)[::2], below_normal),
    "normal": (lambda g: mg.normal(2.0, 0.5, (N,), generator=g), lambda x: below_normal((x - 2) / 0.5)),
    "normal of tensors": (
        lambda g: mg.normal(mg.full((N,), -1.0), mg.tensor(3.0), generator=g),
        lambda x: below_normal((x + 1) / 3),
    ),
    "rand_like": (lambda g: mg.rand_like(mg.zeros(N), generator=g), lambda x: x),
    "randn_like": (lambda g: mg.randn_like(mg.zeros(N), generator=g), below_normal),
    "uniform_": (lambda g: mg.zeros(N).uniform_(-2.0, 3.0, generator=g), lambda x: (x + 2) / 5),
    "normal_": (lambda g: mg.zeros(N).normal_(1.0, 2.0, generator=g), lambda x: below_normal((x - 1) / 2)),
    "exponential_": (lambda g: mg.zeros(N).exponential_(2.0, generator=g), lambda x: 1 - math.exp(-2 * x)),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", DRAWS)
def test_float_samples_follow_their_distribution(name, seed):
    draw, probability = DRAWS[name]
    sample = draw(seeded(seed))
    assert sample.shape == (N,)
    assert distance(sample, probability) < KOLMOGOROV


def test_consecutive_samples_are_uncorrelated():
    for sample in (mg.rand(N, generator=seeded()), mg.randn(N, generator=seeded())):
        x = sample.numpy().astype(float)
        x = (x - x.mean()) / x.std()
        for lag in (1, 2, 3, 4, 8):
            assert abs((x[lag:] * x[:-lag]).mean()) * math.sqrt(N) < DEVIATIONS


def test_uniform_samples_are_in_the_half_open_interval():
    for dtype in (mg.float32, mg.float64):
        sample = mg.rand(10 * N, generator=seeded(), dtype=dtype).numpy()
        assert 0 <= sample.min() < 1e-5 < 1 - 1e-5 < sample.max() < 1


def test_integers_are_equally_likely():
    sample = mg.randint(-3, 7, (N,), generator=seeded()).numpy()
    assert (sample.min(), sample.max()) == (-3, 6)
    assert chi_square(np.bincount(sample + 3), np.full(10, N / 10))
    assert chi_square(
        np.bincount(mg.zeros(N, dtype=mg.int64).random_(2, 6, generator=seeded()).numpy() - 2), np.full(4, N / 4)
    )


def test_each_permutation_is_equally_likely():
    generator, counts = seeded(), {}
    for _ in range(4800):
        order = tuple(mg.randperm(4, generator=generator).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert chi_square(list(counts.values()), np.full(24, 200))
    assert sorted(mg.randperm(1000).tolist()) == list(range(1000))
    assert mg.randperm(0).tolist() == []


def test_bernoulli_samples_follow_their_probability():
    p = mg.tensor([0.0, 0.2, 0.7, 1.0]).expand(N, 4)
    for coins in (mg.bernoulli(p, generator=seeded()), mg.zeros(N, 4).bernoulli_(p, generator=seeded())):
        ones = coins.numpy().sum(0)
        assert (ones[0], ones[3]) == (0, N)
        for count, chance in ((ones[1], 0.2), (ones[2], 0.7)):
            assert abs(count - N * chance) < DEVIATIONS * math.sqrt(N * chance * (1 - chance))
    assert mg.bernoulli(mg.zeros(3, dtype=mg.int64), 1.0).tolist() == [1, 1, 1]
    assert mg.zeros(3, dtype=mg.bool).bernoulli_(1.0).tolist() == [True] * 3


def test_multinomial_samples_follow_their_weights():
    weights = mg.tensor([[1.0, 0.0, 2.0, 3.0, 4.0], [0.0, 5.0, 5.0, 5.0, 5.0]])
    samples = mg.multinomial(weights, N, replacement=True, generator=seeded()).numpy()
    for row, expected in zip(samples, ([1, 2, 3, 4], [1, 1, 1, 1]), strict=True):
        counts = np.bincount(row, minlength=5)
        assert counts.min() == 0
        assert chi_square(counts[counts > 0], N * np.array(expected) / sum(expected))


def test_sampling_without_replacement_is_distinct_and_weighted():
    weights = mg.tensor([4.0, 3.0, 0.0, 2.0, 1.0]).expand(20_000, 5)
    samples = mg.multinomial(weights, 4, generator=seeded()).numpy()
    assert (np.sort(samples, axis=1) == [0, 1, 3, 4]).all()
    counts = np.bincount(samples[:, 0], minlength=5)[[0, 1, 3, 4]]
    assert chi_square(counts, 2000 * np.array([4, 3, 2, 1]))
    after_zero = samples[samples[:, 0] == 0, 1]  # the remaining weights are 3, 2 and 1
    assert abs((after_zero == 1).mean() - 0.5) < DEVIATIONS * 0.5 / math.sqrt(len(after_zero))


# --- generators ---


def test_a_seed_is_reproducible():
    mg.manual_seed(4)
    first = mg.rand(3).tolist()
    mg.manual_seed(4)
    assert mg.rand(3).tolist() == first
    assert mg.initial_seed() == 4
    assert mg.manual_seed(-1).initial_seed() == 2**64 - 1
    assert len({mg.seed(), mg.seed(), mg.initial_seed()}) == 2


def test_a_state_can_be_restored():
    generator = seeded(2**64 - 1)
    generator.draw(2**40)
    state = generator.get_state()
    first = mg.randn(5, generator=generator).tolist()
    assert mg.randn(5, generator=generator).tolist() != first
    assert mg.randn(5, generator=seeded().set_state(state)).tolist() == first
    assert (state.dtype, state.shape) == (mg.uint8, (16,))
    assert repr(generator.set_state(state)) == "<Generator: seed 18446744073709551615, 1099511627776 drawn>"


def test_fork_rng_restores_the_state_even_on_exceptions():
    mg.set_rng_state(seeded(1).get_state())
    expected = mg.rand(2, generator=seeded(1)).tolist()

    def draws_and_fails():
        with mg.fork_rng():
            mg.manual_seed(99)
            mg.rand(7)
            mg.rand(-1)

    with pytest.raises(ShapeError):
        draws_and_fails()
    assert mg.rand(2).tolist() == expected
    with mg.fork_rng(enabled=False):
        mg.manual_seed(99)
    assert mg.initial_seed() == 99


def test_keys_differ():
    generator = seeded()
    keys = {generator.next_key() for _ in range(1000)}
    assert len(keys) == 1000
    assert max(keys) > 2**63


def test_threads_sample_disjoint_parts_of_one_stream():
    generator, indices = seeded(), []

    def work():
        indices.extend([generator.draw(3)[1] for _ in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(indices) == list(range(0, 3 * 16_000, 3))


# --- dtypes, graph, errors ---


@pytest.mark.parity
def test_shapes_and_dtypes_match_pytorch(torch):
    calls = [
        lambda L: L.rand(2, 3),
        lambda L: L.rand((2,), dtype=L.float64),
        lambda L: L.randn(()),
        lambda L: L.randn(size=(2, 3)),
        lambda L: L.randint(5, (2, 2)),
        lambda L: L.randint(2, 5, (3,), dtype=L.int32),
        lambda L: L.randint(high=5, size=(3,)),
        lambda L: L.randint(5, size=(3,)),
        lambda L: L.randint(0, 5, (3,), dtype=L.float32),
        lambda L: L.randperm(4),
        lambda L: L.randperm(4, dtype=L.int32),
        lambda L: L.normal(0.0, 1.0, (2,)),
        lambda L: L.normal(L.zeros(3, 1), L.ones(2)),
        lambda L: L.normal(1.0, L.ones(2, dtype=L.float64)),
        lambda L: L.normal(L.zeros(2)),
        lambda L: L.bernoulli(L.full((2,), 0.5, dtype=L.float64)),
        lambda L: L.bernoulli(L.zeros(2, dtype=L.int64), 0.5),
        lambda L: L.multinomial(L.ones(3), 2),
        lambda L: L.multinomial(L.ones(4, 3), 5, True),
        lambda L: L.rand_like(L.zeros(2, dtype=L.float64)),
        lambda L: L.randn_like(L.zeros(2, dtype=L.int64), dtype=L.float32),
        lambda L: L.randint_like(L.zeros(2, 2), 5),
        lambda L: L.randint_like(L.zeros(2, dtype=L.int32), 2, 5),
        lambda L: L.zeros(2, dtype=L.uint8).random_(),
        lambda L: L.zeros(2).random_(4),
        lambda L: L.zeros(2, 2).bernoulli_(L.tensor([0.0, 1.0])),
    ]
    for call in calls:
        result, torch_result = call(mg), call(torch)
        assert (result.dtype.name, result.shape) == (str(torch_result.dtype)[6:], tuple(torch_result.shape))


def test_samples_are_leaves_without_gradients():
    assert mg.randn(2, requires_grad=True).is_leaf
    mean = mg.zeros(2, requires_grad=True)
    assert not mg.normal(mean, 1.0).requires_grad
    assert not mg.bernoulli(mg.full((2,), 0.5, requires_grad=True)).requires_grad
    x = mg.ones(3, requires_grad=True)
    y = x * 2.0
    y[1:].normal_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_inplace_sampling_increments_the_version_and_validates_first():
    generator, leaf, plain = seeded(), mg.zeros(2, requires_grad=True), mg.zeros(2)
    assert (plain.uniform_() is plain, plain._version) == (True, 1)
    with pytest.raises(GraphError, match="normal_: a leaf that requires grad is being used in an in-place operation"):
        leaf.normal_(generator=generator)
    with mg.no_grad():
        leaf.normal_()
    assert generator.draw(0) == (0, 0)


@merge_cases
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: mg.rand(2, dtype=mg.int64), DTypeError, "rand: expected a floating-point dtype, but got int64"),
        (
            lambda: mg.zeros(2, dtype=mg.int64).uniform_(),
            DTypeError,
            "uniform_: expected a floating-point tensor, but got int64",
        ),
        (
            lambda: mg.randint(3, 3, (2,)),
            ArgumentError,
            "randint: expects 'from' to be less than 'to', but got from=3 >= to=3",
        ),
        (
            lambda: mg.randint(0, 300, (2,), dtype=mg.uint8),
            DTypeError,
            r"the range \[0, 300\) is out of bounds for uint8",
        ),
        (lambda: mg.randint(0, 2.5, (2,)), DTypeError, "randint: expected ints as bounds, but got 0 and 2.5"),
        (lambda: mg.normal(0.0, 1.0), ArgumentError, "normal: scalars require a size"),
        (lambda: mg.normal(mg.zeros(2), 1.0, (2,)), ArgumentError, "tensors do not accept one"),
        (lambda: mg.normal(0.0, -1.0, (2,)), ArgumentError, "expects all elements of std >= 0.0, but got -1.0"),
        (lambda: mg.bernoulli(mg.tensor([0.5, 1.5])), ArgumentError, r"bernoulli: expects p to be in \[0, 1\]"),
        (lambda: mg.bernoulli(mg.tensor([1])), DTypeError, "floating-point tensor of probabilities, but got int64"),
        (
            lambda: mg.multinomial(mg.tensor([1, 2]), 1),
            DTypeError,
            "only supports floating-point dtypes for input, got: int64",
        ),
        (lambda: mg.multinomial(mg.ones(2, 2, 2), 1), ShapeError, "prob_dist must be 1 or 2 dim"),
        (lambda: mg.multinomial(mg.ones(2), 0), ShapeError, "expected num_samples to be an int > 0, but got 0"),
        (lambda: mg.multinomial(mg.tensor([0.5, -0.5]), 1), ArgumentError, "either inf, nan, element < 0"),
        (lambda: mg.multinomial(mg.zeros(2), 1), ArgumentError, "or a row of zeros"),
        (
            lambda: mg.multinomial(mg.tensor([1.0, 0.0]), 2),
            ShapeError,
            "cannot sample 2 samples without replacement from 1 positive weights.\n  Write replacement=True",
        ),
        (lambda: mg.zeros(2).uniform_(1.0, 0.0), ArgumentError, "but found from=1.0 > to=0.0"),
        (
            lambda: mg.zeros(2).exponential_(0.0),
            ArgumentError,
            "exponential_: expects lambda > 0.0, but found lambda=0.0",
        ),
        (lambda: mg.manual_seed(0.5), DTypeError, r"manual_seed: expected an int in .*, but got 0.5"),
        (lambda: mg.manual_seed(2**64), DTypeError, r"expected an int in \[-2\*\*63, 2\*\*64\), but got"),
        (lambda: mg.set_rng_state(mg.zeros(16)), DTypeError, "set_state: RNG state must be a uint8 tensor"),
    ],
)
def test_an_invalid_call_raises(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


def test_random_tensors_can_be_the_first_of_a_program():
    program = "import minigrad as mg; print(mg.random.randperm(3).to(mg.float32).shape)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == ("(3,)\n", "")


def test_arguments_of_an_invalid_type_raise():
    with pytest.raises(
        DTypeError, match=r"generator is an int; expected a Generator\.\n  Write generator=mg\.Generator\(seed\)"
    ):
        mg.rand(2, generator=3)
    with pytest.raises(DTypeError, match="bernoulli: input is a float; expected a tensor"):
        mg.bernoulli(0.5)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_normal_samples_are_independent_of_the_split_into_calls(device):
    full = mg.randn(5, generator=mg.Generator(3), device=device).tolist()
    generator = mg.Generator(3)
    pieces = [mg.randn(count, generator=generator, device=device).tolist() for count in (1, 4)]
    assert pieces[0] + pieces[1] == full
