"""The numbers behind the figures as tables for the report: medians, misses, bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likeset.paper.experiments import html_parts as parts
from likeset.paper.experiments.bounds import looseness
from likeset.paper.experiments.methods import is_certifying, label_of, sorted_methods
from likeset.paper.experiments.names import amount, panel
from likeset.paper.experiments.power import DISTANCES
from likeset.paper.experiments.power_answers import rows_of
from likeset.paper.experiments.tables import Table


def numbers(table: Table) -> str:
    """The table that fits the columns; nothing where a picture says it all."""
    for column, make in _BY_COLUMN.items():
        if column in table.columns:
            return make(table)
    return ""


def _regret(table: Table) -> str:
    for_certificates = np.array([is_certifying(method) for method in table["method"]])
    return _regrets(table.at(~for_certificates)) + _certificates(table.at(for_certificates))


def _regrets(table: Table) -> str:
    times = _looks(table)
    last = times[-1]
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            medians = [f"{np.median(own.where(t=t)['regret'].astype(float)):.1f}" for t in times]
            low, high = np.quantile(own.where(t=last)["regret"].astype(float), [0.25, 0.75])
            ever = [bool(run["covered"].all()) for _, run in own.groups("repeat")]
            empty = sum(bool(run["empty"].any()) for _, run in own.groups("repeat"))
            missed = f"{len(ever) - sum(ever)} of {len(ever)}"
            quartiles = f"{low:.1f} to {high:.1f}"
            rows.append((panel(problem), label_of(method), _proof(own), *medians, quartiles, missed, empty))
    headings = ("problem", "method", "proof", *(f"regret at {t}" for t in times), f"quartiles at {last}",
                "runs in which the truth ever left the set", "runs with an empty set")  # fmt: skip
    return parts.folded("Median cumulative regret, every method", parts.table(headings, rows))


def _certificates(table: Table) -> str:
    """How many arms Elimination left, and in how many runs it certified one; nothing where it was not run."""
    if not len(table):
        return ""
    times = _looks(table)
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            runs = [run for _, run in own.groups("repeat")]
            stops = [int(run["t"][run["left"] == 1][0]) for run in runs if (run["left"] == 1).any()]
            lost = sum(not run["best_left"].all() for run in runs)
            medians = [f"{np.median(own.where(t=t)['left']):g}" for t in times]
            found = f"{len(stops)} of {len(runs)}", f"{np.median(stops):g}" if stops else "none"
            rows.append((panel(problem), label_of(method), *medians, *found, f"{lost} of {len(runs)}"))
    headings = ("problem", "method", *(f"arms left at {t}" for t in times), "runs with a certificate",
                "their median round", "runs in which the best arm was ruled out")  # fmt: skip
    return parts.folded("Arms that may be best, played for a certificate", parts.table(headings, rows))


def _looks(table: Table) -> list[int]:
    """A quarter, half and all of the rounds."""
    last = int(table["t"].max())
    return sorted({max(1, last // 4), max(1, last // 2), last})


def _coverage(table: Table) -> str:
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            final, ever = own["alpha_final"].astype(float), own["alpha_anytime"].astype(float)
            cells = [f"{np.mean(values < level):.3f}" for level in (0.05, 0.1, 0.3) for values in (final, ever)]
            rows.append((panel(problem), label_of(method), _proof(own), len(own), *cells))
    headings = ["panel", "method", "proof", "runs"]
    headings += [f"misses {when}, alpha = {level}" for level in (0.05, 0.1, 0.3) for when in ("at T", "ever")]
    return parts.folded("Misses of the truth, at the last round and at any round", parts.table(headings, rows))


def _weights(table: Table) -> str:
    times = sorted(table.distinct("t"))[1:]
    rows = []
    for (problem,), part in table.groups("problem"):
        for method in sorted_methods(part.distinct("method")):
            own = part.where(method=method)
            cells = [
                f"{np.median(own.where(t=t)[column].astype(float)):.{digits}f}"
                for column, digits in (("radius", 1), ("width", 3), ("weight", 2))
                for t in times
            ]
            rows.append((panel(problem), label_of(method), *cells))
    headings = ["problem", "method"]
    headings += [f"{what}, t = {t}" for what in ("R_t in nats", "width", "weight") for t in times]
    return parts.folded("Medians of R_t, width and weight", parts.table(headings, rows))


def _power(table: Table) -> str:
    headings = ("problem", "method", "observations", *(f"distance {d:g}" for d in DISTANCES))
    rows = [(problem, label_of(str(method)), *rest) for problem, method, *rest in rows_of(table)]
    return parts.folded("Share of runs in which a wrong parameter is kept", parts.table(headings, rows))


def _theory(table: Table) -> str:
    found = looseness(table)
    rows = [
        (
            row.model,
            row.panel,
            row.name,
            row.result,
            row.status,
            amount(row.realised),
            amount(row.bound),
            amount(row.ratio) if np.isfinite(row.ratio) else "none",
            f"{row.promise:.0%}" if row.promise > 0 else "none",
            f"{row.held} of {row.runs}",
        )
        for row in found.rows
    ]
    headings = (
        "model",
        "quantity",
        "of whom",
        "result",
        "status",
        "what happened",
        "bound",
        "ratio",
        "promised",
        "held",
    )
    words = f"<p>{parts.text(found.paragraph())}</p>"
    return parts.table(headings, rows) + parts.folded("In words", words)


def _proof(table: Table) -> str:
    return "yes" if bool(table["provable"][0]) else "no"


_BY_COLUMN: dict[str, Callable[[Table], str]] = {
    "regret": _regret,
    "alpha_anytime": _coverage,
    "radius": _weights,
    "kept": _power,
    "promise": _theory,
}
