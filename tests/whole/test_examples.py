"""The examples run, print a final line in a standard format, and learn; their full runs are on record."""

import os
import re
import runpy
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import minigrad as mg
from strategies import PICTURE
from torch_warper import EXAMPLES, network

FINAL_LINE = re.compile(r"(\w+) device=(\w+) seed=(\d+)((?: \w+=[-+.\de]+)+) seconds=(\d+)")
# Thresholds for the metrics of the final line.
THRESHOLDS = {
    "digits_mlp": lambda n: n["test_accuracy"] >= 0.96,
    "digits_cnn": lambda n: n["test_accuracy"] >= 0.98,
    "idx_cnn": lambda n: n["test_accuracy"] >= 0.96,
    "spatial_transformer": lambda n: n["transformer_accuracy"] > n["plain_accuracy"],
    "autoencoder": lambda n: n["test_explained"] >= 0.8,
    "image_warper": lambda n: n["share_gone"] >= 0.75,
}


def parse_final_line(line):
    """Parse a final line into the name, the device, the seed and the metrics."""
    match = FINAL_LINE.fullmatch(line)
    assert match, line
    name, device, seed, metrics, _ = match.groups()
    return name, device, int(seed), {k: float(v) for k, v in (pair.split("=") for pair in metrics.split())}


def run_example(name, folder, alone=True, **env):
    """Run an example quickly in `folder`; return its final metrics and, unless `alone`, the rest of its output."""
    child = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--quick", "--seed", "3", "--device", mg.get_default_device()],
        cwd=folder,
        env={**os.environ, "MINIGRAD_DATA": str(folder / "data"), **env},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    *output, line = child.stdout.splitlines()
    printed, device, seed, metrics = parse_final_line(line)
    assert (printed, device, seed) == (name, mg.get_default_device(), 3)
    if alone:
        assert not output
        return metrics
    return metrics, "\n".join(output)


def read_png(path):
    """Return the grey pixels of a PNG file, after checking each checksum."""
    data, offset, chunks = path.read_bytes(), 8, {}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while offset < len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        name, content = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        assert struct.unpack(">I", data[offset + 8 + length : offset + 12 + length]) == (zlib.crc32(name + content),)
        chunks[name], offset = content, offset + 12 + length
    width, height, bits, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (bits, colour, chunks[b"IEND"]) == (8, 0, b"")
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


@pytest.fixture
def example(monkeypatch):
    """Return a function that loads an example and returns its globals."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["digits_mlp", "digits_cnn", "idx_cnn", "spatial_transformer"])
def test_a_quick_run_learns_and_prints_a_final_line(name, tmp_path):
    results = run_example(name, tmp_path)
    assert results["last_loss"] < 0.9 * results["first_loss"]
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.slow
def test_the_autoencoder_draws_ten_digits_and_their_reconstructions(tmp_path):
    results = run_example("autoencoder", tmp_path)
    assert results["last_loss"] < 0.9 * results["first_loss"]
    picture = read_png(tmp_path / "autoencoder.png")
    assert picture.shape == (2 * 10 * 8, 10 * 10 * 8)  # two rows of ten framed 8x8 digits, scaled by 8
    digits = mg.data.digits()
    first = next(k for k, y in enumerate(digits.test_y.tolist()) if y == 0)
    drawn = picture[8:72:8, 8:72:8]
    np.testing.assert_array_equal(drawn, np.round((1 - digits.test_x[first, 0].numpy()) * 255))


@pytest.mark.nightly
def test_the_image_warper_needs_no_pytorch_and_warps_letters_upright(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('PyTorch was asked for')")
    results = run_example(
        "image_warper", tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    )
    assert results["letters"] == 40
    assert THRESHOLDS["image_warper"](results)
    assert read_png(tmp_path / "image_warper.png").shape == (2 * 34 * 3, 10 * 34 * 3)


@pytest.mark.nightly
def test_files_in_mnist_s_folder_are_read_instead_of_the_digits(tmp_path):
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    digits = mg.data.digits()
    for part, x, y in (("train", digits.train_x, digits.train_y), ("t10k", digits.test_x, digits.test_y)):
        large = (np.pad(x[:250, 0].numpy().repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2))) * 255).astype(np.uint8)
        mg.data.write_idx(folder / f"{part}-images-idx3-ubyte", large)
        mg.data.write_idx(folder / f"{part}-labels-idx1-ubyte", y[:250].numpy().astype(np.uint8))
    results = run_example("idx_cnn", tmp_path)
    assert (results["images"], results["pixels"]) == (250, 28 * 28)


@pytest.mark.parity
@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_the_warper_s_picture_is_pytorch_s(torch, format, example, tmp_path):
    """Load weights that PyTorch initialised and saved."""
    from safetensors.torch import save_file

    torch.manual_seed(0)
    torch_model, path = network(), tmp_path / f"warper.{format}"
    (torch.save if format == "pt" else save_file)(torch_model.state_dict(), path)
    warper = example("image_warper")
    mg_model = warper["Warper"]()
    mg_model.load_state_dict(mg.load(path))
    with mg.random.fork_rng():
        mg.manual_seed(0)
        shapes, _, _ = warper["letters"](20)
    assert_same_picture(torch, mg_model, torch_model, shapes)


@pytest.mark.nightly
@pytest.mark.parity
def test_the_trained_warper_s_picture_is_pytorch_s(torch, example):
    """Load the weights shipped with the example into PyTorch."""
    from safetensors.torch import load_file

    warper, torch_model = example("image_warper"), network()
    torch_model.load_state_dict(load_file(warper["WEIGHTS"]))
    mg_model = warper["Warper"]()
    mg_model.load_state_dict(mg.load(warper["WEIGHTS"]))
    with mg.random.fork_rng():
        mg.manual_seed(1)
        shapes, _, _ = warper["letters"](20)
    assert_same_picture(torch, mg_model, torch_model, shapes)


def assert_same_picture(torch, mg_model, torch_model, shapes):
    with mg.no_grad(), torch.no_grad():
        actual, expected = mg_model(shapes).numpy(), torch_model(torch.from_numpy(shapes.numpy())).numpy()
    assert actual.shape == (20, 1, 32, 32)
    assert np.abs(expected - shapes.numpy()).max() > 0.5  # something was warped
    np.testing.assert_allclose(actual, expected, rtol=0, atol=PICTURE)


def test_the_transformations_turn_letters_upright(example):
    """The formulas of the letters agree with the transformations that the network should predict."""
    with mg.random.fork_rng():
        mg.manual_seed(0)
        distorted, upright, theta = example("image_warper")["letters"](30)
    F = mg.functional
    back = F.grid_sample(distorted, F.affine_grid(theta, distorted.shape, align_corners=False), align_corners=False)
    before, after = [float(((x - upright) ** 2).mean()) for x in (distorted, back)]
    assert after < 0.05 * before  # the remainder comes from interpolation


def recorded_runs():
    text = (EXAMPLES / "results.txt").read_text(encoding="utf-8")
    return [parse_final_line(" ".join(line.split())) for line in text.splitlines() if " device=" in line]


@pytest.mark.parametrize("name", THRESHOLDS)
def test_the_recorded_runs_reached_the_thresholds(name):
    runs = [
        (seed, results)
        for example_name, device, seed, results in recorded_runs()
        if (example_name, device) == (name, "cpu")
    ]
    assert [seed for seed, _ in runs] == [0, 1, 2]
    assert all(THRESHOLDS[name](results) for _, results in runs)


def test_each_example_has_recorded_runs():
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"common", "png"}
    assert {name for name, *_ in recorded_runs()} == names
