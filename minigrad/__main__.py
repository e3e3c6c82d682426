"""Run the command ``minigrad`` with ``python -m minigrad``."""

import sys

from minigrad.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
