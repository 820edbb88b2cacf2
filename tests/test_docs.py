"""The documentation site, without building it: names on pages, pages in tables of contents, docstrings as pages."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))

import gallery  # noqa: E402
from docstrings import as_rst, readable  # noqa: E402
from public_names import public_names, undocumented  # noqa: E402


def test_every_public_name_has_a_page():
    listed = set()
    for page in (DOCS / "api").glob("*.rst"):
        for rooms in re.findall(r"public-names:: (.+)", page.read_text()):
            listed |= set(rooms.split())
    names = dict((qualified, room) for room, qualified in public_names())
    assert len(names) > 100
    assert {name: room for name, room in names.items() if room not in listed} == {}


def test_every_public_name_has_a_docstring():
    assert [missing for _, qualified in public_names() for missing in undocumented(qualified)] == []


def test_a_missing_docstring_would_be_noticed(monkeypatch):
    import likeset

    class Bare:
        def method(self):
            pass

    monkeypatch.setattr(likeset, "Bare", Bare, raising=False)
    assert list(undocumented("likeset.Bare")) == ["likeset.Bare", "likeset.Bare.method"]


def test_every_page_is_in_the_table_of_contents():
    contents = set((DOCS / "index.md").read_text().split())
    contents |= {f"api/{word}" for word in (DOCS / "api" / "index.rst").read_text().split()}
    pages = [p.relative_to(DOCS).with_suffix("").as_posix() for end in ("md", "rst") for p in DOCS.rglob(f"*.{end}")]
    globbed = ("decisions/", "recipes/")  # listed by a pattern
    assert [p for p in pages if p != "index" and not p.startswith(globbed) and p not in contents] == []


def test_signatures_name_types_and_not_how_sphinx_holds_them():
    assert readable("(x: TypeAliasForwardRef('Array') | None)") == "(x: Array | None)"


def test_docstrings_become_pages():
    lines = [
        "The norm |x|_2 and theta*; *this* is stressed, ``x | y`` is code, x_ is a name.",
        "",
        "    C = { |x| <= 1 }",
        "",
        "Parameters",
        "----------",
        "alpha  the error level,",
        "       in (0, 1)",
        "b, c   two more",
        "",
        ">>> 1 + 1",
        "2",
    ]
    page = "\n".join(as_rst(lines))
    assert r"\|x\|_2 and theta\*; *this* is stressed, ``x | y`` is code, x\_ is a name." in page
    assert ".. code-block:: text\n\n    C = { |x| <= 1 }" in page
    assert "``alpha``\n    the error level, in (0, 1)" in page and "``b, c``\n    two more" in page
    assert ">>> 1 + 1\n2" in page


def test_the_pictures_of_the_gallery_have_at_most_ten_lines():
    import doctest

    sections = (DOCS / "gallery.md").read_text().split("\n## ")[1:]
    assert len(sections) == 10
    for section in sections:
        (name,) = re.findall(r"images/gallery/([\w-]+)\.png", section)
        assert (DOCS / "images" / "gallery" / f"{name}.png").is_file()
        lines = "".join(example.source for example in doctest.DocTestParser().get_examples(section)).splitlines()
        assert len(lines) <= 10, name


def test_a_public_name_without_a_docstring_and_a_reference_to_nothing_fail_the_build(tmp_path, monkeypatch):
    from sphinx.application import Sphinx

    import likeset as ls

    (tmp_path / "conf.py").write_text("extensions = ['sphinx.ext.autodoc', 'public_names']")
    (tmp_path / "index.rst").write_text("Names\n=====\n\n.. public-names:: plots.\n\n:doc:`nowhere`\n")
    monkeypatch.setattr(ls.plots.plot_band, "__doc__", None)
    said = io.StringIO()
    build = Sphinx(
        tmp_path, tmp_path, tmp_path / "out", tmp_path / "out", "dummy", status=None, warning=said,
        warningiserror=True,
    )  # fmt: skip
    build.build()
    assert build.statuscode == 1, said.getvalue()
    assert re.search(r"index.rst:\d+.*likeset.plots.plot_band is public and has no docstring", said.getvalue())
    assert "unknown document: 'nowhere'" in said.getvalue()
    assert "likeset.Poisson is public and on no page" in said.getvalue()


def test_an_old_picture_of_the_gallery_is_noticed(tmp_path):
    from matplotlib.figure import Figure

    def figure(slope):
        made = Figure()
        made.subplots().plot([0, 1], [0, slope], linewidth=4)
        made.axes[0].set_ylim(0, 2)
        return made

    figure(1.0).savefig(tmp_path / "one.png", **gallery._SAVED)
    assert gallery._looks_like(figure(1.0), tmp_path / "one.png")
    assert not gallery._looks_like(figure(1.3), tmp_path / "one.png")
