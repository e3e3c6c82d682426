"""The datasets shipped with the package."""

import hashlib
import subprocess
import sys
import unicodedata
from collections import Counter
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.data import corpus, digits, iris, names, read_idx
from minigrad.data.freeze import MACHINE_PATH, build_corpus


def test_iris_is_split_120_to_30_with_ten_of_each_species_in_the_30():
    flowers = iris()
    assert (len(flowers.train_x), len(flowers.train_y), len(flowers.test_x)) == (120, 120, 30)
    assert Counter(flowers.test_y) == {0: 10, 1: 10, 2: 10}
    assert Counter(flowers.train_y) == {0: 40, 1: 40, 2: 40}


def test_iris_has_fishers_values_where_the_uci_copy_errs():
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


def test_the_split_depends_on_the_seed():
    assert iris(1) == iris(1)
    assert iris(1).train_x != iris(0).train_x


# --- digits ---


def test_digits_are_split_1500_to_297_and_hold_the_published_counts():
    data = digits()
    assert (data.train_x.shape, data.train_x.dtype) == ((1500, 1, 8, 8), mg.float32)
    assert (data.test_y.shape, data.test_y.dtype) == ((297,), mg.int64)
    counts = Counter(data.train_y.tolist() + data.test_y.tolist())
    assert [counts[k] for k in range(10)] == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # UCI's optdigits.names
    assert set(data.train_x.flatten().tolist()) == {k / 16 for k in range(17)}


def test_digits_work_before_any_other_tensor():
    program = "import minigrad as mg; print(mg.data.digits().test_x.mean().shape)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == ("()\n", "")


def test_digits_match_uci():
    folder = files("minigrad.data")
    images, labels = (read_idx(folder.joinpath(f"digits-{x}.gz")) for x in ("images.idx3", "labels.idx1"))
    first = "00 00 05 13 09 01 00 00 00 00 13 15 10 15 05 00 00 03 15 02 00 11 08 00 00 04 12 00 00 08 08 00"
    assert images[0, :4].flatten().tolist() == [int(x) for x in first.split()]
    assert labels[:10].tolist() == list(range(10))
    assert int(images.sum()) == 561718


def test_the_digits_split_is_a_seeded_permutation():
    one, again, other = digits(seed=1), digits(seed=1), digits(seed=2)
    assert one.train_y.tolist() == again.train_y.tolist() != other.train_y.tolist()
    sums = [sorted(mg.cat([x.train_x, x.test_x]).sum((1, 2, 3)).tolist()) for x in (one, other)]
    assert sums[0] == sums[1]
    assert [len(part) for part in (one.train, one.test)] == [1500, 297]
    assert digits(train=1000, device="numpy").test_x.device == "numpy"
    with pytest.raises(ArgumentError, match="train should be between 1 and 1796, but got train=1797"):
        digits(train=1797)


# --- names and the corpus ---


@pytest.mark.parametrize(("kind", "count"), [("elements", 118), ("countries", 195), ("stars", 330)])
def test_names_are_complete_unique_and_sorted(kind, count):
    words = names(kind)
    assert len(words) == len(set(words)) == count
    plain = [unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode().lower() for name in words]
    assert plain == sorted(plain)
    assert all(name == name.strip() == unicodedata.normalize("NFC", name) for name in words)


def test_names_are_spelt_as_in_their_sources():
    assert {"aluminium", "caesium", "sulfur", "nihonium", "oganesson"} <= set(names("elements"))
    assert {"Côte d’Ivoire", "São Tomé and Príncipe", "Timor-Leste", "Türkiye", "Eswatini"} <= set(names("countries"))
    assert {"Sirius", "Barnard's Star", "Zubeneschamali", "Unurgunite", "Rigil Kentaurus"} <= set(names("stars"))
    with pytest.raises(ArgumentError, match="unknown kind 'dogs'; expected one of 'elements', 'countries', 'stars'"):
        names("dogs")


def test_the_corpus_is_frozen():
    text = corpus()
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert digest == "256debde128bd8d67937d97472faa0693b303166eab2a8cab8a7bd5f032d4603", "rebuild it only deliberately"
    assert len(text) > 200_000
    assert text.startswith("minigrad: its own sources, documents and lessons, as of 2026-11-22.\n")


def test_the_corpus_has_no_absolute_paths():
    assert MACHINE_PATH.findall(corpus()) == []
    assert [bool(MACHINE_PATH.search(x)) for x in (r"in C:\data", "in /home/x/y", "a/b, /tmp.py")] == [
        True,
        True,
        False,
    ]


def test_the_corpus_concatenates_files_in_order(tmp_path):
    for name in ("minigrad/core/b.py", "minigrad/core/a.py", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"This is {name}.\n\n", encoding="utf-8")
    day = date(2030, 1, 2)
    assert build_corpus(tmp_path, day) == (
        "minigrad: its own sources, documents and lessons, as of 2030-01-02.\n"
        "\n=== README.md ===\n\nThis is README.md.\n"
        "\n=== minigrad/core/a.py ===\n\nThis is minigrad/core/a.py.\n"
        "\n=== minigrad/core/b.py ===\n\nThis is minigrad/core/b.py.\n"
    )
    (tmp_path / "README.md").write_text("see /home/someone/x", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"README\.md contains an absolute path: '/home/s'"):
        build_corpus(tmp_path, day)
    with pytest.raises(ArgumentError, match="is not a clone of minigrad"):
        build_corpus(tmp_path / "minigrad", day)


def test_each_shipped_file_has_its_source_stated():
    folder = Path(str(files("minigrad.data")))
    sources = (folder / "SOURCES.md").read_text(encoding="utf-8")
    shipped = {path.name for path in folder.iterdir() if path.suffix in (".gz", ".csv", ".txt")}
    assert {name for name in shipped if f"`{name}`" not in sources} == set()
    assert len(shipped) == 7
