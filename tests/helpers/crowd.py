"""Threads that start at once and switch as often as Python can."""

import contextlib
import sys
import threading

__all__ = ["Pause", "crowd"]


@contextlib.contextmanager
def _hurried():
    """Let Python switch threads every microsecond instead of every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def crowd(count, work):
    """Return the results of ``work(k)`` for k from 0 to count - 1, each in a thread. Raise the first error, if any."""
    found, errors, start = [None] * count, [], threading.Barrier(count)

    def run(k):
        start.wait()
        try:
            found[k] = work(k)
        except Exception as error:  # noqa: BLE001 -- it is raised in the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(count)]
    with _hurried():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "threads wait for one another"
    if errors:
        raise errors[0]
    return found


class Pause:
    """A point in this thread at which another thread runs ``other()``, to the end unless it has to wait for this one.

    Call it there; only the first call counts. After `patience` seconds this thread continues. Leaving the block waits
    for ``other``, and raises what that raised.
    """

    def __init__(self, other, patience=0.3):
        self._patience, self._errors = patience, []
        self._thread = threading.Thread(target=self._run, args=(other,), daemon=True)
        self.began = False

    def _run(self, other):
        try:
            other()
        except Exception as error:  # noqa: BLE001 -- it is raised in the test
            self._errors.append(error)

    def __call__(self, *_):
        if not self.began:
            self.began = True
            self._thread.start()
            self._thread.join(self._patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.began, "the moment never came"
        self._thread.join(60)
        assert not self._thread.is_alive(), "the other thread waits for ever"
        if self._errors:
            raise self._errors[0]
