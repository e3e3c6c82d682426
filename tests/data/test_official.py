"""MNIST, Fashion-MNIST, CIFAR-10: reading files of their formats, and rejecting other files."""

import gzip
import hashlib
import io
import re
import tarfile
import time
import tracemalloc
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import cli
from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError
from minigrad.data import catalogue, cifar, cifar10, data_folder, fashion_mnist, mnist, official, read_images, write_idx

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Shrink the datasets to 12 training and 6 test images for MNIST, and 4 records per file for CIFAR-10."""
    monkeypatch.setenv("MINIGRAD_DATA", str(tmp_path))
    monkeypatch.setattr(official, "_IMAGE_COUNTS", {True: 12, False: 6})
    monkeypatch.setattr(official, "_RECORDS_PER_FILE", 4)
    return tmp_path


def images(n, seed=0, size=28):
    return np.random.default_rng(seed).integers(0, 256, (n, size, size), dtype=np.uint8)


def labels(n, seed=0):
    return np.random.default_rng(seed + 1).integers(0, 10, n, dtype=np.uint8)


def write_four(folder, ending="", seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(NAMES, (images(12, seed), labels(12, seed), images(6, seed), labels(6, seed)), strict=True):
        write_idx(folder / f"{name}{ending}", array)


def register_checksums(monkeypatch, dataset, folder):
    """Register the checksums of the files in a folder as the official ones."""
    md5 = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in dataset.files}
    monkeypatch.setattr(
        official, dataset.name.replace("-", "_").upper().replace("CIFAR_10", "CIFAR10"), dataset._replace(files=md5)
    )
    monkeypatch.setattr(official, "_FILE_BY_MD5", {digest: (dataset.name, name) for name, digest in md5.items()})


def test_the_data_folder_is_set_by_the_environment(monkeypatch):
    monkeypatch.setenv("MINIGRAD_DATA", "~/somewhere")
    assert data_folder().parts[-1] == "somewhere"
    assert "~" not in str(data_folder())
    monkeypatch.delenv("MINIGRAD_DATA")
    assert data_folder().parts[-3:] == (".cache", "minigrad", "data")


@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw"])
def test_mnist_is_read_from_uncompressed_files(small, folder):
    write_four(small / folder)
    data = mnist()
    x, y = data.tensors
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((12, 1, 28, 28), mg.float32, (12,), mg.int64)
    assert np.abs(x.numpy()[:, 0] * 255 - images(12)).max() < 1e-4
    assert y.tolist() == labels(12).tolist()
    assert len(mnist(train=False)) == 6
    assert mnist(raw=True, device="numpy").tensors[0].dtype is mg.uint8


def test_checksums_of_compressed_files_are_verified(small, monkeypatch):
    write_four(small / "mnist", ".gz")
    register_checksums(monkeypatch, catalogue.MNIST, small / "mnist")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(mnist()) == 12


def test_an_unknown_checksum_warns_and_loads(small):
    write_four(small / "fashion-mnist", ".gz")
    with pytest.warns(UserWarning, match=r"MD5 mismatch: expected \w{32}, but got \w{32}\. This is harmless") as caught:
        assert len(fashion_mnist()) == 12
    assert [str(each.message).partition(":")[0] for each in caught] == [
        str(small / "fashion-mnist" / f"{name}.gz") for name in NAMES[:2]
    ]


def test_another_datasets_file_raises(small, monkeypatch):
    write_four(small / "fashion-mnist", ".gz")
    register_checksums(monkeypatch, catalogue.FASHION_MNIST, small / "fashion-mnist")
    (small / "fashion-mnist").rename(small / "mnist")
    with pytest.raises(
        FileFormatError, match=r"but the checksum is that of Fashion-MNIST's train-images-idx3-ubyte\.gz"
    ):
        mnist()


def test_missing_files_raise_with_their_folder(small):
    with pytest.raises(MissingFileError) as caught:
        mnist()
    assert str(caught.value) == (
        f"MNIST: train-images-idx3-ubyte, train-labels-idx1-ubyte not found in {small / 'mnist'}.\n"
        "  minigrad does not download datasets: get train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, "
        "t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz from\n"
        "  yann.lecun.com/exdb/mnist, and put them there, or pass folder=.\n"
        "  `minigrad data` lists all datasets and their folders."
    )
    with pytest.raises(
        MissingFileError,
        match=r"test_batch.bin not found in .*\n  minigrad does not download datasets: get cifar-10-binary.tar.gz",
    ):
        cifar10(train=False)
    with pytest.raises(FileNotFoundError, match="neither train-images-idx3-ubyte nor"):
        read_images(small)


WRONG_FILES = {
    "the test files in place of the training files": (
        (NAMES[2], NAMES[3]),
        "expected 12 training images of 28x28 for MNIST, but got 6",
    ),
    "labels in place of images": ((NAMES[1], NAMES[1]), "got a 1-D array of uint8; these look like the labels"),
    "images in place of labels": ((NAMES[0], NAMES[0]), "got a 3-D array of uint8; these look like the images"),
    "labels of another set": ((NAMES[0], NAMES[3]), "has 12 images, but .* 6 labels"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_swapped_files_raise(small, name):
    (x, y), message = WRONG_FILES[name]
    write_four(small / "other")
    (small / "mnist").mkdir()
    for source, target in ((x, NAMES[0]), (y, NAMES[1])):
        (small / "mnist" / target).write_bytes((small / "other" / source).read_bytes())
    with pytest.raises(FileFormatError, match=message):
        mnist()


def test_labels_above_nine_raise(small):
    write_four(small / "mnist")
    write_idx(small / "mnist" / NAMES[1], np.full(12, 10, np.uint8))
    with pytest.raises(FileFormatError, match="found label 10, but labels range from 0 to 9"):
        mnist()


def test_images_of_any_size_are_read(tmp_path):
    write_idx(tmp_path / f"{NAMES[0]}.gz", images(5, size=8))
    write_idx(tmp_path / NAMES[1], labels(5))
    x, y = read_images(tmp_path).tensors
    assert (x.shape, len(y)) == ((5, 1, 8, 8), 5)


FOLDER_LAYOUTS = {
    "dots, as Kaggle names them": ".",
    "a folder a file, as Kaggle packs them": "per file",
    "torchvision's raw": "MNIST/raw",
    "above raw": "raw",
}


@pytest.mark.parametrize("layout", FOLDER_LAYOUTS.values(), ids=FOLDER_LAYOUTS)
def test_other_folder_layouts_are_read(tmp_path, layout):
    for name, array in ((NAMES[0], images(5, size=8)), (NAMES[1], labels(5))):
        folder = tmp_path / (name if layout == "per file" else layout)
        folder.mkdir(parents=True, exist_ok=True)
        write_idx(folder / (name if layout == "MNIST/raw" else name.replace("-idx", ".idx")), array)
        if layout == "per file":
            (folder / name.replace("-idx", ".idx")).rename(folder / name)
    assert [x.shape[0] for x in read_images(tmp_path).tensors] == [5, 5]


def test_ambiguous_folders_and_files_raise(tmp_path):
    for folder in (tmp_path / "MNIST" / "raw", tmp_path / "FashionMNIST" / "raw"):
        folder.mkdir(parents=True)
        for name, array in ((NAMES[0], images(5, size=8)), (NAMES[1], labels(5))):
            write_idx(folder / name, array)
    with pytest.raises(ArgumentError, match=r"contains several datasets: FashionMNIST/raw, MNIST/raw\.\n  Pass one"):
        read_images(tmp_path)
    with pytest.raises(ArgumentError, match=rf"is a file; pass the folder that contains {NAMES[0]} and"):
        read_images(tmp_path / "MNIST" / "raw" / NAMES[0])
    with pytest.raises(MissingFileError, match=rf"neither {NAMES[2]} nor .*\n  It contains {NAMES[0]}, {NAMES[1]}\."):
        read_images(tmp_path / "MNIST" / "raw", train=False)


# --- CIFAR-10 ---


def records(n=4, seed=0):
    generator = np.random.default_rng(seed)
    table = generator.integers(0, 256, (n, 3073), dtype=np.uint8)
    table[:, 0] %= 10
    return table


FILES = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]


def write_cifar(folder):
    folder.mkdir(parents=True)
    for seed, name in enumerate(FILES):
        (folder / name).write_bytes(records(seed=seed).tobytes())


def pack_cifar(path, contents):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_cifar_is_read_from_extracted_files(small):
    write_cifar(small / "cifar-10-batches-bin")
    x, y = cifar10().tensors
    assert (x.shape, y.shape) == ((20, 3, 32, 32), (20,))
    assert y[:4].tolist() == records()[:, 0].tolist()
    assert np.abs(x[3].numpy() * 255 - records()[3, 1:].reshape(3, 32, 32)).max() < 1e-4
    assert len(cifar10(train=False, folder=small / "cifar-10-batches-bin")) == 4


def test_cifar_is_read_from_its_archive(small, monkeypatch):
    pack_cifar(small / "cifar-10-binary.tar.gz", {name: records(seed=k).tobytes() for k, name in enumerate(FILES)})
    register_checksums(monkeypatch, catalogue.CIFAR10, small)
    assert cifar10(train=False).tensors[1].tolist() == records(seed=5)[:, 0].tolist()
    assert len(cifar10()) == 20


CORRUPT_BATCHES = {
    "truncated": (records().tobytes()[:-1], "expected 12,292 bytes for 4 images, but got 12,291: it is truncated"),
    "of CIFAR-100": (b"\1" * 4 * 3074, "it looks like CIFAR-100"),
    "a pickle": (b"\x80\4abc", "it looks like the Python version, a pickle, which is not supported"),
    "packed": (gzip.compress(records().tobytes()), "it is gzip-compressed: decompress it"),
    "mislabelled": (b"\x0b" * 4 * 3073, "the label of image 0 is 11, but labels range from 0 to 9"),
}


@pytest.mark.parametrize("name", CORRUPT_BATCHES)
def test_corrupt_batches_raise(small, name):
    data, message = CORRUPT_BATCHES[name]
    (small / "cifar-10-batches-bin").mkdir()
    (small / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(data)
    with pytest.raises(FileFormatError, match=message):
        cifar10(train=False)


def test_corrupt_archives_raise(small, recwarn):
    path = small / "cifar-10-binary.tar.gz"
    path.write_bytes(b"<html>")
    with pytest.raises(FileFormatError, match="cannot extract"):
        cifar10()
    pack_cifar(path, {"other.bin": b"123"})
    with pytest.raises(FileFormatError, match=r"test_batch\.bin not found: not the binary version of CIFAR-10"):
        cifar10(train=False)
    pack_cifar(path, {"test_batch.bin": b"123"})
    with pytest.raises(FileFormatError, match=r"test_batch\.bin: expected 12,292 bytes for 4 images, but got 3"):
        cifar10(train=False)
    pack_cifar(path, {"bomb.bin": b"\0" * (2**26 + 1)})
    with pytest.raises(FileFormatError, match=r"bomb\.bin has 67,108,865 bytes, more than any file of CIFAR-10"):
        cifar10()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError):
        cifar10()
    assert len(recwarn) == 5, "each unknown checksum warns"


def header(kind, size):
    """Return the header of a tar member."""
    info = tarfile.TarInfo("a")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)[:512]


MALICIOUS_ARCHIVES = {
    "a name of eight gigabytes": header(tarfile.GNUTYPE_LONGNAME, 2**33),
    "a header of eight gigabytes": header(tarfile.XHDTYPE, 2**33),
    "a header that takes a minute to search": header(tarfile.XHDTYPE, 2**20) + b"1" * 2**20,
    "headers without end": header(tarfile.GNUTYPE_LONGNAME, 0) * 9000,
    "members larger than the archive's limit": (header(tarfile.REGTYPE, 2**20) + bytes(2**20)) * 5,
    "a size of 88 bits": header(tarfile.REGTYPE, -(2**80)) + bytes(1024),
    "an invalid length": header(tarfile.XHDTYPE, 20) + b"20 GNU.sparse.map=x\n".ljust(512, b"\0") + header(b"0", 0),
}


@pytest.mark.parametrize("name", MALICIOUS_ARCHIVES)
def test_malicious_archives_take_neither_memory_nor_time(tmp_path, monkeypatch, name):
    monkeypatch.setattr(cifar, "_MAX_ARCHIVE_BYTES", 2**21)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(MALICIOUS_ARCHIVES[name], 1))
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(FileFormatError, match="cannot extract"):
        cifar.read_archive(path, ["test_batch.bin"], 4)
    spent, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (spent < 5, peak < 2**22) == (True, True)


# --- minigrad data ---


def command_output(capsys):
    assert cli.main(["data"]) == 0
    return capsys.readouterr().out


def test_the_command_lists_datasets_and_folders(small, capsys):
    out = command_output(capsys)
    for call in (
        "iris()",
        "digits()",
        'names("stars")',
        "corpus()",
        "moons()",
        "mnist()",
        "fashion_mnist()",
        "cifar10()",
    ):
        assert f"  {call}" in out
    for one in catalogue.OFFICIAL:
        for name, md5 in one.files.items():
            assert re.search(rf"{name} +MD5 {md5}$", out, re.MULTILINE)
    assert f"into    {small / 'mnist'}\n" in out
    assert max(map(len, out.replace(str(small), "~").splitlines())) <= 100


def test_the_command_lists_existing_files(small, capsys, monkeypatch):
    write_four(small / "MNIST" / "raw", ".gz")
    write_cifar(small / "cifar-10-batches-bin")
    out = command_output(capsys)
    assert f"in      {small / 'MNIST/raw'}\n" in out
    assert len(re.findall(r"MD5 \w{32}  MD5 differs$", out, re.MULTILINE)) == 4
    assert "6 of its 6 files are here, unpacked" in out
    right = {name: hashlib.md5((small / "MNIST/raw" / name).read_bytes()).hexdigest() for name in catalogue.MNIST.files}
    monkeypatch.setattr(catalogue, "OFFICIAL", (catalogue.MNIST._replace(files=right),))
    assert len(re.findall(r"MD5 \w{32}  here$", command_output(capsys), re.MULTILINE)) == 4
