"""The paper's empirical claims in our own words, and what decides them. Verdicts are computed, never typed in.

The paper's method is the likelihood ratio with bias weights. The bias can be read in three ways (bound, exact,
projection); a claim about the method is given the best of the three by median, which favours the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from likeset.paper.experiments.calibration_answers import better_calibrated, covers, heuristics_fail, panels_differ
from likeset.paper.experiments.evidence import Answer, together
from likeset.paper.experiments.fig2 import ALPHA
from likeset.paper.experiments.figures import Scale
from likeset.paper.experiments.methods import PAPER, RIVALS
from likeset.paper.experiments.regret_answers import (
    among,
    beats,
    on_par,
    paper_beats,
    paper_beats_each,
    paper_rivals,
    provable,
    stated_bound_contains,
    truth_stays,
)
from likeset.paper.experiments.shape_answers import ellipses, narrower_than
from likeset.paper.experiments.tables import Table

ON_PAR = 1.25
"""Within 25 % counts as on par."""

_FEW = 5


@dataclass(frozen=True)
class Claim:
    """A claim, the figure it belongs to, and the function that answers it panel by panel."""

    figure: str
    statement: str
    answer: Callable[[Table], Iterable[Answer]]
    sampled: bool = True
    """Whether the answer depends on how often the experiment was repeated."""


@dataclass(frozen=True)
class Finding:
    """A claim with what was measured; ``kind`` is "yes", "no" or "open"."""

    figure: str
    statement: str
    measured: tuple[str, ...]
    """One line per panel."""
    verdict: str
    kind: str
    command: str


def judge(tables: Mapping[str, Table], scale: Scale) -> list[Finding]:
    """All claims about the figures that were run."""
    flags = (" --quick" if scale.quick else "") + (f" --repeats {scale.repeats}" if scale.repeats is not None else "")
    flags += f" --seed {scale.seed}" if scale.seed else ""
    findings = []
    for claim in CLAIMS:
        table = tables.get(claim.figure)
        if table is None or len(table) == 0:
            continue
        answers = list(claim.answer(table))
        verdict, kind = together(answers)
        runs = len(np.unique(table["run" if "run" in table.columns else "repeat"]))
        if claim.sampled and kind != "open" and runs < _FEW:
            verdict += f" ({runs} repeats only)"
        measured = tuple(f"{a.panel}: {a.detail}" for a in answers)
        command = f"likeset reproduce {claim.figure}{flags}"
        findings.append(Finding(claim.figure, claim.statement, measured, verdict, kind, command))
    return findings


def _others(table: Table, problem: str) -> list[str]:
    """Every provable method but our own."""
    return [m for m in provable(table, problem) if m not in ("default", "lr-mixture")]


_DEFAULT_IS_BEST = beats(among("default"), _others)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "fig1",
        "Sets take the shape of the likelihood: an ellipse for Gaussian noise, none for Laplace noise.",
        ellipses,
        sampled=False,
    ),
    Claim("fig1", "The weighted ratio's band is narrower than that of AY 2011.", narrower_than("AY 2011", 1.0)),
    Claim(
        "fig1",
        "The weighted ratio's band is nearly as narrow as the heuristic one (within 25 %).",
        narrower_than("heuristic", ON_PAR),
    ),
    Claim("fig2", "The bound B stated in the table contains the function.", stated_bound_contains, sampled=False),
    Claim("fig2", "With a B that contains it, the truth stays in the provable sets at all rounds.", truth_stays(ALPHA)),
    Claim(
        "fig2",
        "The weighted ratio has the least regret of the provable sets that the paper compares.",
        paper_beats(paper_rivals),
    ),
    Claim("fig2", "Weighting by the bias improves on w = 1.", paper_beats(among("lr-plug-in"))),
    Claim(
        "fig2",
        "(control) With the weights on one side only, as in the released code, weighting does improve on w = 1 ...",
        beats(among("lr-one-sided"), among("lr-plug-in"), problems=("gaussian",)),
    ),
    Claim("fig2", "(control) ... and such sets keep the truth.", truth_stays(ALPHA, "lr-one-sided")),
    Claim(
        "fig2",
        "For additive noise the weighted ratio is on par with the heuristic radius (within 25 %).",
        paper_beats(among("heuristic"), ON_PAR, ("gaussian", "laplace")),
    ),
    Claim(
        "fig2",
        "NR 2021 does about as well as the weighted ratio for Gaussian noise (within 25 %).",
        on_par("gaussian", "NR 2021", ON_PAR),
    ),
    Claim(
        "fig2",
        "The weighted ratio does better than the sub-exponential set.",
        paper_beats(among("sub-exponential"), problems=("laplace", "survival")),
    ),
    Claim(
        "fig2",
        "The ratio, weighted or not, does better than the sub-exponential set.",
        beats(among(*PAPER, "lr-plug-in"), among("sub-exponential"), problems=("laplace", "survival")),
    ),
    Claim(
        "fig2",
        "For counts the weighted ratio improves on both Poisson heuristics.",
        paper_beats_each("poisson", ("Laplace approx.", "MK 2021")),
    ),
    Claim(
        "fig2",
        "(ours) The mixture numerator does better than every ratio of the paper, weighted or not.",
        beats(among("lr-mixture"), among(*PAPER, "lr-plug-in")),
    ),
    Claim(
        "fig2",
        "(ours) The mixture numerator does better than every provable set that the paper compares.",
        beats(among("lr-mixture"), among(*PAPER, "lr-plug-in", *RIVALS)),
    ),
    Claim("fig2", "(ours) likeset's default has the least regret of all provable sets here.", _DEFAULT_IS_BEST),
    Claim(
        "fig3",
        "Likelihood-ratio sets cover at the last round, at every alpha.",
        covers("alpha_final", rivals_too=False),
    ),
    Claim(
        "fig3",
        "(beyond the paper) All provable sets cover at all rounds at once, at every alpha.",
        covers("alpha_anytime", rivals_too=True),
    ),
    Claim("fig3", "Heuristic sets fail to cover.", heuristics_fail),
    Claim("fig3", "Ratio sets are substantially better calibrated than other provable sets.", better_calibrated),
    Claim(
        "fig3",
        "Calibration depends on the true parameter.",
        panels_differ("random", "zero", first_misses_more=False),
    ),
    Claim(
        "fig3",
        "Ratio sets are more conservative on i.i.d. data than on bandit data.",
        panels_differ("bandit", "iid", first_misses_more=True),
    ),
    Claim("fig4", "The bound B stated in the table contains the function.", stated_bound_contains, sampled=False),
    Claim(
        "fig4",
        "The weighted ratio has the least regret of the provable sets that the paper compares.",
        paper_beats(paper_rivals),
    ),
    Claim("fig4", "(ours) likeset's default has the least regret of all provable sets here.", _DEFAULT_IS_BEST),
)
"""A new claim is one more entry."""
