"""Start threads simultaneously and switch between them as often as Python can."""

import contextlib
import sys
import threading

from minigrad.core.dispatch import tap

__all__ = ["CPU_DEVICES", "Interleave", "interleave_after", "run_concurrently"]

CPU_DEVICES = ["cpu", "numpy"]


@contextlib.contextmanager
def _switch_often():
    """Let Python switch threads every microsecond instead of every 5 ms."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def run_concurrently(count, work):
    """Return the results of ``work(k)`` for k in range(count), each in its own thread. Raise the first error."""
    results, errors, start = [None] * count, [], threading.Barrier(count)

    def run(k):
        start.wait()
        try:
            results[k] = work(k)
        except Exception as error:  # noqa: BLE001 -- it is raised in the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(count)]
    with _switch_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "the threads are deadlocked"
    if errors:
        raise errors[0]
    return results


class Interleave:
    """A point in this thread at which another thread runs ``other()`` to completion.

    Call the object at that point; only the first call has an effect. If ``other`` `waits` for this thread, the call
    returns after 0.3 s. Leaving the block waits for ``other`` and raises its error, if any.
    """

    def __init__(self, other, waits=False):
        self._other, self._errors, self._timeout = other, [], 0.3 if waits else 60
        # A lock and an event, since the guards of a jitted step that calls this object inspect neither.
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
            self._done.wait(self._timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self._began.locked(), "the point was never reached"
        assert self._done.wait(60), "the other thread never finished"
        if self._errors:
            raise self._errors[0]


def interleave_after(op, other, waits=False):
    """Return a block in which ``other()`` runs in another thread as soon as this one has run the kernel of `op`."""
    stack = contextlib.ExitStack()
    point = stack.enter_context(Interleave(other, waits))
    stack.enter_context(tap(lambda call: point() if call.op == op else None))
    return stack
