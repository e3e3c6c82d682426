"""Names that contain markup, scripts, LaTeX or terminal commands, in case anything interprets them.

Each has a harmless twin, in which every special character is replaced by another of the same width: so a picture of the
twin is the same picture except for these characters.
"""

from __future__ import annotations

import random
import re

__all__ = ["PAYLOADS", "RUN", "find_unsafe", "harmless", "hostile_name", "plain_key"]

RUN = "globalThis.__ran=1"
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea></noscript></template><script>{RUN}</script>",
    f"]]><script>{RUN}</script><![CDATA[",
    f"--><script>{RUN}</script><!--",
    "<!--<script>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
    f"<img src=x onerror='{RUN}'>",
    f"<img src=x onerror={RUN}//",
    f'" onload="{RUN}" onfocus="{RUN}" autofocus tabindex=1 x="',
    f"' onmouseover='{RUN}' onpointerenter='{RUN}",
    f"'><svg onload={RUN}>",
    f"<svg/onload={RUN}>",
    f'<a href="javascript:{RUN}">here</a>',
    f'<a xlink:href="javascript:{RUN}"><text>here</text></a>',
    f"javascript:{RUN}",
    f"JaVaScRiPt&colon;{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<foreignObject><body xmlns='http://www.w3.org/1999/xhtml' onload='{RUN}'/></foreignObject>",
    "<use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg></svg>#x'/>",
    f"<animate onbegin='{RUN}' attributeName=x dur=1s />",
    f"<set attributeName=href to=javascript:{RUN} />",
    f"<math><annotation-xml encoding='text/html'><img src=x onerror={RUN}></annotation-xml></math>",
    f"<mi href='javascript:{RUN}'>x</mi>",
    f"</mi></math><img src=x onerror={RUN}><math><mi>",
    "</style><style>*{display:none}</style>",
    "}*{background:url(https://example.invalid/x)}",
    "expression(alert(1));behavior:url(#x)",
    "<style>@import 'https://example.invalid/x.css';</style>",
    "<link rel=stylesheet href=https://example.invalid/x.css>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "<base href=https://example.invalid/>",
    "<form action=https://example.invalid/><input name=x autofocus onfocus=1>",
    "<details open ontoggle=1>",
    f"${{{RUN}}}",
    f"`+({RUN})+`",
    f"'+({RUN})+'",
    f'";{RUN};//',
    f'\\";{RUN};//',
    f'"}}]}},"version":3,"x":[{{"y":"{RUN}',
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    "{{constructor.constructor('return 1')()}}",
    "{a} {0} {x!r} %s %(x)s {",
    r"\href{javascript:globalThis.__ran=1}{x}",
    r"$$\href{javascript:globalThis.__ran=1}{x}$$",
    r"\(\unicode{x3c}script\unicode{x3e}\)",
    r"\input{/etc/passwd}\write18{id}",
    r"\begin{verbatim}\end{document}",
    "}}}{{{ $ $$ \\[ \\] \\( \\",
    r"\N\n\l\r\E\T\G\"",
    "<<b>bold</b>>",
    '"]; evil [label="x"]; n0 -> evil; x [label="',
    "{a|<port>b|{c|d}}",
    "<TABLE><TR><TD HREF='javascript:1'>x</TD></TR></TABLE>",
    "\\",
    "\\\\\\",
    '"',
    "'",
    "<",
    "&",
    "&lt;b&gt;&amp;amp;&#60;script&#62;&colon;&NewLine;",
    "&",
    "a\x00b",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07\x1b]8;;https://example.invalid\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[1;1H",
    "\x9b31m\x90q\x9c\x85",
    "\r\r\rover\b\b\b\b",
    "one\ntwo\r\nthree\x0bfour\x0cfive\u2028six\u2029seven",
    "\t\t\ttabs",
    "\ud83d",
    "\udc80\ud800 surrogates",
    "\ufffe\uffff\ufeff",
    "\u202eevil\u202c \u2066\u2067\u2068\u2069\u202a\u202b\u202d",
    "\u200e\u200f\u061c marks",
    "zero\u200bwidth\u200c\u200d\u2060\u00ad",
    "Z\u0351\u036b\u0343\u036a\u0302\u0489" + "\u0300" * 200,
    "👩‍👩‍👧 😀 🏳️‍🌈",
    "שלום עולם",
    "漢字かな交じり文",
    "\U000e0041\U000e0042 tags",
    "\ue000\ue008\uf8f0\uf8f1\uf8f2",
    "x" * 100_000,
    "<b>" * 5_000,
    "word " * 3_000,
    "(" * 300 + ")" * 300,
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "__class__",
    "valueOf",
    "null",
    "NaN",
    "-1",
    "0",
    "start",
    "v₁",
    " = ",
    "a = b",
    "[0]",
    ".x",
    "|",
    "«»\u2039\u203a\uff1cscript\uff1e",
]
_TWIN = str.maketrans({"<": "=", ">": "+", "&": "K", '"': ")", "'": "j", "\\": "/"})
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Return `text` with other characters for those that are special in markup, in quotes and in DOT."""
    return text.translate(_TWIN)


def hostile_name(rng: random.Random, index: int) -> str:
    """Return a payload, several, or a fragment; each ends in its number, so that no two are equal."""
    match rng.randrange(8):
        case 0:
            text = "".join(rng.choice(PAYLOADS)[:300] for _ in range(rng.randint(2, 4)))
        case 1:
            text = rng.choice(PAYLOADS)[:300]
            text = text[rng.randrange(len(text)) :]
        case 2:
            text = "".join(rng.choice("<>&\"'\\`$%{}[]()|;:=/!-# \n\x1b\x00ab") for _ in range(rng.randint(1, 40)))
        case _:
            text = rng.choice(PAYLOADS)
    prefix = "=" if "&" in text else ""  # a formula then parenthesises the name and its twin
    return f"{prefix}{text}={index}"


def plain_key(text: str) -> str:
    """Return `text` without characters that repr escapes, so that its twin has the same length there."""
    return re.sub(r"[\\'\"]", "", "".join(c for c in text if c.isprintable()))


def find_unsafe(text: str) -> str | None:
    """Return what makes `text` unsafe for a terminal: a control character, a bidirectional override, or a surrogate."""
    match = _UNSAFE.search(text)
    return None if match is None else f"{match[0]!r} in {text[max(0, match.start() - 60) : match.start() + 20]!r}"
