"""How Sphinx makes the book: `make book`. It needs no network; the lessons come in as they are stored."""

import sys
from pathlib import Path

from nbclient import NotebookClient

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext")]

project = "minigrad"
author = "the minigrad authors"
project_copyright = author
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "vendor",
    "lessons",
    "imports",
    "measured",
    "playground",
    "ops",
    "reference",
    "sidebar",
]
exclude_patterns = ["_build", "_ext", "_static", "_templates"]
# What a lesson prints was stored when it was built; pages of the book's own that run code say so at their head.
nb_execution_mode = "off"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
# ipykernel warns that it talks over TCP; there is nobody else here to listen.
NotebookClient.extra_arguments.default_args = (["--log-level=ERROR"],)
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # players start by themselves: no widget manager, no network
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
mathjax_path = "vendor/tex-mml-svg.js"
default_role = "code"
add_module_names = False
nitpicky = True
# What `Jitted.recording` is, for `draw` alone.
nitpick_ignore = [("py:class", "minigrad.compiler.jit.recording.StepRecording")]
nitpick_ignore_regex = [
    # Types in signatures that are others': Python's and those of packages have no pages here, which ask no network.
    ("py:class", r"(collections|contextlib|graphviz|ipywidgets|numpy|os|pathlib|random|types|typing)\..*"),
]
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False

html_theme = "sphinx_book_theme"
html_title = "minigrad"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_sidebars = {
    "[!_]**": ["home.html", "search-button-field.html", "pages.html"],
    "_modules/**": ["home.html", "search-button-field.html"],  # of sources there are many
}
html_css_files = ["book.css"]
html_js_files = [("place.js", {"loading_method": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it would fetch the pages that were found, which a page from disk may not
html_context = {"default_mode": "auto"}
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "back_to_top_button": False,  # it would lie over players
    "navbar_persistent": [],  # unseen buttons, which the theme would listen to in place of those that are seen
    "show_navbar_depth": 1,
    "max_navbar_depth": 1,  # what closes and opens in the list of pages has no name for who does not see it
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
