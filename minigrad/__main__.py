"""``python -m minigrad`` is the command ``minigrad``."""

import sys

from minigrad.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
