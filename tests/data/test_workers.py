"""Worker processes: the same batches as in the main process, errors with their origin, and no orphaned processes."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from data_sets import Broken, Exiting, Random, Remembered, Slow, Squares, Stream, WorkerInfo, store_worker
from minigrad.core.errors import ArgumentError
from minigrad.data import DataLoader, TensorDataset
from minigrad.data.workers import _serialize

HELPERS = Path(__file__).parents[1] / "helpers"
pytestmark = pytest.mark.slow  # each process imports minigrad


def running_workers():
    """Return the worker processes that are still running."""
    return [child for child in multiprocessing.active_children() if child.name.startswith("DataLoader worker")]


def test_workers_yield_the_same_batches():
    def batches(workers, **options):
        loader = DataLoader(
            Squares(), batch_size=3, shuffle=True, generator=mg.Generator(1), num_workers=workers, **options
        )
        return [[x.tolist() for x in batch] for _ in range(2) for batch in loader]

    assert batches(2) == batches(0) == batches(1, persistent_workers=True, prefetch_factor=1)
    assert running_workers() == []


def test_workers_use_numpy_and_tensors_arrive_on_the_default_device():
    x = mg.arange(6, dtype=mg.float32).reshape(3, 2) + 0
    (batch,) = DataLoader(WorkerInfo(x), batch_size=3, num_workers=1)
    assert batch["where"] == ["numpy"] * 3
    assert batch["taichi"].tolist() == [False] * 3
    assert set(batch["pid"].tolist()).isdisjoint({os.getpid()})
    assert batch["row"].tolist() == (x * 2).tolist()
    assert batch["row"].device == mg.get_default_device()


def test_tensors_of_a_dataset_reach_the_workers():
    data = TensorDataset(mg.arange(4), mg.ones(4, 2) * 3)
    batches = list(DataLoader(data, batch_size=3, num_workers=1))
    assert [[x.tolist() for x in batch] for batch in batches] == [
        [[0, 1, 2], [[3.0, 3.0]] * 3],
        [[3], [[3.0, 3.0]]],
    ]


def test_a_model_in_a_dataset_is_sent_to_workers():
    model = mg.nn.Linear(2, 3)
    restored = pickle.loads(_serialize({"model": model, "x": mg.ones(2, requires_grad=True), "y": mg.ones(2)}))
    assert isinstance(restored["model"].weight, mg.nn.Parameter)
    assert [name for name, _ in restored["model"].named_parameters()] == ["weight", "bias"]
    assert restored["model"].weight.tolist() == model.weight.tolist()
    assert (restored["x"].requires_grad, restored["y"].requires_grad) == (True, False)


def test_random_values_depend_on_epoch_and_batch_only():
    def epochs(workers):
        loader = DataLoader(Random(4), batch_size=2, num_workers=workers, generator=mg.Generator(0))
        return [[np.asarray(x).tolist() for x in batch] for _ in range(2) for batch in loader]

    first = epochs(1)
    assert first == epochs(2)
    flat = [value for batch in first for value in batch[2] + batch[3]]
    assert len(set(flat)) == len(flat) == 16, "all samples, batches and epochs draw different values"


def test_a_resumed_epoch_has_the_same_random_values():
    def loader():
        return DataLoader(Random(6), batch_size=2, num_workers=1, shuffle=True, generator=mg.Generator(0))

    first, second = loader(), loader()
    begun = iter(first)
    next(begun)
    second.load_state_dict(first.state_dict())
    assert [[np.asarray(x).tolist() for x in batch] for batch in second] == [
        [np.asarray(x).tolist() for x in batch] for batch in begun
    ]


def test_an_iterable_dataset_is_sharded():
    batches = [batch.tolist() for batch in DataLoader(Stream(7), batch_size=2, num_workers=2)]
    assert batches == [[0, 2], [1, 3], [4, 6], [5]]


def test_worker_init_fn_runs_in_each():
    assert [x.tolist() for x in DataLoader(Remembered(4), num_workers=2, worker_init_fn=store_worker)] == [
        [0],
        [1],
        [0],
        [1],
    ]


def test_errors_keep_their_type_traceback_and_index():
    with pytest.raises(ValueError, match="seven is missing") as caught:
        list(DataLoader(Broken(), batch_size=4, num_workers=2))
    text = str(caught.value)
    assert text.startswith("Caught ValueError in DataLoader worker process 1.\nOriginal Traceback")
    assert "in __getitem__\n" in text
    assert "Raised by dataset[7] of Broken." in text
    assert running_workers() == []


def test_a_dead_worker_raises():
    with pytest.raises(RuntimeError, match=r"worker 0 \(pid \d+\) exited unexpectedly with exit code 41"):
        list(DataLoader(Exiting(), num_workers=1))
    assert running_workers() == []


def test_the_timeout_raises():
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds while waiting for worker 0"):
        next(iter(DataLoader(Slow(), num_workers=1, timeout=0.2)))
    assert running_workers() == []


def test_an_early_exit_stops_the_workers():
    for _ in DataLoader(Squares(100), num_workers=2):
        break
    assert running_workers() == []


def test_persistent_workers_live_as_long_as_the_loader():
    loader = DataLoader(Squares(), num_workers=1, persistent_workers=True)
    for x, _ in loader:
        assert x.item() == 0
        break
    first = [child.pid for child in running_workers()]
    assert [x.item() for x, _ in loader] == list(range(10)), "batches in flight are dropped when a loop is left early"
    assert [child.pid for child in running_workers()] == first
    assert len(first) == 1
    inner = [(a.item(), b.item()) for (a, _), (b, _) in zip(loader, loader, strict=True)]
    assert inner == [(k, k) for k in range(10)], "nested loops do not interfere"
    del loader
    assert running_workers() == []


def test_unpicklable_arguments_raise_before_workers_start():
    with pytest.raises(ArgumentError, match="Define functions and classes at module level, not inside a function"):
        next(iter(DataLoader(Squares(), num_workers=1, collate_fn=lambda batch: batch)))
    assert running_workers() == []


def run(code, *, name=None, tmp_path=None, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = textwrap.dedent(code)
    if name is None:
        command = [sys.executable, "-c", code]
    else:
        (tmp_path / name).write_text(code, encoding="utf-8")
        command = [sys.executable, str(tmp_path / name)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_a_class_defined_in_a_notebook_raises():
    child = run("""
        from minigrad.data import DataLoader, Dataset
        class Mine(Dataset):
            def __len__(self): return 2
            def __getitem__(self, k): return k
        next(iter(DataLoader(Mine(), num_workers=1)))
    """)
    _, err = child.communicate(timeout=300)
    assert "workers cannot import Mine, which is defined in this notebook or session" in err
    assert "%%writefile my_data.py" in err


def test_a_script_without_main_guard_raises(tmp_path):
    child = run(
        """
        from data_sets import Squares
        from minigrad.data import DataLoader
        next(iter(DataLoader(Squares(), num_workers=1)))
        """,
        name="script.py",
        tmp_path=tmp_path,
    )
    _, err = child.communicate(timeout=300)
    assert 'if __name__ == "__main__":' in err


def test_classes_of_a_script_work(tmp_path):
    child = run(
        """
        from minigrad.data import DataLoader, Dataset
        class Mine(Dataset):
            def __len__(self): return 2
            def __getitem__(self, k): return k
        if __name__ == "__main__":
            print([x.item() for x in DataLoader(Mine(), num_workers=1)])
        """,
        name="script.py",
        tmp_path=tmp_path,
    )
    assert child.communicate(timeout=300) == ("[0, 1]\n", "")


@pytest.mark.nightly
def test_imported_classes_work_in_a_notebook():
    import nbclient
    import nbformat

    cells = (
        f"import sys; sys.path.insert(0, {str(HELPERS)!r})",
        "from data_sets import Squares\nfrom minigrad.data import DataLoader, Dataset",
        "print([x[1].tolist() for x in DataLoader(Squares(6), batch_size=3, num_workers=2)])",
        "def alone(batch): return batch\nnext(iter(DataLoader(Squares(), num_workers=1, collate_fn=alone)))",
        "import multiprocessing; print(multiprocessing.active_children())",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    _, _, batches, refused, left_over = [cell.outputs for cell in notebook.cells]
    assert batches[0]["text"] == "[[0, 1, 4], [9, 16, 25]]\n"
    assert "workers cannot import alone, which is defined in this notebook" in refused[0]["evalue"]
    assert left_over[0]["text"] == "[]\n"


@pytest.mark.needs("POSIX")
@pytest.mark.parametrize("ended", [pytest.param("interrupted", marks=pytest.mark.nightly), "killed"])
def test_no_process_outlives_the_program(ended):
    child = run(
        """
        import multiprocessing, signal
        from data_sets import Slow, print_worker
        from minigrad.data import DataLoader
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have set it to SIG_IGN
        loader = iter(DataLoader(Slow(), num_workers=2, worker_init_fn=print_worker))
        try:
            next(loader)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            loader.close()
            print(len(multiprocessing.active_children()), flush=True)
        """,
        start_new_session=True,
    )
    assert {child.stdout.readline() for _ in range(2)} == {"0\n", "1\n"}
    if ended == "interrupted":
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=300)
        assert (out.splitlines()[-2:], err) == (["stopped", "0"], "")
    else:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=300)
    deadline = time.monotonic() + 60
    while has_members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not has_members(child.pid)


def has_members(group):
    """Return whether a process group has any members."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}])
def test_the_same_seed_gives_workers_the_same_random_values(persistent, options):
    """As in PyTorch; without reseeding, each epoch draws different values."""
    loader = DataLoader(Random(), batch_size=2, num_workers=2, persistent_workers=persistent, **options)

    def epoch(seed=None):
        if seed is not None:
            mg.manual_seed(seed)
        return [str(batch) for batch in loader]

    first, again, other = epoch(0), epoch(0), epoch()
    assert first == again
    assert first != other


def test_reseeding_restarts_persistent_iterable_workers():
    loader = DataLoader(Stream(6), batch_size=2, num_workers=2, persistent_workers=True)
    epochs = []
    for _ in range(2):
        mg.manual_seed(0)
        epochs.append([str(batch) for batch in loader])
    assert epochs[0] == epochs[1] != []
