"""The documentation site: Sphinx reads the Markdown of this folder. ``make docs`` builds it in out/site."""

import sys
from pathlib import Path

from docutils.nodes import Text, literal_block

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
sys.path.insert(0, str(HERE.parent / "src"))

import likeset  # noqa: E402

project = "likeset"
author = "The likeset developers"
copyright = "The likeset developers, MIT licence"
version = release = likeset.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "mathml",  # the rest are ours, in _extensions
    "docstrings",
    "public_names",
    "gallery",
]
exclude_patterns = ["_extensions"]

# Markdown: tables, $formulas$, definition lists; headings get the anchors that GitHub gives them.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# References must lead somewhere. Types in signatures are named as they are, with or without a page of their own.
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(?!likeset\.[A-Za-z]+$).*"),
    ("py:(obj|exc|data|mod)", r"(numpy|scipy|matplotlib|collections|os|pathlib|abc|builtins)\b.*"),
    ("py:mod", r"likeset\..*"),
]

# API pages: the docstrings as they are. Types are in the signatures.
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Array": "Array"}
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "likeset"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {"navigation_with_keys": True}


def setup(app):
    """Examples end with a blank line, for doctest; pages do not show it."""

    def trim(app, tree):
        for block in tree.findall(literal_block):
            if block.rawsource == block.astext():
                block.rawsource = block.astext().rstrip()
                block[:] = [Text(block.rawsource)]

    app.connect("doctree-read", trim)
