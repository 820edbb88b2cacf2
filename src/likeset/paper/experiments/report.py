"""One self-contained HTML file: summary, figures, claims, glossary, environment. No scripts, no links to other files.

The report is a list of sections, each a function from the results to one :class:`Section` or several; another one is
one more line in ``SECTIONS``.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from likeset import __version__
from likeset.paper.experiments import html_parts as parts
from likeset.paper.experiments.claims import HEADLINES
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.glossary import GLOSSARY
from likeset.paper.experiments.html_parts import Section
from likeset.paper.experiments.judging import GROUPS, Finding
from likeset.paper.experiments.numbers import numbers
from likeset.paper.experiments.store import write_atomically
from likeset.paper.experiments.tables import Table

IN_SHORT = {
    "fig2": "Regret of bandit games: lower is better; dashed lines have no guarantee.",
    "fig3-anytime": "Coverage at all rounds at once: below the grey line the promise is broken.",
    "weights": "The paper's weights in low noise.",
}
"""The pictures of the summary."""

SUMMARY = Section("In short", "")


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


def summary_section(results: Results) -> Section:
    """What came out, in a few sentences and pictures, all from this run."""
    found = {f.statement: f for f in reversed(results.findings)}  # the first figure with such a claim
    lines = [
        f"<li>{parts.text(statement)} <b>{parts.text(_capital(found[statement].verdict))}.</b></li>"
        for statement in HEADLINES
        if statement in found
    ]
    body = f"<ul>{''.join(lines)}</ul>" if lines else ""
    if results.scale.quick:
        body += (
            "<p><b>Quick run:</b> few repeats and rounds, so comparisons are left undecided, with what they look like "
            f"so far. Run {parts.code('likeset reproduce all')} before quoting a verdict.</p>"
        )
    stems = {stem.name: stem for stems in results.pictures.values() for stem in stems}
    body += "".join(parts.picture(stems[name], words) for name, words in IN_SHORT.items() if name in stems)
    return replace(SUMMARY, body=body)


def figure_sections(results: Results) -> Iterable[Section]:
    """One section per figure: pictures, settings, numbers."""
    for figure in results.figures:
        stems = results.pictures.get(figure.name, [])
        shown = [stem for stem in stems if stem.name not in IN_SHORT]
        pictures = "".join(parts.picture(stem, words=_words(figure, i)) for i, stem in enumerate(shown, 1))
        above = "".join(
            f' In the <a href="#{SUMMARY.anchor}">summary</a>: {parts.text(IN_SHORT[stem.name])}'
            for stem in stems
            if stem.name in IN_SHORT
        )
        body = f"<p>{parts.text(figure.settings)}{above}</p>{pictures}{numbers(results.tables[figure.name])}"
        yield Section(figure.title, body)


def _words(figure: Figure, number: int) -> str:
    return f"{figure.title}, picture {number}; its numbers are in the tables below"


def claims_section(results: Results) -> Section:
    """Claims by whose they are: the verdict, and behind it what was measured and the command that shows it."""
    body = (
        "<p>Each claim is in our own words; the verdict is computed from the rows of this run. Regrets and widths are "
        "compared at the last round by the ratio of medians over repeats, with a 90 % bootstrap interval over repeats "
        "(paired by repeat). An interval that contains the limit of the claim (1, or 1.25 for &ldquo;within "
        "25 %&rdquo;) decides nothing, nor do fewer than five repeats. Coverage is refuted by more misses than the "
        "binomial distribution allows, and &ldquo;not refuted&rdquo; where the runs are too few to notice a bad "
        "set.</p>"
    )
    titles = {figure.name: figure.title for figure in results.figures}
    for group, heading in GROUPS.items():
        own = [finding for finding in results.findings if finding.group == group]
        if own:
            body += f"<h3>{parts.text(heading)}</h3>" + "".join(_claim(finding, titles) for finding in own)
    return Section("Claims", body)


def _claim(finding: Finding, titles: dict[str, str]) -> str:
    lines = "".join(f"<li>{parts.text(line)}</li>" for line in finding.measured)
    measured = parts.folded("What was measured", f"<ul>{lines}</ul>") if lines else ""
    where = (
        f'<p class="small">{parts.text(titles.get(finding.figure, finding.figure))} · {parts.code(finding.command)}</p>'
    )
    return (
        f'<div class="claim {finding.kind}"><p>{parts.text(finding.statement)}</p>'
        f"<p><b>{parts.text(_capital(finding.verdict))}.</b></p>{measured}{where}</div>"
    )


def glossary_section(results: Results) -> Section:
    """The words and names used above."""
    entries = "".join(
        f"<dt>{parts.text(word)}</dt><dd>{parts.text(meaning)}</dd>" for word, meaning in GLOSSARY.items()
    )
    return Section("Glossary", f"<dl>{entries}</dl>")


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
    return Section("How this was made", parts.table(("", ""), rows))


SECTIONS: tuple[Callable[[Results], Section | Iterable[Section]], ...] = (
    summary_section,
    figure_sections,
    claims_section,
    glossary_section,
    environment_section,
)


def write(path: Path, results: Results) -> None:
    """Write the report."""
    sections: list[Section] = []
    for make in SECTIONS:
        made = make(results)
        sections.extend([made] if isinstance(made, Section) else made)
    contents = "".join(f'<li><a href="#{s.anchor}">{parts.text(s.title)}</a></li>' for s in sections[1:])
    bodies = [f'<section id="{s.anchor}"><h2>{parts.text(s.title)}</h2>{s.body}</section>' for s in sections]
    bodies.insert(1, f"<nav><h2>Contents</h2><ol>{contents}</ol></nav>")
    kind = "quick run" if results.scale.quick else "full run"
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>likeset: the paper's experiments, "
        f"{kind}</title><style>{parts.STYLE}</style></head><body><h1>Likelihood-ratio confidence sets: the paper's "
        f"experiments again ({kind})</h1><p>Emmenegger, Mutný and Krause, NeurIPS 2023. Solid lines have provable "
        "anytime coverage, dashed lines do not. The paper's own method is marked (paper).</p>"
        '<p class="narrow">Pictures and tables that are wider than the screen scroll sideways.</p>'
        f"{''.join(bodies)}</body></html>\n"
    )
    write_atomically(path, page.encode(errors="backslashreplace"))  # names of files need not be text


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
