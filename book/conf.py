"""Sphinx configuration of the book (`make book`). The build needs no network; lessons are not executed."""

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
    "live",
    "imports",
    "measured",
    "playground",
    "ops",
    "reference",
    "sidebar",
]
exclude_patterns = ["_build", "_ext", "_static", "_templates"]
# Lessons have stored outputs; the book's own pages that run code say so in their front matter.
nb_execution_mode = "off"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
# Silence ipykernel's warning about unencrypted TCP.
NotebookClient.extra_arguments.default_args = (["--log-level=ERROR"],)
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # players need no widget manager
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
mathjax_path = "vendor/tex-mml-svg.js"
default_role = "code"
add_module_names = False
nitpicky = True
# The type of `Jitted.recording`, used only by `draw`.
nitpick_ignore = [("py:class", "minigrad.compiler.jit.step_trace.StepTrace")]
nitpick_ignore_regex = [
    # Types of Python and of other packages; intersphinx would need a network.
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
    "_modules/**": ["home.html", "search-button-field.html"],  # without the list of pages, since there are many sources
}
html_css_files = ["book.css"]
html_js_files = [("place.js", {"loading_method": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # would fetch pages, which file: URLs may not
html_context = {"default_mode": "auto"}
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "back_to_top_button": False,  # would cover players
    "navbar_persistent": [],  # hidden duplicates that would get the theme's event listeners
    "show_navbar_depth": 1,
    "max_navbar_depth": 1,  # the toggles of nested entries have no accessible name
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
