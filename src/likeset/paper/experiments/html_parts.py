"""Pieces of HTML: tables, pictures, text that is escaped unless it says that it is HTML."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class Raw(str):
    """Text that is HTML already."""


@dataclass(frozen=True)
class Section:
    """A heading and the HTML below it."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        """Where the contents point to."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower()).strip("-")


def text(value: object) -> str:
    """Escaped, unless raw."""
    return str(value) if isinstance(value, Raw) else html.escape(str(value))


def code(content: str) -> Raw:
    """A command."""
    return Raw(f"<code>{html.escape(content)}</code>")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in a frame that scrolls sideways where the screen is narrow; cells are escaped."""
    head = "<thead><tr>" + "".join(f"<th>{text(h)}</th>" for h in headings) + "</tr></thead>" if any(headings) else ""
    lines = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table>{head}<tbody>{lines}</tbody></table></div>'


def folded(title: str, body: str) -> str:
    """Something long, shown when asked for."""
    return f"<details><summary>{text(title)}</summary>{body}</details>"


def picture(stem: Path, caption: str = "", words: str = "") -> str:
    """The SVG file of a picture, inside the page; ``words`` for who cannot see it, by default the caption."""
    data = base64.b64encode(stem.with_suffix(".svg").read_bytes()).decode()
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    image = f'<img alt="{html.escape(words or caption)}" src="data:image/svg+xml;base64,{data}">'
    return f'<figure><div class="wide">{image}</div>{below}</figure>'


STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:1.5rem auto;padding:0 1rem;color:#111;background:#fff}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.25rem;margin-top:2.5rem;border-bottom:1px solid #999}
h3{font-size:1.05rem}p,li{max-width:48rem}a{color:#0550ae}
table{border-collapse:collapse;font-size:.85rem;margin:.75rem 0}
th,td{border:1px solid #bbb;padding:.25rem .5rem;text-align:left;vertical-align:top}th{background:#eee}
td{min-width:3rem}.wide{overflow-x:auto}figure{margin:1rem 0}figcaption{font-size:.9rem;color:#333}
img{width:100%;max-width:68rem;min-width:40rem;display:block}code{font-size:.9em;background:#f3f3f3}
details{margin:.5rem 0}summary{cursor:pointer;font-weight:600}dt{font-weight:600}
dd{margin:0 0 .5rem 1rem;max-width:46rem}
.claim{border-left:.3rem solid #888;padding:.1rem .75rem;margin:1rem 0}.claim p{margin:.2rem 0}
.claim.yes{border-color:#1a7f37}.claim.no{border-color:#b3261e}.small{font-size:.85rem;color:#333}
.claim ul{font-size:.85rem;margin:.2rem 0;padding-left:1.2rem}
.narrow{display:none}
@media(max-width:40rem){body{font-size:15px;margin:.75rem auto}h1{font-size:1.3rem}.narrow{display:block}}
@media print{.narrow{display:none}body{max-width:none;font-size:10pt}.wide{overflow:visible}
img{min-width:0;width:auto;max-width:100%;max-height:22cm}
details::details-content{content-visibility:visible;display:block;height:auto}
table{font-size:7pt}tr,li,p,figure{break-inside:avoid}h2,h3,summary{break-after:avoid}thead{display:table-header-group}
.claim p,.claim summary{break-after:avoid}.claim ul,.claim .small{break-before:avoid}}
"""
