"""The paper's empirical claims in our own words, and what decides them. Verdicts are computed, never typed in.

The paper's method is the likelihood ratio with bias weights. The bias can be read in three ways (bound, exact,
projection); a claim about the method is given the best of the three by median, which favours the paper.
"""

from __future__ import annotations

from collections.abc import Mapping

from likeset.paper.experiments.calibration_answers import better_calibrated, covers, heuristics_fail, panels_differ
from likeset.paper.experiments.fig2 import ALPHA
from likeset.paper.experiments.figures import Scale
from likeset.paper.experiments.judging import (
    CONTROL,
    COVERAGE,
    FACT,
    FAILURE,
    OURS,
    Claim,
    Finding,
    judged,
)
from likeset.paper.experiments.methods import (
    AS_IF_GAUSSIAN,
    GUARDED,
    HEURISTICS,
    PAPER,
    RIVALS,
    SOONEST_RULE,
    certifying,
)
from likeset.paper.experiments.power_answers import keeps_theorem_3, more_powerful
from likeset.paper.experiments.regret_answers import (
    among,
    beats,
    best_arm_stays,
    certifiers,
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
from likeset.paper.experiments.weights_answers import (
    BLOWN_UP,
    FUNCTIONS,
    LINEAR,
    OTHERS,
    STEADY,
    grows_as_noise_falls,
    independent_of_noise,
    weights_approach_one,
)

ON_PAR = 1.25
"""Within 25 % counts as on par."""

HEADLINES = (
    "All provable sets cover at all rounds at once, at every alpha.",
    "The weighted ratio has the least regret of the provable sets that the paper compares.",
    "In bandit games, weighting by the bias improves on w = 1.",
    "For inference in linear models with Gaussian noise, weighting makes intervals narrower than w = 1.",
    "likeset's default has the least regret of all provable sets here.",
)
"""The claims that the report begins with."""


def _others(table: Table, problem: str) -> list[str]:
    """Every provable method but our own."""
    return [m for m in provable(table, problem) if m not in ("default", "lr-mixture", GUARDED.name)]


_DEFAULT_IS_BEST = beats(among("default"), _others)
_UNWEIGHTED = among("lr-plug-in")
_CERTIFIED, _CERTIFIED_JOINTLY = certifying("default"), certifying("lr-mixture")


def _other_certifiers(table: Table, problem: str) -> list[str]:
    """Elimination with sets that are not ours."""
    own = (_CERTIFIED, _CERTIFIED_JOINTLY, SOONEST_RULE.name)
    return [m for m in certifiers(table, problem) if m not in own]


def _certificates(figure: str) -> tuple[Claim, ...]:
    """What can be judged of Elimination's certificates over time."""
    played, ours = "Played for a certificate,", among(_CERTIFIED)
    others = f"{played} likeset's default leaves fewer arms than the sets of the paper and its rivals."
    jointly = f"{played} likeset's default leaves fewer arms than the LR hyper-mixture."
    rule = f"{played} the rule soonest leaves fewer arms than the widest interval."
    return (
        Claim(figure, f"{played} the best arm is never ruled out.", best_arm_stays(ALPHA), OURS, COVERAGE),
        Claim(figure, others, beats(ours, _other_certifiers, column="left"), OURS),
        Claim(figure, jointly, beats(ours, among(_CERTIFIED_JOINTLY), column="left"), OURS),
        Claim(figure, rule, beats(among(SOONEST_RULE.name), ours, column="left"), OURS),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "fig1",
        "Sets take the shape of the likelihood: an ellipse for Gaussian noise, none for Laplace noise.",
        ellipses,
        final_when_quick=FACT,
    ),
    Claim("fig1", "The weighted ratio's band is narrower than that of AY 2011.", narrower_than("AY 2011", 1.0)),
    Claim(
        "fig1",
        "The weighted ratio's band is nearly as narrow as the heuristic one (within 25 %).",
        narrower_than("heuristic", ON_PAR),
    ),
    Claim(
        "fig2",
        "The bound B stated in the table contains the function.",
        stated_bound_contains,
        final_when_quick=FACT,
    ),
    Claim(
        "fig2",
        "With a B that contains it, the truth stays in the provable sets at all rounds.",
        truth_stays(ALPHA),
        final_when_quick=COVERAGE,
    ),
    Claim(
        "fig2",
        "The weighted ratio has the least regret of the provable sets that the paper compares.",
        paper_beats(paper_rivals),
    ),
    Claim("fig2", "In bandit games, weighting by the bias improves on w = 1.", paper_beats(_UNWEIGHTED)),
    Claim(
        "fig2",
        "In bandit games, weighting by the bound of Theorem 2 improves on w = 1.",
        beats(among("lr-bound"), _UNWEIGHTED),
    ),
    Claim(
        "fig2",
        "With the weights on one side only, weighting does improve on w = 1 ...",
        beats(among("lr-one-sided"), _UNWEIGHTED, problems=("gaussian",)),
        CONTROL,
    ),
    Claim("fig2", "... and such sets keep the truth.", truth_stays(ALPHA, "lr-one-sided"), CONTROL, COVERAGE),
    Claim(
        "fig2",
        "AY 2011 keeps the truth under Laplace noise, which is not sub-Gaussian: there is no proof.",
        truth_stays(ALPHA, AS_IF_GAUSSIAN.name),
        CONTROL,
        COVERAGE,
    ),
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
        "The mixture numerator does better than every ratio of the paper, weighted or not.",
        beats(among("lr-mixture"), among(*PAPER, "lr-plug-in")),
        OURS,
    ),
    Claim(
        "fig2",
        "The mixture numerator does better than every provable set that the paper compares.",
        beats(among("lr-mixture"), among(*PAPER, "lr-plug-in", *RIVALS)),
        OURS,
    ),
    Claim("fig2", "likeset's default has the least regret of all provable sets here.", _DEFAULT_IS_BEST, OURS),
    Claim(
        "fig2",
        "Choice by belief, certified by the same sets, has less regret than certified optimism.",
        beats(among(GUARDED.name), among("default")),
        OURS,
    ),
    Claim(
        "fig2",
        "Choice by belief is on par with the best heuristic (within 25 %), and certified.",
        beats(among(GUARDED.name), among(*HEURISTICS), ON_PAR),
        OURS,
    ),
    *_certificates("fig2"),
    Claim(
        "fig3",
        "Likelihood-ratio sets cover at the last round, at every alpha.",
        covers("alpha_final", rivals_too=False),
        final_when_quick=COVERAGE,
    ),
    Claim(
        "fig3",
        "All provable sets cover at all rounds at once, at every alpha.",
        covers("alpha_anytime", rivals_too=True),
        OURS,
        COVERAGE,
    ),
    Claim("fig3", "Heuristic sets fail to cover.", heuristics_fail, final_when_quick=FAILURE),
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
    Claim(
        "fig4",
        "The bound B stated in the table contains the function.",
        stated_bound_contains,
        final_when_quick=FACT,
    ),
    Claim(
        "fig4",
        "The weighted ratio has the least regret of the provable sets that the paper compares.",
        paper_beats(paper_rivals),
    ),
    Claim("fig4", "likeset's default has the least regret of all provable sets here.", _DEFAULT_IS_BEST, OURS),
    *_certificates("fig4"),
    Claim(
        "weights",
        "Without weights R_t blows up as the noise falls (more than tenfold from sigma 0.3 to 0.015).",
        grows_as_noise_falls("lr-plug-in", BLOWN_UP),
    ),
    Claim(
        "weights",
        "With the weights of Theorem 2 R_t does not depend on the noise (within a factor of two).",
        independent_of_noise("lr-bound", STEADY),
    ),
    Claim("weights", "The weights approach one (0.9 or more in the last tenth).", weights_approach_one),
    Claim(
        "weights",
        "For inference about functions, weighting makes intervals narrower than w = 1.",
        beats(among(*PAPER), _UNWEIGHTED, problems=FUNCTIONS, column="width"),
    ),
    Claim(
        "weights",
        "For inference in linear models with Gaussian noise, weighting makes intervals narrower than w = 1.",
        beats(among(*PAPER), _UNWEIGHTED, problems=LINEAR, column="width"),
    ),
    Claim(
        "weights",
        "The same in linear models for Laplace noise and for counts.",
        beats(among(*PAPER), _UNWEIGHTED, problems=OTHERS, column="width"),
    ),
    Claim(
        "weights",
        "Weighting makes intervals narrower as early as after 30 observations.",
        beats(among(*PAPER), _UNWEIGHTED, column="width", t=30),
        OURS,
    ),
    Claim(
        "weights",
        "Weights on the plug-in numerator do better than a mixture numerator with w = 1.",
        beats(among(*PAPER), among("lr-mixture"), column="width"),
        OURS,
    ),
    Claim(
        "weights",
        "likeset's default (patience) has narrower intervals than every weighted ratio.",
        beats(among("default"), among(*PAPER), column="width"),
        OURS,
    ),
    Claim(
        "weights",
        "The truth is in all of these sets whenever looked at.",
        truth_stays(ALPHA),
        OURS,
        COVERAGE,
    ),
    Claim(
        "power",
        "With probability 1 - delta no parameter beyond Theorem 3's radius is left in the set with w = 1.",
        keeps_theorem_3,
        final_when_quick=COVERAGE,
    ),
    Claim("power", "likeset's default throws out more wrong parameters than w = 1.", more_powerful, OURS),
)
"""A new claim is one more entry."""


def judge(tables: Mapping[str, Table], scale: Scale) -> list[Finding]:
    """All claims about the figures that were run."""
    return judged(CLAIMS, tables, scale)
