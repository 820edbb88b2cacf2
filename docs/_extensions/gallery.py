"""Draws the pictures of gallery.md from the lines below each of them, light and dark.

``python docs/_extensions/gallery.py`` draws the light ones into docs/images/gallery, for those who read the Markdown.
"""

from __future__ import annotations

import doctest
import html
import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

matplotlib.use("Agg")
PAGE = Path(__file__).parent.parent / "gallery.md"
_logger = logging.getLogger(__name__)
_SAVED: dict[str, Any] = {"dpi": 90, "bbox_inches": "tight", "metadata": {"Software": None}}
_COARSE, _DIFFERENT = (40, 24), 0.3  # points that are compared, steps of 256 between black and white on average
_PICTURE = re.compile(r"images/gallery/([\w-]+)\.png")


def drawings(markdown: str) -> Iterator[tuple[str, Any]]:
    """(name, figure) of every section with a picture; its examples are run, after those of the page's head."""
    import matplotlib.pyplot as plt

    import likeset as ls

    names: dict[str, Any] = {}
    for section in markdown.split("\n## "):
        picture = _PICTURE.search(section)
        with ls.plots.themed("light"):
            if picture:
                plt.figure(figsize=(6.8, 3.8))
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                for example in doctest.DocTestParser().get_examples(section):
                    exec(compile(example.source, str(PAGE), "single"), names)
            if picture:
                yield picture.group(1), plt.gcf()
                plt.close("all")


def _draw(app: Sphinx) -> None:
    from likeset.plots.theme import DARK, LIGHT, plain_svg

    folder = Path(app.outdir) / "_static" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawings(PAGE.read_text(encoding="utf-8")):
        if not _looks_like(figure, _committed(name)):
            _logger.warning("docs/images/gallery/%s.png is an old picture: python docs/_extensions/gallery.py", name)
        for theme, word in ((LIGHT, "light"), (DARK, "dark")):
            (folder / f"{name}-{word}.svg").write_text(plain_svg(figure, theme), encoding="utf-8")


def _committed(name: str) -> Path:
    return PAGE.parent / "images" / "gallery" / f"{name}.png"


def _looks_like(figure: Any, path: Path) -> bool:
    """Whether a figure is the picture of a file, but for letters that another Matplotlib draws a little differently."""
    drawn = io.BytesIO()
    figure.savefig(drawn, **_SAVED)
    drawn.seek(0)
    seen = [np.asarray(Image.open(one).convert("L").resize(_COARSE), dtype=float) for one in (drawn, path)]
    return bool(np.abs(seen[0] - seen[1]).mean() < _DIFFERENT)


def _show(app: Sphinx, tree: nodes.document, docname: str) -> None:
    """Put the two drawings in the place of the committed picture."""
    up = "../" * docname.count("/")
    for image in list(tree.findall(nodes.image)):
        picture = _PICTURE.search(image["uri"])
        if picture is None or app.builder.format != "html":
            continue
        shown = [
            f'<img class="only-{word} gallery" loading="lazy" src="{up}_static/gallery/{picture.group(1)}-{word}.svg" '
            f'alt="{html.escape(image.get("alt", ""))}">'
            for word in ("light", "dark")
        ]
        image.replace_self(nodes.raw("", "".join(shown), format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Draws when the build begins."""
    app.connect("builder-inited", _draw)
    app.connect("doctree-resolved", _show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for name, figure in drawings(PAGE.read_text(encoding="utf-8")):
        path = _committed(name)
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, **_SAVED)
        print(path)
