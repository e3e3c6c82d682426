"""DataLoader: the contents, order and device of its batches."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from data_sets import Broken, Squares, Stream, drawn, rows, seen
from minigrad.core.dispatch import tap
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad.data import BatchSampler, DataLoader, RandomSampler, Subset, WeightedRandomSampler, random_split


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def test_batches_are_rows_in_order_and_the_last_has_fewer():
    loader = DataLoader(rows(7), batch_size=3)
    assert seen(loader) == [[0, 10, 20], [30, 40, 50], [60]]
    assert [x.shape for x, _ in loader] == [(3, 1), (3, 1), (1, 1)]
    assert len(loader) == 3


def test_drop_last_leaves_out_a_last_batch_of_fewer():
    loader = DataLoader(rows(7), batch_size=3, drop_last=True)
    assert seen(loader) == [[0, 10, 20], [30, 40, 50]]
    assert len(loader) == 2


def test_shuffled_epochs_have_every_row_once_and_differ():
    loader = drawn()
    first, second = flat(seen(loader)), flat(seen(loader))
    assert sorted(first) == sorted(second) == [k * 10 for k in range(10)]
    assert first != second


def test_a_seed_gives_one_order_whether_rows_are_gathered_or_made_one_by_one():
    made = [DataLoader(Squares(), batch_size=3, shuffle=True, generator=mg.Generator(4)) for _ in range(2)]
    gathered = DataLoader(rows(), batch_size=3, shuffle=True, generator=mg.Generator(4))
    assert seen(made[0]) == seen(made[1])
    assert [[k * 10 for k in batch[0].tolist()] for batch in made[0]] == seen_again(gathered)


def seen_again(loader):
    """Return the second epoch."""
    seen(loader)
    return seen(loader)


def test_without_a_generator_the_order_follows_manual_seed():
    loader = DataLoader(rows(), shuffle=True)
    mg.manual_seed(3)
    first = seen(loader)
    mg.manual_seed(3)
    assert seen(loader) == first != seen(loader)


def test_a_batch_has_memory_of_its_own():
    data = rows()
    for x, _ in DataLoader(data, batch_size=5):
        x += 100
    assert data.tensors[0].max().item() == 9


def test_a_batch_of_rows_is_one_gather_a_tensor():
    loader, calls = drawn(), []
    with tap(lambda call: calls.append(call.op)):
        batches = list(loader)
    gathers = [op for op in calls if op == "index_select"]
    assert len(gathers) == 2 * len(batches)
    assert calls.count("random_permutation") == 1


def test_rows_of_a_split_are_gathered_too():
    train, test = random_split(rows(), [7, 3], generator=mg.Generator(1))
    calls = []
    with tap(lambda call: calls.append(call.op)):
        batches = [seen(DataLoader(part, batch_size=2)) for part in (train, test)]
    assert sorted(flat(flat(batches))) == [k * 10 for k in range(10)]
    assert [k // 10 for k in flat(batches[0])] == list(train.indices)
    assert "stack" not in calls
    inner = Subset(train, [2, 0])
    assert flat(seen(DataLoader(inner))) == [train.indices[2] * 10, train.indices[0] * 10]


def test_a_subset_on_a_device_takes_only_its_rows_there():
    part = Subset(rows(), [8, 1])
    loader = DataLoader(part, batch_size=2, device="numpy")
    ((x, y),) = list(loader)
    assert (y.tolist(), x.device, y.device) == ([80, 10], "numpy", "numpy")
    if mg.get_default_device() != "numpy":  # else they were there
        assert sum(len(x) for x in loader._resident[0]) == 4


def test_device_moves_batches_of_any_dataset():
    (batch,) = DataLoader(Squares(3), batch_size=3, device="numpy")
    assert [x.device for x in batch] == ["numpy", "numpy"]
    assert batch[1].tolist() == [0, 1, 4]


def test_batch_sampler_and_sampler_say_which():
    assert seen(DataLoader(rows(), batch_sampler=[[3, 1], [2]])) == [[30, 10], [20]]
    assert seen(DataLoader(rows(), batch_size=2, sampler=[5, 4, 3])) == [[50, 40], [30]]
    assert seen(DataLoader(rows(), batch_size=2, sampler=[-1, mg.tensor(0)])) == [[90, 0]]
    assert len(DataLoader(rows(), batch_sampler=BatchSampler(range(10), 4, True))) == 2
    weights = WeightedRandomSampler([0.0, 1.0, 0.0], 4)
    assert seen(DataLoader(rows(3), batch_size=4, sampler=weights)) == [[10, 10, 10, 10]]


def test_batch_size_none_gives_examples_as_they_are():
    assert [(float(x), y) for x, y in DataLoader(Squares(2), batch_size=None)] == [(0.0, 0), (1.0, 1)]
    (x, y), *_ = DataLoader(rows(), batch_size=None)
    assert (x.shape, y.shape) == ((1,), ())
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


def test_collate_fn_gets_the_examples():
    loader = DataLoader(rows(3), batch_size=2, collate_fn=len)
    assert list(loader) == [2, 1]


def test_an_iterable_dataset_is_cut_into_batches():
    assert [batch.tolist() for batch in DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [batch.tolist() for batch in DataLoader(Stream(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    with pytest.raises(DTypeError, match=r"object of type Stream has no len\(\)"):
        len(DataLoader(Stream(5)))


def test_an_error_says_which_example_it_was():
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
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader(rows(), **options)


def test_an_iterable_dataset_is_not_shuffled():
    with pytest.raises(ArgumentError, match="expected unspecified shuffle option"):
        DataLoader(Stream(), shuffle=True)


# --- compared with PyTorch ---


@pytest.mark.parity
@pytest.mark.parametrize(
    "options", [{"batch_size": 3}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}], ids=str
)
def test_batches_are_pytorchs(torch, options):
    ours = list(DataLoader(Squares(), **options))
    theirs = list(torch.utils.data.DataLoader(Squares(), **options))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert type(mine) is type(other)
        for x, y in zip(mine, other, strict=True):
            assert np.asarray(x).tolist() == np.asarray(y).tolist()
            assert str(getattr(x, "dtype", type(x))).split(".")[-1] == str(getattr(y, "dtype", type(y))).split(".")[-1]


def test_what_is_no_data_set_and_no_function_is_named():
    with pytest.raises(DTypeError, match=r"DataLoader: expected a dataset, but got an int: 3\.\n  Pass"):
        DataLoader(3)
    with pytest.raises(DTypeError, match="DataLoader: collate_fn: 3 is an int; expected a callable"):
        DataLoader(Squares(3), collate_fn=3)


@pytest.mark.parity
def test_what_the_order_is_made_of_cannot_be_set_afterwards_as_in_pytorch(torch):
    values = {"dataset": rows(3), "batch_size": 3, "sampler": [1], "batch_sampler": [[1]], "drop_last": True}
    for library, dataset in ((mg, rows()), (torch, list(range(10)))):
        loader = library.utils.data.DataLoader(dataset, batch_size=4)
        for name, value in {**values, "persistent_workers": True}.items():
            before = getattr(loader, name)
            with pytest.raises(ValueError, match=name):
                setattr(loader, name, value)
            assert getattr(loader, name) is before
    loader = DataLoader(rows(), batch_size=4)
    with pytest.raises(
        ArgumentError,
        match=r"device attribute should not be set after .*\n  Create a new loader: DataLoader\(dataset, device=…\)",
    ):
        loader.device = "numpy"


def test_how_batches_are_made_can_be_set_between_epochs():
    loader = DataLoader(rows(5), batch_size=2)
    assert seen(loader) == [[0, 10], [20, 30], [40]]
    loader.collate_fn = lambda examples: ("mine", mg.stack([y for _, y in examples]))
    assert [batch[0] for batch in loader] == ["mine"] * 3
    assert seen(loader) == [[0, 10], [20, 30], [40]]


class Together:
    """A dataset with `__getitems__`, such as a table or a database."""

    def __init__(self):
        self.asked = []

    def __len__(self):
        return 5

    def __getitem__(self, index):
        self.asked.append(index)
        return index * 1.0 if isinstance(index, int) else [k * 1.0 for k in index]

    def __getitems__(self, indices):
        self.asked.append(list(indices))
        return [k * 1.0 for k in indices]


@pytest.mark.parity
def test_examples_are_asked_for_together_where_pytorch_asks_so(torch):
    found = []
    for library in (mg, torch):
        told = []
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
            together = Together()
            batches = list(make(together))
            told.append(
                (
                    [np.asarray(x).tolist() if not isinstance(x, dict | list) else str(x) for x in batches],
                    together.asked,
                )
            )
        found.append(told)
    for ours, its in zip(*found, strict=True):
        assert ours[1] == its[1]
        assert [str(x).replace("minigrad.", "torch.") for x in ours[0]] == [str(x) for x in its[0]]


def test_examples_that_come_together_are_counted():
    class Short(Together):
        def __getitems__(self, indices):
            return [1.0]

    with pytest.raises(mg.errors.ShapeError, match=r"Short\.__getitems__ returned 1 samples for 2 indices"):
        list(DataLoader(Short(), batch_size=2))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_an_order_that_comes_in_pieces_is_cut_as_one(size, monkeypatch):
    whole = (
        RandomSampler(range(10), replacement=True, num_samples=57, generator=mg.Generator(1)).order("numpy").tolist()
    )
    monkeypatch.setattr("minigrad.data.sampler.PIECE", 8)

    def loader(data, **more):
        sampler = RandomSampler(data, num_samples=57, generator=mg.Generator(1), **more)
        return DataLoader(data, batch_size=size, sampler=sampler)

    expected = [whole[k : k + size] for k in range(0, 57, size)]
    assert [x.tolist() for x in loader(range(10), replacement=True)] == expected
    assert [[y // 10 for y in batch] for batch in seen(loader(rows(), replacement=True))] == expected
    assert seen(loader(Subset(rows(20), range(10)), replacement=True)) == [[10 * k for k in x] for x in expected]
    rounds = [k for batch in seen(loader(rows())) for k in batch]
    assert [sorted(rounds[k : k + 10]) for k in range(0, 50, 10)] == [[10 * k for k in range(10)]] * 5
    first = loader(rows(), replacement=True)
    batches, state = iter(first), None
    for _ in range(min(4, len(expected) - 1)):
        next(batches)
    state = first.state_dict()
    again = loader(rows(), replacement=True)
    again.load_state_dict(state)
    assert seen(again) == [[10 * k for k in x] for x in (expected[min(4, len(expected) - 1) :])]


@pytest.mark.parity
def test_what_is_set_in_its_parts_takes_effect_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        data = library.utils.data.TensorDataset(library.arange(6))
        loader, told = library.utils.data.DataLoader(data, batch_size=4), []

        def epoch(loader=loader, told=told):
            told.append([x.tolist() for (x,) in loader])

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
        found.append(told)
    assert found[0] == found[1]
