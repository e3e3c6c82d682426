"""DataLoader: the contents, order and device of its batches."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from data_sets import Broken, Squares, Stream, row_dataset, shuffled_loader, targets
from minigrad.core.dispatch import tap
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad.data import BatchSampler, DataLoader, RandomSampler, Subset, WeightedRandomSampler, random_split


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def test_batches_are_in_order_and_the_last_is_smaller():
    loader = DataLoader(row_dataset(7), batch_size=3)
    assert targets(loader) == [[0, 10, 20], [30, 40, 50], [60]]
    assert [x.shape for x, _ in loader] == [(3, 1), (3, 1), (1, 1)]
    assert len(loader) == 3


def test_drop_last_drops_an_incomplete_batch():
    loader = DataLoader(row_dataset(7), batch_size=3, drop_last=True)
    assert targets(loader) == [[0, 10, 20], [30, 40, 50]]
    assert len(loader) == 2


def test_shuffled_epochs_are_different_permutations():
    loader = shuffled_loader()
    first, second = flat(targets(loader)), flat(targets(loader))
    assert sorted(first) == sorted(second) == [k * 10 for k in range(10)]
    assert first != second


def test_gathered_and_collated_batches_have_the_same_order():
    loaders = [DataLoader(Squares(), batch_size=3, shuffle=True, generator=mg.Generator(4)) for _ in range(2)]
    gathered = DataLoader(row_dataset(), batch_size=3, shuffle=True, generator=mg.Generator(4))
    assert targets(loaders[0]) == targets(loaders[1])
    assert [[k * 10 for k in batch[0].tolist()] for batch in loaders[0]] == second_epoch(gathered)


def second_epoch(loader):
    """Return the second epoch."""
    targets(loader)
    return targets(loader)


def test_the_default_order_depends_on_manual_seed():
    loader = DataLoader(row_dataset(), shuffle=True)
    mg.manual_seed(3)
    first = targets(loader)
    mg.manual_seed(3)
    assert targets(loader) == first != targets(loader)


def test_a_batch_does_not_alias_the_dataset():
    data = row_dataset()
    for x, _ in DataLoader(data, batch_size=5):
        x += 100
    assert data.tensors[0].max().item() == 9


def test_a_batch_is_one_gather_per_tensor():
    loader, calls = shuffled_loader(), []
    with tap(lambda call: calls.append(call.op)):
        batches = list(loader)
    gathers = [op for op in calls if op == "index_select"]
    assert len(gathers) == 2 * len(batches)
    assert calls.count("random_permutation") == 1


def test_subsets_are_gathered():
    train, test = random_split(row_dataset(), [7, 3], generator=mg.Generator(1))
    calls = []
    with tap(lambda call: calls.append(call.op)):
        batches = [targets(DataLoader(part, batch_size=2)) for part in (train, test)]
    assert sorted(flat(flat(batches))) == [k * 10 for k in range(10)]
    assert [k // 10 for k in flat(batches[0])] == list(train.indices)
    assert "stack" not in calls
    inner = Subset(train, [2, 0])
    assert flat(targets(DataLoader(inner))) == [train.indices[2] * 10, train.indices[0] * 10]


def test_a_subset_copies_only_its_rows_to_a_device():
    part = Subset(row_dataset(), [8, 1])
    loader = DataLoader(part, batch_size=2, device="numpy")
    ((x, y),) = list(loader)
    assert (y.tolist(), x.device, y.device) == ([80, 10], "numpy", "numpy")
    if mg.get_default_device() != "numpy":  # else they were there
        assert sum(len(x) for x in loader._resident_tensors[0]) == 4


def test_device_moves_batches_of_any_dataset():
    (batch,) = DataLoader(Squares(3), batch_size=3, device="numpy")
    assert [x.device for x in batch] == ["numpy", "numpy"]
    assert batch[1].tolist() == [0, 1, 4]


def test_samplers_select_samples():
    assert targets(DataLoader(row_dataset(), batch_sampler=[[3, 1], [2]])) == [[30, 10], [20]]
    assert targets(DataLoader(row_dataset(), batch_size=2, sampler=[5, 4, 3])) == [[50, 40], [30]]
    assert targets(DataLoader(row_dataset(), batch_size=2, sampler=[-1, mg.tensor(0)])) == [[90, 0]]
    assert len(DataLoader(row_dataset(), batch_sampler=BatchSampler(range(10), 4, True))) == 2
    weights = WeightedRandomSampler([0.0, 1.0, 0.0], 4)
    assert targets(DataLoader(row_dataset(3), batch_size=4, sampler=weights)) == [[10, 10, 10, 10]]


def test_batch_size_none_disables_batching():
    assert [(float(x), y) for x, y in DataLoader(Squares(2), batch_size=None)] == [(0.0, 0), (1.0, 1)]
    (x, y), *_ = DataLoader(row_dataset(), batch_size=None)
    assert (x.shape, y.shape) == ((1,), ())
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


def test_collate_fn_receives_the_samples():
    loader = DataLoader(row_dataset(3), batch_size=2, collate_fn=len)
    assert list(loader) == [2, 1]


def test_an_iterable_dataset_is_batched():
    assert [batch.tolist() for batch in DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [batch.tolist() for batch in DataLoader(Stream(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    with pytest.raises(DTypeError, match=r"object of type Stream has no len\(\)"):
        len(DataLoader(Stream(5)))


def test_an_error_names_the_sample_index():
    with pytest.raises(ValueError, match="seven is missing") as caught:
        list(DataLoader(Broken(), batch_size=4))
    assert caught.value.__notes__ == ["Raised by dataset[7] of Broken."]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_size": 2.5}, "batch_size should be a positive integer value"),
        ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"num_workers": 1, "multiprocessing_context": "fork"}, "only 'spawn' is supported"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader(row_dataset(), **options)


def test_an_iterable_dataset_is_not_shuffled():
    with pytest.raises(ArgumentError, match="expected unspecified shuffle option"):
        DataLoader(Stream(), shuffle=True)


# --- compared with PyTorch ---


@pytest.mark.parity
@pytest.mark.parametrize(
    "options", [{"batch_size": 3}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}], ids=str
)
def test_batches_match_pytorch(torch, options):
    actual = list(DataLoader(Squares(), **options))
    expected = list(torch.utils.data.DataLoader(Squares(), **options))
    assert len(actual) == len(expected)
    for batch, other in zip(actual, expected, strict=True):
        assert type(batch) is type(other)
        for x, y in zip(batch, other, strict=True):
            assert np.asarray(x).tolist() == np.asarray(y).tolist()
            assert str(getattr(x, "dtype", type(x))).split(".")[-1] == str(getattr(y, "dtype", type(y))).split(".")[-1]


def test_invalid_datasets_and_functions_raise():
    with pytest.raises(DTypeError, match=r"DataLoader: expected a dataset, but got an int: 3\.\n  Pass"):
        DataLoader(3)
    with pytest.raises(DTypeError, match="DataLoader: collate_fn: 3 is an int; expected a callable"):
        DataLoader(Squares(3), collate_fn=3)


@pytest.mark.parity
def test_fixed_attributes_cannot_be_set_as_in_pytorch(torch):
    values = {"dataset": row_dataset(3), "batch_size": 3, "sampler": [1], "batch_sampler": [[1]], "drop_last": True}
    for library, dataset in ((mg, row_dataset()), (torch, list(range(10)))):
        loader = library.utils.data.DataLoader(dataset, batch_size=4)
        for name, value in {**values, "persistent_workers": True}.items():
            before = getattr(loader, name)
            with pytest.raises(ValueError, match=name):
                setattr(loader, name, value)
            assert getattr(loader, name) is before
    loader = DataLoader(row_dataset(), batch_size=4)
    with pytest.raises(
        ArgumentError,
        match=r"device attribute should not be set after .*\n  Create a new loader: DataLoader\(dataset, device=…\)",
    ):
        loader.device = "numpy"


def test_collate_options_can_be_set_between_epochs():
    loader = DataLoader(row_dataset(5), batch_size=2)
    assert targets(loader) == [[0, 10], [20, 30], [40]]
    loader.collate_fn = lambda examples: ("mine", mg.stack([y for _, y in examples]))
    assert [batch[0] for batch in loader] == ["mine"] * 3
    assert targets(loader) == [[0, 10], [20, 30], [40]]


class BatchedFetch:
    """A dataset with `__getitems__`, such as a table or a database."""

    def __init__(self):
        self.requests = []

    def __len__(self):
        return 5

    def __getitem__(self, index):
        self.requests.append(index)
        return index * 1.0 if isinstance(index, int) else [k * 1.0 for k in index]

    def __getitems__(self, indices):
        self.requests.append(list(indices))
        return [k * 1.0 for k in indices]


@pytest.mark.parity
def test_getitems_is_called_where_pytorch_calls_it(torch):
    calls_by_library = []
    for library in (mg, torch):
        calls = []
        data = library.utils.data
        for make in (
            lambda x, d=data: d.DataLoader(x, batch_size=2),
            lambda x, d=data: d.DataLoader(x, batch_size=None),
            lambda x, d=data: d.DataLoader(x, batch_sampler=[(0, 1), [4]]),
            lambda x, d=data: d.DataLoader(x, batch_size=None, sampler=[[0, 1], [4]]),
            lambda x, d=data: d.DataLoader(d.Subset(x, [4, 0, 2]), batch_size=2),
            lambda x, d=data: d.DataLoader(d.StackDataset(x, range(5)), batch_size=2),
            lambda x, d=data: d.DataLoader(d.StackDataset(a=x, b=x), batch_size=3, drop_last=True),
            lambda x, d=data: d.DataLoader(d.ConcatDataset([x, x]), batch_size=4),
        ):
            together = BatchedFetch()
            batches = list(make(together))
            calls.append(
                (
                    [np.asarray(x).tolist() if not isinstance(x, dict | list) else str(x) for x in batches],
                    together.requests,
                )
            )
        calls_by_library.append(calls)
    for actual, expected in zip(*calls_by_library, strict=True):
        assert actual[1] == expected[1]
        assert [str(x).replace("minigrad.", "torch.") for x in actual[0]] == [str(x) for x in expected[0]]


def test_getitems_must_return_every_sample():
    class Short(BatchedFetch):
        def __getitems__(self, indices):
            return [1.0]

    with pytest.raises(mg.errors.ShapeError, match=r"Short\.__getitems__ returned 1 samples for 2 indices"):
        list(DataLoader(Short(), batch_size=2))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunked_orders_give_the_same_batches(size, monkeypatch):
    unchunked = (
        RandomSampler(range(10), replacement=True, num_samples=57, generator=mg.Generator(1))
        .indices_tensor("numpy")
        .tolist()
    )
    monkeypatch.setattr("minigrad.data.sampler.CHUNK_SIZE", 8)

    def loader(data, **options):
        sampler = RandomSampler(data, num_samples=57, generator=mg.Generator(1), **options)
        return DataLoader(data, batch_size=size, sampler=sampler)

    expected = [unchunked[k : k + size] for k in range(0, 57, size)]
    assert [x.tolist() for x in loader(range(10), replacement=True)] == expected
    assert [[y // 10 for y in batch] for batch in targets(loader(row_dataset(), replacement=True))] == expected
    assert targets(loader(Subset(row_dataset(20), range(10)), replacement=True)) == [
        [10 * k for k in x] for x in expected
    ]
    rounds = [k for batch in targets(loader(row_dataset())) for k in batch]
    assert [sorted(rounds[k : k + 10]) for k in range(0, 50, 10)] == [[10 * k for k in range(10)]] * 5
    first = loader(row_dataset(), replacement=True)
    batches, state = iter(first), None
    for _ in range(min(4, len(expected) - 1)):
        next(batches)
    state = first.state_dict()
    again = loader(row_dataset(), replacement=True)
    again.load_state_dict(state)
    assert targets(again) == [[10 * k for k in x] for x in (expected[min(4, len(expected) - 1) :])]


@pytest.mark.parity
def test_setting_attributes_of_samplers_takes_effect_as_in_pytorch(torch):
    orders = []
    for library in (mg, torch):
        data = library.utils.data.TensorDataset(library.arange(6))
        loader, indices_seen = library.utils.data.DataLoader(data, batch_size=4), []

        def epoch(loader=loader, order=indices_seen):
            order.append([x.tolist() for (x,) in loader])

        epoch()
        loader.batch_sampler.batch_size = 3
        epoch()
        loader.batch_sampler.batch_size, loader.batch_sampler.drop_last = 5, True
        epoch()
        loader.batch_sampler.sampler = [5, 4, 3, 2, 1, 0]
        epoch()
        data.tensors = (library.arange(6) * 10,)
        epoch()
        data.tensors = (library.arange(6).reshape(6, 1),)
        epoch()
        part = library.utils.data.Subset(data, [0, 1, 2])
        loader = library.utils.data.DataLoader(part, batch_size=2, shuffle=False)
        epoch(loader)
        part.indices = [5, 4]
        epoch(loader)
        loader.sampler.data_source = range(1)
        epoch(loader)
        orders.append(indices_seen)
    assert orders[0] == orders[1]
