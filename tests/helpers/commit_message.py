"""The commit-msg hook: `python commit_message.py FILE` fails if the message in FILE breaks a rule, and names it."""

import re
import subprocess
import sys
from pathlib import Path

__all__ = ["MAX_LINES_WITHOUT_BODY", "MAX_SUBJECT_LENGTH", "problems"]

MAX_SUBJECT_LENGTH = 60  # characters
MAX_LINES_WITHOUT_BODY = 20  # changed lines that need no body
# Words that end like a participle or the third person, and are imperatives.
_IMPERATIVES = ("address", "bring", "discuss", "embed", "focus", "guess", "miss", "pass", "process")
_GENERATED = ("Merge ", "Revert ", "fixup! ", "squash! ")


def problems(message: str, changed_lines: int) -> list[str]:
    """Return what is wrong with a commit message, a sentence each."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].strip() if lines else ""
    if subject.startswith(_GENERATED):
        return []
    messages = []
    if not subject:
        return ["The subject is empty."]
    if len(subject) > MAX_SUBJECT_LENGTH:
        messages.append(f"The subject has {len(subject)} characters; at most {MAX_SUBJECT_LENGTH} are allowed.")
    first = subject.split()[0]
    if not first[0].isupper() or (
        re.search(r"([^e]ed|ing|[^s]s)$", first.lower()) and first.lower() not in _IMPERATIVES
    ):
        messages.append(
            f"The subject begins with {first!r}; begin with an imperative verb, as in 'Fix stale gradient'."
        )
    if subject.endswith("."):
        messages.append("The subject ends with a full stop.")
    body = [line for line in lines[1:] if line.strip()]
    if body and lines[1].strip():
        messages.append("The line after the subject is not empty.")
    if not body and changed_lines > MAX_LINES_WITHOUT_BODY:
        messages.append(f"{changed_lines} lines change and there is no body; say why.")
    return messages


def _changed_lines() -> int:
    """Return how many lines the index adds and removes, without binary files."""
    listed = subprocess.run(["git", "diff", "--cached", "--numstat"], capture_output=True, text=True, check=True)
    return sum(int(count) for line in listed.stdout.splitlines() for count in line.split()[:2] if count.isdigit())


if __name__ == "__main__":
    messages = problems(Path(sys.argv[1]).read_text(encoding="utf-8"), _changed_lines())
    sys.exit("\n".join(messages) if messages else 0)
