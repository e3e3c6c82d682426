"""PNG and PDF: the requested size, the contents of the SVG, and searchable text in a PDF."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad_viz import draw
from minigrad_viz.pictures.palette import DARK, LIGHT
from needs import needs


def drawing(**options):
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "weight_1")
    y = a * b + a
    y.label = "y"
    y.backward()
    return draw(y, **options)


@pytest.fixture
def open_png(tmp_path):
    """Save a drawing as PNG and open it."""
    needs("typst", "PIL")
    from PIL import Image

    def save(one, **options):
        one.save(tmp_path / "y.png", **options)
        return Image.open(io.BytesIO((tmp_path / "y.png").read_bytes()))

    return save


def size_of(svg):
    root = ET.fromstring(svg)
    return int(root.get("width")), int(root.get("height"))


def colour(text):
    return tuple(int(text[at : at + 2], 16) for at in (1, 3, 5))


def test_png_is_twice_the_svg_or_the_requested_size(open_png):
    one = drawing()
    width, height = size_of(one.svg())
    assert open_png(one).size == (2 * width, 2 * height)
    assert open_png(one, scale=1).size == (width, height)
    assert open_png(one, scale=0.5).size == (round(width / 2), round(height / 2))
    for requested in (1200, 777, 41):
        assert open_png(one, width=requested).size == (requested, round(requested * height / width))


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_png_has_the_colours_of_its_theme(open_png, theme, palette):
    picture = open_png(drawing(), theme=theme)
    pixels = picture.convert("RGB")
    counts = {rgb: count for count, rgb in pixels.getcolors(1 << 20)}
    assert counts[colour(palette["page"])] > 0.4 * picture.width * picture.height
    for part in ("leaf", "wash", "card", "output"):
        assert counts[colour(palette[part])] > 500, part
    assert picture.getpixel((0, 0))[3] == 0, "the corners are round, and nothing is behind them"


def test_png_is_light_by_default(open_png):
    assert open_png(drawing()).tobytes() == open_png(drawing(), theme="light").tobytes()


def test_drawings_of_different_steps_differ(open_png):
    pictures = [open_png(drawing(step=step), width=400).tobytes() for step in range(3)]
    assert len(set(pictures)) == 3


def text_of(data):
    from pypdf import PdfReader

    (page,) = PdfReader(io.BytesIO(data)).pages
    return page.extract_text()


def test_pdf_has_every_name_and_value_as_text(tmp_path):
    needs("typst", "pypdf")
    drawing().save(tmp_path / "y.pdf")
    content = text_of((tmp_path / "y.pdf").read_bytes())
    for word in ("weight_1", "v₂", "= a · weight_1", "y", "−3.0", "−6.0", "−4.0", "−2.0", "grad", "Graph of y = −4.0"):
        assert word in content, (word, content)


def test_pdf_of_a_step_has_its_caption(tmp_path):
    needs("typst", "pypdf")
    drawing(step=5).save(tmp_path / "y.pdf")
    assert "Backward 2 of 4" in text_of((tmp_path / "y.pdf").read_bytes())


def test_pdf_is_a_page_of_the_drawings_size_with_its_title():
    needs("typst", "pypdf")
    from pypdf import PdfReader

    one = drawing()
    width, height = size_of(one.svg())
    reader = PdfReader(io.BytesIO(one.pdf()))
    assert reader.metadata.title == "Graph of y = −4.0: 2 leaves, 2 operations."
    box = reader.pages[0].mediabox
    assert (float(box.width), float(box.height)) == (
        pytest.approx(0.75 * width, abs=0.1),
        pytest.approx(0.75 * height, abs=0.1),
    )


def test_files_are_deterministic():
    needs("typst")
    assert drawing().png() == drawing().png()
    assert drawing().pdf() == drawing().pdf()


def test_text_is_rendered_without_system_fonts():
    needs("typst", "PIL")
    import typst
    from PIL import Image

    from minigrad_viz.pictures import rendering

    bare = typst.Compiler(ignore_system_fonts=True)
    page = rendering._PNG.format(400, 200, "none").encode()
    whole = drawing().svg("light")
    root = ET.fromstring(whole)
    for parent in list(root.iter()):
        for child in [one for one in parent if one.tag.endswith("}text")]:
            parent.remove(child)
    empty = ET.tostring(root, encoding="unicode")
    dark = []
    for svg in (whole, empty):
        png = bare.compile(page, sys_inputs={"svg": svg}, format="png", ppi=72.0)
        dark.append(sum(255 - x for x in Image.open(io.BytesIO(png)).convert("L").tobytes()))
    assert dark[0] - dark[1] > 50_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "save: scale must be a positive number, but got 0."),
        ({"scale": float("inf")}, "save: scale must be a positive number, but got inf."),
        ({"scale": "2"}, "save: scale must be a positive number, but got '2'."),
        ({"width": 0}, "save: width must be a positive integer, in pixels, but got 0."),
        ({"width": 10.5}, "save: width must be a positive integer, in pixels, but got 10.5."),
        ({"width": True}, "save: width must be a positive integer, in pixels, but got True."),
        ({"width": 100, "scale": 2}, "save: got both scale and width, and either one sets the size."),
        ({"theme": "blue"}, 'save: theme must be "light" or "dark", but got \'blue\'.'),
    ],
)
def test_invalid_options_are_rejected(tmp_path, options, message):
    with pytest.raises(ArgumentError) as raised:
        drawing().save(tmp_path / "y.png", **options)
    assert str(raised.value).startswith(message + "\n  ")
    assert list(tmp_path.iterdir()) == []


def test_typst_is_loaded_lazily():
    needs("typst")
    code = """
import sys, minigrad as mg, minigrad_viz as v
d = v.draw(mg.Value(2.0, "a") * 3.0)
d.svg(), d.tex(), d.html()
print({"typst", "av", "matplotlib", "numpy"} & set(sys.modules))
d.png()
print(sorted({"typst", "av", "matplotlib", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("set()\n['typst']\n", "")
