"""One self-contained HTML file: claims, figures, settings, environment. No scripts, no links to other files.

The report is a list of sections, each a function from the results to one :class:`Section` or several; another one is
one more line in ``SECTIONS``.
"""

from __future__ import annotations

import base64
import html
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from likeset import __version__
from likeset.paper.experiments.bounds import looseness
from likeset.paper.experiments.claims import Finding
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import label_of, sorted_methods
from likeset.paper.experiments.names import panel
from likeset.paper.experiments.store import write_atomically
from likeset.paper.experiments.tables import Table


@dataclass(frozen=True)
class Results:
    """All that a section may draw on."""

    figures: Sequence[Figure]
    tables: dict[str, Table]
    pictures: dict[str, list[Path]]
    findings: Sequence[Finding]
    scale: Scale
    command: str
    seconds: float


@dataclass(frozen=True)
class Section:
    """A heading and the HTML below it."""

    title: str
    body: str


def claims_section(results: Results) -> Section:
    """The paper's claims, what was measured, the verdict, and the command that shows it."""
    rows = [
        (
            f.figure,
            f.statement,
            _Raw("<br>".join(map(html.escape, f.measured))),
            _Raw(f'<b class="{f.kind}">{_text(f.verdict)}</b>'),
            _Raw(_code(f.command)),
        )
        for f in results.findings
    ]
    note = (
        "<p>Each row is a claim in our own words. Verdicts are computed from the rows of this run. Regrets and widths "
        "are compared at the last round by the ratio of medians over repeats, with a 90 % bootstrap interval over "
        "repeats (paired by repeat). An interval that contains the limit of the claim (1, or 1.25 for &ldquo;on "
        "par&rdquo;) decides nothing, nor do fewer than five repeats. Coverage is refuted by more misses than the "
        "binomial distribution allows, and &ldquo;not refuted&rdquo; where the runs are too few to notice a bad "
        "set.</p>"
    )
    if results.scale.quick:
        note += (
            "<p><b>Quick run:</b> few repeats and rounds, so intervals are wide and differences that show late do not "
            "show at all. Run <code>likeset reproduce all</code> before quoting a verdict.</p>"
        )
    return Section("Claims", note + html_table(("figure", "claim", "measured here", "verdict", "command"), rows))


def figure_sections(results: Results) -> Iterable[Section]:
    """One section per figure: pictures, settings, numbers."""
    for figure in results.figures:
        pictures = "".join(_picture(stem) for stem in results.pictures.get(figure.name, []))
        numbers = ""
        if "regret" in results.tables[figure.name].columns:
            numbers = _regret_table(results.tables[figure.name])
        elif "alpha_anytime" in results.tables[figure.name].columns:
            numbers = _coverage_table(results.tables[figure.name])
        elif "radius" in results.tables[figure.name].columns:
            numbers = _weights_table(results.tables[figure.name])
        elif "bound" in results.tables[figure.name].columns:
            numbers = f"<p>{_text(looseness(results.tables[figure.name]).paragraph())}</p>"
        yield Section(figure.title, f"<p>{figure.settings}</p>{pictures}{numbers}")


def environment_section(results: Results) -> Section:
    """What ran, where, with which versions."""
    packages = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib", "distributed")
    rows = [
        ("command", results.command),
        ("likeset", __version__),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        *((name, _version(name)) for name in packages),
        ("seed", str(results.scale.seed)),
        ("this run took", f"{results.seconds:.0f} s (cells that were already finished were not run again)"),
    ]
    return Section("How this was made", html_table(("", ""), rows))


SECTIONS: tuple[Callable[[Results], Section | Iterable[Section]], ...] = (
    claims_section,
    figure_sections,
    environment_section,
)


def write(path: Path, results: Results) -> None:
    """Write the report."""
    sections: list[Section] = []
    for make in SECTIONS:
        made = make(results)
        sections.extend([made] if isinstance(made, Section) else made)
    body = "".join(f"<section><h2>{_text(s.title)}</h2>{s.body}</section>" for s in sections)
    kind = "quick run" if results.scale.quick else "full run"
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>likeset: the paper's experiments, "
        f"{kind}</title><style>{_STYLE}</style></head><body><h1>Likelihood-ratio confidence sets: the paper's "
        f"experiments again ({kind})</h1><p>Emmenegger, Mutný and Krause, NeurIPS 2023. Solid lines have provable "
        "anytime coverage, dashed lines do not.</p>"
        f"{body}</body></html>\n"
    )
    write_atomically(path, page.encode(errors="backslashreplace"))  # names of files need not be text


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table; cells are escaped."""
    head = "".join(f"<th>{_text(h)}</th>" for h in headings)
    lines = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _regret_table(table: Table) -> str:
    last = int(table["t"].max())
    times = sorted({max(1, last // 4), max(1, last // 2), last})
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            medians = [f"{np.median(own.where(t=t)['regret'].astype(float)):.1f}" for t in times]
            end = own.where(t=last)
            low, high = np.quantile(end["regret"].astype(float), [0.25, 0.75])
            ever = [bool(run["covered"].all()) for _, run in own.groups("repeat")]
            empty = sum(bool(run["empty"].any()) for _, run in own.groups("repeat"))
            missed = f"{len(ever) - sum(ever)} of {len(ever)}"
            provable = "yes" if bool(own["provable"][0]) else "no"
            rows.append(
                (panel(problem), label_of(method), provable, *medians, f"{low:.1f} to {high:.1f}", missed, empty)
            )
    headings = ("problem", "method", "provable", *(f"regret at {t}" for t in times), f"quartiles at {last}",
                "runs in which the truth ever left the set", "runs with an empty set")  # fmt: skip
    return "<h3>Median cumulative regret</h3>" + html_table(headings, rows)


def _coverage_table(table: Table) -> str:
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            final, ever = own["alpha_final"].astype(float), own["alpha_anytime"].astype(float)
            cells = [f"{np.mean(values < level):.3f}" for level in (0.05, 0.1, 0.3) for values in (final, ever)]
            rows.append(
                (panel(problem), label_of(method), "yes" if bool(own["provable"][0]) else "no", len(own), *cells)
            )
    headings = ["panel", "method", "provable", "runs"]
    headings += [f"misses {when}, alpha = {level}" for level in (0.05, 0.1, 0.3) for when in ("at T", "ever")]
    return "<h3>Misses of the truth: at the last round, and at any round</h3>" + html_table(headings, rows)


def _weights_table(table: Table) -> str:
    times = sorted(table.distinct("t"))[1:]
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            radii, widths, weights = (
                [f"{np.median(own.where(t=t)[column].astype(float)):.{digits}f}" for t in times]
                for column, digits in (("radius", 1), ("width", 3), ("weight", 2))
            )
            rows.append((panel(problem), label_of(method), *radii, *widths, *weights))
    headings = ["problem", "method"]
    headings += [f"{what}, t = {t}" for what in ("R_t (nats)", "width", "weight") for t in times]
    return "<h3>Medians</h3>" + html_table(headings, rows)


class _Raw(str):
    """Text that is HTML already."""


def _text(value: object) -> str:
    return str(value) if isinstance(value, _Raw) else html.escape(str(value))


def _code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def _picture(stem: Path) -> str:
    data = base64.b64encode(stem.with_suffix(".svg").read_bytes()).decode()
    return f'<img alt="{html.escape(stem.name)}" src="data:image/svg+xml;base64,{data}">'


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem;border-bottom:1px solid #999}h3{font-size:1rem}
table{border-collapse:collapse;font-size:.85rem;margin:1rem 0}
th,td{border:1px solid #bbb;padding:.25rem .5rem;text-align:left;vertical-align:top}th{background:#eee}
img{max-width:100%;display:block;margin:1rem 0}code{font-size:.9em;background:#f3f3f3}
b.no{text-decoration:underline}b.open{font-weight:normal;font-style:italic}
"""
