"""The bundler: what it writes runs as the modules did, and what it does not take it refuses with file and line."""

import re
import subprocess
from pathlib import Path

import pytest

from minigrad_viz.bundle import BundleError, bundle, classic, tokens
from tools import need

SOURCES = Path(__file__).parents[2] / "viz" / "frontend" / "src"

TRICKY = {
    "a.js": """
// a comment with `a template`, "a string" and export function ghost() {}
export const half = (x) => x / 2; /* a block
   of two lines */
export const quote = /["'`/]|[/"]/g;
const [one, two] = [1, 2], { length } = "abc";
const table = { "a//b": "/* no comment */", 'it\\'s': 1 };
const all = (text) => text.match(quote) ?? [];
export function count(text) { return all(text).length + Object.keys(table).length + one + two + length; }
export async function* later() { yield /x/.test("x"); }
""",
    "b.js": """
import { half, quote } from "./a.js";
export class Pair {
  #first = 1;
  static of(x) { const pair = new Pair(); pair.#first = x; return pair; }
  get first() { return this.#first; }
}
export const nested = (x) => `${half(x) > 1 ? `big ${{ x }.x}` : "small }`"}, ${quote.source.length}`;
let calls = 0, more = [1, 2].map((x) => x + 1);
export function next(i) {
  if (i) /y/.test("y");
  const up = i++ / 2 - -i + +i, down = i - --i
  calls += 1
  ;[up, down].forEach((x) => { more.push(x) })
  return [typeof /z/, 1 .toString(), up, down, calls, more.length, i ? .5 : 1, "in" in { in: 1 }];
}
""",
    "main.js": """
import { half, count, later } from "./a.js";
import {
  nested, // with a remark
  next, Pair,
} from "./b.js";
export const render = async () => {
  const found = [];
  for await (const x of later()) found.push(x);
  return JSON.stringify([half(3), count("'/`"), nested(1), nested(4), next(3), Pair.of(7).first, found]);
};
""",
}


def folder_of(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def printed(script: Path) -> str:
    need("node")
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bundle_computes_what_its_modules_compute(tmp_path):
    folder = folder_of(tmp_path, TRICKY)
    (folder / "bundle.mjs").write_text(bundle(folder, ["main.js"], ["half"], "render"), encoding="utf-8")
    for name, source in (("one", '{ render } from "./main.js"'), ("all", 'made from "./bundle.mjs"')):
        call = "render" if name == "one" else "made.render"
        (folder / f"{name}.mjs").write_text(f"import {source};\nconsole.log(await {call}());\n")
    (folder / "package.json").write_text('{"type": "module"}')
    together = printed(folder / "all.mjs")
    assert together == printed(folder / "one.mjs")
    assert together.startswith("[1.5,11,")


def test_classic_is_a_script_that_leaves_one_name_behind(tmp_path):
    folder = folder_of(tmp_path, TRICKY)
    text = classic(bundle(folder, ["main.js"], ["half", "render"], "render"), "globalThis.started = half(5);")
    start = "\nconsole.log(started, Object.keys(minigrad).join(), typeof half);\n"
    (folder / "classic.cjs").write_text(text + start, encoding="utf-8")
    assert printed(folder / "classic.cjs") == "2.5 half,render undefined\n"


def test_comments_and_indentation_are_gone_and_texts_are_whole(tmp_path):
    text = bundle(folder_of(tmp_path, TRICKY), ["main.js"], ["half"], "render")
    assert "a comment" not in text
    assert "of two lines" not in text
    assert "/* no comment */" in text
    assert "a//b" in text
    assert not re.search(r"^ ", text, re.MULTILINE)
    assert text.endswith("\nexport { half };\nexport default { render };\n")


@pytest.mark.parametrize("path", sorted(set(SOURCES.glob("*.js")) - {SOURCES / "types.js"}), ids=lambda path: path.name)
def test_modules_of_the_player_keep_their_tokens(path, tmp_path):
    source = path.read_text(encoding="utf-8")
    kept = re.sub(r"^import[^;]*;", "", source, flags=re.MULTILINE)
    alone = folder_of(tmp_path, {"it.js": f"{kept}\nconst lastOfAll = 1;\n"})
    text = bundle(alone, ["it.js"], [], "lastOfAll").partition("\nexport {")[0]
    expected = [token.text for token in tokens(kept) if token.text != "export"]
    assert [token.text for token in tokens(text)][:-5] == expected


WRONG = {
    "unknown-file": ('import { a } from "./gone.js";', "main.js:1: there is no file gone.js."),
    "unknown-name": ('import { thrid } from "./a.js";', "main.js:1: a.js does not export thrid."),
    "not-exported": ('import { table } from "./a.js";', "main.js:1: a.js does not export table."),
    "default": ('import a from "./a.js";', "main.js:1: an import is written"),
    "renamed": ('import { half as h } from "./a.js";', "main.js:1: an import is written"),
    "package": ('import { a } from "lodash";', "main.js:1: an import is written"),
    "dynamic": ('const a = 1;\nimport("./a.js");', "main.js:2: an import is written"),
    "twice": ("const a = 1;\nfunction a() {}", "main.js:2: a is declared twice"),
    "two-files": (
        'import { half } from "./a.js";\nconst table = 1;',
        "main.js:2: table stands at the top of a.js:7 too",
    ),
    "circle": ('import { c } from "./c.js";', "c.js:1: a circle of imports: main.js → c.js → main.js."),
    "itself": ('import { a } from "./main.js";', "main.js:1: a circle of imports: main.js → main.js."),
    "effect": ("const a = 1;\n\nalert(a);", "main.js:3: 'alert' runs when the file is imported"),
    "re-export": ("export { a };", "main.js:1: '{' runs when"),
    "pattern": ("const { a: b } = c;", "main.js:1: a pattern at the top of a file is written [a, b] or { a, b }."),
    "pattern-twice": ("const [a, b] = c;\nconst { b, d } = e;", "main.js:2: b is declared twice"),
    "semicolon": ("const a = 1\nconst b = 2;", "main.js:1: this declaration has no semicolon"),
    "brace": ("const a = {} / 2;", "main.js:1: a slash after a brace"),
    "string": ('const a = "no end;\n', "main.js:1: this is not JavaScript that can be read: '\"no end;"),
    "template": ("const a = 1;\nconst b = `no ${end};", "main.js:2: this template has no end."),
    "comment": ("const a = 1;\n/* no end", "main.js:2: this is not JavaScript that can be read: '/* no end'"),
    "body": ("function f() { if (1) {", "main.js:1: this declaration has no end."),
    "script": ('const a = "</script>";', "'</script' would end the script of a page"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_taken_is_refused_with_its_place(name, tmp_path):
    source, message = WRONG[name]
    files = {**TRICKY, "main.js": f"{source}\nexport const render = 1;\n"}
    files["c.js"] = 'import { render } from "./main.js"; export const c = 1;'
    with pytest.raises(BundleError) as error:
        bundle(folder_of(tmp_path, files), ["main.js"], [], "render")
    assert message in str(error.value)


def test_missing_export_is_refused(tmp_path):
    folder = folder_of(tmp_path, TRICKY)
    with pytest.raises(BundleError, match=r"bundle: none of the files declares mount."):
        bundle(folder, ["main.js"], ["mount"], "render")
    with pytest.raises(BundleError, match=r"this text does not end as a bundle does"):
        classic("const a = 1;\n", "")
