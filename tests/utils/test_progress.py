"""Progress bars start no thread."""

import io
import threading

from minigrad.utils.progress import import_progress_bar
from needs import needs


def test_a_bar_shows_every_step_and_starts_no_thread():
    needs("tqdm")
    threads, printed = threading.enumerate(), io.StringIO()
    bar = import_progress_bar("tqdm", "a test")(range(3), file=printed, mininterval=0, ncols=60, ascii=" =")
    assert list(bar) == [0, 1, 2]
    assert threading.enumerate() == threads
    assert [f"{k}/3" in printed.getvalue() for k in range(4)] == [True] * 4
