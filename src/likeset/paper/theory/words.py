"""What a study found, in one paragraph computed from its numbers."""

from __future__ import annotations

import numpy as np

from likeset.paper.theory.looseness import Line, Looseness, Row, setting
from likeset.paper.theory.survival_trial import NAME as SURVIVAL
from likeset.paper.theory.trial import MODELS


def describe(found: Looseness) -> str:
    """How loose each bound is."""
    gaussian, poisson = (model.name for model in MODELS)

    def both(result: str, other: str | None = None) -> str:
        first, second = found.row(gaussian, result), found.row(poisson, other or result)
        return f"{_times(first)} (Gaussian) and {_times(second)} (Poisson)"

    proved = [row for row in found.rows if row.status == "proved"]
    kept = [row for row in proved if row.held >= row.promise * row.runs - 1e-9]
    short = [row for row in proved if row not in kept]
    assumption = [found.row(model.name, "assumption of Theorem 5") for model in MODELS]
    six, ours = found.row(gaussian, "Theorem 6"), found.row(gaussian, "Theorem 6 with")
    rival = found.row(gaussian, "AY 2011")
    sentences = [
        f"Setting: {setting()} {found.repeats} runs of {found.rounds} rounds; bound over realised value at the last "
        "round, median over runs.",
        f"Online regret: the bound on FTRL (Theorem 4; for Poisson Theorem 7 with constants) is "
        f"{both('Theorem 4', 'Theorem 7')} the realised R_t, one from the curvature of the data that were seen "
        f"{both('curvature of the data')}, that on VAW with bias weights (Theorem 5) {both('Theorem 5')}, with the "
        f"weights kept in all its terms {both('Theorem 5, weights')}; the exact Bayes mixture, which has neither L/mu "
        f"nor B^2 gamma_t in its bound, "
        f"{both('exact Bayes')}.",
        "The assumption of Theorem 5 held at all rounds in "
        + " and ".join(f"{row.held} of {row.runs} runs ({row.model})" for row in assumption)
        + ".",
        f"Set size: Theorem 3 is {both('Theorem 3')} the largest divergence in the set; its factor 4L/mu is "
        "what the Poisson model pays for.",
        f"Bandit regret: Theorem 6 is {_times(six)} the realised regret and {_below(found, gaussian, 'Theorem 6')}; "
        f"with the realised R_t in it {_times(ours)}; AY 2011's own bound is {_times(rival)} its policy's regret "
        f"({rival.realised:.3g} against {six.realised:.3g} here). For Poisson the same argument gives "
        f"{_times(found.row(poisson, 'Theorem 6'))} and {_below(found, poisson, 'Theorem 6')}.",
        f"Played with the weighted set, Theorem 6 times sup 1/w is {both('Theorem 6 times')}, and "
        f"{both('the same without')} without that factor.",
        f"Survival times have no least curvature, so of these results only Lemma 11 and Theorem 2 hold for them; the "
        f"bound from the curvature of the data is {_times(found.row(SURVIVAL, 'curvature of the data'))} their R_t.",
        f"Bias: Theorem 2 is {both('Theorem 2')} the true squared bias, the exact Gaussian worst case "
        f"{_times(found.row(gaussian, 'exact worst'))}.",
        f"Of {len(proved)} bounds with a proof, {len(kept)} held at all rounds at least as often as promised"
        + ("." if not short else "; " + "; ".join(map(_shortfall, short)) + "."),
        _printed(found),
    ]
    return " ".join(sentences)


def _times(row: Row) -> str:
    ratio = row.ratio
    if not np.isfinite(ratio):
        return "infinitely many times (the realised value is not positive)"
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:,.0f} times"


def _shortfall(row: Row) -> str:
    from scipy.stats import binom

    chance = binom.cdf(row.held, row.runs, row.promise)
    return (
        f"{row.result} ({row.model}) held in {row.held} of {row.runs} where {row.promise:.0%} is promised "
        f"(probability of so few or fewer if it holds exactly as often as promised: {chance:.2g})"
    )


def _printed(found: Looseness) -> str:
    broken = [row for row in found.rows if row.status == "printed" and row.held < row.runs]
    if not broken:
        return "No bound was exceeded in its printed form either."
    cases = ", ".join(
        f"{row.result.removesuffix(' as printed')} in {row.runs - row.held} of {row.runs} ({row.model}, "
        f"{row.promise:.0%} promised)"
        for row in broken
    )
    return f"In its printed form exceeded in some runs: {cases}."


def _below(found: Looseness, model: str, result: str) -> str:
    """From which round on a bandit bound says more than that every round may cost the largest gap."""
    line: Line = next(x for x in found.lines if x.row.model == model and x.row.result.startswith(result))
    chosen = next(m for m in MODELS if m.name == model)
    largest = float(np.ptp(chosen.family.mean(np.array([-chosen.bound, chosen.bound]))))
    says_more = line.bound < largest * line.t
    if not says_more.any():
        return "within these rounds never below the largest regret possible"
    return f"below the largest regret possible from round {line.t[says_more][0]:.0f} on"
