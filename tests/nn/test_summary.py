"""The table of a model: its contents and counts, and the state that the run preserves."""

import pytest

import minigrad as mg
from minigrad.nn.summary import MAX_WIDTH

nn, F = mg.nn, mg.functional


class Tied(nn.Module):
    """A token model whose output projection shares the weight of its embedding, and which applies a layer twice."""

    def __init__(self, blocks=2):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(blocks)])
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(block(x))
        return self.head(x)


def test_a_table_has_one_line_per_module_and_groups_equal_blocks():
    assert str(Tied().summary(mg.zeros(3, 5, dtype=mg.int64))) == (
        "layer        kind            output               parameters  multiply-adds   memory\n"
        "────────────────────────────────────────────────────────────────────────────────────\n"
        "Tied                         (3, 5, 7)                    68          1,380  2.5 KiB\n"
        "  embedding  Embedding       (3, 5, 4)                    28                   240 B\n"
        "  blocks     ModuleList      –                            40            960  1.9 KiB\n"
        "    0-1      Sequential × 2  (3, 5, 4) (2 calls)          20            480    960 B\n"
        "      0      Linear          (3, 5, 4) (2 calls)          20            480    480 B\n"
        "      1      ReLU            (3, 5, 4) (2 calls)                               480 B\n"
        "  head       Linear          (3, 5, 7)                    *0            420    420 B\n"
        "────────────────────────────────────────────────────────────────────────────────────\n"
        "68 parameters; 272 B\n"
        "1,380 multiply-adds of matrices and convolutions; 2.5 KiB of results, for an input of (3, 5)\n"
        "* head.weight is embedding.weight: counted once"
    )


@pytest.mark.parametrize(
    ("make", "shape", "products"),
    [
        (lambda: nn.Linear(4, 3), (2, 4), 2 * 3 * 4),
        (lambda: nn.Conv2d(4, 6, 3, groups=2), (2, 4, 8, 8), 2 * 6 * 6 * 6 * (2 * 9)),
        (lambda: nn.Conv1d(4, 6, 3), (2, 4, 8), 2 * 6 * 6 * 4 * 3),
        (lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), (2, 4, 5, 5), 2 * 4 * 25 * 6 * 4),
        (lambda: nn.RNNCell(3, 4), (2, 3), 2 * 4 * (3 + 4)),
    ],
    ids=["Linear", "Conv2d", "Conv1d", "ConvTranspose2d", "RNNCell"],
)
def test_multiply_adds_are_those_of_the_layers_formula(make, shape, products):
    assert make().summary(mg.ones(*shape)).total.multiply_adds == products


def test_attention_counts_the_products_of_queries_and_keys_and_of_weights_and_values():
    class Attention(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v)

    summary = Attention().summary(mg.ones(2, 3, 5, 8), mg.ones(2, 3, 7, 8), mg.ones(2, 3, 7, 4))
    assert summary.total.multiply_adds == 2 * 3 * 5 * 7 * (8 + 4)


def test_a_shared_module_is_counted_once():
    layer = nn.Linear(3, 3)
    summary = nn.Sequential(layer, nn.ReLU(), layer).summary(mg.ones(2, 3))
    assert summary.total.parameters == 12
    assert str(summary).endswith("* 2 is 0: counted once")


def test_frozen_parameters_are_reported():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model[0].requires_grad_(False)
    assert "12 parameters, 8 frozen; 72 B" in str(model.summary(mg.ones(2, 3)))  # and the norm's two buffers


def test_summary_preserves_modes_buffers_hooks_gradients_and_random_state():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    model[2].eval()
    mg.manual_seed(3)
    expected = mg.rand(2).tolist()
    mg.manual_seed(3)
    before = {name: x.tolist() for name, x in model.state_dict().items()}
    model.summary(mg.rand(5, 3).detach())
    mg.manual_seed(3)
    model.summary(mg.ones(5, 3))
    assert mg.rand(2).tolist() == expected
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before
    assert [module.training for module in model.modules()] == [True, True, True, False]
    assert all(not module._hooks.before and not module._hooks.after for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_error_in_forward_names_its_location_and_preserves_the_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))
    with pytest.raises(mg.errors.ShapeError, match="linear") as raised:
        model.summary(mg.ones(2, 3))
    assert "1, Linear(in_features=5" in raised.value.__notes__[0]
    assert model.training
    assert not any(module._hooks.after for module in model.modules())


def test_no_line_is_longer_than_a_terminal():
    class AModuleWhoseNameIsLongerThanAnyTerminalWouldLike(nn.Module):
        def __init__(self):
            super().__init__()
            self.a_layer_that_somebody_described_at_length_in_its_name = nn.LSTM(3, 4, num_layers=2)

        def forward(self, x):
            return self.a_layer_that_somebody_described_at_length_in_its_name(x)

    table = str(AModuleWhoseNameIsLongerThanAnyTerminalWouldLike().summary(mg.ones(5, 2, 3)))
    assert max(map(len, table.splitlines())) <= MAX_WIDTH
    assert "…" in table


def test_summary_without_an_input_raises():
    with pytest.raises(
        mg.errors.ArgumentError, match=r"summary: expected an input, to call Linear once.*\n.*model\.summary\(mg\.zeros"
    ):
        nn.Linear(2, 2).summary()
