"""Make the README's picture again: run its code, and keep the file that it saves. `make pictures`."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def readme_code() -> str:
    """The Python of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def readme_pictures() -> dict[str, str]:
    """The SVG files that the README's code saves, by name."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(readme_code(), {"__name__": "readme"})
        return {path.name: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.svg")}


if __name__ == "__main__":
    with open(os.devnull, "w", encoding="utf-8") as silence, contextlib.redirect_stdout(silence):
        pictures = readme_pictures()
    for name, svg in pictures.items():
        (ROOT / "book" / "images" / name).write_text(svg, encoding="utf-8")
        print(f"book/images/{name}")
