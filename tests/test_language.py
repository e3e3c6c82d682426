"""Docstrings, comments, messages and pages use the field's words (book/how/style.md), and no banned phrase."""

import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A phrase, as a regular expression that ignores case, and what to write instead. Adding to it is encouraged;
# exempting a line is not.
BANNED = {
    r"whole numbers?": "integer(s)",
    r"number by number": "element by element, elementwise",
    r"(?:bare|plain) numbers?": "raw arrays; Python scalars",
    r"numbers (?:in|of) (?:a|the|this|its|each|every) tensors?": "elements, values",
    r"(?:only|are|of|for) fractions": "floating point",
    r"the readers?'?s?(?= own|'s| who| has| wrote| sees| code| asks| gave)": "the user; the learner (lessons)",
    r"a reader's own|the reader's own": "user-defined, custom",
    r"g(?:o|oes|one|oing|ont) on with": "resume, continue",
    r"anyhow": "arbitrarily strided; in any order",
    r"(?<!-)anew(?!=)": "again; re-create",
    r"stretch(?:es|ed)? to": "broadcast to",
    r"(?:is|are|was|were|be) (?:said|told|heard)": "report, document, notify",
    r"by launches": "as a sequence of kernel launches",
    r"recorded again": "retraced",
    r"is another now": "changed; the guard failed",
    r"to the bit": "bit for bit",
    r"as (?:they|it) lies?(?: in memory)?": "in memory order",
    r"dealt out": "distributed",
    r"turn by turn": "in turn; round-robin",
    r"taken apart": "flattened; decomposed",
    r"what is around it": "closure variables, globals",
    r"cores meet": "barrier",
    r"(?:is|are) no more\b(?! than)": "no longer exists, was freed",
    r"(?:and|with|or) (?:its|their) kin": "and similar",
    r"the house": "the project; the repository",
    r"what (?:it|they) (?:is|are|was|were) of": "say which noun",
    r"where that is no": "if it does not",
    r"comes? about": "is computed from, is created by",
    r"(?:is|are|was|were) made (?:up )?of numbers": "computed from",
    r"(?:its|their|the) slopes?\b(?! of (?:the|a) (?:line|curve|tangent))": "derivative, gradient",
    r"by way of": "through; by",
    r"let go\b": "release, free",
    r"g(?:ive|ives|iven|ave|iving) back": "return; release, free",
}
EXEMPT = (
    "notebooks/0[1-5]_",  # lessons that speak to people who do not know the words yet
    "notebooks/solutions/0[1-5]",
    "minigrad/lessons/(?:lesson_0[1-5]|checking)",
    "tests/mistakes/lesson_0[1-5]",
    "tests/torch_code/",  # programs of other authors, as they wrote them
    "tests/test_language.py",
    "book/how/style.md",
)
_PHRASES = re.compile("|".join(rf"(?P<p{i}>\b(?:{phrase})\b)" for i, phrase in enumerate(BANNED)), re.IGNORECASE)
_REPLACEMENTS = list(BANNED.values())


def prose(name, source):
    """The numbered lines of a file that people read: all of a page, of a program its comments and strings."""
    if not name.endswith(".py"):
        return list(enumerate(source.splitlines(), 1))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        (token.start[0] + i, line)
        for token in tokens
        if token.type in kinds
        for i, line in enumerate(token.string.splitlines())
    ]


def banned(name, source):
    """Each banned phrase in a file, as a line that says what to write instead."""
    if not _PHRASES.search(source):
        return []
    return [
        f"{name}:{line_number}: {match.group()!r}: write {_REPLACEMENTS[int(match.lastgroup[1:])]}"
        for line_number, line in prose(name, source)
        for match in _PHRASES.finditer(line)
    ]


def files(*patterns):
    """The tracked files that match, without those that are exempt."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if not re.match("|".join(EXEMPT), name)]


@pytest.mark.parametrize(
    "patterns",
    ["minigrad/*.py", "viz/*.py viz/frontend/*.js", "tests/*.py tests/*.js", "*.md", "notebooks/*.py",
     "benchmarks/*.py examples/*.py book/*.py book/*.js"],
)  # fmt: skip
def test_no_banned_phrase(patterns):
    names = files(*patterns.split())
    assert names
    phrases = [line for name in names for line in banned(name, (ROOT / name).read_text(encoding="utf-8"))]
    assert not phrases, "\n".join(phrases)


def test_a_banned_phrase_is_found_in_comments_strings_and_pages_alone():
    code = '"""Adds whole numbers."""\nanew = 1  # made anew\nraise ValueError("It is said.")\n'
    assert banned("x.py", code) == [
        "x.py:1: 'whole numbers': write integer(s)",
        "x.py:2: 'anew': write again; re-create",
        "x.py:3: 'is said': write report, document, notify",
    ]
    assert banned("x.md", "It is\nanew.") == ["x.md:2: 'anew': write again; re-create"]
    assert banned("x.py", "anew = 1") == []
