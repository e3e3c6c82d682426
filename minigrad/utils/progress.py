"""Progress bars without threads."""

from __future__ import annotations

from typing import Any

from minigrad.core.packages import import_package

__all__ = ["import_progress_bar"]


def import_progress_bar(module: str, caller: str, alternative: str = "") -> Any:
    """Return the class ``tqdm`` of `module`, a module of tqdm, without its monitor thread: Pyodide has no threads.

    The monitor redraws a bar whose steps became slower than tqdm predicted; with ``miniters=1`` it predicts nothing.
    Raises MissingPackageError without tqdm; see `import_package`.

    >>> bar = import_progress_bar("tqdm", "an example")(range(3), disable=True)
    >>> sum(bar), bar.monitor
    (3, None)
    """

    class ProgressBar(import_package(module, caller, alternative).tqdm):  # type: ignore[misc]
        monitor_interval = 0

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, miniters=1, **options)

    return ProgressBar
