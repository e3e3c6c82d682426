"""The data that is shipped."""

from collections import Counter

from minigrad.data import iris


def test_iris_is_split_120_to_30_with_ten_of_each_species_in_the_30():
    flowers = iris()
    assert (len(flowers.train_x), len(flowers.train_y), len(flowers.test_x)) == (120, 120, 30)
    assert Counter(flowers.test_y) == {0: 10, 1: 10, 2: 10}
    assert Counter(flowers.train_y) == {0: 40, 1: 40, 2: 40}


def test_iris_holds_fisher_s_numbers_where_the_uci_copy_errs():
    flowers = iris()
    centimetres = [
        tuple(round(v * d + m, 1) for v, m, d in zip(x, flowers.mean, flowers.deviation, strict=True))
        for x in (*flowers.train_x, *flowers.test_x)
    ]
    assert (4.9, 3.1, 1.5, 0.2) in centimetres
    assert (4.9, 3.6, 1.4, 0.1) in centimetres
    assert Counter(centimetres)[(5.8, 2.7, 5.1, 1.9)] == 2
    assert len(centimetres) == 150


def test_the_training_columns_have_mean_zero_and_deviation_one():
    flowers = iris()
    for column in zip(*flowers.train_x, strict=True):
        assert abs(sum(column)) < 1e-10
        assert abs(sum(v * v for v in column) / 120 - 1) < 1e-12


def test_the_split_follows_its_seed():
    assert iris(1) == iris(1)
    assert iris(1).train_x != iris(0).train_x
