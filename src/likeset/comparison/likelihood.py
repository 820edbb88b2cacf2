r"""Level sets of the likelihood: the snapshot of every method that only differs in how high it sets the level.

    C = { theta in Theta : L_t(theta) <= N_t + log(1/alpha) },      L_t(theta) = sum_s -log p_theta(y_s | x_s)

with N_t, minus the log of the method's numerator, given by the method. Extrema, membership and emptiness are those of
:class:`~likeset.LikelihoodSet` (log R = L_t - N_t); all these sets are cut with Theta.
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.absolute.kernel import minimise_penalised
from likeset._solver.evaluate import term_values
from likeset._solver.newton import Goal, minimise_over_ball
from likeset._solver.problem import PointTerms, Terms, VoiceTable
from likeset._typing import Array
from likeset.comparison.base import Stream
from likeset.evidence.evidence import Evidence
from likeset.evidence.unknown_scale import evidence_of
from likeset.families.merged import with_columns
from likeset.parts import worked_out
from likeset.sets import LikelihoodSet

_GAP = 1e-10  # nats
_NO_PENALTY = 1e-10  # the solver for Laplace noise wants some


class LevelSnapshot(LikelihoodSet):
    """{ theta in Theta : L_t(theta) <= N_t + log(1/alpha) }, with its height above the best parameter.

    N_t may depend on alpha, and R need be no e-process: such a set has no other levels and no e-values.
    """

    has_other_levels = False

    @worked_out
    def radius(self) -> float | None:
        """Nats that a parameter may fall short of the most likely one in Theta; negative if the set is empty."""
        return height(self)


def height(s: LikelihoodSet) -> float | None:
    """log(1/alpha) minus the smallest log R over Theta: how far a parameter may fall short of the best one, in nats.

    None for window mixtures, whose windows have a height each, and where a scale is unknown.
    """
    evidence = s._evidence
    if not isinstance(evidence, Evidence):
        return None  # of (theta, scale) there is none in nats of theta alone
    if evidence.says_nothing or not s._convex or len(evidence.voices.log_shares) > 1:
        return None
    level = evidence.threshold - float(evidence.gains.sum())
    return level - lowest(evidence.groups.coordinates, evidence.terms, s.space.bound)[1]


def level_snapshot(stream: Stream, alpha: float, numerator_loss: float) -> LevelSnapshot:
    """The set with N_t = ``numerator_loss``."""
    ledger = stream.ledger
    # The ledger was fed log q = 0, so that its gains add up to the part of L_t that is free of theta. How N_t is
    # spread over the covariates does not matter to a joint set.
    gains = ledger.gains - numerator_loss / max(len(ledger.gains), 1)
    groups, joint = ledger.groups(stream.basis.dimension), VoiceTable.joint(len(gains))
    evidence = evidence_of(groups, ledger.terms(), gains, joint, -math.log(alpha), stream.space.bound)
    return LevelSnapshot(
        stream.space, stream.basis, evidence, alpha, stream.family.convex, len(ledger), family=stream.family
    )


def lowest(
    X: Array, terms: Terms, bound: float, penalty: float = 0.0, start: Array | None = None
) -> tuple[Array, float]:
    """argmin over |theta| <= bound of  F(theta) + penalty/2 |theta|^2,  and F + penalty/2 |.|^2 there: attained."""
    start = np.zeros(X.shape[1]) if start is None else np.pad(start, (0, X.shape[1] - len(start)))
    if isinstance(terms, PointTerms):
        theta = minimise_penalised(X, terms, max(0.5 * penalty, _NO_PENALTY), bound, start)
    else:
        theta = minimise_over_ball(X, terms, 0.5 * penalty, bound, start, Goal(_GAP)).theta
    value = math.fsum(term_values(terms, X @ theta)) + 0.5 * penalty * float(theta @ theta)
    return theta, value


def likelihood_terms(stream: Stream) -> tuple[Array, Terms, float]:
    """Distinct covariates, merged terms phi_k with F = sum phi_k, and the constant L_t - F."""
    ledger = stream.ledger
    return with_columns(ledger.merged.coordinates, stream.basis.dimension), ledger.merged.terms(), float(
        ledger.gains.sum()
    )  # fmt: skip
