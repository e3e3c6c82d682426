"""One file of JavaScript from the player's modules, so that a page can carry it and nobody needs node to install.

The modules are written in a narrow form, which is checked: named imports from files beside them, no side effects, a
name at the top of one file only. Then all there is to do is to put them one after another, without their imports and
exports. This file imports nothing of minigrad: the build of the wheel runs it by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["PLAYER", "BundleError", "Token", "bundle", "classic", "tokens"]

PLAYER = (("widget.js", "page.js"), ("mount", "render", "startAll"), "render")  # what `bundle` is asked for
_BEFORE_REGEX = "return typeof case in of delete void throw new instanceof yield await else do default extends"
_DECLARATIONS = frozenset(["const", "let", "function", "async", "class", "export", "import"])
_CONDITIONS = frozenset(["if", "while", "for", "with"])
_TOKEN = re.compile(
    r"""
    (?P<space>[^\S\n]+) | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*[\s\S]*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')
  | (?P<number>0[xXoObB][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?)
  | (?P<word>\#?[^\W\d][\w$]*|\#?\$[\w$]*)
  | (?P<sign>\.\.\.|=>|>>>=|\*\*=|<<=|>>=|>>>|===|!==|&&=|\|\|=|\?\?=|\?\.(?!\d)|\+\+|--|\*\*|<<|>>|<=|>=|==|!=|&&
            |\|\||\?\?|[-+*/%&|^]=|/(?!\*)|[-+*%&|^~!<>=?:;,.(){}\[\]@])
    """,
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")


class BundleError(ValueError):
    """The modules are not in the form that can be put together; the message begins with file and line."""


class Token(NamedTuple):
    """A piece of JavaScript, and whether a line or a blank stood before it."""

    kind: str
    text: str
    line: int
    gap: str


def tokens(text: str, name: str = "script") -> list[Token]:
    """The tokens of a JavaScript text, without comments and blanks. Raises BundleError where it cannot be read.

    >>> [token.text for token in tokens("a / b; /[/]/.test(`${ {x: 1} } /`) // done")]
    ['a', '/', 'b', ';', '/[/]/', '.', 'test', '(', '`${ {x: 1} } /`', ')']
    """
    found: list[Token] = []
    opened: list[bool] = []  # for each open parenthesis, whether it holds the condition of an if, while, for
    after_condition = False
    place, line, gap = 0, 1, ""
    while place < len(text):
        if (
            text[place] == "/"
            and text[place + 1 : place + 2] not in ("/", "*")
            and _begins(found, after_condition, name)
        ):
            match = _REGEX.match(text, place)
            kind, end = "regex", match.end() if match else place
        elif text[place] == "`":
            kind, end = "template", _template_end(text, place, f"{name}:{line}")
        else:
            match = _TOKEN.match(text, place)
            kind, end = (match.lastgroup or "", match.end()) if match else ("", place)
        if end == place:
            raise BundleError(f"{name}:{line}: this is not JavaScript that can be read: {text[place : place + 9]!r}")
        piece = text[place:end]
        if kind == "newline" or (kind == "comment" and "\n" in piece):
            gap = "\n"
        elif kind in ("space", "comment"):
            gap = gap or " "
        else:
            after_condition = False
            if piece == "(":
                opened.append(bool(found) and found[-1].text in _CONDITIONS)
            elif piece == ")" and opened:
                after_condition = opened.pop()
            found.append(Token(kind, piece, line, gap))
            gap = ""
        line += piece.count("\n")
        place = end
    return found


def _begins(found: list[Token], after_condition: bool, name: str) -> bool:
    """Whether a slash after these tokens begins a regular expression; else it divides."""
    if not found or after_condition:
        return True
    last = found[-1]
    if last.text == "}":
        raise BundleError(
            f"{name}:{last.line}: a slash after a brace may divide or begin a regular expression: name it."
        )
    if last.kind == "word":
        return last.text in _BEFORE_REGEX.split() and (len(found) < 2 or found[-2].text not in (".", "?."))
    return last.kind == "sign" and last.text not in (")", "]", "++", "--")


def _template_end(text: str, place: int, where: str) -> int:
    """Where the template that begins at `place` ends; what is inside ``${…}`` may hold strings and templates again."""
    at, depths = place + 1, [0]  # for each template that is open, the braces open in its ${…}; 0 outside of one
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif not depths[-1]:
            if sign == "`":
                depths.pop()
                if not depths:
                    return at + 1
            elif text.startswith("${", at):
                depths[-1] = 1
                at += 1
        elif sign == "`":
            depths.append(0)
        elif sign in "{}":
            depths[-1] += 1 if sign == "{" else -1
        elif sign in "\"'" and (string := _TOKEN.match(text, at)) and string.lastgroup == "string":
            at = string.end() - 1
        at += 1
    raise BundleError(f"{where}: this template has no end.")


# --- a module --------------------------------------------------------------------------------------------------------


@dataclass
class _Module:
    """What a file imports (file, name, line), declares and exports at its top, and its text without either word."""

    name: str
    imports: list[tuple[str, str, int]] = field(default_factory=list)
    declared: dict[str, int] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    rest: list[Token] = field(default_factory=list)

    def wrong(self, token: Token, text: str) -> BundleError:
        return BundleError(f"{self.name}:{token.line}: {text}")


def _module(name: str, text: str) -> _Module:
    """Take a file apart into its statements."""
    module, all_tokens = _Module(name), tokens(text, name)
    at = 0
    while at < len(all_tokens):
        token = all_tokens[at]
        if token.text == "import":
            at = _import(module, all_tokens, at)
            continue
        if exported := token.text == "export":
            at += 1
        end = _declaration(module, all_tokens, at, exported)
        first = all_tokens[at]
        module.rest.append(first._replace(gap="\n"))
        module.rest.extend(all_tokens[at + 1 : end])
        at = end
    return module


def _import(module: _Module, all_tokens: list[Token], at: int) -> int:
    """Take in ``import { a, b } from "./file.js";`` and return where it ends."""
    first, end = all_tokens[at], at + 1
    while end < len(all_tokens) and all_tokens[end].text != ";":
        end += 1
    words = [token.text for token in all_tokens[at + 1 : end]]
    form = re.fullmatch(r"\{ [\w$]+ (?:, [\w$]+ )*(?:, )?\} from [\"']\./([\w-]+\.js)[\"']", " ".join(words))
    if form is None or end == len(all_tokens):
        raise module.wrong(first, 'an import is written import { a, b } from "./file.js";')
    for token in all_tokens[at + 1 : end - 2]:
        if token.kind == "word":
            module.imports.append((form[1], token.text, token.line))
    return end + 1


def _declaration(module: _Module, all_tokens: list[Token], at: int, exported: bool) -> int:
    """Take in the names of the declaration that begins at `at`, and return where it ends."""
    if at == len(all_tokens):
        raise module.wrong(all_tokens[-1], "this export has nothing to export.")
    first = all_tokens[at]
    if first.text in ("const", "let"):
        names, end = _names_of_variables(module, all_tokens, at)
    elif first.text in ("function", "async", "class"):
        after = [token for token in all_tokens[at + 1 : at + 4] if token.text not in ("function", "*")]
        names = after[:1]
        end = _body_end(module, all_tokens, at)
    else:
        text = f"{first.text!r} runs when the file is imported: only imports and declarations stand at the top."
        raise module.wrong(first, text)
    for name in names:
        if name.text in module.declared:
            raise module.wrong(name, f"{name.text} is declared twice in this file.")
        module.declared[name.text] = name.line
        if exported:
            module.exported.add(name.text)
    return end


def _names_of_variables(module: _Module, all_tokens: list[Token], at: int) -> tuple[list[Token], int]:
    """The names that the ``const`` or ``let`` at `at` declares, and where it ends: after its semicolon."""
    names: list[Token] = []
    depth, expected = 0, True
    for end in range(at + 1, len(all_tokens)):
        token = all_tokens[end]
        if expected and token.kind == "word":
            names.append(token)
        elif expected:
            names += _pattern(module, all_tokens, end)
        if depth == 0 and token.text == ";":
            return names, end + 1
        if depth == 0 and token.gap == "\n" and token.text in _DECLARATIONS:
            break
        expected = depth == 0 and token.text == ","
        depth += _nesting(token)
    raise module.wrong(all_tokens[at], "this declaration has no semicolon.")


def _pattern(module: _Module, all_tokens: list[Token], at: int) -> list[Token]:
    """The names in ``[a, b]`` or ``{ a, b }``, which is all that is taken of patterns."""
    names: list[Token] = []
    for token in all_tokens[at + 1 :]:
        if token.kind == "word":
            names.append(token)
        elif token.text in "]}" and all_tokens[at].text in "[{":
            return names
        elif token.text != ",":
            break
    raise module.wrong(all_tokens[at], "a pattern at the top of a file is written [a, b] or { a, b }.")


def _nesting(token: Token) -> int:
    """How much deeper in brackets the text is after a token."""
    return 0 if token.kind != "sign" else (token.text in "([{") - (token.text in ")]}")


def _body_end(module: _Module, all_tokens: list[Token], at: int) -> int:
    """Where the function or class that begins at `at` ends: after the braces that stand in no parentheses."""
    depth = 0
    for end in range(at, len(all_tokens)):
        depth += _nesting(all_tokens[end])
        if depth == 0 and all_tokens[end].text == "}":
            return end + 1
    raise module.wrong(all_tokens[at], "this declaration has no end.")


# --- all of them -----------------------------------------------------------------------------------------------------


def bundle(folder: Path, entries: Iterable[str], exports: Iterable[str], default: str) -> str:
    """The modules in `folder` that `entries` need, as one module that exports `exports`, and by default ``{default}``.

    Raises BundleError, with file and line, for an unknown import, a circle of imports, a name at the top of two files,
    or a form of JavaScript that is not taken.
    """
    modules = _in_order(folder, entries)
    owner: dict[str, _Module] = {}
    for module in modules:
        for name, line in module.declared.items():
            if name in owner:
                first = owner[name]
                where = f"{first.name}:{first.declared[name]}"
                raise BundleError(f"{module.name}:{line}: {name} stands at the top of {where} too.")
            owner[name] = module
    for name in (*exports, default):
        if name not in owner:
            raise BundleError(f"bundle: none of the files declares {name}.")
    text = "\n".join(_written(module.rest) for module in modules)
    if ending := re.search(r"</script|<!--", text, re.IGNORECASE):
        raise BundleError(f"bundle: {ending[0]!r} would end the script of a page: write it in two pieces.")
    return f"{text}\nexport {{ {', '.join(exports)} }};\nexport default {{ {default} }};\n"


def classic(module: str, start: str) -> str:
    """The text of a `bundle` as a script that need not be a module; at its end it runs `start`."""
    text, exports, end = module.rpartition("\nexport { ")
    names, _, default = end.partition(" };\n")
    if not (exports and default.startswith("export default { ")):
        raise BundleError("classic: this text does not end as a bundle does.")
    return f'(() => {{\n"use strict";\n{text}\nglobalThis.minigrad = {{ {names} }};\n{start}\n}})();\n'


def _in_order(folder: Path, entries: Iterable[str]) -> list[_Module]:
    """The modules that `entries` need, each after those that it imports."""
    modules: dict[str, _Module] = {}
    order: list[_Module] = []
    open_files: list[str] = []

    def visit(name: str, where: str) -> None:
        if name in open_files:
            circle = " → ".join([*open_files[open_files.index(name) :], name])
            raise BundleError(f"{where}: a circle of imports: {circle}.")
        if name not in modules:
            path = folder / name
            if not path.is_file():
                raise BundleError(f"{where}: there is no file {name}.")
            module = modules[name] = _module(name, path.read_text(encoding="utf-8"))
            open_files.append(name)
            for file, imported, line in module.imports:
                visit(file, f"{name}:{line}")
                if imported not in modules[file].exported:
                    raise BundleError(f"{name}:{line}: {file} does not export {imported}.")
            open_files.pop()
            order.append(module)

    for entry in entries:
        visit(entry, "bundle")
    return order


def _written(found: list[Token]) -> str:
    """The tokens as text again: the lines are kept, since a line may end a statement, and blanks where they matter."""
    pieces: list[str] = []
    for before, token in zip([None, *found], found, strict=False):
        if before is not None and token.gap:
            pieces.append("\n" if token.gap == "\n" else " " if _run_together(before, token.text) else "")
        pieces.append(token.text)
    return "".join(pieces)


def _run_together(before: Token, after: str) -> bool:
    """Whether a token and a text after it without a blank between them could be read as others."""
    left, right = before.text[-1], after[0]
    if before.kind == "sign":
        return left in "-+/*<>=!&|?." and right in "-+/*<>=!&|?.0123456789"
    return re.match(r"[\w$#.]", right) is not None and before.kind in ("word", "number", "regex")
