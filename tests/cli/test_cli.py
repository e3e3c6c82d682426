"""The command: its output, the files it writes, and its errors."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cases import merge_cases
from minigrad import OPS, cli
from minigrad.cli import doctor, lessons, tables, tour
from needs import needs


def run(capsys, *arguments):
    code = cli.main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_tour_learns_iris_and_writes_the_graph_of_one_loss(capsys, tmp_path):
    page = tmp_path / "tour.html"
    code, out, err = run(capsys, "tour", "--out", str(page))
    assert code == 0
    assert out.startswith("Training MLP(4 -> 8 -> 3, 'tanh', 67 parameters) on 120 Iris flowers.\n")
    accuracy = re.search(r"Test accuracy: ([\d.]+)% \((\d+) of 30 unseen flowers\)\.", out)
    assert accuracy is not None
    assert float(accuracy[1]) >= 90.0
    assert out.endswith(f"with every value and gradient: {page}\n")
    assert "epochs: 100%" in err  # the progress bar
    html = page.read_text(encoding="utf-8")
    for name in ("petal length", "layers[0].neurons[0].w[0]", "layers[1] · Layer(8→3)", "score 2", "loss"):
        assert name in html
    assert "<title>A tour of loss and its gradients · minigrad</title>" in html
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", html)  # nothing is fetched


def test_the_same_seed_gives_the_same_page(capsys, tmp_path):
    pages = []
    for name in ("first.html", "second.html"):
        run(capsys, "tour", "--epochs", "2", "--seed", "3", "--out", str(tmp_path / name))
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_open_opens_the_page(capsys, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(tour.webbrowser, "open", lambda address: opened.append(address))
    page = tmp_path / "tour.html"
    _, out, _ = run(capsys, "tour", "--epochs", "1", "--out", str(page), "--open")
    assert opened == [page.as_uri()]
    assert out.endswith("No browser could be opened; open the page yourself.\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "minigrad: the following arguments are required: COMMAND; see minigrad --help"),
        (("tour", "--speed", "9"), "minigrad: unrecognized arguments: --speed 9; see minigrad --help"),
        (
            ("tour", "--epochs", "0"),
            "minigrad tour: argument --epochs: '0' is not a positive integer; see minigrad tour --help",
        ),
        (
            ("tour", "--seed", "x"),
            "minigrad tour: argument --seed: invalid int value: 'x'; see minigrad tour --help",
        ),
    ],
    ids=["no command", "unknown flag", "no epochs", "seed not a number"],
)
def test_wrong_usage_prints_one_line_with_exit_code_2(capsys, arguments, line):
    assert run(capsys, *arguments) == (2, "", line + "\n")


def test_an_unknown_command_prints_one_line(capsys):
    code, out, err = run(capsys, "detour")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "invalid choice: 'detour'" in err


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing/tour.html", "No such file or directory"),
        (".", "Is a directory"),
        ("file/x.html", "Not a directory"),
        ("x" * 300 + ".html", "File name too long"),
    ],
    ids=["missing folder", "folder", "file as folder", "long name"],
)
def test_an_unwritable_page_is_reported_before_training(capsys, tmp_path, path, reason):
    (tmp_path / "file").write_text("")
    target = tmp_path / path
    code, out, err = run(capsys, "tour", "--out", str(target))
    assert (code, out, err) == (2, "", f"minigrad tour: cannot write {target}: {reason}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_dangling_link_is_written_through_and_not_replaced(capsys, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "target.html")
    code, _, _ = run(capsys, "tour", "--epochs", "1", "--out", str(link))
    assert code == 0
    assert link.is_symlink()
    assert "<svg" in (tmp_path / "target.html").read_text(encoding="utf-8")


def test_a_broken_pipe_ends_quietly(tmp_path):
    command = [sys.executable, "-m", "minigrad", "tour", "--epochs", "1", "--out", str(tmp_path / "tour.html")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        err = child.stderr.read()
    assert child.returncode == 141
    assert "Traceback" not in err


COMMANDS = [
    "--version",
    "--help",
    "ops",
    "ops --help",
    "torch",
    "torch --markdown",
    "data",
    "doctor",
    "course c",
    "lab --copy l",
    "sweep sweep.toml",
    "tour --epochs 1",
]


@merge_cases
@pytest.mark.parametrize("buffering", [1, -1])
@pytest.mark.parametrize("command", COMMANDS)
def test_unwritable_output_prints_one_line(capsys, tmp_path, monkeypatch, command, buffering):
    needs("numpy", "Linux")  # for /dev/full
    from minigrad.distributed import sweeps

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "_run_checks", lambda: iter([doctor.Finding("ok", "dot")]))
    monkeypatch.setattr(sweeps, "read_config", lambda file: {})
    monkeypatch.setattr(sweeps, "sweep", lambda **options: SimpleNamespace(folder=tmp_path, trials=()))
    with open("/dev/full", "w", buffering=buffering, encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(command.split()) == 1
        assert sys.stdout is full
    stderr = capsys.readouterr().err
    assert stderr.endswith("minigrad: cannot write to standard output: No space left on device\n")
    assert "Traceback" not in stderr


@merge_cases
@pytest.mark.parametrize("command", COMMANDS)
def test_closed_standard_output_does_nothing(capsys, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(command.split()) == 1
    assert capsys.readouterr().err == "minigrad: standard output is closed; nothing was done.\n"
    assert not any(tmp_path.iterdir())


def test_errors_of_other_files_are_not_output_errors(monkeypatch):
    def fail(options):
        raise OSError(28, "No space left on device", "elsewhere")

    monkeypatch.setattr(tables, "data", fail)
    with pytest.raises(OSError, match="elsewhere"):
        cli.main(["data"])


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == "minigrad 0.1.0\n"


def test_lab_without_jupyterlab_says_what_to_install_before_the_training(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "find_spec", lambda name: None)
    code, out, err = run(capsys, "tour", "--lab", "--out", str(tmp_path / "tour.html"))
    assert (code, out) == (2, "")
    assert err == "minigrad tour: JupyterLab is missing; install it with: pip install 'seegrad[lab]'\n"


def test_lab_starts_jupyterlab_on_the_lessons(capsys, tmp_path, monkeypatch):
    needs("jupyterlab")
    calls = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 0)
    code, _, _ = run(capsys, "tour", "--epochs", "1", "--lab", "--out", str(tmp_path / "tour.html"))
    assert code == 0
    first = Path("minigrad-lessons", "01_one_neuron.ipynb")
    assert calls == [[sys.executable, "-m", "jupyter", "lab", "--ip=localhost", str(first)]]
    assert first.is_file()


def test_an_interrupted_training_ends_with_one_line(capsys, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tour, "_train", interrupt)
    code, _, err = run(capsys, "tour", "--out", str(tmp_path / "tour.html"))
    assert (code, err) == (130, "\nminigrad: stopped.\n")
    assert not (tmp_path / "tour.html").exists()


def test_python_m_minigrad_is_the_command():
    child = subprocess.run([sys.executable, "-m", "minigrad", "--help"], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0
    assert child.stdout.startswith("usage: minigrad [-h] [--version] COMMAND ...")
    assert "tour" in child.stdout


def test_ops_prints_a_line_per_operation_with_its_devices(capsys):
    code, out, _ = run(capsys, "ops", "matmul", "tanh")
    lines = out.splitlines()
    by_name = {line.split()[0]: line.split() for line in lines[1:-1]}
    assert code == 0
    assert lines[0].split()[:5] == ["operation", "computes", "gradient", "of", "python"]
    assert by_name["tanh"][1:4] == ["tanh(a)", "a", "yes"]
    assert "a, b" in next(line for line in lines if line.startswith("matmul"))
    assert lines[-1].startswith(f"{len(by_name)} operations: ")


def test_ops_prints_every_operation_of_the_table(capsys):
    needs("numpy")
    _, out, _ = run(capsys, "ops")
    lines = out.splitlines()
    assert {line.split()[0] for line in lines[1:-1]} == set(OPS)
    assert max(map(len, lines)) <= 120


def test_ops_of_an_unknown_name_prints_one_line(capsys):
    line = "minigrad ops: no operation has 'nothing-like-it' in its name\n"
    assert run(capsys, "ops", "nothing-like-it") == (2, "", line)
