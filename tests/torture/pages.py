"""Hostile strings in every position that accepts one, in every form of drawing."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
import subprocess
import tempfile
import traceback
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from torture import Campaign
from torture._pages_names import harmless, is_quiet, name, plain_key

__all__ = ["CAMPAIGNS"]

Name = Callable[..., str]  # creates a string; an optional function removes characters from it

# --- graphs with hostile strings --------------------------------------------------------------------------------------


def _values(rng: random.Random, text: Name) -> Any:
    """Return Values with labels, in scopes."""
    import minigrad as mg

    held = [mg.Value(rng.choice([1.0, -2.0, 0.5, float("nan"), 1e300]), text()) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 6)):
        one, other = rng.choice(held), rng.choice([*held, 2.0])
        with mg.scope(text()) if rng.random() < 0.3 else mg.enable_grad():
            made = rng.choice([lambda a, b: a * b, lambda a, b: a + b, lambda a, b: (a / b).tanh()])(one, other)
        if rng.random() < 0.3:
            made.label = text()
        held.append(made)
    if rng.random() < 0.5:
        held[-1].backward()
    return mg.record(), lambda: (held[-1], ()), ({},)


def _tensors(rng: random.Random, text: Name) -> Any:
    """Return tensors in a dict, in scopes, from operations with string attributes and from a Function."""
    import minigrad as mg

    shape = rng.choice([(), (2,), (2, 3), (1, 40)])
    held = {text(plain_key): (mg.ones(*shape) * k).requires_grad_() for k in range(1, rng.randint(2, 4))}
    double = _function(text(_as_function))
    with mg.record(lines=rng.random() < 0.5):
        with mg.scope(text()):
            y = sum(held.values(), mg.zeros(*shape))
            y = double.apply(y) if rng.random() < 0.5 else y.reshape(-1)[: rng.randint(1, 2)]
        y = (y * y).sum()
        if rng.random() < 0.5:
            y.backward()
    return mg.enable_grad(), lambda: (y, ()), ({"held": held},)


def _function(called: str) -> Any:
    """Return a Function whose class has this name."""
    import minigrad as mg

    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    Double.__name__ = Double.__qualname__ = called
    return Double


def _as_class(text: str) -> str:
    """Return the part of a string that Python accepts as a class name."""
    return re.sub("[\x00\ud800-\udfff]", "", text)


def _as_function(text: str) -> str:
    """Return the same without characters that the twin replaces: an operation is named after its class."""
    return re.sub("[&']", "", _as_class(text))


def _model(rng: random.Random, text: Name, broken: bool = False) -> Any:
    """Return a model whose class, submodules, parameters and buffers have such names; it raises if `broken`."""
    import minigrad as mg

    says = text()

    class Part(mg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._shown = text()
            self.register_parameter(text(_dotless), mg.nn.Parameter(mg.ones(2)))
            self.register_buffer(text(_dotless), mg.ones(2))

        def forward(self, x: Any) -> Any:
            for w in (*self._parameters.values(), *self._buffers.values()):
                x = x * w
            if broken:
                raise ValueError(says) if rng.random() < 0.3 else mg.errors.ShapeError(f"mul: {says}")
            return x.relu()

        def extra_repr(self) -> str:
            return self._shown

    Part.__name__ = text(_as_class)
    model = mg.nn.Sequential()
    for _ in range(rng.randint(1, 3)):
        model.add_module(text(_dotless), rng.choice([Part, mg.nn.ReLU, lambda: mg.nn.Linear(2, 2)])())
    model.add_module(text(_dotless), Part())
    type(model)
    x = mg.ones(3, 2)
    return mg.enable_grad(), lambda: (model, (x,)), ({text(plain_key): x},)


def _dotless(text: str) -> str:
    return text.replace(".", ",")


def _broken(rng: random.Random, text: Name) -> Any:
    return _model(rng, text, broken=True)


_GRAPHS = (_values, _values, _tensors, _model, _broken)

# --- forms, as their parts ---------------------------------------------------------------------------------------


class _Parts(HTMLParser):
    """A page as its elements with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, tuple((key, _opened(value)) for key, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        inside = self.found and self.found[-1] and self.found[-1][0] == "script" and data.startswith("{")
        self.found.append(_strings(json.loads(data)) if inside else harmless(data))

    def handle_comment(self, data: str) -> None:
        self.found.append(("a comment", harmless(data)))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("a declaration", harmless(data)))

    handle_pi = handle_comment


def _opened(value: str | None) -> Any:
    """Decode an attribute: an embedded image into its parts, JSON into its strings."""
    head = "data:image/svg+xml;base64,"
    if value and value.startswith(head):
        return _xml(base64.b64decode(value.removeprefix(head)).decode())
    return harmless(value or "")


def _xml(text: str) -> list[Any]:
    """Return XML as its elements, attributes and text. Raises if it is not well-formed."""
    return [
        (part.tag, tuple((key, harmless(value)) for key, value in part.attrib.items()), *map(_letters, _texts(part)))
        for part in ElementTree.fromstring(text.encode()).iter()
    ]


def _texts(part: Any) -> tuple[str | None, str | None]:
    return part.text, part.tail


def _letters(text: str | None) -> str:
    return harmless(text or "")


def _strings(data: Any) -> Any:
    """Return JSON with its strings made harmless."""
    if isinstance(data, dict):
        markup = {key: _xml(f"<p>{x}</p>") for key, x in data.items() if key == "mathml"}
        return {harmless(key): markup.get(key) or _strings(x) for key, x in data.items()}
    return [_strings(x) for x in data] if isinstance(data, list) else harmless(data) if isinstance(data, str) else data


def _page(text: str) -> list[Any]:
    from minigrad_viz.pictures.frontend import script

    assert text.count(script()) <= 1
    return _Parts(text.replace(script(), "")).found


def _text(text: str) -> str:
    if loud := is_quiet(text):
        raise ValueError(loud)
    return harmless(text)


def _forms(graph: Any, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield each form of a graph: its name and its parts."""
    from minigrad_viz import explain, step
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.trace import to_trace

    mode, made, spaces = graph
    with mode:
        x, more = made()
        trace = to_trace(x, *more, namespaces=spaces)
    drawing = Drawing(trace)
    yield "svg", _xml(drawing.svg())
    yield "page", _page(drawing.html())
    bundle = drawing._repr_mimebundle_()
    yield "figure", _page(bundle["text/html"])
    yield "text", _text(bundle["text/plain"])
    yield "json", _strings(json.loads(drawing.json()))
    source = str(drawing.graphviz().source)
    source.encode()
    yield "dot", source.count("\n")
    if len(source) < 10_000 and rng.random() < 0.1:
        yield "dot -Tsvg", _dot(source)
    if not any(kind == "x" for kind in trace.kinds):
        player = step(drawing, position=1)
        shown = player._repr_mimebundle_()[0]
        yield "widget", (_page(shown["text/html"]), _text(shown["text/plain"]), _text(repr(player)))
        if not trace.tensors and len(trace.kinds) < 50:
            for index in range(len(trace.kinds)):
                if trace.kinds[index] != "c":
                    yield "explain", _text(explain(trace.names[index] or trace.title(index), of=drawing))
    if hasattr(x, "named_modules"):
        yield from _of_model(x)


def _of_model(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the forms of a model without its graph."""
    from minigrad_viz import watch

    seen = watch(model)
    yield "watch", (_xml(seen.svg()), _page(seen._repr_mimebundle_()["text/html"]), _text(repr(seen)))
    seen.close()
    yield "print", _text(repr(model))


def _dot(source: str) -> Any:
    """Return what Graphviz draws, without positions: element types and text."""
    done = subprocess.run(["dot", "-Tsvg", "-Gsplines=curved"], input=source.encode(), capture_output=True, check=False)
    wrong = done.stderr.replace(b"Warning: edge labels with splines=curved not supported in dot - use xlabels\n", b"")
    if done.returncode or wrong:  # (straight edges between very long labels end Graphviz 2.43)
        raise ValueError(f"dot: {done.stderr.decode(errors='replace')[:200]}")
    parts = list(ElementTree.fromstring(done.stdout).iter())
    kinds = Counter((part.tag, *sorted(part.attrib)) for part in parts)
    texts = sorted(_letters(part.text) for part in parts if part.tag.endswith(("text", "title")))
    links = [value for part in parts for key, value in part.attrib.items() if key.endswith("title")]
    return kinds, texts, sorted(map(harmless, links))


def forms(number: int) -> str | None:
    """Compare each form of a graph with hostile strings and with harmless ones: only the characters may differ."""
    import minigrad as mg
    from minigrad_viz.trace.notation import clean

    seed = f"forms{number}"
    used: list[str] = []

    def build(tame: bool) -> Any:
        rng, texts = random.Random(seed), random.Random(f"{seed} texts")

        def text(without: Callable[[str], str] = str) -> str:
            made = without(name(texts, len(used)))
            used.append(made)
            return harmless(made) if tame else made

        used.clear()
        mg.manual_seed(0)
        return rng.choice(_GRAPHS)(rng, text)

    hostile = list(_forms(build(False), random.Random(seed)))
    twin = list(_forms(build(True), random.Random(seed)))
    for (form, one), (other, two) in zip(hostile, twin, strict=True):
        if form != other or one != two:
            return f"{form}: {_difference(one, two)}"
    (found,) = [one for form, one in hostile if form == "json"]
    names = {*found["nodes"]["name"].values(), *(block["name"] for block in found["blocks"])}
    texts = [harmless(clean(text)) for text in used if not text.endswith("=")]
    if not any(text in shown for shown in names for text in texts):
        return f"no name is returned unchanged: {sorted(names)!r:.200}"
    return None


def _difference(one: Any, two: Any) -> str:
    """Describe the first difference between two forms."""
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        pairs = next(((a, b) for a, b in zip(one, two, strict=False) if a != b), (one[len(two) :], two[len(one) :]))
        return _difference(*pairs)
    if isinstance(one, dict) and isinstance(two, dict):
        keys = [key for key in one | two if one.get(key) != two.get(key)]
        return f"{keys[0]!r:.60}: {_difference(one.get(keys[0]), two.get(keys[0]))}"
    if isinstance(one, str) and isinstance(two, str):
        at = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
        return f"{one[max(at - 40, 0) : at + 60]!r} is {two[max(at - 40, 0) : at + 60]!r} of its twin"
    return f"{one!r:.150} is {two!r:.150} of its twin"


# --- messages ----------------------------------------------------------------------------------------------------


def words(number: int) -> str | None:
    """Check that a call with a hostile string prints no terminal command."""
    from torture._pages_words import CALLS

    rng = random.Random(f"words{number}")
    called = [*CALLS][number % len(CALLS)]
    text = name(rng, number) + rng.choice(["", "\x1b[2J", "\x9b1m\r\x07", "\u202e\ud83d"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            said = str(CALLS[called](text, Path(folder)))
        except (AssertionError, RecursionError, SystemError) as error:
            return f"{called}: {type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 -- any exception is shown to the user
            said = "".join(traceback.format_exception_only(error))
    loud = is_quiet(said)
    return f"{called}: {loud}" if loud else None


# --- in a browser ---------------------------------------------------------------------------------------------------


def browser(number: int) -> str | None:
    """Check that a page, a widget or a tour with hostile strings runs, requests and logs nothing."""
    import minigrad as mg
    from minigrad_viz import step, tour
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.trace import to_trace
    from torture._pages_browser import looked_at

    rng, texts, count = random.Random(f"browser{number}"), random.Random(f"browser{number} texts"), itertools.count()
    mg.manual_seed(0)
    mode, made, spaces = rng.choice(_GRAPHS)(rng, lambda without=str: without(name(texts, next(count))))
    with mode:
        x, more = made()
        trace = to_trace(x, *more, namespaces=spaces)
    if "x" in trace.kinds or number % 3 == 0:
        return looked_at(Drawing(trace), None, 2)
    if number % 3 == 1:
        return looked_at(Drawing(trace), step(Drawing(trace), position=1), 0)
    toured = tour(Drawing(trace), [("start", name(texts, 0)), ("end", name(texts, 1))])
    return looked_at(Drawing(toured.trace, toured.state()), None, 2)


CAMPAIGNS = [
    Campaign(
        "page_forms",
        "hostile labels, scopes, modules, classes and errors in every form of a graph, compared with harmless ones",
        forms,
        many=2000,
        few=30,
        needs=("dot",),
    ),
    Campaign(
        "page_words",
        "hostile strings passed to calls, in files and to the command: messages contain no terminal commands",
        words,
        many=4000,
        few=75,
    ),
    Campaign(
        "page_browser",
        "hostile strings in pages and widgets that a browser opens and uses: nothing runs and nothing is fetched",
        browser,
        many=60,
        few=0,
        seconds=120.0,
        needs=("chromium", "playwright"),
    ),
]
