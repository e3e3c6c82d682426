"""Kernels share their work among threads, and work alone where that is impossible."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.numpy import threads
from needs import needs


class Blas(SimpleNamespace):
    """A BLAS of four threads."""

    def info(self):
        return [{"num_threads": 4}]


def parts_of_work(monkeypatch):
    """Return the slices into which eight items are split."""
    monkeypatch.setattr(threads, "_pool", threads._pool.__wrapped__)  # not one that has started before
    parts = []
    threads.parallel_for(parts.append, 8, threads.MIN_ELEMENTS)
    return parts


@pytest.mark.parametrize("startable", [0, 2])
def test_the_calling_thread_works_alone_where_too_few_threads_start(startable, monkeypatch):
    started, start = [], threading.Thread.start

    def refuse(thread):
        if len(started) >= startable:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threads, "_blas", Blas)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert parts_of_work(monkeypatch) == [slice(0, 8)]
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


def test_without_threadpoolctl_the_calling_thread_works_alone(monkeypatch):
    monkeypatch.setattr(threads, "find_spec", lambda name: None)
    monkeypatch.setattr(threads, "_blas", threads._blas.__wrapped__)
    assert parts_of_work(monkeypatch) == [slice(0, 8)]


def test_a_convolution_has_the_same_result_without_threads(monkeypatch):
    needs("threadpoolctl")
    rng = np.random.default_rng(0)
    x = mg.tensor(rng.integers(-4, 5, (16, 3, 64, 64)).astype(np.float32), device="numpy")
    w = mg.tensor(rng.integers(-4, 5, (4, 3, 3, 3)).astype(np.float32), device="numpy", requires_grad=True)
    assert threads.MIN_ELEMENTS <= 16 * 4 * 62 * 62

    def compute():
        w.grad = None
        y = mg.nn.functional.conv2d(x, w)
        y.sum().backward()
        return y.tolist(), w.grad.tolist()

    together = compute()
    monkeypatch.setattr(threads, "find_spec", lambda name: None)
    monkeypatch.setattr(threads, "_blas", threads._blas.__wrapped__)
    assert compute() == together
