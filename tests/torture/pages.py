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
from torture._pages_names import find_unsafe, harmless, hostile_name, plain_key

__all__ = ["CAMPAIGNS"]

NameFactory = Callable[..., str]  # creates a string; an optional function removes characters from it

# --- graphs with hostile strings --------------------------------------------------------------------------------------


def _values(rng: random.Random, text: NameFactory) -> Any:
    """Return Values with labels, in scopes."""
    import minigrad as mg

    pool = [mg.Value(rng.choice([1.0, -2.0, 0.5, float("nan"), 1e300]), text()) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 6)):
        one, other = rng.choice(pool), rng.choice([*pool, 2.0])
        with mg.scope(text()) if rng.random() < 0.3 else mg.enable_grad():
            value = rng.choice([lambda a, b: a * b, lambda a, b: a + b, lambda a, b: (a / b).tanh()])(one, other)
        if rng.random() < 0.3:
            value.label = text()
        pool.append(value)
    if rng.random() < 0.5:
        pool[-1].backward()
    return mg.record(), lambda: (pool[-1], ()), ({},)


def _tensors(rng: random.Random, text: NameFactory) -> Any:
    """Return tensors in a dict, in scopes, from operations with string attributes and from a Function."""
    import minigrad as mg

    shape = rng.choice([(), (2,), (2, 3), (1, 40)])
    tensors_by_name = {text(plain_key): (mg.ones(*shape) * k).requires_grad_() for k in range(1, rng.randint(2, 4))}
    double = _function(text(_as_function))
    with mg.record(lines=rng.random() < 0.5):
        with mg.scope(text()):
            y = sum(tensors_by_name.values(), mg.zeros(*shape))
            y = double.apply(y) if rng.random() < 0.5 else y.reshape(-1)[: rng.randint(1, 2)]
        y = (y * y).sum()
        if rng.random() < 0.5:
            y.backward()
    return mg.enable_grad(), lambda: (y, ()), ({"held": tensors_by_name},)


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


def _model(rng: random.Random, text: NameFactory, broken: bool = False) -> Any:
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


def _broken(rng: random.Random, text: NameFactory) -> Any:
    return _model(rng, text, broken=True)


_GRAPHS = (_values, _values, _tensors, _model, _broken)

# --- forms, as their parts ---------------------------------------------------------------------------------------


class _Parts(HTMLParser):
    """A page as its elements with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.responses: list[Any] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.responses.append((tag, tuple((key, _decode_attribute(value)) for key, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.responses.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        inside = self.responses and self.responses[-1] and self.responses[-1][0] == "script" and data.startswith("{")
        self.responses.append(_harmless_json(json.loads(data)) if inside else harmless(data))

    def handle_comment(self, data: str) -> None:
        self.responses.append(("a comment", harmless(data)))

    def unknown_decl(self, data: str) -> None:
        self.responses.append(("a declaration", harmless(data)))

    handle_pi = handle_comment


def _decode_attribute(value: str | None) -> Any:
    """Decode an attribute: an embedded image into its parts, JSON into its strings."""
    head = "data:image/svg+xml;base64,"
    if value and value.startswith(head):
        return _xml(base64.b64decode(value.removeprefix(head)).decode())
    return harmless(value or "")


def _xml(text: str) -> list[Any]:
    """Return XML as its elements, attributes and text. Raises if it is not well-formed."""
    return [
        (
            part.tag,
            tuple((key, harmless(value)) for key, value in part.attrib.items()),
            *map(_harmless_or_empty, _xml_texts(part)),
        )
        for part in ElementTree.fromstring(text.encode()).iter()
    ]


def _xml_texts(part: Any) -> tuple[str | None, str | None]:
    return part.text, part.tail


def _harmless_or_empty(text: str | None) -> str:
    return harmless(text or "")


def _harmless_json(data: Any) -> Any:
    """Return JSON with its strings made harmless."""
    if isinstance(data, dict):
        markup = {key: _xml(f"<p>{x}</p>") for key, x in data.items() if key == "mathml"}
        return {harmless(key): markup.get(key) or _harmless_json(x) for key, x in data.items()}
    return (
        [_harmless_json(x) for x in data]
        if isinstance(data, list)
        else harmless(data)
        if isinstance(data, str)
        else data
    )


def _page(text: str) -> list[Any]:
    from minigrad_viz.pictures.frontend import script

    assert text.count(script()) <= 1
    return _Parts(text.replace(script(), "")).responses


def _text(text: str) -> str:
    if unsafe := find_unsafe(text):
        raise ValueError(unsafe)
    return harmless(text)


def _forms(graph: Any, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield each form of a graph: its name and its parts."""
    from minigrad_viz import explain, step
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.trace import to_trace

    mode, build, namespaces = graph
    with mode:
        x, others = build()
        trace = to_trace(x, *others, namespaces=namespaces)
    drawing = Drawing(trace)
    yield "svg", _xml(drawing.svg())
    yield "page", _page(drawing.html())
    bundle = drawing._repr_mimebundle_()
    yield "figure", _page(bundle["text/html"])
    yield "text", _text(bundle["text/plain"])
    yield "json", _harmless_json(json.loads(drawing.json()))
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
        yield from _model_forms(x)


def _model_forms(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the forms of a model without its graph."""
    from minigrad_viz import watch

    watched = watch(model)
    yield "watch", (_xml(watched.svg()), _page(watched._repr_mimebundle_()["text/html"]), _text(repr(watched)))
    watched.close()
    yield "print", _text(repr(model))


def _dot(source: str) -> Any:
    """Return what Graphviz draws, without positions: element types and text."""
    child = subprocess.run(
        ["dot", "-Tsvg", "-Gsplines=curved"], input=source.encode(), capture_output=True, check=False
    )
    wrong = child.stderr.replace(b"Warning: edge labels with splines=curved not supported in dot - use xlabels\n", b"")
    if child.returncode or wrong:  # (straight edges between very long labels end Graphviz 2.43)
        raise ValueError(f"dot: {child.stderr.decode(errors='replace')[:200]}")
    parts = list(ElementTree.fromstring(child.stdout).iter())
    kinds = Counter((part.tag, *sorted(part.attrib)) for part in parts)
    labels = sorted(_harmless_or_empty(part.text) for part in parts if part.tag.endswith(("text", "title")))
    links = [value for part in parts for key, value in part.attrib.items() if key.endswith("title")]
    return kinds, labels, sorted(map(harmless, links))


def forms(case_number: int) -> str | None:
    """Compare each form of a graph with hostile strings and with harmless ones: only the characters may differ."""
    import minigrad as mg
    from minigrad_viz.trace.notation import sanitize

    seed = f"forms{case_number}"
    names_used: list[str] = []

    def build(is_harmless: bool) -> Any:
        rng, names_random = random.Random(seed), random.Random(f"{seed} texts")

        def text(without: Callable[[str], str] = str) -> str:
            name = without(hostile_name(names_random, len(names_used)))
            names_used.append(name)
            return harmless(name) if is_harmless else name

        names_used.clear()
        mg.manual_seed(0)
        return rng.choice(_GRAPHS)(rng, text)

    hostile = list(_forms(build(False), random.Random(seed)))
    twin = list(_forms(build(True), random.Random(seed)))
    for (form, one), (other, two) in zip(hostile, twin, strict=True):
        if form != other or one != two:
            return f"{form}: {_difference(one, two)}"
    (data,) = [one for form, one in hostile if form == "json"]
    names = {*data["nodes"]["name"].values(), *(block["name"] for block in data["blocks"])}
    labels = [harmless(sanitize(text)) for text in names_used if not text.endswith("=")]
    if not any(text in shown for shown in names for text in labels):
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


def check_messages(case_number: int) -> str | None:
    """Check that a call with a hostile string prints no terminal command."""
    from torture._pages_words import CALLS

    rng = random.Random(f"words{case_number}")
    call_name = [*CALLS][case_number % len(CALLS)]
    text = hostile_name(rng, case_number) + rng.choice(["", "\x1b[2J", "\x9b1m\r\x07", "\u202e\ud83d"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            output = str(CALLS[call_name](text, Path(folder)))
        except (AssertionError, RecursionError, SystemError) as error:
            return f"{call_name}: {type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 -- any exception is shown to the user
            output = "".join(traceback.format_exception_only(error))
    unsafe = find_unsafe(output)
    return f"{call_name}: {unsafe}" if unsafe else None


# --- in a browser ---------------------------------------------------------------------------------------------------


def check_browser(case_number: int) -> str | None:
    """Check that a page, a widget or a tour with hostile strings runs, requests and logs nothing."""
    import minigrad as mg
    from minigrad_viz import step, tour
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.trace import to_trace
    from torture._pages_browser import check_page

    rng, names_random, count = (
        random.Random(f"browser{case_number}"),
        random.Random(f"browser{case_number} texts"),
        itertools.count(),
    )
    mg.manual_seed(0)
    mode, build, spaces = rng.choice(_GRAPHS)(rng, lambda without=str: without(hostile_name(names_random, next(count))))
    with mode:
        x, others = build()
        trace = to_trace(x, *others, namespaces=spaces)
    if "x" in trace.kinds or case_number % 3 == 0:
        return check_page(Drawing(trace), None, 2)
    if case_number % 3 == 1:
        return check_page(Drawing(trace), step(Drawing(trace), position=1), 0)
    toured = tour(Drawing(trace), [("start", hostile_name(names_random, 0)), ("end", hostile_name(names_random, 1))])
    return check_page(Drawing(toured.trace, toured.state()), None, 2)


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
        check_messages,
        many=4000,
        few=75,
    ),
    Campaign(
        "page_browser",
        "hostile strings in pages and widgets that a browser opens and uses: nothing runs and nothing is fetched",
        check_browser,
        many=60,
        few=0,
        seconds=120.0,
        needs=("chromium", "playwright"),
    ),
]
