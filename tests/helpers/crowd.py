"""Threads that start at once and switch as often as Python can."""

import contextlib
import sys
import threading

from minigrad.core.dispatch import tap

__all__ = ["DEVICES", "Pause", "crowd", "pausing"]

DEVICES = ["cpu", "numpy"]


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
    """A point in this thread at which another thread runs ``other()`` to the end.

    Call it there; only the first call counts. If ``other`` `waits` for what this thread is doing, this thread continues
    soon. Leaving the block waits for ``other``, and raises what that raised.
    """

    def __init__(self, other, waits=False):
        self._other, self._errors, self._patience = other, [], 0.3 if waits else 60
        # A lock and an event, since guards of a jitted step that pauses look into neither.
        self._began, self._done = threading.Lock(), threading.Event()

    def _run(self):
        try:
            self._other()
        except Exception as error:  # noqa: BLE001 -- it is raised in the test
            self._errors.append(error)
        finally:
            self._done.set()

    def __call__(self, *_):
        if self._began.acquire(blocking=False):
            threading.Thread(target=self._run, daemon=True).start()
            self._done.wait(self._patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self._began.locked(), "the point was never reached"
        assert self._done.wait(60), "the other thread waits for ever"
        if self._errors:
            raise self._errors[0]


def pausing(op, other, waits=False):
    """Run ``other()`` in another thread as soon as the kernel of `op` has run in this one, inside the block."""
    stack = contextlib.ExitStack()
    pause = stack.enter_context(Pause(other, waits))
    stack.enter_context(tap(lambda call: pause() if call.op == op else None))
    return stack
